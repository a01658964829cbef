"""Published formats of documents: what --format may name beside files of rows, and what each says by itself."""

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

# --- Stories of Reuters' corpora RCV1 and RCV2 (Lewis et al. 2004): an XML file a story, or a ZIP file of such.
#
# Of a story are read its language, date, title, headline, paragraphs and topic codes. Its id is `<folder>-<file>`, as
# the lists of MLDoc have it: 19970308-428849newsML for 428849newsML.xml in the folder, or the archive, 19970308.


# What a story has, by the names that --fields, --labels and --column may use.
COLUMNS = ("id", "language", "title", "headline", "body", "topics", "posted_at")
TOPICS = "bip:topics:1.0"
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


class StoryError(ValueError):
    """Why a file is no story, as one clear sentence."""


def read_stories(path: Path, longest: int, progress: Progress) -> Iterator[Row]:
    """COLUMNS of each story, numbered as the stories are sorted by name. longest: bytes that a story may have.
    CorpusError where a file is neither XML nor a ZIP file, or is damaged."""
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
    """(id, content) of each XML file; None in place of one with more than `longest` bytes."""
    if zipfile.is_zipfile(path):
        for name, content in entries_of(path, ".xml", longest):
            yield f"{name.parent.name or path.stem}-{name.stem}", content
    elif path.suffix.lower() == ".xml":
        yield f"{path.resolve().parent.name}-{path.stem}", path.read_bytes() if path.stat().st_size <= longest else None
    else:
        raise CorpusError(f"{path} is neither an XML file nor a ZIP file of such; stories come in these.")


def read_story(key: str, content: bytes) -> dict[str, Any]:
    """COLUMNS of a story; what it has not is left out. StoryError where it is no story."""
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


# --- XML from outside: read only after a check that nothing in it is expanded.
#
# A document type may define entities, of which a few hundred bytes become gigabytes. The check is made by the parser
# that reads the file afterwards, so that it holds in every encoding.


# What an element is -> what is done with its name, its attributes, and its line.
Seen = Callable[[str, dict[str, str], int], None]


_ENCODING = re.compile(rb"""\s*<\?xml\s[^>]*?encoding\s*=\s*["']([\w.-]+)""")


class XmlError(ValueError):
    """Why XML is not read, as one clear sentence without the file's name. line: where, or 0."""

    def __init__(self, sentence: str, line: int = 0) -> None:
        super().__init__(sentence)
        self.line = line


def check_xml(content: bytes, seen: Seen | None = None) -> None:
    """XmlError for XML that is broken, or declares a document type. seen: called for each element, with its name as
    `namespace name`."""
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
    """The first line that is not UTF-8 in a file that is read as such; 0 if there is none."""
    declared = _ENCODING.match(content)
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or (declared and declared[1].upper() not in (b"UTF-8", b"UTF8")):
        return 0
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return content.count(b"\n", 0, error.start) + 1
    return 0


def read_xml(content: bytes) -> ElementTree.Element:
    """The root of the document. XmlError as check_xml has it."""
    check_xml(content)
    return ElementTree.fromstring(content)  # noqa: S314 - it was checked
