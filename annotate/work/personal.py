"""What people set for themselves: how they want the pages, and the languages for which they ask.

A manager grants or refuses a language, since what people read decides what they are given.
"""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.kinds.labels import label_name
from annotate.models import Annotator, AnnotatorLanguage, LanguageRequest, Preferences
from annotate.work.accounts import check_may_change
from annotate.work.languages import is_language

FIELDS = ("text_size", "theme", "keys", "time_zone", "language", "goal")
LEVELS = range(1, 6)
WORDS = LanguageRequest._meta.get_field("words").max_length


def preferences_of(user: User) -> dict[str, Any]:
    """What a person has set, by FIELDS; of a person who has set nothing, what holds for everybody."""
    found = Preferences.objects.filter(user=user).first() or Preferences(user=user)
    return {name: getattr(found, name) for name in FIELDS}


def set_preferences(user: User, values: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what a person sets. values: all of FIELDS, as a form has checked them. Returns them as they are kept."""
    Preferences.objects.update_or_create(user=user, defaults={name: values[name] for name in FIELDS})
    return preferences_of(user)


# --- languages


def ask_for_language(annotator: Annotator, language: str, level: int | None, words: str = "") -> LanguageRequest:
    """Ask the managers to put a person down as a reader of a language. level: 1 to 5 (native), as they rate themselves.

    InvalidAnswer if there is no such language or level, if they are down for it as well already, or have asked.
    """
    if not is_language(language):
        raise InvalidAnswer(_("Choose one of the languages of the list."))
    if level not in LEVELS:
        raise InvalidAnswer(_("Say how well you read it, from 1 (a little) to 5 (native)."))
    words = words.strip()
    if len(words) > WORDS or "\x00" in words:
        raise InvalidAnswer(_("Say it in at most %(most)s characters.") % {"most": WORDS})
    if annotator.languages.filter(language=language, level__gte=level).exists():
        raise InvalidAnswer(_("You are down as a reader of %(language)s already.") % {"language": label_name(language)})
    try:
        with transaction.atomic():
            return LanguageRequest.objects.create(
                annotator=annotator, language=language, level=level, words=words, asked_at=timezone.now()
            )
    except IntegrityError as error:
        raise InvalidAnswer(
            _("You have asked for %(language)s already, and no manager has decided yet.")
            % {"language": label_name(language)}
        ) from error


def waiting_requests() -> QuerySet[LanguageRequest]:
    """What no manager has decided yet, the oldest first."""
    return LanguageRequest.objects.filter(outcome="").select_related("annotator__user").order_by("pk")


def grant(request_id: int, by: User, level: int | None = None) -> LanguageRequest:
    """Put a person down for the language for which they asked. level: if it is to be another than they said."""
    with transaction.atomic():
        found = _decided(request_id, by, LanguageRequest.GRANTED)
        if level is not None and level not in LEVELS:
            raise InvalidAnswer("The level is a number from 1 to 5.")
        AnnotatorLanguage.objects.update_or_create(
            annotator=found.annotator, language=found.language, defaults={"level": level or found.level}
        )
        return found


def refuse(request_id: int, by: User) -> LanguageRequest:
    """Leave a person's languages as they are. They may ask again."""
    with transaction.atomic():
        return _decided(request_id, by, LanguageRequest.REFUSED)


def _decided(request_id: int, by: User, outcome: str) -> LanguageRequest:
    """NotAllowed if `by` may not change the person's account; NotFound if another manager was quicker."""
    found = waiting_requests().select_for_update(of=("self",)).filter(pk=request_id).first()
    if found is None:
        raise NotFound("There is no such request any more: it has been decided.")
    check_may_change(by, [found.annotator.user])
    found.outcome, found.decided_at, found.decided_by = outcome, timezone.now(), by
    found.save(update_fields=["outcome", "decided_at", "decided_by"])
    return found
