"""Links through which anybody can read a single report or card, until they expire or a manager withdraws them."""

import secrets
from datetime import timedelta

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone

from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.models import Job, Share
from annotate.work.accounts import token_digest

DAYS = 30  # default lifetime of a link (days)
MOST_DAYS = 365


def share(job: Job, path: str, by: User, days: int | None = DAYS) -> str:
    """Create a link to an output file of a job, and return its token. Only the token's hash is stored.

    path: path of the file in the job's output folder.
    days: number of days for which the link works.
    """
    if days is None or not 1 <= days <= MOST_DAYS:
        raise InvalidAnswer(f"A link works for 1 to {MOST_DAYS} days. Enter a number of days in this range.")
    token = secrets.token_urlsafe(32)
    job.shares.create(path=path, by=by, digest=token_digest(token), expires_at=timezone.now() + timedelta(days=days))
    return token


def open_shares(job: Job) -> QuerySet[Share]:
    """Return the links to a job's files that still work, newest first."""
    return _working().filter(job=job).select_related("by")


def find(token: str) -> Share | None:
    """Return the share to which a token belongs, or None if there is none or its link no longer works."""
    return _working().filter(digest=token_digest(token)).select_related("job").first()


def _working() -> QuerySet[Share]:
    return Share.objects.filter(withdrawn_at=None, expires_at__gt=timezone.now())


def withdraw(job: Job, number: int) -> None:
    """Make a link useless at once.

    number: primary key of the share.
    """
    if not open_shares(job).filter(pk=number).update(withdrawn_at=timezone.now()):
        raise NotFound("This link no longer works.")
