"""Why a unit is not in the exported set, and what the file of left-out units says of it."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from annotate.controls.known_answers import EXAMPLE, GOLD_ANSWER
from annotate.core import stages
from annotate.goldsets.unit_rows import Lists, Units, each, live
from annotate.kinds import Kind
from annotate.kinds.designs import Design
from annotate.models import Judgment

UNFINISHED, CLOSED = "unfinished", "closed"
NO_LABEL, OTHER_LABEL, NO_CLASS, NOT_NEEDED = "without_label", "other_label", "no_class", "not_needed"
# The reasons in words, for the card.
REASONS = {
    "no_majority": "the answers give no label",
    "skipped": "too many people could not tell",
    "adjudicator": "an adjudicator could not tell either",
    "manager": "a manager left it out, since its text is broken or names a person",
    CLOSED: "had no label when a manager closed the task",
    GOLD_ANSWER: "says the same as a gold answer of the task",
    EXAMPLE: "is an example of the guidelines",
    UNFINISHED: "waits for people",
    NO_LABEL: "has no label",
    OTHER_LABEL: "is outside the population that the set is a sample of",
    NO_CLASS: "is of none of the classes",
    NOT_NEEDED: "is one more of its class than the sets need",
}
# The move by which a unit was discarded -> why.
DISCARDED_BY = {
    "conflicted": "no_majority",
    "exhausted": "skipped",
    "discarded": "adjudicator",
    "withdrawn": "manager",
    "left_out": CLOSED,
}


@dataclass(frozen=True)
class LeftOut:
    """Why units of a task are left out. known: unit -> the reason, whatever people said of it (GOLD_ANSWER,
    EXAMPLE). in_sets: the ids in balanced sets; None where a set has no such.
    """

    kind: Kind
    design: Design
    known: Mapping[int, str]
    in_sets: Collection[str] | None = None

    def reasons(self, units: Units, moved: Lists | None = None) -> pa.Array:
        """Why each unit is not in the set; empty if it is. moved: the moves of what is judged, without which it is not
        told why something was discarded.
        """
        last = moved.last("event") if moved else pa.nulls(units.own.num_rows, pa.string())
        found = each(self._reason, pa.string(), units.own["asked"], units.judged["label"], units.judged["stage"], last)
        if self.in_sets is not None:
            needed = pa.array([key in self.in_sets for key in units.own["item__key"].to_pylist()], pa.bool_())
            found = pc.if_else(pc.and_(pc.equal(found, ""), pc.invert(needed)), NOT_NEEDED, found)
        if self.known:
            known = pa.array(map(self.known.get, units.own["pk"].to_pylist()), pa.string())
            found = pc.coalesce(known, found)
        return found

    def _reason(self, asked: str, label: str, stage: str, event: str | None) -> str:
        if not label:
            if self.kind.publication.tells_why:
                return _undecided(stage, event)
            return CLOSED if stage == stages.DISCARDED and event == "left_out" else NO_LABEL
        if not self.design.sets.includes({"label": label, "asked": asked}):
            return OTHER_LABEL
        return NO_CLASS if self.in_sets is not None and label in self.kind.answers else ""

    def others(self, some: Iterable[Units]) -> Iterator[Units]:
        """Those of the units that are in the set."""
        for units in some:
            in_set = pc.equal(self.reasons(units), "")
            yield Units(units.own.filter(in_set), units.judged.filter(in_set))


def only_id(reason: str) -> bool:
    """Whether the file of left-out units says no more of one than its id and the reason: its answer is known, and
    nothing may tell it.
    """
    return reason in (GOLD_ANSWER, EXAMPLE)


def adjudicators_words(rows: Any) -> pa.Array:
    """What the adjudicator who discarded each unit wrote, which may quote the record. rows: a Source of export.py."""
    if not rows.export.with_text:
        return pa.nulls(rows.own.num_rows, pa.string())
    return rows.said.marked(live(rows.said, Judgment.DISCARD)).last("reason")


def _undecided(stage: str, event: str | None) -> str:
    """Why a unit has no label, by its stage and its last move."""
    if stage != stages.DISCARDED:
        return UNFINISHED
    return DISCARDED_BY[event] if event else NO_LABEL
