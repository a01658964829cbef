"""Files of a vocabulary: descriptors as EURLEX57K has them (JSON), a table (TSV), SKOS; plain, or packed by gzip or
zstd.

What a thesaurus must be is decided in core/thesaurus.py.
"""

import codecs
import json
import logging
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax import SAXParseException

import rdflib
from rdflib.namespace import RDF, SKOS

from corpora import packings
from corpora.core.languages import cased
from corpora.core.thesaurus import MAX_TAG, Group, Term, Thesaurus, VocabularyError, finish, read_key, read_label
from corpora.files import Progress, check_file, looks_like_utf16, opened

FORMATS = ("json", "tsv", "turtle", "rdf-xml", "n-triples")
SUFFIXES = {
    ".json": "json",
    ".tsv": "tsv", ".tab": "tsv",
    ".ttl": "turtle", ".turtle": "turtle",
    ".rdf": "rdf-xml", ".xml": "rdf-xml", ".owl": "rdf-xml", ".skos": "rdf-xml",
    ".nt": "n-triples",
}  # fmt: skip
# N-Triples is a part of Turtle, whose reader says in which line it stopped.
_PARSERS = {"turtle": "turtle", "rdf-xml": "xml", "n-triples": "turtle"}
MOST_BYTES = 256 << 20  # unpacked; a reader of SKOS takes about ten times as much memory
_BARE = ("id", "label", "parents")  # the columns of a table without a header
_TURTLE_FAULT = re.compile(r"at line (\d+) of .*?:\s*Bad syntax \((.*?)\) at", re.DOTALL)

# It tells, with a traceback, of dates in a notation of their own, which nothing here reads.
logging.getLogger("rdflib").setLevel(logging.CRITICAL)


def read_thesaurus(
    files: Sequence[Path], schemes: Path | None, format: str | None, progress: Progress = lambda count: None
) -> Thesaurus:
    """What the files say together, checked; schemes: a file of schemes and domains, in place of those in the files.

    VocabularyError, or CorpusError for a path that cannot be read, for the first fault. `progress` is told of bytes
    read.
    """
    found, graph = Thesaurus(), rdflib.Graph()
    for path in files:
        check_file(path, "told")
        written = format or _format_of(path)
        content = _content(path, progress)
        if written in _PARSERS:
            _parse(path, content, _PARSERS[written], graph)
            continue
        rows = _descriptors(path, _text(path, content)) if written == "json" else _table(path, _text(path, content))
        for key, row in rows:
            if key in found.terms:
                raise VocabularyError(f"{path}: the concept {key} is there twice; keep one of them.")
            found.terms[key] = _term(path, key, row)
    _add_skos(found, graph)
    named = ", ".join(path.name for path in files)
    if schemes:
        check_file(schemes, "json")
        _add_schemes(found, schemes, _json(schemes, _text(schemes, _content(schemes, progress))))
    try:
        finish(found)
    except VocabularyError as error:
        raise VocabularyError(f"{named}: {error}") from None
    return found


def _format_of(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in packings.SUFFIXES]
    if suffixes and (known := SUFFIXES.get(suffixes[-1])):
        return known
    raise VocabularyError(f"The name of {path} does not tell its format; give --format {'|'.join(FORMATS)}.")


def _content(path: Path, progress: Progress) -> bytes:
    """All of a file, unpacked, without a byte-order mark."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise _too_large(path)
        with opened(path, progress) as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        if error.errno is not None:
            raise VocabularyError(f"{path} cannot be read: {error.strerror}.") from error
        raise VocabularyError(f"{path} is cut off or damaged; nothing of it was imported. Fetch it again.") from error
    if len(content) > MOST_BYTES:
        raise _too_large(path)
    if looks_like_utf16(content[:4096]):
        raise VocabularyError(
            f"{path} is not UTF-8; it looks like UTF-16. Save it as UTF-8, for example with iconv -f UTF-16 -t UTF-8."
        )
    if b"\0" in content:
        line = content[: content.index(b"\0")].count(b"\n") + 1
        raise VocabularyError(f"{path}, line {line:,}: there is a NUL byte, so this is no text; name the right file.")
    content = content.removeprefix(codecs.BOM_UTF8)
    if not content.strip():
        raise VocabularyError(f"{path} is empty.")
    return content


def _too_large(path: Path) -> VocabularyError:
    return VocabularyError(
        f"{path} holds more than {MOST_BYTES >> 20} MB, which is too much for a vocabulary; name the right file, or "
        "leave notes and languages out that nobody needs."
    )


def _text(path: Path, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise VocabularyError(f"{path}, line {line:,}: the text is not UTF-8; save it as UTF-8.") from None


class _Twice(Exception):
    """A key that an object of JSON has twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _Twice(key)
        found[key] = value
    return found


def _json(path: Path, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text, object_pairs_hook=_object)
    except _Twice as error:
        raise VocabularyError(f"{path} has {error.args[0]} twice in one object; keep one of them.") from None
    except json.JSONDecodeError as error:
        raise VocabularyError(f"{path}, line {error.lineno:,}: this is not JSON ({error.msg}).") from None
    except (ValueError, RecursionError) as error:
        raise VocabularyError(f"{path} is not JSON that can be read ({error}).") from None
    if not isinstance(found, dict):
        raise VocabularyError(f"{path} does not hold one JSON object with an entry for each id.")
    return found


def _descriptors(path: Path, text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for given, row in _json(path, text).items():
        key = _read(path, read_key, given)
        if not isinstance(row, dict):
            raise VocabularyError(f'{path}: concept {key} is not an object such as {{"label": "…", "parents": []}}.')
        yield key, row


def _table(path: Path, text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    columns: Sequence[str] = ()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        cells = line.rstrip("\r").split("\t")
        if not columns:
            columns = _columns(path, cells)
            if columns == cells:
                continue
        if len(cells) > len(columns):
            raise VocabularyError(
                f"{path}, line {number:,}: {len(cells)} cells, but the columns are {', '.join(columns)}."
            )
        row: dict[str, Any] = dict(zip(columns, cells, strict=False))
        several = {name: [each for each in cell.split("|") if each.strip()] for name, cell in row.items()}
        try:
            key = read_key(row["id"])
        except VocabularyError as error:
            raise VocabularyError(f"{path}, line {number:,}: {error}") from None
        yield key, {name: cell if name.startswith("label") else several[name] for name, cell in row.items()}


def _columns(path: Path, cells: Sequence[str]) -> Sequence[str]:
    """The columns that a table's first line names; those of a bare one if it names none."""
    if "id" not in cells:
        return _BARE
    allowed = {"id", "parents", "related"}
    if unknown := [name for name in cells if name not in allowed and not _is_of_labels(name)]:
        raise VocabularyError(
            f"{path} has the column {unknown[0]!r}; it may have id, label, label_de, alt_labels, alt_labels_de, "
            "parents and related, with any language for de."
        )
    if len(set(cells)) < len(cells):
        raise VocabularyError(f"{path} has a column twice; its columns are {', '.join(cells)}.")
    return cells


def _is_of_labels(name: str) -> bool:
    return name in ("label", "alt_labels") or name.startswith(("label_", "alt_labels_"))


def _term(path: Path, key: str, row: Mapping[str, Any]) -> Term:
    """A row of descriptors: label and alt_labels, in English, or with a language as in label_fr; parents; related."""
    term = Term()
    for name, value in row.items():
        if not _is_of_labels(name) or value is None:
            continue
        tag = _tag(path, name.removeprefix("alt_labels").removeprefix("label").removeprefix("_") or "en", key)
        if name.startswith("label"):
            if label := _read(path, read_label, value, key):
                _prefer(path, term, key, tag, label)
        else:
            labels = [_read(path, read_label, each, key) for each in _list(path, value, name, key)]
            term.other.setdefault(tag, set()).update(filter(None, labels))
    term.broader, term.related = (
        {_read(path, read_key, each) for each in _list(path, row.get(name) or [], name, key)}
        for name in ("parents", "related")
    )
    return term


def _prefer(path: Path | str, term: Term, key: str, tag: str, label: str) -> None:
    if term.preferred.setdefault(tag, label) != label:
        raise VocabularyError(
            f"{path}: concept {key} has two preferred labels in one language ({tag or 'none said'}): "
            f"{', '.join(sorted([term.preferred[tag], label]))}. Make one of them an other label."
        )


def _list(path: Path, value: object, name: str, key: str) -> list[Any]:
    if not isinstance(value, list):
        raise VocabularyError(f"{path}: {name} of concept {key} is not a list.")
    return value


def _tag(path: Path | str, tag: str, key: str) -> str:
    if len(tag) > MAX_TAG or not re.fullmatch(r"[A-Za-z0-9_-]*", tag):
        raise VocabularyError(f"{path}: a label of concept {key} is in the language {tag[:20]!r}, which is no code.")
    return cased(tag)


def _read(path: Path | str, read: Any, *given: object) -> str:
    """What `read` makes of it; its sentence with the file before it."""
    try:
        return str(read(*given))
    except VocabularyError as error:
        raise VocabularyError(f"{path}: {error}") from None


def _add_schemes(found: Thesaurus, path: Path, content: Mapping[str, Any]) -> None:
    """A file of schemes: domains, number -> its label and id; schemes, id -> its label and its domain's number;
    in_scheme, concept -> schemes."""
    parts = [content.get(name) for name in ("domains", "schemes", "in_scheme")]
    if not all(isinstance(part, dict) for part in parts):
        raise VocabularyError(f"{path} must have the objects domains, schemes and in_scheme.")
    domains, schemes, in_scheme = parts
    found.groups = {}
    ids = {}
    for number, row in [*domains.items(), *schemes.items()]:
        if not isinstance(row, dict):
            raise VocabularyError(f"{path}: the entry {number} is not an object.")
        key = _read(path, read_key, row.get("id", number))
        within = "" if number in domains else ids.get(row.get("domain"), "")
        if number in domains:
            ids[number] = key
        if key in found.groups:
            raise VocabularyError(f"{path} has the id {key} twice; keep one of them.")
        found.groups[key] = Group(_term(path, key, row).preferred, within)
    for term in found.terms.values():
        term.schemes = set()
    for given, keys in in_scheme.items():
        if given not in found.terms:
            raise VocabularyError(f"{path} puts the concept {given} into schemes, which the other files do not have.")
        found.terms[given].schemes = {
            _read(path, read_key, key) for key in _list(path, keys, "the list of schemes", given)
        }


def _parse(path: Path, content: bytes, parser: str, graph: rdflib.Graph) -> None:
    """Add the triples of a file to the graph."""
    if parser != "xml":
        _text(path, content)
    try:
        graph.parse(data=content, format=parser)
    except SAXParseException as error:
        raise VocabularyError(
            f"{path}, line {error.getLineNumber():,}: this is not XML ({error.getMessage()})."
        ) from None
    except Exception as error:  # noqa: BLE001 - it raises errors of many types for what a file may hold
        what = "RDF/XML" if parser == "xml" else "Turtle or N-Triples"
        if fault := _TURTLE_FAULT.search(str(error)):
            why = " ".join(fault[2].split())
            raise VocabularyError(f"{path}, line {int(fault[1]):,}: this is not {what} ({why}).") from None
        why = (str(error).strip() or type(error).__name__).split("\n")[0]
        raise VocabularyError(f"{path} is not {what} ({why[:200]}).") from None


def _add_skos(found: Thesaurus, graph: rdflib.Graph) -> None:
    """Concepts and schemes of SKOS; an id is what stands after the last / or # of an address."""
    if not len(graph):
        return
    places: dict[str, rdflib.term.Node] = {}

    def key_of(node: rdflib.term.Node) -> str:
        key = _read("SKOS", read_key, re.split(r"[/#]", str(node).rstrip("/#"))[-1])
        if places.setdefault(key, node) != node:
            raise VocabularyError(
                f"SKOS: {places[key]} and {node} both end in {key}, which is the id here; import them as two "
                "vocabularies."
            )
        return key

    linked = defaultdict(set)
    for predicate, way in (
        (SKOS.broader, 1), (SKOS.narrower, -1), (SKOS.related, 1),
        (SKOS.inScheme, 1), (SKOS.topConceptOf, 1), (SKOS.hasTopConcept, -1),
    ):  # fmt: skip
        to = {SKOS.narrower: SKOS.broader, SKOS.topConceptOf: SKOS.inScheme, SKOS.hasTopConcept: SKOS.inScheme}
        for left, right in graph.subject_objects(predicate):
            subject, other = (left, right) if way > 0 else (right, left)
            linked[subject, to.get(predicate, predicate)].add(other)
    for node in graph.subjects(RDF.type, SKOS.ConceptScheme):
        found.groups[key_of(node)] = Group(_skos_labels(graph, node, key_of(node)).preferred)
    for node in graph.subjects(RDF.type, SKOS.Concept):
        key = key_of(node)
        if key in found.terms:
            raise VocabularyError(f"SKOS: the concept {key} is there twice; keep one of them.")
        term = found.terms[key] = _skos_labels(graph, node, key)
        term.broader = {key_of(each) for each in linked[node, SKOS.broader]}
        term.related = {key_of(each) for each in linked[node, SKOS.related]}
        term.schemes = {key_of(each) for each in linked[node, SKOS.inScheme]}
        for scheme in term.schemes:
            found.groups.setdefault(scheme, Group())


def _skos_labels(graph: rdflib.Graph, node: rdflib.term.Node, key: str) -> Term:
    term = Term()
    for predicate in (SKOS.prefLabel, SKOS.altLabel, SKOS.hiddenLabel):
        for literal in graph.objects(node, predicate):
            tag = _tag("SKOS", getattr(literal, "language", None) or "", key)
            label = _read("SKOS", read_label, str(literal), key)
            if label and predicate == SKOS.prefLabel:
                _prefer("SKOS", term, key, tag, label)
            elif label:
                term.other.setdefault(tag, set()).add(label)
    return term
