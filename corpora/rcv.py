"""Stories of Reuters' corpora RCV1 and RCV2 (Lewis et al. 2004): an XML file a story, or a ZIP file of such.

Of a story are read its language, date, title, headline, paragraphs and topic codes. Its id is `<folder>-<file>`, as the
lists of MLDoc have it: 19970308-428849newsML for 428849newsML.xml in the folder, or the archive, 19970308.
"""

import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any
from xml.etree import ElementTree

from corpora.core.errors import CorpusError

# What a story has, by the names that --fields, --labels and --column may use.
COLUMNS = ("id", "language", "title", "headline", "body", "topics", "posted_at")
TOPICS = "bip:topics:1.0"
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
# A story declares no entities; whoever does may mean to fill the memory.
_DECLARES = re.compile(rb"<!(DOCTYPE|ENTITY)")


class StoryError(ValueError):
    """Why a file is no story, as one clear sentence."""


def files_of(path: Path, longest: int) -> Iterator[tuple[str, bytes | None]]:
    """(id, content) of each XML file; None in place of one with more than `longest` bytes. CorpusError where a file is
    neither XML nor a ZIP file, or is damaged."""
    if not zipfile.is_zipfile(path):
        if path.suffix.lower() != ".xml":
            raise CorpusError(f"{path} is neither an XML file nor a ZIP file of such; stories come in these.")
        yield f"{path.resolve().parent.name}-{path.stem}", path.read_bytes() if path.stat().st_size <= longest else None
        return
    try:
        with zipfile.ZipFile(path) as archive:
            entries = sorted(archive.infolist(), key=lambda entry: entry.filename)
            stories = [entry for entry in entries if _ends(entry.filename, ".xml")]
            if not stories:
                inside = [entry.filename for entry in entries if _ends(entry.filename, ".zip")]
                what = f"ZIP files such as {inside[0]}; unpack it, and import these" if inside else "no XML file"
                raise CorpusError(f"{path} holds {what}. Stories are an XML file each, in a ZIP file or by themselves.")
            for entry in stories:
                name = PurePosixPath(entry.filename)
                folder = name.parent.name or path.stem
                yield f"{folder}-{name.stem}", archive.read(entry) if entry.file_size <= longest else None
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:  # the last where it asks for a password
        raise CorpusError(f"{path} is cut off, damaged or locked ({error}); nothing of it was imported.") from error


def _ends(name: str, suffix: str) -> bool:
    return name.lower().endswith(suffix)


def read_story(key: str, content: bytes) -> dict[str, Any]:
    """COLUMNS of a story; what it has not is left out. StoryError where it is no story."""
    if _DECLARES.search(content):
        raise StoryError("The file declares a document type or entities, which a story has not.")
    try:
        story = ElementTree.fromstring(content)  # noqa: S314 - what may fill the memory was refused
    except ElementTree.ParseError as error:
        raise StoryError(f"The XML is broken: {error}.") from error
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
