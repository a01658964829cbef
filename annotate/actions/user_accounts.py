"""The actions for accounts of annotators and managers, API tokens and locked logins, and the mail to users."""

import logging
import smtplib
from collections.abc import Iterable, Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.mail import send_mail
from django.template.loader import render_to_string
from django.urls import reverse
from knox.models import AuthToken

from annotate.actions.action import FILE, LANGUAGES, ActionError, Outcome, Progress, Values, action, address, assumed
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
from corpora.core.language_codes import add_languages

# --- Mail. It never contains the text of an item. If a mail cannot be sent, nothing is lost, because the site also
# shows the invitation link or the reply.

logger = logging.getLogger(__name__)

# Results of sending a mail. NONE: the site has no mail server or the user no address. SENT: the mail was sent.
# FAILED: it could not be sent. REFUSED: the address was refused.
NONE, SENT, FAILED, REFUSED = "none", "sent", "failed", "refused"
OUTCOMES = {
    SENT: "Sent by mail to {names}.",
    REFUSED: "The mail addresses of {names} were refused, so nothing was sent. Correct the addresses, or give these "
    "people their links otherwise.",
    FAILED: "The mail to {names} could not be sent. Their links work; give them to them otherwise.",
}


def mail_invitations(links: Iterable[tuple[User, str]]) -> dict[str, str]:
    """Mail invitation links. Return a mapping from user name to the result (NONE, SENT, FAILED or REFUSED).

    If the mail server cannot be reached, do not try the remaining mails.

    links: (user, link) tuples
    """
    found: dict[str, str] = {}
    for user, link in links:
        if FAILED in found.values():
            found[user.username] = FAILED if _has_mail(user) else NONE
        else:
            found[user.username] = _send(user, "invite_mail", {"link": link, "days": INVITE_DAYS})
    return found


def mail_words(sent: Mapping[str, str]) -> list[str]:
    """Return sentences about the results of invitation mails. The list is empty if no mail was tried.

    sent: mapping from user name to result
    """
    names = {what: ", ".join(name for name, became in sent.items() if became == what) for what in OUTCOMES}
    return [words.format(names=names[what]) for what, words in OUTCOMES.items() if names[what]]


def mail_reply(flag: Flag) -> str:
    """Mail an annotator that a manager has replied to their flag. Return the result, such as SENT.

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
    # An invalid domain raises UnicodeError, which is a ValueError, and an invalid header raises ValueError.
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
    "Make annotators from a CSV file with username, name, languages (such as de:5 en:4) and, optionally, "
    "adjudicates (yes) and email, to which login links and password resets are sent. For people who exist already, the "
    "languages in the file replace all that they had.",
    FILE,
    Option("site", address, shown="URL", help="the address that links begin with, instead of ASSAY_SITE"),
    Option(
        "again",
        flag,
        False,
        help="also print new links for people in the file who have set no password yet; their old links stop working",
    ),
    LANGUAGES,
)
def add_annotators_action(values: Values, progress: Progress) -> Outcome:
    if values["languages"]:
        add_languages(values["languages"])
    file = values["file"]
    try:
        rows = read_table(file.read_text(encoding="utf-8"))
        before = _languages(rows)
        made = add_annotators(rows)
    except BadTable as error:
        raise ActionError("\n".join([*error.args, "Nothing was changed."])) from error
    except UnicodeDecodeError as error:
        raise ActionError(f"{file} is not UTF-8. Save it as “CSV UTF-8”.") from error
    except OSError as error:
        raise ActionError(f"{file} cannot be read: {error.strerror}.") from error
    tokens = {annotator.user.username: token for annotator, token in made if token}
    known = [annotator for annotator, token in made if not token]
    waiting = without_password(known)
    said = [f"{many(len(tokens), 'annotator')} made, {len(known):,} updated."]
    if values["again"]:
        tokens |= {annotator.user.username: invite(annotator) for annotator in waiting}
    site = values["site"] or settings.SITE
    links = {name: f"{site}{reverse('invite', args=[token])}" for name, token in tokens.items()}
    mailed = mail_invitations((each.user, links[each.user.username]) for each, _ in made if each.user.username in links)
    if links:
        said.append(
            f"Each link sets a password once, within {INVITE_DAYS} days, and is shown only here; --again makes new "
            "ones."
        )
        if settings.SITE_ASSUMED and not values["site"]:
            said.append(f"If people reach the site elsewhere than at {settings.SITE}, run it with --again --site URL.")
    listed = [f"{name}\t{link}" for name, link in links.items()]
    data = {"links": links, "updated": [annotator.user.username for annotator in known], "mailed": mailed}
    return Outcome(
        [*listed, " ".join([*said, *mail_words(mailed)])],
        [*_changed(before, _languages(rows)), *_about_known(known, waiting, links)],
        data,
    )


def _languages(rows: Iterable[Row]) -> dict[str, str]:
    """Return a mapping from user name to languages with levels, such as "de:5 en:4".

    It contains only those people in the rows who are annotators already.
    """
    people = Annotator.objects.filter(user__username__in=[row.username for row in rows])
    people = people.select_related("user").prefetch_related("languages").order_by("user__username")
    return {each.user.username: " ".join(map(str, each.languages.all())) or "none" for each in people}


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return a line for each annotator whose languages were replaced.

    before, after: mappings from user name to languages, before and after the import
    """
    return [f"Languages of {name}: {old} → {after[name]}." for name, old in before.items() if after[name] != old]


def _about_known(known: list[Annotator], waiting: list[Annotator], links: Mapping[str, str]) -> list[str]:
    """Return sentences about the annotators in the file who already had an account.

    known: these annotators
    waiting: those of them who have not set a password yet
    links: mapping from user name to new invitation link
    """
    told = {
        "Updated, as the file has them now (names, languages): {}.": known,
        "Adjudicators among them: {}.": [each for each in known if each.adjudicates],
        "No password set yet: {}; --again prints new links for them.": [
            each for each in waiting if each.user.username not in links
        ],
        "With a password of their own, which stays: {}. Whoever has lost it gets a new link on the page Accounts.": [
            each for each in known if each.user.has_usable_password()
        ],
    }
    return [words.format(", ".join(each.user.username for each in people)) for words, people in told.items() if people]


# --- Managers

BACK = (
    "To take it back, open the account in the admin under Users, and take the ticks off “Staff status” and “Superuser "
    "status”."
)


def _asks(values: Values) -> list[str]:
    """Return what the user must confirm before an existing account becomes a manager's.

    The list is empty if the account does not exist, or if it has a manager's rights already.
    """
    name = values["name"]
    user = User.objects.filter(username=name).first()
    if not user or may_change_all(user):
        return []
    locked = "" if user.is_active else " It is locked out now, and will be let in."
    return [
        f"There is an account {name} already. This lets whoever logs in with it see and change everything: corpora, "
        f"tasks, people, votes and answers.{locked} {BACK}"
    ]


@action(
    "add_manager",
    "Make an account for a manager of corpora, tasks and people, and print its password. For an existing account, "
    "it asks first and makes that person a manager.",
    Option("name", required=True, argument=True, help="the user name to log in with"),
    asks=_asks,
)
def add_manager_action(values: Values, progress: Progress) -> Outcome:
    name = values["name"]
    try:
        User._meta.get_field("username").clean(name, None)
    except ValidationError as error:
        raise ActionError(
            f"{name!r} cannot be a user name; use at most 150 letters, digits and the characters @ . + - _"
        ) from error
    _, password = add_manager(name)
    data = {"name": name, "password": password}
    said = f"Log in at {settings.SITE}/{assumed()} with the password  {password}  which is shown only here."
    if password is None:
        said = f"The password stays as it was; `assay django changepassword {name}` sets another. {BACK}"
    return Outcome([f"{name} is a manager. {said}"], data=data)


# --- API tokens


@action(
    "create_token",
    "Make an API token for an account and print it; only its hash is stored. It is valid for 90 days, or until the "
    "password changes. The owner can renew it on the account page.",
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
    "Let somebody log in at once who is locked out for half an hour after too many wrong passwords.",
    Option("name", required=True, argument=True, help="the user name that has to wait"),
)
def unlock_action(values: Values, progress: Progress) -> Outcome:
    # Normalize the name as the login does.
    name = User.normalize_username(values["name"])
    user = User.objects.filter(username=name).first()
    if user is None:
        raise ActionError(f"There is no account {name!r}.")
    wrong = unlock(name)
    said = f"{name} did not have to wait: no wrong password was typed in the last half hour."
    if wrong:
        said = f"{name} may log in at once; {many(wrong, 'wrong password')} forgotten."
    locked = f"{name} is locked out by a manager, who lets them in again on the page Accounts."
    return Outcome([said], [] if user.is_active else [locked], {"name": name, "wrong_passwords": wrong})
