"""Webhooks: managers register addresses, and events become notifications. webhook_sender.py sends them.

Events are read from what the database keeps anyway: transitions, flags and jobs. Answers therefore cost nothing more,
and a rolled-back answer is not an event. The sender's process collects events every few seconds.

Ids and times are assigned before a transaction is committed, so a row may become visible after later rows. The last ten
minutes are therefore read again, and the key of a notification ensures that each event is stored only once.
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
STALE = timedelta(minutes=10)  # age at which the time of the last collection is stored even without events
KEPT = timedelta(days=30)  # how long notifications are kept
MOST, AT_ONCE = 10_000, 500  # maximum number of settled items that are collected at once, and read by one query
PREFIX = "whsec_"  # beginning of a secret, as in the specification Standard Webhooks


def flag_file() -> Any:
    """Return the file that exists while there are webhooks. annotate/job_watcher.py starts the sender if it exists."""
    return jobs_folder() / "webhooks"


@transaction.atomic
def register(url: str, by: User, events: Collection[str] = (), task: Task | None = None) -> Webhook:
    """Register a webhook and return it. Only events that happen from now on are sent.

    events: names of events; empty for all
    task: only events of this task are sent; None for all

    Raise InvalidAnswer if an event does not exist, or if nothing may be sent to the URL.
    """
    if unknown := set(events) - set(Webhook.EVENTS):
        raise InvalidAnswer(f"The event {min(unknown)!r} does not exist. Events: {', '.join(Webhook.EVENTS)}.")
    check_address(url)
    last = Transition.objects.order_by("-pk").values_list("pk", flat=True).first()
    secret = PREFIX + b64encode(token_bytes(32)).decode()
    transaction.on_commit(flag_file().touch)
    return Webhook.objects.create(url=url, secret=secret, events=list(events), task=task, by=by, seen=last or 0)


def with_pending() -> Any:
    """Return the webhooks, each with the number of its pending notifications as `pending`."""
    pending = Count("deliveries", filter=Q(deliveries__delivered_at=None, deliveries__given_up_at=None))
    return Webhook.objects.select_related("task").annotate(pending=pending)


def send_again(delivery: Delivery) -> None:
    """Have a notification that failed sent at once, even if it was given up.

    Raise InvalidAnswer if the receiver has accepted it.
    """
    with transaction.atomic():
        if not Delivery.objects.filter(pk=delivery.pk, delivered_at=None).update(given_up_at=None):
            raise InvalidAnswer("The receiver has accepted this notification. Nothing was sent.")
        # During an attempt, the time is that at which another sender may take over.
        Webhook.objects.filter(pk=delivery.webhook_id, failures__gt=0).update(waits_until=None)


def collect(webhook: Webhook) -> int:
    """Store the notifications of new events for a webhook, and return their number."""
    now = timezone.now()
    recent = webhook.deliveries.filter(at__gte=webhook.collected_at - 2 * LOOKBACK)
    keys = set(recent.values_list("key", flat=True))
    pks = [pk for pk in _settled(webhook).values_list("pk", flat=True) if f"{Webhook.SETTLED}:{pk}" not in keys]
    items = _items(pks[:MOST]) if webhook.wants(Webhook.SETTLED) else ()
    deliveries = [*items, *_finished(webhook), *_questions(webhook), *_jobs(webhook)]
    new = [delivery for delivery in deliveries if webhook.wants(delivery.event) and delivery.key not in keys]
    seen = _seen(webhook, now) if len(pks) <= MOST else min(_seen(webhook, now), pks[MOST] - 1)
    if not new and seen - webhook.seen < MOST and now - webhook.collected_at < STALE:
        return 0
    for delivery in new:
        delivery.webhook = webhook
    with transaction.atomic():
        Delivery.objects.bulk_create(sorted(new, key=attrgetter("at")), ignore_conflicts=True, batch_size=500)
        Webhook.objects.filter(pk=webhook.pk).update(seen=seen, collected_at=now)
        webhook.deliveries.filter(at__lt=now - KEPT).delete()
    return len(new)


def _seen(webhook: Webhook, now: datetime) -> int:
    """Return the last transition that is so old that no earlier one can still become visible."""
    old = Transition.objects.filter(pk__gt=webhook.seen, at__lt=now - LOOKBACK)
    return old.order_by("-pk").values_list("pk", flat=True).first() or webhook.seen


def _settled(webhook: Webhook) -> QuerySet[Transition]:
    """Return the transitions by which people settled or discarded items, oldest first."""
    moves = Transition.objects.filter(pk__gt=webhook.seen, to_stage__in=(stages.LABELLED, stages.DISCARDED))
    moves = moves.filter(Q(judgment__isnull=False) | Q(by__isnull=False), unit__honeypot=False)
    moves = moves.exclude(unit__task__kind_slug__in=IMPORTED_KINDS)
    return moves.filter(unit__task=webhook.task_id).order_by("pk") if webhook.task_id else moves.order_by("pk")


def _delivery(event: str, number: object, at: datetime, **data: Any) -> Delivery:
    body = {"type": event, "timestamp": at.isoformat(), "data": data}
    return Delivery(event=event, key=f"{event}:{number}", at=at, body=json.dumps(body, ensure_ascii=False))


def _items(pks: list[int]) -> Iterator[Delivery]:
    for start in range(0, len(pks), AT_ONCE):
        moves = Transition.objects.filter(pk__in=pks[start : start + AT_ONCE]).order_by("pk")
        for move in moves.select_related("unit__task", "unit__item"):
            unit = move.unit
            data = {"task": unit.task.name, "unit": unit.pk, "item": unit.item.key, "stage": move.to_stage}
            # A label that people write is a text, and no texts are sent.
            if unit.task.kind.form.lists:
                data["label"] = move.label
            yield _delivery(Webhook.SETTLED, move.pk, move.at, **data)


def _finished(webhook: Webhook) -> Iterator[Delivery]:
    last_moves = _settled(webhook).order_by().values_list("unit__task").annotate(Max("pk"))
    pks = [last for _, last in last_moves]
    for move in Transition.objects.filter(pk__in=pks).select_related("unit__task"):
        task = move.unit.task
        if not task.units.work().filter(stage__in=stages.WAITING).exists():
            yield _delivery(Webhook.FINISHED, f"{task.pk}:{move.pk}", move.at, task=task.name)


def _questions(webhook: Webhook) -> Iterator[Delivery]:
    flags = Flag.objects.active().filter(at__gt=_since(webhook)).select_related("unit__task", "unit__item")
    for flag in flags.filter(unit__task=webhook.task_id) if webhook.task_id else flags:
        data = {"task": flag.unit.task.name, "unit": flag.unit.pk, "item": flag.unit.item.key}
        yield _delivery(Webhook.ASKED, flag.pk, flag.at, **data, question=flag.pk, kind=flag.kind)


def _jobs(webhook: Webhook) -> Iterator[Delivery]:
    jobs = Job.objects.of_task(webhook.task.name) if webhook.task else Job.objects.all()
    for job in jobs.filter(ended_at__gt=_since(webhook)):
        assert job.ended_at
        data = {"job": job.pk, "action": job.action, "state": job.state, "task": job.task_name, "corpus": job.corpus}
        yield _delivery(Webhook.ENDED, job.pk, job.ended_at, **data)


def _since(webhook: Webhook) -> datetime:
    return max(webhook.created_at, webhook.collected_at - LOOKBACK)
