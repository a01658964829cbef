"""Which of two systems stands first for whom: drawn by lot, kept when a unit is shown (quality/sides.py)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from annotate.goldsets.form_extras import first
from annotate.goldsets.unit_rows import COMPARED
from annotate.kinds import Answer, Kind
from annotate.kinds.compared_draw import Replies
from annotate.kinds.control import QualityControl, register
from annotate.kinds.forms.pair import TIE
from annotate.kinds.preference_kind import compared, labels_of
from annotate.models import Annotator, Comparison, GoldAnswer, Task, Unit
from annotate.quality import sides
from annotate.quality.gold_answers import GoldAnswerError
from corpora.database.bulk_rows import insert

# What agreement tells apart of three systems or more: which of the two compared, by the alphabet, or neither.
PLACES = ("first by name", "second by name", TIE)
# What two systems suggest, in a preview.
SETS = (["Yes, that is fine.", "Thank you!", "I will let you know."], ["No.", "Which one?", "See you then."])


class Sides(QualityControl):
    name = "sides"
    look_at = "preferences"
    unit_columns = COMPARED

    def gold_stored(self, task: Task, suggested: Replies) -> None:
        _compare_known(task, suggested)

    def shown(self, unit: Unit, annotator: Annotator) -> None:
        sides.keep_side(unit, annotator)

    def stored(self, answer: Answer, unit: Unit, annotator: Annotator) -> Answer:
        return sides.stored(answer, unit, annotator)

    def seen(self, annotator: Annotator, said: Sequence[tuple[Unit, str]]) -> list[str]:
        return sides.seen(annotator, said)

    def sides_of(self, annotator: Annotator, units: Iterable[Unit]) -> Mapping[int, sides.Sides]:
        return sides.sides_in(annotator, units)

    def invented_sides(self, kind: Kind) -> sides.Sides:
        return sides.Sides(kind.form, "", "", SETS)

    def trial(self, gold: GoldAnswer, annotator: Annotator) -> Mapping[str, Any]:
        return {"first": sides.drawn(gold.task, gold.item.key, gold.comparison, annotator)}

    def judgment_columns(self) -> Sequence[tuple[str, Any, Any]]:
        return (("first", pa.string(), first),)

    def places(self, task: Task) -> tuple[Sequence[str], Mapping[tuple[int, str], str]] | None:
        """Of tasks that compare three systems or more. Two are told apart by their names, which are their places."""
        if len(task.labels) <= len(PLACES):
            return None
        compared = Comparison.objects.filter(unit__task=task).values_list("unit", "system_a", "system_b")
        return PLACES, {
            (unit, system): place
            for unit, *systems in compared
            for system, place in zip(sorted(systems), PLACES, strict=False)
        }


def _compare_known(task: Task, replies: Replies) -> None:
    """What the two systems suggest for the gold answers of a task. GoldAnswerError where that is not known of one."""
    golds = list(task.gold_answers.select_related("item").order_by("pk"))
    if golds and len(task.labels) > len(labels_of("ab")):
        raise GoldAnswerError(
            "A gold answer names the better of two systems, and the task has more than two; leave --gold out, or open "
            "a task of two systems."
        )
    if lacking := [gold.item.key for gold in golds if gold.item.key not in replies]:
        raise GoldAnswerError(
            f"The gold answer of {lacking[0]}: not both systems suggest a reply to its message. Leave it out."
        )
    insert(
        Comparison(gold_answer=gold, **pair._asdict())
        for gold in golds
        if gold.purpose != GoldAnswer.QUEUE
        for pair in compared(replies[gold.item.key])
    )


register(Sides())
