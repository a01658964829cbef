"""The pages of everybody and of annotators; guidelines and test are in qualification_views.py, the adjudicators' in
adjudication_views.py.

GET shows, POST acts through one operation and answers htmx with the next unit, or with a redirect.
"""

from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import SetPasswordForm
from django.core.paginator import Paginator
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from knox.models import AuthToken

from annotate.core.labels import label_name
from annotate.core.refusals import InvalidAnswer, NotFound, Refusal
from annotate.kinds import TASK_TYPES
from annotate.models import Task
from annotate.pages import presenting
from annotate.pages.access import annotator_of, with_task
from annotate.pages.errors import status_of
from annotate.quality import qualification
from annotate.quality.pauses import PAUSED, running
from annotate.work import accounts, judging, progress
from annotate.work import adjudication as adjudicating
from annotate.work import queue as handing_out

# Steps at which there is no test to go to.
SETTLED = (qualification.NONE_NEEDED, qualification.PASSED, qualification.FAILED)


def whole_number(text: str | None) -> int | None:
    """A non-negative number from a form; None for anything else."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None


def _active_seconds(request) -> float | None:
    milliseconds = whole_number(request.POST.get("active_ms"))
    return None if milliseconds is None else milliseconds / 1000


@require_GET
def home(request):
    annotator = annotator_of(request.user)
    tasks = [
        {
            "task": task,
            **_may(annotator, task),
            "has_sheets": has_sheets(task),
            "progress": progress.own_progress(annotator, task),
            "adjudication": adjudicating.to_adjudicate(task, annotator).count() if annotator.adjudicates else None,
        }
        for task in (Task.objects.filter(is_open=True) if annotator else ())
    ]
    # What there is something to do for comes first.
    tasks.sort(key=lambda row: not _has_work(row))
    return render(request, "annotate/home.html", {"annotator": annotator, "tasks": tasks})


def _has_work(row: dict) -> bool:
    to_test = any(found.step not in SETTLED for found in row.get("states", ()))
    return bool(row["adjudication"] or row["progress"]["waiting"] or to_test)


def _may(annotator, task) -> dict:
    """Whether the annotator may work in any language of the task, and where they stand in each.

    Who is paused is offered nothing that would be refused, and nobody is where a task is closed.
    """
    if running(annotator, task):
        return {"paused": PAUSED, "may_work": False, "tests": []}
    states = qualification.states(annotator, task) if task.test_items and task.is_open else []
    passed = not states or any(found.step == qualification.PASSED for found in states)
    return {
        "may_work": task.is_open and passed,
        "states": states,
        "tests": presenting.tests_to_come(states, progress.behind_tests(annotator, task, states)),
    }


def has_sheets(task) -> bool:
    return bool(TASK_TYPES[task.task_type].sheet)


def _work(request, annotator, task, leases, *, on_sheet=False, status=200, before=None, **extra):
    """The queue with a unit or a sheet on it, or with why there is none; for htmx without what surrounds it.

    before: the lease of what was on the screen, if that is known.
    """
    last = judging.last_judgment(annotator, task)
    context = {
        "task": task,
        "on_sheet": on_sheet,
        "has_sheets": has_sheets(task),
        "records": TASK_TYPES[task.task_type].records,
        "progress": progress.own_progress(annotator, task),
        "last": presenting.said(last),
        **({} if leases else _may(annotator, task)),
        **extra,
    }
    if leases:
        asked = leases[0].unit.asked
        context["changed"] = bool(asked and last and last.unit.asked != asked)
        context |= presenting.sheet(leases) if on_sheet else presenting.question(leases[0], annotator)
    language = leases[0].unit.item.language if leases else ""
    turned = language and len(task.languages) > 1 and not (before and before.unit.item.language == language)
    if turned or not request.htmx:
        # In the language of what is on the screen.
        context["guidelines"] = presenting.guidelines(task, language)
    template = "annotate/_work.html" if request.htmx else "annotate/queue.html"
    return render(request, template, context, status=status)


def _one(lease) -> list:
    return [lease] if lease else []


def _show(request, annotator, task, leases, **extra):
    startable = leases or (anything_for(annotator, task) and task.is_open)
    why_empty = None if startable else progress.why_empty(annotator, task)
    return _work(request, annotator, task, leases, why_empty=why_empty, **extra)


def anything_for(annotator, task) -> bool:
    """Whether Start would hand something out; of what is open in the other mode it hands out the same again."""
    if handing_out.open_lease(annotator, task) or handing_out.open_sheet(annotator, task):
        return True
    return task.is_open and handing_out.with_free_place(handing_out.waiting(annotator, task)).exists()


@require_GET
@never_cache
@with_task("annotate")
def queue(request, annotator, task):
    return _show(request, annotator, task, _one(handing_out.open_lease(annotator, task)))


def _next(request, annotator, task, before=None):
    """After an action: the next unit, in the same response where htmx asks, else by redirect.

    before: the lease of what was on the screen.
    """
    lease = handing_out.take(annotator, task)
    if not request.htmx:
        return redirect("queue", task=task.name)
    why_empty = None if lease else progress.why_empty(annotator, task)
    return _work(request, annotator, task, _one(lease), why_empty=why_empty, before=before)


@require_POST
@with_task("annotate")
def start(request, annotator, task):
    if handing_out.open_sheet(annotator, task):
        handing_out.release_all(annotator, task)
    return _next(request, annotator, task)


@require_POST
@with_task("annotate")
def judge(request, annotator, task):
    """Fields: lease; answer, a label or "und REASON", or skip; comment; active_ms."""
    lease_id = whole_number(request.POST.get("lease"))
    active_seconds = _active_seconds(request)
    if lease_id is None:
        raise InvalidAnswer("The form did not say what it answers. Reload the page.")
    # A browser counts a line's end as one character and sends two.
    comment = request.POST.get("comment", "").replace("\r\n", "\n")
    shown = handing_out.leased(annotator, task, lease_id)
    try:
        if "skip" in request.POST:
            judging.skip(annotator, lease_id, active_seconds)
        else:
            label, _, reason = request.POST.get("answer", "").partition(" ")
            answer = judging.read_answer(label, reason, comment)
            judging.judge(annotator, lease_id, answer, active_seconds)
    except InvalidAnswer as refusal:
        # What was shown and the typed comment stay on the screen, even if the lease has run out.
        kept = {"comment": comment, "refusal": refusal}
        return _work(request, annotator, task, _one(shown), status=status_of(refusal), **kept)
    return _next(request, annotator, task, before=shown)


@require_POST
@with_task("annotate")
def undo(request, annotator, task):
    judgment = whole_number(request.POST.get("judgment"))
    if judgment is None and "judgment" in request.POST:
        raise InvalidAnswer("The form did not say which answer to take back. Reload the page.")
    lease = judging.undo(annotator, task, judgment)
    if not request.htmx:
        return redirect("queue", task=task.name)
    return _work(request, annotator, task, [lease])


@require_POST
@with_task("annotate")
def pause(request, annotator, task):
    """Stop for now: the open unit, or the sheet, goes back to the queue at once."""
    handing_out.release_all(annotator, task)
    return redirect("home")


def _check_sheets(task) -> None:
    if not has_sheets(task):
        raise NotFound("This task comes one by one only, on no sheets.")


@require_GET
@never_cache
@with_task("annotate")
def sheet(request, annotator, task):
    _check_sheets(task)
    return _show(request, annotator, task, handing_out.open_sheet(annotator, task), on_sheet=True)


def _next_sheet(request, annotator, task, **extra):
    leases = handing_out.take_sheet(annotator, task)
    why_empty = None if leases else progress.why_empty(annotator, task)
    return _work(request, annotator, task, leases, on_sheet=True, why_empty=why_empty, **extra)


@require_POST
@with_task("annotate")
def start_sheet(request, annotator, task):
    _check_sheets(task)
    if handing_out.open_lease(annotator, task):
        handing_out.release_all(annotator, task)
    if request.htmx:
        return _next_sheet(request, annotator, task)
    handing_out.take_sheet(annotator, task)
    return redirect("sheet", task=task.name)


@require_POST
@with_task("annotate")
def judge_sheet(request, annotator, task):
    """Fields: lease, one for each post; answer-LEASE, a label, und or skip; active_ms, of the whole sheet."""
    _check_sheets(task)
    given = [whole_number(text) for text in request.POST.getlist("lease")]
    if not given or None in given:
        raise InvalidAnswer("The form did not say which posts it answers. Reload the page.")
    answers = {lease: _mark(request.POST.get(f"answer-{lease}")) for lease in given}
    refused = judging.judge_sheet(annotator, answers, _active_seconds(request))
    outcome = presenting.sheet_outcome(len(answers), refused)
    # Without htmx what was refused is shown at once: sent again by a reload, the form changes nothing.
    if request.htmx or refused:
        return _next_sheet(request, annotator, task, outcome=outcome)
    handing_out.take_sheet(annotator, task)
    return redirect("sheet", task=task.name)


def _mark(said: str | None):
    """What a row of a sheet says; None: skip."""
    if not said:
        raise InvalidAnswer("A post of this sheet came without an answer, so nothing was saved. Reload the page.")
    return None if said == "skip" else judging.read_answer(said)


@require_GET
@never_cache
@with_task("annotate")
def answers(request, annotator, task):
    page = Paginator(progress.today(annotator, task), 50).get_page(request.GET.get("page"))
    rows = [
        (
            judgment,
            presenting.in_a_line(judgment.unit),
            presenting.said(judgment),
            presenting.reason(judgment),
            label_name(judgment.unit.asked),
        )
        for judgment in page
    ]
    context = {"task": task, "has_sheets": has_sheets(task), "page": page, "rows": rows, **_may(annotator, task)}
    return render(request, "annotate/answers.html", context)


@login_not_required
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
@never_cache
def accept_invite(request, token):
    try:
        user = accounts.find_invite(token).annotator.user
    except Refusal as refusal:
        return render(request, "annotate/refusal.html", {"refusal": refusal}, status=status_of(refusal))
    form = SetPasswordForm(user, request.POST or None)
    if form.is_valid():
        user = accounts.accept_invite(token, form.cleaned_data["new_password1"])
        login(request, user, backend="django.contrib.auth.backends.ModelBackend")
        return redirect("home")
    return render(request, "annotate/invite.html", {"form": form, "invited": user})


@require_http_methods(["GET", "POST"])
@never_cache
def account(request):
    """One's API tokens. A new one is shown once; only its hash is kept."""
    token = None
    if request.method == "POST":
        if "make" in request.POST:
            _, token = AuthToken.objects.create(request.user)
        else:
            # Among one's own, in Python: what was sent may be no text that the database can compare.
            for own in AuthToken.objects.filter(user=request.user):
                if own.token_key == request.POST.get("revoke"):
                    own.delete()
    context = {"tokens": AuthToken.objects.filter(user=request.user).order_by("created"), "made": token}
    return render(request, "annotate/account.html", context)
