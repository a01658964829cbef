"""add_annotators: people from a table, each new one with a link that sets a password."""

from django.conf import settings
from django.urls import reverse

from annotate.actions.action import Action, ActionError, Outcome
from annotate.actions.options import FILE, LANGUAGES
from annotate.core.option import Option
from annotate.work.accounts import INVITE_DAYS, add_annotators
from annotate.work.people_file import BadTable, read_table
from corpora.added_languages import add_languages

OPTIONS = (
    FILE,
    Option("site", shown="URL", help="what the links begin with, in place of ASSAY_SITE"),
    LANGUAGES,
)


def run(values, progress) -> Outcome:
    if values["languages"]:
        add_languages(values["languages"])
    made = add_annotators(_rows(values["file"]))
    site = (values["site"] or settings.SITE).rstrip("/")
    links = {annotator.user.username: f"{site}{reverse('invite', args=[token])}" for annotator, token in made if token}
    updated = [annotator.user.username for annotator, token in made if not token]
    counts = (
        f"{len(links):,} annotators made, {len(updated):,} updated. Each link sets a password once, within "
        f"{INVITE_DAYS} days, and is shown only here."
    )
    warned = [f"Updated, as the file has them now (names, languages): {', '.join(updated)}."] if updated else []
    return Outcome([*(f"{name}\t{link}" for name, link in links.items()), counts], warned, {"links": links})


def _rows(file):
    try:
        return read_table(file.read_text(encoding="utf-8"))
    except BadTable as error:
        raise ActionError("\n".join([*error.args, "Nothing was changed."])) from error
    except UnicodeDecodeError as error:
        raise ActionError(f"{file} is not UTF-8. Save it as “CSV UTF-8”.") from error
    except OSError as error:
        raise ActionError(f"{file} cannot be read: {error.strerror}.") from error


ACTION = Action(
    "add_annotators",
    "Make annotators from a CSV: username, name, languages (as in: de:5 en:4) and, if wanted, adjudicates (yes).",
    OPTIONS,
    run,
)
