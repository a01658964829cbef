"""Managers' pages for a task's settings, actions and guidelines, for language routes, and for webhooks.

work/task_settings.py decides which settings may be changed. action_forms.py builds the forms that start jobs.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from types import MappingProxyType
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from django.core.paginator import Paginator
from django.db.models import Case, Q, When
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from annotate.actions.action import ActionError
from annotate.actions.registry import by_name
from annotate.core.option import Option, codes, format_value, whole_number
from annotate.core.refusals import InvalidAnswer, Refusal, WrongStage
from annotate.figures import overview_report, progress_report
from annotate.figures.figure_cache import figures, forget
from annotate.figures.queue_states import People, people_of, queues_by_use
from annotate.kinds.designs import DESIGNS
from annotate.kinds.file_sections import guidelines_fault
from annotate.kinds.interface_language import label_name
from annotate.manager_pages import action_forms
from annotate.manager_pages.action_forms import Field, choices_of, label_of
from annotate.manager_pages.dashboard import log_change, manage_page, redirect_with_message, shows_figures, sort_of
from annotate.models import Delivery, Guidelines, LanguageRoute, Task, Webhook
from annotate.pages.access import UserRequest, may, status_of, text_of
from annotate.pages.item_view import render_guidelines, render_markdown
from annotate.quality.guideline_versions import ENGLISH, current, new_version, newest_of, versions
from annotate.reports.tables import NUMBER, SENTENCE, SHORT, Cell, Column, Table, many, table, when
from annotate.work import closure, webhook_outbox
from annotate.work import routes as language_routes
from annotate.work import task_settings as work
from annotate.work.routes import is_language, register_languages, to_language_code


def change(request: UserRequest, task: Task) -> HttpResponse:
    """Change a task's settings.

    POST fields:
    title: new title
    labels: new labels, as codes separated by spaces
    NAME: new value of the option with this name
    was-NAME: original value of this field in the form; unchanged fields are ignored
    """
    posted = request.POST
    names = [work.TITLE, *(option.name for option in work.changeable(task)), *_changeable_labels(task)]
    was = {name: posted[f"was-{name}"] for name in names if f"was-{name}" in posted}
    values: dict[str, Any] = {name: posted[name] for name in names if name in posted and posted[name] != was.get(name)}
    try:
        if work.LABELS in values:
            values[work.LABELS] = codes(values[work.LABELS])
        changed = work.change(task, values, was)
    except Refusal as refusal:
        sentence = action_forms.with_form_labels(str(refusal), work.changeable(task))
        return settings(request, task, posted, refusal=sentence, status=status_of(refusal))
    if not changed:
        messages.info(request, "Nothing was changed.")
        return redirect("manage-settings", task.name)
    changed_names = ", ".join(name.replace("_", " ") for name in changed)
    log_change(request, task, f"Changed {changed_names}.")
    return redirect_with_message(request, f"Changed: {changed_names}.", "manage-settings", task.name)


def switch(request: UserRequest, task: Task) -> HttpResponse:
    """Close or reopen the task.

    POST fields:
    open: `yes` to reopen the task, `no` to close it
    leave_out: `yes` to exclude units without a label from the gold set
    """
    if (choice := request.POST.get("open")) not in ("yes", "no"):
        raise InvalidAnswer("The form must specify whether to open or close the task. Reload the page and try again.")
    opens = choice == "yes"
    leaves_out = request.POST.get("leave_out") == "yes"
    outcome = closure.reopen(task) if opens else closure.close(task, leave_out=leaves_out)
    sentence = (overview_report.reopened if opens else overview_report.closed)(outcome)
    if outcome["changed"] or leaves_out:
        log_change(request, task, sentence)
    return redirect_with_message(request, sentence, "manage-settings", task.name)


def extend(request: UserRequest, task: Task) -> HttpResponse:
    """Show the form that enlarges a task, or start a job that draws more items for it.

    POST fields:
    size: new size of the draw
    dry_run: `yes` to only show how many items would be drawn
    """
    refusal = None
    if request.method == "POST":
        if "size" not in request.POST:
            raise InvalidAnswer("The size is missing from the form. Reload the page and try again.")
        options: dict[str, Any] = {"name": task.name, "size": request.POST["size"].strip()}
        # Omit the option if the box is not ticked, as on the command line.
        options |= {"dry_run": True} if request.POST.get("dry_run", "").strip() == "yes" else {}
        try:
            return action_forms.begin(request, "extend_task", options)
        except ActionError as error:
            refusal = action_forms.reword_error(error, by_name()["extend_task"].options)
    scope = "in each language" if DESIGNS[task.draw.design].asks_each else "in all"
    return manage_page(request, "extend", task, draw=task.draw, scope=scope, refusal=refusal)


def _changeable_labels(task: Task) -> list[str]:
    return [work.LABELS] if work.may_relabel(task) else []


def settings(
    request: UserRequest, task: Task, values: Mapping[str, str] = MappingProxyType({}), **context: Any
) -> HttpResponse:
    groups: dict[str, list[Field]] = {}
    options = {option.name: option for option in work.changeable(task)}
    for option in options.values():
        value = values.get(option.name, format_value(getattr(task, option.name)))
        groups.setdefault(option.group, []).append(_field(option, value))
    labels = values.get(work.LABELS, " ".join(task.labels))
    return manage_page(
        request,
        "settings",
        task,
        title=values.get(work.TITLE, task.title),
        labels=labels if work.may_relabel(task) else None,
        was=[(name, work.displayed_value(task, name)) for name in (work.TITLE, *_changeable_labels(task), *options)],
        groups=groups,
        fixed=[
            (label_of(option), format_value(task.options[option.name]) or "none", option.help)
            for option in work.fixed(task)
        ],
        draws=task.draws.select_related("corpus").order_by("language", "pk"),
        decides=may(request.user, "decide", task.name),
        unfinished=closure.unfinished(task),
        actions=_actions_for(task) if may(request.user, "start") else [],
        **context,
    )


def _field(option: Option, value: str) -> Field:
    """Convert an option to a form field. The help text includes the allowed range."""
    choices = [(choice, text, choice == value) for choice, text in choices_of("open_task", option) or ()]
    bounds = "" if choices or option.bounds in option.help else f" ({option.bounds})"
    return Field(
        name=option.name,
        label=label_of(option),
        help=option.help + bounds,
        kind="choice" if choices else "number" if option.read is whole_number else "line",
        value=value,
        choices=choices,
    )


def _actions_for(task: Task) -> list[tuple[str, str, str]]:
    """Return the actions that can be applied to a task, as (URL, link text, short description) tuples."""
    actions = []
    if work.is_extendable(task):
        actions.append(("extend", "Extend", "draw more items from the same corpus, with the same seed"))
    if "audit" in task.kind.reports:
        actions.append(("audit", "Audit", "results of audits, decoys and checks; have more labels checked"))
    if not task.kind.routing.waits:
        actions.append(("reroute", "Reroute", "move items out of queues that lack readers"))
    actions.append(("adjudicate", "Import decisions", "import an adjudicator's decisions from a file"))
    actions.append(("delete", "Delete", "delete the task if it has no answers"))
    addresses = {"extend": reverse("manage-extend", args=[task.name])}
    return [
        (addresses.get(name) or action_forms.address(name, task=task.name), label, description)
        for name, label, description in actions
    ]


# --- Language routes, and the queued units and readers of each queue


TASKS_ON_A_PAGE = 2


@shows_figures
def routes(request: UserRequest) -> HttpResponse:
    register_languages()
    routed, sort = may(request.user, "route"), sort_of(request)
    tasks = Paginator(Task.objects.filter(is_open=True), TASKS_ON_A_PAGE).get_page(request.GET.get("tasks"))
    people = cache(partial(people_of, list(tasks)))
    address = lambda language: reverse("manage-route", args=[language]) if routed else ""  # noqa: E731 - an argument
    return manage_page(
        request,
        "routes",
        table=progress_report.routes_table(LanguageRoute.objects.all(), address, sort),
        waiting=[(task, _queues(task, people)) for task in tasks],
        tasks_page=tasks,
        routes=routed,
    )


def _queues(task: Task, people: Callable[[], People]) -> list[tuple[str, Table]]:
    """Return a (heading, table) tuple for a task's busy queues, and another for its idle queues.

    The heading of the busy queues is empty. The page collapses the table of idle queues under its heading.
    """
    use, _ = figures("queues", task, partial(queues_by_use, task, people))
    folded = f"{many(len(use['idle']), 'queue')} without waiting items"
    parts = (("", f"Queues of {task.name}", use["busy"]), (folded, f"{folded}, of {task.name}", use["idle"]))
    return [(words, progress_report.route_queues_table(caption, rows)) for words, caption, rows in parts if rows]


def new_route(request: UserRequest) -> HttpResponse:
    """Add a route. POST fields: `language`, `queue`, `extra_candidates` (codes separated by spaces), `never_agree`."""
    if request.method == "GET":
        return manage_page(request, "route", entered={})
    try:
        added = language_routes.add_route(request.POST.get("language", "").strip(), **_route_values(request.POST))
    except Refusal as refusal:
        return manage_page(request, "route", entered=request.POST, refusal=refusal)
    return _redirect_to_routes(request, added, "Added.", ADDITION)


def route(request: UserRequest, language: str) -> HttpResponse:
    """Show or change a route. POST fields: the same as for `new_route`, except `language`."""
    language_route = language_routes.route_of(language)
    if request.method == "GET":
        values = {name: getattr(language_route, name) for name in ("queue", "never_agree")}
        values["extra_candidates"] = " ".join(language_route.extra_candidates)
        return manage_page(request, "route", route=language_route, entered=values)
    try:
        language_route, changed = language_routes.change_route(language, **_route_values(request.POST))
    except Refusal as refusal:
        return manage_page(request, "route", route=language_route, entered=request.POST, refusal=refusal)
    return _redirect_to_routes(
        request, language_route, f"Changed {', '.join(changed).replace('_', ' ')}." if changed else ""
    )


def remove_route(request: UserRequest, language: str) -> HttpResponse:
    removed = language_routes.remove_route(language)
    return _redirect_to_routes(request, removed, "Removed.", DELETION, f"The route of {language} was removed.")


def _redirect_to_routes(
    request: UserRequest, route: LanguageRoute, log_message: str, act: int = CHANGE, sentence: str = ""
) -> HttpResponse:
    """Log the change of a route and redirect to the list of routes.

    The cached figures of all open tasks are discarded, because the change can affect which annotators a queue has.

    log_message: description of the change for the log; empty if nothing was changed
    act: Django's ADDITION, CHANGE or DELETION
    sentence: message to the user; by default, it states that the route is now in effect
    """
    if log_message:
        log_change(request, route, log_message, act)
        for task in Task.objects.filter(is_open=True):
            forget(task)
    return redirect_with_message(request, sentence or f"{route}: this route is now in effect.", "manage-routes")


def _route_values(posted: Mapping[str, str]) -> dict[str, Any]:
    return {
        "queue": posted.get("queue", "").strip(),
        "extra_candidates": codes(posted.get("extra_candidates", "")),
        "never_agree": "never_agree" in posted,
    }


# --- Guidelines in each language: the editor with a preview, and older versions

MINOR, MAJOR = "minor", "major"


def preview(request: UserRequest, task: Task) -> HttpResponse:
    """Show the guidelines as annotators will see them. POST fields: the same as for `add`."""
    text, language = request.POST.get("text", ""), request.POST.get("language", "")
    fault = guidelines_fault(text)
    result = {"refusal": f"The guidelines {fault}."} if fault else {"preview": render_markdown(text)}
    if request.htmx:
        return render(request, "annotate/manage/_preview.html", {"language": language, **result})
    after = request.POST.get("after", "")
    return guidelines(request, task, language, request.POST, previewed=True, after=after, status=200, **result)


def add(request: UserRequest, task: Task) -> HttpResponse:
    """Add a version of the guidelines.

    POST fields:
    language: code of the language
    text: Markdown
    change: `minor` or `major`
    after: primary key of the version that the edited text is based on
    """
    posted = request.POST
    language, change, after = (posted.get(name, "") for name in ("language", "change", "after"))
    try:
        if change not in (MINOR, MAJOR):
            raise InvalidAnswer("Choose the kind of change.")
        text = posted.get("text", "").replace("\r\n", "\n")
        base = int(after) if after.isdecimal() and len(after) < 19 else None
        new_guidelines = new_version(task, language, text, major=change == MAJOR, after=base)
    except Refusal as refusal:
        # After a conflict, the page also shows the newer version, and the manager can add the text as the next version.
        base_version = {} if isinstance(refusal, WrongStage) else {"after": after}
        return guidelines(request, task, language, posted, refusal=refusal, **base_version)
    log_change(request, new_guidelines, f"Added as a {change} version.", ADDITION)
    again = _retest_notice(task, new_guidelines) if change == MAJOR else ""
    address = f"{reverse('manage-guidelines', args=[task.name])}?language={language}"
    return redirect_with_message(
        request,
        f"Version {new_guidelines.version} is now in effect in {label_name(language) or language}. {again}".strip(),
        address,
    )


def _retest_notice(task: Task, new_guidelines: Guidelines) -> str:
    passed = task.qualifications.filter(language=new_guidelines.language, major=new_guidelines.major - 1).count()
    if not (task.test_items and passed):
        return ""
    return f"{many(passed, 'annotator')} who had passed must take the test again before continuing."


def guidelines(
    request: UserRequest, task: Task, language: str = "", form: Mapping[str, str] = MappingProxyType({}), **context: Any
) -> HttpResponse:
    """Show the guidelines and the editor.

    ?language=: code of the language
    """
    language, newest = language or to_language_code(request.GET.get("language", "")), newest_of(task)
    # Tasks with records offer the records' languages. If the labels are languages, any language can be entered.
    typed = {language} if not task.languages and is_language(language) else set()
    offered = sorted({*task.languages, *newest, ENGLISH, *typed})
    if language not in offered:
        language = ENGLISH if ENGLISH in newest or not newest else min(newest)
    current_version = current(task, language)
    # Show a rejected text again, so that the manager can correct it.
    text = form.get("text", current_version.text if current_version else "")
    is_current = current_version is not None and text == current_version.text
    defaults: dict[str, Any] = {
        "language": language,
        "languages": [(code, label_name(code) or code, code in newest) for code in offered],
        "name": label_name(language) or language,
        "held": current_version,
        "after": current_version.pk if current_version else "",
        "is_same_language": current_version is not None and current_version.language == language,
        "versions": versions(task, language),
        "text": text,
        "change": form.get("change", ""),
        "preview": render_guidelines(text) if is_current else "" if guidelines_fault(text) else render_markdown(text),
        "guides": may(request.user, "guide", task.name),
    }
    return manage_page(request, "guidelines", task, **{**defaults, **context})


# --- Webhooks: the list, the form that registers a webhook, and its notifications (work/webhook_outbox.py)


SHOWN = 200  # maximum number of notifications on a page, newest first
# Event -> (name on pages, label of its checkbox).
EVENTS = {
    Webhook.SETTLED: ("settled items", "An item is settled: labelled or left out by people"),
    Webhook.FINISHED: ("finished tasks", "A task is finished"),
    Webhook.ASKED: ("questions and flags", "An annotator asks a question or flags an item"),
    Webhook.ENDED: ("ended jobs", "A job ends"),
}


def _event_names(webhook: Webhook) -> str:
    return ", ".join(EVENTS[event][0] for event in webhook.events or EVENTS)


def webhooks(request: UserRequest) -> HttpResponse:
    rows = webhook_outbox.with_pending()
    return manage_page(
        request, "webhooks", table=_webhooks_table(rows, sort_of(request)), starts=may(request.user, "start")
    )


def _webhooks_table(rows: Iterable[Webhook], sort: str) -> Table:
    def failures(row: Webhook) -> Cell:
        return Cell(f"{row.failures:,}", row.failures, mark="falsely" if row.failures else "")

    columns = (
        Column(
            "url", "address", SENTENCE, lambda row: Cell(row.url, row.url, reverse("manage-webhook", args=[row.pk]))
        ),
        Column("events", "events", SENTENCE, _event_names),
        Column("task", "task", SHORT, lambda row: row.task.name if row.task else "all"),
        Column("created_at", "registered", SHORT, lambda row: when(row.created_at)),
        Column("pending", "to be sent", NUMBER, lambda row: Cell(f"{row.pending:,}", row.pending)),
        Column("failures", "failures in a row", NUMBER, failures),
    )
    return table("Webhooks", columns, rows, slug="webhooks", sort=sort)


def new_webhook(request: UserRequest) -> HttpResponse:
    """Register a webhook. The secret is shown only in the response to this request.

    POST fields: `url`, `event` (one or more), `task` (a task's name; empty for all tasks)
    """
    values = {"url": text_of(request.POST, "url"), "task": text_of(request.POST, "task")}
    chosen = request.POST.getlist("event")
    webhook, refusal = None, None
    if request.method == "POST":
        try:
            if not chosen:
                raise InvalidAnswer("Choose at least one event.")
            task = Task.objects.filter(name=values["task"]).first()
            if values["task"] and task is None:
                raise InvalidAnswer("This task no longer exists. Choose another one.")
            webhook = webhook_outbox.register(values["url"], request.user, chosen, task)
        except InvalidAnswer as error:
            refusal = error
    context: dict[str, Any] = {
        "entered": values,
        "events": [(event, label, event in chosen or request.method == "GET") for event, (_, label) in EVENTS.items()],
        "tasks": Task.objects.order_by("-is_open", "-pk"),
        "webhook": webhook,
    }
    return manage_page(request, "new_webhook", refusal=refusal, **context)


def webhook(request: UserRequest, webhook: Webhook) -> HttpResponse:
    # Failed notifications come first, because they block the later ones.
    has_failed = Case(When(~Q(fault=""), delivered_at=None, then=0), default=1)
    rows = webhook.deliveries.order_by(has_failed, "-pk")[:SHOWN]
    starts = may(request.user, "start")
    table = _deliveries_table(rows, sort_of(request), starts=starts)
    context: dict[str, Any] = {"webhook": webhook, "events": _event_names(webhook), "table": table, "most": SHOWN}
    return manage_page(request, "webhook", **context, starts=starts, now=timezone.now())


def _deliveries_table(rows: Iterable[Delivery], sort: str, *, starts: bool) -> Table:
    def subject(row: Delivery) -> str:
        data = row.content["data"]
        return " ".join(str(data[name]) for name in ("task", "item", "action", "job") if data.get(name))

    def state(row: Delivery) -> Cell:
        if row.delivered_at:
            return Cell("sent", "sent")
        if row.given_up_at:
            return Cell("given up", "given up", mark="falsely")
        shown = "failed, will be repeated" if row.fault else "to be sent"
        return Cell(shown, shown)

    def fault(row: Delivery) -> Cell:
        has_failed = starts and row.fault and not row.delivered_at
        act = ("Send again", reverse("manage-delivery-again", args=[row.pk])) if has_failed else None
        return Cell(row.fault, row.fault, act=act)

    columns = (
        Column("pk", "number", SHORT, lambda row: Cell(str(row.pk), row.pk)),
        Column("event", "event", SHORT, lambda row: EVENTS[row.event][0]),
        Column("about", "subject", SHORT, subject),
        Column("at", "happened", SHORT, lambda row: when(row.at)),
        Column("state", "status", SHORT, state),
        Column("delivered_at", "sent", SHORT, lambda row: when(row.delivered_at)),
        Column("tries", "attempts", NUMBER, lambda row: Cell(f"{row.tries:,}", row.tries)),
        Column("fault", "last failure", SENTENCE, fault),
    )
    return table("Notifications", columns, rows, slug="notifications", sort=sort)


def send_again(request: UserRequest, delivery: Delivery) -> HttpResponse:
    webhook_outbox.send_again(delivery)
    return redirect_with_message(
        request, "The notification will be sent within seconds.", "manage-webhook", delivery.webhook_id
    )


def delete_webhook(request: UserRequest, webhook: Webhook) -> HttpResponse:
    url = webhook.url
    webhook.delete()
    return redirect_with_message(request, f"The webhook to {url} was deleted.", "manage-webhooks")
