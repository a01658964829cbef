"""Which further work narrows the accuracy that a task will measure, by the task's own counts. Reads only.

Computed by core/further_work.py; the table is in reports/widths.py.
"""

from collections import Counter
from typing import Any

from django.db.models import Avg, Count, QuerySet

from annotate.core.audits import overall_error
from annotate.core.further_work import Measured, narrowing
from annotate.core.planning import Counted, Expected
from annotate.kinds.designs import DESIGNS
from annotate.models import Judgment, Task, Unit
from annotate.quality import audits, checks
from annotate.work.plan import draw_of


def further_work(task: Task, wished: float | None = None) -> dict[str, Any] | None:
    """As core/further_work.narrowing, or None for a task that measures no accuracy of a stream."""
    if not measures_accuracy(task):
        return None
    counts = measured(task)
    return narrowing(counts, wished) if counts.counted.posts else None


def measures_accuracy(task: Task) -> bool:
    """Whether it measures the accuracy of a predictor in the stream from which its posts come."""
    return "audit" in task.kind.controls and DESIGNS[task.draw.design].of_stream


def measured(task: Task) -> Measured:
    """The counts of a task. The posts of a contested language that its audit did not choose count as disputed: people
    read them all, and checks, not rechecks, are chosen among them."""
    found = audits.audits(task)
    unread = _counts(audits.unread(task), "agreed_label")
    audited = {label: audit.resolved + audit.unresolved for label, audit in found.items()}
    agreed = Counter(audited) + unread
    of_checks, unchecked = checks.report(task), checks.unchecked_counts(task)
    rows = {row["language"]: checks.as_audit(row) for row in of_checks["languages"]}
    disputed = task.units.exported().filter(audited=False).exclude(pk__in=audits.unread(task))
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
    return timed.aggregate(mean=Avg("active_seconds"))["mean"] or task.seconds
