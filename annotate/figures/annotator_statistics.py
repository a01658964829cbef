"""The people of one task, and of all tasks: what each did, how well, and for how many hours. Reads only.

Hours are active time, without idle time, on everything that was judged, whether or not the answer still stands and
whether or not it was a hidden gold answer, since the person worked on it.
"""

from calendar import monthrange
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Any, NamedTuple

from django.db.models import Count, Exists, F, Max, OuterRef, Q, Sum
from django.utils import timezone

from annotate.controls import honeypots
from annotate.core import stages
from annotate.core.estimation.proportions import proportion
from annotate.figures.task_statistics import DAY, HOUR, by_name, counted_answers, new_pauses, only, picked
from annotate.kinds import MADE_ELSEWHERE
from annotate.models import Annotator, AnnotatorLanguage, Judgment, Lease, Pause, Task, Unit
from annotate.work.permit import midnight
from annotate.work.routes import Routes, readers_of

AT_WORK, WEEK = timedelta(minutes=15), timedelta(days=7)
LIVE, ANSWER = Q(voided_at=None), Q(kind=Judgment.ANSWER)
DECISION = LIVE & Q(kind__in=[Judgment.SETTLE, Judgment.DISCARD])
MOST_LABELS = 20  # of a person, where an answer is several labels out of thousands
MOST_COMMENTS = 200  # on a page, the newest


def names_of(annotators: Iterable[int] | None = None) -> dict[int, str]:
    """Names by primary key; of all annotators by default."""
    people = Annotator.objects.select_related("user")
    people = people if annotators is None else people.filter(pk__in=list(annotators))
    return {annotator.pk: str(annotator) for annotator in people}


# --- one task


def people(task: Task) -> list[dict]:
    """Everybody who has judged or tried something in the task, by name.

    A row: annotator, name, active (may log in), answers, skips, taken_back, voided (by a manager), last (time of the
    last of all these), given_back and ran_out (units that they let go of without an answer), known (hidden gold
    answers, voided ones too: asked, right and accuracy with its interval), may (the queues in which they may work
    now), left (of those, queue -> gold answers that they can still be asked for).
    """
    rows, given = _people_at_work(task), honeypots.given(task)
    pool = honeypots.by_language(task.units.filter(honeypot=True))
    queues = Routes.load(task).readers()
    for row in rows:
        who = row["annotator"]
        row["may"] = sorted(queue for queue, able in queues.items() if who in able)
        row["left"] = {queue: pool[queue] - given[who, queue] for queue in row["may"] if pool[queue]}
    return by_name(rows, "annotator")


def _people_at_work(task: Task) -> list[dict]:
    by_manager = Q(voided_by__isnull=False)
    work = Judgment.objects.of_work().filter(unit__task=task, lease__isnull=False).order_by()
    counts = work.values("annotator").annotate(
        answers=Count("pk", filter=LIVE & ANSWER),
        skips=Count("pk", filter=LIVE & Q(kind=Judgment.SKIP)),
        taken_back=Count("pk", filter=~LIVE & ~by_manager),
        voided=Count("pk", filter=by_manager),
        last=Max("answered_at"),
    )
    has_run_out = Q(outcome="expired") | Q(closed_at=None, expires_at__lte=timezone.now())
    leases = Lease.objects.filter(Q(outcome="released") | has_run_out, unit__task=task).order_by()
    let_go = leases.values("annotator").annotate(
        given_back=Count("pk", filter=Q(outcome="released")), ran_out=Count("pk", filter=has_run_out)
    )
    rows: dict[int, dict] = defaultdict(dict)
    for row in (*counts, *let_go):
        rows[row.pop("annotator")] |= row
    known = honeypots.by_annotator(task)
    seen = {*rows, *known, *task.trials.order_by().values_list("annotator_id", flat=True)}
    nothing = {"answers": 0, "skips": 0, "taken_back": 0, "voided": 0, "last": None, "given_back": 0, "ran_out": 0}
    return [
        {"annotator": person.pk, "name": str(person), "active": person.user.is_active}
        | {**nothing, **rows.get(person.pk, {}), "known": known.get(person.pk)}
        for person in Annotator.objects.filter(pk__in=seen).select_related("user")
    ]


class LabelCounts(NamedTuple):
    """How many answers stand, and how many of them have each label."""

    answers: int
    labels: Counter[str]


def label_counts(task: Task) -> dict[int | None, LabelCounts]:
    """By annotator, and under None those of all annotators."""
    answers, labels = Counter[int | None](), defaultdict[int | None, Counter[str]](Counter)
    rows = counted_answers(task).order_by().values_list("annotator", "label").annotate(Count("pk"))
    for annotator, label, number in rows:
        facets = task.kind.form.facets(label)
        for who in (annotator, None):
            answers[who] += number
            labels[who].update(dict.fromkeys(facets, number))
    return {who: LabelCounts(answers[who], labels[who]) for who in {*answers, None}}


def person(task: Task, annotator: Annotator, counts: Mapping[int | None, LabelCounts]) -> dict:
    """One annotator's answers: {"labels": [ROW, ...], "known": [ROW, ...]}.

    labels: the most used first: label, and the share of the answers that have it: own, all. known: the gold answers
    that they were asked for, the latest first: at, item, text, label, said, right, voided. counts: label_counts, which
    may be older.
    """
    everybody, own = counts[None], counts.get(annotator.pk, LabelCounts(0, Counter()))
    most_used = sorted(everybody.labels.items(), key=lambda row: (-row[1], row[0]))
    known = honeypots.answers(task).filter(annotator=annotator).select_related("unit__item", "unit__task")
    return {
        "labels": [
            {"label": label, "own": own.labels[label] / max(1, own.answers), "all": number / everybody.answers}
            for label, number in most_used[: MOST_LABELS if task.kind.form.several else None]
        ],
        "known": [
            picked(judgment, "at=answered_at item=unit.item.key text=unit.item.text label=unit.known_answer said=label")
            | {"right": honeypots.is_right(judgment), "voided": judgment.voided_by_id is not None}
            for judgment in known.order_by("-answered_at")
        ],
    }


def comments(task: Task, of: Annotator | None = None) -> list[dict]:
    """The newest comments of a task, or of one annotator in it, MOST_COMMENTS at most; those on voided answers too.

    A row: at, annotator, name, unit, text, kind (of the judgment), label, comment, voided.
    """
    # As a condition, so that the index of comments is read and not all judgments on the task's units.
    of_task = Exists(Unit.objects.filter(pk=OuterRef("unit"), task=task))
    written = Judgment.objects.filter(of_task, **only(of)).exclude(comment="")
    return [
        picked(judgment, "at=answered_at annotator=annotator_id unit=unit_id text=unit.item.text kind label comment")
        | {"name": str(judgment.annotator), "voided": judgment.voided_at is not None}
        for judgment in written.select_related("annotator__user", "unit__item").order_by("-pk")[:MOST_COMMENTS]
    ]


# --- pauses and agreements


def newly_paused() -> int:
    """How many pauses no manager has looked at."""
    return new_pauses().count()


def unseen_pauses() -> list[dict]:
    """The pauses that no manager has looked at, the newest first: task, name (of the annotator), right, asked, at."""
    pauses = new_pauses().select_related("task", "annotator__user").order_by("-at", "-pk")
    return [
        {"task": of.task.name, "name": str(of.annotator), "right": of.right, "asked": of.asked, "at": of.at}
        for of in pauses
    ]


def pauses(task: Task, of: Annotator | None = None) -> list[dict]:
    """Everybody who was ever paused, newest first; running: whether they still are; new: no manager has looked at it.

    of: only this annotator's pauses.
    """
    rows = task.pauses.filter(**only(of)).select_related("annotator__user", "by", "lifted_by").order_by("-at", "-pk")
    return [
        picked(pause, "pause=pk annotator=annotator_id right asked reason at lifted_at")
        | {"name": str(pause.annotator), "by": _user(pause.by), "lifted_by": _user(pause.lifted_by)}
        | {"running": pause.lifted_at is None}
        | {"new": pause.lifted_at is None and pause.by is None and not pause.reason}
        for pause in rows
    ]


def _user(user) -> str:
    return (user.get_full_name() or user.username) if user else ""


def consents(task: Task) -> list[dict]:
    """Everybody who ever agreed to work that may hurt, newest first; withdrawn_at: None while it runs."""
    return [
        {"annotator": of.annotator_id, "name": str(of.annotator), "at": of.at, "withdrawn_at": of.withdrawn_at}
        for of in task.consents.select_related("annotator__user").order_by("-at", "-pk")
    ]


def not_agreed(task: Task) -> list[str]:
    """The names of those who might do work that may hurt, and have not agreed to it or have taken that back."""
    readers = readers_of([Routes.load(task)])[task.pk]
    lacking = set().union(*readers.passed.values()) - set().union(*readers.agreed.values())
    return sorted(names_of(lacking).values(), key=str.casefold)


# --- all tasks


@dataclass
class _Work:
    """What one person did: names of tasks, counts and seconds over all of them, and the last judgment in each."""

    tasks: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    lasts: list[datetime] = field(default_factory=list)


def everybody() -> list[dict[str, Any]]:
    """All annotators by name: annotator, name, username, active, adjudicates, languages ({code: level}), tasks (names
    of those in which they judged), answers (that stand), decisions, hours ({"today", "week", "all"}; the week is seven
    days), right (in gold answers of all tasks, an estimate; None where they had none), same (the share of their answers
    that are the label, where others judged too, in the same form), paused (in how many open tasks), last (seen).
    """
    work, since = _work(), {"today": midnight(), "week": midnight() - WEEK + DAY}
    seconds: dict[str, dict[int, float | None]] = {
        key: dict(_judgments_since(start).values_list("annotator").annotate(Sum("active_seconds")))
        for key, start in since.items()
    }
    seconds["all"] = {person: own.seconds for person, own in work.items()}
    languages: dict[int, dict[str, int]] = defaultdict(dict)
    for person, code, level in AnnotatorLanguage.objects.values_list("annotator", "language", "level"):
        languages[person][code] = level
    right = _gold_accuracy()
    running = Pause.objects.filter(lifted_at=None, task__is_open=True).order_by()
    paused = dict(running.values_list("annotator").annotate(Count("pk")))
    rows = [
        picked(person, "annotator=pk username=user.username active=user.is_active adjudicates")
        | {"name": str(person), "languages": languages.get(person.pk, {}), "tasks": sorted(own.tasks)}
        | {key: own.counts[key] for key in ("answers", "decisions")}
        | {"hours": {key: (of.get(person.pk) or 0.0) / 3600 for key, of in seconds.items()}}
        | {"right": right.get(person.pk), "same": _estimate(own.counts["same"], own.counts["compared"])}
        | {"paused": paused.get(person.pk, 0)}
        | {"last": max(filter(None, (*own.lasts, person.user.last_login)), default=None)}
        for person in Annotator.objects.select_related("user")
        for own in [work[person.pk]]
    ]
    return by_name(rows, "annotator")


def _work() -> dict[int, _Work]:
    """By person, in one pass over all judgments.

    compared: the answers that stand on units with a label for which several were asked; same: those that are it.
    """
    compared = LIVE & ANSWER & Q(unit__honeypot=False, unit__stage=stages.LABELLED, unit__redundancy__gt=1)
    counts = {
        "answers": Count("pk", filter=LIVE & ANSWER),
        "decisions": Count("pk", filter=DECISION),
        "compared": Count("pk", filter=compared),
        "same": Count("pk", filter=compared & Q(label=F("unit__label"))),
    }
    rows = Judgment.objects.order_by().values("annotator", "unit__task")
    names, work = dict(Task.objects.values_list("pk", "name")), defaultdict[int, _Work](_Work)
    for row in rows.annotate(**counts, seconds=Sum("active_seconds"), last=Max("answered_at")):
        own = work[row["annotator"]]
        own.tasks.append(names[row["unit__task"]])
        own.counts.update({name: row[name] for name in counts})
        own.seconds += row["seconds"] or 0.0
        own.lasts.append(row["last"])
    return work


def _estimate(part: int, whole: int) -> dict[str, Any] | None:
    return proportion(part, whole).as_dict() if whole else None


def _judgments_since(since: datetime):
    """Judgments made here, by the index of each person's own judgments, so that earlier ones are not read."""
    made = Judgment.objects.filter(annotator__in=Annotator.objects.order_by().values("pk"), answered_at__gte=since)
    return made.exclude(unit__task__kind_slug__in=MADE_ELSEWHERE).order_by()


def _gold_accuracy() -> dict[int, dict[str, Any] | None]:
    """The counts of all tasks, added up."""
    right, asked = Counter[int](), Counter[int]()
    for task in Task.objects.filter(pk__in=Unit.objects.filter(honeypot=True).order_by().values("task")):
        for person, known in honeypots.by_annotator(task).items():
            right[person] += known["right"]
            asked[person] += known["asked"]
    return {person: _estimate(right[person], number) for person, number in asked.items()}


def at_work_now() -> dict[str, Any]:
    """people (who judged in the last AT_WORK), hour and today (answers that stand), as of at."""
    now, day = timezone.localtime(), midnight()
    counts = _judgments_since(min(day, now - HOUR)).aggregate(
        today=Count("pk", filter=LIVE & ANSWER & Q(answered_at__gte=day)),
        hour=Count("pk", filter=LIVE & ANSWER & Q(answered_at__gte=now - HOUR)),
        people=Count("annotator", filter=Q(answered_at__gte=now - AT_WORK), distinct=True),
    )
    return {**counts, "at": now}


def timesheet(month: date) -> list[dict[str, Any]]:
    """What everybody did on each day of a month in the installation's time zone, by person, day and task: name,
    username, day, task, answers and skips (that stand, or that a manager voided), decisions, hours.
    """
    days = [month.replace(day=day + 1) for day in range(monthrange(month.year, month.month)[1])]
    annotators = {person.pk: person for person in Annotator.objects.select_related("user")}
    rows = [
        {"name": str(person), "username": person.user.username, "day": day, "task": row["unit__task__name"]}
        | {key: row[key] for key in ("answers", "skips", "decisions")}
        | {"hours": (row["seconds"] or 0.0) / 3600}
        for day in days
        for row in _work_on(day)
        for person in [annotators[row["annotator"]]]
    ]
    return by_name(rows, "username", "day", "task")


def _work_on(day: date) -> Iterable[dict[str, Any]]:
    """A row a person and task. One day at a time by the index: SQLite takes far longer to name each judgment's day."""
    start, end = (datetime.combine(date, time(), timezone.get_current_timezone()) for date in (day, day + DAY))
    paid = LIVE | Q(voided_by__isnull=False)
    work = _judgments_since(start).filter(answered_at__lt=end).values("annotator", "unit__task__name")
    return work.annotate(
        answers=Count("pk", filter=paid & ANSWER),
        skips=Count("pk", filter=paid & Q(kind=Judgment.SKIP)),
        decisions=Count("pk", filter=DECISION),
        seconds=Sum("active_seconds"),
    )


def months() -> list[date]:
    """Those since the first task was opened, the latest first."""
    opened = Task.objects.order_by("created_at").values_list("created_at", flat=True).first()
    first, last = timezone.localdate(opened), timezone.localdate()
    places = range(12 * last.year + last.month - 1, 12 * first.year + first.month - 2, -1)
    return [date(place // 12, place % 12 + 1, 1) for place in places]
