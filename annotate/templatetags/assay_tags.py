"""Template tags and filters: a task's question and title, icons, dates, durations, languages, the version and Markdown.

The template loader finds the templates of plug-ins' answer forms.
"""

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from itertools import count
from pathlib import Path

from django import template
from django.template import Context
from django.template.defaultfilters import date, stringfilter
from django.template.loaders import filesystem
from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from annotate.core import stages
from annotate.figures.attention import attention_count
from annotate.kinds.forms import FORMS
from annotate.kinds.interface_language import label_name
from annotate.kinds.language_questions import Choice
from annotate.manual.pages import anchor_of, definitions
from annotate.reports.plots import COLOURS
from annotate.reports.table_formats import code, escape_latex, escape_markdown
from corpora.system import VERSION

STATIC = Path(__file__).parents[1] / "static/annotate"

register = template.Library()
register.filter("question", lambda task: task.kind.question(task))
register.filter("titled", lambda task: task.kind.titled(task))
# For dataset cards: escape text so that GitHub's Markdown shows it unchanged.
register.filter("marked", stringfilter(escape_markdown))
register.filter("tex", stringfilter(escape_latex))
register.filter("code", stringfilter(code))
# We can't call this filter `language_name`, because Django's i18n tags have a filter with that name.
register.filter("label_name", label_name)
register.simple_tag(lambda: VERSION, name="version")
register.simple_tag(attention_count)


class FormLoader(filesystem.Loader):
    """Finds the templates of answer forms in the folders of their packages."""

    def get_dirs(self) -> list[str | Path]:
        return [form.folder for form in FORMS.values() if form.folder]


# Icons that are mirrored in right-to-left interface languages.
DIRECTED = ("arrow-right", "log-out", "skip-forward", "undo-2")


@register.simple_tag
def colours() -> SafeString:
    """Render the design's colours as CSS custom properties, for files without the style sheet."""
    values = ((name, light, dark) for name, (light, dark) in COLOURS.items())
    return format_html_join("; ", "--{}: light-dark({}, {})", values)


@register.simple_tag
@lru_cache
def embedded(name: str) -> SafeString:
    """Return the text of a style sheet, for files that must be self-contained.

    name: file name in static/annotate
    """
    return mark_safe(Path(f"{STATIC}/{name}").read_text(encoding="utf-8"))  # noqa: S308 - our own file


@register.simple_tag
@lru_cache
def icon(name: str) -> SafeString:
    """Render an icon, hidden from screen readers.

    name: id of a symbol in static/annotate/icons.svg
    """
    turns = " turns" if name in DIRECTED else ""
    sprite = static("annotate/icons.svg")
    return format_html('<svg class="icon{}" aria-hidden="true"><use href="{}#{}"/></svg>', turns, sprite, name)


# The badge's CSS class for each state of a task or stage of a unit.
BADGES = {
    **dict.fromkeys(("running", stages.LABELLED, stages.AGREED), "good"),
    **dict.fromkeys(("stalled", stages.ADJUDICATION), "gold"),
    **dict.fromkeys(("closed", stages.DISCARDED, stages.COPIED, stages.NEW, stages.QUEUED), "quiet"),
}


@register.filter
def badge(state: str) -> str:
    return BADGES.get(state, "")


@register.simple_tag(takes_context=True)
def term(context: Context, words: str) -> str:
    """Render a glossary term as a button that opens its definition in a popover, without a script.

    Words that are not in the glossary are rendered unchanged.

    words: the term, in the singular or with a plural -s
    """
    name = words.lower()
    entry = next((spelling for spelling in (name, name.removesuffix("s")) if spelling in definitions()), None)
    if entry is None:
        return words
    # Included templates share the context's first dict, so counting there makes ids unique on the page.
    number = next(context.dicts[0].setdefault("terms", count(1)))
    return format_html(
        '<dfn><button type="button" class="term" popovertarget="term-{0}">{1}</button></dfn>'
        '<span class="definition" id="term-{0}" popover><b>{2}</b> {3} <a href="{4}#{5}">Glossary</a></span>',
        number,
        words,
        capfirst(entry),
        definitions()[entry],
        reverse("docs-page", args=["glossary"]),
        anchor_of(entry, set()),
    )


@register.filter
def day(moment: datetime) -> str:
    """Format a full date as is usual in the interface language."""
    return date(moment, pgettext("a date, in the letters of Django's filter date", "j F Y"))


@register.filter
def hours(seconds: float) -> str:
    """Format a duration in hours and minutes, or in seconds if it is shorter than a minute."""
    if seconds < 60:
        return _("%(seconds)s s") % {"seconds": int(seconds)}
    hour_count, minutes = divmod(int(seconds) // 60, 60)
    values = {"hours": hour_count, "minutes": minutes}
    return _("%(hours)s h %(minutes)s min") % values if hour_count else _("%(minutes)s min") % values


@register.simple_tag
def language_buttons(name: str, choices: Iterable[Choice]) -> SafeString:
    """Render a button for each language. The result is cached, because many units have the same choices.

    name: the form field's name
    """
    return _buttons(name, tuple((choice.code, choice.name, choice.autonym) for choice in choices))


@lru_cache(maxsize=64)
def _buttons(name: str, languages: tuple[tuple[str, str, str], ...]) -> SafeString:
    return format_html_join(
        "\n      ",
        '<button name="{}" value="{}"><span>{}<small lang="{}">{}</small></span><code>{}</code></button>',
        ((name, code, capfirst(language_name), code, autonym, code) for code, language_name, autonym in languages),
    )
