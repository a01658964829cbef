"""Import threads as a corpus of pairs. A pair is a message and a reply, with the language detected for both together.

The rules for pairs are in corpora/threads/messages.py. All files of a corpus must be imported in a single call, because
a reply and its message may be in different files. A corpus is created completely or not at all, and its content is
deterministic.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from django.conf import settings

from corpora.core import CorpusError
from corpora.core.arrow import pq
from corpora.core.languages import UND, code_of
from corpora.core.values import is_empty
from corpora.core.voters import VOTERS
from corpora.engines import Store, open_store
from corpora.models import Corpus
from corpora.sources.compression import check_file
from corpora.sources.readers import Columns, read_rows
from corpora.sources.text import Fault
from corpora.storage import layout
from corpora.storage.intake import PartWriter, RejectLog, Stage, begin_import, log_faulty, validate_rows
from corpora.storage.layout import Manifest
from corpora.storage.record_import import Terms, open_corpus
from corpora.storage.schemas import LEFT_OUT_SCHEMA, MESSAGES_SCHEMA, schema_of
from corpora.threads import messages

# Neither the number of messages nor the length of threads is limited. DuckDB spills to disk if a join exceeds its
# memory limit, and no step walks through a thread message by message.


def stage(staged: Path, logs: list[RejectLog], terms: Terms) -> None:
    """Write the messages in the files to the staging file, and log the invalid rows of each file."""
    with Stage(staged, MESSAGES_SCHEMA) as stage:
        for number, log in enumerate(logs):
            for line, messages_read in log_faulty(_read(log.path, log.format, terms), log, terms.max_rejects):
                for turn, message in enumerate(messages_read, start=1):
                    position = {"file": number, "line": line, "turn": turn, "empty": is_empty(message.text)}
                    row = position | message._asdict()
                    stage.add([row[name] for name in MESSAGES_SCHEMA.names], len(message.text))


def _read(path: Path, format: str, terms: Terms) -> Iterator[tuple[int, list[messages.Message] | Fault]]:
    """Yield the messages in each row. A row contains either a single message or a list of turns."""
    turns = _has_turns(path, format, terms)
    fields, needed = (messages.TURNS, messages.TURNS_NEED) if turns else (messages.MESSAGE, messages.MESSAGE_NEEDS)
    file_columns = Columns({field: terms.columns.get(field, field) for field in fields}, needed)
    key = settings.AUTHOR_KEY.encode()
    rows = read_rows(path, format, file_columns, terms.max_line, terms.progress)
    if turns:
        return validate_rows(rows, lambda raw: list(messages.read_turns(raw, unescape=terms.unescape)))
    return validate_rows(rows, lambda raw: [messages.read_message(raw, key, unescape=terms.unescape)])


def _has_turns(path: Path, format: str, terms: Terms) -> bool:
    """Return whether the rows of a file contain lists of turns, judging by the first readable row."""
    file_columns = Columns({"turns": terms.columns.get("turns", "turns")}, ())
    rows = read_rows(path, format, file_columns, terms.max_line)
    return next((row.get("turns") is not None for _, row in rows if not isinstance(row, Fault)), False)


def join_messages(store: Store, staged: Path) -> None:
    """Define the views and tables for the queries messages_*.sql: `repeated`, `messages`, `links` and `cycles`."""
    store.view("staged_messages", [staged], MESSAGES_SCHEMA)
    store.keep("repeated", "messages_repeated")
    store.define("messages", "messages")
    find_cycles(store)


def find_cycles(store: Store) -> None:
    """Create the `cycles` table of the messages whose replies form a cycle.

    Each round doubles the length of every link and removes the links that run past the start of a thread. A thread of
    100,000 messages therefore takes 17 rounds. If a round removes no link, all remaining links lead into cycles. Once
    their length is at least the number of remaining links, every link ends inside a cycle.
    """
    store.keep("links", "messages_linked")
    distance, previous = 1, -1
    while (links := store.size("links")) and not (links == previous and distance >= links):
        store.replace("links", "messages_followed")
        distance, previous = 2 * distance, links
    store.keep("cycles", "messages_in_cycles")


_STAGING = "staging/messages.parquet"
_SCHEMA = schema_of(messages.FIELDS)


@dataclass(frozen=True)
class Outcome:
    """The result of an import.

    rejects: logs of the files with rejected rows
    already: whether the corpus was already created from the same files
    """

    manifest: Manifest
    rejects: list[Path]
    already: bool = False


@dataclass(frozen=True)
class Disagreement:
    """A comparison of a declared language with the detected languages.

    language: language declared in the files
    pairs: number of pairs with this declared language
    agreed: number of these pairs whose detected language matches it
    most: the most frequent detected language that does not match, and its number of pairs
    """

    language: str
    pairs: int
    agreed: int
    most: tuple[str, int]


def import_threads(
    name: str, paths: list[Path], terms: Terms, least_certainty: float, dates: messages.Dates
) -> Outcome:
    """Create a corpus from the pairs in files. Running it again with the same files has no effect.

    terms: options of the import; `columns` has the column names for messages or lists of turns, and `fields` must be
        messages.FIELDS
    least_certainty: a pair is kept only if the detector's score for its language is higher than this
    dates: a pair is kept only if its reply is within the dates for its language

    Raise CorpusError and change nothing if the corpus cannot be created, or if it was created from different files.
    """
    for path in paths:
        check_file(path, terms.format)
    with begin_import(name, "no pairs were imported", partial(open_corpus, name, terms)) as (directory, manifest):
        file_digests = [(layout.digest_of(path), terms.format_of(path)) for path in paths]
        if already := bool(manifest.parts or manifest.threads):
            _check_same(name, manifest, file_digests, terms, least_certainty, dates)
            terms.progress(sum(map(layout.size_of, paths)))
        else:
            if repeats := [path for n, path in enumerate(paths) if file_digests[n] in file_digests[:n]]:
                raise CorpusError(
                    f"{repeats[0]} occurs twice, or another file has the same content. Specify each file once."
                )
            digests = {path: digest for path, (digest, _) in zip(paths, file_digests, strict=True)}
            manifest = _create_corpus(
                name,
                directory,
                manifest,
                digests,
                terms,
                _Pairs(directory, least_certainty, dates, unescaped=terms.unescape),
            )
            if not manifest.parts:
                raise CorpusError(_no_pairs_message(manifest, paths))
            layout.write_manifest(name, manifest)
    # An interrupted earlier call may have created the files but not the row in the database.
    Corpus.objects.get_or_create(name=name)
    lists = ((directory / "rejects" / layout.reject_name(n), entry) for n, entry in enumerate(manifest.sources, 1))
    return Outcome(manifest, [path for path, entry in lists if entry.rejects], already)


def thread_facts(name: str, manifest: Manifest) -> dict[str, Any]:
    """Return facts about the threads for publication, as JSON values."""
    threads = asdict(layout.check_pairs(name, manifest))
    entry = {
        name: threads[name] for name in ("messages", "replies", "left_out", "least_certainty", "dates", "detector")
    }
    return entry | {"declared": [asdict(row) for row in disagreements(layout.check_pairs(name, manifest))]}


def disagreements(threads: layout.Threads) -> list[Disagreement]:
    """Return a comparison for each declared language, sorted by descending number of pairs.

    Declared languages are converted to our codes where possible.
    """
    counts: dict[str, Counter[str]] = {}
    for declared, language, number in threads.declared:
        if declared != UND:
            counts.setdefault(code_of(declared) or declared, Counter())[language] += number
    result = []
    for declared, languages in counts.items():
        differing = Counter(
            {code: pairs for code, pairs in languages.items() if not messages.matches_language(declared, code)}
        )
        most_frequent = max(differing.items(), key=lambda item: (item[1], item[0]), default=("", 0))
        result.append(Disagreement(declared, languages.total(), languages.total() - differing.total(), most_frequent))
    return sorted(result, key=lambda item: (-item.pairs, item.language))


def _check_same(
    name: str,
    manifest: Manifest,
    digests: list[tuple[str, str]],
    terms: Terms,
    least_certainty: float,
    dates: messages.Dates,
) -> None:
    """Raise CorpusError unless the corpus was created from these files with these options."""
    sources = [(entry.sha256, entry.format) for entry in manifest.sources]
    if (
        manifest.threads is None
        or sources != digests
        or any(entry.columns != terms.columns for entry in manifest.sources)
    ):
        raise CorpusError(
            f"Corpus {name} was already created from {', '.join(entry.name for entry in manifest.sources)}. All files "
            "of a corpus must be imported in one call, so import them into another corpus."
        )
    if manifest.threads.least_certainty != least_certainty:
        raise CorpusError(
            f"Corpus {name} was created with --least-certainty {manifest.threads.least_certainty:g}, not "
            f"{least_certainty:g}. Create another corpus to use a different value."
        )
    if manifest.threads.unescaped != terms.unescape:
        raise CorpusError(
            f"Corpus {name} was created {'with' if manifest.threads.unescaped else 'without'} --unescape. Create "
            "another corpus to change this."
        )
    if manifest.threads.dates != dates:
        raise CorpusError(
            f"Corpus {name} was created with other dates in --from and --until. Create another corpus for these dates."
        )


def _no_pairs_message(manifest: Manifest, paths: list[Path]) -> str:
    """Return the error message for files without a pair to keep."""
    threads = layout.check_pairs("", manifest)
    if not threads.messages:
        return f"{paths[0]} contains no messages."
    if not threads.replies:
        return (
            f"None of the messages is a reply (messages: {threads.messages:,}). Specify the column with the id of the "
            "parent message with --column parent_id=COLUMN."
        )
    why = "; ".join(f"{messages.REASONS[reason]}: {count:,}" for reason, count in threads.left_out.items())
    replies = "The only reply was" if threads.replies == 1 else f"All {threads.replies:,} replies were"
    return f"{replies} omitted ({why}). Nothing was imported."


def _create_corpus(
    name: str, directory: Path, manifest: Manifest, digests: dict[Path, str], terms: Terms, pairs: "_Pairs"
) -> Manifest:
    """Write the corpus's parts and the replies that did not become pairs, and return the manifest.

    digests: digest of each file
    pairs: writer for the pairs
    """
    staged = directory / _STAGING
    with ExitStack() as files:
        logs = []
        for number, path in enumerate(digests, 1):
            listed = directory / "rejects" / layout.reject_name(number)
            file = files.enter_context(listed.open("w", encoding="utf-8"))
            logs.append(RejectLog(path, terms.format_of(path), listed, file=file))
        stage(staged, logs, terms)
        with open_store(name, manifest=manifest) as store:
            join_messages(store, staged)
            duplicates = _log_repeats(store, logs)
            for log in logs:
                log.check(terms.max_rejects)
            for batch in store.query("messages_paired"):
                pairs.take(batch.to_pylist())
            count = store.size("messages")
    parts = pairs.close()
    for folder in ("parts", "left_out", "rejects"):
        layout.sync(directory / folder)
    sources = []
    for number, log in enumerate(logs):
        counts = {"rows": log.rows, "duplicates": duplicates[number], "rejects": log.count}
        counts["accepted"] = pairs.accepted[number]
        sources.append(layout.source_of(log.path, digests[log.path], log.format, terms.columns, **counts))
    return replace(manifest, sources=tuple(sources), parts=tuple(parts), threads=pairs.threads(count))


def _log_repeats(store: Store, logs: list[RejectLog]) -> Counter[int]:
    """Reject messages that have the same id as an earlier message but different content.

    Return the number of exact duplicates of earlier messages in each file.
    """
    duplicates = Counter[int]()
    for batch in store.query("messages_repeats"):
        for row in batch.to_pylist():
            if row["same"]:
                duplicates[row["file"]] += 1
            else:
                logs[row["file"]].add(
                    row["line"], f"The id {row['id']} already occurred with a different message. The first one is kept."
                )
    return duplicates


class _Pairs:
    """Writes the pairs to the corpus's parts, and all other replies to a separate file.

    accepted: number of pairs by file
    left_out: number of replies that did not become pairs, by reason
    declared: number of pairs by (declared language, detected language)
    """

    def __init__(self, directory: Path, least_certainty: float, dates: messages.Dates, *, unescaped: bool) -> None:
        self.least_certainty, self.dates, self.unescaped = least_certainty, dates, unescaped
        self.parts = PartWriter(directory / "parts", 0, _SCHEMA)
        self.path = directory / "left_out" / layout.part_name(1)
        self.others = pq.ParquetWriter(self.path, LEFT_OUT_SCHEMA)
        self.accepted, self.left_out = Counter[int](), Counter[str]()
        self.declared = Counter[tuple[str, str]]()

    def take(self, rows: list[dict[str, Any]]) -> None:
        candidates = [row for row in rows if not row["reason"]]
        rankings = VOTERS["fasttext"].vote([messages.pair_text(row["message"], row["reply"]) for row in candidates], 1)
        for row, ranking in zip(candidates, rankings, strict=True):
            row["language"], row["certainty"] = ranking[0] if ranking else (None, None)
            if not ranking or row["certainty"] <= self.least_certainty:
                row["reason"] = messages.UNCERTAIN
            elif not messages.is_within(self.dates, row["language"], row["posted_at"]):
                row["reason"] = messages.OUTSIDE
        records = [self._record(row) for row in candidates if not row["reason"]]
        self.parts.write(pa.RecordBatch.from_pylist(records, schema=_SCHEMA))
        omitted = [row for row in rows if row["reason"]]
        self.left_out.update(row["reason"] for row in omitted)
        self.others.write_batch(pa.RecordBatch.from_pylist(omitted, schema=LEFT_OUT_SCHEMA))

    def _record(self, row: dict[str, Any]) -> dict[str, Any]:
        self.accepted[row["file"]] += 1
        if row["declared"]:
            self.declared[row["declared"], row["language"]] += 1
        text = f"{row['message']}\n{row['reply']}"
        return row | {"text": text, "url": "", "certainty": f"{row['certainty']:.6f}"}

    def close(self) -> list[layout.Part]:
        self.others.close()
        layout.sync(self.path)
        return self.parts.close()

    def threads(self, count: int) -> layout.Threads:
        """Return the manifest's entry for threads.

        count: number of messages
        """
        return layout.Threads(
            messages=count,
            replies=self.accepted.total() + self.left_out.total(),
            left_out={reason: self.left_out[reason] for reason in messages.REASONS if self.left_out[reason]},
            least_certainty=self.least_certainty,
            detector=VOTERS["fasttext"].version(),
            declared=tuple((*languages, pairs) for languages, pairs in sorted(self.declared.items())),
            file=self.path.name,
            sha256=layout.digest_of(self.path),
            dates=self.dates,
            unescaped=self.unescaped,
        )
