"""What the pages of staff tell in their frame, whichever page it is."""

from django import template

from annotate.manage import managing

register = template.Library()
register.simple_tag(managing.newly_paused)
