"""The interface language of pages, which is independent of the language of the items.

Commands, cards and the API are in English. pages/middleware.py chooses the language.
"""

from collections.abc import Iterable, Mapping

from django.utils.translation import get_language, gettext, ngettext

from annotate.core.words import Wrong

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
