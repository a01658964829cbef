"""Webhooks: their content, signatures, retries, and who gets nothing."""

import hmac
import json
import re
import subprocess
import threading
from base64 import b64decode, b64encode
from datetime import timedelta
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from django.test import Client
from django.utils import timezone

from annotate.actions import job_worker
from annotate.core.refusals import InvalidAnswer
from annotate.models import Delivery, Job, Webhook
from annotate.work import flags, job_store, webhook_outbox, webhook_sender
from annotate.work.answer_changes import undo
from annotate.work.permit import acting
from annotate.work.queue import take
from annotate.work.webhook_address import _is_public, check_address
from tests.annotate.acts import say
from tests.annotate.api.test_http_load import database_url
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.programs import Program
from tests.together import until


@pytest.fixture
def receiver(settings):
    """A server on this machine, which keeps requests and answers with its status."""
    settings.WEBHOOK_HOSTS = ["localhost"]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.got.append((dict(self.headers), body))
            self.send_response(server.status)
            self.send_header("Location", "http://localhost/other")
            self.end_headers()

        def log_message(self, *words):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.got, server.status = [], 204
    server.url = f"http://localhost:{server.server_port}/hook?a=b"
    thread = threading.Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def program(client, manager):
    return Program(client, manager)


@pytest.fixture
def settled(make_task, ann, manager, receiver):
    """settled(2) returns a task of two items settled by Ann, and a webhook that awaits their events."""

    def make(items=1):
        task = make_task([DISPUTED] * items)
        webhook = webhook_outbox.register(receiver.url, manager, ["item.settled"])
        for _ in range(items):
            say(ann, task, "de")
        return task, webhook

    return make


def sent(webhook):
    """Collect the events of a webhook, and return the type and data of all notifications, oldest first."""
    webhook.refresh_from_db()
    webhook_outbox.collect(webhook)
    bodies = [delivery.content for delivery in webhook.deliveries.order_by("pk")]
    return [(body["type"], body["data"]) for body in bodies]


def test_what_people_settle_is_sent_once_with_ids_and_labels_alone(make_task, person, manager, receiver):
    task, ann = make_task([DISPUTED, AGREED, DISPUTED]), person("ann", "de")
    webhook = webhook_outbox.register(receiver.url, manager)
    say(ann, task, "de")
    first = task.units.get(position=1)
    settled = {"task": "task", "unit": first.pk, "item": first.item.key, "stage": "LABELLED", "label": "de"}
    assert sent(webhook) == [("item.settled", settled)]
    assert sent(webhook) == [("item.settled", settled)]
    say(ann, task, "de")
    assert [event for event, _ in sent(webhook)] == ["item.settled", "item.settled", "task.finished"]
    assert sent(webhook)[2][1] == {"task": "task"}
    # An answer that is given again after an undo is a new event.
    undo(ann, task)
    say(ann, task, "de")
    assert [event for event, _ in sent(webhook)[3:]] == ["item.settled", "task.finished"]
    assert first.item.text not in " ".join(Delivery.objects.values_list("body", flat=True))


def test_questions_and_ended_jobs_are_sent_without_their_words(make_task, person, manager, receiver):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    webhook = webhook_outbox.register(receiver.url, manager, ["question.asked", "job.ended"], task)
    lease = take(ann, task)
    with acting(ann.user, task.name) as permit:
        flag = flags.flag(permit, lease.pk, "question", "Is this a secret word?").flag
    job_store.cancel(job_store.begin("close", {"task": "task"}, by=manager))
    job_store.cancel(job_store.begin("import_corpus", {"corpus": "july"}, by=manager))
    unit = {"unit": lease.unit.pk, "item": lease.unit.item.key}
    job = {"job": Job.objects.last().pk, "action": "close", "state": "cancelled", "corpus": ""}
    assert sent(webhook) == [
        ("question.asked", {"task": "task", "question": flag.pk, "kind": "question"} | unit),
        ("job.ended", {"task": "task"} | job),
    ]


def test_a_row_that_becomes_visible_after_a_later_one_is_sent_too(settled):
    task, webhook = settled(2)
    assert len(sent(webhook)) == 2
    Delivery.objects.order_by("pk").first().delete()  # as if its transaction had been committed only now
    assert len(sent(webhook)) == 2
    # After ten minutes, no earlier transaction is still running, so earlier transitions are not read again.
    last = task.units.get(position=2).transitions.last()
    for unit in task.units.all():
        unit.transitions.update(at=timezone.now() - timedelta(minutes=12))
    Webhook.objects.update(collected_at=timezone.now() - timedelta(hours=1))
    sent(webhook)
    webhook.refresh_from_db()
    assert webhook.seen == last.pk


def test_many_events_are_collected_one_part_after_another(settled, monkeypatch):
    _, webhook = settled(3)
    monkeypatch.setattr(webhook_outbox, "MOST", 2)
    assert (len(sent(webhook)), len(sent(webhook)), len(sent(webhook))) == (2, 3, 3)


def test_requests_are_signed_and_failures_are_repeated_later(settled, receiver):
    _, webhook = settled(2)
    sent(webhook)
    receiver.status = 302
    webhook_sender.send_due()
    webhook_sender.send_due()  # the webhook waits
    assert len(receiver.got) == 1
    first = Delivery.objects.order_by("pk").first()
    assert (first.tries, first.status, first.fault) == (1, 302, "The receiver answered with the status 302.")
    webhook.refresh_from_db()
    assert webhook.failures == 1
    assert webhook.waits_until > timezone.now()

    receiver.status = 200
    Webhook.objects.update(waits_until=timezone.now())
    webhook_sender.send_due()
    webhook.refresh_from_db()
    assert (len(receiver.got), webhook.failures, webhook.waits_until) == (3, 0, None)
    assert not Delivery.objects.pending().exists()
    for headers, body in receiver.got:
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        key = b64decode(webhook.secret.removeprefix("whsec_"))
        signature = b64encode(hmac.digest(key, signed, sha256)).decode()
        assert headers["webhook-signature"] == f"v1,{signature}"
        assert json.loads(body)["type"] == "item.settled"
    assert receiver.got[0][0]["webhook-id"] == receiver.got[1][0]["webhook-id"] != receiver.got[2][0]["webhook-id"]


def test_an_old_notification_is_given_up_after_it_has_failed(settled, receiver):
    _, webhook = settled()
    sent(webhook)
    Delivery.objects.update(at=timezone.now() - timedelta(days=4))
    receiver.shutdown()
    receiver.server_close()
    webhook_sender.send_due()
    delivery = Delivery.objects.get()
    assert (delivery.tries, delivery.status, delivery.fault) == (1, None, "The connection failed: Connection refused.")
    assert delivery.given_up_at


def test_a_notification_that_failed_is_sent_again_at_once_if_a_manager_wishes(desk, program, settled, receiver):
    _, webhook = settled()
    sent(webhook)
    address = f"/manage/webhooks/{webhook.pk}/"
    assert "Send again" not in desk.get(address).text  # it was not tried yet
    receiver.status = 500
    Delivery.objects.update(at=timezone.now() - timedelta(days=4))
    webhook_sender.send_due()
    delivery = Delivery.objects.get()
    assert delivery.given_up_at
    [action] = re.findall(r'action="([^"]+/again/)"', desk.get(address).text)
    page = desk.post(action, follow=True)
    assert "The notification will be sent within seconds." in page.text
    assert "The next one is about to begin." in page.text
    receiver.status = 204
    webhook_sender.send_due()
    delivery.refresh_from_db()
    assert (len(receiver.got), delivery.tries, delivery.given_up_at) == (2, 2, None)
    assert delivery.delivered_at
    assert "Send again" not in desk.get(address).text
    again = program.post(f"manage/webhooks/deliveries/{delivery.pk}/again/")
    assert (again.status_code, "has accepted this notification" in again.text) == (400, True)


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("https://127.0.0.1/", "The host 127.0.0.1 is in a private network"),
        ("https://localhost/", "The host localhost is in a private network"),
        ("https://[::ffff:10.0.0.1]/", "The host ::ffff:10.0.0.1 is in a private network"),
        ("https://169.254.169.254/latest/", "The host 169.254.169.254 is in a private network"),
        ("https://0/", "The host 0 is in a private network"),
        ("http://8.8.8.8/", "Notifications are sent by HTTPS only"),
        ("https://ann:secret@8.8.8.8/", "The URL contains a user name"),
        ("https://nowhere.invalid/", "The host nowhere.invalid cannot be found."),
        ("ftp://8.8.8.8/", "'ftp://8.8.8.8/' is not a URL"),
        ("https://8.8.8.8:99999/", "'https://8.8.8.8:99999/' is not a URL"),
        ("https://8.8.8.8/\r\nX: y", "is not a URL"),
    ],
)
def test_nothing_is_sent_into_a_private_network_or_without_encryption(url, sentence):
    with pytest.raises(InvalidAnswer) as refused:
        check_address(url)
    assert sentence in str(refused.value)


def test_a_host_that_moves_into_a_private_network_is_not_reached(settled, receiver, settings):
    _, webhook = settled()
    sent(webhook)
    Webhook.objects.update(url=receiver.url.replace("http:", "https:"))
    settings.WEBHOOK_HOSTS = []
    webhook_sender.send_due()
    assert receiver.got == []
    assert "private network" in Delivery.objects.get().fault
    assert (_is_public("8.8.8.8"), _is_public("224.0.0.1"), _is_public("fe80::1%eth0")) == (True, False, False)


def test_a_page_registers_a_webhook_shows_its_secret_once_and_lists_what_was_sent(desk, make_task, person, receiver):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    assert "No webhooks yet" in desk.get("/manage/webhooks/").text
    for wrong, sentence in (
        ({"url": "https://127.0.0.1/", "event": "item.settled"}, "The host 127.0.0.1 is in a private network"),
        ({"url": receiver.url}, "Choose at least one event."),
    ):
        page = desk.post("/manage/webhooks/new/", wrong)
        assert (page.status_code, sentence in page.text) == (400, True)
    page = desk.post("/manage/webhooks/new/", {"url": receiver.url, "event": "item.settled", "task": "task"})
    webhook = Webhook.objects.get()
    assert (webhook.events, webhook.task, webhook.secret in page.text) == (["item.settled"], task, True)
    say(ann, task, "de")
    sent(webhook)
    receiver.status = 500
    webhook_sender.send_due()
    listed, shown = desk.get("/manage/webhooks/").text, desk.get(f"/manage/webhooks/{webhook.pk}/").text
    assert f'href="/manage/webhooks/{webhook.pk}/"' in listed
    assert "The receiver answered with the status 500." in shown
    assert "The last 1 attempt failed." in shown
    assert webhook.secret not in listed + shown
    desk.post(f"/manage/webhooks/{webhook.pk}/delete/")
    assert not Webhook.objects.exists()


@pytest.mark.slow
def test_the_job_watcher_sends_while_there_are_webhooks(
    transactional_db, make_task, person, manager, receiver, monkeypatch
):
    monkeypatch.setenv("DATABASE_URL", database_url())
    monkeypatch.setenv("ASSAY_WEBHOOK_HOSTS", "localhost")
    task, ann = make_task([DISPUTED]), person("ann", "de")
    watcher = subprocess.Popen(
        job_worker.watcher_command("alone"), env=job_worker.environment(), stdin=subprocess.DEVNULL
    )
    try:
        webhook = webhook_outbox.register(receiver.url, manager)
        say(ann, task, "de")
        until(lambda: len(receiver.got) == 2)
        job_worker.start("close", {"task": "task"}, by=manager)
        until(lambda: len(receiver.got) == 3)
        events = [json.loads(body)["type"] for _, body in receiver.got]
        assert events == ["item.settled", "task.finished", "job.ended"]
        webhook.delete()
        until(lambda: not webhook_outbox.flag_file().exists())
    finally:
        watcher.terminate()
        assert watcher.wait() == 0


def test_managers_register_list_and_delete_webhooks(program, make_task, person, receiver):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    registered = program.post("manage/webhooks/new/", url=receiver.url, events=["item.settled"], task="task")
    assert registered.status_code == 201
    secret = registered.json()["secret"]
    assert secret.startswith("whsec_")
    (listed,) = program.get("manage/webhooks/").json()
    assert listed == {name: value for name, value in registered.json().items() if name != "secret"}
    say(ann, task, "de")
    sent(Webhook.objects.get())
    webhook_sender.send_due()
    (delivery,) = program.get(f"manage/webhooks/{listed['id']}/deliveries/").json()
    assert (delivery["event"], delivery["status"], delivery["tries"]) == ("item.settled", 204, 1)
    assert delivery["body"]["data"]["label"] == "de"
    assert secret not in program.get("manage/webhooks/").text
    assert program.post(f"manage/webhooks/{listed['id']}/delete/").status_code == 204
    assert program.get("manage/webhooks/").json() == []

    for wrong in ({"url": "https://127.0.0.1/"}, {"url": receiver.url, "events": ["all"]}, {}):
        assert program.post("manage/webhooks/new/", **wrong).status_code == 400
    assert program.post("manage/webhooks/new/", url=receiver.url, task="none").status_code == 404
    as_ann = Program(Client(), ann)
    replies = as_ann.get("manage/webhooks/"), as_ann.post("manage/webhooks/new/", url=receiver.url)
    assert [reply.status_code for reply in replies] == [403, 403]
