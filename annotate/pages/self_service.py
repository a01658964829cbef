"""Pages where users see and change their own answers, preferences and languages."""

from datetime import date
from itertools import groupby
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, available_timezones

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import get_language_from_request, get_language_info, gettext_lazy, override
from django.utils.translation import gettext as _

from annotate.controls.pair_order import Chosen, sets_answered
from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.figures import personal_progress
from annotate.kinds.interface_language import label_name
from annotate.models import Annotator, Change, Judgment, Lease, Preferences, Task, Unit
from annotate.pages import concept_picker, item_view
from annotate.pages.access import UserRequest, status_of, text_of, whole_number
from annotate.pages.keyboard_shortcuts import test_keys
from annotate.pages.middleware import KEPT
from annotate.pages.start_page import may_do
from annotate.work import accounts, answer_changes
from annotate.work.backlog import progress_of
from annotate.work.judgments import is_undoable, posted_answer
from annotate.work.moves import labels_as_seen
from annotate.work.permit import Permit, permits
from corpora.core.languages import LANGUAGES, UND

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[Preferences]
else:
    _ModelForm = forms.ModelForm

PAGE = 50
LONGEST = 100  # maximum length of a search, in characters
FEW = 12  # tasks with more possible answers do not offer filters by answer


def history(request: UserRequest, annotator: Annotator) -> HttpResponse:
    """Show the annotator's answers in all tasks, or in a single task.

    ?task=: name of the task
    """
    used = personal_progress.last_used(annotator)
    tasks = sorted(Task.objects.filter(pk__in=used), key=lambda task: -used[task.pk])
    task_filter = next((task for task in tasks if task.name == request.GET.get("task")), None)
    return _render_answers(request, annotator, task_filter, {"tasks": tasks, "chosen": task_filter})


def answers(request: UserRequest, permit: Permit) -> HttpResponse:
    """Show the annotator's answers in one task."""
    task = permit.task
    may = may_do(permit, progress_of(permit))
    return _render_answers(
        request, permit.annotator, task, {"task": task, "has_sheets": bool(task.kind.pages.sheet), **may}
    )


def _render_answers(
    request: UserRequest, annotator: Annotator, task: Task | None, context: dict[str, Any]
) -> HttpResponse:
    query: dict[str, Any] = {
        "answer": text_of(request.GET, "said"),
        "words": text_of(request.GET, "q")[:LONGEST],
        "commented": "commented" in request.GET,
    }
    offered = _answer_filters(task)
    if query["answer"] not in offered:
        query["answer"] = ""
    judgments = personal_progress.answers_by(
        annotator, task=task, answer=query["answer"], words=query["words"], commented=query["commented"]
    )
    if only_overruled := "differs" in request.GET:
        judgments = personal_progress.overruled(annotator, judgments)
    page = Paginator(judgments, PAGE).get_page(request.GET.get("page"))
    context |= {
        "page": page,
        "days": _by_day(_rows(annotator, list(page))),
        "query": query,
        "offered": offered.items(),
        "differing": only_overruled,
        "is_filtered": only_overruled or any(query.values()),
        "searched": personal_progress.SEARCHED,
    }
    return render(request, "annotate/history.html", context)


def _answer_filters(task: Task | None) -> dict[str, str]:
    """Return the filters for the list of answers, as a mapping from answer to displayed text.

    Tasks that compare systems have no filters by answer, because the stored answers contain the systems' names, which
    annotators must not learn.
    """
    filter_labels = task.kind.form.filters(task.labels) if task else ()
    labels = {label: task.kind.name(label) for label in filter_labels} if task and len(filter_labels) <= FEW else {}
    return {"answered": _("answered"), "skipped": _("skipped"), **labels}


def _rows(annotator: Annotator, judgments: list[Judgment]) -> list[dict[str, Any]]:
    """Return a row for each judgment, in the same order.

    The number of database queries grows with the number of tasks, not with the number of judgments.
    """
    allowed = {permit.task.pk: permit for permit in permits(annotator, {judgment.unit.task for judgment in judgments})}
    changes = answer_changes.latest_changes(judgments)
    numbers = answer_changes.answer_numbers(annotator, changes)
    decisions = personal_progress.decided(judgments, changes)
    rows = {}
    for pk, permit in allowed.items():
        task_judgments = [judgment for judgment in judgments if judgment.unit.task_id == pk]
        for judgment in task_judgments:
            judgment.unit.task = permit.task
        descriptions = item_view.summaries(task_judgments, annotator, permit.task.kind, may_read=not permit.is_outsider)
        sets = sets_answered(task_judgments, annotator, permit.task.kind)
        for judgment, description, answer_sets in zip(task_judgments, descriptions, sets, strict=True):
            change, decision = changes.get(judgment.unit_id), decisions.get(judgment.unit_id)
            rows[judgment.pk] = _row(judgment, description, answer_sets, permit, change, decision)
            rows[judgment.pk]["number"] = numbers.get(judgment.unit_id, judgment.pk)
    return [rows[judgment.pk] for judgment in judgments]


def _row(
    judgment: Judgment,
    description: str,
    sets: list[Chosen],
    permit: Permit,
    change: Change | None,
    decision: Judgment | None,
) -> dict[str, Any]:
    task, unit = permit.task, judgment.unit
    may_act = task.is_open and not permit.to_revise().stopped
    may_undo = is_undoable(judgment)
    may_change = may_act and not may_undo and judgment.kind == Judgment.ANSWER
    return {
        "judgment": judgment,
        "task": task,
        "text": unit.one_line_text,
        "answer": _answer_name(permit, unit, change.label) if change else description,
        "changed": change,
        "reason": item_view.reason(change or judgment, task.kind),
        "comment": (change or judgment).comment,
        "question_language": label_name(unit.asked),
        "sets": sets,
        "may_read": permit.has_agreed,
        "is_outsider": permit.is_outsider,
        "may_take_back": may_act and may_undo and not change,
        "may_change": may_change or (may_act and bool(change)),
        "decided": _answer_name(permit, unit, decision.label) if decision else "",
        "why": decision.reason if decision else "",
    }


def _answer_name(permit: Permit, unit: Unit, label: str) -> str:
    [as_seen] = labels_as_seen(permit.annotator, [(unit, label)])
    kind = permit.task.kind
    return kind.name(as_seen, unit.item.language) if permit.is_outsider else kind.in_words(as_seen, unit)


def _by_day(rows: list[dict[str, Any]]) -> list[tuple[date, list[dict[str, Any]]]]:
    """Group rows by day in the user's time zone. Return (day, rows) tuples."""
    return [
        (day, list(of_day))
        for day, of_day in groupby(rows, lambda row: timezone.localdate(row["judgment"].answered_at))
    ]


def change(request: UserRequest, permit: Permit, judgment: int) -> HttpResponse:
    """Show the form that changes an answer, or change it.

    POST fields: `answer`, `reason`, `comment` and `do`, as in `annotators.judge`
    """
    own_answer, refusal = _own_answer(permit, judgment), None
    if "do" in request.POST:
        return _update_picker(request, permit, own_answer, judgment)
    if request.method == "POST":
        try:
            new_answer = posted_answer(permit.task.kind, request.POST)
            answer_changes.change(permit.annotator, permit.task, judgment, new_answer)
        except InvalidAnswer as error:
            refusal = error
        else:
            return redirect("answers", task=permit.task.name)
    return _change_page(request, permit, own_answer, refusal)


def _update_picker(request: UserRequest, permit: Permit, own_answer: Judgment, number: int) -> HttpResponse:
    """Run a command of the concept picker, such as a search, and show the picker again. Nothing is stored."""
    if permit.task.vocabulary_id is None:
        raise NotFound(_("You do not have this answer."))
    if request.htmx:
        latest_change = answer_changes.latest_changes([own_answer]).get(own_answer.unit_id)
        panel = concept_picker.change_panel(own_answer, number, latest_change, permit, request.POST)
        return render(request, "annotate/_chosen_and_found.html", panel)
    return _change_page(request, permit, own_answer)


def _own_answer(permit: Permit, number: int) -> Judgment:
    changeable = answer_changes.changeable(permit.annotator, permit.task).select_related("unit__item")
    own_answer = changeable.numbered(permit.annotator, number).first()
    if own_answer is None:
        raise NotFound(_("You do not have this answer."))
    own_answer.unit.task = permit.task
    return own_answer


def _change_page(
    request: UserRequest, permit: Permit, own_answer: Judgment, refusal: InvalidAnswer | None = None
) -> HttpResponse:
    if stopped := permit.to_revise().stopped:
        raise stopped
    question_context = item_view.question(Lease(pk=0, unit=own_answer.unit), permit)
    [row] = _rows(permit.annotator, [own_answer])
    posted = request.POST if request.method == "POST" else None
    context = {"task": permit.task, "row": row, "refusal": refusal, "keys": test_keys(permit), **question_context}
    context |= concept_picker.change_panel(own_answer, row["number"], row["changed"], permit, posted)
    context |= {
        "changing": reverse("change", args=[permit.task.name, row["number"]]),
        "comment": request.POST.get("comment", row["comment"]),
    }
    return render(request, "annotate/change.html", context, status=status_of(refusal))


# --- Preferences

TEXT_SIZES = [
    ("", gettext_lazy("same as the browser")),
    ("large", gettext_lazy("large")),
    ("larger", gettext_lazy("larger")),
]
THEMES = [("", gettext_lazy("same as the system")), ("light", gettext_lazy("light")), ("dark", gettext_lazy("dark"))]
KEYS = [
    ("", gettext_lazy("digits only")),
    ("left", gettext_lazy("also letters for the left hand: A S D E R T X V B")),
    ("right", gettext_lazy("also letters for the right hand: J K L U I O P N M")),
]
LEVELS = {
    5: gettext_lazy("5, native"),
    4: gettext_lazy("4, nearly everything"),
    3: gettext_lazy("3, most of it"),
    2: gettext_lazy("2, plain texts"),
    1: gettext_lazy("1, a little"),
}
# Regions of the IANA time zone database. Names outside these regions are outdated or fixed offsets.
REGIONS = ["Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific"]


def zones() -> list[str]:
    """Return the names of the time zones to choose from."""
    return sorted(name for name in available_timezones() if name.split("/")[0] in REGIONS)


def interface_languages() -> list[tuple[str, str]]:
    """Return the languages of the interface as (code, autonym) tuples."""
    return [(code, capfirst(get_language_info(code)["name_local"])) for code, _name in settings.LANGUAGES]


class PreferencesForm(_ModelForm):
    text_size = forms.ChoiceField(label=gettext_lazy("Text size"), choices=TEXT_SIZES, required=False)
    theme = forms.ChoiceField(label=gettext_lazy("Theme"), choices=THEMES, required=False)
    keys = forms.ChoiceField(label=gettext_lazy("Answer shortcuts"), choices=KEYS, required=False)
    language = forms.ChoiceField(
        label=gettext_lazy("Language of the pages"),
        choices=lambda: [("", _("same as the browser")), *interface_languages()],
        required=False,
        help_text=gettext_lazy("The texts to label and managers' pages are not translated."),
    )
    time_zone = forms.CharField(
        label=gettext_lazy("Time zone"),
        max_length=64,
        required=False,
        widget=forms.TextInput({"list": "zones", "autocomplete": "off", "placeholder": settings.TIME_ZONE}),
        help_text=gettext_lazy(
            "The time zone of times on pages. Days are counted in the time zone of this installation."
        ),
    )
    goal = forms.IntegerField(
        label=gettext_lazy("Daily goal, in answers"),
        min_value=1,
        max_value=Preferences.MOST_A_DAY,
        required=False,
        help_text=gettext_lazy("Only you can see your goal. Leave it empty to have none."),
    )

    class Meta:
        model = Preferences
        fields = ("text_size", "theme", "keys", "language", "time_zone", "goal")

    def clean_time_zone(self) -> str:
        name = self.cleaned_data["time_zone"]
        if name and name not in available_timezones():
            raise forms.ValidationError(_("This time zone does not exist. Choose a time zone such as Europe/Berlin."))
        return name and ZoneInfo(name).key


def preferences(request: UserRequest) -> HttpResponse:
    values = accounts.preferences_of(request.user)
    posted = None
    if request.method == "POST":
        if not request.POST.keys() & values.keys():
            raise InvalidAnswer(_("The form does not contain a choice. Reload the page."))
        posted = values | request.POST.dict()  # fields missing from the form keep their value
    form = PreferencesForm(posted, initial=values)
    if form.is_valid():
        values = accounts.set_preferences(request.user, form.cleaned_data)
        request.session[KEPT] = values
        with override(values["language"] or get_language_from_request(request)):
            messages.success(request, _("Your preferences are saved."))
        return redirect("preferences")
    return render(request, "annotate/preferences.html", {"form": form, "zones": zones()})


# --- Languages that annotators read or request


def languages(request: UserRequest, annotator: Annotator) -> HttpResponse:
    """Show the annotator's languages and language requests, or store a new request.

    POST fields:
    language: code of the language
    level: how well the annotator reads it, from 1 to 5
    words: a message to the manager
    """
    refusal = None
    if request.method == "POST":
        language, message = request.POST.get("language", ""), request.POST.get("words", "")
        try:
            accounts.request_language(annotator, language, whole_number(request.POST.get("level")), message)
        except InvalidAnswer as error:
            refusal = error
        else:
            messages.success(request, _("A manager will decide about your request. The decision will be shown here."))
            return redirect("languages")
    context = {
        "reads": [(label_name(row.language), LEVELS.get(row.level, row.level)) for row in annotator.languages.all()],
        "requests": [(label_name(row.language), row) for row in annotator.language_requests.order_by("-pk")[:20]],
        "choices": sorted((label_name(code), code) for code in LANGUAGES if code != UND),
        "levels": LEVELS.items(),
        "refusal": refusal,
        "posted": request.POST,
    }
    return render(request, "annotate/languages.html", context, status=status_of(refusal))
