"""Parsing of SKOS files in Turtle, N-Triples, RDF/XML and JSON-LD into a graph of rdflib.

One invalid language tag must not make a file unreadable, so it is replaced before rdflib sees it, and its label is left
out. Nothing is fetched from the network: a document type or a remote context is an error.
"""

import json
import logging
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import rdflib
from rdflib.parser import InputSource
from rdflib.plugins.parsers.jsonld import to_rdf

from corpora.sources.documents import XmlError, check_xml
from corpora.sources.text import RepeatedKey, object_from_pairs
from corpora.vocabulary.skos import INVALID
from corpora.vocabulary.thesaurus import VocabularyError

TURTLE, RDF_XML, N_TRIPLES, JSON_LD = "turtle", "rdf-xml", "n-triples", "json-ld"
# N-Triples is a subset of Turtle, and the Turtle parser reports the line of an error.
PARSERS = {TURTLE: "turtle", RDF_XML: "xml", N_TRIPLES: "turtle", JSON_LD: "json-ld"}
_NAMES = {"turtle": "Turtle or N-Triples", "xml": "RDF/XML", "json-ld": "JSON-LD"}
_TURTLE_FAULT = re.compile(r"at line (\d+) of .*?:\s*Bad syntax \((.*?)\) at \^", re.DOTALL)
_OPEN_QUOTE = re.compile(r"(.*) at \^ in (.*)\^(.*)", re.DOTALL)
_NEAR = 20  # number of characters of a faulty line that are shown

# Attributes in RDF/XML, with the names that check_xml gives them.
_LANGUAGE = "http://www.w3.org/XML/1998/namespace lang"
_ID_ATTRIBUTES = [f"http://www.w3.org/1999/02/22-rdf-syntax-ns# {name}" for name in ("about", "ID")]
_TAG = re.compile("[a-zA-Z]+(-[a-zA-Z0-9]+)*")  # rdflib accepts these language tags
_XML, _WEB_PAGE = (re.compile(rb"\s*<(\?xml|rdf:RDF)"), re.compile(rb"\s*<(!doctype html|html)", re.IGNORECASE))
_LINKED_DATA = re.compile(rb'\s*[\[{].{0,4000}?"@(context|graph|id)"', re.DOTALL)

# rdflib logs tracebacks for dates in unusual notations, but we do not use dates.
logging.getLogger("rdflib").setLevel(logging.CRITICAL)


def recognized(path: Path, named: str, content: bytes) -> str:
    """Return the format that a file's content shows if it contradicts the name, and otherwise the named format.

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
    """Add the triples in a file to the graph, and sentences about labels with invalid tags to `rejected`.

    Raise VocabularyError if the file is invalid.
    """
    parser = PARSERS[format]
    document = _without_links(path, content, rejected) if format == JSON_LD else None
    if format == RDF_XML:
        content = _with_valid_tags(path, content, rejected)
    source = InputSource()
    source.setByteStream(BytesIO(content))
    try:
        if format == JSON_LD:
            to_rdf(document, graph)
        else:
            graph.parse(source, format=parser)
    except Exception as error:  # noqa: BLE001 - it raises errors of many types for invalid files
        line, reason = _place(str(error).strip() or type(error).__name__, content)
        where = f", line {line:,}: invalid" if line else " is not valid"
        raise VocabularyError(f"{path}{where} {_NAMES[parser]} ({reason[:200]}).") from None


def _place(error: str, content: bytes) -> tuple[int, str]:
    """Return the line of a fault (0 if it is unknown) and a description."""
    if fault := _TURTLE_FAULT.search(error):
        # The error ends with the text after the fault, as a literal of bytes.
        near = error.rpartition("^b")[2][1:].partition("\\n")[0].rstrip("'\". ")[:_NEAR].rstrip()
        reason = " ".join(fault[2].split())
        return int(fault[1]), f"{reason}, near {near}" if near else reason
    if fault := _OPEN_QUOTE.fullmatch(error):
        start = content.find(f"{fault[2]}{fault[3]}".encode())
        return content.count(b"\n", 0, max(start, 0)) + 1 if start >= 0 else 0, "a quote is not closed"
    return 0, error.split("\n")[0]


def _with_valid_tags(path: Path, content: bytes, rejected: list[str]) -> bytes:
    """Return RDF/XML in which INVALID replaces language tags that rdflib cannot read.

    Each such tag adds a sentence with its line and concept to `rejected`.

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
    """Return a language tag with hyphens for underscores, or INVALID if rdflib cannot read it."""
    plain = tag.replace("_", "-")
    return plain if _TAG.fullmatch(plain) else INVALID


def _invalid_tag(about: str, tag: str) -> str:
    noun = f"A label of {about}" if about else "A label"
    return f"{noun} has an invalid language code, {tag[:20]!r}."


def _without_links(path: Path, content: bytes, rejected: list[str]) -> Any:
    """Return a JSON-LD document in which INVALID replaces language tags that rdflib cannot read.

    Raise VocabularyError if the file is not JSON, or if it would have to be completed from the network.
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
    """Yield each object in a JSON document with the id of the object that contains it."""
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
