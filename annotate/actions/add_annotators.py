"""add_annotators: people from a table, each new one with a link that sets a password."""

from collections.abc import Mapping

from django.conf import settings
from django.urls import reverse

from annotate.actions import mail
from annotate.actions.action import Action, ActionError, Outcome
from annotate.actions.options import FILE, LANGUAGES, address
from annotate.core.option import Option, flag
from annotate.models import Annotator
from annotate.reports.tables import many
from annotate.work.accounts import INVITE_DAYS, add_annotators, invite, without_password
from annotate.work.people_file import BadTable, read_table
from corpora.core.language_codes import add_languages

OPTIONS = (
    FILE,
    Option("site", address, shown="URL", help="the address with which the links begin, in place of ASSAY_SITE"),
    Option(
        "again",
        flag,
        False,
        help="print new links, too, for those of the file who have set no password yet; links that they have stop "
        "working",
    ),
    LANGUAGES,
)


def run(values, progress) -> Outcome:
    if values["languages"]:
        add_languages(values["languages"])
    rows = _rows(values["file"])
    try:
        made = add_annotators(rows)
    except BadTable as error:
        raise _refused(error) from error
    tokens = {annotator.user.username: token for annotator, token in made if token}
    known = [annotator for annotator, token in made if not token]
    waiting = without_password(known)
    new = len(tokens)
    if values["again"]:
        tokens |= {annotator.user.username: invite(annotator) for annotator in waiting}
    site = values["site"] or settings.SITE
    links = {name: f"{site}{reverse('invite', args=[token])}" for name, token in tokens.items()}
    mailed = mail.invitations((each.user, links[each.user.username]) for each, _ in made if each.user.username in links)
    updated = [annotator.user.username for annotator in known]
    said = [f"{many(new, 'annotator')} made, {len(updated):,} updated.", *(_of_links(values["site"]) if links else [])]
    said += mail.told(mailed)
    data = {"links": links, "updated": updated, "mailed": mailed}
    return Outcome(
        [*(f"{name}\t{link}" for name, link in links.items()), " ".join(said)], _known(known, waiting, links), data
    )


def _of_links(site: str | None) -> list[str]:
    told = [
        f"Each link sets a password once, within {INVITE_DAYS} days, and is shown only here; --again makes new ones."
    ]
    if settings.SITE_ASSUMED and not site:
        told.append(f"If people reach the site elsewhere than at {settings.SITE}, run it with --again --site URL.")
    return told


def _known(known: list[Annotator], waiting: list[Annotator], links: Mapping[str, str]) -> list[str]:
    """What became of those who had an account, and how those among them who have no password yet (waiting) come in."""
    if not known:
        return []
    told = [f"Updated, as the file has them now (names, languages): {_names(known)}."]
    if deciding := [each for each in known if each.adjudicates]:
        told.append(f"Adjudicators among them: {_names(deciding)}.")
    if without := [each for each in waiting if each.user.username not in links]:
        told.append(f"No password set yet: {_names(without)}; --again prints new links for them.")
    if others := [each for each in known if each.user.has_usable_password()]:
        told.append(
            f"With a password of their own, which stays: {_names(others)}. Whoever has lost it gets a new link on "
            "the page Accounts."
        )
    return told


def _names(annotators: list[Annotator]) -> str:
    return ", ".join(each.user.username for each in annotators)


def _refused(error: BadTable) -> ActionError:
    return ActionError("\n".join([*error.args, "Nothing was changed."]))


def _rows(file):
    try:
        return read_table(file.read_text(encoding="utf-8"))
    except BadTable as error:
        raise _refused(error) from error
    except UnicodeDecodeError as error:
        raise ActionError(f"{file} is not UTF-8. Save it as “CSV UTF-8”.") from error
    except OSError as error:
        raise ActionError(f"{file} cannot be read: {error.strerror}.") from error


ACTION = Action(
    "add_annotators",
    "Make annotators from a CSV: username, name, languages (as in: de:5 en:4) and, if wanted, adjudicates (yes) and "
    "email, to which their link is sent, and one if the password is forgotten.",
    OPTIONS,
    run,
)
