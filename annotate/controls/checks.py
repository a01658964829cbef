"""Checks, which measure the error rates of readers and adjudicators who decide units alone.

An adjudicator decides a random sample of these units again, without seeing the first answer. Units for readers are
drawn when they enter a queue; units for adjudicators are drawn when the first adjudicator decides them (is_seconded).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery

from annotate.core import stages
from annotate.core.draws import hash_order
from annotate.core.draws.committed_draws import CHECK, NOBODY, SECOND, Line
from annotate.core.estimation.label_errors import Audit, allotted, further, slips_of
from annotate.core.estimation.proportions import Estimate, proportion
from annotate.core.refusals import WrongStage
from annotate.kinds.control import Panel, QualityControl, register
from annotate.models import Judgment, Lot, Task, Transition, Unit
from annotate.quality import commitments
from annotate.quality.commitments import draw_line
from annotate.reports.numbers import count, estimate
from annotate.reports.tables import LANGUAGE, NOTE, NUMBER, Column, Table, many, numbered, share, table
from annotate.work.adjudication import adjudicators
from annotate.work.closure import check_languages, locked_open, units_of, where
from annotate.work.moves import PLAIN, is_audit, moved, save_all
from corpora.database.bulk_rows import listed

# Minimum number of units to check in each language, because without checks, the error rate is unknown.
CHECK_LEAST = 2
NO_SECOND = (
    "There is only one adjudicator, so nobody can give a second opinion on adjudicators' decisions. Make another "
    "person an adjudicator."
)


def asked_of_one(task: Task) -> QuerySet[Unit]:
    """Return the units that were queued for a single reader. Checks are drawn from these units.

    Units of the audit are excluded, because an adjudicator checks a share of them anyway.
    """
    asking = task.units.exported().exclude(stage__in=(stages.NEW, stages.AGREED))
    asking = asking.filter(~_moved("audited"), copy_of=None, reused_from=None)
    return asking.filter(Q(redundancy=1) | _moved("named"))


def _moved(event: str) -> Exists:
    return Exists(Transition.objects.filter(unit=OuterRef("pk"), event=event))


def check_counts(task: Task, *, before: int | None = None) -> dict[str, tuple[int, int]]:
    """Return (units, checks) by queue: the number of units for a single reader, and how many were drawn for a check.

    A unit is counted in the first queue that it entered.

    before: count only units at smaller positions than this; None for all units.
    """
    units = asked_of_one(task) if before is None else asked_of_one(task).filter(position__lt=before)
    queues: QuerySet[Unit, Any] = units.order_by().values_list("visited__0")
    counts = queues.annotate(units=Count("pk"), chosen=Count("pk", filter=Q(recheck=True)))
    return {queue: (units, chosen) for queue, units, chosen in counts.order_by("visited__0")}


def unchecked_counts(task: Task) -> dict[str, int]:
    """Return how many units can still be drawn for a check, by the first queue that they entered."""
    rest = asked_of_one(task).filter(is_alone(), recheck=False).order_by()
    return dict(rest.values_list("visited__0").annotate(Count("pk")))


def choose_more(task: Task, number: int, queues: Collection[str] = ()) -> dict[str, list[int]]:
    """Draw additional units for a check. The draw continues where the last one ended.

    A second person may have decided some units in the meantime. These units can be drawn too, so that all units in a
    queue have the same probability of being drawn, but they do not count towards `number`.

    number: number of units to draw that get their label from a single reader; if fewer are left, all are drawn.
    queues: draw only units that entered one of these queues first; empty for all.

    Return the keys of the drawn units by queue.
    """
    units: dict[str, dict[str, tuple[int, bool]]] = {}
    unchecked = asked_of_one(task).filter(recheck=False)
    unchecked = unchecked.filter(visited__0__in=queues) if queues else unchecked
    rows = unchecked.order_by().annotate(alone=is_alone()).values_list("visited__0", "item__key", "pk", "alone")
    for queue, key, unit, alone in rows:
        units.setdefault(queue, {})[key] = unit, alone
    results = {row["language"]: row for row in report(task)["languages"]}
    sizes = {queue: sum(alone for _, alone in by_key.values()) for queue, by_key in units.items()}
    shares = allotted(number, {queue: (size, as_audit(results[queue])) for queue, size in sizes.items() if size})
    chosen = {}
    for queue, wanted in shares.items():
        by_key = units[queue]
        order = hash_order.drawn(by_key, len(by_key), lots=task.lots, purpose=CHECK)
        until = [index for index, key in enumerate(order, 1) if by_key[key][1]][wanted - 1]
        chosen[queue] = [by_key[key][0] for key in commitments.drawn(task, CHECK, [queue], by_key, until)]
    return chosen


def as_audit(row: Mapping[str, Any]) -> Audit:
    """Convert the results of a queue's checks to audit counts, so that additional checks can be allocated like audits.

    row: row of the queue in `report`.
    """
    checked, otherwise = row["checked"], row["otherwise"]
    return Audit(row["alone"] + checked, otherwise, otherwise, checked - otherwise, 0, 0)


def is_alone() -> Q:
    """Return a filter for units from `asked_of_one` that get their label from a single reader's answer."""
    decided = Exists(Judgment.objects.live().decisions().filter(unit=OuterRef("pk")))
    return Q(stage=stages.QUEUED, redundancy=1) | Q(~decided, ~_moved("named"), stage=stages.LABELLED)


def _further(task: Task, earlier_counts: Mapping[str, tuple[int, int]], added: Mapping[str, int]) -> dict[str, int]:
    """Return how many of the added units to check, by queue.

    earlier_counts: result of `check_counts` without the added units.
    added: number of added units, by queue.
    """
    counts = {queue: numbers for queue, numbers in earlier_counts.items() if queue}
    for queue, number in added.items():
        units, chosen = counts.get(queue, (0, 0))
        counts[queue] = units + number, chosen
    return further(counts, task.check_share, CHECK_LEAST)


def has_checks(task: Task) -> bool:
    return task.redundancy == 1 and task.check_share > 0


def is_seconded(task: Task, key: str) -> bool:
    """Return whether a second adjudicator must decide a unit after the first one has decided it.

    key: id of the unit's item. The random draw depends only on this id and the task's secret.
    """
    return task.check_share > 0 and hash_order.hit(task.check_share, lots=task.lots, purpose=SECOND, key=key)


def unseconded(task: Task, able: int) -> bool:
    """Return whether a task requires second decisions although it has only one adjudicator.

    able: number of adjudicators who can log in.
    """
    return task.check_share > 0 and able == 1


def slips(task: Task) -> Estimate | None:
    """Return the error rate of a task's adjudicators; None if no unit was decided by two of them."""
    results = _adjudicators(task)
    return slips_of(results["seconded"], results["differed"]) if results["seconded"] else None


def report(task: Task) -> dict[str, Any]:
    """Return the results of the checks, in total and by language, as JSON data.

    share: share of units that are checked.
    least: minimum number of units that are checked in each language.
    second_share: share of adjudicators' decisions that a second adjudicator makes again.
    languages: a row for each queue that has units for a single reader.
    overall: the sums of all rows, without weights.
    adjudicators: results for adjudicators.

    Each row has:

    alone: number of units that a reader has decided and that are not checked.
    checked: number of units that an adjudicator has decided again.
    otherwise: number of checked units with a final label that differs from the reader's first answer.
    waiting: number of units whose check is not finished.
    unresolved: number of units that the adjudicator discarded.
    error: `otherwise` as a share of `checked`, with its 95% Jeffreys interval.

    The results for adjudicators have:

    decisions: number of units that adjudicators have decided.
    seconded: number of units that two or more adjudicators have decided.
    differed: number of seconded units for which the first two adjudicators gave different first answers.
    waiting: number of decided units that wait for another adjudicator's decision.
    error: `differed` as a share of `seconded`, with its 95% Jeffreys interval.
    """
    rows = {queue: Counter[str]() for queue in check_counts(task)}
    # Use the first answer of the reader whose answer counts. A reader who noticed the check could have changed it.
    author = Judgment.objects.live().answers().filter(unit=OuterRef("unit")).order_by("pk").values("annotator")[:1]
    answers = Judgment.objects.answers().filter(unit=OuterRef("pk"), voided_by=None, annotator=Subquery(author))
    first_label = answers.order_by("pk").values("label")[:1]
    # If a reader answers with a language that has another queue, a reader of that queue confirms the answer. Such units
    # are excluded here, because two people have decided them.
    alone = asked_of_one(task).filter(~_moved("named")).order_by()
    units = alone.annotate(first_label=Subquery(first_label)).exclude(first_label=None)
    read = Exists(Judgment.objects.live().answers().filter(unit=OuterRef("pk")))
    done = alone.filter(read, recheck=False, stage=stages.LABELLED).values_list("visited__0")
    for queue, number in done.annotate(Count("pk")):
        rows[queue]["alone"] = number
    chosen = units.filter(recheck=True, stage__in=_FOUND).values_list("visited__0", "stage", "label", "first_label")
    for queue, stage, label, first_answer in chosen:
        rows[queue][_FOUND[stage]] += 1
        rows[queue]["otherwise"] += stage == stages.LABELLED and label != first_answer
    unread = alone.filter(recheck=True, stage=stages.QUEUED).values_list("visited__0")
    for queue, number in unread.annotate(Count("pk")):
        rows[queue]["waiting"] += number
    return {
        "share": task.check_share,
        "least": CHECK_LEAST,
        "second_share": task.check_share,
        "overall": _row(sum(rows.values(), Counter())),
        "languages": [{"language": queue, **_row(row)} for queue, row in rows.items()],
        "adjudicators": _adjudicators(task),
    }


# Column in which a unit with a check is counted, by its stage after the reader's answer.
_FOUND = {stages.LABELLED: "checked", stages.DISCARDED: "unresolved", stages.ADJUDICATION: "waiting"}


def _row(counts: Counter[str]) -> dict[str, Any]:
    return {
        **{key: counts[key] for key in ("alone", "checked", "otherwise", "waiting", "unresolved")},
        "error": proportion(counts["otherwise"], counts["checked"]).as_dict(),
    }


def _adjudicators(task: Task) -> dict[str, Any]:
    decisions = Judgment.objects.decisions().filter(unit__task=task, voided_by=None).order_by("pk")
    # Use each person's first answer, if their current decision counts. A person who noticed that a second decision was
    # requested could have changed the first one.
    first_labels: dict[int, dict[int, str]] = {}
    for unit, annotator, label in decisions.values_list("unit_id", "annotator_id", "label"):
        first_labels.setdefault(unit, {}).setdefault(annotator, label)
    decided: dict[int, list[str]] = {}
    for unit, annotator in decisions.live().values_list("unit_id", "annotator_id"):
        decided.setdefault(unit, []).append(first_labels[unit][annotator])
    several = [labels for labels in decided.values() if len(labels) > 1]
    differed = sum(first != second for first, second, *_ in several)
    return {
        "decisions": len(decided),
        "seconded": len(several),
        "differed": differed,
        "waiting": task.units.filter(
            stage=stages.ADJUDICATION, pk__in=decisions.live().order_by().values("unit")
        ).count(),
        "error": proportion(differed, len(several)).as_dict(),
    }


# --- Text and table


def reader_words(checks: dict[str, Any]) -> Iterator[str]:
    """Yield sentences about the checks of readers, for all languages together."""
    results = checks["overall"]
    chosen = results["checked"] + results["waiting"] + results["unresolved"]
    if not results["alone"] + chosen:
        yield "No post was decided by a single reader."
        return
    yield f"Single readers decided {many(results['alone'], 'post')}."
    if not chosen:
        yield "None was checked, so the error rate of single readers is not known."
        return
    otherwise = f"{count(results['otherwise'])} of these differently from the reader ({estimate(results['error'])})"
    number = f"{count(results['checked'])} done{' so far' if results['waiting'] else ''}"
    done = (
        f"{number}, {otherwise}" if results["checked"] else "none so far" if results["waiting"] else "none has a label"
    )
    yield (
        f"An adjudicator decides {many(chosen, 'further post')} of single readers again, drawn at random, without "
        f"seeing the votes or the reader's answer: {done}."
    )


def adjudicator_words(checks: dict[str, Any]) -> Iterator[str]:
    """Yield sentences about the second decisions on adjudicators' units."""
    results = checks["adjudicators"]
    if not results["decisions"]:
        yield "No adjudicator has decided a post."
        return
    yield f"Adjudicators decided {many(results['decisions'], 'post')}."
    if results["seconded"]:
        yield (
            f"A second adjudicator also decided {count(results['seconded'])} of these without seeing the first "
            f"decision, and {count(results['differed'])} of them differently ({estimate(results['error'])})."
        )
    else:
        yield "No second adjudicator decided any of these, so it is not known how often adjudicators differ."
    if results["waiting"]:
        yield (
            f"{many(results['waiting'], 'post')} still {'waits' if results['waiting'] == 1 else 'wait'} for a second "
            "decision."
        )


def check_table(checks: dict[str, Any]) -> Table:
    """Return a table of the checks of readers.

    The table has a row for each language in which a single reader has decided a unit or a check was drawn.
    """
    columns = (
        *LANGUAGE,
        numbered("alone", "decided alone"),
        numbered("checked", "checked"),
        Column("error", "decided differently, 95% interval", NUMBER, lambda row: share(row["error"])),
        Column("note", "", NOTE, _check_note),
    )
    keys = ("alone", "checked", "waiting", "unresolved")
    rows = [row for row in checks["languages"] if any(row[key] for key in keys)]
    return table(many(len(rows), "language"), columns, rows)


def _check_note(row: dict[str, Any]) -> str:
    waiting = f"not finished: {count(row['waiting'])}" if row["waiting"] else ""
    discarded = f"discarded, so not counted: {count(row['unresolved'])}" if row["unresolved"] else ""
    return "; ".join(filter(None, (waiting, discarded)))


# --- Quality control


@transaction.atomic
def add_checks(task: Task, number: int, languages: Collection[str] = ()) -> dict[str, int]:
    """Draw additional units that a reader decides alone, and have an adjudicator decide them again.

    number: number of units to add; if fewer are left, all of them are added.
    languages: queues among which the units are divided, as in audits; empty for all queues.

    Return the number of added units by queue. Raise NotFound if one of the queues has no unit for a single reader, and
    WrongStage if the task is closed or no unit is left.
    """
    task = locked_open(task, asked_of_one(task).filter(recheck=False))
    queues = check_counts(task)
    check_languages(languages, queues, f"Single readers decide no item of task {task.name}")
    drawn_units = choose_more(task, number, languages)
    if not drawn_units:
        raise WrongStage(
            f"No check can be added to task {task.name}, because every item{where(languages)} that a single reader "
            "decides is already checked."
        )
    units = units_of(task, drawn_units)
    single = set(task.units.filter(is_alone(), pk__in=[unit.pk for unit in units]).values_list("pk", flat=True))
    transitions = []
    for unit in units:
        unit.recheck = True
        if unit.stage == stages.LABELLED and unit.pk in single:
            transitions.append(moved(unit, "checked", stages.ADJUDICATION, of=PLAIN))
    save_all(units, transitions, ["recheck", "stage", "label"])
    return {queue: len(single.intersection(units)) for queue, units in drawn_units.items()}


class Checks(QualityControl):
    """Checks, in which an adjudicator decides a random share of the units of single readers and adjudicators again."""

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
            "unseconded": unseconded(task, adjudicator_count),
        }
        return {"checks": expected}

    def units_added(self, task: Task, first: int) -> int:
        """Draw the units to check in each queue. Power allocation determines their number.

        Only units that were just added are drawn. Units that were drawn earlier remain in the sample.
        """
        if has_checks(task):
            added = task.units.exported().queued().filter(position__gte=first, redundancy=1)
            sizes = added.order_by().values_list("language").annotate(Count("pk"))
            counts = _further(task, check_counts(task, before=first), dict(sizes))
            strata: dict[tuple[str, ...], int] = {(queue,): count for queue, count in counts.items()}
            chosen = commitments.drawn_units(task, CHECK, added, ["language"], strata)
            Unit.objects.filter(pk__in=listed(chosen)).update(recheck=True)
        return 0

    def queued(self, task: Task, units: Iterable[Unit], event: str) -> None:
        if event == "audited" or not has_checks(task):  # an adjudicator rechecks a share of audited units anyway
            return
        added: dict[str, dict[str, Unit]] = {}
        for unit in units:
            if unit.redundancy == 1 and not unit.known_answer:
                added.setdefault(unit.visited[0], {})[unit.item.key] = unit
        counts = _further(task, check_counts(task), {queue: len(units_by_key) for queue, units_by_key in added.items()})
        for queue, units_by_key in added.items():
            for key in commitments.drawn(task, CHECK, [queue], units_by_key, counts[queue]):
                units_by_key[key].recheck = True

    def decided(self, unit: Unit, answers: Sequence[str], label: str | None) -> tuple[str, str, str] | None:
        # If the unit has two answers, a second reader has confirmed the first one, so it needs no check.
        if unit.recheck and len(answers) == 1 and not is_audit(unit):
            return "checked", stages.ADJUDICATION, ""
        return None

    def is_seconded(self, unit: Unit) -> bool:
        return is_seconded(unit.task, unit.item.key)

    def draws(self, task: Task) -> Iterator[Line]:
        """Yield a record of the draw that chose units for a second adjudicator from all decided units."""
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
