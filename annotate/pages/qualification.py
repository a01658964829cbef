"""The pages before the work: guidelines and their versions, practice, test and result.

One address a language shows what comes next for the person; what is done there goes through qualifying.py.
After an answer in practice the same address, with `answered` in it, shows the record again with what is right.
"""

from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from annotate.core.labels import label_name
from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.kinds import TASK_TYPES, name_of
from annotate.models import Trial, TrialAnswer
from annotate.pages import presenting
from annotate.pages.access import may, with_task
from annotate.pages.annotators import whole_number
from annotate.quality import qualification as qualifying
from annotate.quality.guidelines import current, languages, versions
from annotate.quality.pauses import PAUSED, running


@require_GET
@with_task("read")
def guidelines(request, annotator, task):
    """The guidelines in one of their languages; ?version=, for managers, an earlier version."""
    own = qualifying.languages_of(annotator, task) if annotator else []
    language = request.GET.get("language", own[0] if own else "")
    found = current(task, language) if language else current(task)
    manages = may(request.user, "manage")
    earlier = [] if found is None or not manages else versions(task, found.language)
    if wanted := request.GET.get("version"):
        found = next((version for version in earlier if version.version == wanted), None)
    if found is None:
        raise NotFound("There are no such guidelines.")
    context = {
        "task": task,
        "found": found,
        "text": presenting.markdown(found.text),
        "languages": [(code, label_name(code)) for code in languages(task)],
        "earlier": earlier,
        "annotator": annotator,
    }
    return render(request, "annotate/guidelines.html", context)


@require_GET
@never_cache
@with_task("annotate")
def qualification(request, annotator, task, language):
    answered = None
    if (number := whole_number(request.GET.get("answered"))) is not None:
        answered = _answers(annotator, task, language).filter(pk=number, answered_at__isnull=False).first()
    return _show(request, annotator, task, language, answered)


@require_POST
@with_task("annotate")
def practise(request, annotator, task, language):
    """That the guidelines have been read, too: practice begins with saying so."""
    qualifying.begin(annotator, task, language, Trial.PRACTICE)
    return redirect("qualification", task.name, language)


@require_POST
@with_task("annotate")
def take_test(request, annotator, task, language):
    qualifying.begin(annotator, task, language, Trial.TEST)
    return redirect("qualification", task.name, language)


@require_POST
@with_task("annotate")
def answer(request, annotator, task, language):
    """Fields: question; answer, a label."""
    question = whole_number(request.POST.get("question"))
    if question is None:
        raise InvalidAnswer("The form did not say which question it answers. Reload the page.")
    if not _answers(annotator, task, language).filter(pk=question).exists():
        raise NotFound("You have not been asked such a question.")
    answered = qualifying.answer(annotator, question, request.POST.get("answer", ""))
    if request.htmx:
        return _show(request, annotator, task, language, answered)
    query = f"?{urlencode({'answered': answered.pk})}" if answered.trial.kind == Trial.PRACTICE else ""
    return redirect(reverse("qualification", args=[task.name, language]) + query)


def _answers(annotator, task, language):
    own = TrialAnswer.objects.filter(trial__annotator=annotator, trial__task=task, trial__language=language)
    return own.select_related("gold_answer__item", "trial")


def _show(request, annotator, task, language, answered=None):
    """What comes next, or after an answer in practice what is right; for htmx without what surrounds it."""
    found = qualifying.state(annotator, task, language)
    context = {
        "task": task,
        "paused": PAUSED if running(annotator, task) else "",
        "found": found,
        "steps": _steps(found),
        "states": qualifying.states(annotator, task),
        "guidelines": presenting.markdown(found.guidelines.text if found.guidelines else ""),
    }
    question = qualifying.next_question(found.trial) if found.trial else None
    # Of a test nothing is told before its end, and not one by one even then.
    if answered and answered.trial.kind == Trial.PRACTICE:
        context |= _explained(answered)
    elif question:
        context |= {**_asked(question), "options": presenting.options(task), "trial": found.trial}
    elif found.step in (qualifying.TEST, qualifying.PASSED, qualifying.FAILED):
        context |= {"test": _test(task, found), "result": found.last and _result(found.last)}
    template = "annotate/_qualification.html" if request.htmx else "annotate/qualification.html"
    return render(request, template, context)


def _steps(found: qualifying.Standing) -> list[tuple[str, bool]]:
    """The way, and where on it the person is."""
    if found.step == qualifying.NONE_NEEDED:
        return []
    here = {qualifying.READ: 0, qualifying.PRACTICE: 1}.get(found.step, 2)
    return [(name, place == here) for place, name in enumerate(("Guidelines", "Practice", "Test"))]


def _asked(question: TrialAnswer) -> dict:
    return {
        "question": question,
        "of": question.trial.answers.count(),
        **presenting.record(question.gold_answer.item, TASK_TYPES[question.trial.task.task_type]),
    }


def _explained(answered: TrialAnswer) -> dict:
    return {**_asked(answered), "explained": _told(answered)}


def _told(answered: TrialAnswer) -> dict:
    """What was said, what is right, and why."""
    gold, task = answered.gold_answer, answered.trial.task
    return {
        "right": answered.label == gold.label,
        "said": name_of(answered.label, task),
        "label": name_of(gold.label, task),
        "explanation": gold.explanation,
        "language": gold.item.language,
    }


def _test(task, found: qualifying.Standing) -> dict:
    """What a test of the task asks: so many questions, of which so many are to be right; and how often it may be."""
    asked = qualifying.questions_of_a_test(task, found.language)
    return {
        "asked": asked,
        "needed": qualifying.to_pass(task, asked),
        "times": {1: "once", 2: "twice"}.get(found.tries_left, f"{found.tries_left} times"),
    }


def _result(trial: Trial) -> dict:
    """What came of a test that is over, with what was missed."""
    task_type = TASK_TYPES[trial.task.task_type]
    return {
        "trial": trial,
        "asked": trial.answers.count(),
        "needed": qualifying.needed(trial),
        "missed": [
            {**_told(missed), **presenting.record(missed.gold_answer.item, task_type)}
            for missed in qualifying.missed(trial)
        ],
    }
