"""Which column of a file holds which field: as an option names them, and as a header has them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from corpora.core import CorpusError
from corpora.core.records import DECLARED, OBLIGATORY
from corpora.sources.compression import format_of

WORDY = 4  # words that a column's name has at most


@dataclass(frozen=True, slots=True)
class Columns:
    """named: our field -> the source's column; needed: the fields that a table must have columns for.

    bare: a TSV file whose first line has none of the columns is one without a header, its columns those named, in
    order.
    """

    named: Mapping[str, str]
    needed: tuple[str, ...] = OBLIGATORY
    bare: bool = False


def named_columns(pairs: Iterable[str], fields: Collection[str]) -> dict[str, str]:
    """Field -> column, from options such as `label=lang`. CorpusError for an invalid one."""
    columns = {}
    for pair in pairs:
        field, _, column = pair.partition("=")
        if field not in fields or not column:
            raise CorpusError(
                f"--column {pair}: write FIELD=COLUMN with one of {', '.join(fields)}, in one word, such as "
                f"{pair if pair in fields else next(iter(fields))}=my_column."
            )
        columns[field] = column
    return columns


def lacks(path: Path, missing: Collection[str], there: Sequence[str], columns: Columns) -> CorpusError:
    """missing: columns that a file has not; there: those that it has."""
    others = {column.casefold(): column for column in there if column not in columns.named.values()}
    lacking = {field: column for field, column in columns.named.items() if column in missing}
    near = {field: get_close_matches(column.casefold(), others, 1) for field, column in lacking.items()}
    meant = {field: others[names[0]] for field, names in near.items() if names}
    meant = meant or {next(iter(lacking)): next(iter(others.values()), "body")}
    do = " ".join(
        f"--labels {name}" if field == DECLARED else f"--column {field}={name}" for field, name in meant.items()
    )
    have = ", ".join(there) or "none"
    return CorpusError(f"{_lacking(path, missing)}; its columns are: {have}. Say which is which, for example {do}.")


def _lacking(path: Path, missing: Collection[str]) -> str:
    return f"{path} has no column{'s' if len(missing) > 1 else ''} {', '.join(missing)}"


def places_in(path: Path, header: list[str], columns: Columns) -> list[tuple[str, int]]:
    """(field, place in the header) of the columns that exist. CorpusError if a needed column is missing."""
    if repeated := sorted(
        {column for column in header if header.count(column) > 1}.intersection(columns.named.values())
    ):
        raise CorpusError(f"{path} has the column {repeated[0]} twice; rename one of them.")
    if len(header) == 1 and ";" in header[0]:
        raise CorpusError(f"{path} has semicolons between its columns; save it with commas, or with tabs as .tsv.")
    missing = [
        column
        for field, column in columns.named.items()
        if column not in header and (field in columns.needed or column != field)
    ]
    if missing:
        if len(header) < 2 <= len(columns.needed) and not set(header) & set(columns.named.values()):
            only = f"is the one cell {header[0][:40]!r}" if header else "is blank"
            separator = "a tab" if format_of(path) == "tsv" else "a comma"
            raise CorpusError(
                f"{path}: its first line {only}, where {' and '.join(columns.named[name] for name in columns.needed)} "
                f"are wanted; put {separator} between the cells."
            )
        if any(map(_is_value, header)):
            raise CorpusError(
                f"{_lacking(path, missing)}: its first line seems to be a row already, and not the names of the "
                f"columns. Put a line before it that names them, such as {_named(path, header, columns)}; with "
                "--column the row would be lost."
            )
        raise lacks(path, missing, header, columns)
    return [(field, header.index(column)) for field, column in columns.named.items() if column in header]


def _is_value(cell: str) -> bool:
    """Whether it is hardly a column's name: a number, or a sentence."""
    return cell.strip().lstrip("-").isdecimal() or len(cell.split()) > WORDY


def _named(path: Path, header: Sequence[str], columns: Columns) -> str:
    separator = "<tab>" if format_of(path) == "tsv" else ","
    names = [*columns.needed, *(f"column{n}" for n in range(len(columns.needed) + 1, len(header) + 1))]
    return separator.join(names)
