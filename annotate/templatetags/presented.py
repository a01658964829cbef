"""What any template may say: the question that pages/showing.py makes of a task, and the version of Assay."""

from django import template

from annotate.pages import showing
from corpora.version import VERSION

register = template.Library()
register.filter("question", showing.question_about)
register.simple_tag(lambda: VERSION, name="version")
