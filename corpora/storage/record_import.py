"""Import of posts and records into a corpus. Each file is committed separately.

An import does not depend on the time or on random numbers. If it is killed and run again, the resulting files are the
same. Rows are read by corpora/sources/readers.py, validated by corpora/core/records.py and written by
corpora/storage/intake.py.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from corpora.core import CorpusError
from corpora.core.records import (
    DECLARED,
    FIELD_NAME,
    FORMULA,
    RESERVED,
    RecordError,
    columns_of,
    needed_of,
    read_language,
)
from corpora.core.values import is_free, is_missing, is_removed
from corpora.engines import full_disk_explained
from corpora.models import Corpus
from corpora.sources.compression import Progress, check_file, format_of
from corpora.sources.documents import DOCUMENTS, read_any
from corpora.sources.readers import MOST_INSPECTED, Columns, Row, header_of, places_in
from corpora.sources.text import MAX_LINE, TextFormat, text_format_of
from corpora.storage.intake import RejectLog, deduplicate, stage
from corpora.storage.layout import (
    Manifest,
    Source,
    changing,
    digest_of,
    read_manifest,
    reject_name,
    size_of,
    source_of,
    sync,
    with_source,
    write_manifest,
)

TABLES = ("csv", "tsv", "parquet")  # formats with a header


@dataclass(frozen=True)
class Outcome:
    """The result of importing a file.

    source: the file's entry in the manifest
    rejects: the file that lists the rejected rows
    already: whether the file had been imported before
    formulas: the number of ids that a spreadsheet would run as a formula, and the first of these ids
    authorless: the number of rows for each placeholder that replaces an author, such as [deleted]
    """

    source: Source
    rejects: Path
    already: bool = False
    formulas: tuple[int, str] = (0, "")
    authorless: Counter[str] = field(default_factory=Counter)


@dataclass
class _Counts:
    """Counts for an Outcome, which are made while the rows are read."""

    count: int = 0
    first: str = ""
    authorless: Counter[str] = field(default_factory=Counter)

    def among(self, rows: Iterator[Row]) -> Iterator[Row]:
        for line, raw in rows:
            key = raw.get("id") if isinstance(raw, dict) else None
            if isinstance(key, str) and key.lstrip().startswith(FORMULA):
                self.count += 1
                self.first = self.first or key.strip()
            author = raw.get("author") if isinstance(raw, dict) else None
            if isinstance(author, str) and author and (is_missing(author) or is_removed(author)):
                self.authorless[author.strip()] += 1
            yield line, raw


def open_corpus(
    name: str,
    *,
    licence: str,
    text_may_leave: bool | None,
    source: str,
    fields: tuple[str, ...] = (),
    language: str = "",
    declared: bool = False,
) -> Manifest:
    """Return the manifest of a corpus. If the corpus does not exist, return a manifest for a new corpus.

    text_may_leave: whether exports may contain the text; None means yes if the licence is free, and otherwise an error
    fields: the names of the records' fields; if empty, an existing corpus keeps its fields and a new one holds posts
    declared: whether the user named a column of labels

    Raise CorpusError if the licence or another required value is missing, or if a value contradicts the existing
    manifest.
    """
    existing = read_manifest(name)
    _check_fields(name, existing, fields)
    _check_declared(name, existing, declared, existing.fields if existing else fields)
    _check_language(language, existing.fields if existing else fields)
    if existing is None:
        if not licence.strip():
            raise CorpusError("A new corpus needs a licence. Set it with --licence, for example --licence CC-BY-4.0.")
        if text_may_leave is None and not is_free(licence):
            raise CorpusError(
                f"It is not known whether exports may contain texts under the licence {licence!r}. "
                "Add --text-may-leave or --text-stays."
            )
        leaves = is_free(licence) if text_may_leave is None else text_may_leave
        return Manifest(licence=licence.strip(), text_may_leave=leaves, source=source, fields=fields, declared=declared)
    if licence.strip() != existing.licence:
        raise CorpusError(
            f"Corpus {name} has the licence {existing.licence!r}, not {licence!r}. Import into another corpus.",
            "licence",
        )
    if text_may_leave is not None and text_may_leave != existing.text_may_leave:
        option = "--text-may-leave" if existing.text_may_leave else "--text-stays"
        raise CorpusError(f"Corpus {name} was imported with {option}. Import the files into another corpus.")
    if source and source != existing.source:
        raise CorpusError(f"Corpus {name} has another source, {existing.source!r}. Import into another corpus.")
    return existing


def _check_fields(name: str, existing: Manifest | None, fields: tuple[str, ...]) -> None:
    for column in fields:
        if column in RESERVED:
            raise CorpusError(
                f"The field name {column} is reserved for a column that every corpus has. Choose another name and map "
                f"it to the file's column, for example --fields body --column body={column}."
            )
        if not FIELD_NAME.fullmatch(column):
            raise CorpusError(
                f"{column!r} is not a valid field name. Use up to 30 lower-case letters, digits and underscores, "
                "starting with a letter, and map the name to the file's column with --column."
            )
        if fields.count(column) > 1:
            raise CorpusError(f"--fields contains {column} twice. Remove one of them.")
    if existing and fields and fields != existing.fields:
        content = f"records with the fields {' '.join(existing.fields)}" if existing.fields else "posts"
        raise CorpusError(
            f"Corpus {name} contains {content}, not records with {' '.join(fields)}. Import into another corpus."
        )


def _check_declared(name: str, existing: Manifest | None, declared: bool, fields: tuple[str, ...]) -> None:
    if declared and not fields:
        raise CorpusError(
            "Only records can have declared labels. Remove --labels or add --fields. To import a classifier's labels "
            "for posts, use import_predictions."
        )
    if existing and declared != existing.declared:
        state = "declared labels" if existing.declared else "no declared labels"
        advice = "Name the column of labels with --labels" if existing.declared else "Remove --labels"
        raise CorpusError(
            f"The records of corpus {name} have {state}. {advice}, or import the files into another corpus."
        )


def _check_language(language: str, fields: tuple[str, ...]) -> None:
    if not language:
        return
    if not fields:
        raise CorpusError(
            "Only records can have a declared language. The language of posts is detected. "
            "Remove --language or add --fields."
        )
    try:
        read_language(language)
    except RecordError as error:
        raise CorpusError(f"--language {language}: {error}") from error


def import_files(
    name: str,
    paths: list[Path],
    *,
    licence: str,
    text_may_leave: bool | None = None,
    source: str = "",
    columns: dict[str, str] | None = None,
    format: str | None = None,
    encoding: str = "",
    delimiter: str = "",
    max_line: int = MAX_LINE,
    max_rejects: float = 1.0,
    progress: Progress = lambda count: None,
    fields: tuple[str, ...] = (),
    language: str = "",
    declared: str = "",
) -> Iterator[Outcome]:
    """Import files into a corpus and yield the outcome of each. Each file is committed before the next is read.

    columns: a mapping from our field names to the files' column names
    encoding, delimiter: how the files are written (text.py), or "" to recognize it
    max_line: the maximum length of a line (bytes)
    max_rejects: the maximum share of rejected rows; if a file exceeds it, nothing from this file is imported
    progress: a function that is called with the number of bytes read
    fields: the names of the records' fields, in order; if empty, an existing corpus keeps its fields and a new one
        holds posts
    language: the language of all records in the files
    declared: the column that holds the labels of the records, or ""

    Raise CorpusError if a file cannot be imported. The files before it remain imported.
    """
    documents = DOCUMENTS.get(format or "")
    _check_paths(paths, format)
    terms: dict[str, Any] = {"licence": licence, "text_may_leave": text_may_leave, "source": source}
    open_manifest = partial(open_corpus, name, **terms, fields=fields, language=language, declared=bool(declared))
    open_manifest()  # If the import is impossible, fail before anything is written.
    with changing(name) as directory:
        manifest = open_manifest()
        mapping = _mapping(manifest, columns or {}, declared)
        for path in paths:
            known_format = format or format_of(path) or ""
            text_format = TextFormat() if documents else text_format_of(path, known_format, encoding, delimiter)
            file = _File(path, known_format, text_format, mapping, language)
            with full_disk_explained(f"nothing was imported from {path}"):
                outcome, manifest = _import(name, directory, manifest, file, max_line, max_rejects, progress)
            # The row is created after each file, because the command may fail at the next file. If the command was
            # killed before it could create the row, running it again does so.
            Corpus.objects.get_or_create(name=name)
            yield outcome


def check_import(
    name: str,
    paths: list[Path],
    *,
    columns: dict[str, str],
    format: str | None = None,
    encoding: str = "",
    delimiter: str = "",
    fields: tuple[str, ...] = (),
    language: str = "",
    declared: str = "",
    **terms: Any,
) -> None:
    """Check what `import_files` would refuse before it reads rows. The parameters are the same.

    terms: licence, text_may_leave and source

    Raise CorpusError if it would refuse the files, the corpus or the header of a table.
    """
    _check_paths(paths, format)
    manifest = open_corpus(name, **terms, fields=fields, language=language, declared=bool(declared))
    needed = needed_of(manifest.fields, language, manifest.declared)
    for path in paths:
        if (known_format := format or format_of(path) or "") in TABLES:
            text_format = text_format_of(path, known_format, encoding, delimiter, MOST_INSPECTED)
            header = header_of(path, known_format, text_format=text_format)
            places_in(path, header, Columns(_mapping(manifest, columns, declared), needed))


def _check_paths(paths: list[Path], format: str | None) -> None:
    documents = DOCUMENTS.get(format or "")
    for path in paths:
        check_file(path, format, folder=bool(documents and documents.folder))


def _mapping(manifest: Manifest, columns: dict[str, str], declared: str) -> dict[str, str]:
    """Return the column of each field of the corpus."""
    same_names = {column: column for column in columns_of(manifest.fields, manifest.declared)}
    return same_names | columns | ({DECLARED: declared} if declared else {})


class _File(NamedTuple):
    """A file to import, and how to read it.

    language: the language declared for the whole file
    """

    path: Path
    format: str
    text_format: TextFormat
    columns: dict[str, str]
    language: str


def _import(
    name: str, directory: Path, manifest: Manifest, file: _File, max_line: int, max_rejects: float, progress: Progress
) -> tuple[Outcome, Manifest]:
    path, format, text_format, columns, language = file
    digest = digest_of(path)
    for number, entry in enumerate(manifest.sources, start=1):
        same_file = (entry.sha256, entry.format, entry.columns, entry.language) == (digest, format, columns, language)
        if same_file and entry.text_format == text_format:
            progress(size_of(path))
            return Outcome(entry, directory / "rejects" / reject_name(number), already=True), manifest
    rejects = directory / "rejects" / reject_name(len(manifest.sources) + 1)
    notes = _Counts()
    with rejects.open("w", encoding="utf-8") as listed:
        log = RejectLog(path, format, rejects, file=listed)
        required = Columns(columns, needed_of(manifest.fields, language, manifest.declared))
        may_be_empty = DOCUMENTS[format].may_be_empty if format in DOCUMENTS else ()
        rows = notes.among(read_any(path, format, required, max_line, progress, text_format))
        stage(directory, rows, log, manifest, language, may_be_empty, max_rejects)
        parts, duplicates = deduplicate(name, directory, manifest, log)
    accepted = sum(part.rows for part in parts)
    if not accepted and not duplicates:
        raise log.nothing_accepted()
    log.check(max_rejects)
    counts = {"rows": log.rows, "accepted": accepted, "duplicates": duplicates, "rejects": log.count}
    source = source_of(path, digest, format, columns, language=language, **asdict(text_format), **counts)
    manifest = with_source(manifest, source, parts)
    for folder in ("parts", "rejects"):
        sync(directory / folder)
    sync(rejects)
    write_manifest(name, manifest)
    return Outcome(source, rejects, formulas=(notes.count, notes.first), authorless=notes.authorless), manifest
