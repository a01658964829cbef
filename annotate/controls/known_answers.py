"""Records whose answer is known: hidden among the work to tell how people do, and asked in a test before they begin."""

from annotate.kinds.control import QualityControl, register
from annotate.models import Task
from annotate.work.pausing import pause_if_failing
from annotate.work.permit import Permit


class GoldAnswers(QualityControl):
    name = "gold answers"
    inputs = ("gold", "gold_column")

    def applies(self, task: Task) -> bool:
        return bool(task.gold_share)

    def pauses(self, permit: Permit) -> bool:
        return pause_if_failing(permit)


class QualificationTest(QualityControl):
    name = "test"

    def applies(self, task: Task) -> bool:
        return bool(task.test_items)


register(GoldAnswers())
register(QualificationTest())
