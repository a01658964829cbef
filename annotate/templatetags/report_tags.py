"""How cards write what people typed, and all else that is no markup: so that GitHub's Markdown shows it as it is."""

from django import template
from django.template.defaultfilters import stringfilter

from annotate.reports.markdown import code, marked_down

register = template.Library()
register.filter("marked", stringfilter(marked_down))
register.filter("code", stringfilter(code))
