"""Forecast when a task and each of its queues will be finished, from the remaining work and the available annotators.

Until a task has answers, the kind's pace (`seconds`) and the usual hours are assumed. After that, the forecast is based
on each annotator's working days in the task within WINDOW. `finish_simulation.py` computes the dates. This module only
reads data.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from math import inf
from operator import eq
from typing import Any

from django.db.models import Count, F, Max, Q, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone

from annotate.controls import honeypots
from annotate.core import stages
from annotate.figures.draw_plan import draw_of
from annotate.figures.finish_simulation import (
    ADJUDICATION,
    Assumed,
    Finish,
    Forecast,
    Queue,
    Reader,
    Share,
    forecast,
    sample,
    with_more,
)
from annotate.figures.interval_width import Stream, reading
from annotate.figures.queue_states import queue_states
from annotate.kinds.interface_language import label_name
from annotate.models import Annotator, Judgment, Task, Transition
from annotate.work import adjudication
from annotate.work.adjudication import adjudicators
from annotate.work.routes import Routes, readers_of

HOURS_A_WEEK = 10  # assumed hours of annotators, who also have other work; their actual hours are on the Progress page
WINDOW = timedelta(days=28)  # earlier days are ignored, because they don't predict future work
SAMPLE = 2_000  # number of units used to estimate where skipped units go
MOST = 3  # number of queues for which additional annotators are simulated, last to finish first
MORE = 2  # number of additional annotators
NOTHING_SHOWN: Mapping[str, Share | None] = {"skips": Share(0.0, 0.0), "conflicts": None}
UNSAVED = 0  # primary key for an unsaved task; keys in the database start at 1


# --- Remaining work and available annotators


def expected(task: Task) -> dict[str, Any]:
    """Return a dict with `queues`, `units`, `answers`, `unread`, `adjudicators`, `audit` and `checks`.

    queues: a row for each queue, largest first; see below.
    unread: queues without readers.
    audit, checks: expected work for these quality controls, see below; None if the task does not have them.

    A row for a queue has `queue`, `name`, `units` and:

    answers: minimum number of answers needed.
    agreed: number of units to annotate although the detectors agree, for the audit or because it failed.
    known: number of units with known answers.
    needs, several: maximum number of annotators per unit, and number of units that need several annotators.
    readers: number of annotators who read the queue's languages well enough.
    qualified: number of readers who may start without a test.
    able: number of qualified readers who are not paused.

    The audit has:

    posts, chosen: number of posts on which the detectors agree, and number of these posts to audit.
    recheck: number of audited posts that an adjudicator reads too.
    limit, hours: maximum error rate of the detectors, and time for the audit.
    contested: expected number of additional posts to read because an audit fails by chance, at the error rate
        USUALLY_WRONG.
    languages: for each language, `posts`, `chosen` and `contested`, with `chance` (probability that its audit fails by
        chance) and `can_tell` (whether its audit is large enough to test the limit).

    The checks have:

    units, chosen: number of units decided by a single annotator, and number of these units to check.
    languages: the same numbers for each language.
    seconds: number of random cases for a second adjudicator.
    unseconded: whether a second adjudicator is needed, but there is none.
    """
    rows = _queue_rows(task)
    return {
        "queues": rows,
        "units": sum(row["units"] for row in rows),
        "answers": sum(row["answers"] for row in rows),
        "unread": [row["queue"] for row in rows if not row["readers"]],
        "adjudicators": adjudication.adjudicators(task).count(),
        "audit": None,
        "checks": None,
        **{key: work for control in task.hooks["expected"] for key, work in control.expected(task).items()},
    }


def _queue_rows(task: Task) -> list[dict[str, Any]]:
    queued = task.units.work().queued().order_by()
    counted = queued.values(queue=F("language")).annotate(
        units=Count("pk"),
        answers=Sum("redundancy"),
        agreed=Count("pk", filter=~Q(agreed_label="")),
        known=Count("pk", filter=~Q(known_answer="")),
        needs=Max("redundancy"),
        several=Count("pk", filter=Q(redundancy__gt=1)),
    )
    answered = Judgment.objects.live().answers().filter(unit__in=queued).order_by().values_list("unit__language")
    answers = dict(answered.annotate(Count("pk")))
    readers = readers_of([Routes.load(task)])[task.pk]
    people = {"readers": readers.reads, "qualified": readers.passed, "able": readers.able}
    rows = [
        {"queue": row["queue"], "name": label_name(row["queue"])}
        | {**row, "answers": row["answers"] - answers.get(row["queue"], 0)}
        | {name: len(of.get(row["queue"], ())) for name, of in people.items()}
        for row in counted
    ]
    return sorted(rows, key=lambda row: (-row["units"], row["queue"]))


# --- Forecast


def forecast_of(task: Task, states: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Forecast when a task will be finished.

    states: result of queue_states; computed by default.

    Return a dict with `from`, `queues`, `all`, `adjudication`, `assumed`, `measured` and `supposed`. Days are dicts
    with `low`, `middle` and `high`, which are None beyond the horizon.

    from: start of the forecast (ISO 8601).
    queues: a row for each queue, last to finish first: `queue`, `answers` (missing answers), `readers` (annotators who
        may work there now), `days` and `more`. For the last MOST queues, `more` is the effect of MORE additional
        readers: `readers`, `days`, and `sooner` (by how many days the median moves forward; None without a median).
    all: days until all queues with readers are finished; None if no queue has readers.
    adjudication: `waiting` (units), `chosen` (units that are certain to follow), `adjudicators` and `days`.
    assumed: assumed seconds and weekly hours if no annotator's pace was measured, otherwise None.
    measured: number of annotators whose pace was measured.
    supposed: whether annotators are assumed to pass their test, see _eligible.
    """
    states = states or queue_states(task)
    able, supposed = _eligible(task)
    missing = {row["queue"]: row["missing"] for row in states["queues"] if row["waiting"]}
    result = _forecast(task, _queues(task, states, able), missing, able, _rates(task), task.seed)
    return result | {"supposed": supposed}


def forecast_before(task: Task, stream: Stream, size: int, *, seed: str = "") -> dict[str, Any]:
    """Forecast when a uniform draw would be finished, before it is made.

    task: unsaved task.
    size: number of posts to draw.

    Return the result of forecast_of with two additional keys:

    people: number of annotators who may work in one of the queues.
    drawn: a row for each language, most reading first: the expected counts `posts`, `agreed`, `people` (disputed posts
        and audits, which annotators label), `audits`, `checks` (by adjudicators) and `readers`.
    """
    task.pk = UNSAVED
    routes = Routes.load(task)
    able, supposed = _eligible(task)
    draw = draw_of(task, size)
    drawn: list[dict[str, Any]] = []
    queues: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for label in {*stream.agreed, *stream.disputed}:
        label_reading, queue = reading(stream, draw, partial(eq, label)), routes.queue_in(label)
        queues[queue][0] += label_reading.all
        queues[queue][1] += label_reading.checks + label_reading.seconds
        agreed = size * stream.agreed.get(label, 0) / stream.posts
        row = {"language": label, "posts": size * stream.share(label), "agreed": agreed, "people": label_reading.all}
        more = {
            "audits": label_reading.audits,
            "checks": label_reading.checks + label_reading.seconds,
            "readers": len(able.get(queue, ())),
        }
        drawn.append(row | more)
    drawn.sort(key=lambda row: (-row["people"], row["language"]))
    left = [Queue(name, answers, decided=decided) for name, (answers, decided) in sorted(queues.items())]
    missing = {name: round(answers) for name, (answers, _) in queues.items() if answers >= 1}
    result = _forecast(task, [*left, Queue(ADJUDICATION, 0.0)], missing, able, NOTHING_SHOWN, seed)
    people = set().union(*(able.get(queue, ()) for queue in missing))
    return result | {"supposed": supposed, "drawn": drawn, "people": len(people)}


def _forecast(
    task: Task,
    queues: Sequence[Queue],
    missing: Mapping[str, int],
    able: Mapping[str, set[int]],
    rates: Mapping[str, Any],
    seed: str,
) -> dict[str, Any]:
    """Return the forecast for the queues in `missing`.

    queues: all queues; the adjudicators' queue is the last.
    missing: number of missing answers by queue.
    able: annotators who may work in each queue.
    """
    now = timezone.localtime()
    readers, usual = _readers(task, able, now), Assumed(task.kind.seconds, HOURS_A_WEEK)

    def finishes(of: Sequence[Reader]) -> Forecast:
        return forecast(queues, of, usual, **rates, weekday=now.weekday(), seed=seed)

    simulated = sample(readers, seed)
    finish = finishes(simulated)
    rows: list[dict[str, Any]] = []
    for queue in sorted(missing, key=lambda queue: (-finish.queues[queue].middle, -missing[queue], queue)):
        row = {"queue": queue, "answers": missing[queue], "readers": len(able.get(queue, ()))}
        days, more = finish.queues[queue], None
        if len(rows) < MOST:
            after = finishes(with_more(simulated, queue, MORE)).queues[queue]
            sooner = None if inf in (days.middle, after.middle) else days.middle - after.middle
            more = {"readers": MORE, "days": _days(after), "sooner": sooner}
        rows.append({**row, "days": _days(days), "more": more})
    measured = sum(reader.answers > 0 for reader in readers)
    return {
        "from": now.isoformat(timespec="minutes"),
        "queues": rows,
        "all": finish.all and _days(finish.all),
        "adjudication": {
            "waiting": queues[-1].answers,
            "chosen": sum(queue.decided for queue in queues),
            "adjudicators": sum(ADJUDICATION in reader.queues for reader in readers),
            "days": _days(finish.queues[ADJUDICATION]),
        },
        "assumed": None if measured else {"seconds": usual.seconds, "weekly": usual.weekly},
        "measured": measured,
    }


def _days(finish: Finish) -> dict[str, float | None]:
    return {name: None if days == inf else days for name, days in finish._asdict().items()}


def _eligible(task: Task) -> tuple[dict[str, set[int]], bool]:
    """Return the annotators who may work in each queue, and whether they are assumed to pass the test.

    If nobody has passed the test yet, as in a task that was just opened, all annotators who may take it are returned.
    """
    [people] = readers_of([Routes.load(task)]).values()
    supposed = bool(task.test_items) and not any(people.passed.values()) and any(people.reads.values())
    return people.reads if supposed else people.able, supposed


# --- Remaining work


def _queues(task: Task, states: Mapping[str, Any], able: Mapping[str, set[int]]) -> list[Queue]:
    """Return the task's queues and the queues that skipped units can move to. The adjudicators' queue is the last."""
    work = task.units.work().order_by()
    units = work.exclude(language="").exclude(stage__in=[stages.AGREED, stages.COPIED]).values_list("language")
    whole = dict(units.annotate(Sum("redundancy")))
    recheck_counts = Counter(dict(work.queued().filter(recheck=True).values_list("language").annotate(Count("pk"))))
    onward = _next_queues(task, able) if not task.kind.routing.waits else {}
    # Add the work on hidden gold items, and on second adjudicators' decisions.
    hidden = 1 / (1 - 1 / honeypots.block(task)) if task.gold_share else 1.0
    twice = 1 + task.check_share
    queues = [
        Queue(
            row["queue"],
            row["missing"] * hidden,
            row["waiting"] * hidden,
            whole.get(row["queue"], 0) * hidden,
            recheck_counts[row["queue"]] * twice,
            onward.get(row["queue"], {}),
        )
        for row in states["queues"]
    ]
    names = {queue.name for queue in queues}
    further = {name for of in onward.values() for name in of} - names - {ADJUDICATION}
    waiting = sum(row["adjudication"] for row in states["queues"])
    return [*queues, *(Queue(name, 0.0) for name in sorted(further)), Queue(ADJUDICATION, waiting)]


def _next_queues(task: Task, able: Mapping[str, set[int]]) -> dict[str, dict[str, float]]:
    """Return the shares of skipped units by queue and next queue. The next queue is found as in routing.py."""
    routes = Routes.load(task)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    first = task.units.work().queued().order_by("position").values_list("language", "candidates", "visited", "round")
    for queue, candidates, visited, number in first[:SAMPLE]:
        passed = {queue, *visited}
        further = (name for code in candidates if (name := routes.queue_in(code)) not in passed and able.get(name))
        counts[queue][next(further, ADJUDICATION) if number < task.rounds else ADJUDICATION] += 1
    return {queue: {name: n / of.total() for name, n in of.items()} for queue, of in counts.items()}


def _rates(task: Task) -> dict[str, Share | None]:
    """Return how often annotators have skipped and disagreed in the task.

    An answer that names another queue's language counts as a skip, because the unit moves to that queue.
    """
    judgments = Judgment.objects.live().of_work().filter(unit__task=task, lease__isnull=False).order_by()
    kinds = Counter(dict(judgments.values_list("kind").annotate(Count("pk"))))
    moved = Transition.objects.filter(unit__task=task, event__in=["answered", "conflicted", "named"]).order_by()
    events = Counter(dict(moved.values_list("event").annotate(Count("pk"))))
    adjudicated = task.on_conflict == stages.ADJUDICATION
    return {
        "skips": Share(kinds[Judgment.SKIP] + events.pop("named", 0), kinds.total()),
        "conflicts": Share(events["conflicted"], events.total()) if adjudicated else None,
    }


# --- Annotators


def _readers(task: Task, able: Mapping[str, set[int]], now: datetime) -> list[Reader]:
    """Return the annotators who may work now and the adjudicators, with their pace and working days in the task."""
    queues: dict[int, list[str]] = defaultdict(list)
    for queue, people in sorted(able.items()):
        for person in people:
            queues[person].append(queue)
    for person in adjudicators(task).values_list("pk", flat=True):
        queues[person].append(ADJUDICATION)
    days, most = _days_of(task, list(queues), now), task.kind.sensitive.a_day if task.kind.sensitive else inf
    annotators = Annotator.objects.filter(pk__in=queues).order_by("pk")
    return [
        _reader(name, tuple(queues[person]), days.get(person, {}), max(joined, task.created_at or now), now, most)
        for person, name, joined in annotators.values_list("pk", "pseudonym", "user__date_joined")
    ]


Day = tuple[int, int, float]  # number of judgments, number of timed judgments, and their total time in seconds


def _days_of(task: Task, people: Sequence[int], now: datetime) -> dict[int, dict[date, Day]]:
    judgments = Judgment.objects.filter(annotator__in=people, answered_at__gte=now - WINDOW, unit__task=task)
    by_day = judgments.filter(lease__isnull=False).order_by().values_list("annotator", TruncDate("answered_at"))
    days: dict[int, dict[date, Day]] = defaultdict(dict)
    for person, day, number, timed, seconds in by_day.annotate(
        Count("pk"), Count("active_seconds"), Sum("active_seconds")
    ):
        days[person][day] = number, timed, seconds or 0.0
    return days


def _reader(
    name: str, queues: tuple[str, ...], days: Mapping[date, Day], since: datetime, now: datetime, most: float
) -> Reader:
    """Return an annotator with the measured pace.

    days: the annotator's work on each day. Today is incomplete, so it is used only if there are no earlier days.
    since: time when the annotator could have started.
    most: maximum number of answers per day.
    """
    today = now.date()
    days = {day: of for day, of in days.items() if day < today} or days
    if not days:
        return Reader(name, queues, idle=max(0, (now - since).days), most=most)
    timed, seconds = sum(of[1] for of in days.values()), sum(of[2] for of in days.values())
    every = sum(of[0] for of in days.values())
    is_measured = bool(timed and seconds)
    last = max(days)
    return Reader(
        name,
        queues,
        answers=timed if is_measured else 0,
        seconds=seconds / timed if is_measured else 0.0,
        worked=len(days),
        hours=seconds * every / timed / 3600 / len(days) if is_measured else 0.0,
        days=(max(today - timedelta(days=1), last) - min(days)).days + 1,
        idle=max(0, (today - last).days - 1),
        most=most,
    )
