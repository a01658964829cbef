"""Statistics on a task: progress, pace, time per answer, tests and gold answers.

All rows can be serialized with Django's JSON encoder. Answers to hidden gold items do not count as work; only
`gold_answers` includes them. This module only reads data.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
from django.conf import settings
from django.db.models import Count, F, Max, Min, QuerySet, Sum, TextField, Value
from django.db.models.functions import Coalesce, NullIf, TruncDay, TruncWeek
from django.utils import timezone

from annotate.controls import honeypots
from annotate.core import stages
from annotate.core.estimation.proportions import proportion
from annotate.kinds import IMPORTED_KINDS
from annotate.models import Annotator, GoldAnswer, Judgment, Pause, Task, TrialAnswer, Unit
from annotate.quality.guideline_versions import majors

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
# Answers are counted by hour if the time since the first answer is at most HOURLY, by day if it is at most DAILY, and
# otherwise by week.
HOURLY, DAILY = 3 * DAY, 120 * DAY
WAITING_COPIES = "waiting_copies"  # copies that are not done, because their original is not
QUARTILES = (0.25, 0.5, 0.75)
# A gold answer is doubtful if at least DOUBTED_FROM annotators answered its item, and at most a share of DOUBTED_AT
# agree with it.
DOUBTED_FROM, DOUBTED_AT = 3, 1 / 3


def by_name(rows: Iterable[dict[str, Any]], *keys: str) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["name"].casefold(), *(row[key] for key in keys)))


def pick(of: Any, fields: str) -> dict[str, Any]:
    """Return attributes of an object as a dict.

    fields: entries "key=path" separated by spaces, or just "key" if the path is the same.
    """
    pairs = (field.partition("=") for field in fields.split())
    return {key: attrgetter(path or key)(of) for key, _, path in pairs}


def only(annotator: Annotator | None) -> dict[str, Annotator]:
    """Return keyword arguments for a filter that selects an annotator's rows, or all rows for None."""
    return {} if annotator is None else {"annotator": annotator}


def new_pauses() -> QuerySet[Pause]:
    """Return the pauses imposed by the pause rule in open tasks that no manager has lifted or commented on."""
    return Pause.objects.filter(lifted_at=None, by=None, reason="", task__is_open=True)


def overview() -> list[dict[str, Any]]:
    """Return a row for each task. Open tasks come first, then newer tasks."""
    units = Unit.objects.work().order_by()
    at: dict[int, Counter[str]] = defaultdict(Counter)
    by_stage = units.values_list("task", "stage").annotate(Count("pk"))
    copies = units.waiting_copies().values_list("task", Value(WAITING_COPIES)).annotate(Count("pk"))
    for task, stage, number in by_stage.union(copies, all=True):
        at[task][stage] = number
    live = counted_answers().filter(answered_at__gte=timezone.now() - DAY)
    live = live.exclude(unit__task__kind_slug__in=IMPORTED_KINDS).order_by()
    today = dict(live.values_list("unit__task").annotate(Count("pk")))
    running = Pause.objects.filter(lifted_at=None).order_by().values_list("task")
    paused, new = dict(running.annotate(Count("pk"))), dict(new_pauses().values_list("task").annotate(Count("pk")))
    return [
        pick(task, "name title kind=kind_slug is_open")
        | {
            "units": sum(at[task.pk][stage] for stage in stages.STAGES),
            "done": sum(at[task.pk][stage] for stage in stages.FINISHED) - at[task.pk][WAITING_COPIES],
            "discarded": at[task.pk][stages.DISCARDED],
            "queued": at[task.pk][stages.QUEUED],
            "adjudication": at[task.pk][stages.ADJUDICATION],
            "answers_today": today.get(task.pk, 0),
            "paused": paused.get(task.pk, 0),
            "newly_paused": new.get(task.pk, 0),
        }
        for task in Task.objects.order_by("-is_open", "-pk")
    ]


def state_of(row: Mapping[str, Any], *, undecided: bool) -> str:
    """Return the state of a task: finished, closed, stalled or running.

    row: a row with `units`, `done`, `is_open` and `stuck` (number of stalled queues).
    undecided: whether units are waiting for an adjudicator, but nobody may decide them.
    """
    if row["units"] and row["done"] == row["units"]:
        return "finished"
    if not row["is_open"]:
        return "closed"
    return "stalled" if row["stuck"] or undecided else "running"


def counted_answers(task: Task | None = None) -> QuerySet[Judgment]:
    """Return the valid answers in a task, or in all tasks. Answers to hidden gold items are excluded."""
    live = Judgment.objects.live().answers().of_work()
    return live if task is None else live.filter(unit__task=task)


def _language(task: Task, unit: str = "") -> Coalesce:
    """Return an expression for a unit's language, taken from the question, the record, or the unit's last queue.

    unit: lookup prefix of the unit, such as "unit__".
    """
    paths = (NullIf(F(f"{unit}{path}"), Value("")) for path in task.kind.statistics.language_paths)
    # The path can be a label, which has no maximum length.
    return Coalesce(*paths, Value(""), Value(""), output_field=TextField())


def progress(task: Task) -> dict[str, Any]:
    """Return the counts of units and answers.

    The result has `languages`, a list of rows, and `all`, a row with the totals. A row has `language`, `units`, `done`,
    `answers` (on unfinished units), `missing`, `waiting_copies`, and the number of units at each stage.
    """
    units = task.units.work().order_by().annotate(of=_language(task)).values_list("of", "stage", "copy_of__stage")
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for language, stage, of_original, number, redundancy in units.annotate(Count("pk"), Sum("redundancy")):
        done = number if (of_original or stage) in stages.FINISHED else 0
        copies, missing = number * (of_original in stages.WAITING), redundancy if stage == stages.QUEUED else 0
        rows[language].update({"units": number, "done": done, WAITING_COPIES: copies, "missing": missing})
        rows[language][stage] += number
    waiting = counted_answers(task).filter(unit__stage=stages.QUEUED).order_by()
    waiting = waiting.annotate(of=_language(task, "unit__"))
    for language, number in waiting.values_list("of").annotate(Count("pk")):
        rows[language]["answers"] += number
        rows[language]["missing"] -= number
    columns = ("units", "done", "answers", "missing", WAITING_COPIES, *stages.STAGES)
    everything: Counter[str] = sum(rows.values(), Counter())
    languages = [{"language": code, **{key: row[key] for key in columns}} for code, row in sorted(rows.items())]
    return {"languages": languages, "all": {"language": "", **{key: everything[key] for key in columns}}}


def pace(task: Task, now: datetime | None = None) -> dict[str, Any]:
    """Return the number of valid answers over time, with `zone`, `answers`, `today`, `last_day`, `cut` and `since`.

    Times are in the installation's time zone.

    answers, today: number of answers in total, and in the last 24 hours.
    last_day: number of answers in each of the last 24 hours, in rows with `at` and `answers`.
    cut: unit of time in `since`: hour, day or week.
    since: number of answers in each unit of time since the first answer, in rows with `at` and `answers`.
    """
    first = _hour(now) - timedelta(hours=23)
    live = counted_answers(task).order_by()
    hours = _by_hour(live.filter(answered_at__gte=first), first)
    span = live.aggregate(first=Min("answered_at"), last=Max("answered_at"), answers=Count("pk"))
    cut, since = _since_first(live, span)
    result = {"zone": settings.TIME_ZONE, "answers": span["answers"], "today": hours.total()}
    return result | {"last_day": _moments(first, hours, 24), "cut": cut, "since": since}


def _since_first(live: QuerySet[Judgment], span: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    if not span["answers"]:
        return "hour", []
    length = span["last"] - span["first"]
    if length <= HOURLY:
        first = _hour(span["first"])
        hours = _by_hour(live, first)
        return "hour", _moments(first, hours, max(hours) + 1)
    cut, trunc, step = ("day", TruncDay, DAY) if length <= DAILY else ("week", TruncWeek, 7 * DAY)
    truncated = trunc("answered_at", tzinfo=timezone.get_default_timezone())
    counts = dict(live.annotate(at=truncated).values_list("at").annotate(Count("pk")))
    moments, at, last = [], min(counts), max(counts)
    while at <= last:
        moments.append({"at": at, "answers": counts.get(at, 0)})
        at += step  # from midnight to midnight, even if the clocks change in between
    return cut, moments


def _hour(at: datetime | None) -> datetime:
    """Return the start of the hour in the installation's time zone, converted to UTC.

    In UTC, hours can be added to the result even if the clocks change.
    """
    local = timezone.localtime(at, timezone.get_default_timezone())
    return local.replace(minute=0, second=0, microsecond=0).astimezone(UTC)


def _by_hour(live: QuerySet[Judgment], first: datetime) -> Counter[int]:
    return Counter(int((at - first) // HOUR) for at in live.values_list("answered_at", flat=True))


def _moments(first: datetime, counts: Counter[int], hours: int) -> list[dict[str, Any]]:
    zone = timezone.get_default_timezone()
    return [{"at": (first + hour * HOUR).astimezone(zone), "answers": counts[hour]} for hour in range(hours)]


def times(task: Task) -> dict[str, Any]:
    """Return the active seconds per answer.

    The result has `languages` and `annotators`, two lists of rows, and `all`, a row for all answers; None if no time
    was measured. A row has `language` or `annotator`, `count`, and `quartiles` (a list of three numbers). Languages and
    annotators without measured times have no row.
    """
    live = counted_answers(task).filter(active_seconds__isnull=False).order_by()
    timed = live.annotate(of=_language(task, "unit__")).values_list("of", "annotator_id", "active_seconds")
    rows: list[tuple[str, int, Any]] = list(timed)
    languages, annotators = defaultdict[str, list[float]](list), defaultdict[int, list[float]](list)
    for language, annotator, seconds in rows:
        languages[language].append(seconds)
        annotators[annotator].append(seconds)
    return {
        "languages": [{"language": key, **_quartiles(of)} for key, of in sorted(languages.items())],
        "annotators": [{"annotator": key, **_quartiles(of)} for key, of in annotators.items()],
        "all": _quartiles([seconds for *_, seconds in rows]) if rows else None,
    }


def _quartiles(seconds: list[float]) -> dict[str, Any]:
    return {"count": len(seconds), "quartiles": [float(value) for value in np.quantile(seconds, QUARTILES)]}


# --- Tests and gold answers


def tests(task: Task) -> dict[str, Any]:
    """Return the results of the test, as a dict with `annotators` and `languages`.

    annotators: see `trials_of`.
    languages: rows with `language`, `took`, `passed`, `granted`, `failed` (number of annotators without a remaining
        try), `tests`, and `share` (of passed tests).
    """
    rows = trials_of(task)
    return {"annotators": rows, "languages": [_test_counts(code, rows) for code in task.languages]}


def trials_of(task: Task, of: Annotator | None = None) -> list[dict[str, Any]]:
    """Return the tests under the current major version of the guidelines, sorted by the annotator's name.

    of: annotator whose tests to return; None for all annotators.

    There is a row for each annotator and language. A row has:

    annotator, name, language: primary key and name of the annotator, and the language.
    tries: number of tests.
    right, asked: best result.
    last: time of the last test.
    open: whether a test was started and is not finished.
    qualified: whether the annotator is qualified.
    granted: whether a manager qualified the annotator without a test.
    passed: number of tests that the annotator passed.
    left: number of remaining tries.
    """
    current = majors(task)
    rows: dict[tuple[int, str], dict[str, Any]] = {}

    def row_of(annotator: Annotator, language: str) -> dict[str, Any]:
        row = {"annotator": annotator.pk, "name": str(annotator), "language": language}
        row |= {"tries": 0, "right": None, "asked": 0, "last": None, "open": False}
        row |= {"qualified": False, "granted": False, "passed": 0}
        return rows.setdefault((annotator.pk, language), row)

    trials = task.trials.filter(kind="test", **only(of)).select_related("annotator__user", "guidelines").order_by("pk")
    for trial in trials.annotate(asked=Count("answers")):
        if trial.guidelines.major == current.get(trial.language):
            row = row_of(trial.annotator, trial.language)
            row["tries"] += 1
            row["last"] = trial.finished_at or trial.started_at
            row["open"] |= trial.finished_at is None
            if trial.finished_at and (row["right"] is None or trial.right > row["right"]):
                row["right"], row["asked"] = trial.right, trial.asked
            row["passed"] += bool(trial.passed)
    for held in task.qualifications.filter(**only(of)).select_related("annotator__user"):
        if held.major == current.get(held.language):
            row_of(held.annotator, held.language).update(qualified=True, granted=held.granted_by_id is not None)
    for row in rows.values():
        row["left"] = 0 if row["qualified"] else max(0, task.tries - row["tries"])
    return by_name(rows.values(), "language")


def _test_counts(language: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    rows = [row for row in rows if row["language"] == language]
    finished = sum(row["tries"] - row["open"] for row in rows)
    return {
        "language": language,
        "took": sum(row["tries"] > 0 for row in rows),
        "passed": sum(row["passed"] > 0 for row in rows),
        "granted": sum(row["granted"] for row in rows),
        "failed": sum(not row["qualified"] and not row["left"] and not row["open"] for row in rows),
        "tests": finished,
        "share": proportion(sum(row["passed"] for row in rows), finished).as_dict(),
    }


def gold_answers(task: Task) -> list[dict[str, Any]]:
    """Return the gold answers in tests and queues. Those with the least agreement from annotators come first.

    A row has `item`, `language`, `purpose`, `label`, `text`, `asked`, `right`, `said` (most frequent answer that
    differs from the gold answer) and `doubtful` (whether the gold answer itself may be wrong).
    """
    tried = TrialAnswer.objects.filter(gold_answer__task=task, trial__kind="test", trial__finished_at__isnull=False)
    tests = tried.exclude(label="").order_by().values_list("gold_answer__item", "label").annotate(Count("pk"))
    hidden = honeypots.answers(task).order_by().values_list("unit__item", "label").annotate(Count("pk"))
    answers_by_item: dict[int, Counter[str]] = defaultdict(Counter)
    for item, label, number in chain[Any](tests, hidden):
        answers_by_item[item][label] += number
    golds = task.gold_answers.exclude(purpose="practice").select_related("item").order_by("pk")
    rows = [_gold_answer(task, gold, answers_by_item[gold.item_id]) for gold in golds]
    return sorted(rows, key=lambda row: (row["right"] / row["asked"] if row["asked"] else 2, -row["asked"]))


def _gold_answer(task: Task, gold: GoldAnswer, answers: Counter[str]) -> dict[str, Any]:
    agrees = {label: task.kind.rules.agrees(label, gold.label) for label in answers}
    answer_count, right = answers.total(), sum(number for label, number in answers.items() if agrees[label])
    other_answer = next((label for label, _ in answers.most_common() if not agrees[label]), "")
    doubtful = answer_count >= DOUBTED_FROM and right <= DOUBTED_AT * answer_count
    row = pick(gold, "item=item.key language=item.language purpose label text=item.text")
    return row | {"asked": answer_count, "right": right, "said": other_answer, "doubtful": doubtful}
