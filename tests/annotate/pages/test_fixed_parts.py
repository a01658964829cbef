"""The template tags `fixed` and `varies`: what is rendered once, and what is rendered each time."""

import re

import pytest
from django.template import Context, Template
from django.utils.translation import override

from annotate.work.queue import open_lease
from tests.annotate.conftest import DISPUTED

LOADED = "{% load fixed_parts i18n %}"


@pytest.fixture
def renders():
    """renders(source)(values) renders a template."""

    def make(source):
        template = Template(LOADED + source)
        return lambda **values: template.render(Context(values))

    return make


def test_the_content_is_rendered_once_for_each_value_and_what_varies_each_time(renders):
    render = renders("{% fixed task %}{{ title }}: {% varies %}{{ text }}{% endvaries %}.{% endfixed %}")
    assert render(task=1, title="One", text="a") == "One: a."
    assert render(task=1, title="not rendered", text="<b>") == "One: &lt;b&gt;."
    assert render(task=2, title="Two", text="c") == "Two: c."


def test_what_varies_inside_an_inner_part_varies_in_the_outer_one_even_if_the_inner_one_was_kept(renders):
    inner = "{% fixed 1 %}({% varies %}{{ text }}{% endvaries %}){% endfixed %}"
    render = renders("{% if whole %}{% fixed 2 %}[" + inner + "]{% endfixed %}{% else %}" + inner + "{% endif %}")
    assert [render(text="a"), render(whole=True, text="b"), render(whole=True, text="c")] == ["(a)", "[(b)]", "[(c)]"]


def test_each_interface_language_has_its_own(renders):
    render = renders("{% fixed 1 %}{% translate 'Skip' %}{% endfixed %}")
    english = render()
    with override("de"):
        assert render() != english
    assert render() == english


def test_outside_of_a_fixed_part_what_varies_is_rendered_as_it_stands(renders):
    assert renders("{% varies %}{{ text }}{% endvaries %}")(text="a") == "a"


def test_no_line_of_a_fixed_part_is_indented(renders):
    assert (
        renders("{% fixed 1 %}<p>\n\n    <b>\n  {% varies %} {{ text }}{% endvaries %}{% endfixed %}")(text="a")
        == "<p>\n<b>\n a"
    )


def test_a_page_that_keeps_its_lists_of_languages_shows_each_text_and_lease_and_no_token(make_task, person, client):
    task, ann = make_task([DISPUTED] * 4), person("ann", "de")
    client.force_login(ann.user)
    htmx = {"HX-Request": "true"}
    page = client.post("/tasks/task/start/", headers=htmx).text
    headers = htmx | {"Assay-Shown": re.search(r'data-shown="(\w+)"', page)[1], "Assay-Flag": "1"}
    for _ in range(3):
        lease = open_lease(ann, task)
        page = client.post("/tasks/task/judge/", {"lease": lease.pk, "answer": "de"}, headers=headers).text
        following = open_lease(ann, task)
        assert following.pk != lease.pk
        assert f'name="lease" value="{following.pk}"' in page
        assert f'<p dir="auto">{following.unit.item.text}</p>' in page
        assert page.count("hx-preserve") == 4
        assert "csrf" not in page
