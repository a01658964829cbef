"""Pages that set up a new task, with a forecast of its work, and the preview of a kind's page."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import mark_safe

from annotate.actions.action import ActionError
from annotate.actions.open_task import ASKED_HERE, kind_named, not_had
from annotate.actions.registry import by_name
from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.figures import plan_report, progress_report
from annotate.figures.draw_plan import stream_of, widths
from annotate.figures.finish_forecast import forecast_before
from annotate.figures.interval_width import Expected
from annotate.figures.personal_progress import Progress
from annotate.kinds import KINDS, Kind
from annotate.kinds.designs import DESIGNS
from annotate.kinds.files import KindError
from annotate.kinds.interface_language import label_name
from annotate.kinds.kind import DOCUMENT
from annotate.kinds.kind_summary import tell
from annotate.kinds.options import OPTIONS
from annotate.models import Lease, Task, Unit
from annotate.pages import action_forms, item_view
from annotate.pages.access import UserRequest
from annotate.pages.dashboard import manage_page
from annotate.quality.guideline_versions import in_language
from annotate.reports.tables import many
from annotate.work.permit import Permit
from annotate.work.routes import Routes
from annotate.work.task_creation import TaskError, imagined_task
from corpora.core import CorpusError
from corpora.core.languages import LANGUAGES
from corpora.models import Item
from corpora.storage.inventory import POSTS, RECORDS, corpora_there

# --- Preview of a kind's page: one HTML file with an invented record, rendered with the queue's templates

STYLES = Path(__file__).parents[1] / "static/annotate/assay.css"
POST = "This post was invented, to show where posts stand."
CLASSES = ("sports", "politics")  # invented labels for kinds whose labels come from the draw
READ = 4  # number of languages that the invented annotator reads, if the labels are languages


def preview(kind: Kind, language: str, *, alone: bool = True) -> str:
    """Return the preview of a kind's page as HTML.

    language: language of the invented record, or the language that the question asks about
    alone: whether to embed the styles, so that the HTML needs no server
    """
    permit = _permit(kind, language)
    unit = Unit(task=permit.task, item=_item(kind, language), asked=language if kind.labels_are_languages else "")
    text = in_language(language, kind.guidelines)
    context = {
        "task": permit.task,
        "noun": kind.noun,
        "progress": Progress(0, 0, 1),
        "guidelines": item_view.markdown(text or ""),
        "style": mark_safe(STYLES.read_text(encoding="utf-8")) if alone else "",  # noqa: S308 - our own file
        **_question(Lease(unit=unit), permit),
    }
    return render_to_string("annotate/preview.html", context)


def _question(lease: Lease, permit: Permit) -> dict[str, Any]:
    """Return the template context of the question.

    If the answers are concepts, a placeholder replaces the concept picker, because vocabularies are in the database
    and the preview does not use it.
    """
    kind, item = permit.task.kind, lease.unit.item
    two = next(filter(None, (control.invented_sides(kind) for control in kind.quality_controls)), None)
    if not (kind.form.preview or two):
        return item_view.question(lease, permit)
    shown = {**item_view.record(item, kind), **item_view.sets(two, item, kind), **kind.pages.ask(lease.unit, permit)}
    return {"lease": lease, "question": kind.form.preview or kind.pages.question, **shown}


def usual_language(kind: Kind) -> str:
    """Return the default language of a preview: the kind's first language, or English, or else its first label."""
    return next((code for code in [*kind.languages, "en", *kind.labels] if code in languages_of(kind)), "en")


def languages_of(kind: Kind) -> Sequence[str]:
    """Return the languages that a preview can show: the kind's own, then its labels if those are languages, otherwise
    all languages.
    """
    return [*kind.languages, *(kind.labels if kind.labels_are_languages else LANGUAGES)]


def _permit(kind: Kind, language: str) -> Permit:
    """Return the permit of an invented annotator for an unsaved task.

    The annotator reads `language` and, if the labels are languages, a few others too.
    """
    reads = list(dict.fromkeys([language, *kind.languages, *kind.labels]))[:READ]
    labels = [*(CLASSES if kind.answers_from_draw else ()), *kind.labels]
    task = Task(name=kind.slug, title=kind.title, kind_slug=kind.slug, kind_file=kind.source, labels=labels)
    if not kind.labels_are_languages:
        task.languages, reads = [language], [language]
    return Permit(
        annotator=None,  # type: ignore[arg-type] # nothing in a preview asks for the annotator
        task=task,
        routes=Routes({}, task),
        levels=dict.fromkeys(reads, 5),
        reads=reads,
        is_paused=False,
        majors={},
        passed=frozenset(),
    )


def _item(kind: Kind, language: str) -> Item:
    fields = {name: _invented(name, kind.noun, block.style) for block in kind.layout for name in block.fields}
    return Item(key="1", language=language if fields else "", fields=fields, text="\n".join(fields.values()) or POST)


def _invented(name: str, noun: str, style: str) -> str:
    """Return an invented sentence for a field. For a field shown as a document, return a text too long for a window."""
    sentence = f"The {name.replace('_', ' ')} of an invented {noun}."
    return "\n".join([" ".join([sentence] * 8)] * 10) if style == DOCUMENT else sentence


# Design -> its purpose.
FOR: Mapping[str, str] = {
    "uniform": "A uniform sample: each post has the same chance. It measures accuracy, recall and precision together.",
    "recall": "What authors of a language write: for the recall in rare languages.",
    "precision": "What a predictor takes for a language: for its precision in rare languages.",
    "triggers": "What a predictor says of posts that nobody has read in a uniform task: makes its figures narrower.",
    "records": "A sample of records in each language, or all of them.",
    "compare": "Mostly those on which two predictors differ: which of the two is better, for the least work.",
    "balanced": "Train, dev and test sets with as many documents of each class in each language.",
    "systems": "What two systems or more suggest for the same messages, each two side by side.",
    "filtered": "Pairs that a filter kept, and others that it dropped, mixed: how good the filter is.",
}


def new_task(request: UserRequest) -> HttpResponse:
    """Let the manager choose a corpus and a question and set the task's options, then open the task as a job."""
    values = request.POST if request.method == "POST" else request.GET
    corpus = next((row for row in corpora_there() if row["corpus"] == values.get("corpus")), None)
    if not corpus or not values.get("kind"):
        return manage_page(
            request, "new_task_of", corpora=corpora_there(), corpus=corpus, ways=_ways(corpus) if corpus else []
        )
    kind, design = _kind(values["kind"]), values.get("design", "")
    if design not in kind.designs:
        design = kind.designs[0]
    lacking = not_had(kind, DESIGNS[design]) | {"kind", "design", "corpus"}
    context = {"corpus": corpus["corpus"], "kind": kind, "slug": values["kind"], "design": design, "why": FOR[design]}
    if request.method == "GET":
        return _form(request, _first_guess(corpus["corpus"], kind, design), lacking, **context)
    options: dict[str, Any] = {}
    try:
        options = action_forms.given_by("open_task", action_forms.with_uploads(request))
        return action_forms.begin(request, "open_task", options)
    except ActionError as error:
        refusal = action_forms.reworded(error, by_name()["open_task"].options)
        return _form(request, options or request.POST.dict(), lacking, refusal=refusal, **context)


def _form(
    request: UserRequest, values: Mapping[str, Any], lacking: set[str], *, kind: Kind, design: str, **context: Any
) -> HttpResponse:
    size = {"size": DESIGNS[design].size or ("all" if DESIGNS[design].size is None else "")}
    defaults = {**{name: option.default for name, option in OPTIONS.items()}, **kind.defaults, **size}
    first, rest = action_forms.form("open_task", values, lacking, defaults | {"title": kind.title})
    # If the design has no default size, the manager must enter one.
    first = [replace(field, required=True) if field.name == "size" and not size["size"] else field for field in first]
    return manage_page(request, "new_task", first=first, rest=rest, kind=kind, design=design, **context)


def _first_guess(corpus: str, kind: Kind, design: str) -> dict[str, str]:
    """Return the initial values of the form: an unused task name, and a seed.

    The seed is today's date, which shows that nobody chose it for its results.
    """
    stem = f"{corpus}-{design if kind.designs.index(design) else kind.slug}"
    taken = set(Task.objects.filter(name__startswith=stem).values_list("name", flat=True))
    names = [stem, *(f"{stem}-{number}" for number in range(2, len(taken) + 2))]
    return {"name": next(name for name in names if name not in taken), "seed": f"{timezone.localdate():%Y-%m-%d}"}


def _kind(given: str) -> Kind:
    """Return the kind with this name.

    Raise NotFound if there is no such file, and InvalidAnswer if the file does not define a valid kind.

    given: name of a built-in kind, or of a file in the inbox that defines a kind
    """
    try:
        return kind_named(given if given in ASKED_HERE else str(action_forms.named(Path(given).name)), None)
    except (ActionError, KindError) as error:
        raise InvalidAnswer(str(error)) from error


def _ways(corpus: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the kinds that fit a corpus, with their designs.

    They include kinds that files in the inbox define. If such a file is invalid, its entry has the fault instead.
    """
    inbox_kinds = action_forms.in_inbox(".toml")
    ways: list[dict[str, Any]] = []
    for source, name in [*((slug, slug) for slug in ASKED_HERE), *inbox_kinds]:
        try:
            kind = KINDS[source] if source in KINDS else _kind(source)
        except InvalidAnswer as fault:
            ways.append({"name": name, "fault": str(fault), "designs": []})
            continue
        if _fits(kind, corpus):
            designs = [(design, FOR[design]) for design in kind.designs]
            ways.append({"name": name, "given": source, "kind": kind, "designs": designs})
    return ways


def _fits(kind: Kind, corpus: Mapping[str, Any]) -> bool:
    if corpus["holds"] == POSTS:
        return not kind.fields
    return corpus["holds"] == RECORDS and set(kind.fields) <= set(corpus["fields"])


def forecast(request: UserRequest) -> HttpResponse:
    """Show how many items of each language the options in the form would draw, and when the task would be finished.

    The page requests this after each change of the form.
    """
    kind, design = _kind(request.GET.get("kind", "")), request.GET.get("design", "")
    if not (design in DESIGNS and DESIGNS[design].of_stream and kind.audits_agreement):
        return render(request, "annotate/manage/_foreseen.html", {"elsewhere": True})
    try:
        # The action requires a name, but the name has no effect on the forecast.
        values = by_name()["open_task"].read({"name": "unnamed", **action_forms.given_by("open_task", request.GET)})
        size = values["size"] or 0
        options = {name: values[name] for name in OPTIONS if values.get(name) is not None}
        task = imagined_task(kind, values["labels"], options)
        if not size:
            return render(request, "annotate/manage/_foreseen.html", {"wants": "size"})
        stream = stream_of(request.GET.get("corpus", ""), task)
        outlook = forecast_before(task, stream, min(size, stream.posts), seed=values["seed"] or "")
    except (ActionError, CorpusError, TaskError) as error:
        refusal = action_forms.reworded(error, by_name()["open_task"].options)
        return render(request, "annotate/manage/_foreseen.html", {"refusal": refusal})
    wide = widths(task, stream, min(size, stream.posts), Expected(), task.kind.seconds)
    unread = [row for row in outlook["drawn"] if round(row["people"]) and not row["readers"]]
    all_drawn = f"The corpus has {many(stream.posts, 'post')}, fewer than {size:,}: all are drawn."
    whole = [all_drawn] if size > stream.posts else []
    context = {
        "drawn": progress_report.drawn_table(outlook),
        "dates": progress_report.forecast_table(outlook),
        "words": [*whole, *progress_report.forecast_words(outlook)],
        "widths": plan_report.language_table(wide),
        "width_words": plan_report.width_words(wide),
        "curve": plan_report.curve_table(wide),
        "next": plan_report.next_table(wide),
        "next_words": plan_report.next_words(wide),
        "curve_plot": plan_report.curve_plot(wide),
        "unread": sum(round(row["people"]) for row in unread),
        "unread_in": [label_name(row["language"]) for row in unread],
    }
    return render(request, "annotate/manage/_foreseen.html", context)


def kind(request: UserRequest) -> HttpResponse:
    """Show how annotators will see a kind.

    ?kind=: name of a built-in kind, or of a file in the inbox
    ?language=: language of the invented record
    ?in-words: present to describe the kind as text instead
    """
    name = request.GET.get("kind", "")
    if not name:
        raise NotFound("Name a kind of question, as in ?kind=qa_match.")
    chosen = _kind(name)
    if "in-words" in request.GET:
        return HttpResponse(tell(chosen), content_type="text/plain; charset=utf-8")
    language = request.GET.get("language") or usual_language(chosen)
    return HttpResponse(preview(chosen, language, alone=False))
