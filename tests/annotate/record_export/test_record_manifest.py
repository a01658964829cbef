"""The manifest and the card of an exported set of records, and predictions measured on it."""

import re
from hashlib import sha256

import pytest
import yaml
from django.utils import timezone
from markdown_it import MarkdownIt

from annotate.actions.registry import call_command
from annotate.goldsets.exporter import ExportError, export
from annotate.kinds import KINDS
from annotate.models import Qualification, Trial
from annotate.quality import agreement_statistics as agreeing
from annotate.quality.guideline_versions import current
from annotate.reports.table_formats import code, escape_markdown, quote_yaml
from tests.annotate.acts import open_records
from tests.annotate.goldsets.set_contents import card_of, json_lines
from tests.annotate.record_export.records import LANGUAGES, rows_of


def test_manifest_and_card_name_the_kind_and_say_how_people_were_chosen_and_how_far_they_agree(ads, out):
    manifest = export(ads, out)
    assert manifest["task"]["kind_sha256"] == sha256(KINDS["ad_relevance"].source.encode()).hexdigest()
    assert manifest["task"]["languages"] == sorted(LANGUAGES)
    assert (manifest["people"]["annotators"], manifest["people"]["answers"]) == (4, 180)
    assert manifest["design"] == "records"
    header, text = card_of(out)
    assert header["language"] == ["de", "en", "fr"]
    assert header["annotations_creators"] == ["crowdsourced"]
    for words in (
        "4 people who read the language gave 180 answers",
        "3 people were asked about each record",
        "Nobody was tested before they began.",
        "| Good | Good |",
        "| all |",
    ):
        assert words in text
    report = agreeing.report(ads)
    for language, name in zip(LANGUAGES, ("English", "German", "French"), strict=True):
        alpha = report["languages"][language]["nominal"]
        assert manifest["agreement"]["languages"][language]["nominal"] == alpha
        assert f"| {language} | {name} | 20 | " in text
        assert f"{alpha['value']:.3f} [{alpha['low']:.3f}, {alpha['high']:.3f}]" in text


def test_where_others_are_asked_later_the_card_says_which_answers_agreement_is_of(opened, answered, out):
    task = answered(opened("ad_relevance", languages=["en"], stop_early=True))
    export(task, out)
    words = "For each record, the first 2 answers count here, since more are asked for only if these do not agree."
    assert words in card_of(out)[1]
    task.stop_early = False
    task.save()
    export(task, out)
    assert words[:15] not in card_of(out)[1]


def test_the_card_says_how_many_passed_the_test_and_how_many_were_let_in(ads, crowd, manager, out):
    ads.test_items = 8
    ads.save()
    now, text = timezone.now(), current(ads, "en")
    for person in crowd[:2]:
        for language in ("en", "de"):
            times = {"started_at": now, "finished_at": now, "right": 8, "passed": True}
            fields = {"task": ads, "language": language, "annotator": person}
            trial = Trial.objects.create(kind="test", number=1, guidelines=text, **times, **fields)
            Qualification.objects.create(trial=trial, major=text.major, at=now, **fields)
    for person in crowd[1:]:
        Qualification.objects.create(
            annotator=person, task=ads, language="fr", major=text.major, at=now, granted_by=manager
        )
    assert export(ads, out)["people"]["qualified"] == {"by_test": 2, "let_in": 2}
    words = " ".join(card_of(out)[1].split())
    assert (
        "4 tests were taken and 4 passed: 2 people qualified by the test, and a manager let in 2 without it." in words
    )


def test_a_field_named_like_a_column_is_refused(ads, out):
    ads.kind_file = ads.kind_file.replace('"description"]', '"description", "stage"]')
    assert ads.kind.fields == ("query", "title", "description", "stage")
    with pytest.raises(ExportError) as refused:
        export(ads, out)
    assert str(refused.value).startswith(
        "The records have a field named 'stage', but every export already has a column"
    )
    assert not out.exists()


def test_imported_judgments_are_exported_with_their_ids(db, tmp_path, out):
    path = tmp_path / "judgments.tsv"
    rows = ("task\tworker\tlabel", "1 ann yes", "1 bob yes", "1 cec no", "2 ann no", "2 bob yes")
    path.write_text("\n".join(rows).replace(" ", "\t"))
    call_command("import_judgments", "elsewhere", str(path))
    call_command("export_gold", "elsewhere", out=out)
    [row] = rows_of(out)
    assert (row["id"], row["label"], len(row["judgments"])) == ("1", "yes", 3)
    [other] = json_lines(out / "left_out.jsonl")
    assert (other["id"], other["left_out"]) == ("2", "no_majority")
    assert "ann" not in {judgment["annotator"] for judgment in row["judgments"]}
    header, card = card_of(out)
    assert header["license_name"] == "not stated"
    words = " ".join(card.split()).replace("The intervals (95%) are over records drawn anew.", "")
    assert "5 judgments made elsewhere by 3 people, 2 to 3 to an item. The label is the answer of more" in words
    untrue = "[Dd]rawn|who read the language|saw the others|tested|were asked|licence keeps"
    assert not re.search(untrue, words)


# --- what people typed stands in the card as they typed it, and is no markup there


# HTML that a card may contain: more than our own Markdown allows.
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
    """Return the markup in the lines, without code, which differs between kinds."""
    inline = (child.type for token in MARKDOWN.parse(body) for child in token.children or ())
    return {kind for kind in inline if kind not in ("text", "softbreak", "text_special", "code_inline")}


def test_title_source_and_licence_are_words_in_the_card_and_never_markup(corpus_of, tmp_path):
    cards = {}
    for name, words in (("ad_relevance", "plain words"), ("qa_match", f"{HOSTILE} {MORE}")):
        title = " ".join(words.split())[:200].strip()
        corpus = corpus_of(name, source=words, licence=words, text_may_leave=True)
        task = open_records(name, corpus, name, LANGUAGES, size=None, seed="7", gold=[], title=title, **NO_TEST).task
        export(task, tmp_path / name)
        front, body = card(tmp_path / name)
        assert (front["pretty_name"], front["license_name"]) == (title, words)
        assert body.startswith("\n# ")
        cards[name] = set(front), headings(body), marks(body), body
    plain, hostile = cards.values()
    assert plain[:3] == hostile[:3]
    assert "<script>" not in hostile[3]


@pytest.mark.parametrize("words", [HOSTILE, MORE, *HOSTILE.split(), "- a", "1. a", "+ a", "> a", "===", "``a|"])
def test_words_and_code_are_shown_as_they_were_typed(words):
    """The words occur in a paragraph, a list and a table."""
    shown = " ".join(words.split())
    for written in (escape_markdown(words), code(words)):
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
    written = quote_yaml(words)
    assert yaml.safe_load(f"pretty_name: {written}\nlicense: other\n") == {"pretty_name": words, "license": "other"}
    assert len(written.splitlines()) == 1
