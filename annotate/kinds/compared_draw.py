"""The draw of messages for which people compare the replies of two systems.

A message can be drawn only if every system suggests a reply to it, so that all pairs of systems are compared on the
same messages. Several records can have the same message but different suggestions, so they are drawn together.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from annotate.core.draws.hash_order import by_seed, drawn
from annotate.kinds.forms import pair
from corpora.core import CorpusError
from corpora.draws.samples import Sample, sample_chosen
from corpora.models import Corpus
from corpora.sources.compression import unpacked
from corpora.storage.inventory import declared_records
from corpora.threads.messages import compared
from corpora.threads.pair_sets import Key, Suggested, read_suggested

# Key of the suggestions in a draw's parameters. They are passed to the units and not stored with the draw.
REPLIES = "replies"
Replies = Mapping[str, Mapping[str, list[str]]]  # id -> system -> replies


def systems_of(given: Sequence[str]) -> dict[str, Path]:
    """Return the file or folder of each system, sorted by the system's name.

    given: arguments such as `NAME=FILE`; if an argument is only `FILE`, the system is named after the file

    Raise CorpusError if a name is invalid or used twice, or if there are fewer than two systems.
    """
    found: dict[str, Path] = {}
    for each in given:
        name, sign, path = each.partition("=")
        if not sign or Path(each).exists():
            name, path = unpacked(Path(each)).stem, each
        try:
            pair.check_system(name)
        except ValueError as error:
            raise CorpusError(f"--systems {each}: {error} Write it before the file, as NAME=FILE.") from error
        if name in found:
            raise CorpusError(f"--systems has two called {name}; write another name before the file, as NAME=FILE.")
        found[name] = Path(path)
    if len(found) < 2:
        raise CorpusError("--systems has one system, and there is nothing to compare; name two or more.")
    return dict(sorted(found.items()))


@dataclass
class _Joined:
    """The systems' suggestions for the records of a corpus.

    frame: ids of the records for which all systems have suggestions, as a mapping from language to message to ids
    left_out: (language, message) pairs that are left out of the frame
    replies: suggestions for these records, as a mapping from id to system to replies
    lacking: number of records for which a system has no suggestions, by system
    used: keys of the system's lines that match a record, by system
    records: number of records in the corpus
    """

    frame: dict[str, dict[str, list[str]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    left_out: set[tuple[str, str]] = field(default_factory=set)
    replies: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    lacking: Counter[str] = field(default_factory=Counter)
    used: dict[str, set[Key]] = field(default_factory=lambda: defaultdict(set))
    records: int = 0


def sample_compared(
    corpus: Corpus,
    languages: Collection[str] | None,
    *,
    systems: Sequence[str],
    size: int | None,
    seed: str,
    message: str,
    reference: str = "",
    leave_out: Collection[str] = frozenset(),
) -> list[Sample]:
    """Draw a sample for each language that has messages to compare, without changing the database.

    systems: file of each system, as in systems_of
    size: number of messages per language; None for all
    message: field that holds the message
    reference: field that holds the reference reply; "" if there is none
    leave_out: ids of records whose messages must not be drawn, for example because they have gold answers. The
        parameters include the suggestions for these records.

    Raise CorpusError if the draw is not possible.
    """
    suggested = {name: read_suggested(path) for name, path in systems_of(systems).items()}
    joined = _joined(corpus.name, languages, suggested, message, reference, leave_out)
    _check_frame(joined, corpus.name, languages)
    lots = by_seed(seed)
    # Each message is represented by the lowest id of its records, so that all messages have the same probability, no
    # matter how many records they have.
    by_id = {code: {min(ids): ids for ids in messages.values()} for code, messages in joined.frame.items()}
    first = {
        code: drawn(messages, len(messages) if size is None else size, lots=lots, purpose=f"draw {code}")
        for code, messages in by_id.items()
    }
    chosen = {code: [key for one in keys for key in by_id[code][one]] for code, keys in first.items()}
    parameters = {"records": joined.records, "systems": _of_systems(joined, suggested)}
    of_each = {
        code: parameters | {"groups": len(keys), "frame_groups": len(by_id[code])} for code, keys in first.items()
    }
    frames = {code: sum(map(len, messages.values())) for code, messages in by_id.items()}
    samples = sample_chosen(corpus, "systems", chosen, seed=seed, frames=frames, parameters=of_each)
    wanted = [key for ids in (*chosen.values(), leave_out) for key in ids if key in joined.replies]
    samples[0].parameters[REPLIES] = {key: joined.replies[key] for key in wanted}
    return [replace(sample, asked=size or sample.parameters["frame_groups"]) for sample in samples]


def _check_frame(joined: _Joined, corpus_name: str, languages: Collection[str] | None) -> None:
    if not joined.frame:
        counts = ", ".join(f"{name} for {joined.records - number:,}" for name, number in joined.lacking.items())
        raise CorpusError(
            f"There is no message of corpus {corpus_name} for which all systems suggest a reply: of its "
            f"{joined.records:,} there are replies of {counts}. Name files of this corpus, with its messages as they "
            "were exported."
        )
    if without := [code for code in languages or () if code not in joined.frame]:
        raise CorpusError(
            f"There is no message in {without[0]} for which all systems suggest a reply; leave it out of --languages."
        )


def _of_systems(joined: _Joined, suggested: Mapping[str, Suggested]) -> dict[str, dict[str, Any]]:
    return {
        name: {
            "files": of.files,
            "lines": len(of.replies),
            "unknown": len(of.replies) - len(joined.used[name]),
            "lacking": joined.lacking[name],
            **{what: of.told[what] for what in ("none", "repeated", "fewer")},
        }
        for name, of in suggested.items()
    }


def _joined(
    corpus_name: str,
    languages: Collection[str] | None,
    suggested: Mapping[str, Suggested],
    message: str,
    reference: str,
    leave_out: Collection[str],
) -> _Joined:
    joined = _Joined(lacking=Counter(dict.fromkeys(suggested, 0)))
    for record in declared_records(corpus_name, languages, [name for name in (message, reference) if name]):
        joined.records += 1
        fields, code = record["fields"], record["language"]
        keys = {
            name: of.key_of(code, fields[message], fields[reference] if reference else "")
            for name, of in suggested.items()
        }
        for name, key in keys.items():
            if key is None:
                joined.lacking[name] += 1
            else:
                joined.used[name].add(key)
        found = {name: list(suggested[name].replies[key]) for name, key in keys.items() if key is not None}
        if len(found) == len(suggested):
            joined.replies[record["id"]] = found
            joined.frame[code][compared(fields[message])].append(record["id"])
        if record["id"] in leave_out:
            joined.left_out.add((code, compared(fields[message])))
    for code, text in joined.left_out:
        joined.frame[code].pop(text, None)
    joined.frame = {code: messages for code, messages in joined.frame.items() if messages}
    return joined
