"""The API for managing webhooks, which send signed notifications of events (work/webhook_outbox.py)."""

# Django REST framework has no types.
# mypy: disallow-subclassing-any=False

from typing import Any

from django.db.models import QuerySet
from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request

from annotate.api.serializers import OPTIONAL, integer, resource, string, validate_data
from annotate.core.refusals import NotFound
from annotate.models import Delivery, Task, Webhook
from annotate.work import webhook_outbox

SHOWN = 200  # maximum number of notifications in a response


class RegisterSerializer(serializers.Serializer):
    url = string("the address, which must begin with https://", max_length=500)
    events = serializers.ListField(
        child=serializers.ChoiceField(list(Webhook.EVENTS)), required=False, help_text="empty for all events"
    )
    task = string("only events of this task are sent", **OPTIONAL)


class WebhookSerializer(serializers.Serializer):
    id = integer(source="pk")
    url = string()
    events = serializers.ListField(child=serializers.CharField(), help_text="empty for all events")
    task = string(source="task.name", default="", help_text="empty for all tasks")
    created_at = serializers.DateTimeField()
    pending = integer("number of notifications still to be sent")
    failures = integer("number of failed attempts since the last success")
    waits_until = serializers.DateTimeField(allow_null=True, help_text="nothing is sent before this time")


class RegisteredSerializer(WebhookSerializer):
    secret = string("the key for verifying signatures; shown only in this response")


class DeliverySerializer(serializers.ModelSerializer):
    body = serializers.JSONField(source="content", help_text="the notification")

    class Meta:
        model = Delivery
        fields = ["id", "event", "body", "at", "tries", "status", "fault", "delivered_at", "given_up_at"]


@resource("GET", "manage", "List the webhooks", WebhookSerializer, many=True, operation_id="manage_webhooks")
def webhooks(request: Request) -> Any:
    return webhook_outbox.with_pending()


@resource(
    "POST",
    "start",
    "Register a webhook",
    RegisteredSerializer,
    RegisterSerializer,
    status=201,
    operation_id="manage_register_webhook",
)
def register(request: Request) -> Any:
    """Future events are sent to the URL. The response contains the secret that signs the requests."""
    fields = validate_data(RegisterSerializer, request.data)
    task = Task.objects.filter(name=fields["task"]).first() if fields["task"] else None
    if fields["task"] and task is None:
        raise NotFound(f"The task {fields['task']!r} does not exist.")
    webhook = webhook_outbox.register(fields["url"], request.user, fields.get("events", ()), task)
    return webhook_outbox.with_pending().get(pk=webhook.pk)


@resource("POST", "start", "Delete a webhook", operation_id="manage_delete_webhook")
def delete(request: Request, webhook: Webhook) -> None:
    """The webhook's notifications are deleted too."""
    webhook.delete()


@resource(
    "GET",
    "manage",
    "List the latest notifications of a webhook",
    DeliverySerializer,
    many=True,
    operation_id="manage_deliveries",
)
def deliveries(request: Request, webhook: Webhook) -> QuerySet[Delivery]:
    return webhook.deliveries.all()[:SHOWN]


@resource("POST", "start", "Send a failed notification again", operation_id="manage_send_again")
def again(request: Request, delivery: Delivery) -> None:
    """The notification is sent within seconds, even if sending was given up."""
    webhook_outbox.send_again(delivery)


urlpatterns = [
    path("", webhooks, name="api-webhooks"),
    path("new/", register, name="api-webhook-new"),
    path("<int:webhook>/deliveries/", deliveries, name="api-deliveries"),
    path("deliveries/<int:delivery>/again/", again, name="api-delivery-again"),
    path("<int:webhook>/delete/", delete, name="api-webhook-delete"),
]
