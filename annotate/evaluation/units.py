"""The units of an exported set whose answers are one label each, read so that any system can be measured on them."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from annotate.core.answers import Floats, Ints
from annotate.evaluation.given import EvaluationError
from annotate.goldsets.columns import COLUMNS
from annotate.goldsets.edits import differing
from annotate.goldsets.manifest import RESTORE, GoldSetError, get, manifest_of

# Values of a field by which units are sliced: more are no slices, but texts or names.
MOST_SLICES = 20
LANGUAGE, PEOPLE, STRATUM = "language", "people", "stratum"


@dataclass(frozen=True)
class Units:
    """Units with a gold label each; the lists and arrays have one element for each unit, (n,).

    form: what an answer is, a name of kinds/forms. labels: those of the task, grades best first. ids, gold: ids and
    gold labels. chances: with which each was drawn from the corpus; weights: how many units each stands for, 1 where
    that is the least. groups: the place of the
    group of units that were drawn together, None where each was drawn by itself. slices: name of a slice, such as
    `language` -> the value of each unit, "" for none. votes: label -> the share of people's answers, {} where nobody
    answered; answers: person -> label. texts: what people read, {} where the licence keeps it.
    """

    folder: Path
    name: str
    corpus: str
    finished: bool
    digest: str
    manifest: Mapping[str, Any]
    form: str
    labels: Sequence[str]
    ids: Sequence[str]
    gold: Sequence[str]
    chances: Floats
    weights: Floats
    groups: Ints | None
    slices: Mapping[str, Sequence[str]]
    votes: Sequence[Mapping[str, float]]
    answers: Sequence[Mapping[str, str]]
    texts: Sequence[Mapping[str, str]]

    def described(self) -> dict[str, Any]:
        """What a report says of the set."""
        return {
            "name": self.name,
            "folder_name": self.folder.resolve().name,
            "rows": len(self.ids),
            "finished": self.finished,
            "digest": self.digest,
        }


def read_units(folder: Path, *, unfinished: bool, split: str = "") -> Units:
    """The units of the set in a folder, or of one split of it. GoldSetError if it is not as it was written,
    EvaluationError if nothing can be measured on it."""
    try:
        return _read(folder, unfinished, split)
    except OSError as error:
        raise GoldSetError(f"{error.filename or folder} cannot be read: {error.strerror}.") from error


def _read(folder: Path, unfinished: bool, split: str) -> Units:
    manifest, place = manifest_of(folder), folder / "manifest.json"
    task, finished = get(place, manifest, "task", dict), get(place, manifest, "finished", bool)
    form, name = get(place, task, "form", str), get(place, task, "name", str)
    if not (finished or unfinished):
        raise EvaluationError(
            f"The gold set {name} in {folder} is unfinished: records that still wait for people are missing from it. "
            "Export it again when it is done, or pass --unfinished to measure on it all the same."
        )
    jsonl = folder / ("gold.jsonl" if finished else "gold.unfinished.jsonl")
    changed, missing = differing(folder, get(place, manifest, "files", dict))
    for names, words in ((missing, "is missing"), (changed, "is not as it was written")):
        if names:
            raise GoldSetError(f"{folder / names[0]} {words}. {RESTORE}")
    rows = list(_rows(jsonl))
    if split:
        there = sorted({row.get("split") or "" for _, row in rows} - {""})
        rows = [each for each in rows if each[1].get("split") == split]
        if not rows:
            raise EvaluationError(
                f"The gold set {name} in {folder} has no units in the split {split}, only in: "
                f"{', '.join(there) or 'no split'}; name another with --split, or leave it out."
            )
    if not rows:
        raise EvaluationError(
            f"The gold set {name} in {folder} has no labelled record, so nothing can be measured on it; export it "
            "again when people have labelled some."
        )
    gold = [get(where, row, "label", str) for where, row in rows]
    listed = list(task["labels"])
    labels = listed + sorted(set(gold) - set(listed))
    if len(set(gold)) < 2:
        raise EvaluationError(
            f"All {len(gold):,} units of the gold set {name} in {folder} have the label {gold[0]}, so a system that "
            "always says that would be right everywhere; label units of another label too."
        )
    fields = [row for _, row in rows]
    chances = _chances(place, fields)
    together = get(place, task, "together", str)
    return Units(
        folder=folder,
        name=name,
        corpus=(manifest.get("corpus") or {}).get("name", ""),
        finished=finished,
        digest=manifest["digest"],
        manifest=manifest,
        form=form,
        labels=labels,
        ids=[get(where, row, "id", str) for where, row in rows],
        gold=gold,
        chances=chances,
        weights=chances.max() / chances,
        groups=_groups([row.get(together) for row in fields]) if together else None,
        slices=_slices(fields, together),
        votes=[_votes(row) for row in fields],
        answers=[_answers(row) for row in fields],
        texts=[{key: str(value) for key, value in row.items() if _is_text(key, value)} for row in fields],
    )


def _rows(jsonl: Path) -> Any:
    with jsonl.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            yield f"{jsonl}, line {number:,}", json.loads(line)


def _chances(place: Path, rows: Collection[Mapping[str, Any]]) -> Floats:
    """The chance of each to be drawn; 1 where it is not known."""
    chances = np.array([row.get("chance") or 1.0 for row in rows], dtype=np.float64)
    if not ((chances > 0) & (chances <= 1)).all():
        raise GoldSetError(f"{place.parent}: a row has a chance that is not above 0 and at most 1. {RESTORE}")
    return chances


def _groups(values: Sequence[Any]) -> Ints | None:
    """Units with an equal value are a group; None where the licence keeps the field."""
    if any(value is None for value in values):
        return None
    places: dict[str, int] = {}
    return np.array([places.setdefault(str(value), len(places)) for value in values], dtype=np.int64)


def _is_text(key: str, value: Any) -> bool:
    return isinstance(value, str) and (key == "text" or key not in COLUMNS)


def _slices(rows: Sequence[Mapping[str, Any]], together: str) -> dict[str, list[str]]:
    found = {}
    fields = dict.fromkeys(key for row in rows for key, value in row.items() if _is_text(key, value))
    for name in (LANGUAGE, STRATUM, *fields):
        values = [str(row.get(name) or "") for row in rows]
        if name != together and 2 <= len(set(values)) <= min(MOST_SLICES, len(rows) // 2):
            found[name] = values
    people = [_agreement(_votes(row)) for row in rows]
    if len(set(people)) > 1:
        found[PEOPLE] = people
    return found


def _votes(row: Mapping[str, Any]) -> dict[str, float]:
    return {each["label"]: each["votes"] for each in row.get("soft_labels") or () if each["votes"]}


def _answers(row: Mapping[str, Any]) -> dict[str, str]:
    said = row.get("judgments") or ()
    return {
        each["annotator"]: each["label"]
        for each in said
        if each["kind"] == "answer" and each["label"] and not each.get("voided_at")
    }


def _agreement(votes: Mapping[str, float]) -> str:
    """How far people agreed on a unit: all, most of them, or fewer."""
    most = max(votes.values(), default=0.0)
    return "" if not votes else "all agree" if len(votes) == 1 else "most agree" if most > 0.5 else "no majority"
