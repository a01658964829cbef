"""The interface language, which is independent of the language of items, and the display names of language labels.

Commands, cards and the API are in English. annotate/pages/middleware.py selects the language.
"""

from collections.abc import Iterable, Mapping, Sequence

from django.utils.translation import get_language, gettext, gettext_noop, ngettext
from django.utils.translation import gettext as _

from annotate.core.words import Wrong
from corpora.core.languages import LANGUAGES, UND, finer

ENGLISH = "en"


def interface_language() -> str:
    """Return the code of the current interface language."""
    return get_language() or ENGLISH


def spoken(words: Mapping[str, str], read: Iterable[str] = ()) -> str:
    """Return the language in which to show a text: the interface language, else one the person reads, else English.

    English comes last, because it is the interface language of everyone whose language has no translation.

    words: text by language, always including English
    read: languages that the person reads, in order
    """
    return next((code for code in (interface_language(), *read) if code != ENGLISH and code in words), ENGLISH)


def translated(error: ValueError) -> str:
    """Return the message of an error about an answer, in the interface language."""
    if not isinstance(error, Wrong):
        return str(error)
    if error.several:
        return ngettext(error.sentence, error.several, error.values["number"]) % error.values
    return gettext(error.sentence) % error.values


# --- Labels: `de` is German, `not-de` is any other language, `und` is no single language.


NOT = "not-"  # prefix of the label for a post that is not in a language, as in the files published in 2015
IN_ONE, IN_ONE_OF = (
    gettext_noop("Is this post in %(language)s?"),
    gettext_noop("Is this post in %(languages)s or %(last)s?"),
)


def negative(language: str) -> str:
    """Return the label of a post that is not in a language."""
    return NOT + language


def is_negative(label: str) -> bool:
    return label.startswith(NOT)


def answer_about(asked: str, label: str) -> str | None:
    """Return the answer to "Is this `asked`?" that follows from an existing label, or None if none follows."""
    if label in (asked, negative(asked), UND):
        return label
    # A label under a coarse code such as zh implies that code; the code does not imply any of its labels.
    if label in finer(asked):
        return asked
    return None if is_negative(label) or asked in finer(label) else negative(asked)


def question_about(codes: Sequence[str], *, is_translated: bool = False) -> str:
    """Return the question of whether a post is in one of these languages.

    is_translated: whether to use the interface language; task titles use English
    """
    say = _ if is_translated else str
    *others, last = (say(LANGUAGES[code].name) if code in LANGUAGES else code for code in codes)
    if others:
        return say(IN_ONE_OF) % {"languages": ", ".join(others), "last": last}
    return say(IN_ONE) % {"language": last}


def label_name(label: str) -> str:
    """Return the name of a label in the interface language: German, Not German, Undefined; an unknown code stays."""
    if label.startswith(NOT):
        return _("Not %(language)s") % {"language": label_name(label.removeprefix(NOT))}
    if label == UND:
        return _("Undefined")
    return _(LANGUAGES[label].name) if label in LANGUAGES else label
