"""Mail to people of the site: an invitation, and word of a reply. What is in a mail names no text of an item.

Whatever becomes of a mail, what it tells of is there: a link is shown, a reply stands on its reader's page. A forgotten
password is mailed by pages/account.py.
"""

import logging
import smtplib
from collections.abc import Iterable, Mapping

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import send_mail
from django.template.loader import render_to_string

from annotate.models import Flag
from annotate.work.accounts import INVITE_DAYS

logger = logging.getLogger(__name__)

# What became of a mail: there is no mail server, or no address of the person; it was sent; it could not be sent; the
# person's address was refused.
NONE, SENT, FAILED, REFUSED = "none", "sent", "failed", "refused"


def invitations(links: Iterable[tuple[User, str]]) -> dict[str, str]:
    """Mail people their links. Returns what became of each, by user name; after a server that cannot be reached no
    other is tried.
    """
    found: dict[str, str] = {}
    for user, link in links:
        if FAILED in found.values():
            found[user.username] = FAILED if _has_mail(user) else NONE
        else:
            found[user.username] = _send(user, "invite_mail", {"link": link, "days": INVITE_DAYS})
    return found


def told(sent: Mapping[str, str]) -> list[str]:
    """What became of invitations, in sentences; none where there is no mail to send."""
    went, failed, refused = (
        [name for name, became in sent.items() if became == what] for what in (SENT, FAILED, REFUSED)
    )
    said = [f"Sent by mail to {', '.join(went)}."] if went else []
    if refused:
        said.append(
            f"The mail addresses of {', '.join(refused)} were refused, so nothing was sent. Correct the addresses, or "
            "give these people their links otherwise."
        )
    if failed:
        said.append(
            f"The mail to {', '.join(failed)} could not be sent. Their links work; give them to them otherwise."
        )
    return said


def reply(flag: Flag) -> str:
    """Tell a person that there is a reply to them, and where; the reply itself may quote the item."""
    return _send(flag.annotator.user, "reply_mail", {"task": flag.unit.task})


def _has_mail(user: User) -> bool:
    return bool(settings.MAIL and user.email)


def _send(user: User, template: str, context: dict) -> str:
    if not _has_mail(user):
        return NONE
    context = {**context, "user": user, "site": settings.SITE}
    subject = render_to_string(f"annotate/{template}_subject.txt", context).strip()
    try:
        send_mail(subject, render_to_string(f"annotate/{template}.txt", context), None, [user.email])
    # A domain that IDNA refuses is a UnicodeError, a broken header a ValueError.
    except (ValueError, smtplib.SMTPRecipientsRefused, smtplib.SMTPNotSupportedError):
        logger.exception("The mail address of %s was refused.", user.username)
        return REFUSED
    except OSError:  # what smtplib raises is one, too
        logger.exception("A mail to %s could not be sent.", user.username)
        return FAILED
    return SENT
