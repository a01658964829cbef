"""Checks measure how often readers and adjudicators are wrong about units that they label alone.

An adjudicator labels a random sample of these units again, without seeing the first label. The sample for readers is
drawn when units enter a queue, and the sample for adjudicators when an adjudicator decides a unit (is_seconded).
check_report.py counts and presents the results.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Count

from annotate.controls.check_report import (
    CHECK_LEAST,
    NO_SECOND,
    adjudicator_words,
    as_audit,
    check_counts,
    check_table,
    has_single_answer,
    lacks_second_adjudicator,
    reader_words,
    report,
    single_reader_units,
)
from annotate.core import stages
from annotate.core.draws import hash_order
from annotate.core.draws.committed_draws import CHECK, NOBODY, SECOND, Line
from annotate.core.estimation.label_errors import additional_units, neyman_allocation
from annotate.core.refusals import WrongStage
from annotate.kinds.control import Panel, QualityControl, register
from annotate.models import Judgment, Lot, Task, Transition, Unit
from annotate.quality import commitments
from annotate.quality.commitments import draw_line
from annotate.work.adjudication import adjudicators
from annotate.work.closure import check_languages, locked_open, units_of, where
from annotate.work.moves import PLAIN, apply_move, is_audit, save_all
from corpora.database.bulk_rows import listed


def has_checks(task: Task) -> bool:
    return task.redundancy == 1 and task.check_share > 0


def is_seconded(task: Task, key: str) -> bool:
    """Return whether a unit that an adjudicator has decided needs a second adjudicator's decision.

    key: id of the unit's item. The random draw depends only on this id and the task's secret.
    """
    return task.check_share > 0 and hash_order.is_drawn(task.check_share, lots=task.lots, purpose=SECOND, key=key)


def choose_more(task: Task, number: int, queues: Collection[str] = ()) -> dict[str, list[int]]:
    """Draw more units to check. The draw continues where the last one ended.

    Units that a second person has labelled in the meantime can be drawn too, because all units in a queue must have
    the same probability of being drawn. They do not count towards `number`.

    number: how many units labelled by a single reader to draw; if fewer are left, all are drawn.
    queues: draw only units that entered one of these queues first; empty for all.

    Return the keys of the drawn units by queue.
    """
    units: dict[str, dict[str, tuple[int, bool]]] = {}
    unchecked = single_reader_units(task).filter(recheck=False)
    unchecked = unchecked.filter(visited__0__in=queues) if queues else unchecked
    rows = (
        unchecked.order_by().annotate(alone=has_single_answer()).values_list("visited__0", "item__key", "pk", "alone")
    )
    for queue, key, unit, alone in rows:
        units.setdefault(queue, {})[key] = unit, alone
    results = {row["language"]: row for row in report(task)["languages"]}
    sizes = {queue: sum(alone for _, alone in by_key.values()) for queue, by_key in units.items()}
    shares = neyman_allocation(
        number, {queue: (size, as_audit(results[queue])) for queue, size in sizes.items() if size}
    )
    chosen = {}
    for queue, wanted in shares.items():
        by_key = units[queue]
        order = hash_order.draw_sample(by_key, len(by_key), lots=task.lots, purpose=CHECK)
        until = [index for index, key in enumerate(order, 1) if by_key[key][1]][wanted - 1]
        chosen[queue] = [by_key[key][0] for key in commitments.draw_ids(task, CHECK, [queue], by_key, until)]
    return chosen


def _allot_checks(
    task: Task, earlier_counts: Mapping[str, tuple[int, int]], added: Mapping[str, int]
) -> dict[str, int]:
    """Return how many of the added units to check, by queue.

    earlier_counts: result of `check_counts` without the added units.
    added: number of added units by queue.
    """
    counts = {queue: numbers for queue, numbers in earlier_counts.items() if queue}
    for queue, number in added.items():
        units, chosen = counts.get(queue, (0, 0))
        counts[queue] = units + number, chosen
    return additional_units(counts, task.check_share, CHECK_LEAST)


@transaction.atomic
def add_checks(task: Task, number: int, languages: Collection[str] = ()) -> dict[str, int]:
    """Draw more units labelled by a single reader, and send them to an adjudicator.

    number: number of units to add; if fewer are left, all of them are added.
    languages: queues to draw from; empty for all. The units are divided among the queues as in audits.

    Return the number of added units by queue. Raise NotFound if a queue has no units for a single reader, and
    WrongStage if the task is closed or no units are left.
    """
    task = locked_open(task, single_reader_units(task).filter(recheck=False))
    queues = check_counts(task)
    check_languages(languages, queues, f"Single readers decide no item of task {task.name}")
    drawn_units = choose_more(task, number, languages)
    if not drawn_units:
        raise WrongStage(
            f"No check can be added to task {task.name}, because every item{where(languages)} that a single reader "
            "decides is already checked."
        )
    units = units_of(task, drawn_units)
    single = set(
        task.units.filter(has_single_answer(), pk__in=[unit.pk for unit in units]).values_list("pk", flat=True)
    )
    transitions = []
    for unit in units:
        unit.recheck = True
        if unit.stage == stages.LABELLED and unit.pk in single:
            transitions.append(apply_move(unit, "checked", stages.ADJUDICATION, of=PLAIN))
    save_all(units, transitions, ["recheck", "stage", "label"])
    return {queue: len(single.intersection(units)) for queue, units in drawn_units.items()}


class Checks(QualityControl):
    """Have an adjudicator label a random share of the units that only one reader or adjudicator has labelled."""

    name = "checks"
    manifest_key = "checks"
    draws_by = ("check_share",)
    section = staticmethod(report)

    def panel(self, task: Task, results: dict[str, Any]) -> Panel:
        able = adjudicators(task).count() if task.check_share else 0
        warnings = [NO_SECOND] if able == 1 else []
        sentences = [*reader_words(results), *adjudicator_words(results)]
        heading = "Checks of single readers and adjudicators"
        return Panel(
            heading, sentences, [check_table(results)], results, "checks", page="explanation/audit", warnings=warnings
        )

    def expected(self, task: Task) -> Mapping[str, Any]:
        counts, adjudicator_count = check_counts(task), adjudicators(task).count()
        rechecked = task.units.filter(recheck=True).values_list("item__key", flat=True) if adjudicator_count > 1 else ()
        expected = {
            "units": sum(units for units, _ in counts.values()),
            "chosen": sum(chosen for _, chosen in counts.values()),
            "languages": {queue: {"units": units, "chosen": chosen} for queue, (units, chosen) in counts.items()},
            "seconds": sum(is_seconded(task, key) for key in rechecked),
            "unseconded": lacks_second_adjudicator(task, adjudicator_count),
        }
        return {"checks": expected}

    def units_added(self, task: Task, first: int) -> int:
        """Draw units to check from each queue's new units. Power allocation determines how many.

        Units that were drawn earlier remain in the sample.
        """
        if has_checks(task):
            added = task.units.exported().queued().filter(position__gte=first, redundancy=1)
            sizes = added.order_by().values_list("language").annotate(Count("pk"))
            counts = _allot_checks(task, check_counts(task, before=first), dict(sizes))
            strata: dict[tuple[str, ...], int] = {(queue,): count for queue, count in counts.items()}
            chosen = commitments.draw_units(task, CHECK, added, ["language"], strata)
            Unit.objects.filter(pk__in=listed(chosen)).update(recheck=True)
        return 0

    def queued(self, task: Task, units: Iterable[Unit], event: str) -> None:
        # Audited units are skipped, because an adjudicator rechecks a share of them anyway.
        if event == "audited" or not has_checks(task):
            return
        added: dict[str, dict[str, Unit]] = {}
        for unit in units:
            if unit.redundancy == 1 and not unit.known_answer:
                added.setdefault(unit.visited[0], {})[unit.item.key] = unit
        counts = _allot_checks(
            task, check_counts(task), {queue: len(units_by_key) for queue, units_by_key in added.items()}
        )
        for queue, units_by_key in added.items():
            for key in commitments.draw_ids(task, CHECK, [queue], units_by_key, counts[queue]):
                units_by_key[key].recheck = True

    def decided(self, unit: Unit, answers: Sequence[str], label: str | None) -> tuple[str, str, str] | None:
        # If the unit has two answers, a second reader has confirmed the label, so it needs no check.
        if unit.recheck and len(answers) == 1 and not is_audit(unit):
            return "checked", stages.ADJUDICATION, ""
        return None

    def is_seconded(self, unit: Unit) -> bool:
        return is_seconded(unit.task, unit.item.key)

    def draws(self, task: Task) -> Iterator[Line]:
        """Yield the record of the draw that sends units to a second adjudicator."""
        if not task.check_share:
            return
        keys = task.units.order_by("position").values_list("item__key", flat=True)
        settled = Judgment.objects.filter(unit__task=task, kind=Judgment.SETTLE).values("unit")
        seconded = Transition.objects.filter(unit__task=task, event="seconded").values("unit")
        in_vain = [key for lot in Lot.objects.filter(task=task, purpose=NOBODY) for key in lot.frame]
        frame = list(dict.fromkeys(keys.filter(pk__in=settled)))
        if frame:
            parameters = {"share": task.check_share, "in_vain": list(dict.fromkeys(in_vain))}
            yield draw_line(SECOND, [], parameters, frame, list(dict.fromkeys(keys.filter(pk__in=seconded))))


register(Checks())
