"""The annotators' start page: their tasks, breaks, replies and notes.

The queue and the sheets are in annotators.py, past answers in self_service.py.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.contrib.humanize.templatetags.humanize import intcomma
from django.db.models import Exists, OuterRef
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotate.controls import qualification
from annotate.core.refusals import InvalidAnswer, QuotaReached
from annotate.figures import personal_progress
from annotate.models import Annotator, Guidelines, Membership, Task, Trial
from annotate.pages.access import UserRequest, annotator_of, may
from annotate.work import adjudication, flags
from annotate.work import queue as work_queue
from annotate.work.backlog import Progress, is_empty, progress_in, progress_of
from annotate.work.permit import Permit, open_permits, permit_of

# Steps without a pending test.
SETTLED = (qualification.NONE_NEEDED, qualification.PASSED, qualification.FAILED)


LISTED = 20  # maximum number of tasks in each part of the start page


def home(request: UserRequest) -> HttpResponse:
    """Show the annotator's tasks: the task to continue, other tasks with work or a test, and tasks without work.

    Managers who don't annotate are redirected to the manager dashboard.

    ?all=: show all tasks; by default, show up to LISTED tasks with work or a test, and up to LISTED other tasks
    """
    annotator = annotator_of(request.user)
    if annotator is None and may(request.user, "manage"):
        return redirect("manage")
    if annotator is None:
        return render(request, "annotate/home.html")
    guided = Exists(Guidelines.objects.filter(task=OuterRef("pk")))
    own_permits = open_permits(annotator, is_guided=guided, is_empty=is_empty(annotator))
    rows = _rows(annotator, own_permits)
    first_row = next((row for row in rows if row["has_work"]), None)
    other_rows = [row for row in rows if row is not first_row]
    listed, idle = ([row for row in other_rows if row["is_listed"] is wanted] for wanted in (True, False))
    most = None if "all" in request.GET else LISTED
    context = {
        "annotator": annotator,
        "rows": rows,
        "first": first_row,
        "listed": listed[:most],
        "idle": idle[:most],
        "idle_count": len(idle),
        "is_cut": most is not None and max(len(listed), len(idle)) > most,
        "worked": personal_progress.worked(annotator),
        "goal": request.preferences.get("goal"),
        **break_due(annotator),
        **replies_and_notes(own_permits),
    }
    return render(request, "annotate/home.html", context)


def rest(request: UserRequest, annotator: Annotator) -> HttpResponse:
    """Suggest a break if the annotator has worked for a long time. The queue page polls this URL."""
    return render(request, "annotate/_rest.html", break_due(annotator))


def break_due(annotator: Annotator) -> dict[str, Any]:
    """Return the template context with the minutes since the last break; 0 if no break is due."""
    stretch = personal_progress.without_pause(annotator)
    return {"minutes": stretch // timedelta(minutes=1) if stretch >= personal_progress.LONG else 0}


def _rows(annotator: Annotator, own_permits: list[Permit]) -> list[dict[str, Any]]:
    """Return a row for each open task.

    Tasks with work come first, then tasks with a test to take, then all other tasks. Within each group, the most
    recently used task comes first.

    own_permits: permits for the annotator's open tasks
    """
    tasks = [permit.task for permit in own_permits]
    trials = _trials_by_task(annotator, [task for task in tasks if task.test_items])
    done = progress_in(own_permits)
    adjudicated = [permit.task for permit in own_permits if permit.adjudicates]
    waiting = adjudication.waiting_counts(annotator, adjudicated) if adjudicated else {}
    used, titles = personal_progress.last_used(annotator), Counter(task.title for task in tasks)
    rows = []
    for permit, progress in zip(own_permits, done, strict=True):
        task, may_adjudicate = permit.task, permit.adjudicates and not permit.is_paused
        manages = permit.role == Membership.MANAGER
        row = {
            "task": task,
            "stopped": None,
            **may_do(permit, progress, trials.get(task.pk, [])),
            "has_sheets": bool(task.kind.pages.sheet),
            "progress": progress,
            "adjudication": waiting.get(task.pk, 0) if may_adjudicate else None,
            "not_a_reader": "" if manages else personal_progress.not_a_reader(permit),
            "manages": manages,
            "has_namesake": titles[task.title] > 1,
        }
        row["has_work"] = bool(row["adjudication"] or (row["may_work"] and progress.waiting))
        row["to_test"] = any(state.step not in SETTLED for state in row.get("states", ()))
        # Don't show the warning about sensitive content to annotators who would receive no units anyway.
        if not (permit.reads or permit.adjudicates):
            row["stopped"] = None
        is_held = row["stopped"] and not isinstance(row["stopped"], QuotaReached)
        row["is_listed"] = bool(row["has_work"] or row["to_test"] or is_held)
        rows.append(row)
    rows.sort(key=lambda row: (not row["has_work"], not row["to_test"], -used.get(row["task"].pk, 0)))
    return rows


def _trials_by_task(annotator: Annotator, tasks: list[Task]) -> dict[int, list[Trial]]:
    trials: dict[int, list[Trial]] = {}
    for trial in qualification.trials_of(annotator, tasks) if tasks else ():
        trials.setdefault(trial.task_id, []).append(trial)
    return trials


def may_do(permit: Permit, progress: Progress, trials: list[Trial] | None = None) -> dict[str, Any]:
    """Return the template context with what the annotator can do in a task, and the status of the tests.

    No action is offered if the annotator is stopped or the task is closed, because it would be refused.

    trials: the annotator's trials in the task; None to load them from the database
    """
    task = permit.task
    if permit.stopped:
        is_held = permit.is_paused or not permit.has_agreed
        return {"stopped": permit.stopped, "held": is_held, "may_work": False, "tests": []}
    states = qualification.states(permit, trials) if task.test_items and task.is_open else []
    return {
        "may_work": task.is_open and bool(permit.queues),
        "states": states,
        "tests": pending_tests(states, progress.behind_tests),
    }


def pending_tests(states: Iterable[qualification.Standing], waiting: dict[str, int]) -> list[str]:
    """Return sentences about the tests that an annotator has not passed yet.

    They contain the number of units that each test unlocks and, after a failed test, the number of tries left.

    waiting: number of units that the test unlocks, by language
    """
    sentences = []
    for standing in states:
        if standing.step in SETTLED:
            continue
        if count := waiting.get(standing.language, 0):
            sentence = _("%(number)s in %(language)s after the test")
            sentences.append(sentence % {"number": intcomma(count), "language": standing.name})
        if standing.last and standing.tries_left:
            tries = ngettext(
                "Test in %(language)s: you have %(number)s try left.",
                "Test in %(language)s: you have %(number)s tries left.",
                standing.tries_left,
            )
            sentences.append(tries % {"number": standing.tries_left, "language": standing.name})
    return sentences


def pause(request: UserRequest, annotator: Annotator, task: Task) -> HttpResponse:
    """Return the annotator's current unit or sheet to the queue, and summarize today's work."""
    work_queue.release_all(annotator, task)
    progress = progress_of(permit_of(annotator, task))
    if progress.answered_today or progress.skipped_today:
        sentence = _("Finished. Today in “%(title)s”: %(answered)s answered, %(skipped)s skipped.")
        messages.success(
            request,
            sentence
            % {
                "title": task.kind.titled(task),
                "answered": intcomma(progress.answered_today),
                "skipped": intcomma(progress.skipped_today),
            },
        )
    return redirect("home")


# --- Replies, notes and disturbing posts


def replies_and_notes(permits: list[Permit]) -> dict[str, Any]:
    """Return the context of _messages.html, which shows replies and notes on the annotator's start page."""
    if not permits:
        return {}
    return {"replies": list(flags.replies(permits[0].annotator)), "notes": flags.notes_to_read(permits)}


def dismiss_reply(request: UserRequest, annotator: Annotator, flag: int) -> HttpResponse:
    flags.dismiss_reply(annotator, flag)
    return redirect("home")


def dismiss_note(request: UserRequest, annotator: Annotator, note: int) -> HttpResponse:
    """Dismiss a note that the annotator has read.

    POST field:
    queue: present if the note was shown above the queue, which is then shown again
    """
    dismissed = flags.dismiss_note(annotator, note)
    return redirect("queue", task=dismissed.task.name) if "queue" in request.POST else redirect("home")


def choose_disturbing(request: UserRequest, annotator: Annotator) -> HttpResponse:
    """Opt in or out of units that other annotators flagged as disturbing.

    POST field:
    takes: yes or no
    """
    choice = request.POST.get("takes")
    if choice not in ("yes", "no"):
        raise InvalidAnswer(_("The form does not contain a choice. Reload the page."))
    is_willing = choice == "yes"
    flags.set_takes_disturbing(annotator, takes=is_willing)
    messages.success(
        request,
        _("From now on, you may receive items that others found disturbing.")
        if is_willing
        else _("You no longer receive items that others found disturbing."),
    )
    return redirect("account")
