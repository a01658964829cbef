"""A task's settings: what may be changed of it while people work, what is fixed, and what can be done with it whole.

What may be changed is said by work/task_settings.py; what is done as jobs stands in deeds.py.
"""

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotate.actions import working
from annotate.actions.action import ActionError
from annotate.actions.audit import TOLD
from annotate.actions.named import by_name
from annotate.core.option import Option, codes, whole_number, written
from annotate.core.refusals import InvalidAnswer, Refusal
from annotate.figures import overview_report
from annotate.kinds.designs import DESIGNS
from annotate.models import Task
from annotate.pages import deeds
from annotate.pages.access import may, with_task
from annotate.pages.around import manage_page as page
from annotate.pages.around import note
from annotate.pages.deeds import Field, label_of
from annotate.pages.errors import status_of
from annotate.work import closing
from annotate.work import task_settings as work

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
        told = deeds.as_on_page(str(refusal), work.changeable(task))
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
    done = closing.reopen(task) if opens else closing.close(task, leave_out=leaves_out)
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
            return redirect("manage-job", working.ask("open_task", kept, by=request.user).pk)
        except ActionError as error:
            refusal, status = deeds.in_words_of_page(str(error), by_name()["open_task"]), 400
    each = "in each language" if DESIGNS[draw.design].asks_each else "in all"
    return page(request, "extend", task, draw=draw, each=each, refusal=refusal, status=status)


def _labels_if_open(task: Task) -> list[str]:
    return [work.LABELS] if work.may_relabel(task) else []


def _page(request, task: Task, said: Mapping[str, str], *, status: int = 200, **context):
    groups: dict[str, list[Field]] = {}
    options = {option.name: option for option in work.changeable(task)}
    for option in options.values():
        value = said.get(option.name, written(getattr(task, option.name)))
        groups.setdefault(option.group, []).append(_field(option, value))
    labels = said.get(work.LABELS, " ".join(task.labels))
    return page(
        request,
        "settings",
        task,
        status=status,
        title=said.get(work.TITLE, task.title),
        labels=labels if work.may_relabel(task) else None,
        was=[(name, work.told(task, name)) for name in (work.TITLE, *_labels_if_open(task), *options)],
        groups=groups,
        fixed=[(label_of(option), _told(getattr(task, option.name)), option.help) for option in work.fixed(task)],
        draws=task.draws.select_related("corpus").order_by("language", "pk"),
        decides=may(request.user, "decide"),
        unfinished=closing.unfinished(task),
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
    if TOLD.keys() & set(task.kind.controls):
        listed.append(("audit", "Audit", "what audit, decoys and checks found; contest agreement, or audit more"))
    if not task.kind.waits:
        listed.append(("reroute", "Reroute", "send on units of queues that have too few readers"))
    listed.append(("adjudicate", "Decisions from a file", "take in what was decided elsewhere"))
    listed.append(("delete", "Delete", "the task, while nobody has answered"))
    return [(_address(name, task), words, does) for name, words, does in listed]


def _address(name: str, task: Task) -> str:
    return reverse("manage-extend", args=[task.name]) if name == "extend" else deeds.address(name, task=task.name)
