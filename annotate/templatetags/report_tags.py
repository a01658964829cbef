"""Template filters for dataset cards, which escape text so that GitHub's Markdown shows it literally."""

from django import template
from django.template.defaultfilters import stringfilter

from annotate.reports.markdown import code, marked_down

register = template.Library()
register.filter("marked", stringfilter(marked_down))
register.filter("code", stringfilter(code))
