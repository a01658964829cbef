"""Which of two systems stands first for whom: drawn by lot, kept when a unit is shown (quality/sides.py)."""

from collections.abc import Sequence

from annotate.kinds import Answer
from annotate.kinds.compared_draw import Replies
from annotate.kinds.control import QualityControl, register
from annotate.kinds.preferences import compared, labels_of
from annotate.models import Annotator, Comparison, GoldAnswer, Task, Unit
from annotate.quality import sides
from annotate.quality.gold_answers import GoldAnswerError
from corpora.database.bulk_rows import insert


class Sides(QualityControl):
    name = "sides"
    look_at = "preferences"

    def gold_stored(self, task: Task, suggested: Replies) -> None:
        _compare_known(task, suggested)

    def shown(self, unit: Unit, annotator: Annotator) -> None:
        sides.keep_side(unit, annotator)

    def stored(self, answer: Answer, unit: Unit, annotator: Annotator) -> Answer:
        return sides.stored(answer, unit, annotator)

    def seen(self, annotator: Annotator, said: Sequence[tuple[Unit, str]]) -> list[str]:
        return sides.seen(annotator, said)


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
