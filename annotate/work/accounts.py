"""Manager and annotator accounts: passwords, invitations, preferences and language requests."""

import hashlib
import os
import secrets
import time
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from axes.helpers import get_cool_off
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db import IntegrityError, transaction
from django.db.models import Max, QuerySet, Sum
from django.utils import timezone
from django.utils.translation import gettext as _
from knox.models import AuthToken

from annotate.core.refusals import InvalidAnswer, NotAllowed, NotFound
from annotate.kinds.interface_language import label_name
from annotate.models import Annotator, AnnotatorLanguage, Invite, LanguageRequest, Preferences
from annotate.work.people_file import BadTable, Row, case_clash
from annotate.work.routes import is_language

INVITE_DAYS = 14
FIRST_MANAGER_HOURS = 24
PASSWORD_BYTES = 12  # random bytes of a generated password


@transaction.atomic
def add_annotators(rows: list[Row], by: User | None = None) -> list[tuple[Annotator, str | None]]:
    """Create or update annotators, and invite the new ones.

    A row for an existing annotator replaces their languages and keeps their password.

    rows: the annotators.
    by: manager who adds them; None for the command line.

    Returns (annotator, token) pairs. The token belongs to the invitation link. It is None for an existing annotator.

    Raise NotAllowed if `by` isn't allowed to change one of the annotators, and BadTable if a new user name differs from
    an existing name only in case.
    """
    names = [row.username for row in rows]
    existing = set(User.objects.values_list("username", flat=True))
    folded = {username.casefold(): username for username in existing}  # SQLite ignores case only for ASCII letters
    clashes = [(name, folded[name.casefold()]) for name in names if name not in existing and name.casefold() in folded]
    if clashes:
        raise BadTable(*(f"T{case_clash(*pair)[1:]}" for pair in clashes))
    check_may_change(by, User.objects.filter(username__in=names))
    created = []
    for row in rows:
        user, new = User.objects.get_or_create(username=row.username)
        if new:
            user.set_unusable_password()
        annotator, _ = Annotator.objects.get_or_create(user=user)
        annotator.user = user
        _apply_row(annotator, row)
        created.append((annotator, invite(annotator) if new else None))
    return created


@transaction.atomic
def change_annotator(annotator: Annotator, row: Row, by: User | None = None) -> None:
    """Replace an annotator's name, email address, languages and role with a row's values, including empty ones.

    Raise NotAllowed if `by` isn't allowed to change the annotator.
    """
    check_may_change(by, [annotator.user])
    # Without this lock, two managers could add the same language at the same time.
    annotator.lock()
    annotator.user.first_name = annotator.user.last_name = annotator.user.email = ""
    _apply_row(annotator, row)


def _apply_row(annotator: Annotator, row: Row) -> None:
    """Store a row's values. An empty value leaves the stored value unchanged. The languages are always replaced."""
    user = annotator.user
    if row.name:
        user.first_name, _, user.last_name = row.name.partition(" ")
    if row.email:
        user.email = row.email
    user.save()
    if row.adjudicates is not None:
        annotator.adjudicates = row.adjudicates
        annotator.save(update_fields=["adjudicates"])
    annotator.languages.all().delete()
    AnnotatorLanguage.objects.bulk_create(
        AnnotatorLanguage(annotator=annotator, language=code, level=level) for code, level in row.levels.items()
    )


@transaction.atomic
def add_manager(username: str) -> tuple[User, str | None]:
    """Create a superuser, or make an existing account a superuser.

    Returns the user and a generated password. Show the password now, because only its hash is stored. An existing
    account keeps its old password, so None is returned in place of a new one.
    """
    user, new = User.objects.get_or_create(username=username)
    user.is_staff = user.is_superuser = user.is_active = True
    password = secrets.token_urlsafe(PASSWORD_BYTES) if new else None
    if password:
        user.set_password(password)
    user.save()
    # Open invitations were issued for an annotator's account, so they must not give access to a manager's.
    revoke_invites(Annotator.objects.filter(user=user))
    return user, password


# The first manager follows a link printed by `serve`, so only the person who runs the server can create this account. A
# file in the data folder contains the digest of the link's token. Using the link deletes the file, so it works once.


def _first_manager_file() -> Path:
    return Path(settings.DATA_DIR) / "first-manager"


def invite_first_manager() -> str:
    """Create the link for the first manager and return its token. Any earlier link stops working."""
    token = secrets.token_urlsafe(32)
    path = _first_manager_file()
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(token_digest(token))
    return token


def check_first_manager(token: str) -> None:
    """Raise NotFound unless the token is valid and there is no manager yet."""
    path = _first_manager_file()
    try:
        digest, age = path.read_text(), time.time() - path.stat().st_mtime
    except FileNotFoundError:
        digest, age = "", 0.0
    is_valid = secrets.compare_digest(digest, token_digest(token)) and age < FIRST_MANAGER_HOURS * 3600
    if not is_valid or managers().exists():
        raise NotFound(_("This link has been used or has expired. Restart the server to get a new one, or log in."))


@transaction.atomic
def create_first_manager(token: str, username: str, password: str) -> User:
    """Create the first manager's account. The link works once, even if two people follow it at the same time."""
    check_first_manager(token)
    user = User.objects.create_superuser(username, password=password)
    try:
        _first_manager_file().unlink()
    except FileNotFoundError:
        raise InvalidAnswer(_("This link has just been used.")) from None
    return user


def managers() -> QuerySet[User]:
    """Return the active managers. All of them can see everything. Django's permissions limit what each can change."""
    return User.objects.filter(is_staff=True, is_active=True)


def is_manager(user: User | AnonymousUser) -> bool:
    """Return whether a user is an active manager."""
    return user.is_active and user.is_staff


def may_change_all(user: User | AnonymousUser) -> bool:
    return is_manager(user) and user.is_superuser


def may_change(by: User | AnonymousUser | None, user: User) -> bool:
    """Return whether `by` is allowed to edit, promote, invite, pause, activate or deactivate an account.

    All forms and pages check this. Managers who aren't superusers can't change other managers' accounts or their own.
    Otherwise, they could give themselves more rights.

    by: the manager; None for the command line.
    user: the account to change.
    """
    if by is None or may_change_all(by):
        return True
    return not (user.is_staff or user.is_superuser or user == by)


def check_may_change(by: User | None, users: Iterable[User]) -> None:
    """Raise NotAllowed if `by` isn't allowed to change one of these accounts."""
    if protected := sorted(user.username for user in users if not may_change(by, user)):
        raise NotAllowed(
            f"Only superusers can change managers' accounts or their own: {', '.join(protected)}. Nothing was changed."
        )


def token_digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


@transaction.atomic
def invite(annotator: Annotator) -> str:
    """Create an invitation and return its token. The annotator's earlier links stop working."""
    now = timezone.now()
    annotator.invites.filter(used_at=None, revoked_at=None).update(revoked_at=now)
    token = secrets.token_urlsafe(32)
    annotator.invites.create(digest=token_digest(token), expires_at=now + timedelta(days=INVITE_DAYS))
    return token


def without_password(annotators: Iterable[Annotator]) -> list[Annotator]:
    """Return the active annotators who have not set a password yet."""
    return [
        annotator for annotator in annotators if annotator.user.is_active and not annotator.user.has_usable_password()
    ]


def find_invite(token: str) -> Invite:
    valid = Invite.objects.filter(used_at=None, revoked_at=None, expires_at__gt=timezone.now())
    valid = valid.filter(digest=token_digest(token), annotator__user__is_active=True)
    if not (invitation := valid.select_related("annotator__user").first()):
        raise NotFound(_("This invitation has been used, has expired, or was revoked. Ask the manager for a new one."))
    return invitation


@transaction.atomic
def accept_invite(token: str, password: str) -> User:
    """Set the password of the invited account. The invitation works only once, even for simultaneous requests."""
    invitation = find_invite(token)
    used = Invite.objects.filter(pk=invitation.pk, used_at=None).update(used_at=timezone.now())
    if not used:
        raise InvalidAnswer(_("This invitation has just been used."))
    user = invitation.annotator.user
    user.set_password(password)
    user.save(update_fields=["password"])
    return user


def revoke_invites(annotators: Iterable[Annotator]) -> int:
    """Revoke the valid invitations of these annotators. Returns the number of invitations revoked."""
    now = timezone.now()
    valid = Invite.objects.filter(annotator__in=annotators, used_at=None, revoked_at=None, expires_at__gt=now)
    return valid.update(revoked_at=now)


def set_active(annotators: Iterable[Annotator], active: bool) -> None:
    """Activate or deactivate annotators. Deactivation ends their sessions and API tokens at once."""
    User.objects.filter(annotator__in=annotators).update(is_active=active)


# --- passwords: side effects of a password change, and lockout after failed logins
#
# django-axes counts failed logins by user name and IP address. deploy/settings.py sets the limits.


class RevokeOnPasswordChange:
    """Revokes an account's API tokens and invitations whenever its password changes.

    This is a password validator because Django notifies validators of every new password. Sessions need not be revoked:
    each contains a hash of the password, so it ends when the password changes.
    """

    def validate(self, password: str, user: User | None = None) -> None:
        """Accept every password."""

    def get_help_text(self) -> str:
        return _("A new password ends the account’s other sessions, and revokes its API tokens and password links.")

    def password_changed(self, password: str, user: User) -> None:
        AuthToken.objects.filter(user=user).delete()
        Invite.objects.filter(annotator__user=user, used_at=None, revoked_at=None).update(revoked_at=timezone.now())
        unlock(user.username)


def count_failed_logins(username: str) -> int:
    """Count the recent failed logins for a user name, across all IP addresses."""
    attempts = AccessAttempt.objects.filter(username=username)
    return attempts.aggregate(total=Sum("failures_since_start"))["total"] or 0


def unlock(username: str) -> int:
    """Lift a user name's lockout at all addresses. Returns the number of failed logins that were cleared."""
    number = count_failed_logins(username)
    AccessAttempt.objects.filter(username=username).delete()
    return number


def locked_until(username: str, address: str | None) -> datetime:
    """Return when a locked-out user name can log in again from this IP address."""
    attempts = AccessAttempt.objects.filter(username=username, ip_address=address)
    last = attempts.aggregate(last=Max("attempt_time"))["last"] or timezone.now()
    until: datetime = last + get_cool_off()
    return until


# --- preferences and language requests
#
# Annotators can't add languages themselves, because languages determine which work is assigned to them. They request a
# language, and a manager grants or refuses the request.


FIELDS = ("text_size", "theme", "keys", "time_zone", "language", "goal")
LEVELS = range(1, 6)
MESSAGE_LENGTH = LanguageRequest._meta.get_field("words").max_length or 0


def preferences_of(user: User) -> dict[str, Any]:
    """Return a user's value for each field in FIELDS, with defaults for preferences that are not set."""
    preferences = Preferences.objects.filter(user=user).first() or Preferences(user=user)
    return {name: getattr(preferences, name) for name in FIELDS}


def set_preferences(user: User, values: Mapping[str, Any]) -> dict[str, Any]:
    """Store a user's preferences and return them.

    values: a validated value for each field in FIELDS.
    """
    Preferences.objects.update_or_create(user=user, defaults={name: values[name] for name in FIELDS})
    return preferences_of(user)


# --- languages


def request_language(annotator: Annotator, language: str, level: int | None, message: str = "") -> LanguageRequest:
    """Request that a manager add a language to an annotator's languages.

    level: self-assessed reading level, 1 to 5 (native).
    message: optional message to the managers.

    Raise InvalidAnswer if the language or level does not exist, if the annotator already reads the language at this
    level, or if a request for it is pending.
    """
    if not is_language(language):
        raise InvalidAnswer(_("Choose a language from the list."))
    if level is None or level not in LEVELS:
        raise InvalidAnswer(_("Enter how well you read the language, from 1 (a little) to 5 (native)."))
    message = message.strip()
    if len(message) > MESSAGE_LENGTH or "\x00" in message:
        raise InvalidAnswer(
            _("The message is longer than %(most)s characters. Please shorten it.") % {"most": MESSAGE_LENGTH}
        )
    if annotator.languages.filter(language=language, level__gte=level).exists():
        raise InvalidAnswer(_("%(language)s is already one of your languages.") % {"language": label_name(language)})
    try:
        with transaction.atomic():
            return LanguageRequest.objects.create(
                annotator=annotator, language=language, level=level, words=message, asked_at=timezone.now()
            )
    except IntegrityError as error:
        raise InvalidAnswer(
            _("You have already requested %(language)s, and no manager has decided yet.")
            % {"language": label_name(language)}
        ) from error


def pending_requests() -> QuerySet[LanguageRequest]:
    """Return pending requests, oldest first."""
    return LanguageRequest.objects.filter(outcome="").select_related("annotator__user").order_by("pk")


@transaction.atomic
def grant(request_id: int, by: User, level: int | None = None) -> LanguageRequest:
    """Add the requested language to the annotator's languages.

    level: level to grant; None for the requested level.
    """
    request = _store_decision(request_id, by, LanguageRequest.GRANTED)
    if level is not None and level not in LEVELS:
        raise InvalidAnswer("The level must be a number from 1 to 5.")
    AnnotatorLanguage.objects.update_or_create(
        annotator=request.annotator, language=request.language, defaults={"level": level or request.level}
    )
    return request


def refuse(request_id: int, by: User) -> LanguageRequest:
    """Refuse a language request. The annotator may submit a new one."""
    return _store_decision(request_id, by, LanguageRequest.REFUSED)


@transaction.atomic
def _store_decision(request_id: int, by: User, outcome: str) -> LanguageRequest:
    """Store a manager's decision on a request.

    Raise NotAllowed if `by` isn't allowed to change the account, and NotFound if the request is no longer pending.
    """
    request = pending_requests().select_for_update(of=("self",)).filter(pk=request_id).first()
    if request is None:
        raise NotFound("This request has already been decided.")
    check_may_change(by, [request.annotator.user])
    request.outcome, request.decided_at, request.decided_by = outcome, timezone.now(), by
    request.save(update_fields=["outcome", "decided_at", "decided_by"])
    return request
