"""Published document formats for --format, with the columns and defaults of each, and safe XML parsing."""

import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

from corpora.core import CorpusError
from corpora.sources import eurlex
from corpora.sources.compression import Progress, damage_explained, entries_of
from corpora.sources.readers import Columns, Row, places_in, read_rows
from corpora.sources.text import Fault
from corpora.storage.layout import Manifest

# --- Stories of Reuters' corpora RCV1 and RCV2 (Lewis et al. 2004): one XML file per story, or a ZIP file of them.
#
# The fields read are language, date, title, headline, paragraphs and topic codes. The id is `<folder>-<file>`, as in
# the lists of MLDoc: 19970308-428849newsML for 428849newsML.xml in the folder or archive 19970308.


# The columns of a story, by the names that --fields, --labels and --column accept.
COLUMNS = ("id", "language", "title", "headline", "body", "topics", "posted_at")
TOPICS = "bip:topics:1.0"
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


class StoryError(ValueError):
    """The reason why a file is not a story, as one sentence."""


def read_stories(path: Path, longest: int, progress: Progress) -> Iterator[Row]:
    """Yield COLUMNS of each story, numbered in the order of their names.

    longest: maximum size of a story (bytes)
    CorpusError: a file is neither XML nor a ZIP file, or is damaged
    """
    for number, (key, content) in enumerate(_files_of(path, longest), 1):
        if content is None:
            yield number, Fault(f"The story {key} is longer than {longest:,} bytes.")
            continue
        progress(min(len(content), path.stat().st_size))
        try:
            yield number, read_story(key, content)
        except StoryError as error:
            yield number, Fault(f"{key}: {error}")


def _files_of(path: Path, longest: int) -> Iterator[tuple[str, bytes | None]]:
    """Yield (id, content) of each XML file; the content is None above `longest` bytes."""
    if zipfile.is_zipfile(path):
        for name, content in entries_of(path, ".xml", longest):
            yield f"{name.parent.name or path.stem}-{name.stem}", content
    elif path.suffix.lower() == ".xml":
        yield f"{path.resolve().parent.name}-{path.stem}", path.read_bytes() if path.stat().st_size <= longest else None
    else:
        raise CorpusError(f"{path} is neither an XML file nor a ZIP file of such; stories come in these.")


def read_story(key: str, content: bytes) -> dict[str, Any]:
    """Return COLUMNS of a story, without missing values.

    StoryError: it is not a story
    """
    try:
        story = read_xml(content)
    except XmlError as error:
        raise StoryError(f"In line {error.line:,}, {error}.") from error
    if story.tag != "newsitem":
        raise StoryError(f"The XML is <{story.tag}> and not <newsitem>.")
    if (text := story.find("text")) is None:
        raise StoryError("The story has no <text>.")
    topics = [code.get("code", "") for codes in story.iter("codes") if codes.get("class") == TOPICS for code in codes]
    found = {
        "id": key,
        "language": story.get(_LANGUAGE),
        "title": _said(story.find("title")),
        "headline": _said(story.find("headline")),
        "body": "\n".join(filter(None, (_said(paragraph) for paragraph in text.iter("p")))),
        "topics": topics,
        "posted_at": story.get("date"),
    }
    return {name: value for name, value in found.items() if value is not None}


def _said(element: ElementTree.Element | None) -> str | None:
    return None if element is None else " ".join("".join(element.itertext()).split())


@dataclass(frozen=True, slots=True)
class Documents:
    """A document format.

    help: text for --format
    columns: columns that a document has
    read: yields the rows of a path, from the path, the maximum size of a document (bytes) and a progress callback
    fields, labels, language: defaults for a new corpus
    may_be_empty: fields that need no text
    folder: whether a path may be a folder
    """

    help: str
    columns: tuple[str, ...]
    read: Callable[[Path, int, Progress], Iterator[Row]]
    fields: tuple[str, ...] = ()
    labels: str = ""
    language: str = ""
    may_be_empty: frozenset[str] = frozenset()
    folder: bool = False


DOCUMENTS = {
    "rcv": Documents("stories of Reuters' corpora, XML or ZIP files", COLUMNS, read_stories),
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
    """Return the fields, language and label column: as named, else from the corpus, else the format's defaults."""
    if (own := DOCUMENTS.get(format or "")) is None:
        return fields, language, labels
    fields = fields or (known.fields if known else ()) or own.fields
    return fields, language or own.language, labels or (own.labels if known is None or known.declared else "")


def read_any(path: Path, format: str, columns: Columns, max_line: int, progress: Progress) -> Iterator[Row]:
    """Yield each row or document of a path.

    CorpusError: the path cannot be read
    """
    if (own := DOCUMENTS.get(format)) is None:
        yield from read_rows(path, format, columns, max_line, progress)
        return
    named = {field: columns.named[field] for field, _ in places_in(path, list(own.columns), columns)}
    with damage_explained(path, format):
        for number, read in own.read(path, max_line, progress):
            yield number, read if isinstance(read, Fault) else {field: read.get(named[field]) for field in named}


# --- Untrusted XML, which is checked for entities before it is read.
#
# A document type can define entities that expand from a few hundred bytes to gigabytes. The check uses the parser that
# then reads the file, so it works for every encoding.


# Called with each element's name, attributes and line.
Seen = Callable[[str, dict[str, str], int], None]


_ENCODING = re.compile(rb"""\s*<\?xml\s[^>]*?encoding\s*=\s*["']([\w.-]+)""")


class XmlError(ValueError):
    """The reason why XML is rejected, as one sentence without the file's name.

    line: line number, or 0
    """

    def __init__(self, sentence: str, line: int = 0) -> None:
        super().__init__(sentence)
        self.line = line


def check_xml(content: bytes, seen: Seen | None = None) -> None:
    """Check that XML is well-formed and declares no document type.

    seen: called for each element; its name has the form `namespace name`
    XmlError: the check fails
    """
    parser = expat.ParserCreate(namespace_separator=" ")

    def refuse(*_declared: object) -> None:
        raise XmlError(
            "it declares a document type (DOCTYPE), whose entities may fill the memory; write it without, for example "
            "with xmllint --noent --dropdtd",
            parser.CurrentLineNumber,
        )

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    if seen is not None:
        parser.StartElementHandler = lambda name, attributes: seen(name, attributes, parser.CurrentLineNumber)
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        if where := _line_of_other_encoding(content):
            raise XmlError(
                "the text is not UTF-8; save it as UTF-8, or declare its encoding in the first line, as in "
                '<?xml version="1.0" encoding="ISO-8859-1"?>',
                where,
            ) from None
        raise XmlError(f"this is not XML ({expat.ErrorString(error.code)})", error.lineno) from None
    except (LookupError, ValueError) as error:
        if isinstance(error, XmlError):
            raise
        raise XmlError(f"its encoding cannot be read ({error}); save it as UTF-8", 1) from None


def _line_of_other_encoding(content: bytes) -> int:
    """Return the first line that is not UTF-8 in a file that should be, or 0."""
    declared = _ENCODING.match(content)
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or (declared and declared[1].upper() not in (b"UTF-8", b"UTF8")):
        return 0
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return content.count(b"\n", 0, error.start) + 1
    return 0


def read_xml(content: bytes) -> ElementTree.Element:
    """Return the root element of a checked document.

    XmlError: check_xml fails
    """
    check_xml(content)
    return ElementTree.fromstring(content)  # noqa: S314 - checked above
