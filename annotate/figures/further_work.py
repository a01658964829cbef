"""Rank kinds of further work by how much they narrow the accuracy interval, and compute the amounts needed."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from django.db.models import Avg, Count, QuerySet

from annotate.controls import audit_report, check_report
from annotate.core.estimation.label_errors import Audit, deviation, neyman_allocation, overall_error
from annotate.figures.draw_plan import draw_of
from annotate.figures.interval_width import (
    AUDITS,
    CHECKS,
    POSTS,
    SECONDS,
    Counted,
    Draw,
    Expected,
    planned,
    reading,
    width,
)
from annotate.kinds.designs import DESIGNS, STREAM
from annotate.models import Judgment, Task, Unit
from annotate.quality import agreement_strata

LABELS = 3  # maximum number of labels with a separate row for their audits
LEAST_GAIN = 1e-5  # minimum reduction of the interval width


class Measured(NamedTuple):
    """The data for planning further work on a draw.

    counted: posts, audits and checks in the draw.
    draw, expected: the draw's size and options, and the measured error rates.
    unread: number of posts that can still be audited, and the results of the audit, by label.
    unchecked: number of single annotators' labels that can still be checked, and the results of the checks, by the
        units' first queue.
    frame: number of posts that can be drawn.
    seconds: mean time per answer.
    """

    counted: Counted
    draw: Draw
    expected: Expected
    unread: Mapping[str, tuple[int, Audit]]
    unchecked: Mapping[str, tuple[int, Audit]]
    frame: int
    seconds: float


Enlarged = Callable[[int], tuple[Counted, Draw]]


def narrowing(of: Measured, wished: float | None = None) -> dict[str, Any]:
    """Return a dict with `width`, `wished`, `accuracy`, `seconds` and `rows`.

    wished: required width; by default, half of the current width, rounded to a tenth of a percentage point.

    width: width of the 95% accuracy interval once all selected posts have been read.
    accuracy: expected accuracy of the predictor.
    rows: a row for each kind of work, highest gain first.

    A row has:

    work: AUDITS, CHECKS, SECONDS or POSTS.
    label: label to audit; empty for all labels.
    amount: number of additional audits, checks or second opinions; for POSTS, the total number of posts to draw.
    posts: number of readings, including those by adjudicators.
    hours: time for these readings.
    width: width of the interval after this work.
    gain: reduction of the width per hour.
    enough: whether this amount reaches the required width; if not, the amount is all possible work of this kind.
    """

    def width_of(counted: Counted, draw: Draw) -> float:
        return width(planned("accuracy", "", counted, draw, of.expected))

    def narrowness(enlarged: Enlarged, amount: int) -> float:
        return -width_of(*enlarged(amount))

    current_width, work_now = width_of(of.counted, of.draw), reading(of.counted, of.draw).work
    wished = max(0.001, round(current_width / 2, 3)) if wished is None else wished
    rows: list[dict[str, Any]] = []
    for work, label, most, enlarged in _kinds(of):
        if most < 1:
            continue
        amounts = range(1, most + 1)
        place = bisect_left(amounts, -wished, key=partial(narrowness, enlarged))
        amount = amounts[min(place, most - 1)]
        narrower, posts = width_of(*enlarged(amount)), reading(*enlarged(amount)).work - work_now
        hours = posts * of.seconds / 3600
        if posts > 0 and current_width - narrower > LEAST_GAIN:
            total = amount + of.draw.size * (work == POSTS)
            row = {"work": work, "label": label, "amount": total, "posts": posts, "hours": hours, "width": narrower}
            rows.append(row | {"gain": (current_width - narrower) / hours, "enough": place < most})
    rows.sort(key=lambda row: -row["gain"])
    summary = {"width": current_width, "wished": wished, "accuracy": of.expected.accuracy, "seconds": of.seconds}
    return summary | {"rows": rows if current_width > wished else []}


def _kinds(of: Measured) -> Iterator[tuple[str, str, int, Enlarged]]:
    """Yield each kind of work, its label, its maximum amount, and a function.

    The function takes an amount of work and returns the counts and the draw after this work.
    """
    counted, draw = of.counted, of.draw

    def audit(labels: Mapping[str, tuple[int, Audit]]) -> Enlarged:
        return lambda n: (
            replace(counted, audited=Counter(counted.audited) + Counter(neyman_allocation(n, labels))),
            draw,
        )

    def check(n: int) -> tuple[Counted, Draw]:
        return replace(counted, checked=Counter(counted.checked) + Counter(neyman_allocation(n, of.unchecked))), draw

    def second(n: int) -> tuple[Counted, Draw]:
        more = draw.checks.second + n / decisions
        return counted, draw._replace(checks=draw.checks._replace(second=min(1.0, more)))

    unread = {label: of_label for label, of_label in of.unread.items() if of_label[0]}
    yield AUDITS, "", sum(posts for posts, _ in unread.values()), audit(unread)
    # Reduction of the interval width per additional post: Neyman's weight divided by the number of posts read.
    gain = {label: posts * deviation(audit) / (1 + audit.resolved) for label, (posts, audit) in unread.items()}
    for label in sorted(gain, key=lambda label: (-gain[label], label))[:LABELS] if len(gain) > 1 else ():
        yield AUDITS, label, unread[label][0], audit({label: unread[label]})
    yield CHECKS, "", sum(units for units, _ in of.unchecked.values()), check
    decisions = reading(counted, draw).checks
    yield SECONDS, "", int((1 - draw.checks.second) * decisions), second
    yield POSTS, "", of.frame - draw.size, lambda n: (counted, draw._replace(size=draw.size + n))


# --- The counts of a task


def further_work(task: Task, wished: float | None = None) -> dict[str, Any] | None:
    """Return the result of `narrowing`, or None if the task does not measure accuracy in a stream or has no posts."""
    if not measures_accuracy(task):
        return None
    counts = measured(task)
    return narrowing(counts, wished) if counts.counted.posts else None


def measures_accuracy(task: Task) -> bool:
    """Return whether a task measures a predictor's accuracy in the stream that its posts are drawn from."""
    return task.kind.audits_agreement and DESIGNS[task.draw.design].population == STREAM


def measured(task: Task) -> Measured:
    """Return the data for planning further work on a task.

    In a contested language, annotators label all posts, so posts that were not audited count as disputed. For the same
    reason, they are subject to checks, not to rechecks.
    """
    audit_results = audit_report.audits(task)
    unread = _counts(agreement_strata.unread(task), "agreed_label")
    audited = {label: audit.resolved + audit.unresolved for label, audit in audit_results.items()}
    agreed = Counter(audited) + unread
    of_checks, unchecked = check_report.report(task), check_report.unchecked_counts(task)
    rows = {row["language"]: check_report.as_audit(row) for row in of_checks["languages"]}
    disputed = task.units.exported().filter(audited=False).exclude(pk__in=agreement_strata.unread(task))
    by_queue = _counts(disputed.filter(copy_of=None), "visited__0")
    by_queue += _counts(disputed.exclude(copy_of=None), "copy_of__visited__0")
    checked = {
        queue: check_count for queue, (_, check_count) in check_report.check_counts(task).items() if queue in by_queue
    }
    counted = Counted(agreed, by_queue, audited, checked)
    # Use only the audits of labels with unread posts, because the error rate of agreement only matters for these posts.
    error = overall_error(audit for label, audit in audit_results.items() if unread[label]).value
    rechecked = sum(audit.checked for audit in audit_results.values())
    slips = check_report.slips(task)
    expected = Expected(
        wrong=Expected().wrong if error is None else error,
        misread=of_checks["overall"]["error"]["value"] or 0.0,
        misconfirmed=sum(audit.checked_wrong for audit in audit_results.values()) / max(1, rechecked),
        slips=(slips and slips.value) or 0.0,
    )
    return Measured(
        counted,
        draw_of(task, counted.posts),
        expected,
        {label: (unread[label], audit) for label, audit in audit_results.items()},
        {queue: (units, rows[queue]) for queue, units in unchecked.items()},
        max(task.draws.values_list("frame_size", flat=True)),
        _seconds(task),
    )


def _counts(units: QuerySet[Unit], field: str) -> Counter[str]:
    return Counter(dict(units.order_by().values_list(field).annotate(Count("pk"))))


def _seconds(task: Task) -> float:
    """Return the mean time per answer in the task, or the kind's assumed time if none was measured (seconds)."""
    timed = Judgment.objects.live().answers().filter(unit__task=task, active_seconds__isnull=False)
    return timed.aggregate(mean=Avg("active_seconds"))["mean"] or task.kind.seconds
