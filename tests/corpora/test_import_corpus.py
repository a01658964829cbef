"""From files of posts to a corpus."""

import fcntl
import gzip
from datetime import UTC, datetime

import pyarrow.parquet as pq
import pytest
import zstandard
from django.core.management import CommandError

from annotate.actions.import_corpus import ACTION
from corpora.core.values import licence_key
from corpora.models import Corpus
from corpora.storage import intake
from corpora.storage.layout import corpora_dir, corpus_dir, digest_of, manifest_of, read_manifest
from corpora.storage.locks import changing
from corpora.storage.record_import import import_files
from corpora.storage.schemas import POST_SCHEMA
from tests.corpora.conftest import FULL, POSTS, as_jsonl
from tests.corpora.on_disk import bytes_of, posts, rejects

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def test_a_post_is_masked_hashed_and_put_into_utc(write, import_corpus, settings):
    settings.AUTHOR_KEY = "key"
    said = import_corpus("c", write("a.jsonl", [FULL]))
    assert posts() == [
        {
            "id": "7",
            "text": "@xzy look: https://example.org",
            "author": "28492470066575718888055fac51a695",
            "posted_at": datetime(2014, 7, 1, 12, tzinfo=UTC),
            "url": "https://example.org/7",
        }
    ]
    assert "Corpus c: 1 post from 1 new file; 0 duplicates dropped, 0 rows rejected." in said
    assert Corpus.objects.get().name == "c"


def test_the_manifest_says_what_came_from_where(write, import_corpus):
    path = write("a.jsonl", [*POSTS, POSTS[0], {"id": "x"}])
    import_corpus("c", path, source="invented")
    manifest = manifest_of("c")
    (source,), (part,) = manifest.sources, manifest.parts
    assert (manifest.licence, manifest.text_may_leave, manifest.source) == ("CC0-1.0", True, "invented")
    assert (source.name, source.rows, source.accepted, source.duplicates, source.rejects) == ("a.jsonl", 8, 6, 1, 1)
    assert (source.sha256, source.bytes) == (digest_of(path), path.stat().st_size)
    assert (part.name, part.rows) == ("000001.parquet", 6)
    assert part.sha256 == digest_of(corpus_dir("c") / "parts" / part.name)
    assert pq.read_schema(corpus_dir("c") / "parts" / part.name).equals(POST_SCHEMA)


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2014-07-01T12:00:00Z", datetime(2014, 7, 1, 12, tzinfo=UTC)),
        ("2014-07-01 12:00:00", datetime(2014, 7, 1, 12, tzinfo=UTC)),
        ("2014-07-01", datetime(2014, 7, 1, tzinfo=UTC)),
        ("20140701", datetime(2014, 7, 1, tzinfo=UTC)),
        ("2014-07-01T12:00:00.123456+05:30", datetime(2014, 7, 1, 6, 30, 0, 123456, tzinfo=UTC)),
        (1404216000, datetime(2014, 7, 1, 12, tzinfo=UTC)),
        ("1404216000", datetime(2014, 7, 1, 12, tzinfo=UTC)),
        (1404216000.5, datetime(2014, 7, 1, 12, 0, 0, 500000, tzinfo=UTC)),
        ("Tue Jul 01 12:00:00 +0000 2014", datetime(2014, 7, 1, 12, tzinfo=UTC)),
        ("", None),
        (None, None),
    ],
)
def test_times_are_read_as_they_are_written_in_the_wild(write, import_corpus, written, moment):
    import_corpus("c", write("a.jsonl", [{**FULL, "posted_at": written}]))
    assert posts()[0]["posted_at"] == moment


BAD_ROWS = [
    (b'{"id": "1", "text": "a"', "The line is not JSON"),
    (b"[" * 100_000, "The line is not JSON"),
    (b'["1", "a"]', "The line is not a JSON object"),
    (b'{"id": "1", "text": "\xff"}', "The line is not UTF-8 (byte 22)"),
    (rb'{"id": "1", "text": "a\u0000"}', "The text holds a NUL"),
    (rb'{"id": "1\u0000", "text": "a"}', "The id holds a NUL"),
    (rb'{"id": "1", "text": "a\ud800"}', "The text holds half of a surrogate pair"),
    (rb'{"id": "1", "text": "a", "author": "\udfff"}', "The author holds half of a surrogate pair"),
    (b'{"text": "a"}', "The id is missing"),
    (b'{"id": null, "text": "a"}', "The id is missing"),
    (b'{"id": " ", "text": "a"}', "The id is empty"),
    (b'{"id": true, "text": "a"}', "The id is true or false; it must be a string or an integer"),
    (b'{"id": 1.5, "text": "a"}', "The id is a number; it must be a string or an integer"),
    (b'{"id": ["1"], "text": "a"}', "The id is a list"),
    (b'{"id": "' + b"1" * 201 + b'", "text": "a"}', "The id has 201 characters; 200 are the most"),
    (rb'{"id": "1\t2", "text": "a"}', "The id holds a tab"),
    (b'{"id": "1"}', "The text is missing"),
    (b'{"id": "1", "text": 5}', "The text is a number; it must be a string"),
    (b'{"id": "1", "text": " \\n\\u3000"}', "The text is empty"),
    (b'{"id": "1", "text": "\\u200b\\u200d"}', "The text is empty"),
    (b'{"id": "1", "text": "a", "author": {}}', "The author is an object"),
    (b'{"id": "1", "text": "a", "url": "ftp://example.org"}', "The url is not a web address"),
    (b'{"id": "1", "text": "a", "url": "javascript:alert(1)"}', "The url is not a web address"),
    (b'{"id": "1", "text": "a", "url": "https://e.org/ b"}', "The url is not a web address"),
    (b'{"id": "1", "text": "a", "url": 5}', "The url is not a web address"),
    (b'{"id": "1", "text": "a", "url": "https://e.org/' + b"b" * 2000 + b'"}', "The url has 2,014 characters"),
    (b'{"id": "1", "text": "a", "posted_at": "yesterday"}', "The time 'yesterday' cannot be read"),
    (b'{"id": "1", "text": "a", "posted_at": 1404216000000}', "The time '1404216000000' cannot be read"),
    (b'{"id": "1", "text": "a", "posted_at": true}', "The time 'True' cannot be read"),
    (b'{"id": "1", "text": "a", "posted_at": NaN}', "The time 'nan' cannot be read"),
    (b'{"id": "1", "text": "a", "posted_at": "Tue Jux 01 12:00:00 +0000 2014"}', "The time 'Tue Jux"),
    (b'{"id": "1", "text": "' + b"a" * (1 << 20) + b'"}', "The line is longer than 1,048,576 bytes"),
    (b'{"id": "good", "text": "another text"}', "The id good came before with another text"),
]


@pytest.mark.parametrize(("line", "reason"), BAD_ROWS, ids=[reason for _, reason in BAD_ROWS])
def test_a_bad_row_is_a_reject_with_its_line_and_reason_and_harms_no_other(write, import_corpus, line, reason):
    good = b'{"id": "good", "text": "a"}'
    path = write("a.jsonl", b"\n".join([good, line, b"", b'{"id": "last", "text": "b"}']))
    said = import_corpus("c", path)
    (reject,) = rejects()
    assert (reject["file"], reject["line"]) == ("a.jsonl", 2)
    assert reject["reason"].startswith(reason)
    assert reject["reason"].endswith(".")
    assert [post["id"] for post in posts()] == ["good", "last"]
    assert "1 rejected, listed in" in said


def test_a_byte_order_mark_and_windows_line_ends_are_no_harm(write, import_corpus):
    import_corpus("c", write("a.jsonl", b"\xef\xbb\xbf" + as_jsonl(POSTS).replace("\n", "\r\n").encode()))
    assert len(posts()) == len(POSTS)


def test_the_same_post_again_is_a_duplicate_within_a_file_and_across_files(write, import_corpus):
    first = write("a.jsonl", [{"id": "1", "text": "@ann hi"}, {"id": "1", "text": "@ben hi"}])
    second = write("b.jsonl", [{"id": 1, "text": "@xzy hi"}, {"id": "2", "text": "hi"}, {"id": "1", "text": "other"}])
    import_corpus("c", first)
    before = bytes_of()["parts/000001.parquet"]
    import_corpus("c", second)
    assert [(post["id"], post["text"]) for post in posts()] == [("1", "@xzy hi"), ("2", "hi")]
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


@pytest.mark.parametrize(
    ("name", "content", "options", "sentence"),
    [
        ("a.csv", "tweet,body\n1,a\n", {}, "has no columns id, text; its columns are: tweet, body. Say which is which"),
        ("a.tsv", "id\tbody\n1\ta\n", {}, "has no column text; its columns are: id, body."),
        ("a.csv", "id,text,text\n1,a,b\n", {}, "has the column text twice; rename one of them."),
        ("a.csv", "id;text\n1;a\n", {}, "has semicolons between its columns; save it with commas"),
        ("a.csv", "id,text\n1,a\n".encode("utf-16"), {}, "is not UTF-8; it looks like UTF-16."),
        ("a.csv", "id,text\n1,a\n", {"column": ["author=user"]}, "has no column user; its columns are: id, text."),
        ("a.csv", "id,text\n", {}, "holds no rows."),
        ("a.jsonl", "\n\n", {}, "holds no rows."),
        ("a.jsonl", "", {}, "is empty."),
        ("a.parquet", "no parquet", {}, "cannot be read as parquet"),
        ("a.jsonl.gz", "no gzip", {}, "is named as gzip but does not begin as gzip does"),
        ("a.jsonl.gz", gzip.compress(as_jsonl(POSTS * 50).encode())[:-9], {}, "is cut off or damaged"),
        ("a.jsonl.zst", zstandard.compress(as_jsonl(POSTS * 50).encode())[:-9], {}, "is cut off or damaged"),
        ("a.jsonl.gz", gzip.compress(as_jsonl(POSTS).encode()) + b"rest", {}, "is cut off or damaged"),
        ("a.odt", "a", {}, "does not tell its format; give --format jsonl|csv|tsv|parquet"),
        ("a.jsonl", '{"body": "a"}\n' * 2, {}, "has no columns id, text; its columns are: body. Say which is which"),
        ("a.jsonl", '{"id": null, "text": "a"}\n' * 2, {}, "all of its 2 rows were rejected, the first at line 1: The"),
        ("a.jsonl", '{"id": 1, "text": "a"}', {"column": ["body=text"]}, "write FIELD=COLUMN with one of id, text"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_imported_is_explained_and_leaves_nothing(
    write, import_corpus, name, content, options, sentence
):
    good, bad = write("good.jsonl", POSTS), write(name, content)
    import_corpus("c", good)
    before = bytes_of()
    with pytest.raises(CommandError) as error:
        import_corpus("c", bad, **options)
    assert sentence in str(error.value)
    assert manifest_of("c").rows == len(POSTS)
    import_corpus("c", good)  # sweeps the list of rejects, which is left to be read
    assert bytes_of() == before


def test_a_missing_file_or_a_directory_stops_the_command_before_anything(write, import_corpus, tmp_path):
    good = write("good.jsonl", POSTS)
    for bad, sentence in [(tmp_path / "none.jsonl", "does not exist"), (tmp_path, "is a directory")]:
        with pytest.raises(CommandError, match=sentence):
            import_corpus("c", good, bad)
    assert read_manifest("c") is None
    assert not Corpus.objects.exists()


def test_what_was_committed_before_a_bad_file_stays(write, import_corpus):
    good, bad = write("good.jsonl", POSTS), write("bad.csv", "a,b\n1,2\n")
    with pytest.raises(CommandError, match="has no column"):
        import_corpus("c", good, bad)
    assert manifest_of("c").rows == len(POSTS)
    assert Corpus.objects.get().name == "c"


def test_a_corpus_can_be_opened_as_soon_as_its_first_file_is_told_of(write):
    files = [write("a.jsonl", POSTS), write("b.jsonl", [FULL])]
    outcomes = import_files("c", files, licence="CC0-1.0")
    next(outcomes)
    assert Corpus.objects.get().name == "c"
    outcomes.close()


@pytest.mark.parametrize(
    ("name", "content", "options", "left"),
    [
        ("a.csv", "id,body\n1,a\n", {}, []),
        ("a.jsonl", '{"id": 1, "body": "a"}\n', {}, []),
        ("a.csv", "id,text\n1,a\n", {"licence": " "}, []),
        ("a.csv", "id,text\n1,\n", {}, ["c", "c/lock", "c/rejects", "c/rejects/000001.jsonl"]),  # to be read
    ],
)
def test_a_corpus_that_came_to_nothing_leaves_nothing_but_rejects_that_are_told_of(
    write, import_corpus, name, content, options, left
):
    with pytest.raises(CommandError) as refused:
        import_corpus("c", write(name, content), **options)
    assert ("What was rejected is listed in" in str(refused.value)) == bool(left)
    assert sorted(str(path.relative_to(corpora_dir())) for path in corpora_dir().rglob("*")) == left


def test_a_file_whose_only_row_is_rejected_is_told_in_the_singular(write, import_corpus):
    with pytest.raises(CommandError, match=r": its only row was rejected, at line 2: The text is empty\. What was re"):
        import_corpus("c", write("a.csv", "id,text\n1,\n"))
    said = import_corpus("c", write("b.csv", "id,text\n1,a\n1,a\n1,b\n"))
    assert "b.csv: 1 accepted, 1 duplicate, 1 rejected, listed in" in said
    assert "Corpus c: 1 post from 1 new file; 1 duplicate dropped, 1 row rejected." in said


def test_a_file_imported_before_is_skipped_and_nothing_changes(write, import_corpus):
    path = write("a.jsonl", [*POSTS, {"id": "bad"}])
    import_corpus("c", path)
    before = bytes_of()
    said = import_corpus("c", path)
    assert "a.jsonl: already imported." in said
    assert f"Corpus c: nothing is new; it has {len(POSTS)} posts." in said
    assert bytes_of() == before


def test_the_same_files_give_the_same_bytes(write, import_corpus):
    paths = write("a.jsonl", POSTS), write("b.jsonl", [{"id": 99, "text": "mehr"}])
    import_corpus("one", *paths)
    import_corpus("two", paths[0])
    import_corpus("two", *paths)
    assert bytes_of("one") == bytes_of("two")


def test_leftovers_of_a_crash_are_swept(write, import_corpus):
    import_corpus("c", write("a.jsonl", POSTS))
    before = bytes_of()
    folder = corpus_dir("c")
    for leftover in ("parts/000002.parquet", "votes/000009.parquet", "rejects/000002.jsonl", "manifest.draft"):
        (folder / leftover).write_text("half")
    (folder / "staging").mkdir()
    (folder / "staging" / "rows.parquet").write_text("half")
    import_corpus("c", write("a.jsonl", POSTS))
    assert bytes_of() == before


def test_two_imports_cannot_interleave(write, import_corpus):
    path = write("a.jsonl", POSTS)
    with changing("c"), pytest.raises(CommandError, match="Another command is changing corpus c"):
        import_corpus("c", path)
    import_corpus("c", path)


def test_a_lock_that_another_command_removed_with_its_corpus_is_no_lock(write, import_corpus, monkeypatch):
    flock = fcntl.flock

    def late(lock, how):
        flock(lock, how)
        (corpus_dir("c") / "lock").unlink()

    with monkeypatch.context() as patch:
        patch.setattr("fcntl.flock", late)
        with pytest.raises(CommandError, match="Another command is changing corpus c"):
            import_corpus("c", write("a.jsonl", POSTS))
    assert "6 posts" in import_corpus("c", write("a.jsonl", POSTS))


@pytest.mark.parametrize(
    ("licence", "free"),
    [
        ("CC0", True),
        ("cc0-1.0", True),
        ("CC BY 4.0", True),
        ("CC-BY-SA-3.0", True),
        ("CC-BY-NC-4.0", False),
        ("Twitter's terms", False),
    ],
)
def test_whether_text_may_leave_must_be_said_unless_the_licence_is_known_as_free(write, import_corpus, licence, free):
    path = write("a.jsonl", POSTS)
    if free:
        import_corpus("c", path, licence=licence)
        assert manifest_of("c").text_may_leave
        return
    with pytest.raises(CommandError, match="Answer with --text-may-leave or --text-stays"):
        import_corpus("c", path, licence=licence)
    import_corpus("c", path, licence=licence, text_may_leave=False)
    assert not manifest_of("c").text_may_leave


@pytest.mark.parametrize("licence", ["CC BY 4.0", "cc-by-4.0", "CC_BY_4.0", " Cc - By  4.0\n"])
def test_a_licence_has_one_key_however_it_is_written(licence):
    assert licence_key(licence) == "CC-BY-4.0"


def test_later_imports_may_not_contradict_the_first(write, import_corpus):
    path = write("a.jsonl", POSTS)
    import_corpus("c", path, licence="CC0", source="here", text_may_leave=False)
    more = write("b.jsonl", [{"id": 99, "text": "mehr"}])
    for options in ({"licence": "MIT"}, {"licence": "CC0", "text_may_leave": True}, {"licence": "CC0", "source": "x"}):
        with pytest.raises(CommandError, match="another corpus"):
            import_corpus("c", more, **options)
    import_corpus("c", more, licence="CC0")
    assert manifest_of("c").rows == len(POSTS) + 1


@pytest.mark.parametrize("name", ["../c", "a b", "", "c" * 65, "ç"])
def test_a_name_that_is_no_name_is_refused(write, import_corpus, name):
    with pytest.raises(CommandError, match="cannot be a corpus's name"):
        import_corpus(name, write("a.jsonl", POSTS))


def test_ids_that_a_spreadsheet_would_run_are_taken_and_told_of(write):
    """A tab before one cannot stand in an id, and white space is taken off."""
    keys = ["=1+1", "+49", "-5", "@name", " =A1", "7", "a=b", "5-1"]
    files = [write("a.jsonl", [{"id": key, "text": f"text {key}"} for key in keys]), write("b.jsonl", POSTS)]
    outcome = ACTION.perform({"corpus": "c", "files": files, "licence": "CC0-1.0"})
    assert [post["id"] for post in posts()][: len(keys)] == [key.strip() for key in keys]
    assert outcome.warned == [
        "a.jsonl: 5 ids begin with one of = + - @, the first is =1+1. A spreadsheet that opens an exported file takes "
        "these for formulas and runs them: open such files as text."
    ]


def test_who_is_missing_or_gone_is_no_author_and_a_number_that_is_lost_is_refused(write, import_corpus):
    authors = ["nan", "nan", "NULL", "None", "[deleted]", "[ Deleted by user ]", "", "12.0", "12", "zoé", "zoe\u0301"]
    rows = [f"{n},text {n},{author}" for n, author in enumerate([*authors, "9.06E+17"])]
    said = import_corpus("c", write("a.csv", "\n".join(["id,text,author", *rows])))
    written = [row["author"] for row in posts()]
    assert written[:7] == [""] * 7
    assert len(set(written[7:])) == 2
    assert rejects()[0]["reason"] == (
        "The author 9.06E+17 is a number that another program has rewritten; save it as text."
    )
    assert "a.csv: 6 rows name no author; they have nan (2), NULL (1)" in said


def test_ids_in_nfc_and_nfd_are_one(write, import_corpus):
    said = import_corpus("c", write("a.jsonl", [{"id": "café", "text": "a"}, {"id": "cafe\u0301", "text": "a"}]))
    assert "1 accepted, 1 duplicate" in said
