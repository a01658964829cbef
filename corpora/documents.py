"""Published formats of documents: what --format may name beside files of rows, and what each says by itself."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from corpora import eurlex, rcv
from corpora.columns import Columns, places_in
from corpora.files import Progress, damage_explained
from corpora.lines import Fault
from corpora.manifest import Manifest
from corpora.readers import Row, read_rows


@dataclass(frozen=True, slots=True)
class Documents:
    """columns: those that a document has; read: the rows of a path by these, given the most bytes of a document and a
    progress. fields, labels, language: those of a new corpus where nobody names any. may_be_empty: fields that need no
    text. folder: whether a path may be one."""

    help: str
    columns: tuple[str, ...]
    read: Callable[[Path, int, Progress], Iterator[Row]]
    fields: tuple[str, ...] = ()
    labels: str = ""
    language: str = ""
    may_be_empty: frozenset[str] = frozenset()
    folder: bool = False


DOCUMENTS = {
    "rcv": Documents("stories of Reuters' corpora, XML or ZIP files", rcv.COLUMNS, rcv.read_stories),
    "eurlex": Documents(
        "acts of EURLEX57K, folders, ZIP files or lines",
        eurlex.COLUMNS,
        eurlex.read_acts,
        fields=eurlex.FIELDS,
        labels="concepts",
        language="en",
        may_be_empty=frozenset(eurlex.FIELDS),
        folder=True,
    ),
    "multi_eurlex": Documents(
        "acts of MultiEURLEX, lines",
        eurlex.COLUMNS_OF_MULTI,
        eurlex.read_multilingual_acts,
        fields=eurlex.FIELDS_OF_MULTI,
        labels=eurlex.LEVELS[0],
        may_be_empty=frozenset({"split"}),
    ),
}


def terms_of(
    format: str | None, known: Manifest | None, fields: tuple[str, ...], language: str, labels: str
) -> tuple[tuple[str, ...], str, str]:
    """The fields, language and column of labels that hold: those named, else the corpus's, else the format's own."""
    if (own := DOCUMENTS.get(format or "")) is None:
        return fields, language, labels
    fields = fields or (known.fields if known else ()) or own.fields
    return fields, language or own.language, labels or (own.labels if known is None or known.declared else "")


def read_any(path: Path, format: str, columns: Columns, max_line: int, progress: Progress) -> Iterator[Row]:
    """Every row or document of a path. CorpusError if it cannot be read as a whole."""
    if (own := DOCUMENTS.get(format)) is None:
        yield from read_rows(path, format, columns, max_line, progress)
        return
    named = {field: columns.named[field] for field, _ in places_in(path, list(own.columns), columns)}
    with damage_explained(path, format):
        for number, read in own.read(path, max_line, progress):
            yield number, read if isinstance(read, Fault) else {field: read.get(named[field]) for field in named}
