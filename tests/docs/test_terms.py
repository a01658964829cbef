"""Terms on managers' pages, with the glossary's definitions."""

import re
from pathlib import Path

from django.template import Context, Template
from django.template.loader import get_template

from annotate.manual.pages import definitions

TEMPLATES = Path(get_template("annotate/base.html").origin.name).parent


def rendered(text, **context):
    return Template("{% load assay_tags %}" + text).render(Context(context))


def test_a_term_opens_its_definition_without_a_script_and_each_has_its_own_id():
    html = rendered('{% term "gold answers" %} {% term "audit" %}')
    assert re.findall(r'popovertarget="([^"]+)"', html) == re.findall(r'<span class="definition" id="([^"]+)"', html)
    assert len(set(re.findall(r'id="([^"]+)"', html))) == 2
    assert ">gold answers</button>" in html
    assert "<b>Gold answer</b> An item whose correct answer is known." in html
    assert 'href="/docs/glossary/#gold-answer"' in html


def test_words_that_are_no_term_stay_as_they_are_and_are_escaped():
    assert rendered("{% term words %}", words="<b>Classes") == "&lt;b&gt;Classes"


def test_every_term_that_a_page_names_is_in_the_glossary():
    named = {
        words
        for path in TEMPLATES.rglob("*.html")
        for words in re.findall(r'{% term "([^"]+)" %}', path.read_text(encoding="utf-8"))
    }
    assert named
    assert [words for words in named if not {words, words.removesuffix("s")} & definitions().keys()] == []
