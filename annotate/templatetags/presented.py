"""What any template may say: the question of a task as pages/showing.py makes it, names of languages, the version."""

from django import template

from annotate.kinds.labels import label_name
from annotate.pages import showing
from corpora.version import VERSION

register = template.Library()
register.filter("question", showing.question_about)
register.filter("language_name", label_name)
register.simple_tag(lambda: VERSION, name="version")
