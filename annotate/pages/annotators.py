"""The annotators' start page, queue and sheets.

Past answers are in self_service.py, guidelines and tests in qualification_test.py.

A GET request shows a page. A POST request performs one operation. Then the view renders the next unit for htmx, or
redirects.
"""

from collections import Counter
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.contrib.humanize.templatetags.humanize import intcomma
from django.db.models import Exists, OuterRef
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from annotate.controls import qualification
from annotate.core.refusals import InvalidAnswer, NotFound, QuotaReached
from annotate.figures import personal_progress
from annotate.kinds import Answer
from annotate.models import Annotator, Guidelines, Judgment, Lease, Membership, Task, Trial
from annotate.pages import concept_picker, item_view
from annotate.pages.access import (
    UserRequest,
    active_seconds,
    annotator_of,
    may,
    status_of,
    whole_number,
    with_permit,
)
from annotate.work import adjudication as adjudicating
from annotate.work import answer_changes, eligible, flags, judgments
from annotate.work import queue as handing_out
from annotate.work.backlog import Progress, progress_in, progress_of
from annotate.work.judgments import posted_answer
from annotate.work.permit import Permit, acting, open_permits, permit_of

# Steps at which the annotator does not have to take a test.
SETTLED = (qualification.NONE_NEEDED, qualification.PASSED, qualification.FAILED)


LISTED = 20  # maximum number of tasks in each part of the start page


def home(request: UserRequest) -> HttpResponse:
    """Show the annotator's tasks: the task to continue, other tasks with work or a test, and tasks without work.

    Redirect managers who do not annotate to the manager dashboard.

    ?all=: show all tasks; by default, only the first LISTED with work or a test and the first LISTED without are shown
    """
    annotator = annotator_of(request.user)
    if annotator is None and may(request.user, "manage"):
        return redirect("manage")
    if annotator is None:
        return render(request, "annotate/home.html")
    guided = Exists(Guidelines.objects.filter(task=OuterRef("pk")))
    own_permits = open_permits(annotator, is_guided=guided)
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
        **_rest(annotator),
        **replies_and_notes(own_permits),
    }
    return render(request, "annotate/home.html", context)


def rest(request: UserRequest, annotator: Annotator) -> HttpResponse:
    """Suggest a break if the annotator has worked for a long time. The queue page requests this regularly."""
    return render(request, "annotate/_rest.html", _rest(annotator))


def _rest(annotator: Annotator) -> dict[str, Any]:
    """Return the template context with the minutes since the last break, or 0 if no break is due."""
    stretch = personal_progress.without_pause(annotator)
    return {"minutes": stretch // timedelta(minutes=1) if stretch >= personal_progress.LONG else 0}


def _rows(annotator: Annotator, own_permits: list[Permit]) -> list[dict[str, Any]]:
    """Return a row for each open task.

    Tasks with work come first, then tasks with a test to take, then all other tasks. Within each group, the most
    recently used task comes first.

    own_permits: permits for the annotator's open tasks
    """
    tasks = [permit.task for permit in own_permits]
    trials = _by_task(annotator, [task for task in tasks if task.test_items])
    done = progress_in(own_permits)
    adjudicated = [permit.task for permit in own_permits if permit.adjudicates]
    waiting = adjudicating.waiting_in(annotator, adjudicated) if adjudicated else {}
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
        # Do not ask people to read the warning if they would receive no units anyway.
        if not (permit.reads or permit.adjudicates):
            row["stopped"] = None
        is_held = row["stopped"] and not isinstance(row["stopped"], QuotaReached)
        row["is_listed"] = bool(row["has_work"] or row["to_test"] or is_held)
        rows.append(row)
    rows.sort(key=lambda row: (not row["has_work"], not row["to_test"], -used.get(row["task"].pk, 0)))
    return rows


def _by_task(annotator: Annotator, tasks: list[Task]) -> dict[int, list[Trial]]:
    trials: dict[int, list[Trial]] = {}
    for trial in qualification.trials_of(annotator, tasks) if tasks else ():
        trials.setdefault(trial.task_id, []).append(trial)
    return trials


def may_do(permit: Permit, progress: Progress, trials: list[Trial] | None = None) -> dict[str, Any]:
    """Return the template context with what the annotator can do in a task, and the states of the tests.

    If the annotator is stopped or the task is closed, the result offers no action, because it would be refused.

    trials: the annotator's trials in the task; by default, they are read from the database
    """
    task = permit.task
    if permit.stopped:
        is_held = permit.is_paused or not permit.has_agreed
        return {"stopped": permit.stopped, "held": is_held, "may_work": False, "tests": []}
    states = qualification.states(permit, trials) if task.test_items and task.is_open else []
    return {
        "may_work": task.is_open and bool(permit.queues),
        "states": states,
        "tests": item_view.tests_to_come(states, progress.behind_tests),
    }


def _work(
    request: UserRequest,
    permit: Permit,
    leases: list[Lease],
    *,
    closed: judgments.Closed | None = None,
    on_sheet: bool = False,
    status: int = 200,
    previous: Lease | None = None,
    posted: QueryDict | None = None,
    **extra: Any,
) -> HttpResponse:
    """Show a unit, a sheet, or the reason why there is none. For htmx, render only the part of the page that changes.

    leases: the leases of the unit or of the sheet; empty if there is nothing to show
    closed: result of storing the previous answer, if this request stored one
    previous: lease of the unit that was on the screen, if known
    posted: values of the unit's form if it is shown again
    """
    task = permit.task
    unit = leases[0].unit if leases else None
    progress = progress_of(permit)
    last = _undoable(permit, closed)
    [last_said] = item_view.said([last], permit.annotator, task.kind)
    context = {
        "task": task,
        "on_sheet": on_sheet,
        "has_sheets": bool(task.kind.pages.sheet),
        "noun": task.kind.noun,
        "progress": progress,
        "last": last_said,
        **_goal(request, permit),
        **({} if leases else may_do(permit, progress)),
        **extra,
    }
    if leases:
        language_asked = leases[0].unit.asked
        context["changed"] = bool(language_asked and last and last.unit.asked != language_asked)
        if on_sheet:
            context |= item_view.sheet(leases, permit)
        else:
            context |= item_view.question(leases[0], permit, posted, request.META.get("HTTP_ASSAY_SHOWN"))
            context["flag_kept"] = "HTTP_ASSAY_FLAG" in request.META
    language = unit.item.language if unit else ""
    guidelines_change = (
        language and len(task.languages) > 1 and not (previous and previous.unit.item.language == language)
    )
    if guidelines_change or not request.htmx:
        # Show the guidelines in the language of the record.
        context |= item_view.guidelines(task, language)
    if not request.htmx:
        keys = item_view.queue_keys(permit, on_sheet=on_sheet, is_guided="guidelines" in context)
        context |= {"keys": keys, **_rest(permit.annotator)}
        context["to_read"] = not (leases or personal_progress.has_read_guidelines(permit))
        context["notes"] = flags.notes_to_read([permit])
    template = "annotate/_work.html" if request.htmx else "annotate/queue.html"
    return render(request, template, context, status=status)


def _goal(request: UserRequest, permit: Permit) -> dict[str, int]:
    """Return the template context with the daily goal and the number of today's answers. Empty if there is no goal."""
    goal = request.preferences.get("goal")
    return {"goal": goal, "done_today": personal_progress.worked(permit.annotator).answered_today} if goal else {}


def _undoable(permit: Permit, closed: judgments.Closed | None) -> Judgment | None:
    """Return the annotator's last judgment if it can be undone, otherwise None."""
    last = closed.judgment if closed and closed.is_new else answer_changes.last_judgment(permit.annotator, permit.task)
    if not (last and judgments.may_be_taken_back(last)):
        return None
    last.unit.task = permit.task
    return last


def _one(lease: Lease | None) -> list[Lease]:
    return [lease] if lease else []


def _show(request: UserRequest, permit: Permit, leases: list[Lease], **extra: Any) -> HttpResponse:
    startable = leases or (permit.task.is_open and _anything_for(permit))
    why_empty = None if startable else personal_progress.why_empty(permit)
    return _work(request, permit, leases, why_empty=why_empty, **extra)


def _anything_for(permit: Permit) -> bool:
    """Return whether the button Start would hand out a unit.

    Units that the annotator already has count too, even if they come from the other page (queue or sheet), because
    Start hands them out again.
    """
    if handing_out.open_leases(permit.annotator, permit.task, permit.queues).exists():
        return True
    return eligible.with_free_place(eligible.waiting(permit)).exists()


def queue(request: UserRequest, permit: Permit) -> HttpResponse:
    return _show(request, permit, _one(handing_out.open_lease(permit.annotator, permit.task, permit.queues)))


def _next(request: UserRequest, permit: Permit, lease: Lease | None, **extra: Any) -> HttpResponse:
    """Render the next unit for htmx, or redirect to its page."""
    why_empty = None
    if lease is None:
        # hand_out skips units that other transactions have locked. `take` waits for them.
        lease = handing_out.take(permit.annotator, permit.task)
        why_empty = None if lease or not request.htmx else personal_progress.why_empty(permit)
    if not request.htmx:
        return redirect("queue", task=permit.task.name)
    return _work(request, permit, _one(lease), why_empty=why_empty, **extra)


def start(request: UserRequest, task: str) -> HttpResponse:
    """Hand out a unit. If the annotator has not read the guidelines, show them first.

    POST field:
    read: present if the guidelines were shown above the form, which is always the case for htmx requests
    """
    with acting(request.user, task) as permit:
        if not request.htmx and "read" not in request.POST and not personal_progress.has_read_guidelines(permit):
            return redirect("queue", task=permit.task.name)
        if handing_out.open_sheet(permit.annotator, permit.task, permit.queues):
            handing_out.close_open(permit.annotator, permit.task)
        lease = handing_out.hand_out(permit)
    return _next(request, permit, lease)


def judge(request: UserRequest, task: str) -> HttpResponse:
    """Answer or skip a unit.

    POST fields:
    lease: primary key of the lease
    answer: the answer; repeated if it has several labels
    reason: the reason for the answer; sent without an answer if the button of a reason was pressed
    skip: present to skip the unit
    comment: text
    active_ms: working time (milliseconds)
    do: command of the concept picker, which is run instead
    """
    if "do" in request.POST:
        return _choose(request, task=task)
    lease_id = whole_number(request.POST.get("lease"))
    if lease_id is None:
        raise InvalidAnswer(_("The form does not identify the item. Reload the page."))
    try:
        with acting(request.user, task) as permit:
            answer = None if "skip" in request.POST else posted_answer(permit.task.kind, request.POST)
            closed = judgments.close(permit, lease_id, answer, active_seconds(request))
            # Save the answer and hand out the next unit in one transaction.
            lease = handing_out.hand_out(closed.permit, closed.held)
    except InvalidAnswer as refusal:
        # `leased` returns the lease even if it has expired.
        shown_lease = handing_out.leased(permit.annotator, permit.task, lease_id)
        return _again(request, permit, shown_lease, refusal=refusal, status=status_of(refusal))
    return _next(request, closed.permit, lease, closed=closed, previous=closed.lease)


def flag(request: UserRequest, task: str) -> HttpResponse:
    """Flag a unit for the manager.

    POST fields:
    lease: primary key of the lease
    flag: a key of KINDS in work/flags.py
    words: message to the manager
    active_ms: working time (milliseconds)

    The page keeps the content of the other fields of the unit's form.
    """
    lease_id = whole_number(request.POST.get("lease"))
    if lease_id is None:
        raise InvalidAnswer(_("The form does not identify the flagged item. Reload the page."))
    kind, message = request.POST.get("flag", ""), request.POST.get("words", "")
    try:
        with acting(request.user, task) as permit:
            closed = flags.flag(permit, lease_id, kind, message, active_seconds(request)).closed
            lease = handing_out.hand_out(closed.permit, closed.held) if closed else None
    except InvalidAnswer as refusal:
        if request.htmx:
            raise
        shown_lease = handing_out.leased(permit.annotator, permit.task, lease_id)
        return _again(request, permit, shown_lease, refusal=refusal, status=status_of(refusal))
    if closed:
        return _next(request, closed.permit, lease, closed=closed, previous=closed.lease)
    flagged = _("The manager has received your flag. You can now answer or skip.")
    if request.htmx:
        return HttpResponse(flagged)
    shown_lease = handing_out.leased(permit.annotator, permit.task, lease_id)
    return _again(request, permit, shown_lease, flagged=flagged)


def _again(request: UserRequest, permit: Permit, lease: Lease | None, **extra: Any) -> HttpResponse:
    """Show the same unit again with the submitted values of its form."""
    # Browsers count a line break as one character but send two, so the comment could exceed the maximum length.
    comment = request.POST.get("comment", "").replace("\r\n", "\n")
    return _work(request, permit, _one(lease), comment=comment, posted=request.POST, **extra)


@with_permit
def _choose(request: UserRequest, permit: Permit) -> HttpResponse:
    """Run a command of the concept picker, such as a search, and show the picker again. Nothing is stored."""
    lease_id = whole_number(request.POST.get("lease"))
    lease = handing_out.leased(permit.annotator, permit.task, lease_id) if lease_id is not None else None
    if lease is None or permit.task.vocabulary_id is None:
        raise NotFound(_("You do not have this item."))
    if request.htmx:
        panel = concept_picker.of_unit(lease.unit, permit, request.POST)
        return render(request, "annotate/_chosen_and_found.html", panel)
    return _again(request, permit, lease)


def undo(request: UserRequest, task: str) -> HttpResponse:
    judgment_id = whole_number(request.POST.get("judgment"))
    if judgment_id is None and "judgment" in request.POST:
        raise InvalidAnswer(_("The form does not identify the answer to undo. Reload the page."))
    with acting(request.user, task) as permit:
        lease, judgment = answer_changes.take_back(permit, judgment_id)
    if not request.htmx:
        return redirect("queue", task=permit.task.name)
    return _work(request, permit.after_reading(-1, answers=-int(judgment.kind == Judgment.ANSWER)), [lease])


def pause(request: UserRequest, annotator: Annotator, task: Task) -> HttpResponse:
    """Return the annotator's current unit or sheet to the queue, and show a summary of today's work."""
    handing_out.release_all(annotator, task)
    progress = progress_of(permit_of(annotator, task))
    if progress.answered_today or progress.skipped_today:
        sentence = _("Finished. Today in “%(title)s”: %(answered)s answered, %(skipped)s skipped.")
        messages.success(
            request,
            sentence
            % {
                "title": item_view.title_of(task),
                "answered": intcomma(progress.answered_today),
                "skipped": intcomma(progress.skipped_today),
            },
        )
    return redirect("home")


# --- Sheets


def _check_sheets(task: Task) -> None:
    if not task.kind.pages.sheet:
        raise NotFound(_("This task has no sheets. Its items are shown one at a time."))


def sheet(request: UserRequest, permit: Permit) -> HttpResponse:
    _check_sheets(permit.task)
    return _show(request, permit, handing_out.open_sheet(permit.annotator, permit.task, permit.queues), on_sheet=True)


def _next_sheet(request: UserRequest, permit: Permit, leases: list[Lease], **extra: Any) -> HttpResponse:
    why_empty = None if leases else personal_progress.why_empty(permit)
    return _work(request, permit, leases, on_sheet=True, why_empty=why_empty, **extra)


def start_sheet(request: UserRequest, task: str) -> HttpResponse:
    """Hand out a sheet. POST field: see `start`."""
    with acting(request.user, task) as permit:
        _check_sheets(permit.task)
        if not request.htmx and "read" not in request.POST and not personal_progress.has_read_guidelines(permit):
            return redirect("sheet", task=permit.task.name)
        if handing_out.open_lease(permit.annotator, permit.task, permit.queues):
            handing_out.close_open(permit.annotator, permit.task)
        leases = handing_out.hand_out_sheet(permit)
    if request.htmx:
        return _next_sheet(request, permit, leases)
    return redirect("sheet", task=permit.task.name)


def judge_sheet(request: UserRequest, annotator: Annotator, task: Task) -> HttpResponse:
    """Answer the units of a sheet.

    POST fields:
    lease: primary key of a lease; repeated for each post of the sheet
    answer-LEASE: the answer to the post with this lease, or skip
    active_ms: working time on the whole sheet (milliseconds)
    """
    _check_sheets(task)
    leases = [whole_number(text) for text in request.POST.getlist("lease")]
    if not leases or None in leases:
        raise InvalidAnswer(_("The form does not identify the posts. Reload the page."))
    answers = {lease: _mark(task, request.POST.get(f"answer-{lease}")) for lease in leases if lease is not None}
    refused = judgments.judge_sheet(annotator, task, answers, active_seconds(request))
    outcome = item_view.sheet_outcome(len(answers), refused)
    sheet = handing_out.take_sheet(annotator, task)
    # Without htmx, show refusals in this response. Reloading it submits the form again, which changes nothing.
    if request.htmx or refused:
        return _next_sheet(request, permit_of(annotator, task), sheet, outcome=outcome)
    return redirect("sheet", task=task.name)


def _mark(task: Task, answer: str | None) -> Answer | None:
    """Return the answer in a row of a sheet, or None for a skip."""
    if not answer:
        raise InvalidAnswer(_("A post on this sheet has no answer, so nothing was saved. Reload the page."))
    return None if answer == "skip" else judgments.read_answer(task.kind, [answer])


# --- Replies, notes and disturbing posts


def replies_and_notes(permits: list[Permit]) -> dict[str, Any]:
    """Return the context of _messages.html, which shows replies and notes on the annotator's start page."""
    if not permits:
        return {}
    return {"replies": list(flags.replies(permits[0].annotator)), "notes": flags.notes_to_read(permits)}


def put_reply_away(request: UserRequest, annotator: Annotator, flag: int) -> HttpResponse:
    flags.put_away(annotator, flag)
    return redirect("home")


def put_note_away(request: UserRequest, annotator: Annotator, note: int) -> HttpResponse:
    """Dismiss a note that the annotator has read.

    POST field:
    queue: present if the note was shown above the queue, to return there
    """
    dismissed = flags.put_away_note(annotator, note)
    return redirect("queue", task=dismissed.task.name) if "queue" in request.POST else redirect("home")


def take_disturbing(request: UserRequest, annotator: Annotator) -> HttpResponse:
    """Set whether the annotator receives units that others found disturbing.

    POST field:
    takes: yes or no
    """
    choice = request.POST.get("takes")
    if choice not in ("yes", "no"):
        raise InvalidAnswer(_("The form does not contain a choice. Reload the page."))
    is_willing = choice == "yes"
    flags.take_disturbing(annotator, takes=is_willing)
    messages.success(
        request,
        _("From now on, you may receive items that others found disturbing.")
        if is_willing
        else _("You no longer receive items that others found disturbing."),
    )
    return redirect("account")
