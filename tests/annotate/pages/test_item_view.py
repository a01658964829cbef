"""Texts on pages: guidelines of limited size, which are rendered once, and long texts split into paragraphs."""

import re

import pytest
from django.template import Context, Template
from django.utils.translation import override

from annotate.actions.action import ActionError
from annotate.actions.open_task import read_guidelines
from annotate.core.refusals import InvalidAnswer
from annotate.kinds.file_sections import LONGEST_GUIDELINES, guidelines_fault
from annotate.pages import item_view
from annotate.pages.item_view import LONGEST, paragraphs
from annotate.quality.guideline_versions import new_version
from annotate.work.queue import open_lease
from tests.annotate.conftest import DISPUTED

WIDE = "|" + "a|" * 3000 + "\n|" + "-|" * 3000 + "\n" + "|\n" * 3000
NESTED = f"# Read\n\n{'![' * 49_000}"
LONG = "word " * (LONGEST_GUIDELINES // 5 + 1)
SAYS = {
    WIDE: "have a table with more than 50 columns in line 2. Split the table",
    NESTED: "have more than 1,000 opening brackets in the paragraph at line 2. Split it",
    LONG: "have 100,005 bytes, but at most 100,000 are allowed",
}


@pytest.mark.parametrize("text", SAYS)
def test_guidelines_that_no_page_could_show_soon_are_refused_in_a_sentence(text, tmp_path, make_task):
    with pytest.raises(InvalidAnswer) as refused:
        new_version(make_task([DISPUTED]), "en", text, major=True)
    assert str(refused.value).startswith(f"The guidelines {SAYS[text]}")
    path = tmp_path / "rules.md"
    path.write_text(text)
    with pytest.raises(ActionError) as refused:
        read_guidelines([path])
    assert str(refused.value).startswith(f"The guidelines {path} {SAYS[text]}")


@pytest.mark.parametrize(
    "text",
    ["# Read\n\n| a | b |\n|---|:--|\n| 1 | 2 |\n", "---\n", "a | b " * 100, "[a](b) " * 999 + "\n\n" + "[c]" * 999],
)
def test_ordinary_guidelines_are_taken(text):
    assert guidelines_fault(text) == ""


def test_a_version_is_rendered_once():
    item_view.render_guidelines.cache_clear()
    shown = [item_view.render_guidelines("# Read this, **all** of it") for _ in range(3)]
    assert shown[0] == "<h1>Read this, <strong>all</strong> of it</h1>\n"
    assert (item_view.render_guidelines.cache_info().misses, item_view.render_guidelines.cache_info().hits) == (1, 2)


def test_short_lines_are_paragraphs_as_they_are():
    assert paragraphs("One. Two.\n\n  Three.") == ["One. Two.", "", "  Three."]


@pytest.mark.parametrize(
    "sentence",
    [
        "The council met again on Monday and put the matter off. ",
        'She said: "Nobody has told us when it will be decided." ',
        "明日の会議では予算について話し合う予定です。",
        "उन्होंने कहा कि बैठक कल होगी और सब लोग आएँगे। ",
        "هل ستبدأ المباراة في موعدها غدا مساء في العاصمة؟ ",
    ],
    ids=["english", "quotes", "japanese", "hindi", "arabic"],
)
def test_a_line_that_is_too_long_is_parted_at_ends_of_sentences(sentence):
    text = sentence * 100
    parts = paragraphs(text)
    assert "".join(parts) == text
    assert len(parts) > 3
    assert max(map(len, parts)) < LONGEST
    assert all(part.endswith(sentence[-6:]) for part in parts)


def test_no_line_is_parted_behind_an_abbreviation_or_before_a_small_letter():
    text = "Dr. Khan of the U.S. office met Mr. Obi at approx. nine " * 60
    assert paragraphs(text) == [text]


# --- the template tags `fixed` and `varies`: what is rendered once, and what each time


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
