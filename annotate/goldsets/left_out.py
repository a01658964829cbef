"""Why a unit is not in the exported set, and what the file of left-out units says of it."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from annotate.core import stages
from annotate.kinds import Kind
from annotate.kinds.designs import Design
from annotate.models import Judgment, Task, Transition, Unit
from corpora.models import Item, same

EXAMPLE, GOLD_ANSWER, UNFINISHED = "guidelines", "gold_answer", "unfinished"
NO_LABEL, OTHER_LABEL, NO_CLASS, NOT_NEEDED = "without_label", "other_label", "no_class", "not_needed"
# The reasons in words, for the card.
REASONS = {
    "no_majority": "the answers give no label",
    "skipped": "too many people could not tell",
    "adjudicator": "an adjudicator could not tell either",
    "manager": "a manager left it out, since its text is broken or names a person",
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
}
# The fewest letters and digits by which a record is recognised in guidelines, which may well say "cheap flights"
# without quoting a record.
LEAST_LETTERS = 20
# Thai and Lao, Myanmar, Khmer, Kana, Han: scripts without spaces between words.
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


@dataclass(frozen=True)
class LeftOut:
    """Why units of a task are left out. known: unit -> the reason, whatever people said of it (GOLD_ANSWER,
    EXAMPLE). in_sets: the ids in balanced sets; None where a set has no such.
    """

    kind: Kind
    design: Design
    known: Mapping[int, str]
    in_sets: Collection[str] | None = None

    def reason(self, unit: Unit, moves: Sequence[Transition] = ()) -> str:
        """Why a unit is not in the set; empty if it is. If it is a copy, the caller has read its original. moves: of
        the original; a unit with a label needs none.
        """
        judged = unit.copy_of or unit
        if unit.pk in self.known:
            return self.known[unit.pk]
        if not judged.label:
            return _undecided(judged, moves) if self.kind.tells_why else NO_LABEL
        if not self.design.in_set({"label": judged.label, "asked": unit.asked}):
            return OTHER_LABEL
        if self.in_sets is None:
            return ""
        if judged.label in self.kind.answers:
            return NO_CLASS
        return "" if unit.item.key in self.in_sets else NOT_NEEDED

    def others(self, units: Iterable[Unit]) -> Iterator[Unit]:
        """Those of the units that are in the set. units: with items and originals."""
        return (unit for unit in units if (unit.copy_of or unit).label and not self.reason(unit))


def known_of(task: Task, units: Iterable[Unit]) -> dict[int, str]:
    """Unit -> why its label was known to somebody, where it was. units: the exported ones, with their items."""
    if "gold answers" not in task.kind.protections:
        return {}
    was_told = _known(task)
    return {unit.pk: reason for unit in units if (reason := was_told(unit.item))}


def only_id(reason: str) -> bool:
    """Whether the file of left-out units says no more of one than its id and the reason: its answer is known, and
    nothing may tell it.
    """
    return reason in (GOLD_ANSWER, EXAMPLE)


def adjudicators_words(row: Any) -> str | None:
    """What the adjudicator who discarded the unit wrote, which may quote the record. row: a Source of export.py."""
    said = [each.reason for each in row.judgments if each.kind == Judgment.DISCARD and each.voided_at is None]
    return said[-1] if said and row.export.with_text else None


def _undecided(judged: Unit, moves: Sequence[Transition]) -> str:
    """Why a unit has no label, judged by what people did."""
    if judged.stage != stages.DISCARDED:
        return UNFINISHED
    return DISCARDED_BY[moves[-1].event]


def _known(task: Task) -> Callable[[Item], str]:
    """The reason why an item's label was told to somebody, or none.

    Opening a task takes care of its gold answers, but more may have been added since, and guidelines change.
    """
    answers = {same(answer.item) for answer in task.gold_answers.select_related("item")}
    texts = [f" {_words(text)} " for text in task.guidelines.order_by("pk").values_list("text", flat=True)]

    def reason(item: Item) -> str:
        if same(item) in answers:
            return GOLD_ANSWER
        values = list(filter(None, map(_words, item.fields.values() or [item.text])))
        long_enough = sum(map(len, values)) - sum(value.count(" ") for value in values) >= LEAST_LETTERS
        quoted = long_enough and any(all(f" {value} " in text for value in values) for text in texts)
        return EXAMPLE if quoted else ""

    return reason


def _words(text: str) -> str:
    """Only the letters and digits: Markdown marks, quotes and line breaks are not part of an example.

    Single spaces separate words, or single characters if the script has no spaces.
    """
    return " ".join(re.sub(r"[\W_]+", " ", UNSPACED.sub(r" \g<0> ", text.casefold())).split())
