"""`import_corpus FILE` without the name of a corpus: report what the file seems to be, and complete the options."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from annotate.actions.action import ActionError
from annotate.reports.table_formats import as_lines
from annotate.reports.tables import BEGINNING, Column, many, table
from corpora.core.records import FIELDS
from corpora.sources.compression import check_file
from corpora.sources.documents import DOCUMENTS
from corpora.sources.readers import named_columns
from corpora.sources.recognition import Recognized, described, name_from, recognized, unused
from corpora.storage.inventory import corpus_rows
from corpora.storage.layout import digest_of, read_manifest

NOT_STATED = "not stated"  # the licence of a corpus for which none was stated; its texts are not exported
_UNPUBLISHED = (
    "No licence was stated, so exports will not contain the texts. To publish them, add --licence and the name of "
    "another corpus."
)


def completed(inputs: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the inputs of import_corpus on a command line, completed, and what was recognized about the files.

    The inputs are complete if they name a corpus. Raise ActionError if a file's columns are ambiguous.
    """
    corpus, files = inputs["corpus"], list(inputs["files"] or [])
    is_name = re.fullmatch(r"[\w-]+", corpus)
    # Without further files, a path that is no name is a file even if it does not exist, so that this is reported.
    if not Path(corpus).is_file() and (is_name or files):
        return inputs, []
    if is_name and files:
        return inputs, []
    paths = [Path(corpus), *map(Path, files)]
    name = _name_for(paths[0])
    inputs = {**inputs, "corpus": name, "files": list(map(str, paths))}
    said = []
    if not inputs["licence"]:
        manifest = read_manifest(name)
        inputs["licence"] = manifest.licence if manifest else NOT_STATED
        inputs["text_may_leave"] = manifest.text_may_leave if manifest else False
        said = [] if manifest else [_UNPUBLISHED]
    if inputs["fields"] or inputs["format"] in DOCUMENTS:
        return inputs, said
    found = [recognized(path, inputs["format"], inputs["encoding"] or "", inputs["delimiter"] or "") for path in paths]
    chosen = named_columns(inputs["column"] or (), FIELDS)
    reports = list(map(report, found))
    if questions := _questions(found[0], chosen):
        raise ActionError("\n".join([*reports, *questions]), option="column")
    guessed = {field: column for field, column in found[0].columns.items() if field not in (column, *chosen)}
    columns = [f"{field}={column}" for field, column in (guessed | chosen).items()]
    formats = {each.format for each in found}
    return {**inputs, "column": columns, "format": formats.pop() if len(formats) == 1 else None}, [*reports, *said]


def _name_for(path: Path) -> str:
    """Return the name of the corpus that already contains the file, or an unused name."""
    check_file(path, "any")
    stem, names = name_from(path), [row["corpus"] for row in corpus_rows()]
    alike = [name for name in names if name.startswith(stem)]
    digest = digest_of(path) if alike else ""
    for name in alike:
        manifest = read_manifest(name)
        if manifest and digest in {source.sha256 for source in manifest.sources}:
            return str(name)
    return unused(stem, names)


def _questions(found: Recognized, chosen: Mapping[str, str]) -> list[str]:
    """Return a sentence for each field for which the user must name the column."""
    questions = [
        f"The {field} may be in {many(len(columns), 'column')}. Add "
        f"{' or '.join(f'--column {field}={column}' for column in columns)}."
        for field, columns in found.doubtful.items()
        if field not in chosen
    ]
    for field in found.missing:
        if field not in chosen:
            fields = ', or --fields "…" for records with several fields' if field == "text" else ""
            questions.append(f"No column seems to contain the {field}. Add --column {field}=COLUMN{fields}.")
    return questions


def report(found: Recognized) -> str:
    """Return what a file seems to be as text: its format and encoding, and a table of its columns with samples."""
    rows = [
        {"column": column, "field": found.field_of(column) or "–", "samples": _beginning(found, column)}
        for column in found.sample.columns
    ]
    headings = [Column("column", "column"), Column("field", "read as"), Column("samples", "first values")]
    return (
        f"{found.path.name}: {described(found.format, found.text_format)}\n{as_lines(table('columns', headings, rows))}"
    )


def _beginning(found: Recognized, column: str) -> str:
    samples = (" ".join(value.split()) for value in found.samples(column))
    return " | ".join(value if len(value) <= BEGINNING // 4 else f"{value[: BEGINNING // 4]}…" for value in samples)
