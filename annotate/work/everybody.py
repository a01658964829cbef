"""The people of all tasks together, and the hours they worked, for whoever pays and invites them. Reads only.

A person's work in one task is statistics.py's matter. Hours are active time, without idling, of whatever was judged,
whether or not it stands and whether or not its answer was known, since the person worked on it.
"""

from collections import defaultdict
from datetime import date, datetime, time, timedelta
from typing import Any

from django.db.models import Count, F, Max, Q, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone

from annotate.core import stages
from annotate.core.estimation import proportion
from annotate.models import Annotator, AnnotatorLanguage, Judgment, Pause, Task, Unit
from annotate.quality import honeypots

AT_WORK = timedelta(minutes=15)
HOUR, WEEK = timedelta(hours=1), timedelta(days=7)
LIVE = Q(voided_at=None)
SAID = Q(kind__in=[Judgment.ANSWER, Judgment.SKIP])


def everybody() -> list[dict[str, Any]]:
    """All annotators by name: annotator, name, username, active, adjudicates, languages ({code: level}), tasks (names
    of those in which they judged), answers (that stand), decisions, hours ({"today", "week", "all"}; the week is seven
    days), right (in gold answers of all tasks, an estimate; None where they had none), same (how many of their answers
    are the label, where others judged too, likewise), paused (in how many open tasks), last (seen).
    """
    counts, hours, last = _counts(), _hours(), _last()
    languages: dict[int, dict[str, int]] = defaultdict(dict)
    for person, code, level in AnnotatorLanguage.objects.values_list("annotator", "language", "level"):
        languages[person][code] = level
    tasks, right, same, paused = _tasks(), _right(), _same(), _paused()
    rows = [
        {
            "annotator": person.pk,
            "name": str(person),
            "username": person.user.username,
            "active": person.user.is_active,
            "adjudicates": person.adjudicates,
            "languages": languages.get(person.pk, {}),
            "tasks": tasks.get(person.pk, []),
            **counts.get(person.pk, {"answers": 0, "decisions": 0}),
            "hours": {name: of.get(person.pk, 0.0) for name, of in hours.items()},
            "right": right.get(person.pk),
            "same": same.get(person.pk),
            "paused": paused.get(person.pk, 0),
            "last": max(filter(None, (last.get(person.pk), person.user.last_login)), default=None),
        }
        for person in Annotator.objects.select_related("user")
    ]
    return sorted(rows, key=lambda row: (row["name"].casefold(), row["annotator"]))


def _counts() -> dict[int, dict[str, int]]:
    live = Judgment.objects.live().order_by().values("annotator")
    found = live.annotate(
        answers=Count("pk", filter=Q(kind=Judgment.ANSWER)),
        decisions=Count("pk", filter=Q(kind__in=[Judgment.SETTLE, Judgment.DISCARD])),
    )
    return {row.pop("annotator"): row for row in found}


def _hours() -> dict[str, dict[int, float]]:
    """today, week and all -> person -> hours."""
    midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    since = {"today": midnight, "week": midnight - WEEK + timedelta(days=1), "all": None}
    return {name: _hours_since(at) for name, at in since.items()}


def _hours_since(at: datetime | None) -> dict[int, float]:
    timed = _own(at) if at else Judgment.objects.all()
    found = timed.order_by().values_list("annotator").annotate(Sum("active_seconds"))
    return {person: (seconds or 0.0) / 3600 for person, seconds in found}


def _own(since: datetime):
    """Judgments since then, by the index of each person's own, so that the rest is not read."""
    return Judgment.objects.filter(annotator__in=Annotator.objects.order_by().values("pk"), answered_at__gte=since)


def _last() -> dict[int, datetime]:
    return dict(Judgment.objects.order_by().values_list("annotator").annotate(Max("answered_at")))


def _tasks() -> dict[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    pairs = Judgment.objects.order_by().values_list("annotator", "unit__task__name").distinct()
    for person, task in sorted(pairs):
        found[person].append(task)
    return found


def _right() -> dict[int, dict[str, Any]]:
    """As each task counts it, added up."""
    counts: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for task in Task.objects.filter(pk__in=Unit.objects.filter(honeypot=True).order_by().values("task")):
        for person, known in honeypots.by_annotator(task).items():
            counts[person][0] += known["right"]
            counts[person][1] += known["asked"]
    return {person: proportion(right, asked).as_dict() for person, (right, asked) in counts.items() if asked}


def _same() -> dict[int, dict[str, Any]]:
    """Of the answers that stand on units with a label for which several were asked."""
    live = Judgment.objects.live().answers().of_work().filter(unit__stage=stages.LABELLED, unit__redundancy__gt=1)
    same = Count("pk", filter=Q(label=F("unit__label")))
    found = live.order_by().values_list("annotator").annotate(same=same, answers=Count("pk"))
    return {person: proportion(same, answers).as_dict() for person, same, answers in found}


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
    here = timezone.get_current_timezone()
    first = month.replace(day=1)
    end = (first + timedelta(days=32)).replace(day=1)
    start, until = (datetime.combine(day, time(), here) for day in (first, end))
    work = _own(start).filter(answered_at__lt=until).order_by()
    kept = LIVE | Q(voided_by__isnull=False)
    rows = work.values("annotator", "unit__task__name", day=TruncDate("answered_at", tzinfo=here)).annotate(
        answers=Count("pk", filter=kept & Q(kind=Judgment.ANSWER)),
        skips=Count("pk", filter=kept & Q(kind=Judgment.SKIP)),
        decisions=Count("pk", filter=LIVE & Q(kind__in=[Judgment.SETTLE, Judgment.DISCARD])),
        seconds=Sum("active_seconds"),
    )
    people = {person.pk: person for person in Annotator.objects.select_related("user")}
    made = [
        {
            "name": str(people[row["annotator"]]),
            "username": people[row["annotator"]].user.username,
            "day": row["day"],
            "task": row["unit__task__name"],
            **{key: row[key] for key in ("answers", "skips", "decisions")},
            "hours": (row["seconds"] or 0.0) / 3600,
        }
        for row in rows
    ]
    return sorted(made, key=lambda row: (row["name"].casefold(), row["username"], row["day"], row["task"]))


def months() -> list[date]:
    """Those since the first task was opened, the latest first."""
    opened = Task.objects.order_by("created_at").values_list("created_at", flat=True).first()
    month, first = timezone.localdate().replace(day=1), timezone.localdate(opened or timezone.now()).replace(day=1)
    found = []
    while month >= first:
        found.append(month)
        month = (month - timedelta(days=1)).replace(day=1)
    return found
