"""hydrate: ids of a published set go out, texts come in, and removed posts are counted."""

import json

import pytest
from django.core.management import CommandError

from annotate.actions.commands import call_command

LABELS = "en\t11\nen\t12\nde\t13\nfr\t14\nde\t15\n"


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        text = content if isinstance(content, str) else "".join(json.dumps(row) + "\n" for row in content)
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


@pytest.fixture
def printed(capsys):
    def printed(name, *arguments, **options):
        call_command(name, *map(str, arguments), **options)
        said = capsys.readouterr()
        return said.out + said.err

    return printed


@pytest.fixture
def gold(write, tmp_path):
    call_command(
        "import_gold", str(write("published.tsv", LABELS)), out=tmp_path / "gold", design="uniform", name="twitter"
    )
    return tmp_path / "gold"


@pytest.fixture
def hydrating(gold, printed, tmp_path):
    return lambda *texts, **options: printed("hydrate", gold, texts=texts, out=tmp_path / "out", **options)


def test_ids_go_out_and_texts_come_in_and_removed_posts_are_listed(hydrating, write, tmp_path):
    out = tmp_path / "out"
    assert f"5 ids written to {out / 'ids.txt'}." in hydrating()
    assert (out / "ids.txt").read_text() == "11\n12\n13\n14\n15\n"
    tweets = [
        {"id_str": "13", "full_text": "Guten Tag", "user": {"name": "x"}},
        {"id_str": "11", "full_text": "Good day"},
        {"id_str": "14", "full_text": None},
        {"id_str": "15", "full_text": "[deleted]"},
        {"id_str": "99", "full_text": "Of another set"},
    ]
    output = hydrating(write("tweets.jsonl", tweets), column=["id=id_str", "text=full_text"])
    assert "2 of 5 posts have a text" in output
    assert "3 have vanished" in output
    assert "Note: 1 row ignored, of other posts or repeated." in output
    assert "fr 1 0 100.0%" in " ".join(output.split())
    assert [json.loads(line) for line in (out / "posts.jsonl").read_text(encoding="utf-8").splitlines()] == [
        {"id": "11", "label": "en", "text": "Good day"},
        {"id": "13", "label": "de", "text": "Guten Tag"},
    ]
    assert (out / "vanished.txt").read_text() == "12\n14\n15\n"


def test_arrays_as_twurl_prints_them_are_read_and_faults_are_counted(hydrating, write, tmp_path):
    lines = '["11", "Good day"]\n["12", "Hello"]\n["13"\n["", "None"]\n'
    output = hydrating(write("tweets.jsonl", lines))
    assert "2 of 5 posts have a text" in output
    assert "2 invalid rows ignored. The first is" in output
    (tmp_path / "out" / "notes.txt").touch()
    with pytest.raises(CommandError, match=r"contains notes\.txt, which hydrate did not write"):
        hydrating()


@pytest.mark.django_db
def test_hydrated_posts_are_imported_and_vanished_ones_are_left_out_of_an_evaluation(
    hydrating, gold, write, tmp_path, printed
):
    hydrating(write("tweets.jsonl", [{"id": "11", "text": "Good day"}, {"id": "13", "text": "Guten Tag"}]))
    out = tmp_path / "out"
    assert "2 posts from 1 new file" in printed("import_corpus", "tweets", out / "posts.jsonl", licence="CC0-1.0")
    predictions = write("mine.tsv", "11\ten\n13\ten\n")
    output = printed("evaluate", predictions, gold=[gold], vanished=out / "vanished.txt")
    assert "Left out because they are listed as vanished: 3 posts." in output
