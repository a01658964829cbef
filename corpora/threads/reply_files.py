"""Files with the replies that a system suggests, in the format of MRS.

Each line is an example with cells separated by tabs: the message, the reference reply, and up to three suggested
replies, best first. There is no header and no quoting, and the encoding is UTF-8. A system's output is a file, or a
folder that contains a file for each language, such as en_model_responses.txt.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from corpora.core import CorpusError
from corpora.core.languages import LANGUAGES, published_code
from corpora.sources.rejects import faulty, text_lines
from corpora.storage.layout import digest_of
from corpora.threads.messages import cell, compared

MOST = 3  # maximum number of suggested replies per message
OF_LANGUAGE = "_model_responses.txt"
# The language, or "" if the file's name does not state it; the message; and the reference, or None if there is none.
# Both texts are in the form in which they are compared.
Key = tuple[str, str, str | None]


class Example(NamedTuple):
    line: int
    message: str
    reference: str
    replies: tuple[str, ...]


@dataclass
class Suggested:
    """The replies that a system suggests.

    files: a mapping from file name to SHA-256
    replies: a mapping from each message, with its reference if there is one, to the suggested replies
    told: counts for the report: `repeated` is the number of lines whose replies differ from those of an earlier line,
        which is kept; `none` is the number of lines without replies; and `fewer` is the number of lines with fewer
        replies than MOST
    """

    files: dict[str, str] = field(default_factory=dict)
    replies: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    told: Counter[str] = field(default_factory=Counter)

    def key_of(self, language: str, message: str, reference: str) -> Key | None:
        """Return the most specific key in `replies` that matches a record's texts, or None if no key matches."""
        message, reference = compared(message), compared(reference)
        codes = dict.fromkeys((language, published_code(language, [language]), ""))
        tried = ((code, message, said) for said in (reference, None) for code in codes)
        return next((key for key in tried if key in self.replies), None)


def read_suggested(path: Path) -> Suggested:
    """Read a file, or a folder that contains a file for each language.

    Raise CorpusError if a file does not have the format of MRS.
    """
    found = Suggested()
    for file in _files(path):
        language = _language(file)
        found.files[file.name] = digest_of(file)
        for example in examples(file):
            replies = tuple(filter(None, map(cell, example.replies)))
            if not replies:
                found.told["none"] += 1
                continue
            key = (language, compared(example.message), compared(example.reference) or None)
            if key in found.replies:
                found.told["repeated"] += found.replies[key] != replies
                continue
            found.replies[key] = replies
            found.told["fewer"] += len(replies) < MOST
    return found


def examples(path: Path) -> Iterator[Example]:
    """Yield the example on each line of a file that is not empty. The file may be compressed.

    Raise CorpusError if a line has fewer than two or more than five cells, or is not UTF-8.
    """
    for number, line in text_lines(path, "tsv"):
        cells = line.split("\t")
        if not 2 <= len(cells) <= 2 + MOST or not cells[0].strip():
            reason = (
                "this is no prediction: it must have a message, the reference reply and up to "
                f"{MOST} suggested replies, separated by tabs."
            )
            raise faulty(path, "tsv", number, reason)
        yield Example(number, cells[0], cells[1], tuple(cells[2:]))


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise CorpusError(f"There is no file or folder {path}; name one with what a system suggests.")
    found = sorted(path.glob(f"*{OF_LANGUAGE}"))
    if not found:
        raise CorpusError(f"The folder {path} has no file such as en{OF_LANGUAGE}; name another, or the file itself.")
    return found


def _language(file: Path) -> str:
    """Return the language that a file's name states, or "" if it states none."""
    code = file.name.removesuffix(OF_LANGUAGE)
    return code if code != file.name and code in LANGUAGES else ""
