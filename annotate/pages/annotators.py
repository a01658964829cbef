"""The annotators' queue and sheets.

The start page is in start_page.py, past answers in self_service.py, guidelines and tests in qualification_test.py.

A GET request shows a page. A POST request performs one operation, and then renders the next unit for htmx, or
redirects.
"""

from collections import Counter
from typing import Any

from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.figures import personal_progress
from annotate.kinds import Answer
from annotate.models import Annotator, Judgment, Lease, Task
from annotate.pages import concept_picker, item_view
from annotate.pages.access import UserRequest, active_seconds, status_of, whole_number, with_permit
from annotate.pages.keyboard_shortcuts import queue_keys
from annotate.pages.start_page import break_due, may_do
from annotate.work import answer_changes, eligible, flags, judgments
from annotate.work import queue as work_queue
from annotate.work.assignment import lease_next
from annotate.work.backlog import progress_of
from annotate.work.judgments import posted_answer
from annotate.work.permit import Permit, acting, permit_of

# Defaults for names that most pages don't set. Looking up a missing name is slow in Django templates.
_UNSET = dict.fromkeys(("refusal", "outcome", "changing", "comment", "flagged", "held"), "")


def _render_work(
    request: UserRequest,
    permit: Permit,
    leases: list[Lease],
    *,
    closed: judgments.Closed | None = None,
    on_sheet: bool = False,
    status: int = 200,
    posted: QueryDict | None = None,
    **extra: Any,
) -> HttpResponse:
    """Show a unit, a sheet, or the reason why there is none. For htmx, render only the part of the page that changes.

    leases: leases of the unit or sheet; empty if there is nothing to show
    closed: result of storing the previous answer; None if this request stored no answer
    posted: submitted values of the unit's form if it is shown again
    """
    task, goal = permit.task, request.preferences.get("goal")
    progress, last = progress_of(permit), _undoable(permit, closed)
    context: dict[str, Any] = {
        **_UNSET,
        "task": task,
        "on_sheet": on_sheet,
        "has_sheets": bool(task.kind.pages.sheet),
        "noun": task.kind.noun,
        "progress": progress,
        "last": item_view.summaries([last], permit.annotator, task.kind)[0] if last else "",
        "goal": goal,
        "done_today": personal_progress.worked(permit.annotator).answered_today if goal else None,
        **({} if leases else may_do(permit, progress)),
        **extra,
    }
    language = ""
    if leases:
        unit = leases[0].unit
        language = unit.item.language
        context["changed"] = bool(unit.asked and last and last.unit.asked != unit.asked)
        context["is_flag_on_page"] = "HTTP_ASSAY_FLAG" in request.META
        on_page = request.META.get("HTTP_ASSAY_SHOWN")
        context |= (
            item_view.sheet(leases, permit) if on_sheet else item_view.question(leases[0], permit, posted, on_page)
        )
    is_other = len(task.languages) > 1 and not (closed and closed.lease.unit.item.language == language)
    if not request.htmx or (language and is_other):
        # Show the guidelines in the language of the record.
        context |= item_view.guidelines(task, language)
    if request.htmx:
        return render(request, "annotate/_work.html", context, status=status)
    keys = queue_keys(permit, on_sheet=on_sheet, is_guided="guidelines" in context)
    context |= {"keys": keys, "notes": flags.notes_to_read([permit]), **break_due(permit.annotator)}
    context["to_read"] = not (leases or personal_progress.has_read_guidelines(permit))
    return render(request, "annotate/queue.html", context, status=status)


def _undoable(permit: Permit, closed: judgments.Closed | None) -> Judgment | None:
    """Return the annotator's last judgment; None if it can't be undone."""
    last = closed.judgment if closed and closed.is_new else answer_changes.last_judgment(permit.annotator, permit.task)
    if not (last and judgments.is_undoable(last)):
        return None
    last.unit.task = permit.task
    return last


def _as_list(lease: Lease | None) -> list[Lease]:
    return [lease] if lease else []


def _show(request: UserRequest, permit: Permit, leases: list[Lease], **extra: Any) -> HttpResponse:
    startable = leases or (permit.task.is_open and _has_work(permit))
    why_empty = None if startable else personal_progress.why_empty(permit)
    return _render_work(request, permit, leases, why_empty=why_empty, **extra)


def _has_work(permit: Permit) -> bool:
    """Return whether the Start button would assign a unit.

    Units that the annotator already has count too, even those from the other page (queue or sheet), because Start
    assigns them again.
    """
    if work_queue.open_leases(permit.annotator, permit.task, permit.queues).exists():
        return True
    return eligible.with_free_place(eligible.waiting_units(permit)).exists()


def queue(request: UserRequest, permit: Permit) -> HttpResponse:
    return _show(request, permit, _as_list(work_queue.open_lease(permit.annotator, permit.task, permit.queues)))


def _next(request: UserRequest, permit: Permit, lease: Lease | None, **extra: Any) -> HttpResponse:
    """Render the next unit for htmx, or redirect to its page."""
    # lease_next skips units locked by other transactions, whereas `take` waits for the locks.
    lease = lease or work_queue.take(permit.annotator, permit.task)
    if not request.htmx:
        return redirect("queue", task=permit.task.name)
    return _show_assigned(request, permit, _as_list(lease), **extra)


def _show_assigned(request: UserRequest, permit: Permit, leases: list[Lease], **extra: Any) -> HttpResponse:
    why_empty = None if leases else personal_progress.why_empty(permit)
    return _render_work(request, permit, leases, why_empty=why_empty, **extra)


def start(request: UserRequest, task: str) -> HttpResponse:
    """Assign a unit to the annotator. Annotators who have not read the guidelines see them first.

    POST field:
    read: present if the guidelines were shown above the form; htmx requests don't need it
    """
    with acting(request.user, task) as permit:
        if not request.htmx and "read" not in request.POST and not personal_progress.has_read_guidelines(permit):
            return redirect("queue", task=permit.task.name)
        if work_queue.open_sheet(permit.annotator, permit.task, permit.queues):
            work_queue.close_open(permit.annotator, permit.task)
        lease = lease_next(permit)
    return _next(request, permit, lease)


def judge(request: UserRequest, task: str) -> HttpResponse:
    """Answer or skip a unit.

    POST fields:
    lease: primary key of the lease
    answer: the answer; repeated if it has several labels
    reason: the reason for the answer; submitted without an answer if the button of a reason was pressed
    skip: present to skip the unit
    comment: text
    active_ms: working time (milliseconds)
    do: command of the concept picker to run instead
    """
    if "do" in request.POST:
        return _update_picker(request, task=task)
    lease_id = whole_number(request.POST.get("lease"))
    if lease_id is None:
        raise InvalidAnswer(_("The form does not identify the item. Reload the page."))
    try:
        with acting(request.user, task) as permit:
            answer = None if "skip" in request.POST else posted_answer(permit.task.kind, request.POST)
            closed = judgments.close(permit, lease_id, answer, active_seconds(request))
            # Save the answer and assign the next unit in one transaction.
            lease = lease_next(closed.permit, closed.held)
    except InvalidAnswer as refusal:
        return _show_again(request, permit, lease_id, refusal=refusal)
    return _next(request, closed.permit, lease, closed=closed)


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
            lease = lease_next(closed.permit, closed.held) if closed else None
    except InvalidAnswer as refusal:
        if request.htmx:
            raise
        return _show_again(request, permit, lease_id, refusal=refusal)
    if closed:
        return _next(request, closed.permit, lease, closed=closed)
    flagged = _("The manager has received your flag. You can now answer or skip.")
    if request.htmx:
        return HttpResponse(flagged)
    return _show_again(request, permit, lease_id, flagged=flagged)


def _show_again(
    request: UserRequest, permit: Permit, lease_id: int, *, refusal: InvalidAnswer | None = None, **extra: Any
) -> HttpResponse:
    """Show the same unit again with its form's submitted values, even if the lease has expired."""
    leases = _as_list(work_queue.find_lease(permit.annotator, permit.task, lease_id))
    # Browsers count a line break as one character but submit two, so the comment could exceed the maximum length.
    comment = request.POST.get("comment", "").replace("\r\n", "\n")
    extra |= {"comment": comment, "refusal": refusal, "status": status_of(refusal)}
    return _render_work(request, permit, leases, posted=request.POST, **extra)


@with_permit
def _update_picker(request: UserRequest, permit: Permit) -> HttpResponse:
    """Run a command of the concept picker, such as a search, and show the picker again. Nothing is stored."""
    lease_id = whole_number(request.POST.get("lease"))
    lease = work_queue.find_lease(permit.annotator, permit.task, lease_id) if lease_id is not None else None
    if lease is None or permit.task.vocabulary_id is None:
        raise NotFound(_("You do not have this item."))
    if request.htmx:
        panel = concept_picker.unit_panel(lease.unit, permit, request.POST)
        return render(request, "annotate/_chosen_and_found.html", panel)
    return _show_again(request, permit, lease.pk)


def undo(request: UserRequest, task: str) -> HttpResponse:
    judgment_id = whole_number(request.POST.get("judgment"))
    if judgment_id is None and "judgment" in request.POST:
        raise InvalidAnswer(_("The form does not identify the answer to undo. Reload the page."))
    with acting(request.user, task) as permit:
        lease, judgment = answer_changes.undo_locked(permit, judgment_id)
    if not request.htmx:
        return redirect("queue", task=permit.task.name)
    return _render_work(request, permit.after_reading(-1, answers=-int(judgment.kind == Judgment.ANSWER)), [lease])


# --- Sheets


def _check_sheets(task: Task) -> None:
    if not task.kind.pages.sheet:
        raise NotFound(_("This task has no sheets. Its items are shown one at a time."))


def sheet(request: UserRequest, permit: Permit) -> HttpResponse:
    _check_sheets(permit.task)
    return _show(request, permit, work_queue.open_sheet(permit.annotator, permit.task, permit.queues), on_sheet=True)


def start_sheet(request: UserRequest, task: str) -> HttpResponse:
    """Assign a sheet to the annotator. POST field: see `start`."""
    with acting(request.user, task) as permit:
        _check_sheets(permit.task)
        if not request.htmx and "read" not in request.POST and not personal_progress.has_read_guidelines(permit):
            return redirect("sheet", task=permit.task.name)
        if work_queue.open_lease(permit.annotator, permit.task, permit.queues):
            work_queue.close_open(permit.annotator, permit.task)
        leases = work_queue.lease_sheet(permit)
    if request.htmx:
        return _show_assigned(request, permit, leases, on_sheet=True)
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
    refused = work_queue.judge_sheet(annotator, task, answers, active_seconds(request))
    refusals = Counter(map(str, refused)).most_common()
    outcome = {"saved": len(answers) - len(refused), "sent": len(answers), "refusals": refusals}
    sheet = work_queue.take_sheet(annotator, task)
    # Without htmx, show refusals in this response. Reloading it submits the form again, which has no effect.
    if request.htmx or refused:
        return _show_assigned(request, permit_of(annotator, task), sheet, on_sheet=True, outcome=outcome)
    return redirect("sheet", task=task.name)


def _mark(task: Task, answer: str | None) -> Answer | None:
    """Parse the answer in a row of a sheet. Return None for a skip."""
    if not answer:
        raise InvalidAnswer(_("A post on this sheet has no answer, so nothing was saved. Reload the page."))
    return None if answer == "skip" else judgments.read_answer(task.kind, [answer])
