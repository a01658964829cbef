"""Statistics on annotators, in a single task and in all tasks: amount of work, accuracy and hours.

Hours are active time, without idle time. They include voided judgments and answers to hidden gold items, because the
annotator worked on these too. This module only reads data.
"""

from calendar import monthrange
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet, Sum
from django.utils import timezone

from annotate.controls import honeypots
from annotate.core import stages
from annotate.core.estimation.proportions import proportion
from annotate.figures.overview_report import Invitation, account_state
from annotate.figures.task_statistics import DAY, HOUR, by_name, counted_answers, new_pauses, only, pick
from annotate.kinds import IMPORTED_KINDS
from annotate.models import Annotator, AnnotatorLanguage, Invite, Judgment, Lease, Membership, Pause, Task, Unit
from annotate.reports.tables import LazyList
from annotate.work.permit import midnight
from annotate.work.routes import Routes, readers_of

AT_WORK, WEEK = timedelta(minutes=15), timedelta(days=7)
DAYS = 14  # number of days in the dashboard's plot of answers
LIVE, ANSWER = Q(voided_at=None), Q(kind=Judgment.ANSWER)
DECISION = LIVE & Q(kind__in=[Judgment.SETTLE, Judgment.DISCARD])
MOST_LABELS = 20  # maximum number of labels per annotator, for kinds whose answers are sets of labels
MOST_COMMENTS = 200  # maximum number of comments on a page, which shows the newest


def names_of(annotators: Iterable[int] | None = None) -> dict[int, str]:
    """Return the names of annotators by primary key.

    annotators: primary keys; None for all annotators.
    """
    people = Annotator.objects.order_by()
    people = people if annotators is None else people.filter(pk__in=list(annotators))
    fields = ("pk", "user__first_name", "user__last_name", "user__username")
    return {pk: f"{first} {last}".strip() or username for pk, first, last, username in people.values_list(*fields)}


# --- A single task


def people(task: Task) -> list[dict[str, Any]]:
    """Return a row for each annotator with judgments or tests in the task, sorted by name. A row has:

    annotator, name: primary key and name.
    active: whether the annotator is allowed to log in.
    answers, skips: number of valid answers and valid skips.
    taken_back: number of judgments withdrawn by the annotator.
    voided: number of judgments voided by a manager.
    last: time of the last of these judgments.
    given_back, ran_out: number of units that the annotator returned, and of leases that expired without an answer.
    known: `asked`, `right`, and accuracy with its interval, for hidden gold items. Voided answers are included.
    may: queues where the annotator may work now.
    left: number of gold items that are still available to the annotator, for each queue in `may`.
    """
    rows, met = _people_at_work(task), honeypots.encounters(task)
    pool = honeypots.by_language(task.units.filter(honeypot=True))
    queues = Routes.load(task).readers()
    for row in rows:
        who = row["annotator"]
        row["may"] = sorted(queue for queue, able in queues.items() if who in able)
        row["left"] = {queue: pool[queue] - met[who, queue] for queue in row["may"] if pool[queue]}
    return by_name(rows, "annotator")


def _people_at_work(task: Task) -> list[dict[str, Any]]:
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
    rows: dict[int, dict[str, Any]] = defaultdict(dict[str, Any])
    counted: Iterable[Any] = (*counts, *let_go)
    for row in counted:
        rows[row.pop("annotator")] |= row
    gold_results = honeypots.by_annotator(task)
    seen = {*rows, *gold_results, *task.trials.order_by().values_list("annotator_id", flat=True)}
    nothing = {"answers": 0, "skips": 0, "taken_back": 0, "voided": 0, "last": None, "given_back": 0, "ran_out": 0}
    return [
        {"annotator": person.pk, "name": str(person), "active": person.user.is_active}
        | {**nothing, **rows.get(person.pk, {}), "known": gold_results.get(person.pk)}
        for person in Annotator.objects.filter(pk__in=seen).select_related("user")
    ]


def members(task: Task, memberships: QuerySet[Membership] | None = None) -> list[dict[str, Any]]:
    """Return a row for each member of a task, in the order they were added.

    A row has `member` (primary key), `annotator`, `name`, `username`, `active`, `role`, `quota`, `answers` (number of
    valid answers in the task) and `last` (time of the last judgment).

    memberships: memberships to return; None for all of the task's memberships.
    """
    listed = (task.memberships.all() if memberships is None else memberships).select_related("annotator__user")
    work = Judgment.objects.filter(unit__task=task, annotator__in=[member.annotator_id for member in listed]).order_by()
    done = work.values("annotator").annotate(answers=Count("pk", filter=LIVE & ANSWER), last=Max("answered_at"))
    by_person = {row["annotator"]: row for row in done}
    fields = "member=pk annotator=annotator_id username=annotator.user.username active=annotator.user.is_active"
    return [
        pick(member, f"{fields} role quota")
        | {"name": str(member.annotator), "answers": 0, "last": None}
        | by_person.get(member.annotator_id, {})
        for member in listed
    ]


class LabelCounts(NamedTuple):
    """The number of valid answers, and the number of answers with each label."""

    answers: int
    labels: Counter[str]


def label_counts(task: Task) -> dict[int | None, LabelCounts]:
    """Return the label counts of each annotator, and their total under the key None."""
    answers, labels = Counter[int | None](), defaultdict[int | None, Counter[str]](Counter)
    rows = counted_answers(task).order_by().values_list("annotator", "label").annotate(Count("pk"))
    for annotator, label, number in rows:
        counted = task.kind.form.counted(label)
        for who in (annotator, None):
            answers[who] += number
            labels[who].update(dict.fromkeys(counted, number))
    return {who: LabelCounts(answers[who], labels[who]) for who in {*answers, None}}


def person(task: Task, annotator: Annotator, counts: Mapping[int | None, LabelCounts]) -> dict[str, Any]:
    """Return an annotator's labels and gold answers, as lists of rows under the keys `labels` and `known`.

    counts: result of label_counts, possibly cached.

    labels: most frequent labels first, with `label`, `own` (its share of the annotator's answers) and `all` (its share
        of all annotators' answers).
    known: answers to gold items, latest first, with `at`, `item`, `text`, `label` (gold answer), `said` (annotator's
        answer), `right` and `voided`.
    """
    everybody, of_person = counts[None], counts.get(annotator.pk, LabelCounts(0, Counter()))
    answered = max(1, of_person.answers)
    most_used = sorted(everybody.labels.items(), key=lambda row: (-row[1], row[0]))
    gold_judgments = honeypots.answers(task).filter(annotator=annotator).select_related("unit__item", "unit__task")
    return {
        "labels": [
            {"label": label, "own": of_person.labels[label] / answered, "all": number / everybody.answers}
            for label, number in most_used[: MOST_LABELS if task.kind.form.several else None]
        ],
        "known": [
            pick(judgment, "at=answered_at item=unit.item.key text=unit.item.text label=unit.known_answer said=label")
            | {"right": honeypots.is_right(judgment), "voided": judgment.voided_by_id is not None}
            for judgment in gold_judgments.order_by("-answered_at")
        ],
    }


def comments(task: Task, of: Annotator | None = None) -> list[dict[str, Any]]:
    """Return the newest comments in a task, at most MOST_COMMENTS.

    of: annotator whose comments to return; None for all annotators.

    Comments on voided answers are included. A row has `at`, `annotator`, `name`, `unit`, `text`, `kind` (of the
    judgment), `label`, `comment` and `voided`.
    """
    # Use EXISTS instead of a join. The query can then use the index of comments and doesn't read all judgments.
    of_task = Exists(Unit.objects.filter(pk=OuterRef("unit"), task=task))
    written = Judgment.objects.filter(of_task, **only(of)).exclude(comment="")
    return [
        pick(judgment, "at=answered_at annotator=annotator_id unit=unit_id text=unit.item.text kind label comment")
        | {"name": str(judgment.annotator), "voided": judgment.voided_at is not None}
        for judgment in written.select_related("annotator__user", "unit__item").order_by("-pk")[:MOST_COMMENTS]
    ]


# --- Pauses and agreements


def unseen_pauses() -> list[dict[str, Any]]:
    """Return the pauses not yet seen by a manager, newest first.

    A row has `task`, `name` (of the annotator), `right`, `asked` and `at`.
    """
    pauses = new_pauses().select_related("task", "annotator__user").order_by("-at", "-pk")
    return [{"task": of.task.name, "name": str(of.annotator), **pick(of, "right asked at")} for of in pauses]


def pauses(task: Task, of: Annotator | None = None) -> list[dict[str, Any]]:
    """Return all pauses in a task, newest first. Among other keys, a row has:

    running: whether the annotator is still paused.
    new: whether no manager has seen the pause yet.

    of: annotator whose pauses to return; None for all annotators.
    """
    rows = task.pauses.filter(**only(of)).select_related("annotator__user", "by", "lifted_by").order_by("-at", "-pk")
    return [
        pick(pause, "pause=pk annotator=annotator_id right asked reason at lifted_at")
        | {"name": str(pause.annotator), "by": _user(pause.by), "lifted_by": _user(pause.lifted_by)}
        | {"running": pause.lifted_at is None}
        | {"new": pause.lifted_at is None and pause.by is None and not pause.reason}
        for pause in rows
    ]


def _user(user: User | None) -> str:
    return (user.get_full_name() or user.username) if user else ""


def consents(task: Task) -> list[dict[str, Any]]:
    """Return all consents to sensitive work, newest first.

    A row has `annotator`, `name`, `at` and `withdrawn_at`, which is None as long as the consent is valid.
    """
    consents = task.consents.select_related("annotator__user").order_by("-at", "-pk")
    return [{**pick(of, "annotator=annotator_id at withdrawn_at"), "name": str(of.annotator)} for of in consents]


def names_without_consent(task: Task) -> list[str]:
    """Return the names of the qualified annotators who have not consented to sensitive work."""
    readers = readers_of([Routes.load(task)])[task.pk]
    lacking = set().union(*readers.passed.values()) - set().union(*readers.agreed.values())
    return sorted(names_of(lacking).values(), key=str.casefold)


# --- All tasks


def everybody() -> dict[int, dict[str, Any]]:
    """Return the work of each annotator with judgments or pauses, by primary key. A row has:

    tasks: names of the tasks where the annotator has judgments.
    answers, decisions: number of valid answers and valid decisions.
    hours: hours under the keys "today", "week" (the last seven days) and "all".
    right: estimated accuracy on the gold items of all tasks; None if there are none.
    same: on units assigned to several annotators, the estimated share of answers that match the label.
    paused: number of open tasks where the annotator is paused.
    last: time of the annotator's last judgment.
    """
    work, since = _work(), {"today": midnight(), "week": midnight() - WEEK + DAY}
    seconds: dict[str, dict[int, float | None]] = {
        key: dict(_judgments_since(start).values_list("annotator").annotate(Sum("active_seconds")))
        for key, start in since.items()
    }
    right = _gold_accuracy()
    running = Pause.objects.filter(lifted_at=None, task__is_open=True).order_by()
    paused = dict(running.values_list("annotator").annotate(Count("pk")))
    rows: dict[int, dict[str, Any]] = {}
    for person in {*work, *paused}:
        by_task = work[person]
        totals = {key: sum(row[key] or 0 for row in by_task) for key in (*_COUNTS, "seconds")}
        hours = {key: (of.get(person) or 0.0) / 3600 for key, of in seconds.items()}
        rows[person] = {
            "tasks": sorted(row["task"] for row in by_task),
            "answers": totals["answers"],
            "decisions": totals["decisions"],
            "hours": {**hours, "all": totals["seconds"] / 3600},
            "right": right.get(person),
            "same": _estimate(totals["same"], totals["compared"]),
            "paused": paused.get(person, 0),
            "last": max((row["last"] for row in by_task), default=None),
        }
    return rows


NO_WORK: dict[str, Any] = {
    **{"tasks": [], "answers": 0, "decisions": 0, "hours": {"today": 0.0, "week": 0.0, "all": 0.0}},
    **{"right": None, "same": None, "paused": 0, "last": None},
}


def with_accounts(work: Mapping[int, dict[str, Any]]) -> LazyList:
    """Return a row for each annotator, sorted by name, with their current account and their work.

    work: result of `everybody`, possibly cached.

    A row also has `annotator`, `name`, `username`, `active`, `adjudicates`, `languages` (levels by code), `groups`, and
    `state` (how the annotator can log in). Here, `last` also counts the last login.
    """
    names, now = names_of(), timezone.now()
    order = sorted(names, key=lambda pk: (names[pk].casefold(), pk))

    def rows(part: slice) -> list[dict[str, Any]]:
        chosen = order[part]
        people = chosen if len(chosen) < len(order) else None
        accounts, details = _accounts(people), _details(people)
        return [_with_account(work.get(pk, NO_WORK), names[pk], accounts[pk], details[pk], now) for pk in chosen]

    return LazyList(len(order), rows)


def _accounts(people: Collection[int] | None) -> dict[int, dict[str, Any]]:
    """Return annotators' accounts by primary key, as dicts. Loading models would take five times as long.

    people: primary keys of the annotators; None for all.
    """
    columns = ["pk", "adjudicates", "username", "is_active", "password", "last_login"]
    paths = [*columns[:2], *(f"user__{column}" for column in columns[2:])]
    chosen = Annotator.objects.order_by() if people is None else Annotator.objects.filter(pk__in=people).order_by()
    return {row[0]: dict(zip(columns, row, strict=True)) for row in chosen.values_list(*paths)}


@dataclass
class _Details:
    """An annotator's languages with levels, names of groups, and latest invitation."""

    languages: dict[str, int] = field(default_factory=dict)
    groups: list[str] = field(default_factory=list)
    invite: Invitation | None = None


def _details(people: Collection[int] | None) -> dict[int, _Details]:
    """Return annotators' details by primary key.

    people: primary keys of the annotators; None for all.
    """
    details: dict[int, _Details] = defaultdict(_Details)
    chosen = {} if people is None else {"annotator__in": people}
    languages = AnnotatorLanguage.objects.filter(**chosen).order_by("pk")
    for pk, language, level in languages.values_list("annotator", "language", "level"):
        details[pk].languages[language] = level
    groups = User.groups.through.objects.filter(
        **({"user__annotator__isnull": False} if people is None else {"user__annotator__in": people})
    )
    for pk, name in groups.order_by("group__name").values_list("user__annotator", "group__name"):
        details[pk].groups.append(name)
    invites = Invite.objects.filter(**chosen).order_by("pk")
    for pk, used_at, revoked_at, expires_at in invites.values_list("annotator", "used_at", "revoked_at", "expires_at"):
        details[pk].invite = used_at, revoked_at, expires_at
    return details


def _with_account(
    work: dict[str, Any], name: str, account: dict[str, Any], details: _Details, now: datetime
) -> dict[str, Any]:
    active = account["is_active"]
    return {
        **work,
        **{"annotator": account["pk"], "name": name, "username": account["username"], "active": active},
        **{"adjudicates": account["adjudicates"], "languages": details.languages, "groups": details.groups},
        "state": account_state(account["password"], details.invite, now, active=active),
        "last": max(filter(None, (work["last"], account["last_login"])), default=None),
    }


_COMPARED = LIVE & ANSWER & Q(unit__honeypot=False, unit__stage=stages.LABELLED, unit__redundancy__gt=1)
# Counts of judgments. `compared` counts valid answers to labelled units that were assigned to several annotators, and
# `same` counts how many of these match the label.
_COUNTS = {
    "answers": Count("pk", filter=LIVE & ANSWER),
    "decisions": Count("pk", filter=DECISION),
    "compared": Count("pk", filter=_COMPARED),
    "same": Count("pk", filter=_COMPARED & Q(label=F("unit__label"))),
}


def _work() -> dict[int, list[dict[str, Any]]]:
    """Return a row for each task with an annotator's judgments, by annotator. A single query reads them all."""
    rows: QuerySet[Judgment, Any] = Judgment.objects.order_by().values("annotator", "unit__task")
    names, work = dict(Task.objects.values_list("pk", "name")), defaultdict[int, list[dict[str, Any]]](list)
    for row in rows.annotate(**_COUNTS, seconds=Sum("active_seconds"), last=Max("answered_at")):
        work[row["annotator"]].append({**row, "task": names[row["unit__task"]]})
    return work


def _estimate(part: int, whole: int) -> dict[str, Any] | None:
    return proportion(part, whole).as_dict() if whole else None


def _judgments_since(since: datetime) -> QuerySet[Judgment]:
    """Return the judgments made in Assay since a point in time.

    The query uses the index on annotators' judgments, so it doesn't read earlier judgments.
    """
    judgments = Judgment.objects.filter(annotator__in=Annotator.objects.order_by().values("pk"), answered_at__gte=since)
    return judgments.exclude(unit__task__kind_slug__in=IMPORTED_KINDS).order_by()


def _gold_accuracy() -> dict[int, dict[str, Any] | None]:
    """Return each annotator's accuracy on the gold items of all tasks."""
    right, question_counts = Counter[int](), Counter[int]()
    for task in Task.objects.filter(pk__in=Unit.objects.filter(honeypot=True).order_by().values("task")):
        for person, gold_results in honeypots.by_annotator(task).items():
            right[person] += gold_results["right"]
            question_counts[person] += gold_results["asked"]
    return {person: _estimate(right[person], number) for person, number in question_counts.items()}


def at_work_now() -> dict[str, Any]:
    """Return the current activity, as a dict with:

    people: number of annotators with a judgment in the last hour (AT_WORK).
    hour, today: number of valid answers in the last hour, and since midnight.
    at: time of these numbers.
    """
    now, day = timezone.localtime(), midnight()
    counts = _judgments_since(min(day, now - HOUR)).aggregate(
        today=Count("pk", filter=LIVE & ANSWER & Q(answered_at__gte=day)),
        hour=Count("pk", filter=LIVE & ANSWER & Q(answered_at__gte=now - HOUR)),
        people=Count("annotator", filter=Q(answered_at__gte=now - AT_WORK), distinct=True),
    )
    return {**counts, "at": now}


def activity() -> dict[str, Any]:
    """Return the recent activity, as a dict with:

    days: number of valid answers on each of the last DAYS days, in the installation's time zone, today last.
    people: number of annotators with judgments in the last seven days, by the task's primary key.
    """
    starts = [midnight() - number * DAY for number in reversed(range(DAYS))]
    recent = _judgments_since(starts[0])
    ends = [*starts[1:], timezone.now() + DAY]
    days = {
        f"day_{number}": Count("pk", filter=LIVE & ANSWER & Q(answered_at__gte=start, answered_at__lt=end))
        for number, (start, end) in enumerate(zip(starts, ends, strict=True))
    }
    week = _judgments_since(timezone.now() - WEEK).values_list("unit__task")
    people = dict(week.annotate(Count("annotator", distinct=True)))
    return {"days": list(recent.aggregate(**days).values()), "people": people}


def timesheet(month: date) -> list[dict[str, Any]]:
    """Return the work in a month, with a row for each annotator, day and task.

    Days are in the installation's time zone. A row has `name`, `username`, `day`, `task`, `answers` and `skips` (valid,
    or voided by a manager), `decisions` and `hours`.
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


def _work_on(day: date) -> Iterable[Mapping[str, Any]]:
    """Return a row for each annotator and task on a day.

    A separate query for each day can use the index. On SQLite, it is much faster than a single query that computes the
    day of each judgment.
    """
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
    """Return the months since the first task was opened, latest first."""
    opened = Task.objects.order_by("created_at").values_list("created_at", flat=True).first()
    first, last = timezone.localdate(opened), timezone.localdate()
    places = range(12 * last.year + last.month - 1, 12 * first.year + first.month - 2, -1)
    return [date(place // 12, place % 12 + 1, 1) for place in places]
