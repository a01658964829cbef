"""A kind that asks for texts is one TOML file."""

import io

import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.kinds import Answer
from annotate.kinds.files import read_kind
from annotate.kinds.forms.free_text import ACCEPTED, ADDED, REJECTED, REMOVED, SAME, canonical, differences
from annotate.kinds.toml_tables import KindError
from annotate.work.judgments import judge
from annotate.work.queue import take

REWRITE = """
title = "Make the sentence simpler"
form = "text"

[text]
least = 3
most = 60
start = "passage"
reviewers = 1

[[layout]]
style = "passage"
fields = ["passage"]
"""


@pytest.fixture
def kind(tmp_path):
    """Return a function that writes a kind's file: kind(("most = 60", "most = 0"))."""

    def make(*changes):
        text = REWRITE
        for old, new in changes:
            text = text.replace(old, new)
        path = tmp_path / "simpler.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return make


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("most = 60", "most = 4001", "most is 4001, but must be from 1 to 4,000."),
        ("least = 3", "least = 61", "least is 61, but must be at most 60, which is most."),
        ('start = "passage"', 'start = "passages"', "'passages' is not a field of the kind. Did you mean passage?"),
        ("reviewers = 1", "reviewers = 0", "reviewers is 0, but must be from 1 to 9."),
        ("reviewers = 1", "readers = 1", "'readers' is not a key of [text]. Did you mean reviewers?"),
        ('form = "text"', 'form = "choice"', 'the table [text] requires form = "text".'),
        ("[text]", 'answers_from = "draw"\n\n[text]', "the answers are free texts. Remove answers_from."),
        ("[[layout]]", "[publishes]\nxglue = 'ntg'\n\n[[layout]]", "requires the fields body (missing: body)"),
        ("[[layout]]", "[options]\nredundancy = 3\n\n[[layout]]", "redundancy must be 1, because one person writes"),
    ],
)
def test_a_wrong_table_is_refused_with_its_line(kind, old, new, sentence):
    with pytest.raises(KindError) as refused:
        read_kind(kind((old, new)))
    assert sentence in str(refused.value)


@pytest.mark.on_sqlite
def test_a_kind_is_described_and_previewed_without_a_database(kind, tmp_path):
    out = io.StringIO()
    call_command("check_kind", str(kind()), stdout=out)
    assert "One annotator writes a text." in out.getvalue()
    assert "language: ." not in out.getvalue()


@pytest.mark.on_sqlite
def test_people_edit_a_given_text(kind, opened, person, client):
    task = opened(kind(), size="1", texts={"p1": "It  is\nof utmost importance."})
    wim = person("wim", "en")
    take(wim, task)
    client.force_login(wim.user)
    page = client.get("/tasks/questions/").text
    assert ">It  is\nof utmost importance.</textarea>" in page
    assert "3 to 60 characters" in page
    with pytest.raises(CommandError, match="--redundancy must be 1"):
        call_command("open_task", "more", "--kind", str(kind()), "--corpus", "passages", "--seed", "1", redundancy="3")


@pytest.mark.on_sqlite
def test_the_question_for_reviewers_is_in_the_language_of_the_page_like_every_question(opened, person, client):
    task = opened(language="ar", texts={"p1": "الكمان له أربعة أوتار."}, size="1")
    writer, reviewer = person("wim", "ar"), person("ria", "ar")
    judge(writer, take(writer, task).pk, Answer("كم عدد أوتار الكمان؟"))
    take(reviewer, task)
    client.force_login(reviewer.user)
    english = client.get("/tasks/questions/").text
    assert "<bdi>Does the passage answer this question, and is it well written?</bdi>" in english
    arabic = client.get("/tasks/questions/", headers={"accept-language": "ar"}).text
    assert "<bdi>هل يجيب المقطع عن هذا السؤال" in arabic


def test_a_text_is_stored_in_one_form(kind):
    form = read_kind(kind()).form
    assert form.read(["  a\u0308\r\n b\u2028c "]) == "ä b c"
    assert form.read(["", " \n"]) == ""
    assert form.read([f"{ACCEPTED}a text", "another"]) == f"{ACCEPTED}a text"
    assert form.read(["another", REJECTED]) == REJECTED
    with pytest.raises(ValueError, match="Several texts were sent"):
        form.read(["one", "two"])
    # Joiners and marks of direction stay, because scripts need them.
    for text in ("می\u200cخواهم", "\u200fשלום", "ja 👩‍👩‍👧", "क्षत्रिय"):
        assert form.read([text]) == canonical(text) == text
        form.check(text)
    # So do parts in the other direction with their ends.
    form.check("the word \u2067שלום\u2069 here")
    for text in ("a\u202eb\u202cc", "a\u2067b", "a\u2069b", "\u202bab\u2069"):
        with pytest.raises(ValueError, match="an invisible character that changes the direction"):
            form.check(text)


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("Who wrote it?", "Who wrote it?", [(SAME, "Who wrote it?")]),
        ("Who wrote it", "Who wrote it?", [(SAME, "Who wrote it"), (ADDED, "?")]),
        ("a big dog", "a small dog", [(SAME, "a "), (REMOVED, "big"), (ADDED, "small"), (SAME, " dog")]),
        ("猫が好き", "犬が好き", [(REMOVED, "猫"), (ADDED, "犬"), (SAME, "が好き")]),
        ("ทำไม", "ทำ", [(SAME, "ทำ"), (REMOVED, "ไม")]),
        ("हिन्दी में", "हिन्दी से", [(SAME, "हिन्दी "), (REMOVED, "में"), (ADDED, "से")]),
    ],
)
def test_the_difference_is_by_words_and_in_scripts_without_spaces_by_characters(old, new, parts):
    assert differences(old, new) == parts
    assert "".join(text for change, text in differences(old, new) if change != REMOVED) == new
