"""Database models for webhooks: the addresses that are notified of events, and the notifications."""

import json
from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from annotate.models.tasks import Task


class Webhook(models.Model):
    """An address to which events are sent (work/webhook_outbox.py)."""

    SETTLED, FINISHED, ASKED, ENDED = "item.settled", "task.finished", "question.asked", "job.ended"
    EVENTS = (SETTLED, FINISHED, ASKED, ENDED)

    url = models.URLField(max_length=500)
    secret = models.CharField(max_length=80, editable=False, help_text="the key of the signatures, shown only once")
    events = models.JSONField(default=list, help_text="names of the events that are sent; empty for all")
    task = models.ForeignKey(
        Task, models.CASCADE, null=True, blank=True, help_text="only events of this task are sent; empty for all"
    )
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT)
    created_at = models.DateTimeField(auto_now_add=True)
    seen = models.PositiveBigIntegerField(default=0, help_text="all transitions up to this one have been collected")
    collected_at = models.DateTimeField(
        default=timezone.now, help_text="all questions and jobs up to this time have been collected"
    )
    failures = models.PositiveSmallIntegerField(default=0, help_text="number of failed attempts since the last success")
    waits_until = models.DateTimeField(null=True, blank=True, help_text="nothing is sent before this time")

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"webhook {self.pk}: {self.url}"

    def wants(self, event: str) -> bool:
        return not self.events or event in self.events


class Deliveries(models.QuerySet["Delivery"]):
    """Queries for notifications in different states."""

    def pending(self) -> Self:
        """Return the notifications that are still to be sent, oldest first."""
        return self.filter(delivered_at=None, given_up_at=None).order_by("pk")


class Delivery(models.Model):
    """A notification of an event. It is kept for some weeks after it was sent."""

    webhook = models.ForeignKey(Webhook, models.CASCADE, related_name="deliveries", db_index=False)
    event = models.CharField(max_length=16)
    key = models.CharField(max_length=60, help_text="identifies the event, so that it is stored only once")
    body = models.TextField(help_text="JSON")
    at = models.DateTimeField(help_text="time of the event")
    tries = models.PositiveSmallIntegerField(default=0)
    status = models.PositiveSmallIntegerField(null=True, blank=True, help_text="HTTP status of the last response")
    fault = models.CharField(max_length=200, blank=True, help_text="why the last attempt failed")
    delivered_at = models.DateTimeField(null=True, blank=True)
    given_up_at = models.DateTimeField(null=True, blank=True)

    objects = Deliveries.as_manager()

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(
                fields=["webhook"], condition=Q(delivered_at=None, given_up_at=None), name="pending_deliveries"
            )
        ]
        constraints = [models.UniqueConstraint(fields=["webhook", "key"], name="notified_once")]

    def __str__(self) -> str:
        return f"{self.event} to {self.webhook}"

    @property
    def content(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.body)
        return content
