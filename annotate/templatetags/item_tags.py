"""What any template may say: the question of a task as pages/item_view.py makes it, names of languages, the version."""

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache

from django import template
from django.template.defaultfilters import date
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from annotate.figures import annotator_statistics
from annotate.kinds.interface_language import label_name
from annotate.pages import item_view
from corpora.system import VERSION

register = template.Library()
register.filter("question", item_view.question_about)
register.filter("titled", item_view.title_of)
# No `language_name`: the tags of i18n have a filter of that name, which knows Django's languages alone.
register.filter("label_name", label_name)
register.simple_tag(lambda: VERSION, name="version")
register.simple_tag(annotator_statistics.newly_paused)


@register.filter
def day(moment: datetime) -> str:
    """A date in full, in the order of the page's language."""
    return date(moment, pgettext("a date, in the letters of Django's filter date", "j F Y"))


@register.filter
def hours(seconds: float) -> str:
    """A length of time in hours and minutes."""
    whole, rest = divmod(int(seconds) // 60, 60)
    told = {"hours": whole, "minutes": rest}
    return _("%(hours)s h %(minutes)s min") % told if whole else _("%(minutes)s min") % told


@register.simple_tag
def language_buttons(name: str, choices: Iterable) -> SafeString:
    """A button for each choice of a list of all languages, which is the same with every unit. name: of the field."""
    return _buttons(name, tuple((choice.code, choice.name, choice.autonym) for choice in choices))


@lru_cache(maxsize=64)
def _buttons(name: str, languages: tuple[tuple[str, str, str], ...]) -> SafeString:
    return format_html_join(
        "\n      ",
        '<button name="{}" value="{}"><span>{}<small lang="{}">{}</small></span><code>{}</code></button>',
        ((name, code, capfirst(called), code, autonym, code) for code, called, autonym in languages),
    )
