"""check_kind describes what people will see of a valid file."""

import re

import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.kinds import KINDS
from annotate.kinds.files import HERE
from annotate.kinds.kind_summary import summary_of
from annotate.models import Task
from tests.annotate.kinds.files import ACTS, MOOD, mood, pidgin


def checked(path, capsys, **options):
    call_command("check_kind", path, **options)
    return capsys.readouterr().out


def test_the_warning_the_daily_limit_and_the_audited_filter_are_described():
    summary = summary_of(KINDS["toxic_pairs"])
    others = "Arabic (ar), German (de), Spanish (es), French (fr), Hebrew (he)"
    assert f"annotators must accept this warning (also in {others}):\n- Some of these messages" in summary
    assert "An annotator gets at most 50 " in summary
    assert "toxic is the answer for items that it should drop" in summary
    assert "hurt" not in summary_of(KINDS["topic"])


def test_what_people_will_see_is_said_in_english(write, capsys):
    path = write(MOOD + '[guidelines]\nen = """\nRead.\n"""\n')
    assert checked(path, capsys).splitlines() == [
        "mood: How content is the reviewer?",
        "Annotators see, from top to bottom:",
        "- product (question: a question)",
        "- review (passage: a text to read)",
        "Annotators answer with a button or its key, best first, or skip with the space bar:",
        "- Content (+, key A, in other languages Zufrieden): would buy it again",
        "- Annoyed (-, key 2)",
        "Each record gets 3 answers.",
        "The label is the majority of the answers. A record without a label is discarded.",
        "Before they start, annotators must pass a test of 10 questions with at least 80% correct answers. "
        "They have 2 tries.",
        "There are no hidden gold answers.",
        "Before there are any answers, forecasts assume 12 seconds per answer.",
        "Records with the same product are never in different splits.",
        "Published as JSONL and Parquet only.",
        "Guidelines in English (en). Annotators of other languages read them in English (en).",
        f"The page is in {path.with_suffix('.html')}.",
    ]


def test_the_page_is_one_file_and_shows_the_language_that_is_asked_for(write, capsys):
    path = write(MOOD + '[guidelines]\nen = """\n# Look twice\n"""\n')
    out = path.with_name("page.html")
    checked(path, capsys, out=out, language="de")
    page = out.read_text(encoding="utf-8")
    assert "<b>Zufrieden</b><small>würde es wieder kaufen</small>" in page
    assert '<dt>Review</dt><dd lang="de">' in page
    assert "<h1>Look twice</h1>" in page
    assert "--accent" in page
    assert not re.search(r"<script|<link|src=|@import|url\(", page)


def test_beside_a_document_0_skips_and_the_page_shows_one_that_is_longer_than_a_window(write, capsys):
    path = write(MOOD.replace('"passage"', '"document"'))
    text = checked(path, capsys)
    assert "or skip with 0:" in text
    page = path.with_suffix(".html").read_text(encoding="utf-8")
    assert "Skip <kbd>0</kbd>" in page
    assert page.count('<p dir="auto">The battery lasts two days') == 10


def test_a_vocabularys_number_of_answers_is_reported_and_the_page_needs_no_import(write, capsys):
    path = write(ACTS)
    text = checked(path, capsys)
    for sentence in (
        "Annotators look up concepts of the vocabulary eurovoc and answer with 2 to 5 of them, or skip with the space "
        "bar.",
        "An answer with both a concept and a broader one is rejected.",
        "An answer is correct if its F1 with the known answer is at least 0.6.",
        "The label consists of the concepts that more than half of the annotators choose. A document without a "
        "label goes to an adjudicator.",
        "Exported sets also contain: type.",
        "The field split contains the split of each document.",
    ):
        assert sentence in text.splitlines()
    page = path.with_suffix(".html").read_text(encoding="utf-8")
    assert "Annotators search the concepts of the vocabulary <b>eurovoc</b>" in page
    assert "Daily flights to Rome from June" in page


@pytest.mark.parametrize("base", ["language", "verify"])
def test_the_page_of_a_question_about_languages_names_those_that_are_added(write, capsys, base):
    path = write(pidgin("language", base).replace("labels", "# labels"), "pidgin.toml")
    text = checked(path, capsys)
    assert "The kind adds the language Nigerian Pidgin (pcm), autonym Naijá." in text
    assert "The kind adds the language Brazilian Portuguese (pt-BR). Detectors may label it as Portuguese (pt)." in text
    page = path.with_suffix(".html").read_text(encoding="utf-8")
    assert "Nigerian Pidgin" in page
    assert "Naijá" in page


@pytest.mark.parametrize("slug", [slug for slug, kind in KINDS.items() if kind.source])
def test_the_files_that_come_with_assay_are_right(slug, capsys, tmp_path):
    text = checked(HERE / f"{slug}.toml", capsys, out=tmp_path / "page.html")
    assert text.startswith(f"{slug}: {KINDS[slug].title}\n")


# --- a kind of question is one file


def test_labels_are_called_by_their_names():
    for slug, names in (
        ("web_ranking", {"4": "Perfect", "3": "Excellent", "2": "Good", "1": "Fair", "0": "Bad"}),
        ("qa_match", {"1": "Yes", "0": "No"}),
        ("ad_relevance", {"Good": "Good", "Bad": "Bad"}),
        ("language", {"de": "German", "und": "Undefined"}),
        ("verify", {"de": "German", "not-de": "Not German", "und": "Undefined"}),
        # as they came, though they may look like languages
        ("imported", {"de": "de", "und": "und", "7": "7"}),
    ):
        assert {label: KINDS[slug].name(label) for label in names} == names


def test_a_wrong_file_opens_no_task_and_is_told_in_one_sentence(write, db):
    for text, sentence in (
        (mood("style", "stile"), "{}, line 7: 'stile' is not a key of [[layout]]. Did you mean s"),
        ('title = "Made elsewhere"\nform = "choice"\n', "The kind {} has no [[layout]], so it cannot be annotated"),
    ):
        path = write(text)
        with pytest.raises(CommandError) as refused:
            call_command("open_task", "t", "--kind", path, "--corpus", "ads", "--seed", "1")
        assert str(refused.value).startswith(sentence.format(path))
    assert not Task.objects.exists()


@pytest.mark.parametrize(
    ("kind", "share", "applies"), [("topic", 0.0, False), ("topic", 0.1, True), ("language", 0.0, True)]
)
def test_an_audit_of_declared_labels_applies_where_some_are_chosen_and_that_of_agreement_always(kind, share, applies):
    task = Task(kind_slug=kind, options={"audit_share": share, "audit_least": 0})
    assert any(control.look_at == "audit" for control in task.hooks["panel"]) is applies
