"""The manager's pages: how the tasks stand, how well people work, and what a manager decides about a person's work.

The figures are those of work/statistics.py, work/queue_states.py and quality/agreement.py; decisions are made by
work/pausing.py.
"""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from django.contrib import messages
from django.core.cache import cache
from django.db.models import Count, Max
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotate.core.refusals import InvalidAnswer
from annotate.models import Annotator, Judgment, Pause, Task
from annotate.pages.access import check_right, may, with_task
from annotate.pages.audited import audit_of
from annotate.pages.errors import status_of
from annotate.pages.keeping import BeingCountedError, figures, forget
from annotate.quality import agreement as agreeing
from annotate.quality import honeypots
from annotate.quality import preferences as preferring
from annotate.quality.classes import standing
from annotate.quality.pauses import rule as rule_of
from annotate.reports import agreement as agreement_report
from annotate.reports import gold_answers
from annotate.reports import people as people_report
from annotate.reports import preferences as preference_report
from annotate.reports import progress as progress_report
from annotate.reports.balanced_sets import standing_table
from annotate.work import comments as commenting
from annotate.work import pausing, statistics
from annotate.work.accounts import check_may_change, may_change
from annotate.work.personal import waiting_requests
from annotate.work.queue_states import queue_states, queue_states_of

# Bootstrap replicates for a page that somebody waits for; `assay agreement` makes more.
REPLICATES = 200
HOUR = 3600  # seconds
MOST = 20  # units on which the model of Dawid and Skene is shown to differ, at most
FEW = 5  # stuck queues of a task on the page of all tasks, at most


def _page(request, page: str, task: Task | None = None, *, status: int = 200, **context):
    if task:
        context |= {"task": task, "tabs": _tabs(task), "kind": task.kind}
    return render(request, f"annotate/manage/{page}.html", {"page": page, **context}, status=status)


def shows_figures(view):
    """Make a view of a page whose figures may still have to be counted; then the browser asks again."""

    @wraps(view)
    def shown(request, *args):
        try:
            return view(request, *args)
        except BeingCountedError:
            task = next((each for each in args if isinstance(each, Task)), None)
            page = _page(request, "counting", task)
            page["Refresh"] = "1"
            return page

    return shown


def _tabs(task: Task) -> list[tuple[str, str]]:
    """Addresses of a task's pages and their names; pages that have nothing to show for it are left out."""
    tested = "test" in task.kind.protections
    return [
        ("manage-task", "Progress"),
        ("manage-people", "People"),
        ("manage-comments", "Comments"),
        *([("manage-tests", "Test and gold answers")] if tested else []),
        ("manage-agreement", "Agreement"),
        *([("manage-rule", "Pause rule")] if tested else []),
    ]


def _sort(request) -> str:
    return request.GET.get("sort", "")


def _task_page(name: str) -> str:
    return reverse("manage-task", args=[name])


def _person_page(task: Task) -> Callable[[int], str]:
    return lambda annotator: reverse("manage-person", args=[task.name, annotator])


def _unit_page(unit: int) -> str:
    return reverse("admin:annotate_unit_change", args=[unit])


@require_GET
@shows_figures
def manage(request):
    check_right(request.user, "manage")
    open_tasks, waiting = Task.objects.filter(is_open=True), []
    (rows, states), counted_at = figures("tasks", None, lambda: (statistics.overview(), queue_states_of(open_tasks)))
    # One that was opened since the figures were counted has none yet.
    open_tasks = [task for task in open_tasks if task.pk in states]
    for task in open_tasks:
        stuck = [row for row in states[task.pk]["queues"] if row["stuck"]]
        if stuck:
            waiting.append((task, stuck[:FEW], len(stuck) - FEW))
    counts = {task.name: states[task.pk]["stuck"] for task in open_tasks}
    rows = [{**row, "stuck": counts.get(row["name"])} for row in rows]
    table = progress_report.tasks_table(rows, _task_page, _sort(request))
    new = [row for row in rows if row["newly_paused"]]
    return _page(
        request,
        "tasks",
        table=table,
        waiting=waiting,
        new=new,
        asking=waiting_requests().count(),
        counted_at=counted_at,
    )


@require_GET
@with_task("manage")
@shows_figures
def task(request, _, task):
    found, counted_at = figures("progress", task, lambda: _progress_of(task))
    progress, pace, times, states, sort = *found["work"], found["states"], _sort(request)
    return _page(
        request,
        "task",
        task,
        counted_at=counted_at,
        progress=progress,
        pace=pace,
        remaining=progress_report.remaining(progress["all"]["missing"], pace["today"]),
        states=states,
        new=[row for row in found["pauses"] if row["new"]],
        progress_table=progress_report.progress_table(progress, sort),
        progress_plot=progress_report.progress_plot(progress),
        last_day_plot=progress_report.last_day_plot(pace),
        since_plot=progress_report.since_plot(pace),
        times=times["all"],
        times_plot=progress_report.times_plot(times["languages"], "Seconds an answer, by language", {}),
        audit=found["audit"],
        classes_table=standing_table(found["classes"]) if found["classes"] else None,
        queues_table=progress_report.queues_table(states, sort, tested=bool(task.test_items)),
        idle_table=progress_report.idle_table(states, _person_page(task), sort),
    )


def _progress_of(task: Task) -> dict[str, Any]:
    return {
        "work": (statistics.progress(task), statistics.pace(task), statistics.times(task)),
        "states": queue_states(task),
        "pauses": statistics.pauses(task),
        "audit": audit_of(task),
        "classes": standing(task),
    }


@require_GET
@with_task("manage")
@shows_figures
def people(request, _, task):
    (found, times, pauses, voidable), counted_at = figures("people", task, lambda: _people_of(task))
    names = {row["annotator"]: row["name"] for row in found}
    address, sort = _person_page(task), _sort(request)
    return _page(
        request,
        "people",
        task,
        counted_at=counted_at,
        people_table=people_report.people_table(found, times, pauses, address, sort, tested=bool(task.test_items)),
        accuracy_plot=people_report.accuracy_plot(found, rule_of(task)),
        paused=[row for row in pauses if row["running"]],
        voidable=voidable,
        paused_table=people_report.paused_table(pauses, sort, address),
        times_plot=progress_report.times_plot(times["annotators"], "Seconds an answer, by annotator", names),
        decides=may(request.user, "decide"),
        agreed=people_report.agreed_table(statistics.consents(task), sort, address),
        not_agreed=statistics.not_agreed(task) if task.kind.sensitive else [],
    )


def _people_of(task: Task) -> tuple:
    return statistics.people(task), statistics.times(task), statistics.pauses(task), _voidable(task)


@require_GET
@with_task("manage")
def comments(request, _, task):
    found = commenting.comments(task)
    told = people_report.comments_table(found, _sort(request), task.kind.short, _unit_page, _person_page(task))
    return _page(request, "comments", task, comments_table=told, most=commenting.MOST)


@require_GET
@with_task("manage")
def tests(request, _, task):
    found, known = statistics.tests(task), statistics.known_answers(task)
    doubtful = [row for row in known if row["doubtful"]]
    return _page(
        request,
        "tests",
        task,
        tested=bool(found["annotators"]),
        languages_table=gold_answers.tested_table(found["languages"], _sort(request)),
        tests_table=gold_answers.trials_table(found["annotators"], _sort(request), _person_page(task)),
        doubtful=doubtful,
        known_table=gold_answers.known_table(doubtful, _sort(request), task.kind.short),
        asked=sum(row["asked"] > 0 for row in known),
        known=len(known),
    )


def _kept(task, name, report):
    """A report, kept for an hour while no answer comes or goes, so that sorting a table does not compute it again."""
    said = Judgment.objects.filter(unit__task=task)
    state = said.aggregate(Count("pk"), Max("pk"), Count("voided_at"))
    key = f"{name} {task.pk} {task.created_at:%s%f} {'-'.join(map(str, state.values()))}"
    return cache.get_or_set(key.replace(" ", "-"), report, HOUR)


def _preferences(task, address, sort):
    """What the page has besides where people compare systems."""
    if not task.kind.form.SIDED:
        return {}
    report, _ = figures("preferences", task, partial(_kept, task, "preferences", lambda: preferring.report(task)))
    people = report["all"]["sides"]["people"]
    names = statistics.names_of(row["annotator"] for row in people)
    told = preference_report
    return {
        "preferred": told.tables(report),
        "preferred_words": told.words(report),
        "sides_table": told.side_table(people, names, address=address, asked=sort) if people else None,
    }


@require_GET
@with_task("manage")
@shows_figures
def agreement(request, _, task):
    """The report is shown on request (?show=1), since it may take seconds."""
    if "show" not in request.GET:
        return _page(request, "agreement", task, judgments=statistics.answers(task))
    count = partial(_kept, task, "agreement", lambda: agreeing.report(task, replicates=REPLICATES))
    (report, counted_at), sort = figures("agreement", task, count), _sort(request)
    rest, model = report["all"]["against_rest"], report["all"]["dawid_skene"]
    names = statistics.names_of(row["annotator"] for row in rest)
    address, headings = _person_page(task), agreement_report.PAGE
    return _page(
        request,
        "agreement",
        task,
        counted_at=counted_at,
        report=report,
        replicates=REPLICATES,
        table=agreement_report.agreement_table(report, headings, digits=2, on_page=True, asked=sort),
        doubts=agreement_report.doubts(report),
        label_table=agreement_report.label_table(report, digits=2, asked=sort, called=task.kind.short),
        plot=agreement_report.agreement_plot(report),
        rest_table=agreement_report.rest_table(rest, names, address=address, digits=2, asked=sort),
        differs_table=agreement_report.difference_table(
            model["differs"][:MOST], address=_unit_page, asked=sort, called=task.kind.short
        )
        if model
        else None,
        most=MOST,
        rest_plot=agreement_report.rest_plot(report, names),
        **_preferences(task, address, sort),
    )


@require_GET
@with_task("manage")
def rule(request, _, task):
    own = rule_of(task)
    every = 20 * honeypots.block(task) if task.gold_share else None
    return _page(request, "rule", task, rule=own, every=every, tables=people_report.rule_tables(own, _sort(request)))


def _voidable(task) -> set[int]:
    """The annotators who have answers or skips that can be voided."""
    return set(_standing(task).values_list("annotator", flat=True).distinct())


def _standing(task):
    """The answers and skips of a task that count."""
    return Judgment.objects.live().filter(unit__task=task, kind__in=[Judgment.ANSWER, Judgment.SKIP]).order_by()


@require_GET
@with_task("manage")
def person(request, _, task, annotator):
    return _person(request, task, get_object_or_404(Annotator.objects.select_related("user"), pk=annotator))


def _person(request, task, annotator, **extra):
    by_all, _ = figures("labels", task, lambda: statistics.labels_said(task), patience=None)
    found, sort = statistics.person(task, annotator, by_all), _sort(request)
    pauses, tested = statistics.pauses(task, annotator), statistics.trials_of(task, annotator)
    work, wrote = statistics.work_of(task, annotator), commenting.comments(task, annotator)
    return _page(
        request,
        "person",
        task,
        annotator=annotator,
        found=work,
        pause=next((row for row in pauses if row["running"]), None),
        voidable=_standing(task).filter(annotator=annotator).exists(),
        pauses_table=people_report.paused_table(pauses, sort) if pauses else None,
        tests_table=gold_answers.trials_table(tested, sort) if tested else None,
        labels_table=people_report.labels_table(found["labels"], sort, task.kind.short)
        if work and work["answers"]
        else None,
        given_table=gold_answers.given_table(found["known"], sort, task.kind.short) if found["known"] else None,
        decides=may(request.user, "decide") and may_change(request.user, annotator.user),
        comments_table=people_report.comments_table(wrote, sort, task.kind.short, _unit_page) if wrote else None,
        **extra,
    )


def _to_be_decided_on(request, annotator) -> Annotator:
    found = get_object_or_404(Annotator.objects.select_related("user"), pk=annotator)
    check_may_change(request.user, [found.user])
    return found


def _decided(task, annotator):
    """After a decision: back to the person, and what it changed is counted for the pages that show it."""
    forget(task)
    return redirect("manage-person", task.name, annotator.pk)


@require_POST
@with_task("decide")
def lift(request, _, task, annotator):
    """Let a person go on. If this was done already, it changes nothing."""
    found = _to_be_decided_on(request, annotator)
    running = Pause.objects.filter(annotator=found, task=task, lifted_at=None)
    if not running:
        messages.info(request, f"{found} is not paused, so nothing was done.")
    for pause in running:
        pausing.lift(pause, by=request.user)
        messages.success(request, f"{found} may go on. Only gold answers from now on count.")
    return _decided(task, found)


@require_POST
@with_task("decide")
def pause(request, _, task, annotator):
    """Field: reason; if the person is paused already, the reason to leave them so."""
    found = _to_be_decided_on(request, annotator)
    try:
        pausing.pause(found, task, by=request.user, reason=request.POST.get("reason", ""))
    except InvalidAnswer as refusal:
        return _person(request, task, found, refusal=refusal, status=status_of(refusal))
    messages.success(request, f"{found} is given no more work of this task until a manager lets them go on.")
    return _decided(task, found)


@require_http_methods(["GET", "POST"])
@with_task("decide")
def void(request, _, task, annotator):
    """GET says what voiding would do and asks for the reason; POST does it. Field: reason."""
    found, refusal = _to_be_decided_on(request, annotator), None
    if request.method == "POST":
        try:
            done = pausing.void(found, task, by=request.user, reason=request.POST.get("reason", ""))
        except InvalidAnswer as error:
            refusal = error
        else:
            messages.success(request, people_report.voided(found, done))
            return _decided(task, found)
    would = pausing.would_void(found, task)
    return _page(
        request,
        "void",
        task,
        annotator=found,
        would=would,
        refusal=refusal,
        status=status_of(refusal) if refusal else 200,
    )
