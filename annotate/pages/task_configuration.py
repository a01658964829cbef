"""A task's settings: what may be changed of it while people work, what is fixed, and what can be done with it whole.

work/task_settings.py decides what may be changed. Routes of languages and versions of guidelines are here, too;
forms of jobs are in action_forms.py.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotate.actions import job_worker
from annotate.actions.action import ActionError
from annotate.actions.registry import by_name
from annotate.core.guidelines import fault
from annotate.core.option import Option, codes, whole_number, written
from annotate.core.refusals import InvalidAnswer, Refusal, WrongStage
from annotate.figures import overview_report, progress_report
from annotate.figures.figure_cache import figures, forget
from annotate.figures.queue_states import queues_by_use
from annotate.kinds.designs import DESIGNS
from annotate.kinds.language_labels import label_name
from annotate.models import Guidelines, LanguageRoute, Task
from annotate.pages import action_forms
from annotate.pages.access import may, status_of, with_right, with_task
from annotate.pages.action_forms import Field, label_of
from annotate.pages.dashboard import manage_page, note, shows_figures
from annotate.pages.item_view import markdown, rendered
from annotate.quality.guideline_versions import ENGLISH, current, new_version, newest_of, versions
from annotate.reports.tables import Table, many
from annotate.work import closure
from annotate.work import routes as language_routes
from annotate.work import task_settings as work
from annotate.work.routes import is_language, learn_languages

EXTENDED = ("size", "dry_run")  # options of open_task that are asked where a task is extended


@require_GET
@with_task("manage")
def settings(request, _, task):
    return _page(request, task, {})


@require_POST
@with_task("decide")
def change(request, _, task):
    """Fields: title, labels (codes with spaces between), and the options that may be changed; of each, with was- before
    its name, what the form showed of it. What was not touched is left as it is.
    """
    posted = request.POST
    names = [work.TITLE, *(option.name for option in work.changeable(task)), *_labels_if_open(task)]
    was = {name: posted[f"was-{name}"] for name in names if f"was-{name}" in posted}
    given: dict[str, Any] = {name: posted[name] for name in names if name in posted and posted[name] != was.get(name)}
    try:
        if work.LABELS in given:
            given[work.LABELS] = codes(given[work.LABELS])
        changed = work.change(task, given, was)
    except Refusal as refusal:
        told = action_forms.as_on_page(str(refusal), work.changeable(task))
        return _page(request, task, posted, refusal=told, status=status_of(refusal))
    if changed:
        named = ", ".join(name.replace("_", " ") for name in changed)
        note(request, task, f"Changed {named}.")
        messages.success(request, f"Changed: {named}.")
    else:
        messages.info(request, "Everything is as it was.")
    return redirect("manage-settings", task.name)


@require_POST
@with_task("decide")
def switch(request, _, task):
    """Close the task, or open it again. Fields: open, yes or no; leave_out, yes to leave out units without a label."""
    if (said := request.POST.get("open")) not in ("yes", "no"):
        raise InvalidAnswer("The form did not say whether the task is to be open. Reload the page.")
    opens = said == "yes"
    leaves_out = request.POST.get("leave_out") == "yes"
    done = closure.reopen(task) if opens else closure.close(task, leave_out=leaves_out)
    sentence = (overview_report.reopened if opens else overview_report.closed)(done)
    if done["changed"] or leaves_out:
        note(request, task, sentence)
    messages.success(request, sentence)
    return redirect("manage-settings", task.name)


@require_http_methods(["GET", "POST"])
@with_task("decide")
def extend(request, _, task):
    """Draw more, as a job. Fields: size, dry_run."""
    draw, refusal, status = task.draw, "", 200
    if request.method == "POST":
        if "size" not in request.POST:
            raise InvalidAnswer("The form did not say how many to draw. Reload the page.")
        said = {name: request.POST.get(name, "").strip() for name in EXTENDED}
        given = {"name": task.name, "size": said["size"], "extend": True, "dry_run": said["dry_run"] == "yes"}
        try:
            # A box without a tick says nothing, as at a shell.
            kept = {name: value for name, value in given.items() if value is not False}
            return redirect("manage-job", job_worker.ask("open_task", kept, by=request.user).pk)
        except ActionError as error:
            refusal, status = action_forms.in_words_of_page(str(error), by_name()["open_task"]), 400
    each = "in each language" if DESIGNS[draw.design].asks_each else "in all"
    return manage_page(request, "extend", task, draw=draw, each=each, refusal=refusal, status=status)


def _labels_if_open(task: Task) -> list[str]:
    return [work.LABELS] if work.may_relabel(task) else []


def _page(request, task: Task, said: Mapping[str, str], *, status: int = 200, **context):
    groups: dict[str, list[Field]] = {}
    options = {option.name: option for option in work.changeable(task)}
    for option in options.values():
        value = said.get(option.name, written(getattr(task, option.name)))
        groups.setdefault(option.group, []).append(_field(option, value))
    labels = said.get(work.LABELS, " ".join(task.labels))
    return manage_page(
        request,
        "settings",
        task,
        status=status,
        title=said.get(work.TITLE, task.title),
        labels=labels if work.may_relabel(task) else None,
        was=[(name, work.told(task, name)) for name in (work.TITLE, *_labels_if_open(task), *options)],
        groups=groups,
        fixed=[(label_of(option), _told(task.options[option.name]), option.help) for option in work.fixed(task)],
        draws=task.draws.select_related("corpus").order_by("language", "pk"),
        decides=may(request.user, "decide"),
        unfinished=closure.unfinished(task),
        deeds=_deeds_for(task),
        **context,
    )


def _field(option: Option, value: str) -> Field:
    """The option as a field of the form, with its bounds in its help."""
    choices = [(each, each, each == value) for each in option.choices]
    return Field(
        name=option.name,
        label=label_of(option),
        help=option.help if choices else f"{option.help} ({option.bounds})",
        kind="choice" if choices else "number" if option.read is whole_number else "line",
        value=value,
        choices=choices,
        required=True,
        is_file=False,
        otherwise="",
    )


def _told(value: Any) -> str:
    return written(value) or "none"


def _deeds_for(task: Task) -> list[tuple[str, str, str]]:
    """What can be done with the task as a whole: address, words, and what it does in a few words."""
    listed = [("export_gold", "Export the gold set", "as files that datasets.load_dataset reads")]
    if task.kind.answered_here and not DESIGNS[task.draw.design].not_extended:
        listed.append(("extend", "Extend", "draw more of the same corpus, by the same seed"))
    if any(control.look_at == "audit" for control in task.kind.quality_controls):
        listed.append(("audit", "Audit", "what audit, decoys and checks found; contest agreement, or audit more"))
    if not task.kind.routing.waits:
        listed.append(("reroute", "Reroute", "send on units of queues that have too few readers"))
    listed.append(("adjudicate", "Decisions from a file", "take in what was decided elsewhere"))
    listed.append(("delete", "Delete", "the task, while nobody has answered"))
    return [(_address(name, task), words, does) for name, words, does in listed]


def _address(name: str, task: Task) -> str:
    return (
        reverse("manage-extend", args=[task.name]) if name == "extend" else action_forms.address(name, task=task.name)
    )


# --- Routes of languages: the queue for each, what waits there and who reads it


@require_GET
@with_right("manage")
@shows_figures
def routes(request, _):
    learn_languages()
    routed, sort = may(request.user, "route"), request.GET.get("sort", "")
    address = lambda language: reverse("manage-route", args=[language]) if routed else ""  # noqa: E731 - handed on
    return manage_page(
        request,
        "routes",
        table=progress_report.routes_table(LanguageRoute.objects.all(), address, sort),
        waiting=[(task, _queues(task)) for task in Task.objects.filter(is_open=True)],
        routes=routed,
    )


def _queues(task: Task) -> list[tuple[str, Table]]:
    """The queues in which something waits, and those that the page folds, with the words over them."""
    use, _ = figures("queues", task, partial(queues_by_use, task))
    folded = f"{many(len(use['idle']), 'queue')} with nothing waiting"
    parts = (("", f"Queues of {task.name}", use["busy"]), (folded, f"{folded}, of {task.name}", use["idle"]))
    return [(words, progress_report.route_queues_table(caption, rows)) for words, caption, rows in parts if rows]


@require_http_methods(["GET", "POST"])
@with_right("route")
def new_route(request, _):
    """Fields: language, queue, extra_candidates (codes with spaces between), never_agree."""
    if request.method == "GET":
        return manage_page(request, "route", said={})
    said = _said(request.POST)
    try:
        route = language_routes.add_route(request.POST.get("language", "").strip(), **said)
    except Refusal as refusal:
        return manage_page(request, "route", said=request.POST, refusal=str(refusal), status=status_of(refusal))
    _noted(request, route, "Added.", ADDITION)
    messages.success(request, f"{route}: this holds from now on.")
    return redirect("manage-routes")


@require_http_methods(["GET", "POST"])
@with_right("route")
def route(request, _, language):
    """Fields: those of `new_route`, without the language, which stays."""
    found = language_routes.route_of(language)
    if request.method == "GET":
        known = {
            "queue": found.queue,
            "extra_candidates": " ".join(found.extra_candidates),
            "never_agree": found.never_agree,
        }
        return manage_page(request, "route", route=found, said=known)
    try:
        changed_route, changed = language_routes.change_route(language, **_said(request.POST))
    except Refusal as refusal:
        return manage_page(
            request, "route", route=found, said=request.POST, refusal=str(refusal), status=status_of(refusal)
        )
    if changed:
        _noted(request, changed_route, f"Changed {', '.join(changed).replace('_', ' ')}.")
    messages.success(request, f"{changed_route}: this holds from now on.")
    return redirect("manage-routes")


@require_POST
@with_right("route")
def remove_route(request, _, language):
    route = language_routes.remove_route(language)
    _noted(request, route, "Removed.", DELETION)
    messages.success(request, f"{language} has no route any more.")
    return redirect("manage-routes")


def _noted(request, route: LanguageRoute, words: str, act: int = CHANGE) -> None:
    """Keep who did it; and since other people may read a queue now, all figures are counted again."""
    note(request, route, words, act)
    for task in Task.objects.filter(is_open=True):
        forget(task)


def _said(posted: Mapping[str, str]) -> dict[str, Any]:
    return {
        "queue": posted.get("queue", "").strip(),
        "extra_candidates": codes(posted.get("extra_candidates", "")),
        "never_agree": "never_agree" in posted,
    }


# --- Guidelines by language: a new version with a preview, and older ones

MINOR, MAJOR = "minor", "major"


@require_GET
@with_task("manage")
def guidelines(request, _, task):
    """?language= says in which language."""
    return _guidelines_page(request, task, request.GET.get("language", ""), {})


@require_POST
@with_task("guide")
def preview(request, _, task):
    """How annotators will see the text. Fields: those of `add`."""
    text, language = request.POST.get("text", ""), request.POST.get("language", "")
    wrong = fault(text)
    shown = {"refusal": f"The guidelines {wrong}."} if wrong else {"preview": rendered(text)}
    if request.htmx:
        return render(request, "annotate/manage/_preview.html", {"language": language, **shown})
    return _guidelines_page(
        request, task, language, request.POST, previewed=True, after=request.POST.get("after", ""), **shown
    )


@require_POST
@with_task("guide")
def add(request, _, task):
    """Add a version. Fields: language, text, change (minor or major), after (the version with which the text began)."""
    posted = request.POST
    language, change, after = (posted.get(name, "") for name in ("language", "change", "after"))
    try:
        if change not in (MINOR, MAJOR):
            raise InvalidAnswer("Say what kind of change it is.")
        text = posted.get("text", "").replace("\r\n", "\n")
        began = int(after) if after.isdecimal() and len(after) < 19 else None
        made = new_version(task, language, text, major=change == MAJOR, after=began)
    except WrongStage as refusal:
        # Told of the version that was added meanwhile, its writer may add theirs after it.
        return _guidelines_page(request, task, language, posted, refusal=str(refusal), status=status_of(refusal))
    except Refusal as refusal:
        return _guidelines_page(
            request, task, language, posted, after=after, refusal=str(refusal), status=status_of(refusal)
        )
    note(request, made, f"Added as a {change} version.", ADDITION)
    again = _who_must_again(task, made) if change == MAJOR else ""
    messages.success(
        request, f"Version {made.version} holds in {label_name(language) or language} now. {again}".strip()
    )
    return redirect(f"{reverse('manage-guidelines', args=[task.name])}?language={language}")


def _who_must_again(task: Task, made: Guidelines) -> str:
    passed = task.qualifications.filter(language=made.language, major=made.major - 1).count()
    if not (task.test_items and passed):
        return ""
    takes = "takes" if passed == 1 else "take"
    return f"{many(passed, 'annotator')} who had passed {takes} the test again before they go on."


def _guidelines_page(request, task: Task, language: str, said: Mapping[str, str], *, status: int = 200, **context):
    newest = newest_of(task)
    # Where the labels are the languages, guidelines may be in any; where records have languages, in these.
    typed = {language} if not task.languages and is_language(language) else set()
    offered = sorted({*task.languages, *newest, ENGLISH, *typed})
    if language not in offered:
        language = ENGLISH if ENGLISH in newest or not newest else min(newest)
    held = current(task, language)
    # After a refusal the text is what was typed.
    text = said.get("text", held.text if held else "")
    begins = held is not None and text == held.text
    around: dict[str, Any] = {
        "language": language,
        "languages": [(code, label_name(code) or code, code in newest) for code in offered],
        "name": label_name(language) or language,
        "held": held,
        "after": held.pk if held else "",
        "own": held is not None and held.language == language,
        "versions": versions(task, language),
        "text": text,
        "change": said.get("change", ""),
        "preview": markdown(text) if begins else "" if fault(text) else rendered(text),
        "guides": may(request.user, "guide"),
    }
    return manage_page(request, "guidelines", task, status=status, **{**around, **context})
