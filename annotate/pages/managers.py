"""The manager's pages: how the tasks stand, who works how well, and what a manager decides about a person's work.

The figures are those of managing.py, queue_states.py and agreeing.py; decisions are made by pausing.py.
"""

from django.contrib import messages
from django.core.cache import cache
from django.db.models import Count, Max
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotate.core.refusals import InvalidAnswer
from annotate.kinds import TASK_TYPES
from annotate.models import Annotator, Judgment, Pause, Task
from annotate.pages import manager_tables
from annotate.pages.access import check_right, may, with_task
from annotate.pages.errors import status_of
from annotate.quality import agreement as agreeing
from annotate.quality import honeypots
from annotate.quality import pauses as pausing
from annotate.reports import manager_plots
from annotate.work import statistics
from annotate.work.queue_states import queue_states

# Bootstrap replicates of a page that somebody waits for; `assay agreement` makes more.
REPLICATES = 200
HOUR = 3600  # seconds
MOST = 20  # units on which the model of Dawid and Skene is shown to differ, at most
FEW = 5  # stuck queues of a task on the page of all tasks, at most


def _page(request, page: str, task: Task | None = None, *, status: int = 200, **context):
    if task:
        context |= {"task": task, "tabs": _tabs(task), "kind": TASK_TYPES[task.task_type]}
    return render(request, f"annotate/manage/{page}.html", {"page": page, **context}, status=status)


def _tabs(task: Task) -> list[tuple[str, str]]:
    """Addresses of a task's pages and their words; those that have nothing to show for it are left out."""
    tested = TASK_TYPES[task.task_type].records and task.task_type != "imported"
    return [
        ("manage-task", "Progress"),
        ("manage-people", "People"),
        *([("manage-tests", "Test and gold answers")] if tested else []),
        ("manage-agreement", "Agreement"),
        *([("manage-rule", "Pause rule")] if tested else []),
    ]


def _sort(request) -> str:
    return request.GET.get("sort", "")


@require_GET
@never_cache
def manage(request):
    check_right(request.user, "manage")
    rows, waiting = statistics.overview(), []
    for task in Task.objects.filter(is_open=True):
        states = queue_states(task)
        stuck = [row for row in states["queues"] if row["stuck"]]
        if stuck:
            waiting.append((task, stuck[:FEW], len(stuck) - FEW))
        for row in rows:
            if row["name"] == task.name:
                row["stuck"] = len(stuck)
    table = manager_tables.tasks_table([{"stuck": None, **row} for row in rows], _sort(request))
    return _page(request, "tasks", table=table, waiting=waiting, new=[row for row in rows if row["newly_paused"]])


@require_GET
@never_cache
@with_task("manage")
def task(request, _, task):
    progress, pace, times, states = (
        statistics.progress(task),
        statistics.pace(task),
        statistics.times(task),
        queue_states(task),
    )
    return _page(
        request,
        "task",
        task,
        progress=progress,
        pace=pace,
        remaining=manager_tables.remaining(progress["all"]["missing"], pace["today"]),
        states=states,
        new=[row for row in statistics.pauses(task) if row["new"]],
        progress_table=manager_tables.progress_table(progress, _sort(request)),
        progress_plot=manager_plots.progress_plot(progress),
        last_day_plot=manager_plots.last_day_plot(pace),
        since_plot=manager_plots.since_plot(pace),
        times=times["all"],
        times_plot=manager_plots.times_plot(times["languages"], "Seconds an answer, by language", {}),
        queues_table=manager_tables.queues_table(task, states, _sort(request)),
        idle_table=manager_tables.idle_table(task, states, _sort(request)),
    )


@require_GET
@never_cache
@with_task("manage")
def people(request, _, task):
    found, times, pauses = statistics.people(task), statistics.times(task), statistics.pauses(task)
    names = {row["annotator"]: row["name"] for row in found}
    return _page(
        request,
        "people",
        task,
        people_table=manager_tables.people_table(task, found, times, pauses, _sort(request)),
        accuracy_plot=manager_plots.accuracy_plot(found, pausing.rule(task)),
        paused=[row for row in pauses if row["running"]],
        voidable=_voidable(task),
        paused_table=manager_tables.paused_table(task, pauses, _sort(request)),
        times_plot=manager_plots.times_plot(times["annotators"], "Seconds an answer, by annotator", names),
        decides=may(request.user, "decide"),
    )


@require_GET
@never_cache
@with_task("manage")
def tests(request, _, task):
    found, known = statistics.tests(task), statistics.known_answers(task)
    doubtful = [row for row in known if row["doubtful"]]
    return _page(
        request,
        "tests",
        task,
        tested=bool(found["annotators"]),
        languages_table=manager_tables.tested_table(found, _sort(request)),
        tests_table=manager_tables.trials_table(task, found["annotators"], _sort(request)),
        doubtful=doubtful,
        known_table=manager_tables.known_table(doubtful, _sort(request)),
        asked=sum(row["asked"] > 0 for row in known),
        known=len(known),
    )


def _agreement(task):
    """The report, kept for an hour while no answer comes or goes: to sort a table is not to compute it again."""
    said = Judgment.objects.filter(unit__task=task)
    state = said.aggregate(Count("pk"), Max("pk"), Count("voided_at"))
    key = f"agreement {task.pk} {task.created_at:%s%f} {'-'.join(map(str, state.values()))}"
    return cache.get_or_set(key.replace(" ", "-"), lambda: agreeing.report(task, replicates=REPLICATES), HOUR)


@require_GET
@never_cache
@with_task("manage")
def agreement(request, _, task):
    """Shown on request, since it may take seconds: ?show=1."""
    if "show" not in request.GET:
        return _page(request, "agreement", task, judgments=statistics.pace(task)["answers"])
    report = _agreement(task)
    names = {row["annotator"]: row["name"] for row in statistics.people(task)}
    return _page(
        request,
        "agreement",
        task,
        report=report,
        replicates=REPLICATES,
        table=manager_tables.agreement_table(report, _sort(request)),
        plot=manager_plots.agreement_plot(report),
        rest_table=manager_tables.against_rest_table(task, report, names, _sort(request)),
        differs_table=manager_tables.differs_table(report["all"]["dawid_skene"]["differs"][:MOST], _sort(request)),
        most=MOST,
        rest_plot=manager_plots.against_rest_plot(report, names),
    )


@require_GET
@never_cache
@with_task("manage")
def rule(request, _, task):
    own = pausing.rule(task)
    every = 20 * honeypots.block(task) if task.gold_share else None
    return _page(request, "rule", task, rule=own, every=every, tables=manager_tables.rule_tables(own, _sort(request)))


def _voidable(task) -> set[int]:
    """Whose answers and skips there are to be voided."""
    said = Judgment.objects.filter(unit__task=task, kind__in=[Judgment.ANSWER, Judgment.SKIP], voided_at=None)
    return set(said.order_by().values_list("annotator", flat=True).distinct())


@require_GET
@never_cache
@with_task("manage")
def person(request, _, task, annotator):
    return _person(request, task, get_object_or_404(Annotator, pk=annotator))


def _person(request, task, annotator, **extra):
    found = next((row for row in statistics.people(task) if row["annotator"] == annotator.pk), None)
    pauses = [row for row in statistics.pauses(task) if row["annotator"] == annotator.pk]
    tested = [row for row in statistics.tests(task)["annotators"] if row["annotator"] == annotator.pk]
    says = statistics.person(task, annotator)
    return _page(
        request,
        "person",
        task,
        annotator=annotator,
        found=found,
        pause=next((row for row in pauses if row["running"]), None),
        voidable=annotator.pk in _voidable(task),
        pauses_table=manager_tables.paused_table(task, pauses, _sort(request), named=False) if pauses else None,
        tests_table=manager_tables.trials_table(task, tested, _sort(request), named=False) if tested else None,
        labels_table=manager_tables.labels_table(says["labels"], _sort(request))
        if found and found["answers"]
        else None,
        given_table=manager_tables.given_table(says["known"], _sort(request)) if says["known"] else None,
        decides=may(request.user, "decide"),
        **extra,
    )


@require_POST
@with_task("decide")
def lift(request, _, task, annotator):
    """Let a person go on. Pressed twice, or after somebody else did, it changes nothing."""
    found = get_object_or_404(Annotator, pk=annotator)
    running = Pause.objects.filter(annotator=found, task=task, lifted_at=None)
    if not running:
        messages.info(request, f"{found} is not paused, so nothing was done.")
    for pause in running:
        pausing.lift(pause, by=request.user)
        messages.success(request, f"{found} may go on. What counts from now on are the gold answers from now on.")
    return redirect("manage-person", task.name, found.pk)


@require_POST
@with_task("decide")
def pause(request, _, task, annotator):
    """Field: reason. Of who is paused already, the reason to leave it so."""
    found = get_object_or_404(Annotator, pk=annotator)
    try:
        pausing.pause(found, task, by=request.user, reason=request.POST.get("reason", ""))
    except InvalidAnswer as refusal:
        return _person(request, task, found, refusal=refusal, status=status_of(refusal))
    messages.success(request, f"{found} is given no more work of this task until a manager lets them go on.")
    return redirect("manage-person", task.name, found.pk)


@require_http_methods(["GET", "POST"])
@never_cache
@with_task("decide")
def void(request, _, task, annotator):
    """GET says what it would do and asks for the reason; POST does it. Field: reason."""
    found, refusal = get_object_or_404(Annotator, pk=annotator), None
    if request.method == "POST":
        try:
            done = pausing.void(found, task, by=request.user, reason=request.POST.get("reason", ""))
        except InvalidAnswer as error:
            refusal = error
        else:
            messages.success(request, manager_tables.voided(found, done))
            return redirect("manage-person", task.name, found.pk)
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
