"""What presenting.py says of a task, wherever a template has one."""

from django import template

from annotate.pages import presenting

register = template.Library()
register.filter("question", presenting.question_about)
