"""Changing which queue serves a language, and what is tried after it. How routes are read is in routes.py.

Changes hold for every open task from then on; units that wait already stay in their queue until they are rerouted.
"""

from collections.abc import Iterable

from django.db import transaction

from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.models import LanguageRoute
from annotate.work.languages import is_language, language_named, unknown_code
from corpora.core.languages import UND


def route_of(language: str) -> LanguageRoute:
    """The route of a language, `und` for where no language is seen. NotFound if it has a queue of its own."""
    found = LanguageRoute.objects.filter(language=language).first()
    if found is None:
        raise NotFound(f"There is no route of {language!r}; it may have been deleted meanwhile.")
    return found


def add_route(language: str, queue: str, extra_candidates: Iterable[str], *, never_agree: bool) -> LanguageRoute:
    """A language, or `und`, that waits in another queue than its own, or is told more of. InvalidAnswer for an unknown
    code, and where it has a route already.
    """
    _check([*([] if language == UND else [language])])
    values = _values(queue, extra_candidates, never_agree=never_agree)
    route, new = LanguageRoute.objects.get_or_create(language=language, defaults=values)
    if not new:
        raise InvalidAnswer(f"There is a route of {language} already; change that one.")
    return route


@transaction.atomic
def change_route(
    language: str, queue: str, extra_candidates: Iterable[str], *, never_agree: bool
) -> tuple[LanguageRoute, list[str]]:
    """The route as it is now, and the names of what is otherwise. InvalidAnswer for an unknown code."""
    route = route_of(language)
    values = _values(queue, extra_candidates, never_agree=never_agree)
    changed = [name for name, value in values.items() if getattr(route, name) != value]
    for name in changed:
        setattr(route, name, values[name])
    route.save(update_fields=changed)
    return route, changed


def remove_route(language: str) -> LanguageRoute:
    """From now on the language has its own queue. Returns what was removed."""
    route = route_of(language)
    LanguageRoute.objects.filter(pk=route.pk).delete()
    return route


def _values(queue: str, extra_candidates: Iterable[str], *, never_agree: bool) -> dict:
    queue, extra = language_named(queue), list(dict.fromkeys(map(language_named, extra_candidates)))
    _check([queue, *extra])
    return {"queue": queue, "extra_candidates": extra, "never_agree": never_agree}


def _check(codes: Iterable[str]) -> None:
    if unknown := [code for code in codes if not is_language(code)]:
        raise InvalidAnswer(unknown_code(unknown[0]))
