"""Managers' pages for a task: reports on progress, people and agreement, and decisions about an annotator's work.

figures/ and quality/ compute the figures, and work/interventions.py applies the decisions. The pages for all tasks are
in dashboard.py.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from django.contrib import messages
from django.core.cache import cache
from django.db.models import Count, Max
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.text import slugify

from annotate.controls import honeypots
from annotate.controls.honeypots import rule as rule_of
from annotate.controls.replenishment import class_progress, class_progress_table
from annotate.core import stages
from annotate.core.refusals import InvalidAnswer
from annotate.figures import (
    annotator_statistics,
    overview_report,
    people_report,
    plan_report,
    progress_report,
    task_overview,
    task_statistics,
)
from annotate.figures.attention import FEW
from annotate.figures.figure_cache import PATIENCE, cached_forecast, figures, forget
from annotate.figures.further_work import further_work
from annotate.figures.interval_width import CHECKS, POSTS, SECONDS
from annotate.figures.queue_states import queue_states
from annotate.kinds.control import Panel, panels
from annotate.manager_pages import account_administration
from annotate.manager_pages.action_forms import address
from annotate.manager_pages.dashboard import manage_page, redirect_with_message, shows_figures, sort_of
from annotate.models import Annotator, Flag, Job, Judgment, Pause, Task
from annotate.pages.access import UserRequest, annotator_of, may
from annotate.quality import agreement_report, agreement_statistics, preference_report, preference_statistics
from annotate.reports.tables import Cell, Table, many
from annotate.work import interventions
from annotate.work.accounts import check_may_change, may_change
from annotate.work.adjudication import adjudicates_in, waiting_counts
from annotate.work.task_settings import is_extendable

# Number of bootstrap replicates. Pages must be fast; `assay agreement` uses more.
REPLICATES = 200
HOUR = 3600  # seconds
# Maximum number of units to list on which Dawid and Skene's model and the majority disagree.
MOST = 20
FEW_EXPORTS = 3  # maximum number of exports in a task's overview


def _person_url(task: Task) -> Callable[[int], str]:
    return lambda annotator: reverse("manage-person", args=[task.name, annotator])


def _unit_url(task: Task) -> Callable[[int], str]:
    return lambda unit: reverse("manage-item", args=[task.name, unit])


@shows_figures
def task(request: UserRequest, task: Task) -> HttpResponse:
    report, counted_at = figures("progress", task, lambda: _load_progress(task))
    (progress, pace, times), states, sort = report["work"], report["states"], sort_of(request)
    return manage_page(
        request,
        "task",
        task,
        counted_at=counted_at,
        alerts=list(_alerts(task, report)),
        state=task_statistics.state_of(
            {**progress["all"], "is_open": task.is_open, "stuck": states["stuck"]},
            undecided=bool(report["undecidable"]),
        ),
        progress=progress["all"],
        shares=progress_report.shares(progress["all"]),
        bar=progress_report.progress_bar(progress["all"]),
        progress_table=progress_report.progress_table(progress, sort),
        progress_plot=progress_report.progress_plot(progress),
        shown=min(progress_report.FEW, len(progress["languages"])),
        pace=pace,
        trend=progress_report.trend([row["answers"] for row in pace["since"]], f"Answers per {pace['cut']}"),
        times=times["all"],
        **_forecast_context(report["forecast"], sort),
        queues_table=progress_report.queues_table(states, sort, tested=bool(task.test_items)),
        idle_table=progress_report.idle_table(states, _person_url(task), sort),
        exports=Job.objects.filter(action="export_gold", given__task=task.name)[:FEW_EXPORTS],
        extendable=is_extendable(task),
        decides=may(request.user, "decide", task.name),
        starts=may(request.user, "start"),
        to_adjudicate=_to_adjudicate(request, task) if progress["all"][stages.ADJUDICATION] else 0,
    )


def _to_adjudicate(request: UserRequest, task: Task) -> int:
    """Return the number of cases that the user may decide; 0 if the user is not an adjudicator of the task."""
    annotator = annotator_of(request.user)
    return waiting_counts(annotator, [task]).get(task.pk, 0) if annotator and adjudicates_in(annotator, task) else 0


def _alerts(task: Task, report: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield the issues that need a manager's attention, as (URL, subject, sentence, button label) tuples."""
    people, quality = reverse("manage-people", args=[task.name]), reverse("manage-quality", args=[task.name])
    if new := sum(row["new"] for row in report["pauses"]):
        yield f"{people}#paused", f"{many(new, 'annotator')} newly paused", "", "Review answers"
    stuck = [row for row in report["states"]["queues"] if row["stuck"]]
    for row in stuck[:FEW]:
        yield people, row["name"], row["said"], "See people"
    if len(stuck) > FEW:
        yield "#waiting", f"{many(len(stuck) - FEW, 'more stalled queue')}", "", "See queues"
    if report["undecidable"]:
        yield f"{people}#members", "Adjudicator needed", report["undecidable"], "Add an adjudicator"
    for panel in report["panels"]:
        if panel.over_limit:
            yield quality, panel.heading, f"Over the task’s limit: {' '.join(panel.over_limit)}.", "See quality"
    if flags := Flag.objects.open().filter(unit__task=task).count():
        yield f"{reverse('manage-questions')}?task={task.name}", f"{many(flags, 'open question or flag')}", "", "Answer"


@shows_figures
def quality(request: UserRequest, task: Task) -> HttpResponse:
    """Show the results of the quality controls, and which further work would narrow the accuracy intervals most."""
    report, counted_at = figures("progress", task, lambda: _load_progress(task))
    decides = may(request.user, "start")
    return manage_page(
        request,
        "quality",
        task,
        counted_at=counted_at,
        panels=[(panel, _table_of(panel, sort_of(request))) for panel in report["panels"]],
        **_further_work_context(task, report["further_work"], decides=decides),
        classes_table=class_progress_table(report["classes"]) if report["classes"] else None,
        decides=decides,
    )


def _table_of(panel: Panel, sort: str) -> Table | None:
    """Return a panel's main table with a unique name, so that it can be sorted, opened and downloaded."""
    return replace(panel.table, slug=slugify(panel.heading), sort=sort) if panel.table else None


@shows_figures
def pace(request: UserRequest, task: Task) -> HttpResponse:
    """Show the answers over time, and the time per answer."""
    report, counted_at = figures("progress", task, lambda: _load_progress(task))
    _, pace, times = report["work"]
    return manage_page(
        request,
        "pace",
        task,
        counted_at=counted_at,
        pace=pace,
        last_day_plot=progress_report.last_day_plot(pace),
        since_plot=progress_report.since_plot(pace),
        times=times["all"],
        times_plot=progress_report.times_plot(times["languages"], "Seconds per answer, by language", {}),
    )


def _forecast_context(forecast: dict[str, Any] | None, sort: str) -> dict[str, Any]:
    """Return the template context with the forecast of the task's end; empty if there is no forecast."""
    if forecast is None:
        return {}
    return {
        "finish": progress_report.finish_words(forecast),
        "finish_words": progress_report.forecast_words(forecast),
        "finish_table": progress_report.forecast_table(forecast, sort),
    }


def _further_work_context(task: Task, work: dict[str, Any] | None, *, decides: bool) -> dict[str, Any]:
    """Return the template context with the work that would narrow the accuracy intervals most.

    work: result of `further_work`; if it is None, the context is empty
    decides: whether the user may start such work, so that the table has links to the pages that start it
    """
    if work is None:
        return {}

    def does(row: Mapping[str, Any]) -> Cell:
        url, amount = _start_url(task, row) if decides else "", row["amount"]
        button = f"{'Draw' if row['work'] == POSTS else 'Add'}\N{NO-BREAK SPACE}{amount:,}"
        return Cell(button if url else plan_report.command(row, task.name), amount, url)

    return {
        "further_words": plan_report.further_words(work),
        "further_table": plan_report.further_table(work, does) if work["rows"] else None,
    }


def _start_url(task: Task, row: Mapping[str, Any]) -> str:
    """Return the URL of the page that starts the work in a row; "" if there is none."""
    if row["work"] == POSTS:
        return reverse("manage-extend", args=[task.name])
    if row["work"] == SECONDS:
        return ""
    parameters = {"languages": row["label"]} if row["label"] else {}
    parameters |= {"checks": "yes"} if row["work"] == CHECKS else {}
    return address("audit", task=task.name, add=str(row["amount"]), **parameters)


def _load_progress(task: Task) -> dict[str, Any]:
    states = queue_states(task)
    return {
        "work": (task_statistics.progress(task), task_statistics.pace(task), task_statistics.times(task)),
        "states": states,
        "forecast": cached_forecast(task, states),
        "pauses": annotator_statistics.pauses(task),
        "panels": panels(task),
        "undecidable": overview_report.undecidable(task_overview.undecidable(task)),
        "further_work": further_work(task) if task.is_open else None,
        "classes": class_progress(task),
    }


@shows_figures
def people(request: UserRequest, task: Task) -> HttpResponse:
    (rows, times, pauses, voidable), counted_at = figures("people", task, partial(_load_people, task))
    names = {row["annotator"]: row["name"] for row in rows}
    address, sort = _person_url(task), sort_of(request)
    return manage_page(
        request,
        "people",
        task,
        counted_at=counted_at,
        people_table=people_report.people_table(rows, times, pauses, address, sort, tested=bool(task.test_items)),
        accuracy_plot=people_report.accuracy_plot(rows, rule_of(task)),
        paused=[row for row in pauses if row["running"]],
        voidable=voidable,
        paused_table=people_report.paused_table(pauses, sort, address),
        times_plot=progress_report.times_plot(times["annotators"], "Seconds per answer, by annotator", names),
        decides=may(request.user, "decide", task.name),
        **account_administration.members_context(request, task),
        agreed=people_report.agreed_table(annotator_statistics.consents(task), sort, address),
        not_agreed=annotator_statistics.names_without_consent(task) if task.kind.sensitive else [],
    )


def _load_people(task: Task) -> tuple[Any, ...]:
    return (
        annotator_statistics.people(task),
        task_statistics.times(task),
        annotator_statistics.pauses(task),
        _find_voidable(task),
    )


def comments(request: UserRequest, task: Task) -> HttpResponse:
    rows = annotator_statistics.comments(task)
    comment_table = people_report.comments_table(
        rows, sort_of(request), task.kind.pages.short_name, _unit_url(task), _person_url(task)
    )
    return manage_page(request, "comments", task, comments_table=comment_table, most=annotator_statistics.MOST_COMMENTS)


def tests(request: UserRequest, task: Task) -> HttpResponse:
    results, gold_rows = task_statistics.tests(task), task_statistics.gold_answers(task)
    doubtful = [row for row in gold_rows if row["doubtful"]]
    return manage_page(
        request,
        "tests",
        task,
        tested=bool(results["annotators"]),
        languages_table=people_report.tested_table(results["languages"], sort_of(request)),
        tests_table=people_report.trials_table(results["annotators"], sort_of(request), _person_url(task)),
        doubtful=doubtful,
        known_table=people_report.gold_answers_table(doubtful, sort_of(request), task.kind.pages.short_name),
        asked_count=sum(row["asked"] > 0 for row in gold_rows),
        gold_count=len(gold_rows),
    )


def _get_or_compute(task: Task, name: str, report: Callable[[], Any]) -> Any:
    """Return a report from the cache, or compute and cache it.

    Reports are cached for an hour, or until judgments change, so that sorting their tables is fast.

    name: report name
    report: function that computes the report
    """
    judgments = Judgment.objects.filter(unit__task=task)
    state = judgments.aggregate(Count("pk"), Max("pk"), Count("voided_at"))
    key = f"{name} {task.pk} {task.created_at:%s%f} {'-'.join(map(str, state.values()))}"
    return cache.get_or_set(key.replace(" ", "-"), report, HOUR)


def _preferences(task: Task, address: Callable[[int], str], sort: str) -> dict[str, Any]:
    """Return the template context with the comparison of systems; empty if the task doesn't compare systems."""
    if "preferences" not in task.kind.reports:
        return {}
    report, _ = figures(
        "preferences", task, partial(_get_or_compute, task, "preferences", lambda: preference_statistics.report(task))
    )
    people = report["all"]["sides"]["people"]
    names = annotator_statistics.names_of(row["annotator"] for row in people)
    reports = preference_report
    return {
        "preferred": reports.tables(report),
        "preferred_words": reports.words(report),
        "sides_table": reports.side_table(people, names, address=address, sort=sort) if people else None,
    }


@shows_figures
def agreement(request: UserRequest, task: Task) -> HttpResponse:
    """Show the agreement report.

    ?show=1: compute the report, which may take seconds; by default, only the number of judgments is shown
    """
    if "show" not in request.GET:
        counts, counted_at = figures("labels", task, partial(annotator_statistics.label_counts, task))
        return manage_page(request, "agreement", task, counted_at=counted_at, judgments=counts[None].answers)
    count = partial(
        _get_or_compute, task, "agreement", lambda: agreement_statistics.report(task, replicates=REPLICATES)
    )
    (report, counted_at), sort = figures("agreement", task, count), sort_of(request)
    rest, model = report["all"]["against_rest"], report["all"]["dawid_skene"]
    names = annotator_statistics.names_of(row["annotator"] for row in rest)
    address, headings = _person_url(task), agreement_report.PAGE
    return manage_page(
        request,
        "agreement",
        task,
        counted_at=counted_at,
        report=report,
        replicates=REPLICATES,
        table=agreement_report.agreement_table(report, headings, digits=2, on_page=True, sort=sort),
        doubts=agreement_report.doubts(report),
        label_table=agreement_report.label_table(report, digits=2, sort=sort, name_of=task.kind.pages.short_name),
        plot=agreement_report.agreement_plot(report),
        rest_table=agreement_report.rest_table(rest, names, address=address, digits=2, sort=sort),
        differs_table=agreement_report.difference_table(
            model["differs"][:MOST], address=_unit_url(task), sort=sort, name_of=task.kind.pages.short_name
        )
        if model
        else None,
        most=MOST,
        rest_plot=agreement_report.rest_plot(report, names),
        **_preferences(task, address, sort),
    )


def rule(request: UserRequest, task: Task) -> HttpResponse:
    limits, sort = rule_of(task), sort_of(request)
    every = 20 * honeypots.block(task) if task.gold_share else None
    return manage_page(request, "rule", task, rule=limits, every=every, tables=people_report.rule_tables(limits, sort))


def _find_voidable(task: Task) -> set[int]:
    """Return the keys of annotators whose answers or skips can be voided."""
    valid = Judgment.objects.live().filter(unit__task=task, kind__in=[Judgment.ANSWER, Judgment.SKIP])
    return set(valid.order_by().values_list("annotator", flat=True).distinct())


@shows_figures
def person_page(
    request: UserRequest,
    task: Task,
    person: Annotator,
    *,
    patience: float | None = PATIENCE,
    refusal: Exception | None = None,
) -> HttpResponse:
    """Show an annotator's work in a task, and the forms for decisions about it.

    Figures can come from the cache, whereas pauses and tests are always current.

    patience: how long to wait for figures that are not cached (seconds); None to wait until they are computed
    refusal: error to show
    """
    counts, _ = figures("labels", task, partial(annotator_statistics.label_counts, task), patience=patience)
    (rows, *_, voidable), counted_at = figures("people", task, partial(_load_people, task), patience=patience)
    stats, sort = annotator_statistics.person(task, person, counts), sort_of(request)
    pauses, tested = annotator_statistics.pauses(task, person), task_statistics.trials_of(task, person)
    work = next((row for row in rows if row["annotator"] == person.pk), None)
    short, wrote = task.kind.pages.short_name, annotator_statistics.comments(task, person)
    return manage_page(
        request,
        "person",
        task,
        annotator=person,
        counted_at=counted_at,
        work=work,
        pause=next((row for row in pauses if row["running"]), None),
        voidable=person.pk in voidable,
        pauses_table=people_report.paused_table(pauses, sort) if pauses else None,
        tests_table=people_report.trials_table(tested, sort) if tested else None,
        labels_table=people_report.labels_table(stats["labels"], sort, short) if work and work["answers"] else None,
        given_table=people_report.gold_judgments_table(stats["known"], sort, short) if stats["known"] else None,
        decides=may(request.user, "decide", task.name) and may_change(request.user, person.user),
        comments_table=people_report.comments_table(wrote, sort, short, _unit_url(task)) if wrote else None,
        refusal=refusal,
    )


def _redirect_to_person(request: UserRequest, task: Task, annotator: Annotator, sentence: str) -> HttpResponse:
    """Discard the task's cached figures and redirect to the annotator's page with a message."""
    forget(task)
    return redirect_with_message(request, sentence, "manage-person", task.name, annotator.pk)


def lift(request: UserRequest, task: Task, person: Annotator) -> HttpResponse:
    """Lift all pauses of an annotator in a task."""
    check_may_change(request.user, [person.user])
    running = Pause.objects.filter(annotator=person, task=task, lifted_at=None)
    if not running:
        messages.info(request, f"{person} is not paused, so nothing was changed.")
        return redirect("manage-person", task.name, person.pk)
    for pause in running:
        interventions.lift(pause, by=request.user)
    return _redirect_to_person(
        request, task, person, f"{person} can continue. Only future gold answers count for the pause rule."
    )


def pause(request: UserRequest, task: Task, person: Annotator) -> HttpResponse:
    """Pause an annotator.

    POST field:
    reason: why the annotator is paused or remains paused
    """
    check_may_change(request.user, [person.user])
    try:
        interventions.pause(person, task, by=request.user, reason=request.POST.get("reason", ""))
    except InvalidAnswer as refusal:
        return person_page(request, task, person, patience=None, refusal=refusal)
    sentence = f"{person} receives no more items of this task until a manager lifts the pause."
    return _redirect_to_person(request, task, person, sentence)


def void(request: UserRequest, task: Task, person: Annotator) -> HttpResponse:
    """Preview the effect of voiding an annotator's answers, or void them. POST field: reason."""
    check_may_change(request.user, [person.user])
    refusal = None
    if request.method == "POST":
        try:
            outcome = interventions.void(person, task, by=request.user, reason=request.POST.get("reason", ""))
            return _redirect_to_person(request, task, person, people_report.voided(person, outcome))
        except InvalidAnswer as error:
            refusal = error
    would = interventions.preview_void(person, task)
    return manage_page(request, "void", task, annotator=person, would=would, refusal=refusal)
