"""The actions for annotators' and managers' accounts, API tokens and locked logins, and mail to users."""

import logging
import smtplib
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.mail import send_mail
from django.template.loader import render_to_string
from django.urls import reverse
from knox.models import AuthToken

from annotate.actions.action import (
    FILE,
    LANGUAGES,
    ActionError,
    Outcome,
    Progress,
    Values,
    action,
    address,
    address_note,
    reading_note,
)
from annotate.core.option import Option, flag
from annotate.models import Annotator, Flag
from annotate.reports.tables import many
from annotate.work.accounts import (
    INVITE_DAYS,
    add_annotators,
    add_manager,
    invite,
    may_change_all,
    unlock,
    without_password,
)
from annotate.work.people_file import BadTable, Row, read_table
from corpora.core.languages import add_languages
from corpora.core.values import Respelled

# --- Mail. It never contains an item's text. Nothing depends on it, because the site also shows invitation links and
# replies.

logger = logging.getLogger(__name__)

# Results of sending a mail. NONE: the site has no mail server, or the user has no address. SENT: the mail was sent.
# FAILED: it could not be sent. REFUSED: the mail server rejected the address.
NONE, SENT, FAILED, REFUSED = "none", "sent", "failed", "refused"
OUTCOMES = {
    SENT: "Sent by mail to {names}.",
    REFUSED: (
        "The mail server rejected the addresses of {names}, so no mail was sent. Correct the addresses, or send the "
        "links in another way."
    ),
    FAILED: "The mail to {names} could not be sent. Their links are valid; send them in another way.",
}


def mail_invitations(links: Iterable[tuple[User, str]]) -> dict[str, str]:
    """Mail invitation links. Return a mapping from user name to the result (NONE, SENT, FAILED or REFUSED).

    If the mail server cannot be reached, the remaining mails are not sent.

    links: (user, link) tuples
    """
    results: dict[str, str] = {}
    for user, link in links:
        if FAILED in results.values():
            results[user.username] = FAILED if _has_mail(user) else NONE
        else:
            results[user.username] = _send(user, "invite_mail", {"link": link, "days": INVITE_DAYS})
    return results


def mail_summary(results: Mapping[str, str]) -> list[str]:
    """Describe the results of invitation mails in sentences. The list is empty if sending was not attempted.

    results: mapping from user name to result
    """
    names = {outcome: ", ".join(name for name, result in results.items() if result == outcome) for outcome in OUTCOMES}
    return [sentence.format(names=names[outcome]) for outcome, sentence in OUTCOMES.items() if names[outcome]]


def mail_reply(flag: Flag) -> str:
    """Tell an annotator by mail that a manager has replied to their flag. Return the result, such as SENT.

    The mail links to the reply instead of containing it, because the reply may quote the item.
    """
    return _send(flag.annotator.user, "reply_mail", {"task": flag.unit.task})


def _has_mail(user: User) -> bool:
    return bool(settings.MAIL and user.email)


def _send(user: User, template: str, context: dict[str, Any]) -> str:
    if not _has_mail(user):
        return NONE
    context = {**context, "user": user, "site": settings.SITE}
    subject = render_to_string(f"annotate/{template}_subject.txt", context).strip()
    try:
        send_mail(subject, render_to_string(f"annotate/{template}.txt", context), None, [user.email])
    # An invalid domain raises UnicodeError, a subclass of ValueError. An invalid header raises ValueError.
    except (ValueError, smtplib.SMTPRecipientsRefused, smtplib.SMTPNotSupportedError):
        logger.exception("The mail address of %s was refused.", user.username)
        return REFUSED
    except OSError:  # includes smtplib's exceptions
        logger.exception("A mail to %s could not be sent.", user.username)
        return FAILED
    return SENT


# --- Annotators


@action(
    "add_annotators",
    "Create annotators from a table with the columns username, name, languages (such as de:5 en:4) and, "
    "optionally, adjudicates (yes) and email, the address for login links and password resets. For existing "
    "annotators, the languages in the file replace all of their languages.",
    FILE,
    Option("site", address, shown="URL", help="the address of the site in the links, instead of ASSAY_SITE"),
    Option(
        "again",
        flag,
        False,
        help="also print new links for people in the file who have not set a password yet. Their old links stop "
        "working",
    ),
    LANGUAGES,
)
def add_annotators_action(values: Values, progress: Progress) -> Outcome:
    if values["languages"]:
        add_languages(values["languages"])
    file = values["file"]
    try:
        rows = read_table(file)
        languages_before = _languages(rows)
        accounts = add_annotators(rows)
    except BadTable as error:
        raise ActionError("\n".join([*error.args, "Nothing was changed."])) from error
    converted = Respelled()
    for pair in chain.from_iterable(row.converted.items() for row in rows):
        converted.note(*pair)
    tokens = {annotator.user.username: token for annotator, token in accounts if token}
    updated = [annotator for annotator, token in accounts if not token]
    invited = without_password(updated)
    sentences = [f"{many(len(tokens), 'annotator')} created, {len(updated):,} updated."]
    if values["again"]:
        tokens |= {annotator.user.username: invite(annotator) for annotator in invited}
    site = values["site"] or settings.SITE
    links = {name: f"{site}{reverse('invite', args=[token])}" for name, token in tokens.items()}
    mail_results = mail_invitations(
        (user, links[user.username]) for user in (annotator.user for annotator, _ in accounts) if user.username in links
    )
    if links:
        sentences.append(
            f"Each link can be used once within {INVITE_DAYS} days to set a password. The links are shown only here; "
            "--again creates new ones."
        )
        if settings.SITE_ASSUMED and not values["site"]:
            sentences.append(
                f"If the address of the site is not {settings.SITE}, run the command with --again --site URL."
            )
    lines = [f"{name}\t{link}" for name, link in links.items()]
    data = {"links": links, "updated": [annotator.user.username for annotator in updated], "mailed": mail_results}
    return Outcome(
        [*lines, " ".join([*sentences, *mail_summary(mail_results)])],
        [
            *reading_note(file, None),
            *converted.sentences("language", "converted"),
            *_language_changes(languages_before, _languages(rows)),
            *_update_notes(updated, invited, links),
        ],
        data,
    )


def _languages(rows: Iterable[Row]) -> dict[str, str]:
    """Return a mapping from user name to languages with levels, such as "de:5 en:4".

    People in the rows who aren't annotators yet are left out.
    """
    people = Annotator.objects.filter(user__username__in=[row.username for row in rows])
    people = people.select_related("user").prefetch_related("languages").order_by("user__username")
    return {person.user.username: " ".join(map(str, person.languages.all())) or "none" for person in people}


def _language_changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return a line for each annotator whose languages changed.

    before, after: mappings from user name to languages
    """
    return [f"Languages of {name}: {old} → {after[name]}." for name, old in before.items() if after[name] != old]


def _update_notes(updated: list[Annotator], invited: list[Annotator], links: Mapping[str, str]) -> list[str]:
    """Return sentences about the annotators in the file who already had an account.

    updated: the annotators who already had an account
    invited: the annotators in `updated` who have not set a password yet
    links: mapping from user name to new invitation link
    """
    groups = {
        "Names and languages updated: {}.": updated,
        "Adjudicators among the updated annotators: {}.": [annotator for annotator in updated if annotator.adjudicates],
        "No password yet: {}. To print new links, use --again.": [
            annotator for annotator in invited if annotator.user.username not in links
        ],
        "Passwords unchanged: {}. If somebody has lost their password, create a new link on the page People.": [
            annotator for annotator in updated if annotator.user.has_usable_password()
        ],
    }
    return [
        words.format(", ".join(annotator.user.username for annotator in people))
        for words, people in groups.items()
        if people
    ]


# --- Managers

UNDO_HINT = (
    "To undo this, open the account in the admin under Users, and clear the checkboxes “Staff status” and “Superuser "
    "status”."
)


def _confirmation(values: Values) -> list[str]:
    """Return sentences that the user must confirm before an existing account becomes a manager's.

    The list is empty if the account does not exist or already has a manager's rights.
    """
    name = values["name"]
    user = User.objects.filter(username=name).first()
    if not user or may_change_all(user):
        return []
    locked = "" if user.is_active else " The account is locked; this unlocks it."
    return [
        f"The account {name} already exists. As a manager, it can see and change everything: corpora, tasks, people, "
        f"votes and answers.{locked} {UNDO_HINT}"
    ]


@action(
    "add_manager",
    "Create an account for a manager of corpora, tasks and people, and print its password. If the account already "
    "exists, the command asks for confirmation and makes it a manager's account.",
    Option("name", required=True, argument=True, help="the user name for the login"),
    asks=_confirmation,
)
def add_manager_action(values: Values, progress: Progress) -> Outcome:
    name = values["name"]
    try:
        User._meta.get_field("username").clean(name, None)
    except ValidationError as error:
        raise ActionError(
            f"{name!r} is not a valid user name. Use at most 150 letters, digits and the characters @ . + - _"
        ) from error
    _, password = add_manager(name)
    data = {"name": name, "password": password}
    sentence = f"Log in at {settings.SITE}/{address_note()} with the password  {password}  (shown only here)."
    if password is None:
        sentence = f"The password is unchanged; to change it, run `assay django changepassword {name}`. {UNDO_HINT}"
    return Outcome([f"{name} is a manager. {sentence}"], data=data)


# --- API tokens


@action(
    "create_token",
    "Create an API token for an account and print it. Only its hash is stored. The token is valid for 90 days, or "
    "until the password changes. The owner can renew it on the account page.",
    Option("username", required=True, argument=True, help="the user name of the account"),
)
def create_token_action(values: Values, progress: Progress) -> Outcome:
    name = values["username"]
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None:
        raise ActionError(f"There is no active account {name!r}.")
    instance, token = AuthToken.objects.create(user)
    return Outcome([token], data={"username": name, "token": token, "expires": instance.expiry})


# --- Locked logins


@action(
    "unlock",
    "Unlock an account that is locked for half an hour after too many wrong passwords.",
    Option("name", required=True, argument=True, help="the user name of the locked account"),
)
def unlock_action(values: Values, progress: Progress) -> Outcome:
    # Normalize the name in the same way as the login.
    name = User.normalize_username(values["name"])
    user = User.objects.filter(username=name).first()
    if user is None:
        raise ActionError(f"There is no account {name!r}.")
    wrong_count = unlock(name)
    sentence = f"{name} was not locked: there were no wrong passwords in the last half hour."
    if wrong_count:
        sentence = f"{name} can log in again; {many(wrong_count, 'wrong password')} cleared."
    locked = f"A manager has locked the account of {name}. To unlock it, use the page People."
    return Outcome([sentence], [] if user.is_active else [locked], {"name": name, "wrong_passwords": wrong_count})
