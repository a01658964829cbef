"""Which further work narrows accuracy most, and how much of it reaches a wished width, by a task's own counts."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from django.db.models import Avg, Count, QuerySet

from annotate.controls import audit_report, checks
from annotate.core.estimation.detector_error import Audit, allotted, deviation, overall_error
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
from annotate.kinds.designs import DESIGNS
from annotate.models import Judgment, Task, Unit
from annotate.work import moves

LABELS = 3  # whose audits have a row of their own
LEAST_GAIN = 1e-5  # by which a width must become narrower


class Measured(NamedTuple):
    """A draw that was made, as planning takes it, and what there is for further work. unread: label -> the posts that
    may be audited, and the audit so far; unchecked: the same of what one reader decides, by first queue; frame: posts
    that may be drawn."""

    counted: Counted
    draw: Draw
    expected: Expected
    unread: Mapping[str, tuple[int, Audit]]
    unchecked: Mapping[str, tuple[int, Audit]]
    frame: int
    seconds: float


Enlarged = Callable[[int], tuple[Counted, Draw]]


def narrowing(of: Measured, wished: float | None = None) -> dict[str, Any]:
    """{"width", "wished", "accuracy", "seconds", "rows": [ROW, ...]}.

    width: of the 95% interval of accuracy, once all that is chosen has been read; wished: by default half of that,
    to a tenth of a point; accuracy: what the predictor is expected to have.
    ROW: work (AUDITS, CHECKS, SECONDS, POSTS), label (whose audits; empty for all), amount (audits, checks, second
    opinions, or posts to draw, in all), posts (to read, adjudicators' too), hours, width, gain (of width, by hour), and
    enough: whether it reaches the wished width; else it is all that there is of this work. The most gain comes first.
    """

    def width_of(counted: Counted, draw: Draw) -> float:
        return width(planned("accuracy", "", counted, draw, of.expected))

    now, work_now = width_of(of.counted, of.draw), reading(of.counted, of.draw).work
    wished = max(0.001, round(now / 2, 3)) if wished is None else wished
    rows: list[dict[str, Any]] = []
    for work, label, most, enlarged in _kinds(of):
        if most < 1:
            continue
        amounts = range(1, most + 1)
        place = bisect_left(amounts, -wished, key=lambda amount, enlarged=enlarged: -width_of(*enlarged(amount)))
        amount = amounts[min(place, most - 1)]
        narrower, posts = width_of(*enlarged(amount)), reading(*enlarged(amount)).work - work_now
        hours = posts * of.seconds / 3600
        if posts > 0 and now - narrower > LEAST_GAIN:
            total = amount + of.draw.size * (work == POSTS)
            row = {"work": work, "label": label, "amount": total, "posts": posts, "hours": hours, "width": narrower}
            rows.append(row | {"gain": (now - narrower) / hours, "enough": place < most})
    rows.sort(key=lambda row: -row["gain"])
    known = {"width": now, "wished": wished, "accuracy": of.expected.accuracy, "seconds": of.seconds}
    return known | {"rows": rows if now > wished else []}


def _kinds(of: Measured) -> Iterator[tuple[str, str, int, Enlarged]]:
    """Each kind of work, the label that it is about, how much there is to do, and what so much of it makes."""
    counted, draw = of.counted, of.draw

    def audit(labels: Mapping[str, tuple[int, Audit]]) -> Enlarged:
        return lambda n: (replace(counted, audited=Counter(counted.audited) + Counter(allotted(n, labels))), draw)

    def check(n: int) -> tuple[Counted, Draw]:
        return replace(counted, checked=Counter(counted.checked) + Counter(allotted(n, of.unchecked))), draw

    def second(n: int) -> tuple[Counted, Draw]:
        more = draw.checks.second + n / decisions
        return counted, draw._replace(checks=draw.checks._replace(second=min(1.0, more)))

    unread = {label: of_label for label, of_label in of.unread.items() if of_label[0]}
    yield AUDITS, "", sum(posts for posts, _ in unread.values()), audit(unread)
    # What one post more takes off the interval: as Neyman's weight, for each post that was read.
    gain = {label: posts * deviation(audit) / (1 + audit.resolved) for label, (posts, audit) in unread.items()}
    for label in sorted(gain, key=lambda label: (-gain[label], label))[:LABELS] if len(gain) > 1 else ():
        yield AUDITS, label, unread[label][0], audit({label: unread[label]})
    yield CHECKS, "", sum(units for units, _ in of.unchecked.values()), check
    decisions = reading(counted, draw).checks
    yield SECONDS, "", int((1 - draw.checks.second) * decisions), second
    yield POSTS, "", of.frame - draw.size, lambda n: (counted, draw._replace(size=draw.size + n))


# --- the counts of a task


def further_work(task: Task, wished: float | None = None) -> dict[str, Any] | None:
    """The result of `narrowing`, or None for a task that measures no accuracy of a stream."""
    if not measures_accuracy(task):
        return None
    counts = measured(task)
    return narrowing(counts, wished) if counts.counted.posts else None


def measures_accuracy(task: Task) -> bool:
    """Whether it measures the accuracy of a predictor in the stream from which its posts come."""
    return task.kind.audits_agreement and DESIGNS[task.draw.design].of_stream


def measured(task: Task) -> Measured:
    """The counts of a task. The posts of a contested language that its audit did not choose count as disputed: people
    read them all, and checks, not rechecks, are chosen among them."""
    found = audit_report.audits(task)
    unread = _counts(moves.unread(task), "agreed_label")
    audited = {label: audit.resolved + audit.unresolved for label, audit in found.items()}
    agreed = Counter(audited) + unread
    of_checks, unchecked = checks.report(task), checks.unchecked_counts(task)
    rows = {row["language"]: checks.as_audit(row) for row in of_checks["languages"]}
    disputed = task.units.exported().filter(audited=False).exclude(pk__in=moves.unread(task))
    by_queue = _counts(disputed.filter(copy_of=None), "visited__0")
    by_queue += _counts(disputed.exclude(copy_of=None), "copy_of__visited__0")
    checked = {queue: chosen for queue, (_, chosen) in checks.check_counts(task).items() if queue in by_queue}
    counted = Counted(agreed, by_queue, audited, checked)
    # Only where posts are unread does it matter how often agreement is wrong.
    error = overall_error(audit for label, audit in found.items() if unread[label]).value
    rechecked = sum(audit.checked for audit in found.values())
    slips = checks.slips(task)
    expected = Expected(
        wrong=Expected().wrong if error is None else error,
        misread=of_checks["overall"]["error"]["value"] or 0.0,
        misconfirmed=sum(audit.checked_wrong for audit in found.values()) / max(1, rechecked),
        slips=(slips and slips.value) or 0.0,
    )
    return Measured(
        counted,
        draw_of(task, counted.posts),
        expected,
        {label: (unread[label], audit) for label, audit in found.items()},
        {queue: (units, rows[queue]) for queue, units in unchecked.items()},
        max(task.draws.values_list("frame_size", flat=True)),
        _seconds(task),
    )


def _counts(units: QuerySet[Unit], field: str) -> Counter[str]:
    return Counter(dict(units.order_by().values_list(field).annotate(Count("pk"))))


def _seconds(task: Task) -> float:
    """How long a person takes for an answer in the task, on average; what is supposed before any was timed."""
    timed = Judgment.objects.live().answers().filter(unit__task=task, active_seconds__isnull=False)
    return timed.aggregate(mean=Avg("active_seconds"))["mean"] or task.kind.seconds
