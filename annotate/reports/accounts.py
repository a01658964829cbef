"""Who there is, in a table for the manager's page: annotators with what they read, and how they come in."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from django.utils import timezone

from annotate.reports.numbers import NOT_MEASURED
from annotate.reports.tables import SENTENCE, SHORT, Cell, Column, Table, table, when


def accounts_table(annotators: Iterable[Any], address: Callable[[int], str], now: datetime, asked: str = "") -> Table:
    """annotators: with their account, languages and invites. address: of the page of one, by the key."""
    columns = (
        Column("username", "user name", SHORT, lambda one: _named(one, address(one.pk))),
        Column("name", "name", SENTENCE, lambda one: one.user.get_full_name()),
        Column("reads", "reads", SENTENCE, lambda one: " ".join(map(str, one.languages.all())) or NOT_MEASURED),
        Column("adjudicates", "adjudicates", SHORT, lambda one: "yes" if one.adjudicates else "no"),
        Column("state", "account", SENTENCE, lambda one: account_state(one, now)),
        Column("last", "last log-in", SHORT, lambda one: when(one.user.last_login)),
    )
    return table("Annotators", columns, annotators, slug="accounts", asked=asked)


def _named(one: Any, url: str) -> Cell:
    return Cell(one.user.username, one.user.username, url=url, note="manager" if one.user.is_staff else "")


def account_state(annotator: Any, now: datetime) -> str:
    """How the person comes in, in a few words."""
    if not annotator.user.is_active:
        return "locked out"
    if annotator.user.has_usable_password():
        return "has a password"
    invite = next(iter(annotator.invites.all()), None)
    if invite is None:
        return "no link yet"
    if invite.used_at or invite.revoked_at:
        return "the link was withdrawn" if invite.revoked_at else "the link was used"
    day = f"{timezone.localtime(invite.expires_at):%Y-%m-%d}"
    return f"invited, the link works until {day}" if invite.expires_at > now else f"the link expired on {day}"


def managers_table(users: Iterable[Any], asked: str = "") -> Table:
    columns = (
        Column("username", "user name", SHORT),
        Column("name", "name", SENTENCE),
        Column("rights", "may change", SENTENCE, lambda row: "everything" if row["all"] else row["rights"]),
        Column("last", "last log-in", SHORT, lambda row: when(row["last"])),
    )
    rows = [
        {
            "username": user.username,
            "name": user.get_full_name(),
            "all": user.is_superuser,
            "rights": "what the admin gives them",
            "last": user.last_login,
        }
        for user in users
    ]
    return table("Managers", columns, rows, slug="managers", asked=asked)
