"""Which of two systems stands first for whom: drawn by lot, kept when a unit is shown (quality/sides.py)."""

from collections.abc import Sequence

from annotate.kinds import Answer
from annotate.kinds.control import QualityControl, register
from annotate.models import Annotator, Unit
from annotate.quality import sides


class Sides(QualityControl):
    name = "sides"
    look_at = "preferences"

    def shown(self, unit: Unit, annotator: Annotator) -> None:
        sides.keep_side(unit, annotator)

    def stored(self, answer: Answer, unit: Unit, annotator: Annotator) -> Answer:
        return sides.stored(answer, unit, annotator)

    def seen(self, annotator: Annotator, said: Sequence[tuple[Unit, str]]) -> list[str]:
        return sides.seen(annotator, said)


register(Sides())
