"""What the pages of staff tell in their frame, whichever page it is."""

from django import template

from annotate.figures import annotator_statistics

register = template.Library()
register.simple_tag(annotator_statistics.newly_paused)
