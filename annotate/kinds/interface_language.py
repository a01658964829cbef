"""Translations into the interface language, and the display names of language labels.

The interface language is independent of the items' languages. annotate/pages/middleware.py selects it for each request.
Commands, cards and the API are always in English.
"""

from collections.abc import Iterable, Mapping, Sequence

from django.utils.translation import get_language, gettext, gettext_noop, ngettext
from django.utils.translation import gettext as _

from annotate.core.refusals import Wrong
from corpora.core.language_tags import closest
from corpora.core.languages import LANGUAGES, UND, finer

ENGLISH = "en"


def interface_language() -> str:
    """Return the code of the current interface language."""
    return get_language() or ENGLISH


def best_language(texts: Mapping[str, str], read: Iterable[str] = ()) -> str:
    """Return the language in which to show a translated text.

    The interface language comes first, then the languages that the user reads, then English. A text in pt also serves
    readers of pt-BR. An English interface doesn't count as a preference, because users also get it if their own
    language is missing.

    texts: the text by language, always including English
    read: languages that the user reads, in order of preference
    """
    wanted = (code for code in (interface_language(), *read) if code != ENGLISH)
    return next((tag for code in wanted if (tag := closest(texts, code))), ENGLISH)


def translated(error: ValueError) -> str:
    """Return an error's message, translated into the interface language if possible."""
    if not isinstance(error, Wrong):
        return str(error)
    if error.several:
        return ngettext(error.sentence, error.several, error.values["number"]) % error.values
    return gettext(error.sentence) % error.values


# --- Labels: `de` is German, `not-de` is any other language, and `und` is no language or several.


NOT = "not-"  # prefix of the label for posts that are not in a language, as in the data set published in 2015
IN_ONE, IN_ONE_OF = (
    gettext_noop("Is this post in %(language)s?"),
    gettext_noop("Is this post in %(languages)s or %(last)s?"),
)


def negative(language: str) -> str:
    """Return the label for a post that is not in a language."""
    return NOT + language


def is_negative(label: str) -> bool:
    return label.startswith(NOT)


def answer_about(language: str, label: str) -> str | None:
    """Return the answer that a label implies to "Is this `language`?"; None if it implies no answer."""
    if label in (language, negative(language), UND):
        return label
    # A fine label such as zh-CN implies zh, but the coarse code zh implies neither zh-CN nor zh-TW.
    if label in finer(language):
        return language
    return None if is_negative(label) or language in finer(label) else negative(language)


def question_about(codes: Sequence[str], *, is_translated: bool = False) -> str:
    """Return the question that asks whether a post is in one of these languages.

    is_translated: whether to translate the question; task titles are in English
    """
    translate = _ if is_translated else str
    *first_names, last = (translate(LANGUAGES[code].name) if code in LANGUAGES else code for code in codes)
    if first_names:
        return translate(IN_ONE_OF) % {"languages": ", ".join(first_names), "last": last}
    return translate(IN_ONE) % {"language": last}


def label_name(label: str) -> str:
    """Return the name of a label in the interface language, such as German, Not German or Undefined.

    An unknown code is returned unchanged.
    """
    if label.startswith(NOT):
        return _("Not %(language)s") % {"language": label_name(label.removeprefix(NOT))}
    if label == UND:
        return _("Undefined")
    language = LANGUAGES.get(label)
    return _(language.name) if language else label
