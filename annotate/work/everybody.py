"""The people of all tasks together, and the hours they worked, for whoever pays and invites them. Reads only.

A person's work in one task is statistics.py's matter. Hours are active time, without idling, of whatever was judged,
whether or not it stands and whether or not its answer was known, since the person worked on it.
"""

from calendar import monthrange
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Any

from django.db.models import Count, F, Max, Q, Sum
from django.utils import timezone

from annotate.core import stages
from annotate.core.estimation import proportion
from annotate.kinds import MADE_ELSEWHERE
from annotate.models import Annotator, AnnotatorLanguage, Judgment, Pause, Task, Unit
from annotate.quality import honeypots

AT_WORK = timedelta(minutes=15)
HOUR, DAY, WEEK = timedelta(hours=1), timedelta(days=1), timedelta(days=7)
LIVE = Q(voided_at=None)
SAID = Q(kind__in=[Judgment.ANSWER, Judgment.SKIP])


def everybody() -> list[dict[str, Any]]:
    """All annotators by name: annotator, name, username, active, adjudicates, languages ({code: level}), tasks (names
    of those in which they judged), answers (that stand), decisions, hours ({"today", "week", "all"}; the week is seven
    days), right (in gold answers of all tasks, an estimate; None where they had none), same (how many of their answers
    are the label, where others judged too, likewise), paused (in how many open tasks), last (seen).
    """
    work, today, week = _work(), *_seconds_lately()
    languages: dict[int, dict[str, int]] = defaultdict(dict)
    for person, code, level in AnnotatorLanguage.objects.values_list("annotator", "language", "level"):
        languages[person][code] = level
    right, paused = _right(), _paused()
    rows = [
        {
            "annotator": person.pk,
            "name": str(person),
            "username": person.user.username,
            "active": person.user.is_active,
            "adjudicates": person.adjudicates,
            "languages": languages.get(person.pk, {}),
            "tasks": sorted(own.tasks),
            "answers": own.counts["answers"],
            "decisions": own.counts["decisions"],
            "hours": {
                "today": _hours(today.get(person.pk)),
                "week": _hours(week.get(person.pk)),
                "all": _hours(own.seconds),
            },
            "right": right.get(person.pk),
            "same": proportion(own.counts["same"], compared).as_dict()
            if (compared := own.counts["compared"])
            else None,
            "paused": paused.get(person.pk, 0),
            "last": max(filter(None, (*own.lasts, person.user.last_login)), default=None),
        }
        for person in Annotator.objects.select_related("user")
        for own in [work[person.pk]]
    ]
    return sorted(rows, key=lambda row: (row["name"].casefold(), row["annotator"]))


@dataclass
class _Work:
    """What one person did: names of tasks, what was counted over all of these, and when they judged last in each."""

    tasks: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    lasts: list[datetime] = field(default_factory=list)


def _work() -> dict[int, _Work]:
    """By person, in one pass over all judgments.

    compared: the answers that stand on units with a label for which several were asked; same: those that are it.
    """
    an_answer = LIVE & Q(kind=Judgment.ANSWER)
    compared = an_answer & Q(unit__honeypot=False, unit__stage=stages.LABELLED, unit__redundancy__gt=1)
    rows = (
        Judgment.objects.order_by()
        .values_list("annotator", "unit__task")
        .annotate(
            answers=Count("pk", filter=an_answer),
            decisions=Count("pk", filter=LIVE & Q(kind__in=[Judgment.SETTLE, Judgment.DISCARD])),
            compared=Count("pk", filter=compared),
            same=Count("pk", filter=compared & Q(label=F("unit__label"))),
            seconds=Sum("active_seconds"),
            last=Max("answered_at"),
        )
    )
    names, work = dict(Task.objects.values_list("pk", "name")), defaultdict[int, _Work](_Work)
    for person, task, answers, decisions, labelled, same, seconds, last in rows:
        own = work[person]
        own.tasks.append(names[task])
        own.counts.update(answers=answers, decisions=decisions, compared=labelled, same=same)
        own.seconds += seconds or 0.0
        own.lasts.append(last)
    return work


def _share(counts: Counter[str]) -> dict[str, Any] | None:
    return proportion(counts["same"], counts["compared"]).as_dict() if counts["compared"] else None


def _seconds_lately() -> tuple[dict[int, float | None], dict[int, float | None]]:
    """Person -> seconds, of today and of the week."""
    midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    timed = Sum("active_seconds")
    today, week = (
        dict(_own(since).order_by().values_list("annotator").annotate(timed))
        for since in (midnight, midnight - WEEK + DAY)
    )
    return today, week


def _hours(seconds: float | None) -> float:
    return (seconds or 0.0) / 3600


def _own(since: datetime):
    """Judgments made here since then, by the index of each person's own, so that the rest is not read."""
    own = Judgment.objects.filter(annotator__in=Annotator.objects.order_by().values("pk"), answered_at__gte=since)
    return own.exclude(unit__task__kind_slug__in=MADE_ELSEWHERE)


def _right() -> dict[int, dict[str, Any]]:
    """As each task counts it, added up."""
    counts: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for task in Task.objects.filter(pk__in=Unit.objects.filter(honeypot=True).order_by().values("task")):
        for person, known in honeypots.by_annotator(task).items():
            counts[person][0] += known["right"]
            counts[person][1] += known["asked"]
    return {person: proportion(right, asked).as_dict() for person, (right, asked) in counts.items() if asked}


def _paused() -> dict[int, int]:
    running = Pause.objects.filter(lifted_at=None, task__is_open=True).order_by()
    return dict(running.values_list("annotator").annotate(Count("pk")))


def at_work_now() -> dict[str, Any]:
    """people (who judged in the last AT_WORK), hour and today (answers that stand), as of at."""
    now = timezone.localtime()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    counted = Count("pk", filter=LIVE & Q(kind=Judgment.ANSWER, answered_at__gte=midnight))
    hour = Count("pk", filter=LIVE & Q(kind=Judgment.ANSWER, answered_at__gte=now - HOUR))
    found = _own(min(midnight, now - HOUR)).aggregate(
        today=counted,
        hour=hour,
        people=Count("annotator", filter=Q(answered_at__gte=now - AT_WORK), distinct=True),
    )
    return {**found, "at": now}


def timesheet(month: date) -> list[dict[str, Any]]:
    """What everybody did on each day of a month in the installation's time zone, by person, day and task: name,
    username, day, task, answers and skips (that stand, or that a manager voided), decisions, hours.
    """
    first = month.replace(day=1)
    days = [first + timedelta(days=n) for n in range(monthrange(first.year, first.month)[1])]
    people = {person.pk: person for person in Annotator.objects.select_related("user")}
    made = [
        {
            "name": str(people[row["annotator"]]),
            "username": people[row["annotator"]].user.username,
            "day": day,
            "task": row["unit__task__name"],
            **{key: row[key] for key in ("answers", "skips", "decisions")},
            "hours": _hours(row["seconds"]),
        }
        for day in days
        for row in _done_on(day)
    ]
    return sorted(made, key=lambda row: (row["name"].casefold(), row["username"], row["day"], row["task"]))


def _done_on(day: date) -> Iterable[dict[str, Any]]:
    """A row a person and task. By the days of an index: to name the day of each judgment takes SQLite far longer."""
    start, end = (datetime.combine(each, time(), timezone.get_current_timezone()) for each in (day, day + DAY))
    kept = LIVE | Q(voided_by__isnull=False)
    work = _own(start).filter(answered_at__lt=end).order_by()
    return work.values("annotator", "unit__task__name").annotate(
        answers=Count("pk", filter=kept & Q(kind=Judgment.ANSWER)),
        skips=Count("pk", filter=kept & Q(kind=Judgment.SKIP)),
        decisions=Count("pk", filter=LIVE & Q(kind__in=[Judgment.SETTLE, Judgment.DISCARD])),
        seconds=Sum("active_seconds"),
    )


def months() -> list[date]:
    """Those since the first task was opened, the latest first."""
    opened = Task.objects.order_by("created_at").values_list("created_at", flat=True).first()
    month, first = timezone.localdate().replace(day=1), timezone.localdate(opened or timezone.now()).replace(day=1)
    found = []
    while month >= first:
        found.append(month)
        month = (month - timedelta(days=1)).replace(day=1)
    return found
