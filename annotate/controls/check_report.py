"""The results of checks: how many units were checked, and how often the second label differed from the first.

checks.py draws these units.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery

from annotate.core import stages
from annotate.core.estimation.label_errors import Audit, slips_of
from annotate.core.estimation.proportions import Estimate, proportion
from annotate.models import Judgment, Task, Transition, Unit
from annotate.reports.numbers import count, estimate
from annotate.reports.tables import LANGUAGE, NOTE, NUMBER, Column, Table, many, numbered, share, table

# Minimum number of units to check in each language. Without checks, a language's error rate would be unknown.
CHECK_LEAST = 2
NO_SECOND = (
    "There is only one adjudicator, so nobody can give a second opinion on adjudicators' decisions. Make another "
    "person an adjudicator."
)


def single_reader_units(task: Task) -> QuerySet[Unit]:
    """Return the units that were queued for a single reader. Checks are drawn from these units.

    Audited units are excluded, because an adjudicator rechecks a share of them anyway.
    """
    asking = task.units.exported().exclude(stage__in=(stages.NEW, stages.AGREED))
    asking = asking.filter(~_has_event("audited"), copy_of=None, reused_from=None)
    return asking.filter(Q(redundancy=1) | _has_event("named"))


def _has_event(event: str) -> Exists:
    return Exists(Transition.objects.filter(unit=OuterRef("pk"), event=event))


def has_single_answer() -> Q:
    """Return a filter for `single_reader_units`. It selects units that get their label from a single reader."""
    decided = Exists(Judgment.objects.live().decisions().filter(unit=OuterRef("pk")))
    return Q(stage=stages.QUEUED, redundancy=1) | Q(~decided, ~_has_event("named"), stage=stages.LABELLED)


def check_counts(task: Task, *, before: int | None = None) -> dict[str, tuple[int, int]]:
    """Return two numbers for each queue: the units for a single reader, and how many of these units to check.

    A unit is counted in the first queue that it entered.

    before: count only units before this position; None for all units.
    """
    units = single_reader_units(task) if before is None else single_reader_units(task).filter(position__lt=before)
    queues: QuerySet[Unit, Any] = units.order_by().values_list("visited__0")
    counts = queues.annotate(units=Count("pk"), chosen=Count("pk", filter=Q(recheck=True)))
    return {queue: (units, chosen) for queue, units, chosen in counts.order_by("visited__0")}


def unchecked_counts(task: Task) -> dict[str, int]:
    """Return how many units can still be drawn for a check, by each unit's first queue."""
    remaining = single_reader_units(task).filter(has_single_answer(), recheck=False).order_by()
    return dict(remaining.values_list("visited__0").annotate(Count("pk")))


def lacks_second_adjudicator(task: Task, able: int) -> bool:
    """Return whether a task needs second decisions but has only one adjudicator.

    able: number of adjudicators who can log in.
    """
    return task.check_share > 0 and able == 1


def slips(task: Task) -> Estimate | None:
    """Return the error rate of a task's adjudicators; None if no two adjudicators decided the same unit."""
    results = _adjudicators(task)
    return slips_of(results["seconded"], results["differed"]) if results["seconded"] else None


def report(task: Task) -> dict[str, Any]:
    """Return the results of the checks, in total and by language, as JSON data.

    share: share of units that are checked.
    least: minimum number of units to check in each language.
    second_share: share of adjudicators' decisions that a second adjudicator repeats.
    languages: a row for each queue that has units for a single reader.
    overall: the unweighted sums of all rows.
    adjudicators: results for adjudicators.

    Each row has:

    alone: number of units that a reader has labelled and that are not checked.
    checked: number of units that an adjudicator has labelled again.
    otherwise: number of checked units whose final label differs from the reader's first answer.
    waiting: number of units whose check is not finished.
    unresolved: number of units that the adjudicator discarded.
    error: `otherwise` as a share of `checked`, with its 95% Jeffreys interval.

    The results for adjudicators have:

    decisions: number of units that adjudicators have decided.
    seconded: number of units that two or more adjudicators have decided.
    differed: number of seconded units whose first two adjudicators gave different first answers.
    waiting: number of decided units that still need another adjudicator's decision.
    error: `differed` as a share of `seconded`, with its 95% Jeffreys interval.
    """
    rows = {queue: Counter[str]() for queue in check_counts(task)}
    # Compare with the reader's first answer, because a reader who noticed the check could have changed it.
    author = Judgment.objects.live().answers().filter(unit=OuterRef("unit")).order_by("pk").values("annotator")[:1]
    answers = Judgment.objects.answers().filter(unit=OuterRef("pk"), voided_by=None, annotator=Subquery(author))
    first_label = answers.order_by("pk").values("label")[:1]
    # If a reader answers with a language that has another queue, a reader of that queue confirms the answer. Such units
    # are excluded here, because two readers have labelled them.
    alone = single_reader_units(task).filter(~_has_event("named")).order_by()
    units = alone.annotate(first_label=Subquery(first_label)).exclude(first_label=None)
    read = Exists(Judgment.objects.live().answers().filter(unit=OuterRef("pk")))
    done = alone.filter(read, recheck=False, stage=stages.LABELLED).values_list("visited__0")
    for queue, number in done.annotate(Count("pk")):
        rows[queue]["alone"] = number
    chosen = units.filter(recheck=True, stage__in=_OUTCOMES).values_list("visited__0", "stage", "label", "first_label")
    for queue, stage, label, first_answer in chosen:
        rows[queue][_OUTCOMES[stage]] += 1
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


# After the reader's answer, the stage of a unit drawn for a check determines the column that counts it.
_OUTCOMES = {stages.LABELLED: "checked", stages.DISCARDED: "unresolved", stages.ADJUDICATION: "waiting"}


def _row(counts: Counter[str]) -> dict[str, Any]:
    return {
        **{key: counts[key] for key in ("alone", "checked", "otherwise", "waiting", "unresolved")},
        "error": proportion(counts["otherwise"], counts["checked"]).as_dict(),
    }


def as_audit(row: Mapping[str, Any]) -> Audit:
    """Convert a queue's check results to audit counts. More checks can then be allotted in the same way as audits.

    row: row of the queue in `report`.
    """
    checked, otherwise = row["checked"], row["otherwise"]
    return Audit(row["alone"] + checked, otherwise, otherwise, checked - otherwise, 0, 0)


def _adjudicators(task: Task) -> dict[str, Any]:
    decisions = Judgment.objects.decisions().filter(unit__task=task, voided_by=None).order_by("pk")
    # Compare each adjudicator's first answers. An adjudicator who noticed that a second decision was requested could
    # have changed the first one.
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
    """Yield sentences that summarize the checks of readers in all languages."""
    results = checks["overall"]
    chosen = results["checked"] + results["waiting"] + results["unresolved"]
    if not results["alone"] + chosen:
        yield "No post was labelled by a single reader."
        return
    yield f"Single readers labelled {many(results['alone'], 'post')}."
    if not chosen:
        yield "None was checked, so the error rate of single readers is not known."
        return
    otherwise = f"{count(results['otherwise'])} with a different label ({estimate(results['error'])})"
    number = f"{count(results['checked'])} done{' so far' if results['waiting'] else ''}"
    done = (
        f"{number}, {otherwise}" if results["checked"] else "none so far" if results["waiting"] else "none has a label"
    )
    yield (
        f"An adjudicator rechecks {many(chosen, 'further post')} of single readers, drawn at random, without seeing "
        f"the votes or the reader's answer: {done}."
    )


def adjudicator_words(checks: dict[str, Any]) -> Iterator[str]:
    """Yield sentences that summarize the second decisions by adjudicators."""
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

    It has a row for each language that has checks or units labelled by a single reader.
    """
    columns = (
        *LANGUAGE,
        numbered("alone", "labelled alone"),
        numbered("checked", "checked"),
        Column("error", "different label, 95% interval", NUMBER, lambda row: share(row["error"])),
        Column("note", "", NOTE, _check_note),
    )
    keys = ("alone", "checked", "waiting", "unresolved")
    rows = [row for row in checks["languages"] if any(row[key] for key in keys)]
    return table(many(len(rows), "language"), columns, rows)


def _check_note(row: dict[str, Any]) -> str:
    waiting = f"not finished: {count(row['waiting'])}" if row["waiting"] else ""
    discarded = f"discarded, so not counted: {count(row['unresolved'])}" if row["unresolved"] else ""
    return "; ".join(filter(None, (waiting, discarded)))
