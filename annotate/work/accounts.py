"""Accounts of annotators: many at once from a table, and the links by which they set their password."""

import csv
import hashlib
import io
import re
import secrets
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.models import Annotator, AnnotatorLanguage, Invite
from corpora.core.languages import LANGUAGES

INVITE_DAYS = 14
COLUMNS = ("username", "name", "languages")
ANSWERS = {"": False, "no": False, "yes": True}


@dataclass(frozen=True)
class Row:
    username: str
    name: str
    levels: dict[str, int]
    # None where the table does not say: then an adjudicator stays one.
    adjudicates: bool | None = None


class BadTable(ValueError):
    """The table of annotators cannot be taken; args are its faults, a sentence each. Nothing was changed."""


def read_table(text: str) -> list[Row]:
    """Rows of a CSV with the columns username, name, languages, the last like "de:5 en:4" (no level: 5, native).

    A column adjudicates, yes or no, may be there besides. Raises BadTable with every fault at once.
    """
    csv.field_size_limit(131_072)  # the limit is the process's, and an import may have raised it
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    rows, faults, usernames = [], [], set()
    try:
        if any(column not in (reader.fieldnames or ()) for column in COLUMNS):
            named = ", ".join(reader.fieldnames or ()) or "none"
            raise BadTable(f"The first line must name the columns {', '.join(COLUMNS)}; it names {named}.")
        for cells in reader:
            row, wrong = _read_row(cells, usernames)
            rows.append(row)
            usernames.add(row.username)
            faults += [f"Line {reader.line_num}: {fault}" for fault in wrong]
    except csv.Error as error:
        raise BadTable(*faults, f"Line {reader.line_num + 1}: this is not CSV: {error}.") from error
    if not rows:
        faults.append("The table has no rows.")
    if faults:
        raise BadTable(*faults)
    return rows


def _read_row(cells: dict, taken: set[str]) -> tuple[Row, list[str]]:
    """One person, and what is wrong with the line."""
    faults = []
    # As Django's login form normalises what is typed there.
    username = User.normalize_username((cells["username"] or "").strip())
    try:
        UnicodeUsernameValidator()(username)
        if len(username) > 150 or username in taken:
            raise ValidationError("twice")
    except ValidationError:
        faults.append(f"{username!r} is not a user name (letters, digits and @.+-_), or stands here twice.")
    name = (cells["name"] or "").strip()
    if len(name) > 150 or not name.isprintable():
        faults.append("the name is longer than 150 characters, or has some that cannot be seen.")
    if None in cells:
        faults.append("there are more cells than columns; separate languages by spaces, or quote them.")
    levels = {}
    for word in re.split(r"[\s;,]+", (cells["languages"] or "").strip(" ;,")):
        code, _, level = word.partition(":")
        if not word:
            continue
        elif code not in LANGUAGES:
            faults.append(f"{code!r} is not a language code known here; write it as in de:5 or zh-CN:5.")
        elif finer := LANGUAGES[code].labels:
            faults.append(f"{code!r} stands for several labels; name those that the person reads: {', '.join(finer)}.")
        elif level not in ("", "0", "1", "2", "3", "4", "5"):
            faults.append(f"{word!r} has no level from 0 to 5.")
        elif code in levels:
            faults.append(f"{code!r} is named twice.")
        else:
            levels[code] = int(level or 5)
    answer = cells.get("adjudicates")
    if answer is not None and answer.strip().lower() not in ANSWERS:
        faults.append(f"adjudicates is {answer!r}; write yes or no.")
    elif not levels and not faults and not ANSWERS.get((answer or "").strip().lower()):
        faults.append("no language is named; write them as in de:5 en:4.")
    return Row(username, name, levels, None if answer is None else ANSWERS.get(answer.strip().lower())), faults


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
