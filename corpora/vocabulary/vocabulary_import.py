"""Import a version of a vocabulary from files, completely or not at all.

An import never changes earlier versions. Files can be descriptors in the format of EURLEX57K (JSON), tables (TSV) or
SKOS, and can be compressed. Their content is validated in corpora/vocabulary/thesaurus.py.
"""

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rdflib
from django.db import IntegrityError, transaction

from corpora.core.values import MISSING, rewritten
from corpora.database.bulk_rows import insert
from corpora.models import Broader, Concept, Label, LabelWord, Related, Scheme, Vocabulary
from corpora.sources import compression
from corpora.sources.compression import Progress, check_file
from corpora.sources.text import NOT_UTF8, NUL, UTF_8, check_encoding, detect_utf16, field_count, text_of
from corpora.storage.intake import empty_file, invalid_file
from corpora.vocabulary import skos
from corpora.vocabulary.skos import PARSERS, RDF_XML, add_skos, detect_format
from corpora.vocabulary.thesaurus import (
    Changes,
    Faults,
    Group,
    Labels,
    Oddities,
    TagError,
    Term,
    Thesaurus,
    VocabularyError,
    changes,
    finish,
    oddities,
    read_key,
    read_label,
    read_tag,
    set_preferred,
    words_of,
)

# --- Reading the files of a vocabulary.


FORMATS = ("json", "tsv", *PARSERS)
SUFFIXES = {
    ".json": "json",
    ".tsv": "tsv", ".tab": "tsv",
    ".ttl": "turtle", ".turtle": "turtle",
    ".rdf": "rdf-xml", ".xml": "rdf-xml", ".owl": "rdf-xml", ".skos": "rdf-xml",
    ".nt": "n-triples",
    ".jsonld": "json-ld",
}  # fmt: skip
_TEXT = "text"  # the format for error messages that are shared with other importers
MOST_BYTES = 256 << 20  # maximum uncompressed size of a file; parsing SKOS takes about ten times as much memory
_BARE = ("id", "label", "parents")  # columns of a table without a header


def read_thesaurus(
    files: Sequence[Path], schemes: Path | None, format: str | None, progress: Progress = lambda count: None
) -> Thesaurus:
    """Read files into a single thesaurus, and check it.

    schemes: file with schemes and domains, which replace those in the other files
    progress: called with the number of bytes read

    Raise VocabularyError if a file has faults. Raise CorpusError if a path cannot be read.
    """
    thesaurus, graph, faults = Thesaurus(), rdflib.Graph(), Faults()
    names = ", ".join(path.name for path in files)
    for path in files:
        check_file(path, "vocabulary")
        written = format or _format_of(path)
        content = _content(path, progress, is_xml=written == RDF_XML)
        written = format or detect_format(path, written, content)
        text = _decode(path, content) if written != RDF_XML else ""
        if written in PARSERS:
            skos.parse(path, content, written, graph, thesaurus.rejected)
            continue
        file_faults = Faults()
        for key, row in _descriptors(path, text, file_faults) if written == "json" else _table(path, text, file_faults):
            with file_faults.collect():
                if key in thesaurus.terms:
                    raise VocabularyError(f"The concept {key} occurs twice. Remove one of them.")
                thesaurus.terms[key] = Term()
                thesaurus.terms[key] = _term(key, row, thesaurus.rejected)
        file_faults.check(str(path))
    add_skos(thesaurus, graph, faults)
    if schemes:
        check_file(schemes, "json")
        scheme_faults = Faults()
        with scheme_faults.collect():
            _add_schemes(thesaurus, _json(schemes, _decode(schemes, _content(schemes, progress))))
        scheme_faults.check(str(schemes))
    finish(thesaurus, names, faults)
    return thesaurus


def _format_of(path: Path) -> str:
    for name in (str(path), *compression.members_of(path)):
        suffixes = [suffix.lower() for suffix in Path(name).suffixes if suffix.lower() not in compression.PACKED]
        if suffixes and (format := SUFFIXES.get(suffixes[-1])):
            return format
    raise VocabularyError(f"The file name {path} does not show the format. Add --format {'|'.join(FORMATS)}.")


def _content(path: Path, progress: Progress, *, is_xml: bool = False) -> bytes:
    """Return the decompressed content of a file. Unless it is XML, it is in UTF-8 without a byte order mark."""
    try:
        size = path.stat().st_size
        # The encoding of XML is declared in the file.
        with text_of(path, progress, UTF_8 if is_xml else detect_utf16(path)) as (file, _):
            content = file.read(MOST_BYTES + 1) if size <= MOST_BYTES else b""
    except OSError as error:
        if error.errno is not None:
            raise VocabularyError(f"{path} cannot be read: {error.strerror}.") from error
        raise VocabularyError(f"{path} is truncated or damaged, so nothing was imported. Download it again.") from error
    if max(size, len(content)) > MOST_BYTES:
        raise VocabularyError(
            f"{path} exceeds the limit of {MOST_BYTES >> 20} MB for vocabularies. Check the file, or remove notes and "
            "languages that you do not need."
        )
    if is_xml and content.strip():
        return content
    check_encoding(path, content[:4096])
    if b"\0" in content:
        raise invalid_file(path, _TEXT, content[: content.index(b"\0")].count(b"\n") + 1, NUL)
    content = content.removeprefix(codecs.BOM_UTF8)
    if not content.strip():
        raise empty_file(path)
    return content


def _decode(path: Path, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise invalid_file(path, _TEXT, content[: error.start].count(b"\n") + 1, NOT_UTF8) from None


def _json(path: Path, text: str) -> dict[str, Any]:
    document = skos.document_of(path, text)
    if not isinstance(document, dict):
        raise VocabularyError(f"{path} must contain one JSON object with an entry for each id.")
    return document


def _descriptors(path: Path, text: str, faults: Faults) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for written_key, row in _json(path, text).items():
        with faults.collect():
            key = read_key(written_key)
            if not isinstance(row, dict):
                raise VocabularyError(f'Concept {key} must be an object such as {{"label": "…", "parents": []}}.')
            yield key, row


def _table(path: Path, text: str, faults: Faults) -> Iterator[tuple[str, Mapping[str, Any]]]:
    lines = [(number, line.rstrip("\r").split("\t")) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    columns = _columns(path, lines[0][1]) if lines else ()
    if lines and columns == lines[0][1]:
        del lines[0]
    id_index = columns.index("id") if columns else 0
    # Placeholders for missing values. A placeholder that is an id in this table doesn't count.
    missing = MISSING - {cells[id_index].strip() for _, cells in lines if id_index < len(cells)} | {""}
    for number, cells in lines:
        if len(cells) > len(columns):
            faults.add(f"line {number:,}: The row has {field_count(cells)}, but the header has {len(columns):,}.")
            continue
        row: dict[str, Any] = dict(zip(columns, cells, strict=False))
        lists = {name: [part for part in cell.split("|") if part.strip() not in missing] for name, cell in row.items()}
        try:
            key = read_key(row["id"])
            if rewritten(key):
                raise VocabularyError(f"The id {key} is a number that another program has rewritten. Save it as text.")
        except VocabularyError as error:
            faults.add(f"line {number:,}: {error}")
            continue
        labels = {name: "" if cell.strip() in missing else cell for name, cell in row.items()}
        yield key, {name: labels[name] if name.startswith("label") else lists[name] for name in row}


def _columns(path: Path, cells: Sequence[str]) -> Sequence[str]:
    """Return the columns in a table's first line, or the default columns if the line is not a header."""
    if "id" not in cells:
        if any(cell.strip().casefold() == "id" for cell in cells):
            raise VocabularyError(
                f"{path} has no column id. Its columns are: {', '.join(cells)}. Write id in lower case."
            )
        return _BARE
    allowed = {"id", "parents", "related"}
    if unknown := [name for name in cells if name not in allowed and not _is_of_labels(name)]:
        raise VocabularyError(
            f"{path} has the unknown column {unknown[0]!r}. Valid columns are id, label, label_de, alt_labels, "
            "alt_labels_de, parents and related, with any language in place of de."
        )
    if len(set(cells)) < len(cells):
        raise VocabularyError(f"{path} has a column twice. Its columns are: {', '.join(cells)}.")
    return cells


def _is_of_labels(name: str) -> bool:
    return f"{name}_".startswith(("label_", "alt_labels_"))


def _term(key: str, row: Mapping[str, Any], rejected: list[str]) -> Term:
    """Return the concept in a row.

    The row can have label and alt_labels for English, label_fr and so on for other languages, parents and related.
    """
    term = Term()
    for name, value in row.items():
        if not _is_of_labels(name) or value is None:
            continue
        try:
            tag = read_tag(name.removeprefix("alt_labels").removeprefix("label").removeprefix("_") or "en", key)
        except TagError as error:
            rejected.append(str(error))
            continue
        if name.startswith("label"):
            if label := read_label(value, key):
                set_preferred(term, key, tag, label)
        else:
            labels = [read_label(part, key) for part in _list(value, name, key)]
            term.other.setdefault(tag, set()).update(filter(None, labels))
    term.broader, term.related = (
        {read_key(part) for part in _list(row.get(name) or [], name, key)} for name in ("parents", "related")
    )
    return term


def _list(value: object, name: str, key: str) -> list[Any]:
    if not isinstance(value, list):
        raise VocabularyError(f"The value of {name} for concept {key} must be a list.")
    return value


def _add_schemes(thesaurus: Thesaurus, content: Mapping[str, Any]) -> None:
    """Add the schemes in a file, which contains three objects:

    domains: each domain's label and id, by the domain's number
    schemes: each scheme's label and the number of its domain, by the scheme's id
    in_scheme: each concept's schemes, by the concept's id
    """
    parts = [part for name in ("domains", "schemes", "in_scheme") if isinstance(part := content.get(name), dict)]
    if len(parts) != 3:
        raise VocabularyError("The file must contain the objects domains, schemes and in_scheme.")
    domains, schemes, in_scheme = parts
    thesaurus.groups = {}
    ids: dict[object, str] = {}
    for number, row in [*domains.items(), *schemes.items()]:
        if not isinstance(row, dict):
            raise VocabularyError(f"The entry {number} must be an object.")
        key = read_key(row.get("id", number))
        within = "" if number in domains else ids.get(row.get("domain"), "")
        if number in domains:
            ids[number] = key
        if key in thesaurus.groups:
            raise VocabularyError(f"The id {key} occurs twice. Remove one of them.")
        thesaurus.groups[key] = Group(_term(key, row, thesaurus.rejected).preferred, within)
    for term in thesaurus.terms.values():
        term.schemes = set()
    for concept_key, keys in in_scheme.items():
        if concept_key not in thesaurus.terms:
            raise VocabularyError(f"The concept {concept_key} in in_scheme does not exist in the other files.")
        thesaurus.terms[concept_key].schemes = {read_key(key) for key in _list(keys, "in_scheme", concept_key)}


@dataclass(frozen=True)
class Imported:
    """The result of an import.

    version: number of the version; in a dry run, the number that it would get
    before: number of the newest version before the import; None if there was none
    changes: changes since that version
    already: whether a version already had the same content, so that nothing was imported
    """

    version: int
    before: int | None
    concepts: int
    labels: int
    schemes: int
    languages: list[str]
    changes: Changes
    oddities: Oddities
    already: bool = False


def import_vocabulary(
    name: str,
    files: Sequence[Path],
    *,
    schemes: Path | None = None,
    format: str | None = None,
    language: str = "en",
    dry_run: bool = False,
    progress: Progress = lambda count: None,
) -> Imported:
    """Import files as the next version of a vocabulary. No effect if a version already has the same content.

    schemes: file with schemes and domains
    language: concepts without a label in this language are reported
    dry_run: whether to check the files without importing them
    progress: called with the number of bytes read

    Raise VocabularyError and import nothing if the files have faults. Raise CorpusError if a file cannot be read.
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise VocabularyError(
            f"{name!r} is not a valid vocabulary name. Use 1 to 64 letters, digits, hyphens or underscores."
        )
    thesaurus = read_thesaurus(files, schemes, format, progress)
    with transaction.atomic():
        versions = Vocabulary.objects.filter(name=name).order_by("version")
        existing, newest = versions.filter(sha256=thesaurus.digest).first(), versions.last()
        if not (existing or dry_run):
            source = ", ".join(path.name for path in [*files, *([schemes] if schemes else [])])
            _store(name, newest.version + 1 if newest else 1, source, thesaurus)
        previous = _preferred(newest) if newest and not existing else {}
    current = {key: term.preferred for key, term in thesaurus.terms.items()}
    return Imported(
        version=existing.version if existing else newest.version + 1 if newest else 1,
        before=newest.version if newest else None,
        concepts=len(current),
        labels=sum(len(term.preferred) + sum(map(len, term.other.values())) for term in thesaurus.terms.values()),
        schemes=len(thesaurus.groups),
        languages=thesaurus.languages,
        changes=changes(previous, current, language) if previous else Changes({}, {}, {}),
        oddities=oddities(thesaurus, language),
        already=existing is not None,
    )


def _preferred(vocabulary: Vocabulary) -> dict[str, Labels]:
    labels_by_key: dict[str, Labels] = {key: {} for key in vocabulary.concepts.values_list("key", flat=True)}
    rows = Label.objects.filter(concept__vocabulary=vocabulary, is_preferred=True)
    for key, language, text in rows.values_list("concept__key", "language", "text"):
        labels_by_key[key][language] = text
    return labels_by_key


def _store(name: str, version: int, source: str, thesaurus: Thesaurus) -> None:
    try:
        with transaction.atomic():
            vocabulary = Vocabulary.objects.create(
                name=name,
                version=version,
                source=source if len(source) <= 200 else f"{source[:199]}…",
                sha256=thesaurus.digest,
                languages=thesaurus.languages,
            )
    except IntegrityError:
        raise VocabularyError(f"Another import has just changed {name}. Run the command again.") from None
    schemes = _store_schemes(vocabulary, thesaurus)
    terms = sorted(thesaurus.terms.items())
    rows = (
        Concept(
            vocabulary=vocabulary,
            key=key,
            is_deprecated=term.is_deprecated,
            replaced_by=" ".join(sorted(term.replaced_by)),
        )
        for key, term in terms
    )
    concepts = {concept.key: concept for concept in insert(rows)}
    insert(Broader(concept=concepts[key], broader=concepts[to]) for key, term in terms for to in sorted(term.broader))
    insert(Related(concept=concepts[key], related=concepts[to]) for key, term in terms for to in sorted(term.related))
    insert(
        Concept.schemes.through(concept=concepts[key], scheme=schemes[to])
        for key, term in terms
        for to in sorted(term.schemes)
    )
    labels = insert(label for key, term in terms for label in _labels(concepts[key], term))
    insert(
        LabelWord(vocabulary=vocabulary, label=label, word=word)
        for label in labels
        if not label.concept.is_deprecated  # searches do not find deprecated concepts
        for word in sorted(set(bytes(label.plain).split()))
    )


def _labels(concept: Concept, term: Term) -> Iterator[Label]:
    """Yield the preferred labels and then the alternative labels, each sorted by language and text."""
    texts = [(language, text, True) for language, text in sorted(term.preferred.items())]
    texts += [(language, text, False) for language, others in sorted(term.other.items()) for text in sorted(others)]
    for language, text, is_preferred in texts:
        plain = " ".join(words_of(text)).encode()
        yield Label(concept=concept, language=language, text=text, is_preferred=is_preferred, plain=plain)


def _store_schemes(vocabulary: Vocabulary, thesaurus: Thesaurus) -> dict[str, Scheme]:
    stored: dict[str, Scheme] = {}
    # Save domains first, because schemes refer to them.
    groups = sorted(thesaurus.groups.items(), key=lambda item: (bool(item[1].within), item[0]))
    for part in (False, True):
        rows = [
            Scheme(vocabulary=vocabulary, key=key, labels=group.labels, domain=stored.get(group.within))
            for key, group in groups
            if bool(group.within) is part
        ]
        stored |= {row.key: row for row in insert(rows)}
    return stored
