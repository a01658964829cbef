"""The question editor writes only the changes into a kind's file."""

from dataclasses import replace

import pytest

from annotate.kinds import files, kind_draft
from annotate.kinds.files import KindError, kind_from_text, read_kind
from annotate.kinds.kind_draft import TEMPLATES, AnswerRow, Draft, FieldRow, read, write

FILES = sorted([*files.HERE.glob("*.toml"), *TEMPLATES.values()])
SMALL = """# a comment
title = "Good?"
form = "choice"
together = "query"
apart = ["query", "title"]

[[layout]]
style = "typed"
fields = ["query", "title"]  # and another

[fields]
title = "Heading"

[[answers]]
code = "1"
name.en = "Yes"

[[answers]]
code = "0"
name = "No"

[sensitive]
warning = "Hard."
"""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_of_which_nothing_was_changed_stays_as_it_is(path):
    text = path.read_text(encoding="utf-8")
    assert write(text, read(text)) == text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_written_from_nothing_is_read_as_the_same(path):
    draft = read(path.read_text(encoding="utf-8"))
    draft.guidelines = {
        code: text if "\n" in text else f"{text}\nA second line." for code, text in draft.guidelines.items()
    }
    again = read(write("", draft))
    assert again == draft


def test_changes_are_written_and_all_else_stays():
    draft = read(SMALL)
    draft.titles["de"] = "Gut?"
    draft.fields[0].name = "question"
    draft.answers.insert(1, AnswerRow("", "p", {"en": "In part", "de": "Zum Teil"}))
    draft.redundancy = "2"
    draft.guidelines["de"] = 'Lies """alles""" \\ gut.'
    written = write(SMALL, draft)
    for line in (
        "# a comment",
        'title = {en = "Good?", de = "Gut?"}',
        'together = "question"',
        'apart = ["question", "title"]',
        'fields = ["question", "title"]  # and another',
        'code = "in-part"',
        'name.en = "Yes"',
        'title = "Heading"',
        'warning = "Hard."',
        "redundancy = 2",
    ):
        assert line in written.splitlines()
    again = read(written)
    assert again.guidelines == draft.guidelines
    assert [answer.code for answer in again.answers] == ["1", "in-part", "0"]
    assert write(written, replace(draft, fields=again.fields)) == written


def test_a_removed_field_leaves_the_keys_that_named_it():
    draft = read(SMALL)
    del draft.fields[0]
    draft.fields[0].style = "found"
    raw = read(written := write(SMALL, draft))
    assert ([field.name for field in raw.fields], "together" in written) == (["title"], False)
    assert 'apart = ["title"]' in written


@pytest.mark.parametrize(
    "text",
    ['answers = [{code = "a", name = "A"}]\nlayout = 5\noptions = 1\nfields = "x"\napart = "x"\ntitle = 3\n', ""],
    ids=["wrong types", "empty"],
)
def test_values_of_a_wrong_type_are_replaced(text, tmp_path):
    draft = Draft(
        titles={"en": "Good?"},
        form="choice",
        fields=[FieldRow("words", "typed")],
        answers=[AnswerRow("", "", {"en": "Yes"}), AnswerRow("", "", {"en": "No"})],
    )
    written = write(text, draft).replace('apart = "x"\n', "")
    assert list(kind_from_text(tmp_path / "mine.toml", written).answers) == ["yes", "no"]


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('title = "Good?"', "", "title"),
        ('"choice"', '"choices"', "form"),
        ('name.en = "Yes"', "", "answer-0"),
        ('code = "0"', 'code = "1"', "answer-2"),
        ('style = "typed"', 'style = "typing"', "field-0"),
        ('title = "Heading"', 'title = ""', "field-1"),
        ("[sensitive]", "[options]\nredundancy = 2.5\n[sensitive]", "redundancy"),
        ("[sensitive]", "[guidelines]\nen = 'no.md'\n[sensitive]", "guidelines-en"),
        ('warning = "Hard."', "", ""),
    ],
)
def test_an_error_has_a_place_in_the_form(old, new, place, tmp_path):
    text = SMALL.replace(old, new)
    draft = read(text)
    draft.answers.insert(1, AnswerRow())  # an empty row, which is not written
    with pytest.raises(KindError) as refused:
        kind_from_text(tmp_path / "mine.toml", text)
    assert kind_draft.form_location(refused.value.path, draft) == place


@pytest.mark.parametrize("name", TEMPLATES)
def test_each_template_is_complete(name):
    kind = read_kind(TEMPLATES[name])
    assert kind.guidelines["en"]
    assert all(answer.meaning for answer in kind.answers.values()) or kind.form.slug == "pair"


def test_a_form_that_was_left_takes_its_table_along():
    text = (files.HERE / "question_writing.toml").read_text(encoding="utf-8")
    draft = read(text)
    assert not draft.lists_answers
    assert "[text]" in write(text, replace(draft, guidelines={"en": "New."}))
    assert "[text]" not in write(text, replace(draft, form="choice"))
