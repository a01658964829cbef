"""The process that sends notifications to webhooks. annotate/job_watcher.py runs it while there are webhooks.

Requests are signed according to Standard Webhooks (standardwebhooks.com), whose libraries can verify them. A receiver
accepts a notification with a status from 200 to 299. Otherwise, it is sent again after a delay that grows with each
failure, until GIVE_UP has passed. Notifications are delivered at least once, usually in the order of the events.
"""

import fcntl
import hmac
import os
import time
from base64 import b64decode, b64encode
from contextlib import suppress
from datetime import timedelta
from hashlib import sha256

from django.db import InterfaceError, OperationalError, close_old_connections
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from annotate.models import Delivery, Webhook
from annotate.work.job_store import jobs_folder
from annotate.work.webhook_address import NoReply, post
from annotate.work.webhook_outbox import PREFIX, collect, flag_file
from corpora.system import VERSION

EVERY = 2.0  # seconds between collections of events
AWAY = 10.0  # seconds before retrying an unavailable database
# Delays after the first, second, … failure in a row. The last one applies to all later failures.
WAITS = tuple(timedelta(minutes=minutes) for minutes in (0.5, 2, 10, 30, 120, 360))
GIVE_UP = timedelta(days=3)  # age of an event after which its failed notification is no longer sent
# Maximum number of notifications sent to one webhook before the next webhook's turn, and maximum time (seconds).
MOST, ROUND = 100, 60.0
LEASE = timedelta(minutes=5)  # how long a sender reserves a webhook; if the sender is killed, another one takes over


def run() -> None:
    """Send notifications until there are no webhooks or the parent process has exited.

    Only one sender of a data folder runs at a time.
    """
    parent = os.getppid()
    with (jobs_folder() / "sending").open("a") as lock, suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        while os.getppid() == parent and _step():
            pass


def _step() -> bool:
    """Collect and send notifications once, then sleep. Returns False if there are no webhooks."""
    try:
        close_old_connections()
        flag_file().unlink(missing_ok=True)
        webhooks = list(Webhook.objects.select_related("task"))
        if not webhooks:
            return False
        flag_file().touch()
        for webhook in webhooks:
            collect(webhook)
        send_due()
    except (OperationalError, InterfaceError):
        time.sleep(AWAY)
    time.sleep(EVERY)
    return True


def send_due() -> None:
    """Send the pending notifications of all webhooks whose delay has passed."""
    now = timezone.now()
    pending = Delivery.objects.pending().filter(webhook=OuterRef("pk")).order_by()
    for webhook in Webhook.objects.filter(Exists(pending)).filter(Q(waits_until=None) | Q(waits_until__lte=now)):
        # Another process may have reserved the webhook in the meantime.
        unchanged = Webhook.objects.filter(pk=webhook.pk, waits_until=webhook.waits_until)
        if unchanged.update(waits_until=now + LEASE):
            _send_all(webhook)


def _send_all(webhook: Webhook) -> None:
    """Send a webhook's pending notifications, until one fails or the time is up."""
    end, failures, waits_until = time.monotonic() + ROUND, webhook.failures, None
    for delivery in webhook.deliveries.pending()[:MOST]:
        if _send(webhook, delivery):
            failures = 0
        else:
            waits_until = timezone.now() + WAITS[min(failures, len(WAITS) - 1)]
            failures = min(failures + 1, 1000)
            break
        if time.monotonic() > end:
            break
    Webhook.objects.filter(pk=webhook.pk).update(failures=failures, waits_until=waits_until)


def _send(webhook: Webhook, delivery: Delivery) -> bool:
    """Send a notification, save the result, and return whether the receiver accepted it."""
    status, fault, body = None, "", delivery.body.encode()
    try:
        status = post(webhook.url, body, headers(webhook, delivery, body))
        if not 200 <= status < 300:
            fault = f"The receiver answered with the status {status}."
    except NoReply as error:
        fault = str(error)[:200]
    now = timezone.now()
    Delivery.objects.filter(pk=delivery.pk).update(
        tries=delivery.tries + 1,
        status=status,
        fault=fault,
        delivered_at=None if fault else now,
        given_up_at=now if fault and now - delivery.at > GIVE_UP else None,
    )
    return not fault


def headers(webhook: Webhook, delivery: Delivery, body: bytes) -> dict[str, str]:
    """Return a request's headers. The signature covers the notification's id, the time of the request and the body."""
    number, now = f"assay_{delivery.pk}", str(int(time.time()))
    key = b64decode(webhook.secret.removeprefix(PREFIX))
    signature = b64encode(hmac.digest(key, b".".join((number.encode(), now.encode(), body)), sha256)).decode()
    return {
        "Content-Type": "application/json",
        "User-Agent": f"Assay/{VERSION}",
        "webhook-id": number,
        "webhook-timestamp": now,
        "webhook-signature": f"v1,{signature}",
    }
