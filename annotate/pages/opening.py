"""A new task in the browser: what is asked of which corpus, how it is drawn, and what work that gives; and how the page
of a kind of question looks.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods

from annotate.actions import working
from annotate.actions.action import ActionError
from annotate.actions.named import by_name
from annotate.actions.open_task import ASKED_HERE, kind_named, not_had
from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.figures import forecast_report, plan_report
from annotate.figures.draw_plan import stream_of, widths
from annotate.figures.finish_forecast import forecast_before
from annotate.figures.interval_width import Expected
from annotate.kinds import KINDS, Kind
from annotate.kinds.designs import DESIGNS
from annotate.kinds.files import KindError
from annotate.kinds.labels import label_name
from annotate.kinds.options import OPTIONS
from annotate.kinds.telling import tell
from annotate.models import Task
from annotate.pages import deeds, inbox
from annotate.pages.access import with_right
from annotate.pages.around import manage_page
from annotate.pages.preview import preview, usual_language
from annotate.reports.tables import many
from annotate.work.new_task import TaskError, imagined_task
from corpora.core import CorpusError
from corpora.storage.inventory import POSTS, RECORDS, corpora_there

# What each design is for, in a sentence.
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


@require_http_methods(["GET", "POST"])
@with_right("decide")
def new_task(request, _):
    """First the corpus and the question, by links; then the options that these have."""
    said = request.POST if request.method == "POST" else request.GET
    corpus = next((row for row in corpora_there() if row["corpus"] == said.get("corpus")), None)
    if not corpus or not said.get("kind"):
        return manage_page(
            request, "new_task_of", corpora=corpora_there(), corpus=corpus, ways=_ways(corpus) if corpus else []
        )
    kind, design = _kind(said["kind"]), said.get("design", "")
    if design not in kind.designs:
        design = kind.designs[0]
    lacking = not_had(kind, DESIGNS[design]) | {"extend", "kind", "design", "corpus"}
    context = {"corpus": corpus["corpus"], "kind": kind, "slug": said["kind"], "design": design, "why": FOR[design]}
    if request.method == "GET":
        return _form(request, _first_guess(corpus["corpus"], kind, design), lacking, **context)
    given: dict[str, Any] = {}
    try:
        inbox.check_size(request)
        given = deeds.given_by("open_task", inbox.with_uploads(request))
        return redirect("manage-job", working.ask("open_task", given, by=request.user).pk)
    except ActionError as error:
        refusal = deeds.in_words_of_page(str(error), by_name()["open_task"])
        return _form(request, given or request.POST.dict(), lacking, refusal=refusal, status=400, **context)


def _form(request, given: Mapping[str, Any], lacking: set[str], *, kind: Kind, design: str, **context):
    size = {"size": DESIGNS[design].size or ("all" if DESIGNS[design].sizeless else "")}
    defaults = {**{name: option.default for name, option in OPTIONS.items()}, **kind.defaults, **size}
    first, rest = deeds.form("open_task", given, lacking, defaults | {"title": kind.title})
    # What a design cannot do without has no place to be left empty.
    first = [replace(field, required=True) if field.name == "size" and not size["size"] else field for field in first]
    return manage_page(request, "new_task", first=first, rest=rest, kind=kind, design=design, **context)


def _first_guess(corpus: str, kind: Kind, design: str) -> dict[str, str]:
    """A name that no task has, and a seed that nobody has chosen to suit them: today's date."""
    stem = f"{corpus}-{design if kind.designs.index(design) else kind.slug}"
    taken = set(Task.objects.filter(name__startswith=stem).values_list("name", flat=True))
    names = [stem, *(f"{stem}-{number}" for number in range(2, len(taken) + 2))]
    return {"name": next(name for name in names if name not in taken), "seed": f"{timezone.localdate():%Y-%m-%d}"}


def _kind(given: str) -> Kind:
    """One of the kinds that people are asked by, or the file of one in the inbox."""
    try:
        return kind_named(given if given in ASKED_HERE else str(inbox.named(Path(given).name)), None)
    except (ActionError, KindError) as error:
        raise InvalidAnswer(str(error)) from error


def _ways(corpus: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What can be asked of the rows of a corpus: each kind with its designs, and what each is for; of files in the
    inbox too.
    """
    own = [(str(path), path.name) for path in inbox.files() if path.suffix == ".toml"]
    found = []
    for given, name in [*((slug, slug) for slug in ASKED_HERE), *own]:
        try:
            kind = KINDS[given] if given in KINDS else _kind(given)
        except InvalidAnswer as fault:
            found.append({"name": name, "fault": str(fault), "designs": []})
            continue
        if _fits(kind, corpus):
            designs = [(design, FOR[design]) for design in kind.designs]
            found.append({"name": name, "given": given, "kind": kind, "designs": designs})
    return found


def _fits(kind: Kind, corpus: Mapping[str, Any]) -> bool:
    if corpus["holds"] == POSTS:
        return not kind.fields
    return corpus["holds"] == RECORDS and set(kind.fields) <= set(corpus["fields"])


@require_GET
@with_right("manage")
def forecast(request, _):
    """What the draw that a form describes gives, by language, and when it would be done: a part of the page, which asks
    for it again where something is changed.
    """
    kind, design = _kind(request.GET.get("kind", "")), request.GET.get("design", "")
    if not (design in DESIGNS and DESIGNS[design].of_stream and "audit" in kind.controls):
        return render(request, "annotate/manage/_foreseen.html", {"elsewhere": True})
    try:
        # What it will be called changes nothing.
        values = by_name()["open_task"].read({"name": "unnamed", **deeds.given_by("open_task", request.GET)})
        size = values["size"] or 0
        options = {name: values[name] for name in OPTIONS if values[name] is not None}
        task = imagined_task(kind, values["labels"], options)
        if not size:
            return render(request, "annotate/manage/_foreseen.html", {"wants": "size"})
        stream = stream_of(request.GET.get("corpus", ""), task)
        told = forecast_before(task, stream, min(size, stream.posts), seed=values["seed"] or "")
    except (ActionError, CorpusError, TaskError) as error:
        refusal = deeds.in_words_of_page(str(error), by_name()["open_task"])
        return render(request, "annotate/manage/_foreseen.html", {"refusal": refusal})
    wide = widths(task, stream, min(size, stream.posts), Expected(), task.kind.seconds)
    unread = [row for row in told["drawn"] if round(row["people"]) and not row["readers"]]
    context = {
        "drawn": forecast_report.drawn_table(told),
        "dates": forecast_report.forecast_table(told),
        "words": [*_all_of_it(size, stream.posts), *forecast_report.words(told)],
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


def _all_of_it(size: int, posts: int) -> list[str]:
    return [f"The corpus has {many(posts, 'post')}, fewer than {size:,}: all are drawn."] if size > posts else []


@require_GET
@with_right("manage")
def kind(request, _):
    """What people will see of a kind: its page with an invented record. ?kind= and, if wanted, ?language="""
    given = request.GET.get("kind", "")
    if not given:
        raise NotFound("Name a kind of question, as in ?kind=qa_match.")
    found = _kind(given)
    if "in-words" in request.GET:
        return HttpResponse(tell(found), content_type="text/plain; charset=utf-8")
    language = request.GET.get("language") or usual_language(found)
    return HttpResponse(preview(found, language, alone=False))
