"""What the pages of staff tell in their frame, whichever page it is."""

from django import template

from annotate.work import statistics

register = template.Library()
register.simple_tag(statistics.newly_paused)
