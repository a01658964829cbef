"""Import posts and records into a corpus. Each file is committed separately.

Imports are deterministic: if an import is killed and run again, the resulting files are the same. Rows are read by
corpora/sources/readers.py, validated by corpora/core/records.py and written by corpora/storage/intake.py.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from corpora.core import CorpusError, records
from corpora.core.languages import code_of
from corpora.core.values import MISSING, Respelled, is_free, is_missing, is_removed, tidy, whole
from corpora.engines import explain_full_disk
from corpora.models import Corpus
from corpora.sources.compression import BINARY, Progress, check_file, format_of, unpacked
from corpora.sources.documents import DOCUMENTS, read_any
from corpora.sources.readers import MOST_INSPECTED, Columns, Row, find_columns, header_of
from corpora.sources.text import MAX_LINE, TextFormat, text_format_of
from corpora.storage import layout
from corpora.storage.intake import RejectLog, deduplicate, stage
from corpora.storage.layout import Manifest

TABLES = ("csv", "tsv", *BINARY)  # formats with a header


@dataclass(frozen=True)
class Terms:
    """The options of an import, which describe the files and their corpus.

    text_may_leave: whether exports may contain the text; None means yes for a free licence, and an error otherwise
    fields: names of the records' fields, in order; if empty, an existing corpus keeps its fields, and a new corpus
        contains posts
    language: language of all records in the files; "" if each record states its own
    declared: column with the records' labels; "" if there is none
    may_be_empty: fields that may be empty, in addition to those of a document format
    columns: column names of the files, by our field names, where they differ
    format: format of the files; None to detect it
    encoding, delimiter: encoding and delimiter of the files (sources/text.py), or "" to detect them
    max_line: maximum length of a line (bytes)
    unescape: whether to decode HTML entities in the texts of messages
    max_rejects: maximum share of rejected rows; if it is exceeded, nothing is imported from the file
    progress: called with the number of bytes read
    """

    licence: str
    text_may_leave: bool | None = None
    source: str = ""
    fields: tuple[str, ...] = ()
    language: str = ""
    declared: str = ""
    may_be_empty: tuple[str, ...] = ()
    columns: dict[str, str] = field(default_factory=dict)
    format: str | None = None
    encoding: str = ""
    delimiter: str = ""
    max_line: int = MAX_LINE
    unescape: bool = False
    max_rejects: float = 1.0
    progress: Progress = lambda count: None

    def format_of(self, path: Path) -> str:
        return self.format or format_of(path) or ""


@dataclass
class Counts:
    """Corrections and oddities of an import, counted while the rows are read.

    formulas: number of ids that a spreadsheet would run as a formula, and the first of these ids
    authorless: number of rows with each placeholder for an author, such as [deleted]
    languages: language codes that were converted
    authors, labels: authors and declared labels that were corrected
    """

    formulas: tuple[int, str] = (0, "")
    authorless: Counter[str] = field(default_factory=Counter)
    languages: Respelled = field(default_factory=Respelled)
    authors: Respelled = field(default_factory=Respelled)
    labels: Respelled = field(default_factory=Respelled)

    def among(self, rows: Iterator[Row]) -> Iterator[Row]:
        for line, raw in rows:
            key, author = (raw.get("id"), raw.get("author")) if isinstance(raw, dict) else (None, None)
            if isinstance(key, str) and key.lstrip().startswith(records.FORMULA):
                self.formulas = (self.formulas[0] + 1, self.formulas[1] or key.strip())
            if isinstance(author, str) and author and not _is_plain(author):
                self._note_author(author, line)
            if isinstance(raw, dict) and isinstance(language := raw.get("language"), str):
                self.languages.note(language.strip(), code_of(language.strip()), line)
            if isinstance(raw, dict) and (labels := raw.get(records.DECLARED)):
                self._note_labels(labels, line)
            yield line, raw

    def _note_author(self, author: str, line: int) -> None:
        if is_missing(author) or is_removed(author):
            self.authorless[author.strip()] += 1
        else:
            self.authors.note(author, whole(tidy(author)), line)

    def _note_labels(self, labels: object, line: int) -> None:
        parts = labels.split(";") if isinstance(labels, str) else labels if isinstance(labels, list) else []
        for part in (part.strip() for part in parts if isinstance(part, str) and not _is_plain(part)):
            if not is_missing(part):
                self.labels.note(part, whole(tidy(part)), line)


@dataclass(frozen=True)
class Outcome:
    """The result of importing a file.

    source: the file's entry in the manifest
    rejects: log of the rejected rows
    already: whether the file was already imported
    """

    source: layout.Source
    rejects: Path
    counts: Counts = field(default_factory=Counts)
    already: bool = False


def _is_plain(value: str) -> bool:
    """Return whether a value certainly needs no correction (a fast check)."""
    return value.isascii() and value.isalnum() and value not in MISSING


@dataclass(frozen=True)
class CheckedFile:
    """A file that has passed the checks before an import.

    text_format: encoding and delimiter; None if the file is too large to be certain
    """

    path: Path
    format: str
    text_format: TextFormat | None


def open_corpus(name: str, terms: Terms) -> Manifest:
    """Return the manifest of a corpus, or the manifest for a new corpus if it does not exist.

    Raise CorpusError if a required value such as the licence is missing, or contradicts the existing manifest.
    """
    existing, licence, leaves = layout.read_manifest(name), terms.licence.strip(), terms.text_may_leave
    _check_fields(name, existing, terms.fields)
    _check_declared(name, existing, bool(terms.declared), existing.fields if existing else terms.fields)
    _check_language(terms.language, existing.fields if existing else terms.fields)
    if existing is None:
        if not licence:
            raise CorpusError("A new corpus needs a licence. Set it with --licence, for example --licence CC-BY-4.0.")
        if leaves is None and not is_free(licence):
            raise CorpusError(
                f"It is not known whether exports may contain texts under the licence {terms.licence!r}. "
                "Add --text-may-leave or --text-stays."
            )
        leaves = is_free(licence) if leaves is None else leaves
        return Manifest(licence, leaves, terms.source, fields=terms.fields, declared=bool(terms.declared))
    if licence != existing.licence:
        raise CorpusError(
            f"Corpus {name} has the licence {existing.licence!r}, not {terms.licence!r}. Import into another corpus.",
            "licence",
        )
    if leaves is not None and leaves != existing.text_may_leave:
        option = "--text-may-leave" if existing.text_may_leave else "--text-stays"
        raise CorpusError(f"Corpus {name} was imported with {option}. Import the files into another corpus.")
    if terms.source and terms.source != existing.source:
        raise CorpusError(f"Corpus {name} has another source, {existing.source!r}. Import into another corpus.")
    return existing


def _check_fields(name: str, existing: Manifest | None, fields: tuple[str, ...]) -> None:
    for column in fields:
        if column in records.RESERVED:
            raise CorpusError(
                f"The field name {column} is reserved for a column that every corpus has. Choose another name and map "
                f"it to the file's column, for example --fields body --column body={column}."
            )
        if not records.FIELD_NAME.fullmatch(column):
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
        records.read_language(language)
    except records.RecordError as error:
        raise CorpusError(f"--language {language}: {error}") from error


def import_files(name: str, files: list[CheckedFile], terms: Terms) -> Iterator[Outcome]:
    """Import files into a corpus, and yield the outcome of each. Each file is committed before the next is read.

    files: result of `check_import`

    Raise CorpusError if a file cannot be imported. The files before it remain imported.
    """
    with layout.lock_corpus(name) as directory:
        manifest = open_corpus(name, terms)
        for file in files:
            with explain_full_disk(f"nothing was imported from {file.path}"):
                outcome, manifest = _import(name, directory, manifest, file, terms)
            # Create the row right after the file, because the import of the next file may fail. If the command is
            # killed before this line, the next run creates the row.
            Corpus.objects.get_or_create(name=name)
            yield outcome


def check_import(name: str, paths: list[Path], terms: Terms) -> list[CheckedFile]:
    """Detect the formats of files, and run the checks that don't require reading all rows.

    Raise CorpusError if a file, the corpus or the header of a table is invalid.
    """
    documents = DOCUMENTS.get(terms.format or "")
    formats = []
    for path in paths:
        formats.append(format := terms.format_of(path))
        check_file(path, format, folder=bool(documents and documents.folder))
    columns = _columns(open_corpus(name, terms), terms)
    return [_check_header(path, format, columns, terms) for path, format in zip(paths, formats, strict=True)]


def _check_header(path: Path, format: str, columns: Columns, terms: Terms) -> CheckedFile:
    if format in DOCUMENTS:
        return CheckedFile(path, format, TextFormat())
    text_format = text_format_of(path, format, terms.encoding, terms.delimiter, MOST_INSPECTED)
    if format in TABLES:
        find_columns(path, header_of(path, format, text_format=text_format), columns)
    is_whole = format in BINARY or (path.stat().st_size <= MOST_INSPECTED and unpacked(path) == path)
    return CheckedFile(path, format, text_format if is_whole else None)


def _columns(manifest: Manifest, terms: Terms) -> Columns:
    """Return the columns to read for the corpus's fields, and which of the fields are required."""
    same_names = {column: column for column in records.columns_of(manifest.fields, manifest.declared)}
    declared = {records.DECLARED: terms.declared} if terms.declared else {}
    needed = records.needed_of(manifest.fields, terms.language, manifest.declared)
    return Columns(same_names | terms.columns | declared, needed)


def _import(
    name: str, directory: Path, manifest: Manifest, file: CheckedFile, terms: Terms
) -> tuple[Outcome, Manifest]:
    path, format, documents = file.path, file.format, DOCUMENTS.get(file.format)
    text_format = file.text_format or text_format_of(path, format, terms.encoding, terms.delimiter)
    columns, lists = _columns(manifest, terms), directory / "rejects"
    digest, named = layout.digest_of(path), dict(columns.named)
    reading = (digest, format, named, terms.language, text_format)
    for number, entry in enumerate(manifest.sources, start=1):
        if (entry.sha256, entry.format, entry.columns, entry.language, entry.text_format) == reading:
            terms.progress(layout.size_of(path))
            return Outcome(entry, lists / layout.reject_name(number), already=True), manifest
    rejects, counts = lists / layout.reject_name(len(manifest.sources) + 1), Counts()
    with rejects.open("w", encoding="utf-8") as list_file:
        log = RejectLog(path, format, rejects, list_file)
        rows = counts.among(read_any(path, format, columns, terms.max_line, terms.progress, text_format))
        may_be_empty = {*terms.may_be_empty, *(documents.may_be_empty if documents else ())}
        stage(directory, rows, log, manifest, terms.language, may_be_empty, terms.max_rejects)
        parts, duplicates = deduplicate(name, directory, manifest, log)
    accepted = sum(part.rows for part in parts)
    if not accepted and not duplicates:
        raise log.nothing_accepted()
    log.check(terms.max_rejects)
    numbers = {"rows": log.rows, "accepted": accepted, "duplicates": duplicates, "rejects": log.count}
    source = layout.source_of(path, digest, format, named, language=terms.language, **asdict(text_format), **numbers)
    manifest = replace(manifest, sources=(*manifest.sources, source), parts=(*manifest.parts, *parts))
    for written in (directory / "parts", lists, rejects):
        layout.sync(written)
    layout.write_manifest(name, manifest)
    return Outcome(source, rejects, counts), manifest
