"""Remaining work in a task, available annotators, and a forecast of the finish, by queue and overall. Reads only.

The kind's pace (`seconds`) and usual hours are assumed until a task has answers. Later, each annotator's days in the
task within WINDOW count. `finish_simulation.py` computes the dates.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from math import inf
from typing import Any

from django.db.models import Count, Max, Q, Sum
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
    with_more,
)
from annotate.figures.interval_width import Stream, reading
from annotate.figures.queue_states import queue_states
from annotate.models import Annotator, Judgment, Task, Transition
from annotate.work import adjudication
from annotate.work.adjudication import adjudicators
from annotate.work.routes import Routes, readers_of

HOURS_A_WEEK = 10  # hours of an annotator with other work; actual hours are on the page Progress
WINDOW = timedelta(days=28)  # older days are not predictive
SAMPLE = 2_000  # units that show where skipped units go
MOST = 3  # number of queues, last to finish first, for which more annotators are simulated
MORE = 2  # number of such annotators
NOTHING_SHOWN: Mapping[str, Share | None] = {"skips": Share(0.0, 0.0), "conflicts": None}
NOBODYS = 0  # primary key of an unsaved task; real keys start at 1


# --- Remaining work and available annotators


def expected(task: Task) -> dict[str, Any]:
    """Return the expected work: {"queues", "units", "answers", "unread", "adjudicators", "audit", "checks"}.

    queues: a row for each queue, see below; largest first.
    unread: queues without readers.
    audit, checks: expected work of these quality controls, see below; None if the kind does not have them.

    A row on a queue has queue, name, units and:

    answers: minimum number of answers needed.
    agreed: number of units on which the detectors agree, to be read for the audit or after a failed audit.
    known: number of units with known answers.
    needs, several: maximum number of annotators per unit, and number of units that need several.
    readers: number of annotators with sufficient knowledge of the queue's languages.
    qualified, able: number of readers who may start without a test, and of these who are not paused.

    The audit has:

    posts, chosen: number of posts on which the detectors agree, and of those to be checked; also by language.
    recheck: number of these for an adjudicator.
    limit, hours: maximum error of the detectors, and time to read the chosen posts.
    contested: expected number of other posts to read because an audit fails by chance, if the error is USUALLY_WRONG;
        also by language, with chance and can_tell (whether the audit has enough power to test the limit).

    The checks have:

    units, chosen: number of units decided by one annotator, and of those to be decided again; also by language.
    seconds, unseconded: number of random cases for a second adjudicator, and whether there is no such person.
    """
    rows = _waiting(task)
    return {
        "queues": rows,
        "units": sum(row["units"] for row in rows),
        "answers": sum(row["answers"] for row in rows),
        "unread": [row["queue"] for row in rows if not row["readers"]],
        "adjudicators": adjudication.adjudicators().count(),
        "audit": None,
        "checks": None,
        **{key: work for control in task.kind.quality_controls for key, work in control.expected(task).items()},
    }


def _waiting(task: Task) -> list[dict[str, Any]]:
    queued = task.units.work().queued().order_by().values("language")
    counted = queued.annotate(
        agreed=Count("pk", filter=~Q(agreed_label="")),
        known=Count("pk", filter=~Q(known_answer="")),
        needs=Max("redundancy"),
        several=Count("pk", filter=Q(redundancy__gt=1)),
    )
    counts = {row.pop("language"): row for row in counted}
    rows = [
        {"queue": row["queue"], "name": row["name"], "units": row["waiting"], "answers": row["missing"]}
        | {**counts[row["queue"]], "readers": row["readers"], "qualified": row["passed"], "able": row["able"]}
        for row in queue_states(task)["queues"]
        if row["waiting"]
    ]
    return sorted(rows, key=lambda row: (-row["units"], row["queue"]))


# --- Forecast


def forecast_of(task: Task, states: Mapping[str, Any] | None = None, *, now: datetime | None = None) -> dict[str, Any]:
    """Forecast the finish of a task.

    states: result of queue_states; computed by default.
    now: start of the forecast.

    Returns {"from", "queues", "all", "adjudication", "assumed", "measured", "supposed"}. Days are {"low", "middle",
    "high"}, with None beyond the horizon.

    from: ISO time.
    queues: last to finish first: queue, answers (missing), readers (who may work there now), days, and for the MOST
        last queues more: the effect of MORE readers, with readers, days and sooner (by how many days the median
        improves; None without a median).
    all: days of all queues with readers; None if there is none.
    adjudication: waiting, chosen (further units that will certainly come), adjudicators and days.
    assumed: seconds and weekly hours, if nobody was measured; otherwise None.
    measured: number of annotators whose pace was measured.
    supposed: see _able.
    """
    now = timezone.localtime(now)
    states = states or queue_states(task)
    able, supposed = _able(task)
    missing = {row["queue"]: row["missing"] for row in states["queues"] if row["waiting"]}
    told = _told(task, _queues(task, states, able), missing, able, _rates(task), task.seed, now)
    return told | {"supposed": supposed}


def forecast_before(
    task: Task, stream: Stream, size: int, *, seed: str = "", now: datetime | None = None
) -> dict[str, Any]:
    """Forecast the finish of a uniform draw that has not been made.

    task: unsaved task.
    now: start of the forecast.

    Return the result of forecast_of, with `drawn`: by language the expected numbers of posts, agreed, people (posts to
    label by annotators: disputed posts and audits), audits, checks (by adjudicators) and readers; most reading first.
    """
    task.pk = NOBODYS
    now, routes = timezone.localtime(now), Routes.load(task)
    able, supposed = _able(task)
    draw = draw_of(task, size)
    drawn, queues = [], defaultdict(lambda: [0.0, 0.0])
    for label in {*stream.agreed, *stream.disputed}:
        of, queue = reading(stream, draw, lambda each, label=label: each == label), routes.queue_in(label)
        queues[queue][0] += of.all
        queues[queue][1] += of.checks + of.seconds
        agreed = size * stream.agreed.get(label, 0) / stream.posts
        row = {"language": label, "posts": size * stream.share(label), "agreed": agreed, "people": of.all}
        more = {"audits": of.audits, "checks": of.checks + of.seconds, "readers": len(able.get(queue, ()))}
        drawn.append(row | more)
    drawn.sort(key=lambda row: (-row["people"], row["language"]))
    left = [Queue(name, answers, decided=decided) for name, (answers, decided) in sorted(queues.items())]
    missing = {name: round(answers) for name, (answers, _) in queues.items() if answers >= 1}
    told = _told(task, [*left, Queue(ADJUDICATION, 0.0)], missing, able, NOTHING_SHOWN, seed, now)
    return told | {"supposed": supposed, "drawn": drawn}


def _told(
    task: Task,
    queues: Sequence[Queue],
    missing: Mapping[str, int],
    able: Mapping[str, set[int]],
    rates: Mapping[str, Share | None],
    seed: str,
    now: datetime,
) -> dict[str, Any]:
    """Return the forecast for the queues in `missing`. queues: all queues, the adjudicators' last."""
    readers, usual = _readers(task, able, now), Assumed(task.kind.seconds, HOURS_A_WEEK)

    def finishes(of: Sequence[Reader]) -> Forecast:
        return forecast(queues, of, usual, **rates, weekday=now.weekday(), seed=seed)

    found = finishes(readers)
    rows = []
    for queue in sorted(missing, key=lambda queue: (-found.queues[queue].middle, -missing[queue], queue)):
        row = {"queue": queue, "answers": missing[queue], "readers": len(able.get(queue, ()))}
        days, more = found.queues[queue], None
        if len(rows) < MOST:
            after = finishes(with_more(readers, queue, MORE)).queues[queue]
            sooner = None if inf in (days.middle, after.middle) else days.middle - after.middle
            more = {"readers": MORE, "days": _days(after), "sooner": sooner}
        rows.append({**row, "days": _days(days), "more": more})
    measured = sum(reader.answers > 0 for reader in readers)
    return {
        "from": now.isoformat(timespec="minutes"),
        "queues": rows,
        "all": found.all and _days(found.all),
        "adjudication": {
            "waiting": queues[-1].answers,
            "chosen": sum(queue.decided for queue in queues),
            "adjudicators": sum(ADJUDICATION in reader.queues for reader in readers),
            "days": _days(found.queues[ADJUDICATION]),
        },
        "assumed": None if measured else {"seconds": usual.seconds, "weekly": usual.weekly},
        "measured": measured,
    }


def _days(finish: Finish) -> dict[str, float | None]:
    return {name: None if days == inf else days for name, days in finish._asdict().items()}


def _able(task: Task) -> tuple[dict[str, set[int]], bool]:
    """Return who may work in each queue, and False.

    If a task was just opened and nobody has passed its test yet, return who may take the test, and True.
    """
    [people] = readers_of([Routes.load(task)]).values()
    supposed = bool(task.test_items) and not any(people.passed.values()) and any(people.reads.values())
    return people.reads if supposed else people.able, supposed


# --- Remaining work


def _queues(task: Task, states: Mapping[str, Any], able: Mapping[str, set[int]]) -> list[Queue]:
    """Return the queues with waiting units and those that may get units from them, the adjudicators' last."""
    work = task.units.work().order_by()
    asked = work.exclude(language="").exclude(stage__in=[stages.AGREED, stages.COPIED]).values_list("language")
    whole = dict(asked.annotate(Sum("redundancy")))
    chosen = Counter(dict(work.queued().filter(recheck=True).values_list("language").annotate(Count("pk"))))
    onward = _onward(task, able) if not task.kind.routing.waits else {}
    # Hidden gold answers also take annotators' time, and some cases take a second adjudicator's.
    hidden = 1 / (1 - 1 / honeypots.block(task)) if task.gold_share else 1.0
    twice = 1 + task.check_share
    found = [
        Queue(
            row["queue"],
            row["missing"] * hidden,
            row["waiting"] * hidden,
            whole.get(row["queue"], 0) * hidden,
            chosen[row["queue"]] * twice,
            onward.get(row["queue"], {}),
        )
        for row in states["queues"]
    ]
    known = {queue.name for queue in found}
    further = {name for of in onward.values() for name in of} - known - {ADJUDICATION}
    waiting = sum(row["adjudication"] for row in states["queues"])
    return [*found, *(Queue(name, 0.0) for name in sorted(further)), Queue(ADJUDICATION, waiting)]


def _onward(task: Task, able: Mapping[str, set[int]]) -> dict[str, dict[str, float]]:
    """Return where skipped units go, as in routing.py: the share of a queue's units by next queue."""
    routes = Routes.load(task)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    first = task.units.work().queued().order_by("position").values_list("language", "candidates", "visited", "round")
    for queue, candidates, visited, number in first[:SAMPLE]:
        passed = {queue, *visited}
        further = (name for code in candidates if (name := routes.queue_in(code)) not in passed and able.get(name))
        counts[queue][next(further, ADJUDICATION) if number < task.rounds else ADJUDICATION] += 1
    return {queue: {name: n / of.total() for name, n in of.items()} for queue, of in counts.items()}


def _rates(task: Task) -> dict[str, Share | None]:
    """Return how often annotators skip and disagree in the task so far.

    An answer that names another queue's language sends the unit on, so it counts as a skip.
    """
    said = Judgment.objects.live().of_work().filter(unit__task=task, lease__isnull=False).order_by()
    kinds = Counter(dict(said.values_list("kind").annotate(Count("pk"))))
    moved = Transition.objects.filter(unit__task=task, event__in=["answered", "conflicted", "named"]).order_by()
    events = Counter(dict(moved.values_list("event").annotate(Count("pk"))))
    adjudicated = task.on_conflict == stages.ADJUDICATION
    return {
        "skips": Share(kinds[Judgment.SKIP] + events.pop("named", 0), kinds.total()),
        "conflicts": Share(events["conflicted"], events.total()) if adjudicated else None,
    }


# --- Annotators


def _readers(task: Task, able: Mapping[str, set[int]], now: datetime) -> list[Reader]:
    """Return the annotators who may work now, and the adjudicators, with their days in the task."""
    queues: dict[int, list[str]] = defaultdict(list)
    for queue, people in sorted(able.items()):
        for person in people:
            queues[person].append(queue)
    for person in adjudicators().values_list("pk", flat=True):
        queues[person].append(ADJUDICATION)
    days, most = _days_of(task, list(queues), now), task.kind.sensitive.a_day if task.kind.sensitive else inf
    people = Annotator.objects.filter(pk__in=queues).order_by("pk").values_list("pk", "pseudonym", "user__date_joined")
    return [
        _reader(name, tuple(queues[person]), days.get(person, {}), max(joined, task.created_at or now), now, most)
        for person, name, joined in people
    ]


Day = tuple[int, int, float]  # number of judgments, number of timed judgments, seconds of these


def _days_of(task: Task, people: Sequence[int], now: datetime) -> dict[int, dict[date, Day]]:
    said = Judgment.objects.filter(annotator__in=people, answered_at__gte=now - WINDOW, unit__task=task)
    by_day = said.filter(lease__isnull=False).order_by().values_list("annotator", TruncDate("answered_at"))
    found: dict[int, dict[date, Day]] = defaultdict(dict)
    for person, day, number, timed, seconds in by_day.annotate(
        Count("pk"), Count("active_seconds"), Sum("active_seconds")
    ):
        found[person][day] = number, timed, seconds or 0.0
    return found


def _reader(
    name: str, queues: tuple[str, ...], days: Mapping[date, Day], since: datetime, now: datetime, most: float
) -> Reader:
    """Return an annotator with their pace.

    days: days on which they worked. Today is incomplete and counts only if it is the first.
    """
    today = now.date()
    days = {day: of for day, of in days.items() if day < today} or days
    if not days:
        return Reader(name, queues, idle=max(0, (now - since).days), most=most)
    timed, seconds = sum(of[1] for of in days.values()), sum(of[2] for of in days.values())
    every = sum(of[0] for of in days.values())
    known = bool(timed and seconds)
    last = max(days)
    return Reader(
        name,
        queues,
        answers=timed if known else 0,
        seconds=seconds / timed if known else 0.0,
        worked=len(days),
        hours=seconds * every / timed / 3600 / len(days) if known else 0.0,
        days=(max(today - timedelta(days=1), last) - min(days)).days + 1,
        idle=max(0, (today - last).days - 1),
        most=most,
    )
