"""A quality control plug-in: a share of the units is shown to a second person, who does not know this."""

from typing import Any

from django.db.models import F

from annotate.core.estimation.proportions import proportion
from annotate.core.option import Option, whole_number
from annotate.kinds.control import Panel, QualityControl
from annotate.models import Judgment, Task
from annotate.reports.tables import estimated, numbered, table

EVERY = Option(
    "second_every",
    whole_number,
    default=50,
    off=0,
    help="one unit in so many is shown to a second person; 0: none",
    group="Answers to labels",
    fixed=True,
)
COLUMNS = [numbered("read", "read twice"), numbered("same", "same answer"), estimated("agreement", "share")]


class SecondReader(QualityControl):
    """Two people answer the same unit independently. Their agreement shows how reliable the labels are."""

    name = "second reader"
    options = (EVERY,)
    switches = (EVERY.name,)
    look_at = "audit"
    manifest_key = "second_reader"

    def units_added(self, task: Task, first: int) -> int:
        every = task.options[EVERY.name]
        # The first unit is drawn with the task's secret, so the order of units does not reveal the second readings.
        begin = int(task.lots("second reader", "begin"), 16) % every
        added = task.units.work().queued().filter(position__gte=first)
        added.alias(place=F("position") % every).filter(place=begin).update(redundancy=F("redundancy") + 1)
        return 0

    def panel(self, task: Task, results: dict[str, Any]) -> Panel:
        if not results["read"]:
            return Panel("Second readers", key="second_reader", data=results, empty="No unit has two answers yet.")
        words = [f"Two people read {results['read']} units and gave the same answer to {results['same']}."]
        return Panel("Second readers", words, [table("", COLUMNS, [results])], results, key="second_reader")

    def section(self, task: Task) -> dict[str, Any]:
        pairs = [labels for labels in self._answers(task).values() if len(labels) > 1]
        same = sum(first == second for first, second, *_ in pairs)
        return {
            "every": task.options[EVERY.name],
            "read": len(pairs),
            "same": same,
            "agreement": proportion(same, len(pairs)).as_dict(),
        }

    def columns(self, task: Task) -> dict[str, dict[int, str]]:
        return {"second_label": {unit: labels[1] for unit, labels in self._answers(task).items() if len(labels) > 1}}

    def _answers(self, task: Task) -> dict[int, list[str]]:
        """Return the valid answers of each unit, in the order in which they were given."""
        answers: dict[int, list[str]] = {}
        units = task.units.work().order_by()
        rows = Judgment.objects.live().answers().filter(unit__in=units).order_by("pk")
        for unit, label in rows.values_list("unit_id", "label"):
            answers.setdefault(unit, []).append(label)
        return answers


CONTROL = SecondReader()
