"""The draw of messages for comparisons of two systems' replies.

A message is in the frame only if every system suggests a reply to it, so that all pairs of systems are compared on the
same messages. Records with the same message are drawn together, because their suggestions can differ.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from annotate.core.draws.hash_order import by_seed, draw_sample
from annotate.kinds.forms.choice import check_system
from corpora.core import CorpusError
from corpora.draws.samples import Sample, sample_chosen
from corpora.models import Corpus
from corpora.sources.compression import unpacked
from corpora.storage.inventory import declared_records
from corpora.threads.messages import comparison_key
from corpora.threads.pair_sets import Key, SuggestedReplies, read_suggested

# The key of the suggestions in the drawn sample's parameters. They are stored with the units, not with the draw.
REPLIES = "replies"
Replies = Mapping[str, Mapping[str, list[str]]]  # id -> system -> replies


def systems_of(arguments: Sequence[str]) -> dict[str, Path]:
    """Return each system's file or folder, sorted by the systems' names.

    arguments: values such as `NAME=FILE`. A plain `FILE` names the system after the file.

    Raise CorpusError if a name is invalid or used twice, or if there are fewer than two systems.
    """
    files: dict[str, Path] = {}
    for argument in arguments:
        name, sign, path = argument.partition("=")
        if not sign or Path(argument).exists():
            name, path = unpacked(Path(argument)).stem, argument
        try:
            check_system(name)
        except ValueError as error:
            raise CorpusError(f"--systems {argument}: {error} Write the name before the file: NAME=FILE.") from error
        if name in files:
            raise CorpusError(
                f"--systems has two systems named {name}. Write different names before the files: NAME=FILE."
            )
        files[name] = Path(path)
    if len(files) < 2:
        raise CorpusError("--systems names only one system. Name two or more systems to compare.")
    return dict(sorted(files.items()))


@dataclass
class _Join:
    """The systems' suggestions, joined with the records of a corpus.

    frame: ids of the records with suggestions from all systems, as a mapping from language to message to ids
    left_out: (language, message) pairs that are left out of the frame
    replies: suggestions for each record that all systems suggest replies to, as a mapping from id to system to replies
    lacking: number of records without suggestions, by system
    used: keys of the lines that match a record, by system
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

    The first sample's parameters contain the suggestions (REPLIES) for the drawn records and those in leave_out.

    systems: file of each system, as in systems_of
    size: number of messages per language; None for all
    message: field with the message
    reference: field with the reference reply; "" if there is none
    leave_out: ids of records whose messages must not be drawn, for example because they have gold answers

    Raise CorpusError if the draw is not possible.
    """
    suggested = {name: read_suggested(path) for name, path in systems_of(systems).items()}
    joined = _join_suggestions(corpus.name, languages, suggested, message, reference, leave_out)
    _check_frame(joined, corpus.name, languages)
    lots = by_seed(seed)
    # Let the lowest record id stand for each message. All messages then have the same probability, however many records
    # they have.
    by_id = {code: {min(ids): ids for ids in messages.values()} for code, messages in joined.frame.items()}
    drawn_keys = {
        code: draw_sample(messages, len(messages) if size is None else size, lots=lots, purpose=f"draw {code}")
        for code, messages in by_id.items()
    }
    record_ids = {
        code: [key for lowest_id in keys for key in by_id[code][lowest_id]] for code, keys in drawn_keys.items()
    }
    parameters = {"records": joined.records, "systems": _system_parameters(joined, suggested)}
    language_parameters = {
        code: parameters | {"groups": len(keys), "frame_groups": len(by_id[code])} for code, keys in drawn_keys.items()
    }
    frames = {code: sum(map(len, messages.values())) for code, messages in by_id.items()}
    samples = sample_chosen(corpus, "systems", record_ids, seed=seed, frames=frames, parameters=language_parameters)
    shown_ids = [key for ids in (*record_ids.values(), leave_out) for key in ids if key in joined.replies]
    samples[0].parameters[REPLIES] = {key: joined.replies[key] for key in shown_ids}
    return [replace(sample, asked=size or sample.parameters["frame_groups"]) for sample in samples]


def _check_frame(joined: _Join, corpus_name: str, languages: Collection[str] | None) -> None:
    if not joined.frame:
        counts = ", ".join(f"{name} {joined.records - number:,}" for name, number in joined.lacking.items())
        raise CorpusError(
            f"Corpus {corpus_name} has no message for which all systems suggest a reply. Records with replies, of "
            f"{joined.records:,}: {counts}. Use files for this corpus, with its messages exactly as exported."
        )
    if lacking := [code for code in languages or () if code not in joined.frame]:
        raise CorpusError(
            f"No message in {lacking[0]} has replies from all systems. Remove {lacking[0]} from --languages."
        )


def _system_parameters(joined: _Join, suggested: Mapping[str, SuggestedReplies]) -> dict[str, dict[str, Any]]:
    return {
        name: {
            "files": suggestions.files,
            "lines": len(suggestions.replies),
            "unknown": len(suggestions.replies) - len(joined.used[name]),
            "lacking": joined.lacking[name],
            **{count: suggestions.counts[count] for count in ("none", "repeated", "fewer")},
        }
        for name, suggestions in suggested.items()
    }


def _join_suggestions(
    corpus_name: str,
    languages: Collection[str] | None,
    suggested: Mapping[str, SuggestedReplies],
    message: str,
    reference: str,
    leave_out: Collection[str],
) -> _Join:
    joined = _Join(lacking=Counter(dict.fromkeys(suggested, 0)))
    for record in declared_records(corpus_name, languages, [name for name in (message, reference) if name]):
        joined.records += 1
        fields, code = record["fields"], record["language"]
        keys = {
            name: suggestions.key_of(code, fields[message], fields[reference] if reference else "")
            for name, suggestions in suggested.items()
        }
        for name, key in keys.items():
            if key is None:
                joined.lacking[name] += 1
            else:
                joined.used[name].add(key)
        replies = {name: list(suggested[name].replies[key]) for name, key in keys.items() if key is not None}
        if len(replies) == len(suggested):
            joined.replies[record["id"]] = replies
            joined.frame[code][comparison_key(fields[message])].append(record["id"])
        if record["id"] in leave_out:
            joined.left_out.add((code, comparison_key(fields[message])))
    for code, text in joined.left_out:
        joined.frame[code].pop(text, None)
    joined.frame = {code: messages for code, messages in joined.frame.items() if messages}
    return joined
