"""The `sides` quality control, which decides at random which of two systems an annotator sees first.

The order is drawn with the task's secret, and stored when the annotator gets the unit. Annotators see and submit sides,
but the database stores the systems' names. Only this module converts between sides and names, so annotators never
learn which system is on which side.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from django.db.models import F, FilteredRelation, Q

from annotate.controls.gold_answers import GoldAnswerError
from annotate.core.draws.committed_draws import first_of_two
from annotate.core.draws.hash_order import by_secret
from annotate.core.refusals import InvalidAnswer
from annotate.kinds import Answer, Kind
from annotate.kinds.compared_draw import Replies
from annotate.kinds.control import QualityControl, register
from annotate.kinds.forms.choice import FIRST, SECOND, TIE, Pair
from annotate.kinds.interface_language import translated
from annotate.kinds.preference_kind import compared, labels_of
from annotate.kinds.record_kind import Choice, choices
from annotate.models import Annotator, Comparison, GoldAnswer, Judgment, Side, Task, TrialAnswer, Unit
from corpora.database.bulk_rows import insert
from corpora.models import Item


@dataclass(frozen=True)
class Sides:
    """Two systems and their replies, in the order that an annotator sees them.

    form: answer form of the kind.
    first: name of the system on the first side.
    second: name of the system on the second side.
    sets: the replies of the first and of the second system.
    """

    form: Pair
    first: str
    second: str
    sets: tuple[list[str], list[str]]

    def system_answer(self, answer: Answer) -> Answer:
        """Convert a submitted answer, which names a side, to the answer to store, which names a system.

        Raise InvalidAnswer if the submitted answer is not a side.
        """
        try:
            return replace(answer, label=self.form.from_side(answer.label, self.first, self.second))
        except ValueError as error:
            raise InvalidAnswer(translated(error)) from error

    def side_of(self, label: str) -> str:
        """Convert a stored label to the side that the annotator sees."""
        return self.form.to_side(label, self.first)


def draw_first_system(task: Task, item: str, comparison: Comparison, annotator: Annotator) -> str:
    """Draw the system that an annotator sees first.

    item: item id. Anyone who has it can repeat the draw once the task's secret has been published.
    """
    return first_of_two(by_secret(task.secret), item, comparison.systems, annotator.pseudonym)


def _form(kind: Kind) -> Pair:
    assert isinstance(kind.form, Pair), "this control belongs to the form"
    return kind.form


def _sides(task: Task, comparison: Comparison, first: str) -> Sides:
    a, b = (comparison.system_a, comparison.replies_a), (comparison.system_b, comparison.replies_b)
    first_side, second_side = (a, b) if first == comparison.system_a else (b, a)
    return Sides(_form(task.kind), first_side[0], second_side[0], (first_side[1], second_side[1]))


def sides_of_question(question: TrialAnswer) -> Sides | None:
    """Return the sides of a question in a practice round or test; None if the question does not compare two systems."""
    return _sides(question.trial.task, question.gold_answer.comparison, question.first) if question.first else None


def sides_in(annotator: Annotator, units: Iterable[Unit]) -> dict[int, Sides]:
    """Return, by unit id, the order in which the annotator sees each unit's two sets of replies.

    Units without two sets of replies are left out.
    """
    units_by_control: dict[QualityControl, list[Unit]] = {}
    for unit in units:
        for control in unit.task.hooks["sides_of"]:
            units_by_control.setdefault(control, []).append(unit)
    return {
        pk: sides
        for control, control_units in units_by_control.items()
        for pk, sides in control.sides_of(annotator, control_units).items()
    }


def sides_of(annotator: Annotator, unit: Unit) -> Sides | None:
    """Return the order in which the annotator sees a unit's two sets of replies; None if the unit has no such sets."""
    return sides_in(annotator, [unit]).get(unit.pk)


def reply_sets(sides: Sides | None, item: Item, kind: Kind) -> dict[str, Any]:
    """Return the context that _record.html needs to show two sets of replies; empty if `sides` is None.

    `sets` in the context has an (answer, replies) tuple for each set, in the order that the annotator sees.
    """
    if sides is None:
        return {}
    options = {option.label: option for option in choices(kind.answers, kind.answers, item.language)}
    options_with_replies = zip((options[side] for side in (FIRST, SECOND)), sides.sets, strict=True)
    return {"sets": [(option, replies) for option, replies in options_with_replies], "set_language": item.language}


Chosen = tuple[Choice, list[str], bool]  # (answer, replies, is_chosen)


def sets_answered(judgments: Iterable[Judgment], annotator: Annotator, kind: Kind) -> list[list[Chosen]]:
    """Return the two sets of replies for each judgment, in the order that the annotator saw.

    For a unit without two sets of replies, the list is empty.
    """
    judgment_list = list(judgments)
    sides = sides_in(annotator, (judgment.unit for judgment in judgment_list))
    return [
        _mark_chosen_set(sides[judgment.unit_id], judgment, kind) if judgment.unit_id in sides else []
        for judgment in judgment_list
    ]


def _mark_chosen_set(sides: Sides, judgment: Judgment, kind: Kind) -> list[Chosen]:
    chosen_label = sides.side_of(judgment.label)
    options = reply_sets(sides, judgment.unit.item, kind)["sets"]
    return [(option, replies, option.label == chosen_label) for option, replies in options]


# In tasks with three or more systems, these categories replace the systems' names when we measure agreement. The two
# compared systems are sorted by name.
PLACES = ("first by name", "second by name", TIE)
# Invented replies of two systems, for the preview of a kind.
SETS = (["Yes, that is fine.", "Thank you!", "I will let you know."], ["No.", "Which one?", "See you then."])


class PairOrder(QualityControl):
    name = "sides"
    look_at = "preferences"
    unit_columns = {f"comparison__{name}_{which}": pa.string() for name in ("system", "replies") for which in "ab"}

    def gold_stored(self, task: Task, suggested: Replies) -> None:
        """Store the replies that the two systems suggest for practice and test questions.

        Raise GoldAnswerError if a gold answer lacks suggestions, or if the task has more than two systems.
        """
        golds = list(task.gold_answers.select_related("item").order_by("pk"))
        if golds and len(task.labels) > len(labels_of("ab")):
            raise GoldAnswerError(
                "A gold answer names the better of two systems, but the task has more than two. Remove --gold, or "
                "open a task with two systems."
            )
        if missing := [gold.item.key for gold in golds if gold.item.key not in suggested]:
            raise GoldAnswerError(
                f"Not both systems suggest a reply to the message of the gold answer {missing[0]}. Remove the gold "
                "answer."
            )
        insert(
            Comparison(gold_answer=gold, **pair._asdict())
            for gold in golds
            if gold.purpose != GoldAnswer.QUEUE
            for pair in compared(suggested[gold.item.key])
        )

    def shown(self, unit: Unit, annotator: Annotator) -> None:
        """Store which system the annotator sees first, unless the order is already stored."""
        first = draw_first_system(unit.task, unit.item.key, Comparison.objects.get(unit=unit), annotator)
        Side.objects.bulk_create([Side(unit=unit, annotator=annotator, first=first)], ignore_conflicts=True)

    def beside(self, unit: Unit, annotator: Annotator) -> dict[str, Any]:
        return reply_sets(self.sides_of(annotator, [unit]).get(unit.pk), unit.item, unit.task.kind)

    def sides_of(self, annotator: Annotator, units: Iterable[Unit]) -> dict[int, Sides]:
        """Return, by unit id, the order in which the annotator sees two sets of replies. This takes one query.

        If no order is stored yet, for example because an adjudicator hasn't decided the unit, the order is drawn. The
        same order is stored later.
        """
        units_by_key = {unit.pk: unit for unit in units}
        stored_side = FilteredRelation("unit__sides", condition=Q(unit__sides__annotator=annotator))
        sides = {}
        for comparison in Comparison.objects.filter(unit__in=units_by_key).annotate(
            own=stored_side, kept=F("own__first")
        ):
            assert comparison.unit_id is not None  # the query selects comparisons by unit
            unit = units_by_key[comparison.unit_id]
            first = comparison.kept or draw_first_system(unit.task, unit.item.key, comparison, annotator)
            sides[unit.pk] = _sides(unit.task, comparison, first)
        return sides

    def stored(self, answer: Answer, unit: Unit, annotator: Annotator) -> Answer:
        """Convert a submitted answer, which names a side, to the answer to store, which names a system.

        Raise InvalidAnswer if the submitted answer is not a side.
        """
        sides = self.sides_of(annotator, [unit]).get(unit.pk)
        return sides.system_answer(answer) if sides else answer

    def seen(self, annotator: Annotator, labelled: Sequence[tuple[Unit, str]]) -> list[str]:
        sides = self.sides_of(annotator, (unit for unit, _ in labelled))
        return [sides[unit.pk].side_of(label) if unit.pk in sides else label for unit, label in labelled]

    def invented_sides(self, kind: Kind) -> Sides:
        return Sides(_form(kind), "", "", SETS)

    def trial(self, gold: GoldAnswer, annotator: Annotator) -> Mapping[str, Any]:
        return {"first": draw_first_system(gold.task, gold.item.key, gold.comparison, annotator)}

    def judgment_columns(self) -> Sequence[tuple[str, Any, Any]]:
        return (("first", pa.string(), first_systems),)

    def places(self, task: Task) -> tuple[Sequence[str], Mapping[tuple[int, str], str]] | None:
        """If the task has three or more systems, return PLACES and the place of each (unit, system).

        Otherwise, return None, because the names of two systems can serve as categories.
        """
        if len(task.labels) <= len(PLACES):
            return None
        pairs = Comparison.objects.filter(unit__task=task).values_list("unit", "system_a", "system_b")
        return PLACES, {
            (unit, system): place
            for unit, *systems in pairs
            for system, place in zip(sorted(systems), PLACES, strict=False)
        }


def first_systems(rows: Any) -> pa.Array:
    """Return the system that the annotator saw first, for each judgment."""
    unit_keys = np.repeat(rows.judged["pk"].to_numpy(), np.diff(rows.judgments.ends)).tolist()
    sides = map(rows.export.sides.get, zip(unit_keys, rows.judgments.values["annotator"].to_pylist(), strict=True))
    return pa.array(sides, pa.string())


register(PairOrder())
