"""Pages for webhooks: the list, the form that registers one, and what was sent to it (work/webhook_outbox.py)."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Case, Q, When
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone

from annotate.core.refusals import InvalidAnswer
from annotate.manager_pages.dashboard import done, manage_page, sort_of
from annotate.models import Delivery, Task, Webhook
from annotate.pages.access import UserRequest, may, text_of
from annotate.reports.tables import NUMBER, SENTENCE, SHORT, Cell, Column, Table, table, when
from annotate.work import webhook_outbox

SHOWN = 200  # maximum number of notifications on a page, newest first
# Event -> (name on pages, label of its checkbox).
EVENTS = {
    Webhook.SETTLED: ("settled items", "An item is settled: labelled or left out by people"),
    Webhook.FINISHED: ("finished tasks", "A task is finished"),
    Webhook.ASKED: ("questions and flags", "An annotator asks a question or flags an item"),
    Webhook.ENDED: ("ended jobs", "A job ends"),
}


def _events(webhook: Webhook) -> str:
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
        Column("events", "events", SENTENCE, _events),
        Column("task", "task", SHORT, lambda row: row.task.name if row.task else "all"),
        Column("created_at", "registered", SHORT, lambda row: when(row.created_at)),
        Column("pending", "to be sent", NUMBER, lambda row: Cell(f"{row.pending:,}", row.pending)),
        Column("failures", "failures in a row", NUMBER, failures),
    )
    return table("Webhooks", columns, rows, slug="webhooks", asked=sort)


def new_webhook(request: UserRequest) -> HttpResponse:
    """Register a webhook. The secret is shown only in the response to this request.

    POST fields: url, event (one or more), task (name; empty for all tasks)
    """
    said = {"url": text_of(request.POST, "url"), "task": text_of(request.POST, "task")}
    chosen = request.POST.getlist("event")
    webhook, refusal = None, None
    if request.method == "POST":
        try:
            if not chosen:
                raise InvalidAnswer("Choose at least one event.")
            task = Task.objects.filter(name=said["task"]).first()
            if said["task"] and task is None:
                raise InvalidAnswer("This task no longer exists. Choose another one.")
            webhook = webhook_outbox.register(said["url"], request.user, chosen, task)
        except InvalidAnswer as error:
            refusal = error
    context: dict[str, Any] = {
        "said": said,
        "events": [(event, label, event in chosen or request.method == "GET") for event, (_, label) in EVENTS.items()],
        "tasks": Task.objects.order_by("-is_open", "-pk"),
        "webhook": webhook,
    }
    return manage_page(request, "new_webhook", refusal=refusal, **context)


def webhook(request: UserRequest, webhook: Webhook) -> HttpResponse:
    # A notification that fails keeps the later ones waiting, so it comes first.
    has_failed = Case(When(~Q(fault=""), delivered_at=None, then=0), default=1)
    rows = webhook.deliveries.order_by(has_failed, "-pk")[:SHOWN]
    starts = may(request.user, "start")
    table = _deliveries_table(rows, sort_of(request), starts=starts)
    context: dict[str, Any] = {"webhook": webhook, "events": _events(webhook), "table": table, "most": SHOWN}
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
    return table("Notifications", columns, rows, slug="notifications", asked=sort)


def again(request: UserRequest, delivery: Delivery) -> HttpResponse:
    webhook_outbox.send_again(delivery)
    return done(request, "The notification will be sent within seconds.", "manage-webhook", delivery.webhook_id)


def delete(request: UserRequest, webhook: Webhook) -> HttpResponse:
    url = webhook.url
    webhook.delete()
    return done(request, f"The webhook to {url} was deleted.", "manage-webhooks")
