"""Statistics for an annotator: work today and this week, time without a break, and all answers.

The queries use the index on annotators' judgments, so their speed does not depend on the size of the task. This module
only reads data.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, F, Max, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotate.controls.qualification import FAILED, Standing, states
from annotate.core import stages
from annotate.kinds.interface_language import label_name
from annotate.models import Annotator, Change, Judgment, Task
from annotate.work.eligible import waiting_units, with_free_place
from annotate.work.permit import Permit, midnight
from corpora.models import Item

PAUSE = timedelta(minutes=5)
LONG = timedelta(minutes=50)  # working time without a break after which the page shows a reminder
LOOKED_BACK = timedelta(hours=4)
SEARCHED = 5_000  # maximum number of answers in a search, latest first


@dataclass(frozen=True)
class Worked:
    """An annotator's work, in the installation's time zone. Weeks start on Monday.

    answered_today, answered_this_week: number of valid answers.
    seconds_today, seconds_this_week: active time, including the time for skips.
    """

    answered_today: int
    seconds_today: float
    answered_this_week: int
    seconds_this_week: float


def worked(annotator: Annotator) -> Worked:
    """Return an annotator's work today and this week, in all tasks. Uses a single query."""
    today = midnight()
    week = today - timedelta(days=today.weekday())
    # Adjudicators' decisions are not timed.
    judgments = (
        Judgment.objects.live().filter(annotator=annotator, answered_at__gte=week, lease__isnull=False).order_by()
    )
    an_answer, of_today = Q(kind=Judgment.ANSWER), Q(answered_at__gte=today)
    totals = judgments.aggregate(
        answered_today=Count("pk", filter=an_answer & of_today),
        seconds_today=Sum("active_seconds", filter=of_today, default=0.0),
        answered_this_week=Count("pk", filter=an_answer),
        seconds_this_week=Sum("active_seconds", default=0.0),
    )
    return Worked(**totals)


def has_read_guidelines(permit: Permit) -> bool:
    """Return whether the annotator has certainly seen the current major version of the guidelines.

    This is the case if the annotator has worked on the task since that version, or if the task has a test, because
    annotators read the guidelines before the test. True if the task has no guidelines.
    """
    task = permit.task
    latest = task.guidelines.aggregate(major=Max("major"))["major"]
    if latest is None or task.test_items:
        return True
    since = task.guidelines.filter(major=latest).order_by("created_at").values("created_at")[:1]
    return Judgment.objects.filter(
        annotator=permit.annotator, unit__task=task, answered_at__gte=Subquery(since)
    ).exists()


def without_pause(annotator: Annotator, current_time: datetime | None = None) -> timedelta:
    """Return how long an annotator has worked without a break of at least PAUSE.

    The result is at most LOOKED_BACK. It is zero during a break.
    """
    end = current_time = current_time or timezone.now()
    judgments = Judgment.objects.filter(
        annotator=annotator, answered_at__gt=current_time - LOOKED_BACK, answered_at__lte=current_time
    )
    for answered_at, shown_at, active in judgments.order_by("-answered_at").values_list(
        "answered_at", "shown_at", "active_seconds"
    ):
        if end - answered_at >= PAUSE:
            break
        # The time spent on a long document is not a break. It starts when the active time began or, if that was not
        # measured, when the document was shown.
        began = answered_at - timedelta(seconds=active) if active is not None else shown_at or answered_at
        end = min(end, began)
    # The time since the last answer counts as work.
    return current_time - end


# --- All answers


def answers_by(
    annotator: Annotator, *, task: Task | None = None, answer: str = "", words: str = "", commented: bool = False
) -> QuerySet[Judgment]:
    """Return an annotator's valid answers and skips, newest first.

    answer: "answered", "skipped" or a label; a changed answer is found by its new label.
    words: text to search for in the items of the last SEARCHED answers.
    commented: whether to return only answers and skips with a comment.
    """
    judgments = Judgment.objects.live().filter(annotator=annotator, lease__isnull=False)
    if task is not None:
        judgments = judgments.filter(unit__task=task)
    if answer == "answered":
        judgments = judgments.filter(kind=Judgment.ANSWER)
    elif answer == "skipped":
        judgments = judgments.filter(kind=Judgment.SKIP)
    elif answer:
        judgments = (
            judgments.filter(kind=Judgment.ANSWER).annotate(now=_current_value(annotator, "label")).filter(now=answer)
        )
    if commented:
        judgments = judgments.annotate(comment_now=_current_value(annotator, "comment")).exclude(comment_now="")
    judgments = judgments.order_by("-answered_at", "-pk")
    if words:
        # Search in two steps, because PostgreSQL would search all texts in a single query.
        latest = dict(judgments.values_list("pk", "unit__item")[:SEARCHED])
        texts = Item.objects.filter(pk__in=set(latest.values()), text__icontains=words).order_by()
        item_ids = set(texts.values_list("pk", flat=True))
        judgments = Judgment.objects.filter(pk__in=[pk for pk, item in latest.items() if item in item_ids])
        judgments = judgments.order_by("-answered_at", "-pk")
    return judgments.select_related("unit__item", "unit__task")


def _current_value(annotator: Annotator, name: str) -> Coalesce:
    """Return an expression for a judgment's field after the annotator's latest change."""
    changed = Change.objects.filter(
        judgment__unit=OuterRef("unit"), judgment__annotator=annotator, at__gt=OuterRef("answered_at")
    )
    return Coalesce(Subquery(changed.order_by("-pk").values(name)[:1]), F(name))


def overruled(annotator: Annotator, judgments: QuerySet[Judgment]) -> QuerySet[Judgment]:
    """Return an annotator's answers that were overruled by an adjudicator, if the annotator may see the decision."""
    decided = Judgment.objects.live().decisions().filter(unit=OuterRef("unit"), kind=Judgment.SETTLE)
    visible = judgments.filter(kind=Judgment.ANSWER).filter(_VISIBLE)
    visible = visible.annotate(
        settled=Subquery(decided.values("unit__label")[:1]), now=_current_value(annotator, "label")
    )
    return visible.filter(settled__isnull=False).exclude(settled=F("now"))


# Selects the judgments for which annotators may see the adjudicator's decision. In an open task, decisions would reveal
# which units are checked or audited. Decisions on hidden gold items are never shown.
_VISIBLE = Q(unit__task__is_open=False, unit__known_answer="", unit__honeypot=False, unit__stage=stages.LABELLED)


def decided(judgments: Iterable[Judgment], changes: Mapping[int, Change]) -> dict[int, Judgment]:
    """Return the adjudicators' decisions that overruled an annotator's latest answers and are _VISIBLE, by unit.

    changes: result of `latest` in work/answer_changes.py.
    """
    latest_labels = {judgment.unit_id: judgment.label for judgment in judgments if judgment.kind == Judgment.ANSWER}
    latest_labels |= {unit: change.label for unit, change in changes.items()}
    settled = Judgment.objects.live().filter(
        _VISIBLE, unit__in=latest_labels, kind=Judgment.SETTLE, label=F("unit__label")
    )
    decisions = settled.select_related("unit__item").order_by("-pk")
    return {decision.unit_id: decision for decision in decisions if decision.label != latest_labels[decision.unit_id]}


def last_used(annotator: Annotator) -> dict[int, float]:
    """Return the annotator's last judgment time in each task, in seconds since 1970."""
    judgments = Judgment.objects.filter(annotator=annotator).order_by().values_list("unit__task")
    return {task: last.timestamp() for task, last in judgments.annotate(Max("answered_at"))}


def why_empty(permit: Permit) -> str:
    """Return a sentence that explains why no unit is available to this annotator."""
    task = permit.task
    if not task.is_open:
        return _("This task is closed.")
    if permit.stopped:
        return str(permit.stopped)
    if permit.read_queues and not permit.queues:
        return _why_not_qualified(states(permit))
    if reason := not_a_reader(permit):
        return reason
    units = waiting_units(permit)
    if with_free_place(units).exists():
        return _("An item has just become available. Check again.")
    if units.exists():
        return ngettext(
            "The remaining items in your languages are open with other readers. If they do not answer, the items "
            "become available within %(number)s minute.",
            "The remaining items in your languages are open with other readers. If they do not answer, the items "
            "become available within %(number)s minutes.",
            task.kind.lease_minutes,
        ) % {"number": task.kind.lease_minutes}
    queued = task.units.work().queued()
    if queued.filter(language__in=list(permit.queues)).exists():
        return _(
            "You have no more items in your languages. The remaining items need answers from people who have not read "
            "their texts before, here or in another task."
        )
    if queued.exists():
        return _(
            "No items are waiting in your languages now. You may receive items that readers of other languages skip."
        )
    return _("All done. All items of this task have been read.")


def not_a_reader(permit: Permit) -> str:
    """Return a sentence if the annotator reads none of the task's languages at the required level, otherwise ""."""
    if permit.reads:
        return ""
    read_in = set(permit.task.reading_languages)
    if languages := [label_name(code) for code in permit.levels if code in read_in]:
        return _(
            "This task requires reading level %(level)s or higher, but your level is lower in %(languages)s. The "
            "manager can change your level."
        ) % {"level": permit.task.least_level, "languages": ", ".join(languages)}
    return _("You do not read any language of this task. The manager can add your languages.")


def _why_not_qualified(all_states: list[Standing]) -> str:
    if all(state.step == FAILED for state in all_states):
        return _("You have not passed the test, and have no tries left. The manager can exempt you from the test.")
    if any(state.earlier for state in all_states):
        return _("The guidelines have changed. Read them and take the new test.")
    return _("Before you begin, there is a short test. Read the guidelines and take it.")
