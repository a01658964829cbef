"""What a manager is shown of a task's work, in figures: how far it is, how fast, who does it and how well. Reads only.

Everything here can be written as JSON, by Django's encoder where there are times. Why a queue stands still is in
queue_states.py, how far people agree in quality/agreement.py; how it is shown, in reports/. Honeypots are no work:
they count in no figure but those about them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
from django.conf import settings
from django.db.models import Count, F, Max, Min, Q, Sum, TextField, Value
from django.db.models.functions import Coalesce, NullIf, TruncDay, TruncWeek
from django.utils import timezone

from annotate.core import stages
from annotate.core.estimation import proportion
from annotate.kinds import MADE_ELSEWHERE
from annotate.models import Annotator, Judgment, Lease, Pause, Task, TrialAnswer, Unit
from annotate.quality import honeypots
from annotate.quality.guidelines import majors
from annotate.work.routes import Routes, readers_of

DAY = timedelta(days=1)
# Up to this long, the time since the beginning is cut into hours, then into days, then into weeks.
HOURLY, DAILY = 3 * DAY, 120 * DAY
PAUSE = ("right", "asked", "at")
WAITING_COPIES = "waiting_copies"  # beside the stages: copies count as done when the unit is whose label they take
MOST_LABELS = 20
QUARTILES = (0.25, 0.5, 0.75)
# A known answer is doubtful if it has at least so many answers and at most this share of them agrees with it.
DOUBTED_FROM, DOUBTED_AT = 3, 1 / 3


def newly_paused() -> int:
    """How many pauses of the rule no manager has looked at: neither lifted nor given a reason."""
    return _new().count()


def unseen_pauses() -> list[dict]:
    """The pauses that newly_paused counts, the newest first: task, name (of the annotator), right, asked, at."""
    found = _new().select_related("task", "annotator__user").order_by("-at", "-pk")
    return [
        {"task": pause.task.name, "name": str(pause.annotator), **{key: getattr(pause, key) for key in PAUSE}}
        for pause in found
    ]


def _new():
    return Pause.objects.filter(lifted_at=None, by=None, reason="", task__is_open=True)


def overview() -> list[dict]:
    """One row a task, the newest first, open ones before closed ones."""
    units = Unit.objects.work().order_by()
    at: dict[int, Counter[str]] = defaultdict(Counter)
    by_stage = units.values_list("task", "stage").annotate(Count("pk"))
    copies = units.waiting_copies().values_list("task", Value(WAITING_COPIES)).annotate(Count("pk"))
    for task, stage, number in by_stage.union(copies, all=True):
        at[task][stage] = number
    live = _counted().filter(answered_at__gte=timezone.now() - DAY).exclude(unit__task__kind_slug__in=MADE_ELSEWHERE)
    today = dict(live.order_by().values_list("unit__task").annotate(Count("pk")))
    running = Pause.objects.filter(lifted_at=None).order_by().values_list("task")
    paused = dict(running.annotate(Count("pk")))
    new = dict(_new().order_by().values_list("task").annotate(Count("pk")))
    rows = [
        {
            "name": task.name,
            "title": task.title,
            "kind": task.kind_slug,
            "is_open": task.is_open,
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
    return rows


def _counted(task: Task | None = None):
    """The answers that count, of units that are work; of a task, or of all."""
    live = Judgment.objects.live().answers().of_work()
    return live if task is None else live.filter(unit__task=task)


def _language(task: Task, unit: str = ""):
    """The language of a unit: the one that is asked about, that of the record, or the queue it was in last.

    unit: the way to the unit, as in "unit__".
    """
    paths = (NullIf(F(f"{unit}{path}"), Value("")) for path in task.kind.language_paths)
    # Codes of languages are short, and labels, which may be codes too, of any length.
    return Coalesce(*paths, Value(""), Value(""), output_field=TextField())


def progress(task: Task) -> dict:
    """Units by language and stage, and the answers that are there and that are still asked for.

    {"languages": [ROW, ...] by name, "all": ROW}; ROW: language, units, done, answers (on what waits), missing,
    waiting_copies, and a count for each stage by its name.
    """
    units = task.units.work().order_by().annotate(of=_language(task)).values_list("of", "stage", "copy_of__stage")
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for language, stage, of_original, number, asked in units.annotate(Count("pk"), Sum("redundancy")):
        rows[language][stage] += number
        rows[language]["units"] += number
        rows[language]["done"] += number if (of_original or stage) in stages.FINISHED else 0
        rows[language][WAITING_COPIES] += number if of_original in stages.WAITING else 0
        rows[language]["missing"] += asked if stage == stages.QUEUED else 0
    waiting = _counted(task).filter(unit__stage=stages.QUEUED).order_by()
    waiting = waiting.annotate(of=_language(task, "unit__"))
    for language, number in waiting.values_list("of").annotate(Count("pk")):
        rows[language]["answers"] += number
        rows[language]["missing"] -= number
    kept = ("units", "done", "answers", "missing", WAITING_COPIES, *stages.STAGES)
    in_all: Counter[str] = sum(rows.values(), Counter())
    return {
        "languages": [
            {"language": language, **{key: row[key] for key in kept}} for language, row in sorted(rows.items())
        ],
        "all": {"language": "", **{key: in_all[key] for key in kept}},
    }


def pace(task: Task, now: datetime | None = None) -> dict:
    """Answers by the hour in the last 24 hours, and by the hour, day or week since the first, in the installation's
    time zone: these figures are kept, and shown to everybody.

    {"zone", "answers": in all, "today": in the last 24 hours, "last_day": [MOMENT, ...] of 24, "cut": "hour", ...,
     "since": [MOMENT, ...]}; MOMENT: at, answers. Those that were taken back or voided do not count.
    """
    here = timezone.get_default_timezone()
    first = _hour(now) - timedelta(hours=23)
    live = _counted(task).order_by()
    hours = _by_hour(live.filter(answered_at__gte=first).values_list("answered_at", flat=True), first)
    span = live.aggregate(first=Min("answered_at"), last=Max("answered_at"), answers=Count("pk"))
    cut, since = _since(live, span, here)
    return {
        "zone": settings.TIME_ZONE,
        "answers": span["answers"],
        "today": hours.total(),
        "last_day": _hours(first, hours, 24, here),
        "cut": cut,
        "since": since,
    }


def _since(live, span: dict, here) -> tuple[str, list[dict]]:
    if not span["answers"]:
        return "hour", []
    length = span["last"] - span["first"]
    if length <= HOURLY:
        first = _hour(span["first"])
        hours = _by_hour(live.values_list("answered_at", flat=True), first)
        return "hour", _hours(first, hours, max(hours) + 1, here)
    cut, trunc, step = ("day", TruncDay, DAY) if length <= DAILY else ("week", TruncWeek, 7 * DAY)
    found = dict(live.annotate(at=trunc("answered_at", tzinfo=here)).values_list("at").annotate(Count("pk")))
    moments, at, last = [], min(found), max(found)
    while at <= last:
        moments.append({"at": at, "answers": found.get(at, 0)})
        at += step  # from midnight to midnight, however long that day is
    return cut, moments


def _hour(at: datetime | None) -> datetime:
    """The beginning of its hour in the installation's time zone; in UTC, so that an hour is an hour when the clocks
    change.
    """
    return (
        timezone.localtime(at, timezone.get_default_timezone())
        .replace(minute=0, second=0, microsecond=0)
        .astimezone(UTC)
    )


def _by_hour(times, first: datetime) -> Counter[int]:
    return Counter(int((at - first) // timedelta(hours=1)) for at in times)


def _hours(first: datetime, counts: Counter[int], number: int, here) -> list[dict]:
    return [{"at": (first + timedelta(hours=hour)).astimezone(here), "answers": counts[hour]} for hour in range(number)]


def times(task: Task) -> dict:
    """Active seconds an answer, idling cut off: {"languages": [ROW, ...], "annotators": [ROW, ...], "all": ROW}.

    ROW: language or annotator, count, quartiles (three numbers); if no time was measured there is no row.
    """
    live = _counted(task).filter(active_seconds__isnull=False).order_by()
    rows = live.annotate(of=_language(task, "unit__")).values_list("of", "annotator_id", "active_seconds")
    languages, annotators = defaultdict(list), defaultdict(list)
    for language, annotator, seconds in rows:
        languages[language].append(seconds)
        annotators[annotator].append(seconds)
    everything = [seconds for each in languages.values() for seconds in each]
    return {
        "languages": [{"language": key, **_quartiles(each)} for key, each in sorted(languages.items())],
        "annotators": [{"annotator": key, **_quartiles(each)} for key, each in annotators.items()],
        "all": _quartiles(everything) if everything else None,
    }


def _quartiles(seconds: list[float]) -> dict:
    return {"count": len(seconds), "quartiles": [float(value) for value in np.quantile(seconds, QUARTILES)]}


def people(task: Task) -> list[dict]:
    """Everybody who has judged or tried something in the task, by name.

    A row: annotator, name, active (may log in), answers, skips, taken_back, voided (by a manager), last (time of the
    last of all these), given_back and ran_out (units that they let go of without an answer), known (gold answers given,
    voided ones too: asked, right and accuracy with its interval), may (the queues in which they may work now), left (of
    those, queue -> gold answers that they can still be asked for).
    """
    rows, given = _work(task), honeypots.given(task)
    pool = honeypots.by_language(task.units.filter(honeypot=True))
    queues = Routes.load(task).readers()
    for row in rows:
        who = row["annotator"]
        row["may"] = sorted(queue for queue, able in queues.items() if who in able)
        row["left"] = {queue: pool[queue] - given[who, queue] for queue in row["may"] if pool[queue]}
    return sorted(rows, key=lambda row: (row["name"].casefold(), row["annotator"]))


def _work(task: Task) -> list[dict]:
    """What everybody has done."""
    live, manager = Q(voided_at=None), Q(voided_by__isnull=False)
    work = Judgment.objects.of_work().filter(unit__task=task, lease__isnull=False).order_by()
    counts = work.values("annotator").annotate(
        answers=Count("pk", filter=live & Q(kind=Judgment.ANSWER)),
        skips=Count("pk", filter=live & Q(kind=Judgment.SKIP)),
        taken_back=Count("pk", filter=~live & ~manager),
        voided=Count("pk", filter=manager),
        last=Max("answered_at"),
    )
    by_person = {row.pop("annotator"): row for row in counts}
    has_run_out = Q(outcome="expired") | Q(closed_at=None, expires_at__lte=timezone.now())
    leases = Lease.objects.filter(Q(outcome="released") | has_run_out, unit__task=task).order_by()
    let_go = leases.values("annotator").annotate(
        given_back=Count("pk", filter=Q(outcome="released")), ran_out=Count("pk", filter=has_run_out)
    )
    let_go_by = {row.pop("annotator"): row for row in let_go}
    known = honeypots.by_annotator(task)
    tried = set(task.trials.order_by().values_list("annotator_id", flat=True))
    nothing = {"answers": 0, "skips": 0, "taken_back": 0, "voided": 0, "last": None, "given_back": 0, "ran_out": 0}
    seen = {*by_person, *let_go_by, *known, *tried}
    return [
        {
            "annotator": annotator.pk,
            "name": str(annotator),
            "active": annotator.user.is_active,
            **nothing,
            **by_person.get(annotator.pk, {}),
            **let_go_by.get(annotator.pk, {}),
            "known": known.get(annotator.pk),
        }
        for annotator in Annotator.objects.filter(pk__in=seen).select_related("user")
    ]


def _own(annotator: Annotator | None) -> dict[str, Annotator]:
    return {} if annotator is None else {"annotator": annotator}


def names_of(annotators: Iterable[int]) -> dict[int, str]:
    found = Annotator.objects.filter(pk__in=list(annotators)).select_related("user")
    return {annotator.pk: str(annotator) for annotator in found}


class LabelsSaid(NamedTuple):
    """How many answers stand, and how many of them have each label; of one annotator, or of all."""

    answers: int
    labels: Counter[str]


def labels_said(task: Task) -> dict[int | None, LabelsSaid]:
    """Annotator -> what they said; None -> what all said together."""
    answers, labels = Counter[int | None](), defaultdict[int | None, Counter[str]](Counter)
    rows = _counted(task).order_by().values_list("annotator", "label").annotate(Count("pk"))
    for annotator, label, number in rows:
        facets = task.kind.form.facets(label)
        for who in (annotator, None):
            answers[who] += number
            for facet in facets:
                labels[who][facet] += number
    return {who: LabelsSaid(answers[who], labels[who]) for who in {*answers, None}}


def person(task: Task, annotator: Annotator, said: Mapping[int | None, LabelsSaid]) -> dict:
    """What one annotator says: {"labels": [ROW, ...], "known": [ROW, ...]}.

    A row a label, the most used first: label, and the share of their answers that stand and of everybody's that have
    it: own, all; the first MOST_LABELS where an answer is several out of thousands. A row a gold answer that they were
    asked for, the latest first: at, item, text, label, said, right, voided. said: labels_said, which may have been
    counted a while ago.
    """
    everybody = said[None]
    own = said.get(annotator.pk, LabelsSaid(0, Counter()))
    most_used = sorted(everybody.labels.items(), key=lambda row: (-row[1], row[0]))
    given = (
        honeypots.answers(task)
        .filter(annotator=annotator)
        .select_related("unit__item", "unit__task")
        .order_by("-answered_at")
    )
    return {
        "labels": [
            {"label": label, "own": own.labels[label] / max(1, own.answers), "all": number / everybody.answers}
            for label, number in most_used[: MOST_LABELS if task.kind.form.SEVERAL else None]
        ],
        "known": [
            {
                "at": judgment.answered_at,
                "item": judgment.unit.item.key,
                "text": judgment.unit.item.text,
                "label": judgment.unit.known_answer,
                "said": judgment.label,
                "right": honeypots.is_right(judgment),
                "voided": judgment.voided_by_id is not None,
            }
            for judgment in given
        ],
    }


def pauses(task: Task, of: Annotator | None = None) -> list[dict]:
    """Everybody who was ever paused, newest first; running: whether they still are; new: no manager has looked at it.

    of: only this annotator's pauses.
    """
    found = task.pauses.filter(**_own(of)).select_related("annotator__user", "by", "lifted_by").order_by("-at", "-pk")
    return [
        {
            "pause": pause.pk,
            "annotator": pause.annotator_id,
            "name": str(pause.annotator),
            "right": pause.right,
            "asked": pause.asked,
            "by": _user(pause.by),
            "reason": pause.reason,
            "at": pause.at,
            "lifted_at": pause.lifted_at,
            "lifted_by": _user(pause.lifted_by),
            "running": pause.lifted_at is None,
            "new": pause.lifted_at is None and pause.by is None and not pause.reason,
        }
        for pause in found
    ]


def consents(task: Task) -> list[dict]:
    """Everybody who ever agreed to work that may hurt, newest first; withdrawn_at: None while it runs."""
    found = task.consents.select_related("annotator__user").order_by("-at", "-pk")
    return [
        {
            "annotator": consent.annotator_id,
            "name": str(consent.annotator),
            "at": consent.at,
            "withdrawn_at": consent.withdrawn_at,
        }
        for consent in found
    ]


def not_agreed(task: Task) -> list[str]:
    """The names of those who might do work that may hurt, and have not agreed to it or have taken that back."""
    people = readers_of([Routes.load(task)])[task.pk]
    lacking = set().union(*people.passed.values()) - set().union(*people.agreed.values())
    return sorted(map(str, Annotator.objects.filter(pk__in=lacking).select_related("user")), key=str.casefold)


def _user(user) -> str:
    return (user.get_full_name() or user.username) if user else ""


def tests(task: Task) -> dict:
    """Who took the test, in which language, and how it went: {"annotators": [ROW, ...], "languages": [ROW, ...]}.

    The rows of annotators are those of `trials_of`. A row a language: took, passed, granted, failed (no try left),
    tests, share of tests passed.
    """
    rows = trials_of(task)
    return {"annotators": rows, "languages": [_tested(code, rows) for code in task.languages]}


def trials_of(task: Task, of: Annotator | None = None) -> list[dict]:
    """The tests of everybody, or of one annotator, under the major version of the guidelines that holds; by name.

    A row a person and language: annotator, name, language, tries, right and asked (of the best), last, open (one has
    begun), qualified, granted (by a manager, without a test), left (further tries).
    """
    holding = majors(task)
    trials = task.trials.filter(kind="test", **_own(of)).select_related("annotator__user", "guidelines").order_by("pk")
    rows: dict[tuple[int, str], dict] = {}

    def row(annotator: Annotator, language: str) -> dict:
        nothing = {"tries": 0, "right": None, "asked": 0, "last": None, "open": False}
        nothing |= {"qualified": False, "granted": False, "passed": 0}
        who = {"annotator": annotator.pk, "name": str(annotator), "language": language}
        return rows.setdefault((annotator.pk, language), {**who, **nothing})

    for trial in trials.annotate(asked=Count("answers")):
        if trial.guidelines.major != holding.get(trial.language):
            continue
        found = row(trial.annotator, trial.language)
        found["tries"] += 1
        found["last"] = trial.finished_at or trial.started_at
        found["open"] |= trial.finished_at is None
        if trial.finished_at and (found["right"] is None or trial.right > found["right"]):
            found["right"], found["asked"] = trial.right, trial.asked
        found["passed"] += bool(trial.passed)
    for held in task.qualifications.filter(**_own(of)).select_related("annotator__user"):
        if held.major == holding.get(held.language):
            found = row(held.annotator, held.language)
            found["qualified"], found["granted"] = True, held.granted_by_id is not None
    for found in rows.values():
        found["left"] = 0 if found["qualified"] else max(0, task.tries - found["tries"])
    return sorted(rows.values(), key=lambda found: (found["name"].casefold(), found["language"]))


def _tested(language: str, rows: list[dict]) -> dict:
    own = [row for row in rows if row["language"] == language]
    tests = sum(row["tries"] - row["open"] for row in own)
    return {
        "language": language,
        "took": sum(row["tries"] > 0 for row in own),
        "passed": sum(row["passed"] > 0 for row in own),
        "granted": sum(row["granted"] for row in own),
        "failed": sum(not row["qualified"] and not row["left"] and not row["open"] for row in own),
        "tests": tests,
        "share": proportion(sum(row["passed"] for row in own), tests).as_dict(),
    }


def known_answers(task: Task) -> list[dict]:
    """The gold answers of test and queue by how few agree with them, and which of them may be wrong themselves.

    A row: item, language, purpose, label, text, asked, right, said (the other answer given most often), doubtful.
    """
    said: dict[int, Counter[str]] = defaultdict(Counter)
    golds = list(task.gold_answers.exclude(purpose="practice").select_related("item").order_by("pk"))
    given = TrialAnswer.objects.filter(gold_answer__task=task, trial__kind="test", trial__finished_at__isnull=False)
    given = given.exclude(label="").order_by().values_list("gold_answer__item", "label")
    for item, label, number in given.annotate(Count("pk")):
        said[item][label] += number
    for item, label, number in (
        honeypots.answers(task).order_by().values_list("unit__item", "label").annotate(Count("pk"))
    ):
        said[item][label] += number
    rows = []
    for gold in golds:
        answers = said[gold.item_id]
        agrees = task.kind.agrees
        asked, right = answers.total(), sum(number for said, number in answers.items() if agrees(said, gold.label))
        others = [label for label, _ in answers.most_common() if not agrees(label, gold.label)]
        rows.append(
            {
                "item": gold.item.key,
                "language": gold.item.language,
                "purpose": gold.purpose,
                "label": gold.label,
                "text": gold.item.text,
                "asked": asked,
                "right": right,
                "said": others[0] if others else "",
                "doubtful": asked >= DOUBTED_FROM and right <= DOUBTED_AT * asked,
            }
        )
    return sorted(rows, key=lambda row: (row["right"] / row["asked"] if row["asked"] else 2, -row["asked"]))
