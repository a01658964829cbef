"""`import_corpus FILE`: what the file seems to be is reported, and it is imported if that is certain."""

import json

import pytest
from django.core.management import CommandError

from annotate.actions.commands import call_command
from corpora.storage.layout import manifest_of

pytestmark = pytest.mark.django_db
TABLE = """\
tweet_id;tweet;user;created_at;likes
1;Guten Morgen zusammen;anna;2024-01-02;3
2;Das Wetter ist schön;otto;2024-01-03;4
"""


@pytest.fixture
def run(data_dir, tmp_path, monkeypatch, capsys):
    """Return a function that writes a file, imports it without options, and returns the output."""
    monkeypatch.chdir(tmp_path)

    def run(name, content, **options):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        call_command("import_corpus", name, **options)
        return capsys.readouterr().out

    return run


def test_a_file_is_described_and_imported_and_its_texts_stay_here(run):
    said = run("Beiträge.csv", TABLE)
    assert "Beiträge.csv: CSV, UTF-8, with columns separated by semicolons" in said
    assert "tweet_id    id         1 | 2" in said
    assert "likes       –          3 | 4" in said
    assert "2 accepted, 0 duplicates, 0 rejected" in said
    assert "No licence was stated, so exports will not contain the texts" in said
    manifest = manifest_of("beitrage")
    assert (manifest.licence, manifest.text_may_leave, manifest.rows) == ("not stated", False, 2)
    named = {"id": "tweet_id", "text": "tweet", "author": "user", "posted_at": "created_at"}
    assert manifest.sources[0].columns.items() >= named.items()


def test_the_same_file_is_known_and_another_of_its_name_becomes_another_corpus(run):
    run("a.csv", TABLE, licence="CC0-1.0")
    assert "already imported" in run("a.csv", TABLE)
    run("a.csv", f"{TABLE}3;Noch ein Satz;emil;2024-01-04;5\n")
    assert (manifest_of("a").rows, manifest_of("a-2").rows) == (2, 3)


def test_a_nested_field_is_found_and_the_format_without_a_suffix(run):
    said = run("export", json.dumps([{"id": 1, "data": {"text": "Hello there"}, "annotations": []}]).encode("utf-16"))
    assert "export: JSON, UTF-16" in said
    assert manifest_of("export").sources[0].columns["text"] == "data.text"


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (
            {"id": 1, "body": "a", "message": "b"},
            "The text may be in 2 columns. Add --column text=body or --column text=m",
        ),
        (
            {"id": 1, "title": "a"},
            r'No column seems to contain the text. Add --column text=COLUMN, or --fields "…" for',
        ),
        ({"text": "a"}, "No column seems to contain the id. Add --column id=COLUMN"),
    ],
)
def test_a_file_that_is_ambiguous_is_described_with_the_options_to_choose_from(run, row, sentence):
    with pytest.raises(CommandError, match=f"(?s)a.jsonl: JSON, UTF-8\ncolumn.*first values\n.*{sentence}"):
        run("a.jsonl", json.dumps(row))


def test_options_that_are_given_are_kept(run):
    row = {"id": 1, "body": "a", "message": "b", "language": "en"}
    run("a.jsonl", json.dumps(row), column=["text=message"], licence="CC0-1.0")
    assert manifest_of("a").sources[0].columns["text"] == "message"
    run("b.jsonl", json.dumps(row), fields="body message")
    assert manifest_of("b").fields == ("body", "message")
