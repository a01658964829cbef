"""Pages for setting up a new task with a forecast of its work, and the page that previews a kind."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from annotate.actions.action import ActionError
from annotate.actions.open_task import ASKED_HERE, chosen_panel, kind_named, labels_entered, unsupported_options
from annotate.actions.registry import by_name
from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.figures import panel_report, plan_report, progress_report
from annotate.figures.draw_plan import stream_of, sufficient_share, widths
from annotate.figures.finish_forecast import forecast_before
from annotate.figures.interval_width import Expected
from annotate.figures.panel_forecast import Work, forecast_of
from annotate.kinds import KINDS, Kind
from annotate.kinds.designs import DESIGNS, DRAW_OPTIONS, STREAM
from annotate.kinds.files import KindError
from annotate.kinds.interface_language import label_name
from annotate.kinds.kind_summary import summary_of
from annotate.kinds.options import OPTIONS
from annotate.kinds.panel_kind import with_panel
from annotate.manager_pages import action_forms, inbox, setup_steps
from annotate.manager_pages.corpus_setup import records_address
from annotate.manager_pages.dashboard import manage_page
from annotate.models import Task
from annotate.pages.access import UserRequest
from annotate.pages.kind_preview import preview, usual_language
from annotate.reports.tables import many
from annotate.work.task_creation import TaskError, choose_panel, provisional_task
from corpora.core import CorpusError
from corpora.sources.recognition import unused_name
from corpora.storage.inventory import POSTS, RECORDS, corpus_rows
from corpora.storage.layout import manifest_of

# Design -> what it is for.
PURPOSES: Mapping[str, str] = {
    "uniform": (
        "A uniform sample, in which each post has the same probability. It measures accuracy, recall and precision "
        "together."
    ),
    "recall": "Posts by authors of the languages that you choose, to measure recall for rare languages.",
    "precision": (
        "Posts that a predictor labels as one of the languages that you choose, to measure precision for rare "
        "languages."
    ),
    "triggers": (
        "Further posts for a uniform task: unread posts that a predictor labels as one of the languages that you "
        "choose. They narrow that task's intervals."
    ),
    "records": "A sample of the records in each language, or all records.",
    "compare": "Mostly posts on which two predictors differ, to find the better predictor with few answers.",
    "balanced": "Train, dev and test sets with equal numbers of documents of each class in each language.",
    "systems": "Suggestions of two or more systems for the same messages, compared in pairs.",
    "filtered": "A mix of pairs that a filter kept and pairs that the filter dropped, to measure the filter.",
}


SPECIAL = ("recall", "precision", "triggers", "compare")  # collapsed on the page, because few tasks need them
USUAL_SIZE = 300  # number of items in a new task if its design has no default size
TOTAL_SIZES = ("uniform", "compare")  # designs whose size is a total over all languages
# Design -> label, for designs whose name is jargon.
DESIGN_LABELS = {"triggers": "further posts"}
UNCHOSEN = "a language that you choose"  # placeholder in the title of a question about languages

NOT_FOR = re.compile("^not for [^:]*: ")  # start of a help text that names kinds
LABELS_HELP = "the languages that annotators can choose, as codes such as de en fr; by default all 70 languages"


def new_task(request: UserRequest) -> HttpResponse:
    """Let the manager choose a corpus and a question, set the task's options, and open the task as a job.

    ?job=: number of an earlier job whose options fill the form
    """
    earlier = action_forms.job_options(request.GET["job"], "open_task") if "job" in request.GET else {}
    values: Mapping[str, Any] = request.POST if request.method == "POST" else earlier or request.GET
    corpus = next((row for row in corpus_rows() if row["corpus"] == values.get("corpus")), None)
    if not corpus or not values.get("kind"):
        return _kinds_page(request, corpus, is_first="corpus" not in values)
    kind, design = _kind(values["kind"]), values.get("design", "")
    if design not in kind.designs:
        design = kind.designs[0]
    hidden_options = unsupported_options(kind, DESIGNS[design]) | {"kind", "design", "corpus"}
    context = {
        "corpus": corpus["corpus"],
        "kind": kind,
        "slug": values["kind"],
        "design": design,
        "design_label": DESIGN_LABELS.get(design, design),
        "why": PURPOSES[design],
        "steps": setup_steps.steps(setup_steps.QUESTION, corpus["corpus"]),
    }
    if request.method == "GET":
        entered = earlier or _initial_values(corpus, kind, design)
        return _form(request, entered, hidden_options, **context)
    options: dict[str, Any] = {}
    try:
        options = action_forms.submitted_options("open_task", inbox.with_uploads(request))
        options |= _raise_audit_share(kind, design, options)
        return action_forms.begin(request, "open_task", options)
    except ActionError as error:
        refusal = action_forms.reword_error(error, by_name()["open_task"].options)
        return _form(request, options or request.POST.dict(), hidden_options, refusal=refusal, **context)


def _kinds_page(request: UserRequest, corpus: Mapping[str, Any] | None, *, is_first: bool) -> HttpResponse:
    """Let the manager choose a corpus, and then a kind and a design that fit it.

    is_first: whether no corpus was requested; the corpus is then selected if it is the only one
    """
    choices = [row for row in corpus_rows() if not row["fault"] and row["holds"] in (POSTS, RECORDS)]
    if not corpus and is_first and len(choices) == 1:
        corpus = choices[0]
    ways, unfit = _kind_choices(corpus) if corpus else ([], [])
    steps = setup_steps.steps(setup_steps.QUESTION, corpus["corpus"]) if corpus else []
    offers: dict[str, Any] = {"choices": choices, "corpus": corpus, "ways": ways, "unfit": unfit, "steps": steps}
    offers["special"] = [(way, *design) for way in ways for design in way.get("special", ())]
    if corpus and corpus["holds"] == POSTS:
        offers["as_records"] = records_address(corpus["corpus"])
    return manage_page(request, "new_task_of", **offers)


def _form(
    request: UserRequest,
    values: Mapping[str, Any],
    hidden_options: set[str],
    *,
    kind: Kind,
    design: str,
    **context: Any,
) -> HttpResponse:
    size = {"size": DESIGNS[design].size or ("all" if DESIGNS[design].size is None else "")}
    defaults = {**{name: option.default for name, option in OPTIONS.items()}, **kind.defaults, **size}
    refusal = context.get("refusal")
    first, rest = action_forms.form("open_task", values, hidden_options, defaults | {"title": kind.title}, refusal)
    context["is_beside"] = action_forms.is_shown(refusal, first, rest)
    context["opens_advanced"] = any(field.fault for fields in rest.values() for field in fields)
    first = [_adapt_to_design(field, kind, design) for field in first]
    rest = {heading: [_adapt_to_design(field, kind, design) for field in fields] for heading, fields in rest.items()}
    return manage_page(request, "new_task", first=first, rest=rest, kind=kind, design=design, **context)


def _adapt_to_design(field: action_forms.Field, kind: Kind, design: str) -> action_forms.Field:
    """Return the field with a help text that fits the chosen kind and design."""
    if field.name == "size":
        covered = "in total" if design in TOTAL_SIZES else "for each language"
        return replace(field, required=DESIGNS[design].size == 0, help=f"how many items to draw, {covered}")
    if field.name == "labels" and kind.routing.is_routed:
        return replace(field, help=LABELS_HELP)
    option = DRAW_OPTIONS.get(field.name) or OPTIONS.get(field.name)
    # The form has only options that fit the kind, so the help text needn't name the kinds that lack an option.
    return replace(field, help=NOT_FOR.sub("", option.help.replace("`", ""))) if option else field


def _initial_values(corpus: Mapping[str, Any], kind: Kind, design: str) -> dict[str, str]:
    """Return the form's initial values: an unused task name, a seed, and a size if the design has no default.

    The seed is today's date, which shows that it was not chosen to influence the results.
    """
    stem = f"{corpus['corpus']}-{design if kind.designs.index(design) else kind.slug}"
    name = unused_name(stem, Task.objects.filter(name__startswith=stem).values_list("name", flat=True))
    size = {} if DESIGNS[design].size != 0 else {"size": str(min(USUAL_SIZE, corpus["rows"]))}
    return {"name": name, "seed": f"{timezone.localdate():%Y-%m-%d}"} | size


def _kind(name_or_file: str) -> Kind:
    """Load a kind.

    name_or_file: name of a built-in kind, or of a file in the inbox that defines a kind

    Raise NotFound if the file does not exist, and InvalidAnswer if it does not define a valid kind.
    """
    try:
        return kind_named(
            name_or_file if name_or_file in ASKED_HERE else str(inbox.find_file(Path(name_or_file).name)), None
        )
    except (ActionError, KindError) as error:
        raise InvalidAnswer(str(error)) from error


def _kind_choices(corpus: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """Return the kinds that fit a corpus with their designs, and (title, requirement) tuples for the other kinds.

    Kinds in the inbox are included; for an invalid file, the entry contains the error. Kinds with fields come first.
    """
    inbox_kinds = action_forms.inbox_choices(".toml")
    choices: list[dict[str, Any]] = []
    unfit: list[tuple[str, str]] = []
    for source, name in [*((slug, slug) for slug in ASKED_HERE), *inbox_kinds]:
        try:
            kind = KINDS[source] if source in KINDS else _kind(source)
        except InvalidAnswer as fault:
            choices.append({"name": name, "fault": str(fault), "designs": []})
            continue
        title = kind.title_about([UNCHOSEN])
        if needed := _missing_content(kind, corpus):
            unfit.append((title, needed))
        else:
            designs = [(design, DESIGN_LABELS.get(design, design), PURPOSES[design]) for design in kind.designs]
            way = {"name": name, "source": source, "kind": kind, "title": title}
            usual = [design for design in designs if design[0] not in SPECIAL]
            choices.append(way | {"designs": usual, "special": [design for design in designs if design not in usual]})
    return sorted(choices, key=lambda choice: "kind" in choice and not choice["kind"].fields), unfit


def _missing_content(kind: Kind, corpus: Mapping[str, Any]) -> str:
    """Return what a corpus lacks for a kind; "" if the kind fits the corpus."""
    if not kind.fields:
        return "posts" if corpus["holds"] == RECORDS else ""
    if corpus["holds"] == POSTS:
        return "records"
    missing = [field for field in kind.fields if field not in corpus["fields"]]
    return f"the field{'s'[: len(missing) > 1]} {', '.join(missing)}" if missing else ""


def _plan_task(kind: Kind, entered: Mapping[str, Any]) -> tuple[dict[str, Any], Task]:
    """Return the form's parsed values, and an unsaved task with these options.

    entered: input of the action that opens a task
    """
    # The action requires a name, but the forecast doesn't depend on it.
    values = by_name()["open_task"].read({"name": "unnamed", **entered})
    options = {name: values[name] for name in OPTIONS if values.get(name) is not None}
    corpus = values["corpus"] or ""
    panel = chosen_panel(corpus, kind, values)
    task = provisional_task(with_panel(kind) if panel else kind, labels_entered(kind, values["labels"]), options)
    if panel:
        choose_panel(task, corpus, panel)
    return values, task


def _raise_audit_share(kind: Kind, design: str, entered: Mapping[str, Any]) -> dict[str, str]:
    """Return a larger audit share if the default would audit too few posts to measure the detectors.

    The result is empty if a share was entered or the default is enough. The job shows the larger share.

    entered: input of the action that opens a task, including the corpus
    """
    if "audit_share" in entered or not _has_forecast(kind, design):
        return {}
    try:
        values, task = _plan_task(kind, entered)
        if not values["size"] or not task.audit_share:
            return {}
        stream = stream_of(values["corpus"] or "", task)
    except (ActionError, CorpusError, TaskError):
        return {}  # the action reports the error
    share = sufficient_share(task, stream, min(values["size"], stream.posts))
    return {"audit_share": f"{share:g}"} if share > task.audit_share else {}


def _has_forecast(kind: Kind, design: str) -> bool:
    return design in DESIGNS and DESIGNS[design].population == STREAM and kind.audits_agreement


def forecast(request: UserRequest) -> HttpResponse:
    """Show how many items of each language would be drawn, and when the task would be finished.

    The page requests this forecast after each change in the form.
    """
    kind, design = _kind(request.GET.get("kind", "")), request.GET.get("design", "")
    if not _has_forecast(kind, design):
        has_voters = design in DESIGNS and DESIGNS[design].takes_panel and request.GET.get("voters")
        return render(request, "annotate/manage/_foreseen.html", {"elsewhere": True, "has_voters": has_voters})
    try:
        entered = action_forms.submitted_options("open_task", request.GET)
        audit_share = _raise_audit_share(kind, design, entered)
        values, task = _plan_task(kind, entered | audit_share)
        if not (size := values["size"] or 0):
            return render(request, "annotate/manage/_foreseen.html", {"wants": "size"})
        stream = stream_of(request.GET.get("corpus", ""), task)
        outlook = forecast_before(task, stream, min(size, stream.posts), seed=values["seed"] or "")
    except (ActionError, CorpusError, TaskError) as error:
        refusal = action_forms.reword_error(error, by_name()["open_task"].options)
        return render(request, "annotate/manage/_foreseen.html", {"refusal": refusal})
    interval_widths = widths(task, stream, min(size, stream.posts), Expected(), task.kind.seconds)
    unread = [row for row in outlook["drawn"] if round(row["people"]) and not row["readers"] and outlook["people"]]
    adjudication = outlook["adjudication"]
    needs_adjudicator = outlook["people"] and not adjudication["adjudicators"]
    all_drawn = f"The corpus contains only {many(stream.posts, 'item')}, fewer than {size:,}, so all are drawn."
    context = {
        "headline": progress_report.draw_headline(outlook),
        "raised_audit": f"{float(audit_share['audit_share']):.0%}" if audit_share else "",
        "audit_warning": progress_report.audit_warning(outlook),
        # If there are no annotators yet, the headline already suggests inviting people.
        "unadjudicated": round(adjudication["chosen"]) if needs_adjudicator else 0,
        "drawn": progress_report.drawn_table(outlook),
        "dates": progress_report.forecast_table(outlook),
        "all_drawn": all_drawn if size > stream.posts else "",
        "words": progress_report.forecast_words(outlook),
        "widths": plan_report.language_table(interval_widths),
        "width_words": plan_report.width_words(interval_widths),
        "curve": plan_report.curve_table(interval_widths),
        "next": plan_report.next_table(interval_widths),
        "next_words": plan_report.next_words(interval_widths),
        "curve_plot": plan_report.curve_plot(interval_widths),
        "unread": sum(round(row["people"]) for row in unread),
        "unread_in": [label_name(row["language"]) for row in unread],
    }
    return render(request, "annotate/manage/_foreseen.html", context)


def agreement(request: UserRequest) -> HttpResponse:
    """Show how often the chosen voters agree and err, and which items would go to annotators.

    Labels that came with records are compared with the voters' labels. The page requests this report when the manager
    opens it.
    """
    kind, design = _kind(request.GET.get("kind", "")), request.GET.get("design", "")
    try:
        entered = action_forms.submitted_options("open_task", request.GET)
        values, task = _plan_task(kind, entered | _raise_audit_share(kind, design, entered))
        corpus, seconds = values["corpus"] or "", task.kind.seconds * task.redundancy
        work = Work(values["size"], task.audit_share, task.audit_least, seconds)
        truth: dict[str, str] | None = None if manifest_of(corpus).declared else {}
        result = forecast_of(corpus, task.panel, task, truth, work)
    except (ActionError, CorpusError, TaskError) as error:
        refusal = action_forms.reword_error(error, by_name()["open_task"].options)
        return render(request, "annotate/manage/_voters.html", {"refusal": refusal})
    tables = [
        panel_report.panels_table([result]),
        panel_report.labels_table(result, panel_report.ROWS),
        panel_report.pairs_table(result),
        panel_report.voters_table(result),
        panel_report.queues_table(result, panel_report.ROWS),
    ]
    return render(request, "annotate/manage/_voters.html", {"words": panel_report.sentences(result), "tables": tables})


def kind(request: UserRequest) -> HttpResponse:
    """Show a kind as annotators will see it.

    ?kind=: name of a built-in kind, or of a file in the inbox
    ?language=: language of the sample record
    ?corpus=: name of the corpus that the sample item is taken from
    ?in-words: present to describe the kind as text instead
    """
    name = request.GET.get("kind", "")
    if not name:
        raise NotFound("Specify a kind of question, for example ?kind=qa_match.")
    chosen_kind = _kind(name)
    if "in-words" in request.GET:
        return HttpResponse(summary_of(chosen_kind), content_type="text/plain; charset=utf-8")
    language = request.GET.get("language") or usual_language(chosen_kind)
    return HttpResponse(preview(chosen_kind, language, request.GET.get("corpus", ""), standalone=False))
