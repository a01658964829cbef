"""Webhooks: registers addresses and turns events into notifications. webhook_sender.py sends them.

Events are derived from rows that the database stores anyway: transitions, flags and jobs. Answering therefore takes no
longer, and a rolled-back answer causes no event. The sender process collects events every few seconds.

Ids and times are assigned before a transaction commits, so a row may become visible after rows with higher ids. Each
collection therefore rereads the last ten minutes. A unique key ensures that each event is stored only once.
"""

import json
from base64 import b64encode
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from operator import attrgetter
from secrets import token_bytes
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Max, Q, QuerySet
from django.utils import timezone

from annotate.core import stages
from annotate.core.refusals import InvalidAnswer
from annotate.kinds import IMPORTED_KINDS
from annotate.models import Delivery, Flag, Job, Task, Transition, Webhook
from annotate.work.job_store import jobs_folder
from annotate.work.webhook_address import check_address

LOOKBACK = timedelta(minutes=10)
STALE = timedelta(minutes=10)  # age at which the time of the last collection is updated even without events
RETENTION = timedelta(days=30)  # how long notifications are kept
MOST, AT_ONCE = 10_000, 500  # maximum number of settled items per collection, and per query
PREFIX = "whsec_"  # prefix of secrets, as defined by the Standard Webhooks specification


def flag_file() -> Any:
    """Return the path of a file that exists while there are webhooks. job_watcher.py starts the sender if it exists."""
    return jobs_folder() / "webhooks"


@transaction.atomic
def register(url: str, by: User, events: Collection[str] = (), task: Task | None = None) -> Webhook:
    """Register a webhook for future events, and return it.

    events: names of the events to send; empty for all
    task: task whose events to send; None for all tasks

    Raise InvalidAnswer if an event does not exist, or if sending notifications to the URL isn't allowed.
    """
    if unknown := set(events) - set(Webhook.EVENTS):
        raise InvalidAnswer(f"The event {min(unknown)!r} does not exist. Events: {', '.join(Webhook.EVENTS)}.")
    check_address(url)
    last = Transition.objects.order_by("-pk").values_list("pk", flat=True).first()
    secret = PREFIX + b64encode(token_bytes(32)).decode()
    transaction.on_commit(flag_file().touch)
    return Webhook.objects.create(url=url, secret=secret, events=list(events), task=task, by=by, seen=last or 0)


def with_pending() -> Any:
    """Return all webhooks. The annotation `pending` is the number of notifications still to be sent."""
    pending = Count("deliveries", filter=Q(deliveries__delivered_at=None, deliveries__given_up_at=None))
    return Webhook.objects.select_related("task").annotate(pending=pending)


def send_again(delivery: Delivery) -> None:
    """Schedule a failed notification for immediate sending, even if sending it was given up.

    Raise InvalidAnswer if the receiver has already accepted it.
    """
    with transaction.atomic():
        if not Delivery.objects.filter(pk=delivery.pk, delivered_at=None).update(given_up_at=None):
            raise InvalidAnswer("The receiver has accepted this notification. Nothing was sent.")
        # Without failures, the time is set only during an attempt, to keep other senders from taking over.
        Webhook.objects.filter(pk=delivery.webhook_id, failures__gt=0).update(waits_until=None)


def collect(webhook: Webhook) -> int:
    """Store notifications of a webhook's new events, and return their number."""
    now = timezone.now()
    recent = webhook.deliveries.filter(at__gte=webhook.collected_at - 2 * LOOKBACK)
    keys = set(recent.values_list("key", flat=True))
    pks = [
        pk
        for pk in _settling_transitions(webhook).values_list("pk", flat=True)
        if f"{Webhook.SETTLED}:{pk}" not in keys
    ]
    items = _item_events(pks[:MOST]) if webhook.wants(Webhook.SETTLED) else ()
    deliveries = [*items, *_task_events(webhook), *_question_events(webhook), *_job_events(webhook)]
    new = [delivery for delivery in deliveries if webhook.wants(delivery.event) and delivery.key not in keys]
    seen = _last_complete(webhook, now) if len(pks) <= MOST else min(_last_complete(webhook, now), pks[MOST] - 1)
    if not new and seen - webhook.seen < MOST and now - webhook.collected_at < STALE:
        return 0
    for delivery in new:
        delivery.webhook = webhook
    with transaction.atomic():
        Delivery.objects.bulk_create(sorted(new, key=attrgetter("at")), ignore_conflicts=True, batch_size=500)
        Webhook.objects.filter(pk=webhook.pk).update(seen=seen, collected_at=now)
        webhook.deliveries.filter(at__lt=now - RETENTION).delete()
    return len(new)


def _last_complete(webhook: Webhook, now: datetime) -> int:
    """Return the last transition older than LOOKBACK. No earlier transition can still become visible."""
    old = Transition.objects.filter(pk__gt=webhook.seen, at__lt=now - LOOKBACK)
    return old.order_by("-pk").values_list("pk", flat=True).first() or webhook.seen


def _settling_transitions(webhook: Webhook) -> QuerySet[Transition]:
    """Return the transitions with which annotators or managers settled or discarded items, oldest first."""
    moves = Transition.objects.filter(pk__gt=webhook.seen, to_stage__in=(stages.LABELLED, stages.DISCARDED))
    moves = moves.filter(Q(judgment__isnull=False) | Q(by__isnull=False), unit__honeypot=False)
    moves = moves.exclude(unit__task__kind_slug__in=IMPORTED_KINDS)
    return moves.filter(unit__task=webhook.task_id).order_by("pk") if webhook.task_id else moves.order_by("pk")


def _build_delivery(event: str, number: object, at: datetime, **data: Any) -> Delivery:
    body = {"type": event, "timestamp": at.isoformat(), "data": data}
    return Delivery(event=event, key=f"{event}:{number}", at=at, body=json.dumps(body, ensure_ascii=False))


def _item_events(pks: list[int]) -> Iterator[Delivery]:
    for start in range(0, len(pks), AT_ONCE):
        moves = Transition.objects.filter(pk__in=pks[start : start + AT_ONCE]).order_by("pk")
        for move in moves.select_related("unit__task", "unit__item"):
            unit = move.unit
            data = {"task": unit.task.name, "unit": unit.pk, "item": unit.item.key, "stage": move.to_stage}
            # Texts are never sent, so omit a label that is a written text.
            if unit.task.kind.form.lists:
                data["label"] = move.label
            yield _build_delivery(Webhook.SETTLED, move.pk, move.at, **data)


def _task_events(webhook: Webhook) -> Iterator[Delivery]:
    last_moves = _settling_transitions(webhook).order_by().values_list("unit__task").annotate(Max("pk"))
    pks = [last for _, last in last_moves]
    for move in Transition.objects.filter(pk__in=pks).select_related("unit__task"):
        task = move.unit.task
        if not task.units.work().filter(stage__in=stages.WAITING).exists():
            yield _build_delivery(Webhook.FINISHED, f"{task.pk}:{move.pk}", move.at, task=task.name)


def _question_events(webhook: Webhook) -> Iterator[Delivery]:
    flags = Flag.objects.active().filter(at__gt=_since(webhook)).select_related("unit__task", "unit__item")
    for flag in flags.filter(unit__task=webhook.task_id) if webhook.task_id else flags:
        data = {"task": flag.unit.task.name, "unit": flag.unit.pk, "item": flag.unit.item.key}
        yield _build_delivery(Webhook.ASKED, flag.pk, flag.at, **data, question=flag.pk, kind=flag.kind)


def _job_events(webhook: Webhook) -> Iterator[Delivery]:
    jobs = Job.objects.of_task(webhook.task.name) if webhook.task else Job.objects.all()
    for job in jobs.filter(ended_at__gt=_since(webhook)):
        assert job.ended_at
        data = {"job": job.pk, "action": job.action, "state": job.state, "task": job.task_name, "corpus": job.corpus}
        yield _build_delivery(Webhook.ENDED, job.pk, job.ended_at, **data)


def _since(webhook: Webhook) -> datetime:
    return max(webhook.created_at, webhook.collected_at - LOOKBACK)
