"""Accounts of managers and annotators, and the links by which these set their password."""

import hashlib
import secrets
from collections.abc import Iterable
from datetime import timedelta

from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.core.refusals import InvalidAnswer, NotAllowed, NotFound
from annotate.models import Annotator, AnnotatorLanguage, Invite
from annotate.work.people_file import BadTable, Row, twin

INVITE_DAYS = 14
PASSWORD_BYTES = 12  # of chance in a password that is made here


@transaction.atomic
def add_annotators(rows: list[Row], by: User | None = None) -> list[tuple[Annotator, str | None]]:
    """Make or update the annotators; a new one gets an invite, returned as the token to put in a link.

    A row for an existing annotator replaces their languages and leaves their password as it is. NotAllowed if `by` may
    not change one of them; BadTable if a new user name differs from that of an account only in case.
    """
    _check_twins([row.username for row in rows])
    check_may_change(by, User.objects.filter(username__in=[row.username for row in rows]))
    made = []
    for row in rows:
        user, new = User.objects.get_or_create(username=row.username)
        if new:
            user.set_unusable_password()
        annotator = _annotator_of(user)
        _take_over(annotator, row)
        made.append((annotator, invite(annotator) if new else None))
    return made


@transaction.atomic
def change_annotator(annotator: Annotator, row: Row, by: User | None = None) -> None:
    """Give an annotator the name, the mail address, the languages and the part of the row, an empty name or address
    included. NotAllowed if `by` may not change them.
    """
    check_may_change(by, [annotator.user])
    # Two managers at once do not give them a language twice.
    annotator.one_at_a_time()
    annotator.user.first_name = annotator.user.last_name = annotator.user.email = ""
    _take_over(annotator, row)


def _check_twins(usernames: Iterable[str]) -> None:
    there = set(User.objects.values_list("username", flat=True))
    folded = {username.casefold(): username for username in there}  # databases fold few letters but A to Z
    twins = [(name, folded[name.casefold()]) for name in usernames if name not in there and name.casefold() in folded]
    if twins:
        raise BadTable(*(f"T{twin(*pair)[1:]}" for pair in twins))


def _annotator_of(user: User) -> Annotator:
    annotator, _ = Annotator.objects.get_or_create(user=user)
    annotator.user = user
    return annotator


def _take_over(annotator: Annotator, row: Row) -> None:
    """What the row says of the annotator; what it leaves empty stays, but for languages."""
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
    """Make an account that may do everything, or give an existing account the right to. A new account gets a password,
    which is returned and kept nowhere; an existing one keeps its own, and None is returned.
    """
    user, new = User.objects.get_or_create(username=username)
    user.is_staff = user.is_superuser = user.is_active = True
    password = secrets.token_urlsafe(PASSWORD_BYTES) if new else None
    if password:
        user.set_password(password)
    user.save()
    # Whoever made them did not make them for a manager's account.
    revoke_invites(Annotator.objects.filter(user=user))
    return user, password


def managers() -> QuerySet[User]:
    """Who may look at everything; what each may change is decided by the admin's permissions."""
    return User.objects.filter(is_staff=True, is_active=True)


def is_manager(user: User | AnonymousUser) -> bool:
    """Whether it is one of the managers."""
    return user.is_active and user.is_staff


def may_change_all(user: User) -> bool:
    return is_manager(user) and user.is_superuser


def may_change(by: User | None, user: User) -> bool:
    """Whether `by`, one of the managers, may rename this account, raise it, make links for it, pause it, let it in or
    lock it out; None stands for whoever has a shell on the server. Forms, tables and pages all ask here.

    What a manager who is no superuser could do to other managers they could do to gain their rights; and nobody gives
    rights to themselves.
    """
    if by is None or may_change_all(by):
        return True
    return not (user.is_staff or user.is_superuser or user == by)


def check_may_change(by: User | None, users: Iterable[User]) -> None:
    """NotAllowed if `by` may not change one of these accounts."""
    if protected := sorted(user.username for user in users if not may_change(by, user)):
        raise NotAllowed(
            f"Only a superuser may do this to managers and to themselves, here {', '.join(protected)}. Nothing was "
            "changed."
        )


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


def without_password(annotators: Iterable[Annotator]) -> list[Annotator]:
    """Those who may come in, and have set no password yet."""
    return [each for each in annotators if each.user.is_active and not each.user.has_usable_password()]


def find_invite(token: str) -> Invite:
    found = (
        Invite.objects.filter(digest=_digest(token), used_at=None, revoked_at=None, expires_at__gt=timezone.now())
        .filter(annotator__user__is_active=True)
        .select_related("annotator__user")
        .first()
    )
    if found is None:
        raise NotFound(
            _("This invitation has been used, has expired, or was withdrawn. Ask the manager for a new one.")
        )
    return found


@transaction.atomic
def accept_invite(token: str, password: str) -> User:
    """Set the password and use up the invite; if two people follow one link, the first one gets it."""
    found = find_invite(token)
    used = Invite.objects.filter(pk=found.pk, used_at=None).update(used_at=timezone.now())
    if not used:
        raise InvalidAnswer(_("This invitation has just been used."))
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
    """Let annotators in or lock them out; the sessions and tokens of those locked out stop working at once."""
    User.objects.filter(annotator__in=annotators).update(is_active=active)
