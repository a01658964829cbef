"""Prepare the published set of a corpus of pairs, and read files of replies suggested by systems.

A published set consists of the kept pairs with their splits, and the response set: the frequent replies in each
language, plus listed additions and minus listed removals.

Callers write the files. The queries run in an engine, so a corpus need not fit into memory. However, --apart thread
keeps two numbers in memory for each message of a thread.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import scipy  # loads scipy.sparse lazily

from corpora.core import CorpusError
from corpora.core.arrow import pq
from corpora.core.languages import LANGUAGES, code_of, published_code
from corpora.engines import Store, texts
from corpora.storage.intake import invalid_file, text_lines
from corpora.storage.layout import Manifest, check_pairs, corpus_dir, digest_of
from corpora.storage.schemas import LEFT_OUT_SCHEMA
from corpora.threads.messages import cell, comparison_key
from corpora.threads.scorers import open_filter

TRAIN, VALID, TEST = SPLITS = ("train", "valid", "test")
SHARES = (80, 10, 10)
SMALL = "small_language"
# `message_digest`: digest of the message's cell. `answer`: the reply's cell.
_KEPT = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in ("id", "language", "message", "reply", "thread", "message_id")),
        pa.field("certainty", pa.float64()),
        pa.field("message_digest", pa.string()),
        pa.field("answer", pa.string()),
    ]
)


@dataclass(frozen=True)
class Plan:
    """The options of a published set.

    shares: relative sizes of train, valid and test (integers)
    least_pairs: minimum number of pairs in a language; languages with fewer pairs are excluded
    most_languages: maximum number of languages, preferring languages with more pairs; None for all
    apart: units that must not be divided between splits: all pairs with the same message, or whole threads
    """

    seed: str
    shares: tuple[int, int, int] = SHARES
    least_pairs: int = 1
    apart: Literal["message", "thread"] = "message"
    most_languages: int | None = None


@contextmanager
def pair_set(corpus_name: str, manifest: Manifest, plan: Plan, staged: Path) -> Iterator[Store]:
    """Open a store for the queries on a published set.

    The queries are pairs_in_order, split_counts, replies_counted, left_out_before and left_out_by_scores.

    staged: path of a temporary file to create

    Raise CorpusError if no pairs remain, or if threads must not be divided but a message has no thread.
    """
    threads = check_pairs(corpus_name, manifest)
    with open_filter(corpus_name, manifest) as store:
        _stage(store, staged)
        store.view("kept", [staged], _KEPT)
        counts = sorted(store.fetch("kept_by_language"), key=lambda row: (-row["pairs"], row["language"]))
        languages = [row["language"] for row in counts if row["pairs"] >= plan.least_pairs][: plan.most_languages]
        if not languages:
            largest = counts[0]["pairs"] if counts else 0
            raise CorpusError(
                f"No language in corpus {corpus_name} has {plan.least_pairs:,} pairs after filtering. The largest "
                f"number is {largest:,}. Set --least-pairs to a smaller number."
            )
        store.rows("wanted", texts(language=languages))
        store.define("exported", "pairs_exported")
        draw_splits(store, corpus_name, plan)
        store.view("left_out", [corpus_dir(corpus_name) / "left_out" / threads.file], LEFT_OUT_SCHEMA)
        yield store


def draw_splits(store: Store, corpus_name: str, plan: Plan) -> None:
    """Define the `placed` view, which adds a split to each pair in `exported`.

    Raise CorpusError if threads must not be divided but a message has no thread.
    """
    _, valid, test = plan.shares
    design = {"seed": plan.seed, "valid": valid, "test": test, "whole": sum(plan.shares)}
    store.rows("design", pa.Table.from_pylist([design]))
    if plan.apart == "thread":
        store.rows("components", _components(store, corpus_name))
    store.define("parted", f"parts_by_{plan.apart}")
    store.keep("splits", "splits_drawn")
    store.define("placed", "pairs_placed")


def _stage(store: Store, staged: Path) -> None:
    """Write the kept pairs to a file, with the digests and cells used for comparisons."""
    with pq.ParquetWriter(staged, _KEPT) as writer:
        for batch in store.query("pairs_kept"):
            rows: list[dict[str, Any]] = batch.to_pylist()
            for row in rows:
                row["message_digest"] = digest_of_message(row["message"])
                row["answer"] = cell(row["reply"])
            writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=_KEPT))


def digest_of_message(message: str) -> str:
    """Return the SHA-256 of a message's cell. It identifies equal messages and seeds random draws."""
    return hashlib.sha256(cell(message).encode()).hexdigest()


def _components(store: Store, corpus_name: str) -> pa.Table:
    """Return a table of each message's digest (`message_digest`) and its `part`, which must not be split up.

    Two threads are connected if they share a message. A part consists of all threads that are connected, directly or
    through other threads. It is named after its smallest digest.

    Raise CorpusError if a message has no thread.
    """
    edges = store.query("messages_and_threads").read_all()
    messages, thread = (edges.column(name).combine_chunks().dictionary_encode() for name in edges.column_names)
    if "" in thread.dictionary.to_pylist():
        raise CorpusError(
            f"Some messages in corpus {corpus_name} have no thread, so --apart thread is not possible. Import the "
            "corpus with --column thread=COLUMN, or remove --apart thread."
        )
    size = len(messages.dictionary)
    ends = messages.indices.to_numpy(), thread.indices.to_numpy() + size
    graph = scipy.sparse.coo_array((np.ones(len(edges), bool), ends), shape=(size + len(thread.dictionary),) * 2)
    _, labels = scipy.sparse.csgraph.connected_components(graph, directed=False)
    # The digests are sorted, so the first digest of each component is its smallest.
    _, first_indexes, inverse = np.unique(labels[:size], return_index=True, return_inverse=True)
    parts = messages.dictionary.take(pa.array(first_indexes[inverse]))
    return pa.table({"message_digest": messages.dictionary, "part": parts})


# --- The response set.


@dataclass(frozen=True)
class ListedReplies:
    """A file of replies to add to the response set, or to remove from it.

    notes: reason for removing a reply, or origin of an added reply, by (language, reply); the language is empty if the
        reply is removed in all languages
    lines: line numbers in the file, by the same keys
    """

    file: str = ""
    sha256: str = ""
    notes: Mapping[tuple[str, str], str] = field(default_factory=dict)
    lines: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def key_of(self, language: str, reply: str) -> tuple[str, str] | None:
        return next((key for key in ((language, reply), ("", reply)) if key in self.notes), None)

    def without(self, keys: Collection[tuple[str, str]]) -> list[dict[str, Any]]:
        """Return all lines except those with these keys, in file order."""
        return [{"line": line, "reply": key[1]} for key, line in self.lines.items() if key not in keys]


@dataclass(frozen=True)
class Responses:
    """Options for the response set.

    least: minimum number of pairs with a reply
    most: maximum number of replies per language; the most frequent replies are chosen, and added replies come last
    of: split whose pairs are counted, or "all"
    struck, added: replies to remove, and replies to add
    judged: replies that a scorer rejects, with the reasons
    random: number of random replies per language, which systems rank together with the reference
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

    replies: number of pairs by language and reply, most frequent first
    removed: removed replies (language, reply, pairs, reason)
    added: added replies (language, reply, origin)
    unseen: lines of the files of listed replies that had no effect
    """

    replies: dict[str, dict[str, int]] = field(default_factory=dict)
    removed: list[dict[str, Any]] = field(default_factory=list)
    added: list[dict[str, Any]] = field(default_factory=list)
    unseen: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


def response_set(store: Store, options: Responses, sizes: Mapping[str, int]) -> ResponseSet:
    """Build the response set for the pairs in a store (see `pair_set`).

    sizes: number of counted pairs by language; replies in other languages are not added
    """
    result, used = ResponseSet(), set[tuple[str, str]]()
    for row in chain(_counted(store, options), _added(options.added, sizes)):
        language, reply = row["language"], row["reply"]
        if reply in result.replies.get(language, ()):
            continue
        if key := options.struck.key_of(language, reply):
            result.removed.append(row | {"reason": options.struck.notes[key]})
            used.add(key)
        elif reason := options.judged.get(reply):
            result.removed.append(row | {"reason": reason})
        elif len(listed := result.replies.setdefault(language, {})) < options.most:
            listed[reply] = row["pairs"]
            result.added += [row] * ("origin" in row)
    entered = {(row["language"], row["reply"]) for row in result.added}
    result.unseen = {"struck": options.struck.without(used), "added": options.added.without(entered)}
    return result


def _counted(store: Store, options: Responses) -> Iterator[dict[str, Any]]:
    for batch in store.query("replies_counted", options.of, options.least):
        yield from batch.to_pylist()


def _added(added: ListedReplies, sizes: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    for (language, reply), origin in added.notes.items():
        if sizes.get(language):
            yield {"language": language, "reply": reply, "pairs": 0, "origin": origin}


def added_facts(added: ListedReplies, rows: Collection[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the manifest's entry for added replies: their number, their file, and their number by origin."""
    origins = Counter(row["origin"] for row in rows)
    return {"replies": len(rows), "file": added.file, "sha256": added.sha256, "origins": dict(sorted(origins.items()))}


def read_replies(path: Path, *, note: str, in_all_languages: bool) -> ListedReplies:
    """Read a file of lines `language<TAB>reply<TAB>note`.

    note: what the note is, for error messages
    in_all_languages: whether the language may be omitted

    Raise CorpusError if the file cannot be read, contains an invalid line, or lists no replies.
    """
    form = f"Write the language, the reply and {note}, separated by tabs."
    notes, lines = dict[tuple[str, str], str](), dict[tuple[str, str], int]()
    if not path.is_file():
        raise CorpusError(f"{path} does not exist. Specify a file of replies.")
    for number, line in text_lines(path, "tsv"):
        cells = [cell(text) for text in line.split("\t")]
        language = code_of(cells[0]) if len(cells) == 3 else ""
        if len(cells) not in ((2, 3) if in_all_languages else (3,)) or not all(cells[-2:]):
            raise invalid_file(path, "tsv", number, form)
        if len(cells) == 2 and cells[0] in LANGUAGES.data:
            raise invalid_file(path, "tsv", number, f"{cells[0]} is a language code, so a cell seems to be missing.")
        if len(cells) == 3 and not language:
            raise invalid_file(path, "tsv", number, f"{cells[0][:40]!r} is not a language code such as en.")
        notes.setdefault((language, cells[-2]), cells[-1])
        lines.setdefault((language, cells[-2]), number)
    if not notes:
        raise CorpusError(f"{path} lists no replies. {form}")
    return ListedReplies(path.name, digest_of(path), notes, lines)


# --- Files of replies suggested by a system, in the format of MRS.
#
# Each line is an example with cells separated by tabs: the message, the reference reply, and up to three suggested
# replies, best first. There is no header and no quoting, and the encoding is UTF-8. A system's output is a file, or a
# folder that contains a file for each language, such as en_model_responses.txt.


MOST = 3  # maximum number of suggested replies per message
OF_LANGUAGE = "_model_responses.txt"
# (language, message, reference). The language is "" if the file's name doesn't contain it. The reference is None if
# there is none. The message and the reference are comparison keys.
Key = tuple[str, str, str | None]


class Example(NamedTuple):
    line: int
    message: str
    reference: str
    replies: tuple[str, ...]


@dataclass
class SuggestedReplies:
    """The replies suggested by a system.

    files: SHA-256 by file name
    replies: suggested replies by (language, message, reference), as described for Key
    counts: numbers of lines for the report. `repeated` counts lines that contradict an earlier line with the same
        message; the earlier line is used. `none` counts lines without replies, and `fewer` counts lines with fewer
        replies than MOST
    """

    files: dict[str, str] = field(default_factory=dict)
    replies: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def key_of(self, language: str, message: str, reference: str) -> Key | None:
        """Return the most specific key in `replies` that matches a record, or None if no key matches."""
        message, reference = comparison_key(message), comparison_key(reference)
        codes = dict.fromkeys((language, published_code(language, [language]), ""))
        candidates = ((code, message, answer) for answer in (reference, None) for code in codes)
        return next((key for key in candidates if key in self.replies), None)


def read_suggested(path: Path) -> SuggestedReplies:
    """Read a file of suggested replies, or a folder that contains a file for each language.

    Raise CorpusError if a file is not in the format of MRS.
    """
    suggested = SuggestedReplies()
    for file in _files(path):
        language = _language(file)
        suggested.files[file.name] = digest_of(file)
        for example in examples(file):
            replies = tuple(filter(None, map(cell, example.replies)))
            if not replies:
                suggested.counts["none"] += 1
                continue
            key = (language, comparison_key(example.message), comparison_key(example.reference) or None)
            if key in suggested.replies:
                suggested.counts["repeated"] += suggested.replies[key] != replies
                continue
            suggested.replies[key] = replies
            suggested.counts["fewer"] += len(replies) < MOST
    return suggested


def examples(path: Path) -> Iterator[Example]:
    """Yield the example on each non-empty line of a file, which can be compressed.

    Raise CorpusError if a line has fewer than two or more than five cells, or is not UTF-8.
    """
    for number, line in text_lines(path, "tsv"):
        cells = line.split("\t")
        if not 2 <= len(cells) <= 2 + MOST or not cells[0].strip():
            reason = (
                "The line must contain a message, the reference reply and up to "
                f"{MOST} suggested replies, separated by tabs."
            )
            raise invalid_file(path, "tsv", number, reason)
        yield Example(number, cells[0], cells[1], tuple(cells[2:]))


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise CorpusError(f"{path} does not exist. Specify a file or folder with suggested replies.")
    files = sorted(path.glob(f"*{OF_LANGUAGE}"))
    if not files:
        raise CorpusError(f"The folder {path} contains no file such as en{OF_LANGUAGE}. Specify another folder.")
    return files


def _language(file: Path) -> str:
    """Return the language in a file's name, or "" if there is none."""
    code = file.name.removesuffix(OF_LANGUAGE)
    return code if code != file.name and code in LANGUAGES else ""
