"""The response set of a set of pairs: the frequent replies of each language, with replies that are added or removed."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from corpora.core import CorpusError
from corpora.core.languages import LANGUAGES, code_of
from corpora.engines import Store
from corpora.storage.intake import faulty, text_lines
from corpora.storage.layout import digest_of
from corpora.threads.messages import cell


@dataclass(frozen=True)
class ListedReplies:
    """A file of replies to add to the response set, or to remove from it.

    notes: mapping from (language, reply) to the reason for removing the reply, or to the origin of an added reply; the
        language is empty if the reply is removed in all languages.
    lines: mapping from the same keys to the line number in the file.
    """

    file: str = ""
    sha256: str = ""
    notes: Mapping[tuple[str, str], str] = field(default_factory=dict)
    lines: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def key_of(self, language: str, reply: str) -> tuple[str, str] | None:
        return next((key for key in ((language, reply), ("", reply)) if key in self.notes), None)

    def without(self, keys: Collection[tuple[str, str]]) -> list[dict[str, Any]]:
        """Return the lines whose keys are not among these, in the order of the file."""
        return [{"line": line, "reply": key[1]} for key, line in self.lines.items() if key not in keys]


@dataclass(frozen=True)
class Responses:
    """Options for the response set.

    least: minimum number of pairs that a reply must be in.
    most: maximum number of replies per language; the most frequent replies are chosen, and added replies come last.
    of: split whose pairs are counted, or "all".
    struck, added: replies to remove, and replies to add.
    judged: mapping from each reply that a scorer rejects to the reason.
    random: number of random replies per language, among which systems rank the reference.
    """

    least: int = 20
    most: int = 50_000
    of: str = "all"
    struck: ListedReplies = field(default_factory=ListedReplies)
    added: ListedReplies = field(default_factory=ListedReplies)
    judged: Mapping[str, str] = field(default_factory=dict)
    random: int = 0


@dataclass
class ResponseSet:
    """A response set.

    replies: mapping from language to reply to the number of its pairs, most frequent first.
    removed: removed replies (language, reply, pairs, reason).
    added: added replies (language, reply, origin).
    unseen: lines of the listed replies that changed nothing.
    """

    replies: dict[str, dict[str, int]] = field(default_factory=dict)
    removed: list[dict[str, Any]] = field(default_factory=list)
    added: list[dict[str, Any]] = field(default_factory=list)
    unseen: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


def response_set(store: Store, options: Responses, sizes: Mapping[str, int]) -> ResponseSet:
    """Return the response set of the pairs in a store (pair_sets.pair_set).

    sizes: number of counted pairs by language; replies in other languages are not added.
    """
    made, used = ResponseSet(), set[tuple[str, str]]()
    for row in chain(_counted(store, options), _added(options.added, sizes)):
        language, reply = row["language"], row["reply"]
        if reply in made.replies.get(language, ()):
            continue
        if key := options.struck.key_of(language, reply):
            made.removed.append(row | {"reason": options.struck.notes[key]})
            used.add(key)
        elif reason := options.judged.get(reply):
            made.removed.append(row | {"reason": reason})
        elif len(listed := made.replies.setdefault(language, {})) < options.most:
            listed[reply] = row["pairs"]
            made.added += [row] * ("origin" in row)
    entered = {(row["language"], row["reply"]) for row in made.added}
    made.unseen = {"struck": options.struck.without(used), "added": options.added.without(entered)}
    return made


def _counted(store: Store, options: Responses) -> Iterator[dict[str, Any]]:
    for batch in store.query("replies_counted", options.of, options.least):
        yield from batch.to_pylist()


def _added(added: ListedReplies, sizes: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    for (language, reply), origin in added.notes.items():
        if sizes.get(language):
            yield {"language": language, "reply": reply, "pairs": 0, "origin": origin}


def added_facts(added: ListedReplies, rows: Collection[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the manifest's entry for added replies: their file, and their number by origin."""
    origins = Counter(row["origin"] for row in rows)
    return {"replies": len(rows), "file": added.file, "sha256": added.sha256, "origins": dict(sorted(origins.items()))}


def read_replies(path: Path, *, note: str, in_all_languages: bool) -> ListedReplies:
    """Read lines `language<TAB>reply<TAB>note`.

    note: what the note is, for messages.
    in_all_languages: whether a line may lack the language.

    Raise CorpusError if the file cannot be read, if a line has another form, or if the file names no reply.
    """
    form = f"Write the language, the reply and {note}, separated by tabs."
    notes, lines = dict[tuple[str, str], str](), dict[tuple[str, str], int]()
    if not path.is_file():
        raise CorpusError(f"{path} does not exist. Specify a file of replies.")
    for number, line in text_lines(path, "tsv"):
        cells = [cell(text) for text in line.split("\t")]
        language = code_of(cells[0]) if len(cells) == 3 else ""
        if len(cells) not in ((2, 3) if in_all_languages else (3,)) or not all(cells[-2:]):
            raise faulty(path, "tsv", number, form)
        if len(cells) == 2 and cells[0] in LANGUAGES.data:
            raise faulty(path, "tsv", number, f"{cells[0]} is a language code, so a cell seems to be missing.")
        if len(cells) == 3 and not language:
            raise faulty(path, "tsv", number, f"{cells[0][:40]!r} is not a language code such as en.")
        notes.setdefault((language, cells[-2]), cells[-1])
        lines.setdefault((language, cells[-2]), number)
    if not notes:
        raise CorpusError(f"{path} lists no replies. {form}")
    return ListedReplies(path.name, digest_of(path), notes, lines)
