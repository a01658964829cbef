"""The pages. GET shows, POST acts through one operation and answers htmx with the next unit, or with a redirect."""

from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import SetPasswordForm
from django.core.paginator import Paginator
from django.db.models import Count
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from knox.models import AuthToken

from annotate import adjudication as adjudicating
from annotate import judging, people, presenting, progress
from annotate import queue as handing_out
from annotate.access import annotator_of, with_task
from annotate.errors import InvalidAnswer, Refusal
from annotate.models import Task, Transition
from corpora.core.languages import LANGUAGES


def _whole_number(text: str | None) -> int | None:
    """A non-negative number from a form; None for anything else."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None


def _language_code(text: str | None) -> str:
    """A language code from an address; empty for anything else."""
    return text if text in LANGUAGES else ""


@require_GET
def home(request):
    annotator = annotator_of(request.user)
    tasks = [
        {
            "task": task,
            "progress": progress.own_progress(annotator, task),
            "adjudication": adjudicating.to_adjudicate(task, annotator).count() if annotator.adjudicates else None,
        }
        for task in (Task.objects.filter(is_open=True) if annotator else ())
    ]
    return render(request, "annotate/home.html", {"annotator": annotator, "tasks": tasks})


def _work(request, annotator, task, lease, *, status=200, **extra):
    """The queue with the unit of a lease on it, or with why there is none; for htmx without what surrounds it."""
    context = {
        "task": task,
        "lease": lease,
        "progress": progress.own_progress(annotator, task),
        "last": presenting.said(judging.last_judgment(annotator, task)),
        **extra,
    }
    if lease:
        context |= presenting.question(lease.unit, annotator)
    template = "annotate/_work.html" if request.htmx else "annotate/queue.html"
    return render(request, template, context, status=status)


@require_GET
@never_cache
@with_task("annotate")
def queue(request, annotator, task):
    lease = handing_out.open_lease(annotator, task)
    return _work(
        request,
        annotator,
        task,
        lease,
        why_empty=None if lease or anything_for(annotator, task) else progress.why_empty(annotator, task),
        guidelines=presenting.markdown(task.guidelines),
    )


def anything_for(annotator, task) -> bool:
    """Whether Start would hand something out."""
    return task.is_open and handing_out.with_free_place(handing_out.waiting(annotator, task)).exists()


def _next(request, annotator, task):
    """After an action: the next unit, in the same response where htmx asks, else by redirect."""
    lease = handing_out.take(annotator, task)
    if not request.htmx:
        return redirect("queue", task=task.name)
    return _work(request, annotator, task, lease, why_empty=None if lease else progress.why_empty(annotator, task))


@require_POST
@with_task("annotate")
def start(request, annotator, task):
    return _next(request, annotator, task)


@require_POST
@with_task("annotate")
def judge(request, annotator, task):
    """Fields: lease; answer, a label or "und REASON", or skip; comment; active_ms."""
    lease_id = _whole_number(request.POST.get("lease"))
    active = _whole_number(request.POST.get("active_ms"))
    active_seconds = None if active is None else active / 1000
    if lease_id is None:
        raise InvalidAnswer("The form did not say which post it answers. Reload the page.")
    try:
        if "skip" in request.POST:
            judging.skip(annotator, lease_id, active_seconds)
        else:
            label, _, reason = request.POST.get("answer", "").partition(" ")
            answer = judging.read_answer(label, reason, request.POST.get("comment", ""))
            judging.judge(annotator, lease_id, answer, active_seconds)
    except InvalidAnswer as refusal:
        # The post and the typed comment stay on the screen.
        lease = handing_out.open_lease(annotator, task)
        kept = {"comment": request.POST.get("comment", ""), "refusal": refusal}
        guidelines = presenting.markdown(task.guidelines)
        return _work(request, annotator, task, lease, status=refusal.status, guidelines=guidelines, **kept)
    return _next(request, annotator, task)


@require_POST
@with_task("annotate")
def undo(request, annotator, task):
    judgment = _whole_number(request.POST.get("judgment"))
    if judgment is None and "judgment" in request.POST:
        raise InvalidAnswer("The form did not say which answer to take back. Reload the page.")
    lease = judging.undo(annotator, task, judgment)
    if not request.htmx:
        return redirect("queue", task=task.name)
    return _work(request, annotator, task, lease)


@require_POST
@with_task("annotate")
def pause(request, annotator, task):
    """Stop for now: the open unit goes back to the queue at once."""
    if lease := handing_out.open_lease(annotator, task):
        handing_out.release(annotator, lease.pk)
    return redirect("home")


@require_GET
@never_cache
@with_task("annotate")
def answers(request, annotator, task):
    page = Paginator(progress.today(annotator, task), 50).get_page(request.GET.get("page"))
    rows = [(judgment, presenting.said(judgment), presenting.reason(judgment)) for judgment in page]
    return render(request, "annotate/answers.html", {"task": task, "page": page, "rows": rows})


@require_GET
@with_task("annotate")
def guidelines(request, annotator, task):
    return render(
        request,
        "annotate/guidelines.html",
        {"task": task, "guidelines": presenting.markdown(task.guidelines)},
    )


@require_GET
@never_cache
@with_task("adjudicate")
def adjudication(request, annotator, task):
    language = _language_code(request.GET.get("language"))
    everything = adjudicating.to_adjudicate(task, annotator)
    visited = Transition.objects.filter(unit__in=everything.order_by(), to_stage="QUEUED").order_by()
    languages = visited.values_list("language").annotate(Count("unit", distinct=True)).order_by("language")
    units = adjudicating.to_adjudicate(task, annotator, language)
    context = {
        "task": task,
        "language": language,
        "languages": [(presenting.Choice(code), count) for code, count in languages],
        "waiting": everything.count(),
        "page": Paginator(units, 50).get_page(request.GET.get("page")),
        "decided": adjudicating.decisions(annotator, task)[:50],
        **_just_decided(request, annotator, task),
    }
    return render(request, "annotate/adjudication.html", context)


@require_http_methods(["GET", "POST"])
@never_cache
@with_task("adjudicate")
def adjudicate(request, annotator, task, unit):
    """One unit with all that is known of it, but none that readers may still be given.

    POST settles or discards it and goes on to the next of the list.
    """
    language = _language_code(request.GET.get("language"))
    found = get_object_or_404(adjudicating.adjudicated(task), pk=unit)
    refusal = None
    if request.method == "POST":
        discard = "discard" in request.POST
        label = "" if discard else request.POST.get("label") or request.POST.get("other", "")
        try:
            said = judging.read_answer(
                label, request.POST.get("reason", ""), request.POST.get("comment", ""), discard=discard
            )
            if discard:
                judgment = adjudicating.discard(annotator, unit, said.reason, said.comment)
            else:
                judgment = adjudicating.settle(annotator, unit, said)
        except InvalidAnswer as error:
            refusal = error
        else:
            return redirect(presenting.next_to_adjudicate(annotator, task, language, judgment))
    context = {"task": task, "language": language, "unit": found, "refusal": refusal, "posted": request.POST}
    context |= presenting.dossier(found, annotator) | _just_decided(request, annotator, task)
    status = refusal.status if refusal else 200
    return render(request, "annotate/adjudicate.html", context, status=status)


def _just_decided(request, annotator, task) -> dict:
    """The decision after which the adjudicator was sent here."""
    unit = _whole_number(request.GET.get("decided"))
    just = adjudicating.decisions(annotator, task).filter(unit=unit).first() if unit is not None else None
    return {"just": just, "just_said": presenting.decision(just) if just else ""}


@require_POST
@with_task("adjudicate")
def unsettle(request, annotator, task, unit):
    get_object_or_404(task.units, pk=unit)
    adjudicating.unsettle(annotator, unit)
    return redirect("adjudicate", task=task.name, unit=unit)


@login_not_required
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
@never_cache
def accept_invite(request, token):
    try:
        user = people.find_invite(token).annotator.user
    except Refusal as refusal:
        return render(request, "annotate/refusal.html", {"refusal": refusal}, status=refusal.status)
    form = SetPasswordForm(user, request.POST or None)
    if form.is_valid():
        user = people.accept_invite(token, form.cleaned_data["new_password1"])
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
