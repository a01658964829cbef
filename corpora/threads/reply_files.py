"""Files of replies that a system suggests, as MRS publishes them: a line an example, its cells separated by tabs, which
are the message, the reference reply, and up to three suggested replies, the best first.

No header, no quoting, UTF-8. A system is one file, or a folder with a file for each language, such as
en_model_responses.txt.
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

MOST = 3  # replies of a message
OF_LANGUAGE = "_model_responses.txt"
# Language, or empty where no file says it; message; reference, None where there is none. Texts are as files have them.
Key = tuple[str, str, str | None]


class Example(NamedTuple):
    line: int
    message: str
    reference: str
    replies: tuple[str, ...]


@dataclass
class Suggested:
    """What one system suggests. files: their names, with the SHA-256 of each. replies: of each message, and reference
    if the file has one. By what is to be told of them: how many lines are `repeated`, with other replies than a line
    before, which counts; have `none`; or have `fewer` than MOST.
    """

    files: dict[str, str] = field(default_factory=dict)
    replies: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    told: Counter[str] = field(default_factory=Counter)

    def key_of(self, language: str, message: str, reference: str) -> Key | None:
        """That of the line for a record with these texts, if there is one; the most exact counts."""
        message, reference = compared(message), compared(reference)
        codes = dict.fromkeys((language, published_code(language, [language]), ""))
        tried = ((code, message, said) for said in (reference, None) for code in codes)
        return next((key for key in tried if key in self.replies), None)


def read_suggested(path: Path) -> Suggested:
    """What a file, or a folder of files by language, suggests. CorpusError, a sentence, if it is not such a file."""
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
    """The lines of a file that are not empty, each as it stands; the file may be packed. CorpusError for one that has
    not two to five cells, or is not UTF-8."""
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
    """The language that the name of a file says, empty if it says none."""
    code = file.name.removesuffix(OF_LANGUAGE)
    return code if code != file.name and code in LANGUAGES else ""
