"""The draw of messages for which people say which of two systems' replies they would rather send.

Drawn are records for which every system suggests something, so that all pairs of systems are compared on the same
messages. What each suggests goes with the draw into the units.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from annotate.core.lottery import by_seed, drawn
from annotate.kinds.forms import pair
from corpora.core.errors import CorpusError
from corpora.declared import declared_records
from corpora.draw import Sample, sample_chosen
from corpora.files import unpacked
from corpora.models import Corpus
from corpora.suggested import Key, Suggested, read_suggested

# What a draw's parameters call what the systems suggest (id -> system -> replies), which is not kept with the draw.
REPLIES = "replies"
Replies = Mapping[str, Mapping[str, list[str]]]


def systems_of(given: Sequence[str]) -> dict[str, Path]:
    """Name of a system -> its file or folder, in the order of the names. CorpusError for names that cannot be.

    given: NAME=FILE each, or the file alone, whose name without its ending is the system's.
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
    """What the systems suggest for the records of a corpus. frame: language -> ids of those for which all of them do;
    replies: id -> system -> replies, of these and of those left out of the frame; lacking: system -> records for which
    it has none; used: system -> keys of its lines that have a record.
    """

    frame: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
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
    """One sample for each language in which there is something to ask, or CorpusError. It only reads files.

    systems: as systems_of reads them. size: messages of each language; None is all. message, reference: the fields of
    the records that have them, the second empty if none has. leave_out: ids of records that are in no frame, such as
    those whose answer is known; what the systems suggest for them is in the parameters too.
    """
    suggested = {name: read_suggested(path) for name, path in systems_of(systems).items()}
    joined = _joined(corpus.name, languages, suggested, message, reference, leave_out)
    if not joined.frame:
        told = ", ".join(f"{name} for {joined.records - joined.lacking[name]:,}" for name in suggested)
        raise CorpusError(
            f"There is no message of corpus {corpus.name} for which all systems suggest a reply: of its "
            f"{joined.records:,} there are replies of {told}. Name files of this corpus, with its messages as they "
            "were exported."
        )
    if without := [code for code in languages or () if code not in joined.frame]:
        raise CorpusError(
            f"There is no message in {without[0]} for which all systems suggest a reply; leave it out of --languages."
        )
    chosen = {
        code: drawn(ids, len(ids) if size is None else size, lots=by_seed(seed), purpose=f"draw {code}")
        for code, ids in joined.frame.items()
    }
    parameters = {
        "records": joined.records,
        "systems": {
            name: {
                "files": of.files,
                "lines": len(of.replies),
                "unknown": len(of.replies) - len(joined.used[name]),
                "lacking": joined.lacking[name],
                **{what: of.told[what] for what in ("none", "repeated", "fewer")},
            }
            for name, of in suggested.items()
        },
    }
    samples = sample_chosen(
        corpus,
        "systems",
        chosen,
        seed=seed,
        frames={code: len(ids) for code, ids in joined.frame.items()},
        parameters={code: dict(parameters) for code in chosen},
    )
    wanted = [key for ids in (*chosen.values(), leave_out) for key in ids if key in joined.replies]
    samples[0].parameters[REPLIES] = {key: joined.replies[key] for key in wanted}
    return [replace(sample, asked=size or sample.asked) for sample in samples]


def _joined(
    corpus_name: str,
    languages: Collection[str] | None,
    suggested: Mapping[str, Suggested],
    message: str,
    reference: str,
    leave_out: Collection[str],
) -> _Joined:
    joined = _Joined()
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
            if record["id"] not in leave_out:
                joined.frame[code].append(record["id"])
    return joined
