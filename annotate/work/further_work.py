"""Which further work narrows the accuracy that a task will measure, by the task's own counts. Reads only.

Computed by core/further_work.py; the table is in reports/widths.py.
"""

from collections import Counter
from typing import Any

from django.db.models import Avg, Count

from annotate.core.audits import overall_error
from annotate.core.further_work import Measured, narrowing
from annotate.core.planning import Counted, Expected
from annotate.kinds.designs import DESIGNS
from annotate.models import Judgment, Task
from annotate.quality import audits, checks
from annotate.work.plan import draw_of


def further_work(task: Task, wished: float | None = None) -> dict[str, Any] | None:
    """As core/further_work.narrowing, or None for a task that measures no accuracy of a stream."""
    if "audit" not in task.kind.protections or not DESIGNS[task.draw.design].of_stream:
        return None
    counts = measured(task)
    return narrowing(counts, wished) if counts.counted.posts else None


def measured(task: Task) -> Measured:
    """The counts of a task."""
    found, contested = audits.audits(task), audits.contested_labels(task)
    chosen = {label: audit.resolved + audit.unresolved for label, audit in found.items()}
    audited = {label: audit.posts if label in contested else chosen[label] for label, audit in found.items()}
    of_checks, counts = checks.report(task), checks.check_counts(task)
    rows = {row["language"]: checks.as_audit(row) for row in of_checks["languages"]}
    disputed = task.units.exported().filter(agreed_label="").order_by()
    by_queue = Counter(dict(disputed.filter(copy_of=None).values_list("visited__0").annotate(Count("pk"))))
    by_queue += Counter(dict(disputed.exclude(copy_of=None).values_list("copy_of__visited__0").annotate(Count("pk"))))
    checked = {queue: chosen for queue, (_, chosen) in counts.items() if queue in by_queue}
    counted = Counted({label: audit.posts for label, audit in found.items()}, by_queue, audited, checked)
    error, slips = overall_error(found.values()).value, checks.slips(task)
    expected = Expected(
        wrong=Expected().wrong if error is None else error,
        misread=of_checks["overall"]["error"]["value"] or 0.0,
        slips=(slips and slips.value) or 0.0,
    )
    return Measured(
        counted,
        draw_of(task, counted.posts),
        expected,
        {label: (audit.posts - int(audited[label]), audit) for label, audit in found.items()},
        {queue: (units - chosen, rows[queue]) for queue, (units, chosen) in counts.items() if units > chosen},
        max(task.draws.values_list("frame_size", flat=True)),
        _seconds(task),
    )


def _seconds(task: Task) -> float:
    """How long a person takes for an answer in the task, on average; what is supposed before any was timed."""
    timed = Judgment.objects.live().answers().filter(unit__task=task, active_seconds__isnull=False)
    return timed.aggregate(mean=Avg("active_seconds"))["mean"] or task.seconds
