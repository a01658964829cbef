"""The interface language of pages, which is independent of the language of the items.

Commands, cards and the API are in English. pages/middleware.py chooses the language.
"""

from collections.abc import Iterable, Mapping, Sequence

from django.utils.translation import get_language, gettext, gettext_noop, ngettext
from django.utils.translation import gettext as _

from annotate.core.words import Wrong
from corpora.core.languages import LANGUAGES, UND, finer

ENGLISH = "en"


def interface_language() -> str:
    """The code of the language in which pages are shown now."""
    return get_language() or ENGLISH


def spoken(words: Mapping[str, str], read: Iterable[str] = ()) -> str:
    """In which of its languages something is said: in that of the pages; else in the first of those that the person
    reads; else in English, which all have.

    English comes last since everybody gets it whose language the pages do not speak.
    """
    return next((code for code in (interface_language(), *read) if code != ENGLISH and code in words), ENGLISH)


def translated(error: ValueError) -> str:
    """What is wrong with an answer, in the language of the pages."""
    if not isinstance(error, Wrong):
        return str(error)
    if error.several:
        return ngettext(error.sentence, error.several, error.values["number"]) % error.values
    return gettext(error.sentence) % error.values


# --- What a label says: `de` is German, `not-de` is anything but German, `und` is no single language.


NOT = "not-"  # before a language, the label of a post that is not in it, as in the published files of 2015
IN_ONE, IN_ONE_OF = (
    gettext_noop("Is this post in %(language)s?"),
    gettext_noop("Is this post in %(languages)s or %(last)s?"),
)


def negative(language: str) -> str:
    """The label of a post that is not in a language."""
    return NOT + language


def is_negative(label: str) -> bool:
    return label.startswith(NOT)


def answer_about(asked: str, label: str) -> str | None:
    """What a label that people gave elsewhere says to the question "Is this `asked`?"; None if it says nothing."""
    if label in (asked, negative(asked), UND):
        return label
    # Each label of a coarse code such as zh means that code, but the code does not say which label is meant.
    if label in finer(asked):
        return asked
    return None if is_negative(label) or asked in finer(label) else negative(asked)


def question_about(codes: Sequence[str], *, is_translated: bool = False) -> str:
    """Whether a post is in one of these languages, in English as a task is named by it, or as pages show that."""
    say = _ if is_translated else str
    *others, last = (say(LANGUAGES[code].name) if code in LANGUAGES else code for code in codes)
    if others:
        return say(IN_ONE_OF) % {"languages": ", ".join(others), "last": last}
    return say(IN_ONE) % {"language": last}


def label_name(label: str) -> str:
    """In the language of the pages: German, Not German, Undefined; an unknown code stays as it is."""
    if label.startswith(NOT):
        return _("Not %(language)s") % {"language": label_name(label.removeprefix(NOT))}
    if label == UND:
        return _("Undefined")
    return _(LANGUAGES[label].name) if label in LANGUAGES else label
