"""import_corpus: from files of posts to a corpus."""

import bz2
import fcntl
import gzip
import lzma
from datetime import UTC, datetime

import pyarrow.parquet as pq
import pytest
import zstandard
from django.core.management import CommandError

from annotate.actions.corpus_files import import_corpus_action
from corpora.core import CorpusError
from corpora.core.values import licence_key
from corpora.models import Corpus
from corpora.storage import intake
from corpora.storage.layout import corpora_dir, corpus_dir, digest_of, lock_corpus, manifest_of, read_manifest
from corpora.storage.record_import import Terms, check_import, import_files
from corpora.storage.schemas import POST_SCHEMA
from tests.corpora.conftest import FULL, POSTS, as_jsonl
from tests.corpora.on_disk import bytes_of, posts, rejects, with_a_window_of_2_gb, zipped

pytestmark = pytest.mark.django_db


@pytest.mark.both_databases
def test_a_post_is_masked_hashed_and_put_into_utc_and_the_manifest_names_its_source(write, import_corpus, settings):
    settings.AUTHOR_KEY = "key"
    path = write("a.jsonl", [FULL, FULL, {"id": "x"}])
    output = import_corpus("c", path, source="invented")
    assert posts() == [
        {
            "id": "7",
            "text": "@xzy look: https://example.org",
            "author": "28492470066575718888055fac51a695",
            "posted_at": datetime(2014, 7, 1, 12, tzinfo=UTC),
            "url": "https://example.org/7",
        }
    ]
    assert "Corpus c: 1 post from 1 new file; 1 duplicate dropped, 1 row rejected." in output
    assert Corpus.objects.get().name == "c"
    manifest = manifest_of("c")
    (source,), (part,) = manifest.sources, manifest.parts
    assert (manifest.licence, manifest.text_may_leave, manifest.source) == ("CC0-1.0", True, "invented")
    assert (source.name, source.rows, source.accepted, source.duplicates, source.rejects) == ("a.jsonl", 3, 1, 1, 1)
    assert (source.sha256, source.bytes) == (digest_of(path), path.stat().st_size)
    assert (part.name, part.rows) == ("000001.parquet", 1)
    assert part.sha256 == digest_of(corpus_dir("c") / "parts" / part.name)
    assert pq.read_schema(corpus_dir("c") / "parts" / part.name).equals(POST_SCHEMA)


NOON = datetime(2014, 7, 1, 12, tzinfo=UTC)
TIMES = [
    ("2014-07-01T12:00:00Z", NOON),
    ("2014-07-01 12:00:00", NOON),
    ("2014-07-01", NOON.replace(hour=0)),
    ("20140701", NOON.replace(hour=0)),
    ("01.07.2014", NOON.replace(hour=0)),
    ("1.7.2014", NOON.replace(hour=0)),
    ("2014-07-01T12:00:00.123456+05:30", datetime(2014, 7, 1, 6, 30, 0, 123456, tzinfo=UTC)),
    (1404216000, NOON),
    ("1404216000", NOON),
    (1404216000.5, NOON.replace(microsecond=500000)),
    ("Tue Jul 01 12:00:00 +0000 2014", NOON),
    ("", None),
    (None, None),
]


def test_times_are_read_as_they_are_written_in_the_wild(write, import_corpus):
    import_corpus("c", write("a.jsonl", [FULL | {"id": n, "posted_at": time} for n, (time, _) in enumerate(TIMES)]))
    assert [post["posted_at"] for post in posts()] == [moment for _, moment in TIMES]


BAD_ROWS = [
    (b'{"id": "1", "text": "a"', "The line is not valid JSON"),
    (b"[" * 100_000, "The line is not valid JSON"),
    (b'["1", "a"]', "The line is a list. Each row must be"),
    (b'{"id": "1", "text": "\xff"}', "The line is not UTF-8 (byte 22)"),
    (rb'{"id": "1", "text": "a\u0000"}', "The text contains a NUL"),
    (rb'{"id": "1\u0000", "text": "a"}', "The id contains a NUL"),
    (rb'{"id": "1", "text": "a\ud800"}', "The text contains half of a surrogate pair"),
    (rb'{"id": "1", "text": "a", "author": "\udfff"}', "The author contains half of a surrogate pair"),
    (b'{"text": "a"}', "The id is missing"),
    (b'{"id": null, "text": "a"}', "The id is missing"),
    (b'{"id": " ", "text": "a"}', "The id is empty"),
    (b'{"id": true, "text": "a"}', "The id is true or false. It must be a string or an integer"),
    (b'{"id": 1.5, "text": "a"}', "The id is a number. It must be a string or an integer"),
    (b'{"id": ["1"], "text": "a"}', "The id is a list"),
    (b'{"id": "' + b"1" * 201 + b'", "text": "a"}', "The id has 201 characters. The limit is 200"),
    (rb'{"id": "1\t2", "text": "a"}', "The id contains a tab"),
    (b'{"id": "1"}', "The text is missing"),
    (b'{"id": "1", "text": 5}', "The text is a number. It must be a string"),
    (b'{"id": "1", "text": " \\n\\u3000"}', "The text is empty"),
    (b'{"id": "1", "text": "\\u200b\\u200d"}', "The text is empty"),
    (b'{"id": "1", "text": "a", "author": {}}', "The author is an object"),
    (b'{"id": "1", "text": "a", "url": "ftp://example.org"}', "The url is not a web address"),
    (b'{"id": "1", "text": "a", "url": "javascript:alert(1)"}', "The url is not a web address"),
    (b'{"id": "1", "text": "a", "url": "https://e.org/ b"}', "The url is not a web address"),
    (b'{"id": "1", "text": "a", "url": 5}', "The url is not a web address"),
    (b'{"id": "1", "text": "a", "url": "https://e.org/' + b"b" * 2000 + b'"}', "The url has 2,014 characters"),
    (b'{"id": "1", "text": "a", "posted_at": "yesterday"}', "The time 'yesterday' is not valid"),
    (b'{"id": "1", "text": "a", "posted_at": 1404216000000}', "The time '1404216000000' is not valid"),
    (b'{"id": "1", "text": "a", "posted_at": true}', "The time 'True' is not valid"),
    (b'{"id": "1", "text": "a", "posted_at": NaN}', "The time 'nan' is not valid"),
    (b'{"id": "1", "text": "a", "posted_at": "Tue Jux 01 12:00:00 +0000 2014"}', "The time 'Tue Jux"),
    (b'{"id": "1", "text": "' + b"a" * (1 << 20) + b'"}', "The line is longer than 1,048,576 bytes"),
    (b'{"id": "good", "text": "another text"}', "The id good already occurred with another text"),
]


def test_a_bad_row_is_a_reject_with_its_line_and_reason_and_harms_no_other(write, import_corpus):
    good = [b'{"id": "good", "text": "a"}', *(b'{"id": "%d", "text": "a"}' % n for n in range(len(BAD_ROWS)))]
    lines = [line for row, (bad, _) in zip(good, [*BAD_ROWS, (b"", "")], strict=True) for line in (row, bad)]
    output = import_corpus("c", write("a.jsonl", b"\xef\xbb\xbf" + b"\r\n".join(lines)))
    for line, (reject, (_, reason)) in enumerate(zip(rejects(), BAD_ROWS, strict=True), start=1):
        assert (reject["file"], reject["line"]) == ("a.jsonl", 2 * line)
        assert reject["reason"].startswith(reason)
        assert reject["reason"].endswith(".")
    assert [post["id"] for post in posts()] == ["good", *map(str, range(len(BAD_ROWS)))]
    assert f"{len(BAD_ROWS)} rejected, listed in" in output


def test_the_same_post_again_is_a_duplicate_within_a_file_and_across_files(write, import_corpus):
    first = write("a.jsonl", [{"id": "é", "text": "@ann hi"}, {"id": "e\u0301", "text": "@ben hi"}])
    second = write("b.jsonl", [{"id": "é", "text": "@xzy hi"}, {"id": 2, "text": "hi"}, {"id": "é", "text": "other"}])
    import_corpus("c", first)
    before = bytes_of()["parts/000001.parquet"]
    import_corpus("c", second)
    assert [(post["id"], post["text"]) for post in posts()] == [("é", "@xzy hi"), ("2", "hi")]
    assert [(s.duplicates, s.rejects) for s in manifest_of("c").sources] == [(1, 0), (1, 1)]
    assert rejects(number=2)[0]["line"] == 3
    assert bytes_of()["parts/000001.parquet"] == before


def test_parts_are_cut_at_their_size_and_keep_the_order(write, import_corpus, monkeypatch):
    monkeypatch.setattr(intake, "PART_ROWS", 10)
    monkeypatch.setattr(intake, "_BATCH_ROWS", 7)
    rows = [{"id": str(n), "text": f"text {n}"} for n in range(35)]
    import_corpus("c", write("a.jsonl", [*rows, *rows]), write("b.jsonl", [{"id": "35", "text": "more"}]))
    assert [part.rows for part in manifest_of("c").parts] == [10, 10, 10, 5, 1]
    assert [post["id"] for post in posts()] == [str(n) for n in range(36)]


MANY = as_jsonl(POSTS * 50).encode()
CUT_OFF = "is truncated or damaged"
ENDINGS = {"gz": "gzip", "xz": "xz"}
PACKERS = [
    ("gz", gzip.compress),
    ("bz2", bz2.compress),
    ("xz", lzma.compress),
    ("zst", zstandard.compress),
    ("zst", with_a_window_of_2_gb),
]


@pytest.mark.parametrize(
    ("name", "content", "options", "sentence"),
    [
        ("a.csv", "tweet,body\n1,a\n", {}, "has no columns id, text. Its columns are: tweet, body. Map them"),
        ("a.tsv", "id\tbody\n1\ta\n", {}, "has no column text. Its columns are: id, body."),
        ("a.csv", "id,text,text\n1,a,b\n", {}, "has the column text twice. Rename one of them."),
        ("a.csv", "id;text\n1;a\n", {"delimiter": "comma"}, "contains only the cell 'id;text'"),
        ("a.csv", "id,text\n1,a\n".encode("utf-16"), {"encoding": "utf-8"}, "is not UTF-8 but probably UTF-16."),
        ("a.csv", "id,text\n1,a\n", {"column": ["author=user"]}, "has no column user. Its columns are: id, text."),
        ("a.csv", "id,text\n", {}, "contains no rows."),
        ("a.jsonl", "\n\n", {}, "contains no rows."),
        ("a.jsonl", "", {}, "is empty."),
        ("a.parquet", "no parquet", {}, "cannot be read as parquet"),
        *((f"a.jsonl.{ending}", "plain", {}, f"has the suffix of a {name} file") for ending, name in ENDINGS.items()),
        *((f"a.jsonl.{ending}", pack(MANY)[:-9], {}, CUT_OFF) for ending, pack in PACKERS),
        ("a.jsonl.gz", gzip.compress(MANY) + b"rest", {}, CUT_OFF),
        ("a.jsonl.zip", zipped({"posts.jsonl": MANY})[:-9], {}, CUT_OFF),
        ("a.csv", zipped({"[Content_Types].xml": b"", "xl/workbook.xml": b""}), {}, "cannot be read as an Excel work"),
        ("a.csv", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), {}, "is a spreadsheet. Save it"),
        ("a.jsonl", b"\x04\x22\x4d\x18" + bytes(60), {}, "is compressed with LZ4, which is not supported. Unpack it"),
        ("a.xlsx", b"PK\3\4 no workbook", {}, "is truncated or damaged"),
        ("a.xlsx", "id,text\n1,a\n", {}, "cannot be read as an Excel workbook"),
        ("a.odt", "a", {}, "does not show the format. Add --format jsonl|csv|tsv|parquet|arrow|xlsx"),
        ("a.jsonl", '{"body": "a"}\n' * 2, {}, "has no columns id, text. Its columns are: body. Map them"),
        ("a.jsonl", '{"id": null, "text": "a"}\n' * 2, {}, "all of its 2 rows were rejected. First rejected row:"),
        ("a.jsonl", '{"id": 1, "text": "a"}', {"column": ["body=text"]}, "expected FIELD=COLUMN without spaces"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_imported_is_explained_and_leaves_what_was_there(
    write, import_corpus, name, content, options, sentence
):
    good, bad = write("good.jsonl", POSTS), write(name, content)
    import_corpus("c", good)
    before = bytes_of()
    with pytest.raises(CommandError) as error:
        import_corpus("c", bad, **options)
    assert sentence in str(error.value)
    assert ("iconv" in str(error.value)) == ("UTF-16" in sentence)
    import_corpus("c", good)  # sweeps the list of rejects, which is kept for the user
    assert bytes_of() == before


def test_files_are_imported_one_by_one_and_a_missing_one_stops_the_command_before_anything(
    write, import_corpus, tmp_path
):
    good, bad = write("good.jsonl", POSTS), write("bad.jsonl", '{"a": 1}\n')
    for missing, sentence in [(tmp_path / "none.jsonl", "does not exist"), (tmp_path, "is a folder")]:
        with pytest.raises(CommandError, match=sentence):
            import_corpus("c", good, missing)
    for name in ["../c", "a b", "", "c" * 65, "ç"]:
        with pytest.raises(CommandError, match="is not a valid corpus name"):
            import_corpus(name, good)
    assert read_manifest("c") is None
    assert not Corpus.objects.exists()
    terms = Terms("CC0-1.0")
    outcomes = import_files("c", check_import("c", [good, bad], terms), terms)
    next(outcomes)
    assert Corpus.objects.get().name == "c", "a corpus can be opened as soon as its first file is there"
    with pytest.raises(CorpusError, match="has no column"):
        next(outcomes)
    assert manifest_of("c").rows == len(POSTS)


@pytest.mark.parametrize(
    ("name", "content", "options", "left"),
    [
        ("a.csv", "id,body\n1,a\n", {}, []),
        ("a.jsonl", '{"id": 1, "body": "a"}\n', {}, []),
        ("a.csv", "id,text\n1,a\n", {"licence": " "}, []),
        ("a.csv", "id,text\n1,\n", {}, ["c", "c/lock", "c/rejects", "c/rejects/000001.jsonl"]),  # to be read
    ],
)
def test_a_corpus_without_rows_leaves_nothing_but_the_rejects_that_the_message_names(
    write, import_corpus, name, content, options, left
):
    with pytest.raises(CommandError) as refused:
        import_corpus("c", write(name, content), **options)
    assert ("All rejected rows are listed in" in str(refused.value)) == bool(left)
    assert sorted(str(path.relative_to(corpora_dir())) for path in corpora_dir().rglob("*")) == left


def test_one_row_is_reported_in_the_singular(write, import_corpus):
    with pytest.raises(
        CommandError, match=r"its only row was rejected. First rejected row: line 2: The text is empty\. All rejected"
    ):
        import_corpus("c", write("a.csv", "id,text\n1,\n"))
    output = import_corpus("c", write("b.csv", "id,text\n1,a\n1,a\n1,b\n"))
    assert "b.csv: 1 accepted, 1 duplicate, 1 rejected, listed in" in output
    assert "Corpus c: 1 post from 1 new file; 1 duplicate dropped, 1 row rejected." in output


def test_the_same_files_give_the_same_bytes_and_leftovers_of_a_crash_are_swept(write, import_corpus):
    paths = write("a.jsonl", [*POSTS, {"id": "bad"}]), write("b.jsonl", [{"id": 99, "text": "mehr"}])
    import_corpus("one", *paths)
    import_corpus("two", paths[0])
    import_corpus("two", *paths)
    before = bytes_of("one")
    assert before == bytes_of("two")
    folder = corpus_dir("one")
    (folder / "staging").mkdir()
    for leftover in ("parts/000009.parquet", "votes/000009.parquet", "rejects/000009.jsonl", "staging/rows.parquet"):
        (folder / leftover).write_text("half")
    (folder / "manifest.draft").write_text("half")
    output = import_corpus("one", paths[0])
    assert "a.jsonl: already imported." in output
    assert f"Corpus one: no new files; it contains {len(POSTS) + 1} posts." in output
    assert bytes_of("one") == before


@pytest.mark.both_databases
def test_two_imports_cannot_interleave_and_a_lock_that_was_removed_is_no_lock(write, import_corpus, monkeypatch):
    path = write("a.jsonl", POSTS)
    with lock_corpus("c"), pytest.raises(CommandError, match="Another command is changing the corpus c"):
        import_corpus("c", path)
    flock = fcntl.flock

    def late(lock, how):
        flock(lock, how)
        (corpus_dir("c") / "lock").unlink()

    with monkeypatch.context() as patch:
        patch.setattr("fcntl.flock", late)
        with pytest.raises(CommandError, match="Another command is changing the corpus c"):
            import_corpus("c", path)
    assert "6 posts" in import_corpus("c", path)


@pytest.mark.parametrize("licence", ["CC0", "cc0-1.0", "CC BY 4.0", "CC-BY-SA-3.0"])
def test_text_under_a_free_licence_may_be_published(write, import_corpus, licence):
    import_corpus("c", write("a.jsonl", POSTS), licence=licence)
    assert manifest_of("c").text_may_leave
    assert {licence_key(text) for text in ("CC BY 4.0", "CC_BY_4.0", " Cc - By  4.0\n")} == {"CC-BY-4.0"}


@pytest.mark.parametrize("licence", ["CC-BY-NC-4.0", "Twitter's terms"])
def test_under_another_licence_whether_text_may_be_published_must_be_stated(write, import_corpus, licence):
    path = write("a.jsonl", POSTS)
    with pytest.raises(CommandError, match="Add --text-may-leave or --text-stays"):
        import_corpus("c", path, licence=licence)
    import_corpus("c", path, licence=licence, text_may_leave=False)
    assert not manifest_of("c").text_may_leave


def test_later_imports_may_not_contradict_the_first(write, import_corpus):
    path = write("a.jsonl", POSTS)
    import_corpus("c", path, licence="CC0", source="here", text_may_leave=False)
    more = write("b.jsonl", [{"id": 99, "text": "mehr"}])
    for options in ({"licence": "MIT"}, {"licence": "CC0", "text_may_leave": True}, {"licence": "CC0", "source": "x"}):
        with pytest.raises(CommandError, match="another corpus"):
            import_corpus("c", more, **options)
    import_corpus("c", more, licence="CC0")
    assert manifest_of("c").rows == len(POSTS) + 1


def test_ids_that_a_spreadsheet_would_run_are_taken_with_a_warning(write):
    """An id cannot begin with a tab, because white space is removed."""
    ids = ["=1+1", "+49", "-5", "@name", " =A1", "7", "a=b", "5-1"]
    files = [write("a.jsonl", [{"id": key, "text": f"text {key}"} for key in ids]), write("b.jsonl", POSTS)]
    outcome = import_corpus_action.perform({"corpus": "c", "files": files, "licence": "CC0-1.0"})
    assert [post["id"] for post in posts()][: len(ids)] == [key.strip() for key in ids]
    assert outcome.warned == [
        "a.jsonl: 5 ids begin with one of the characters = + - @, for example =1+1. Spreadsheets run such ids as "
        "formulas, so open exported files as text."
    ]


def test_a_missing_author_is_none_and_a_number_whose_digits_are_lost_is_refused(write, import_corpus):
    authors = ["nan", "nan", "NULL", "None", "[deleted]", "[ Deleted by user ]", "", "12.0", "12", "zoé", "zoe\u0301"]
    rows = [f"{n},text {n},{author}" for n, author in enumerate([*authors, "9.06E+17"])]
    output = import_corpus("c", write("a.csv", "\n".join(["id,text,author", *rows])))
    hashes = [row["author"] for row in posts()]
    assert hashes[:7] == [""] * 7
    assert len(set(hashes[7:])) == 2
    sentence = "The author 9.06E+17 is a number that another program has rewritten; save it as text."
    assert rejects()[0]["reason"] == sentence
    assert "a.csv: 6 rows have no author; the column contains nan (2), NULL (1)" in output
