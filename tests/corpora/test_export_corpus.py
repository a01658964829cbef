"""`export_corpus`: an exported corpus can be imported again without loss, in each format."""

import json
import re
import shlex

import pyarrow.parquet as pq
import pytest
from datasets import load_dataset
from django.core.management import CommandError

import assay
from annotate.actions.registry import call_command
from annotate.goldsets.corpus_copy import COPIES
from corpora.storage.layout import corpus_dir, manifest_of
from tests.corpora.conftest import POSTS
from tests.corpora.on_disk import posts

pytestmark = pytest.mark.django_db
TEXTS = [
    "=SUM(A1) \x01\x0b\x0c\x1a\x1b\x1c\x1d\x1e\x7f\x85",
    "'=begins with an apostrophe",
    "two\nlines, \r\nthree\rand \u2028 four \u2029",
    "e\u0301 is not \xe9, a\u00a0b\u200b",
    "  \"quoted\", 'single'; \\n \t tab ",
    "\ufeffa mark of the byte order",
    "nan",
    "1.0",
    "null",
    "\U0001f469\u200d\U0001f692 \u05e9\u05dc\u05d5\u05dd \u202eabc\u202c",
    "-1",
    "+49 @somebody wrote",
    "[1, 2]",
]
IDS = ["007", "-x", "=1", "@a", "'-quoted", "e\u0301", "4", "1,5", "a;b", '"', "a b", "TRUE", "\U0001f600"]
POSTED = [{"id": key, "text": text} for key, text in zip(IDS, TEXTS, strict=True)]
POSTED[0] |= {"author": "ann", "posted_at": "2014-07-01T12:00:00.123456Z", "url": "https://example.org/?a=1,2"}
LABELS = [["a;b", "=c"], [], ["[x]"], ["x", "-y"], ['["z"]'], ["007"], ["e\u0301"], *[["d"]] * 6]
RECORDS = [
    {"id": row["id"], "language": ("de", "zh-CN", "und")[n % 3], "title": "" if n % 2 else row["text"][::-1]}
    | {"body": row["text"], "topics": LABELS[n]}
    for n, row in enumerate(POSTED)
]
OPTIONS = {
    "posts": {},
    "records": {"fields": "title body", "labels": "topics", "may_be_empty": "title"},
}
ROWS = {"posts": POSTED, "records": RECORDS}


@pytest.fixture(params=OPTIONS)
def exported(request, write, printed, tmp_path):
    """Return a corpus's exported folder, and what the command printed."""
    file = write("rows.jsonl", ROWS[request.param])
    printed("import_corpus", "c", file, licence="CC0-1.0", source="the station", **OPTIONS[request.param])
    return tmp_path / "out", printed("export_corpus", "c", out=tmp_path / "out", **{"as": list(COPIES)})


def columns(name):
    return [{column: value for column, value in row.items() if column != "author"} for row in posts(name)]


@pytest.mark.parametrize("format", COPIES)
def test_a_corpus_that_is_exported_and_imported_again_is_the_same_row_by_row(exported, printed, format):
    folder, output = exported
    _, _, _, _, *options = shlex.split(re.search("^assay import_corpus.*", output, re.MULTILINE)[0])
    file = json.loads((folder / "manifest.json").read_text())["copy"]["files"][format]
    call_command("import_corpus", "again", str(folder / file), *options)
    assert len(posts("c")) == len(TEXTS)
    assert columns("again") == columns("c")
    authors = [[bool(row["author"]) for row in posts(name)] for name in ("c", "again")]
    assert authors[0] == authors[1]
    first, second = manifest_of("c"), manifest_of("again")
    assert (first.licence, first.source, first.fields) == (second.licence, second.source, second.fields)


def test_datasets_reads_the_folder_for_hugging_face(exported, tmp_path):
    folder, _ = exported
    rows = load_dataset(str(folder / "huggingface"), split="train", cache_dir=tmp_path / "cache")
    assert rows["id"] == [row["id"] for row in posts("c")]


def test_no_cell_of_the_table_is_run_as_a_formula(exported):
    folder, _ = exported
    table = (folder / "c.csv").read_text(encoding="utf-8-sig")
    assert not re.search(r"(?:^|[,\n])\"?[=+@-]", table)


def test_votes_and_predictions_are_imported_again(write, printed, tmp_path):
    printed("import_corpus", "c", write("a.jsonl", POSTS), licence="CC0-1.0", prelabel=True)
    labels = [{"id": post["id"], "label": "zh" if n else "und", "score": n / 7} for n, post in enumerate(POSTS)]
    printed("import_predictions", "c", write("p.jsonl", labels), name="mine", version="1", map=["zh=zh-CN,zh-TW"])
    output = printed("export_corpus", "c", out=tmp_path / "out", predictions=True)
    printed("import_corpus", "again", tmp_path / "out" / "c.jsonl", licence="CC0-1.0")
    _, _, _, file, *options = shlex.split(re.search("^assay import_predictions.*", output, re.MULTILINE)[0])
    call_command("import_predictions", "again", file, *options)
    stored = [
        pq.read_table(corpus_dir(name) / "predictions" / manifest_of(name).predictions[0].file)
        for name in ("c", "again")
    ]
    assert stored[0] == stored[1]
    votes = map(json.loads, (tmp_path / "out" / "predictions" / "cld2.jsonl").read_text().splitlines())
    assert [vote["label"] for vote in votes][:4] == ["de", "en", "fr", "ru"]


def test_a_corpus_whose_texts_must_not_be_published_is_not_exported(write, printed, tmp_path):
    printed("import_corpus", "c", write("a.jsonl", POSTS), licence="secret", text_may_leave=False)
    with pytest.raises(CommandError, match="texts of corpus c must not be published"):
        printed("export_corpus", "c", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("data_dir")
def test_a_corpus_is_exported_from_python(write, printed, tmp_path):
    printed("import_corpus", "c", write("a.jsonl", POSTS), licence="CC0-1.0")
    assert assay.corpus("c").export(tmp_path / "out", as_=["csv"]).data["copy"]["rows"] == len(POSTS)
    assert (tmp_path / "out" / "c.csv").is_file()
