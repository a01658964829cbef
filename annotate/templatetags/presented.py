"""What pages/showing.py says of a task, wherever a template has one."""

from django import template

from annotate.pages import showing

register = template.Library()
register.filter("question", showing.question_about)
