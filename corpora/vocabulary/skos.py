"""Read SKOS in Turtle, N-Triples, RDF/XML and JSON-LD.

Files are parsed into an rdflib graph. The triples that a vocabulary needs are selected, and ids are derived from URIs.

A single invalid language tag must not make a file unreadable, so it is replaced before parsing, and its label is left
out. Nothing is fetched from the network: a document type or a remote context is an error.

Labels can be plain or in SKOS-XL. Broader concepts can also be stated with the properties of ISO 25964, or only with
`broaderTransitive`. The result is validated in corpora/vocabulary/thesaurus.py.
"""

import json
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import rdflib
from rdflib.namespace import DCTERMS, OWL, RDF, SKOS
from rdflib.parser import InputSource
from rdflib.plugins.parsers.jsonld import to_rdf
from rdflib.term import BNode, Literal, Node

from corpora.sources.documents import XmlError, check_xml
from corpora.sources.text import RepeatedKey, object_from_pairs
from corpora.vocabulary.thesaurus import (
    Faults,
    Group,
    TagError,
    Term,
    Thesaurus,
    VocabularyError,
    read_key,
    read_label,
    read_tag,
    set_preferred,
)

XL = rdflib.Namespace("http://www.w3.org/2008/05/skos-xl#")
ISO = rdflib.Namespace("http://purl.org/iso25964/skos-thes#")
LABELS = ((SKOS.prefLabel, XL.prefLabel), (SKOS.altLabel, XL.altLabel), (SKOS.hiddenLabel, XL.hiddenLabel))
BROADER, TRANSITIVE, RELATED, SCHEME, REPLACED = "broader", "broader, directly or not", "related", "scheme", "replaced"
# For each predicate, the type of link, and its direction: from subject to object (1) or from object to subject (-1).
LINKS = {
    SKOS.broader: (BROADER, 1), SKOS.narrower: (BROADER, -1),
    ISO.broaderGeneric: (BROADER, 1), ISO.narrowerGeneric: (BROADER, -1),
    ISO.broaderPartitive: (BROADER, 1), ISO.narrowerPartitive: (BROADER, -1),
    ISO.broaderInstantial: (BROADER, 1), ISO.narrowerInstantial: (BROADER, -1),
    SKOS.broaderTransitive: (TRANSITIVE, 1), SKOS.narrowerTransitive: (TRANSITIVE, -1),
    SKOS.related: (RELATED, 1),
    SKOS.inScheme: (SCHEME, 1), SKOS.topConceptOf: (SCHEME, 1), SKOS.hasTopConcept: (SCHEME, -1),
    DCTERMS.isReplacedBy: (REPLACED, 1), DCTERMS.replaces: (REPLACED, -1),
}  # fmt: skip
# Types of resources that are counted but not imported.
UNREAD = {SKOS.Collection: "collection", SKOS.OrderedCollection: "collection", ISO.ThesaurusArray: "thesaurus array"}
# URI segments that do not identify a concept, such as the last segment of http://example.org/Smart#this.
_EMPTY_PARTS = {"this", "it", "id", "me", "self"}

INVALID = "x-invalid"  # replaces language tags that rdflib cannot parse

_Links = Mapping[tuple[Node, str], set[Node]]


def ids_of(addresses: Collection[str]) -> dict[str, str]:
    """Return an id for each URI.

    An id is the last segment of the URI, after / or #. It has more segments if the last one does not identify a
    concept, as in `#this`, or if several URIs share it. In the second case, the ids of all these URIs are extended.
    Otherwise, the short id could move to a different one of these URIs in a later version.
    """
    part_counts = {}
    for address in addresses:
        part_counts[address] = 1
        while _EMPTY_PARTS.issuperset(re.split("[/#]+", _last(address, part_counts[address]).casefold())):
            part_counts[address] += 1
    while True:
        by_key = defaultdict(list)
        for address, parts in part_counts.items():
            by_key[_last(address, parts)].append(address)
        shared = [address for group in by_key.values() if len(group) > 1 for address in group]
        if not shared:
            return {address: key for key, [address] in by_key.items()}
        for address in shared:
            part_counts[address] += 1


def _last(address: str, parts: int) -> str:
    """Return the last `parts` segments of a URI, separated by / and #, or the whole URI if it has no more segments."""
    plain = address.rstrip("/#")
    starts = [match.end() for match in re.finditer(r"[/#]+", plain)]
    return plain[starts[-parts] :] if parts <= len(starts) else address


def add_skos(thesaurus: Thesaurus, graph: rdflib.Graph, faults: Faults) -> None:
    """Add the concepts and schemes in a graph to a thesaurus.

    faults: collects the faults in the graph
    """
    links = _links(graph)
    concepts = _with_uris(graph, set(graph.subjects(RDF.type, SKOS.Concept)), "concept", faults)
    schemes = set(graph.subjects(RDF.type, SKOS.ConceptScheme))
    schemes.update(*(links[node, SCHEME] for node in concepts))
    keys = _keys(concepts, faults)
    scheme_keys = _keys(_with_uris(graph, schemes, "scheme", faults), faults)
    thesaurus.lengthened |= {key: str(node) for node, key in keys.items() if key != _last(str(node), 1)}
    for node, key in scheme_keys.items():
        thesaurus.groups[key] = Group(_read_labels(graph, node, key, faults, thesaurus.rejected).preferred)
    for node, key in keys.items():
        if key in thesaurus.terms:
            faults.add(f"The concept {key} occurs twice. Remove one of them.")
            continue
        term = thesaurus.terms[key] = _read_labels(graph, node, key, faults, thesaurus.rejected)
        above = links[node, BROADER] | _nearest(node, links)
        for relation, linked, target in (
            ("broader", above, term.broader),
            ("related", links[node, RELATED], term.related),
        ):
            for other in linked:
                if isinstance(other, BNode):
                    faults.add(f"Concept {key} has a {relation} concept without a URI. Add a URI.")
                else:
                    target.add(keys.get(other, str(other)))
        term.schemes = {scheme_keys[other] for other in links[node, SCHEME] if other in scheme_keys}
        term.replaced_by = {keys[other] for other in links[node, REPLACED] if other in keys}
        term.is_deprecated = bool(links[node, REPLACED]) or any(
            str(value).casefold() in ("true", "1") for value in graph.objects(node, OWL.deprecated)
        )
    thesaurus.unread.update(_count_unread(graph, concepts, schemes))


def _links(graph: rdflib.Graph) -> _Links:
    links: defaultdict[tuple[Node, str], set[Node]] = defaultdict(set)
    for predicate, (kind, direction) in LINKS.items():
        for left, right in graph.subject_objects(predicate):
            subject, other = (left, right) if direction > 0 else (right, left)
            links[subject, kind].add(other)
    return links


def _nearest(node: Node, links: _Links) -> set[Node]:
    """Return the concepts directly above a node.

    `broaderTransitive` links a node to all concepts above it. A concept above another of these concepts is omitted.
    """
    if not links[node, TRANSITIVE]:
        return set()

    def above(concept: Node) -> set[Node]:
        return (links[concept, BROADER] | links[concept, TRANSITIVE]) - {concept}

    farther: set[Node] = set()
    ahead = list(above(node))
    while ahead:
        new = above(ahead.pop()) - farther
        farther |= new
        ahead += new
    return links[node, TRANSITIVE] - farther - {node}


def _with_uris(graph: rdflib.Graph, nodes: Iterable[Node], noun: str, faults: Faults) -> list[Node]:
    """Return the nodes with a URI, sorted. Blank nodes are faults, because their ids would change with each import."""
    sorted_nodes = sorted(nodes, key=str)
    for node in sorted_nodes:
        if isinstance(node, BNode):
            label = next(iter(sorted(_texts(graph, node, *LABELS[0]))), "")
            name = f" “{label}”" if label else ""
            faults.add(f"The {noun}{name} has no URI, which is needed for its id. Add a URI.")
    return [node for node in sorted_nodes if not isinstance(node, BNode)]


def _keys(nodes: Iterable[Node], faults: Faults) -> dict[Node, str]:
    nodes = list(nodes)
    ids, keys = ids_of([str(node) for node in nodes]), {}
    for node in nodes:
        with faults.collect():
            keys[node] = read_key(ids[str(node)])
    return keys


def _texts(graph: rdflib.Graph, node: Node, plain: Node, extended: Node) -> Iterable[Any]:
    """Yield a node's labels of one type, both plain and in SKOS-XL."""
    yield from graph.objects(node, plain)
    for label in graph.objects(node, extended):
        yield from graph.objects(label, XL.literalForm)


def _read_labels(graph: rdflib.Graph, node: Node, key: str, faults: Faults, rejected: list[str]) -> Term:
    """Return a concept with only its labels. Labels with an invalid tag are omitted and reported in `rejected`."""
    term = Term()
    for plain, extended in LABELS:
        for text in sorted(_texts(graph, node, plain, extended)):
            with faults.collect():
                written = (text.language if isinstance(text, Literal) else "") or ""
                if written.lower() == INVALID:
                    continue
                try:
                    tag = read_tag(written, key)
                except TagError as error:
                    rejected.append(str(error))
                    continue
                label = read_label(str(text), key)
                if label and plain == SKOS.prefLabel:
                    set_preferred(term, key, tag, label)
                elif label:
                    term.other.setdefault(tag, set()).add(label)
    return term


def _count_unread(graph: rdflib.Graph, concepts: Iterable[Node], schemes: Iterable[Node]) -> Counter[str]:
    """Count the resources that are not imported, by type: collections, and other resources with a label."""
    imported = {*concepts, *schemes}
    counts: Counter[str] = Counter()
    collections = {node: noun for kind, noun in UNREAD.items() for node in graph.subjects(RDF.type, kind)}
    counts.update(collections.values())
    labelled = {node for labels in LABELS[0] for node in graph.subjects(labels)}
    if count := len({node for node in labelled if not isinstance(node, BNode)} - imported - collections.keys()):
        counts["labelled resource outside skos:Concept"] = count
    return counts


# --- Parsing.


TURTLE, RDF_XML, N_TRIPLES, JSON_LD = "turtle", "rdf-xml", "n-triples", "json-ld"
# N-Triples is a subset of Turtle, and the Turtle parser reports the line of an error.
PARSERS = {TURTLE: "turtle", RDF_XML: "xml", N_TRIPLES: "turtle", JSON_LD: "json-ld"}
_NAMES = {"turtle": "Turtle or N-Triples", "xml": "RDF/XML", "json-ld": "JSON-LD"}
_TURTLE_FAULT = re.compile(r"at line (\d+) of .*?:\s*Bad syntax \((.*?)\) at \^", re.DOTALL)
_OPEN_QUOTE = re.compile(r"(.*) at \^ in (.*)\^(.*)", re.DOTALL)
_NEAR = 20  # number of characters of a faulty line in error messages

# Attributes in RDF/XML, with names as passed by check_xml.
_LANGUAGE = "http://www.w3.org/XML/1998/namespace lang"
_ID_ATTRIBUTES = [f"http://www.w3.org/1999/02/22-rdf-syntax-ns# {name}" for name in ("about", "ID")]
_TAG = re.compile("[a-zA-Z]+(-[a-zA-Z0-9]+)*")  # rdflib accepts these language tags
_XML, _WEB_PAGE = (re.compile(rb"\s*<(\?xml|rdf:RDF)"), re.compile(rb"\s*<(!doctype html|html)", re.IGNORECASE))
_LINKED_DATA = re.compile(rb'\s*[\[{].{0,4000}?"@(context|graph|id)"', re.DOTALL)

# rdflib logs tracebacks for dates in unusual notations, but we don't use dates.
logging.getLogger("rdflib").setLevel(logging.CRITICAL)


def detect_format(path: Path, named: str, content: bytes) -> str:
    """Detect a file's format, which is the named format unless the content contradicts it.

    Raise VocabularyError if the file is a web page.
    """
    if _WEB_PAGE.match(content):
        raise VocabularyError(f"{path} is a web page, not a vocabulary. Download the vocabulary's file itself.")
    if named in (TURTLE, N_TRIPLES) and _XML.match(content):
        return RDF_XML
    if named == RDF_XML and content.lstrip().lower().startswith((b"@prefix", b"@base", b"prefix", b"base")):
        return TURTLE
    return JSON_LD if named == "json" and _LINKED_DATA.match(content) else named


def parse(path: Path, content: bytes, format: str, graph: rdflib.Graph, rejected: list[str]) -> None:
    """Add the triples in a file to the graph, and messages about labels with invalid tags to `rejected`.

    Raise VocabularyError if the file is invalid.
    """
    parser = PARSERS[format]
    document = _load_json_ld(path, content, rejected) if format == JSON_LD else None
    if format == RDF_XML:
        content = _with_valid_tags(path, content, rejected)
    source = InputSource()
    source.setByteStream(BytesIO(content))
    try:
        if format == JSON_LD:
            to_rdf(document, graph)
        else:
            graph.parse(source, format=parser)
    except Exception as error:  # noqa: BLE001 - rdflib raises errors of many types for invalid files
        line, reason = _locate_fault(str(error).strip() or type(error).__name__, content)
        where = f", line {line:,}: invalid" if line else " is not valid"
        raise VocabularyError(f"{path}{where} {_NAMES[parser]} ({reason[:200]}).") from None


def _locate_fault(error: str, content: bytes) -> tuple[int, str]:
    """Extract the line of a fault (0 if unknown) and a description from a parser's error message."""
    if fault := _TURTLE_FAULT.search(error):
        # The error ends with the text after the fault, as a bytes literal.
        near = error.rpartition("^b")[2][1:].partition("\\n")[0].rstrip("'\". ")[:_NEAR].rstrip()
        reason = " ".join(fault[2].split())
        return int(fault[1]), f"{reason}, near {near}" if near else reason
    if fault := _OPEN_QUOTE.fullmatch(error):
        start = content.find(f"{fault[2]}{fault[3]}".encode())
        return content.count(b"\n", 0, max(start, 0)) + 1 if start >= 0 else 0, "a quote is not closed"
    return 0, error.split("\n")[0]


def _with_valid_tags(path: Path, content: bytes, rejected: list[str]) -> bytes:
    """Replace language tags in RDF/XML that rdflib cannot parse with INVALID.

    For each such tag, add a message with its line and concept to `rejected`.

    Raise VocabularyError if the file is not XML or declares a document type.
    """
    about, tags = "", set[str]()

    def seen(_name: str, attributes: dict[str, str], line: int) -> None:
        nonlocal about
        about = next((attributes[name] for name in _ID_ATTRIBUTES if name in attributes), about)
        tag = attributes.get(_LANGUAGE)
        if tag and not _TAG.fullmatch(tag):
            tags.add(tag)
            if _valid(tag) == INVALID:
                rejected.append(f"line {line:,}: {_invalid_tag(about, tag)}")

    try:
        check_xml(content, seen)
    except XmlError as error:
        line = f", line {error.line:,}" if error.line else ""
        raise VocabularyError(f"{path}{line}: {error}.") from None
    for tag in tags:
        pattern = rb"(xml:lang\s*=\s*[\"'])" + re.escape(tag.encode()) + rb"(?=[\"'])"
        content = re.sub(pattern, rb"\g<1>" + _valid(tag).encode(), content)
    return content


def _valid(tag: str) -> str:
    """Return a language tag with hyphens for underscores, or INVALID if rdflib cannot parse it."""
    plain = tag.replace("_", "-")
    return plain if _TAG.fullmatch(plain) else INVALID


def _invalid_tag(about: str, tag: str) -> str:
    noun = f"A label of {about}" if about else "A label"
    return f"{noun} has an invalid language code, {tag[:20]!r}."


def _load_json_ld(path: Path, content: bytes, rejected: list[str]) -> Any:
    """Load a JSON-LD document, and replace language tags that rdflib cannot parse with INVALID.

    Raise VocabularyError if the file is not JSON, or has a context that would have to be fetched.
    """
    document = document_of(path, content.decode())
    if not isinstance(document, dict | list):
        raise VocabularyError(f"{path} must contain a JSON object or array.")
    for part, about in _objects(document):
        contexts = part.get("@context", [])
        for context in [*(contexts if isinstance(contexts, list) else [contexts]), part.get("@import")]:
            if isinstance(context, str):
                raise VocabularyError(
                    f"{path} needs the context {context[:200]}, which is not fetched. Put the object @context of that "
                    "file in its place."
                )
        tag = part.get("@language")
        if isinstance(tag, str) and not _TAG.fullmatch(tag):
            part["@language"] = _valid(tag)
            if part["@language"] == INVALID:
                rejected.append(_invalid_tag(about, tag))
    return document


def _objects(document: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield (object, id) for each object in a JSON document. An object without an id has its parent's id."""
    ahead = [(document, "")]
    while ahead:
        value, about = ahead.pop()
        if isinstance(value, dict):
            about = value["@id"] if isinstance(value.get("@id"), str) else about
            yield value, about
        ahead += [(part, about) for part in (value.values() if isinstance(value, dict) else value)
                  if isinstance(part, dict | list)]  # fmt: skip


def document_of(path: Path, text: str) -> Any:
    """Parse a JSON document. Raise VocabularyError if it is not valid."""
    try:
        return json.loads(text, object_pairs_hook=object_from_pairs)
    except RepeatedKey as error:
        raise VocabularyError(f"{path} has the key {error.args[0]} twice in one object. Remove one.") from None
    except json.JSONDecodeError as error:
        raise VocabularyError(f"{path}, line {error.lineno:,}: invalid JSON ({error.msg}).") from None
    except (ValueError, RecursionError) as error:
        raise VocabularyError(f"{path} cannot be read as JSON: {error}.") from None
