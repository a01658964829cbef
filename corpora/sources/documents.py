"""The document formats that --format accepts, with their columns and defaults, and safe parsing of XML."""

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
from corpora.sources.compression import Progress, entries_of, explain_damage
from corpora.sources.readers import Columns, Row, find_columns, read_rows
from corpora.sources.text import Fault, TextFormat
from corpora.storage.layout import Manifest

# --- Stories of Reuters' corpora RCV1 and RCV2 (Lewis et al. 2004).
#
# Each story is an XML file, possibly in a ZIP file. We read the language, date, title, headline, paragraphs and topic
# codes. The id is `<folder>-<file>`, as in MLDoc's lists. For example, the id of 428849newsML.xml in the folder or ZIP
# file 19970308 is 19970308-428849newsML.


# The columns of a story, which can be used in --fields, --labels and --column.
COLUMNS = ("id", "language", "title", "headline", "body", "topics", "posted_at")
TOPICS = "bip:topics:1.0"
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


class StoryError(ValueError):
    """Raised for a file that is not a story. The message states the reason in a sentence."""


def read_stories(path: Path, longest: int, progress: Progress) -> Iterator[Row]:
    """Yield (number, values by column) for each story, sorted by name. For an unreadable story, yield (number, Fault).

    longest: maximum size of a story (bytes)

    Raise CorpusError if the path is neither an XML file nor a ZIP file, or if the ZIP file is damaged.
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
    """Yield the (id, content) of each XML file. The content is None if it is larger than `longest` bytes."""
    if zipfile.is_zipfile(path):
        for name, content in entries_of(path, ".xml", longest):
            yield f"{name.parent.name or path.stem}-{name.stem}", content
    elif path.suffix.lower() == ".xml":
        yield f"{path.resolve().parent.name}-{path.stem}", path.read_bytes() if path.stat().st_size <= longest else None
    else:
        raise CorpusError(f"{path} is neither an XML file nor a ZIP file of XML files, so it contains no stories.")


def read_story(key: str, content: bytes) -> dict[str, Any]:
    """Parse a story. Return the values of those COLUMNS that the story has.

    Raise StoryError if the content is not a story.
    """
    try:
        check_xml(content)
    except XmlError as error:
        raise StoryError(f"Line {error.line:,}: {error}.") from error
    story = ElementTree.fromstring(content)  # noqa: S314 - checked above
    if story.tag != "newsitem":
        raise StoryError(f"The root element is <{story.tag}>, but <newsitem> is required.")
    if (text := story.find("text")) is None:
        raise StoryError("The story has no <text> element.")
    topics = [code.get("code", "") for codes in story.iter("codes") if codes.get("class") == TOPICS for code in codes]
    columns = {
        "id": key,
        "language": story.get(_LANGUAGE),
        "title": _text_of(story.find("title")),
        "headline": _text_of(story.find("headline")),
        "body": "\n".join(filter(None, (_text_of(paragraph) for paragraph in text.iter("p")))),
        "topics": topics,
        "posted_at": story.get("date"),
    }
    return {name: value for name, value in columns.items() if value is not None}


def _text_of(element: ElementTree.Element | None) -> str | None:
    return None if element is None else " ".join("".join(element.itertext()).split())


@dataclass(frozen=True, slots=True)
class Documents:
    """A document format.

    help: help text for --format
    columns: columns of a document
    read: function that takes a path, the maximum size of a document (bytes) and a progress callback, and yields rows
    fields, labels, language: defaults for a new corpus
    may_be_empty: fields that may be empty
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
    "rcv": Documents("stories from the Reuters corpora: XML or ZIP files", COLUMNS, read_stories),
    "eurlex": Documents(
        "acts from EURLEX57K: folders, ZIP files or JSON lines",
        eurlex.COLUMNS,
        eurlex.read_acts,
        fields=eurlex.FIELDS,
        labels="concepts",
        language="en",
        may_be_empty=frozenset(eurlex.FIELDS),
        folder=True,
    ),
    "multi_eurlex": Documents(
        "acts from MultiEURLEX: JSON lines",
        eurlex.COLUMNS_OF_MULTI,
        eurlex.read_multilingual_acts,
        fields=eurlex.FIELDS_OF_MULTI,
        labels=eurlex.LEVELS[0],
        may_be_empty=frozenset({"split"}),
    ),
}


def terms_of(
    format: str | None, manifest: Manifest | None, fields: tuple[str, ...], language: str, labels: str
) -> tuple[tuple[str, ...], str, str]:
    """Return the fields, the language and the label column for an import.

    Missing fields are taken from the corpus. Other missing values are the document format's defaults.

    manifest: the corpus's manifest; None for a new corpus
    fields, language, labels: the user's values, or empty values
    """
    if (kind := DOCUMENTS.get(format or "")) is None:
        return fields, language, labels
    fields = fields or (manifest.fields if manifest else ()) or kind.fields
    return fields, language or kind.language, labels or (kind.labels if manifest is None or manifest.declared else "")


def read_any(
    path: Path, format: str, columns: Columns, max_line: int, progress: Progress, text_format: TextFormat
) -> Iterator[Row]:
    """Yield each row or document of a path.

    text_format: encoding and delimiter of the file; not used for documents

    Raise CorpusError if the path cannot be read.
    """
    if (documents := DOCUMENTS.get(format)) is None:
        yield from read_rows(path, format, columns, max_line, progress, text_format)
        return
    column_names = {field: columns.named[field] for field, _ in find_columns(path, list(documents.columns), columns)}
    with explain_damage(path, format):
        for number, document in documents.read(path, max_line, progress):
            if not isinstance(document, Fault):
                document = {field: document.get(name) for field, name in column_names.items()}
            yield number, document


# --- Parsing of untrusted XML. Document type declarations are not allowed.
#
# A document type can define entities that expand from a few hundred bytes to gigabytes. The check uses the same parser
# as the reader, so it works with every encoding.


# Called with the name, the attributes and the line number of each element.
ElementCallback = Callable[[str, dict[str, str], int], None]


_ENCODING = re.compile(rb"""\s*<\?xml\s[^>]*?encoding\s*=\s*["']([\w.-]+)""")


class XmlError(ValueError):
    """Raised for rejected XML. The message states the reason, without the name of the file.

    line: line number, or 0 if unknown
    """

    def __init__(self, sentence: str, line: int = 0) -> None:
        super().__init__(sentence)
        self.line = line


def check_xml(content: bytes, on_element: ElementCallback | None = None) -> None:
    """Raise XmlError if XML is malformed or declares a document type.

    on_element: called for each element, with its name as `namespace name`
    """
    parser = expat.ParserCreate(namespace_separator=" ")

    def refuse(*_declared: object) -> None:
        raise XmlError(
            "the document has a DOCTYPE, which is not allowed because its entities can fill the memory; remove it, for "
            "example with xmllint --noent --dropdtd",
            parser.CurrentLineNumber,
        )

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    if on_element is not None:
        parser.StartElementHandler = lambda name, attributes: on_element(name, attributes, parser.CurrentLineNumber)
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        if line := _line_of_other_encoding(content):
            raise XmlError(
                "the text is not UTF-8; save it as UTF-8, or declare the encoding in the first line, for example "
                '<?xml version="1.0" encoding="ISO-8859-1"?>',
                line,
            ) from None
        raise XmlError(f"the file is not valid XML ({expat.ErrorString(error.code)})", error.lineno) from None
    except (LookupError, ValueError) as error:
        if isinstance(error, XmlError):
            raise
        raise XmlError(f"the declared encoding is not supported ({error}); save the file as UTF-8", 1) from None


def _line_of_other_encoding(content: bytes) -> int:
    """Return the first line that is not UTF-8, or 0 if there is none or the document declares another encoding."""
    declared = _ENCODING.match(content)
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or (declared and declared[1].upper() not in (b"UTF-8", b"UTF8")):
        return 0
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return content.count(b"\n", 0, error.start) + 1
    return 0
