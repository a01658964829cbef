"""XML from outside: read only after a check that nothing in it is expanded.

A document type may define entities, of which a few hundred bytes become gigabytes. The check is made by the parser that
reads the file afterwards, so that it holds in every encoding.
"""

import re
from collections.abc import Callable
from xml.etree import ElementTree
from xml.parsers import expat

# What an element is -> what is done with its name, its attributes, and its line.
Seen = Callable[[str, dict[str, str], int], None]


_DECLARED = re.compile(rb"""\s*<\?xml\s[^>]*?encoding\s*=\s*["']([\w.-]+)""")


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
    declared = _DECLARED.match(content)
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
