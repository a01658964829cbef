"""Pages that annotators see before they may work on a task: guidelines, practice, tests and consent.

Each language of a task has one URL, which shows the annotator's next step. After an answer in practice, the same URL
with ?answered= shows the record again with the correct answer. The operations are in controls/qualification.py.
"""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from annotate.controls import qualification as qualification_control
from annotate.controls.pair_order import reply_sets, sides_of_question
from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.kinds.interface_language import label_name
from annotate.models import Annotator, Task, Trial, TrialAnswer, Unit
from annotate.pages import concept_picker, item_view
from annotate.pages.access import UserRequest, may, whole_number, with_permit
from annotate.pages.keyboard_shortcuts import test_keys
from annotate.quality.guideline_versions import current, languages, versions
from annotate.work import interventions
from annotate.work.judgments import read_answer
from annotate.work.permit import Permit, acting, permit_of


def guidelines(request: UserRequest, annotator: Annotator | None, task: Task) -> HttpResponse:
    """Show the guidelines in one language.

    ?language=: code of the language
    ?version=: number of an earlier version; only for managers
    """
    own_languages = qualification_control.languages_of(permit_of(annotator, task)) if annotator else []
    language = request.GET.get("language", own_languages[0] if own_languages else "")
    shown = current(task, language) if language else current(task)
    manages = may(request.user, "manage", task.name)
    earlier = [] if shown is None or not manages else versions(task, shown.language)
    if version_number := request.GET.get("version"):
        shown = next((version for version in earlier if version.version == version_number), None)
    if shown is None:
        raise NotFound(_("These guidelines do not exist."))
    context = {
        "task": task,
        "displayed": shown,
        "text": item_view.render_guidelines(shown.text),
        "languages": [(code, label_name(code)) for code in languages(task)],
        "earlier": earlier,
        "annotator": annotator,
    }
    return render(request, "annotate/guidelines.html", context)


def qualification(request: UserRequest, permit: Permit, language: str) -> HttpResponse:
    answered = None
    if (number := whole_number(request.GET.get("answered"))) is not None:
        answered = _questions(permit, language).filter(pk=number, answered_at__isnull=False).first()
    return _show(request, permit, language, answered)


def practise(request: UserRequest, task: str, language: str) -> HttpResponse:
    """Start practice. The annotator confirms having read the guidelines."""
    return _begin(request, task, language, Trial.PRACTICE)


def take_test(request: UserRequest, task: str, language: str) -> HttpResponse:
    return _begin(request, task, language, Trial.TEST)


def _begin(request: UserRequest, task: str, language: str, kind: str) -> HttpResponse:
    with acting(request.user, task) as permit:
        qualification_control.begin(permit, language, kind)
    return redirect("qualification", task, language)


def answer(request: UserRequest, task: str, language: str) -> HttpResponse:
    """Answer a question.

    POST fields:
    question: primary key of the question
    answer: label; repeated if the answer has several
    is_sure: present to confirm an unusual answer, such as a concept together with a broader one
    do: command of the concept picker to run instead
    """
    if "do" in request.POST:
        return _update_picker(request, task=task, language=language)
    question = whole_number(request.POST.get("question"))
    if question is None:
        raise InvalidAnswer(_("The form does not identify the question. Reload the page."))
    with acting(request.user, task) as permit:
        if not _questions(permit, language).filter(pk=question).exists():
            raise NotFound(_("You have not been asked this question."))
        parsed = read_answer(permit.task.kind, request.POST.getlist("answer"))
        answered = qualification_control.answer(permit, question, parsed.label, is_sure="is_sure" in request.POST)
    if request.htmx:
        # The permit changes when the annotator passes.
        return _show(request, permit_of(permit.annotator, permit.task), language, answered)
    query = f"?{urlencode({'answered': answered.pk})}" if answered.trial.kind == Trial.PRACTICE else ""
    return redirect(reverse("qualification", args=[task, language]) + query)


@with_permit
def _update_picker(request: UserRequest, permit: Permit, language: str) -> HttpResponse:
    """Run a command of the concept picker, such as a search, and show the picker again. Nothing is stored."""
    number = whole_number(request.POST.get("question"))
    question = _questions(permit, language).filter(pk=number, answered_at=None).first() if number is not None else None
    if question is None or permit.task.vocabulary_id is None:
        raise NotFound(_("You have not been asked this question."))
    if request.htmx:
        panel = concept_picker.question_panel(question.gold_answer.item, permit, request.POST)
        return render(request, "annotate/_chosen_and_found.html", panel)
    return _show(request, permit, language, posted=request.POST)


def _questions(permit: Permit, language: str) -> QuerySet[TrialAnswer]:
    questions = TrialAnswer.objects.filter(
        trial__annotator=permit.annotator, trial__task=permit.task, trial__language=language
    )
    return questions.select_related("gold_answer__item", "trial")


def _show(
    request: UserRequest,
    permit: Permit,
    language: str,
    answered: TrialAnswer | None = None,
    posted: QueryDict | None = None,
) -> HttpResponse:
    """Show the annotator's next step or, after an answer in practice, the correct answer.

    For htmx, only the part of the page that changes is rendered.

    answered: the question that was just answered; None if there is none
    posted: submitted values of the question's form if it is shown again
    """
    standing, task = qualification_control.state(permit, language), permit.task
    context: dict[str, Any] = {
        "task": task,
        "paused": permit.stopped,
        "standing": standing,
        "steps": _steps(standing),
        "states": qualification_control.states(permit),
        "keys": test_keys(permit),
        "guidelines": item_view.render_guidelines(standing.guidelines.text if standing.guidelines else ""),
    }
    question = qualification_control.next_question(standing.trial) if standing.trial else None
    # Practice explains each answer. A test shows the result only at the end.
    if answered and answered.trial.kind == Trial.PRACTICE:
        # The annotator has just read this record, so do not veil it again.
        context |= {
            **_question_context(answered, permit),
            "explained": _answer_context(answered, permit.task),
            "veiled": False,
        }
    elif question:
        context |= {**_question_context(question, permit, posted), "trial": standing.trial}
    elif standing.step in (qualification_control.TEST, qualification_control.PASSED, qualification_control.FAILED):
        question_count = qualification_control.questions_of_a_test(task, standing.language)
        context |= {
            "test": {"questions": question_count, "needed": qualification_control.to_pass(task, question_count)}
        }
        context |= {"result": standing.last and _result(standing.last, permit)}
    template = "annotate/_qualification.html" if request.htmx else "annotate/qualification.html"
    return render(request, template, context)


def _steps(standing: qualification_control.Standing) -> list[tuple[str, bool]]:
    """Return the steps towards a qualification as (name, is_current) tuples; an empty list if no test is needed."""
    if standing.step == qualification_control.NONE_NEEDED:
        return []
    current_place = {qualification_control.READ: 0, qualification_control.PRACTICE: 1}.get(standing.step, 2)
    return [(name, index == current_place) for index, name in enumerate((_("Guidelines"), _("Practice"), _("Test")))]


def _question_context(question: TrialAnswer, permit: Permit, posted: QueryDict | None = None) -> dict[str, Any]:
    kind, item = permit.task.kind, question.gold_answer.item
    return {
        "question": question,
        "of": question.trial.answers.count(),
        **item_view.record(item, kind),
        **reply_sets(sides_of_question(question), item, kind),
        **kind.pages.ask(Unit(task=permit.task, item=item), permit),
        **concept_picker.question_panel(item, permit, posted),
    }


def _answer_context(question: TrialAnswer, task: Task) -> dict[str, Any]:
    """Return the template context with the annotator's answer, the correct answer and the explanation."""
    gold, kind = question.gold_answer, task.kind
    unit = Unit(task=task, item=gold.item)
    return {
        "right": kind.rules.agrees(question.label, gold.label),
        "answer": kind.in_words(qualification_control.seen_label(question, question.label), unit),
        "label": kind.in_words(qualification_control.seen_label(question, gold.label), unit),
        "parts": _compare_labels(question.label, gold.label, unit) if kind.form.several else [],
        "explanation": gold.explanation,
        "language": gold.item.language,
    }


def _compare_labels(answer: str, correct: str, unit: Unit) -> list[tuple[str, list[str]]]:
    """Compare an answer that has several labels with the correct answer.

    answer: the annotator's answer
    correct: the correct answer

    Return a (heading, names of labels) tuple for each group: the correct, missing and wrong labels. Empty groups are
    left out.
    """
    kind = unit.task.kind
    chosen_labels, right_labels = kind.form.facets(answer), kind.form.facets(correct)
    parts = {
        _("Chosen and correct"): [label for label in chosen_labels if label in right_labels],
        _("Missed"): [label for label in right_labels if label not in chosen_labels],
        _("Wrongly chosen"): [label for label in chosen_labels if label not in right_labels],
    }
    names_by_heading = {
        heading: sorted(kind.in_words(label, unit) for label in labels) for heading, labels in parts.items()
    }
    return [(heading, names) for heading, names in names_by_heading.items() if names]


def _result(trial: Trial, permit: Permit) -> dict[str, Any]:
    """Return the template context with a finished test's result and wrongly answered questions."""
    trial.task = permit.task
    return {
        "trial": trial,
        "questions": trial.answers.count(),
        "needed": qualification_control.needed(trial),
        "missed": [
            {
                **_answer_context(missed, permit.task),
                **item_view.record(missed.gold_answer.item, permit.task.kind),
                **reply_sets(sides_of_question(missed), missed.gold_answer.item, permit.task.kind),
            }
            for missed in qualification_control.missed(trial)
        ],
    }


# --- Consent to sensitive content

CHOICES = {"agree": interventions.agree, "decline": interventions.withdraw}


def consent(request: UserRequest, annotator: Annotator, task: Task) -> HttpResponse:
    """Show the warning about sensitive content, or store the annotator's choice.

    POST field:
    do: agree or decline; declining withdraws an earlier agreement
    """
    interventions.check_sensitive(task)
    permit = permit_of(annotator, task)
    if request.method == "POST":
        store_choice = CHOICES.get(request.POST.get("do", ""))
        if store_choice is None:
            raise InvalidAnswer(_("The form does not contain your choice. Reload the page."))
        store_choice(annotator, task.name)
        # Adjudicators who don't annotate have no queue.
        to_queue = store_choice is interventions.agree and permit.reads
        return redirect("queue", task=task.name) if to_queue else redirect("home")
    sensitive = task.kind.sensitive
    assert sensitive  # checked above
    language, warning = sensitive.warning(permit.levels)
    context = {
        "task": task,
        "language": language,
        "warning": warning,
        "a_day": sensitive.a_day,
        "agreed_at": interventions.consented_at(annotator, task),
    }
    return render(request, "annotate/consent.html", context)
