"""Checks of people who decide alone: an adjudicator decides a share of their units again, blind (quality/checks.py)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from django.db import transaction

from annotate.core import stages
from annotate.core.refusals import WrongStage
from annotate.figures.finish_forecast import checks_expected
from annotate.kinds.control import Panel, QualityControl, register
from annotate.models import Task, Unit
from annotate.quality import checks
from annotate.quality.audit_report import NO_SECOND, adjudicator_words, check_table, reader_words
from annotate.work.closure import check_languages, locked_open, units_of, where
from annotate.work.moves import PLAIN, moved, save_all
from annotate.work.routing import is_audit


@transaction.atomic
def add_checks(task: Task, number: int, languages: Collection[str] = ()) -> dict[str, int]:
    """Have an adjudicator decide `number` more units again, or all there are, of those that one reader decides or has
    decided. Returns how many by queue.

    languages: first queues, among which they are shared out as audits are; empty for all. NotFound for a language in
    whose queue no unit asked one reader, WrongStage for a closed task or where nothing is left.
    """
    task = locked_open(task, checks.asked_of_one(task).filter(recheck=False))
    queues = checks.check_counts(task)
    check_languages(languages, queues, f"One reader decides no unit of task {task.name}", "that is so")
    found = checks.choose_more(task, number, languages)
    if not found:
        raise WrongStage(
            f"No check can be added to task {task.name}: nothing{where(languages)} that one reader decides is "
            "unchecked."
        )
    units = units_of(task, found)
    of_one = set(task.units.filter(checks.is_alone(), pk__in=[unit.pk for unit in units]).values_list("pk", flat=True))
    transitions = []
    for unit in units:
        unit.recheck = True
        if unit.stage == stages.LABELLED and unit.pk in of_one:
            transitions.append(moved(unit, "checked", stages.ADJUDICATION, of=PLAIN))
    save_all(units, transitions, ["recheck", "stage", "label"])
    return {queue: len(of_one.intersection(units)) for queue, units in found.items()}


class Checks(QualityControl):
    """Of units that one reader decides a share is decided again by an adjudicator who does not see the answer."""

    name = "checks"
    manifest_key = "checks"

    def section(self, task: Task) -> Any:
        return checks.report(task)

    def panel(self, task: Task) -> Panel:
        found = checks.report(task)
        alone = [NO_SECOND] if checks.unseconded(task, checks.adjudicators().count()) else []
        words = [*reader_words(found), *adjudicator_words(found), *alone]
        heading = "Checks of people who decide alone"
        return Panel(heading, words, [check_table(found)], found, "checks", page="explanation/audit")

    def expected(self, task: Task) -> Mapping[str, Any]:
        return {"checks": checks_expected(task)}

    def before_units(self, task: Task) -> Any:
        return checks.check_counts(task) if checks.has_checks(task) else {}

    def units_added(self, task: Task, first: int, before: Any) -> int:
        checks.choose_checks_of_new(task, first, before)
        return 0

    def queued(self, task: Task, units: Iterable[Unit], event: str) -> None:
        if event != "audited":  # which have rechecks of their own
            checks.choose_checks(task, units)

    def decided(self, unit: Unit, answers: Sequence[str], label: str | None) -> tuple[str, str, str] | None:
        # What a second reader has confirmed is not checked again.
        if unit.recheck and len(answers) == 1 and not is_audit(unit):
            return "checked", stages.ADJUDICATION, ""
        return None


register(Checks())
