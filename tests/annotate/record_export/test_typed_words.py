"""What people typed stands in the card as they typed it, and is no markup there."""

import pytest
import yaml
from markdown_it import MarkdownIt

from annotate.goldsets.exporter import export
from annotate.reports.table_formats import code, in_yaml, marked_down
from tests.annotate.acts import open_records
from tests.annotate.record_export.records import LANGUAGES

# HTML as a card may have it: more than the house's own Markdown lets through.
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
NO_TEST = {"test_items": 0, "gold_share": 0}
HOSTILE = (
    "=1+1 <script>alert(1)</script> <img src=x onerror=alert(2)> <!-- [x](javascript:alert) ![i](http://h/i.png) "
    "`code` ``| cell | **bold** ~~gone~~ _it_ &lt; \\<b> https://h <http://h> \" ' : # - {{ title }} {% now %}"
)
MORE = "one\n\n# A heading\n---\nlicense: mit\n\n- a list\n<b>\n| a | b |\n|---|---|\n\u2028two\x85three\x7f\ufeff"


def card(folder):
    front, _, body = (folder / "README.md").read_text(encoding="utf-8").removeprefix("---\n").partition("\n---\n")
    return yaml.safe_load(front), body


def headings(body):
    tokens = MARKDOWN.parse(body)
    return [(token.type, token.tag) for token in tokens if token.type in ("heading_open", "html_block", "hr", "fence")]


def marks(body):
    """What is marked up in lines but code, of which the kinds have more or less."""
    inline = (child.type for token in MARKDOWN.parse(body) for child in token.children or ())
    return {kind for kind in inline if kind not in ("text", "softbreak", "text_special", "code_inline")}


def test_title_source_and_licence_are_words_in_the_card_and_never_markup(corpus_of, tmp_path):
    told = {}
    for name, words in (("ad_relevance", "plain words"), ("qa_match", f"{HOSTILE} {MORE}")):
        title = " ".join(words.split())[:200].strip()
        corpus = corpus_of(name, source=words, licence=words, text_may_leave=True)
        task = open_records(name, corpus, name, LANGUAGES, size=None, seed="7", gold=[], title=title, **NO_TEST).task
        export(task, tmp_path / name)
        front, body = card(tmp_path / name)
        assert (front["pretty_name"], front["license_name"]) == (title, words)
        assert body.startswith("\n# ")
        told[name] = set(front), headings(body), marks(body), body
    plain, hostile = told.values()
    assert plain[:3] == hostile[:3]
    assert "<script>" not in hostile[3]


@pytest.mark.parametrize("words", [HOSTILE, MORE, *HOSTILE.split(), "- a", "1. a", "+ a", "> a", "===", "``a|"])
def test_words_and_code_are_shown_as_they_were_typed(words):
    """In a paragraph, in a list and in a table."""
    shown = " ".join(words.split())
    for written in (marked_down(words), code(words)):
        for place in ("{}\n", "- {}\n", "| {} |\n|---|\n| {} |\n"):
            inline = [token for token in MARKDOWN.parse(place.replace("{}", written)) if token.type == "inline"]
            assert {child.type for token in inline for child in token.children} <= {
                "text",
                "code_inline",
                "text_special",
            }
            assert {"".join(child.content for child in token.children) for token in inline} == {shown}


@pytest.mark.parametrize("words", [HOSTILE, MORE, "\x01\x1b\x80\x9f\ufffe\U0001f600\U0010ffff", "null", "", "é ü 語"])
def test_any_text_comes_back_from_the_yaml_of_a_card(words):
    written = in_yaml(words)
    assert yaml.safe_load(f"pretty_name: {written}\nlicense: other\n") == {"pretty_name": words, "license": "other"}
    assert len(written.splitlines()) == 1
