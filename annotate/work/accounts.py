"""Accounts of annotators, and the links by which they set their password."""

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.models import Annotator, AnnotatorLanguage, Invite
from annotate.work.people_file import Row

INVITE_DAYS = 14


@transaction.atomic
def add_annotators(rows: list[Row]) -> list[tuple[Annotator, str | None]]:
    """Make or update the annotators; a new one gets an invite, returned as the token to put in a link.

    A row replaces the languages of an annotator there is already, whose password stays as it is.
    """
    made = []
    for row in rows:
        user, new = User.objects.get_or_create(username=row.username)
        if row.name:
            user.first_name, _, user.last_name = row.name.partition(" ")
        if new:
            user.set_unusable_password()
        user.save()
        annotator, _ = Annotator.objects.get_or_create(user=user)
        if row.adjudicates is not None:
            annotator.adjudicates = row.adjudicates
            annotator.save(update_fields=["adjudicates"])
        annotator.languages.all().delete()
        AnnotatorLanguage.objects.bulk_create(
            AnnotatorLanguage(annotator=annotator, language=code, level=level) for code, level in row.levels.items()
        )
        made.append((annotator, invite(annotator) if new else None))
    return made


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


@transaction.atomic
def invite(annotator: Annotator) -> str:
    """A new link's token; links given out earlier stop working."""
    now = timezone.now()
    annotator.invites.filter(used_at=None, revoked_at=None).update(revoked_at=now)
    token = secrets.token_urlsafe(32)
    annotator.invites.create(digest=_digest(token), expires_at=now + timedelta(days=INVITE_DAYS))
    return token


def find_invite(token: str) -> Invite:
    found = (
        Invite.objects.filter(digest=_digest(token), used_at=None, revoked_at=None, expires_at__gt=timezone.now())
        .filter(annotator__user__is_active=True)
        .select_related("annotator__user")
        .first()
    )
    if found is None:
        raise NotFound("This invitation has been used, has expired, or was withdrawn. Ask the manager for a new one.")
    return found


@transaction.atomic
def accept_invite(token: str, password: str) -> User:
    """Set the password and use the invite up; of two people with one link, the first has it."""
    found = find_invite(token)
    used = Invite.objects.filter(pk=found.pk, used_at=None).update(used_at=timezone.now())
    if not used:
        raise InvalidAnswer("This invitation has just been used.")
    user = found.annotator.user
    user.set_password(password)
    user.save(update_fields=["password"])
    return user


def revoke_invites(annotators) -> int:
    """Withdraw the links of these annotators that still work. Returns how many there were."""
    now = timezone.now()
    working = Invite.objects.filter(annotator__in=annotators, used_at=None, revoked_at=None, expires_at__gt=now)
    return working.update(revoked_at=now)


def set_active(annotators, active: bool) -> None:
    """Let annotators in or lock them out; locked out, their sessions and tokens stop working at once."""
    User.objects.filter(annotator__in=annotators).update(is_active=active)
