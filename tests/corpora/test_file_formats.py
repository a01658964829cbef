"""Files of posts in every format, compression and encoding, intact and damaged."""

import json
import lzma
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from django.core.management import CommandError

from corpora.sources.text import MAX_LINE, values_of
from tests.corpora.conftest import POSTS, as_jsonl
from tests.corpora.on_disk import posts, rejects, with_a_window_of_2_gb

pytestmark = pytest.mark.django_db


LONG = 12345678901234567890
HUGE_NUMBER = '{"id": ' + "9" * 5000 + ', "text": "a"}\n'
IN_RUSSIAN = as_jsonl([{"id": "1", "text": "Одно слово. " * 9_000}]).encode("cp1251")
SKIPPED = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"  # a frame that zstd skips


def test_a_packing_is_known_by_its_first_bytes_and_rows_may_be_written_in_several_ways(write, import_corpus, tmp_path):
    """Every format in every compression is read in test_columnar.py."""
    jsonl = as_jsonl(POSTS).encode()
    rows = pa.table({"id": [int(post["id"]) for post in POSTS], "text": [post["text"] for post in POSTS]})
    pq.write_table(rows, tmp_path / "g.parquet")
    table = "text,id,author\n" + "".join(f'"{post["text"]}",{post["id"]},ann\n' for post in POSTS)
    files = {
        "of_a_wrong_name.jsonl.gz": zstandard.compress(jsonl),
        "long_window.jsonl.zst": with_a_window_of_2_gb(jsonl),
        "two_frames.jsonl.zst": SKIPPED + zstandard.compress(jsonl[:100]) + zstandard.compress(jsonl[100:]),
        "n.jsonl": b"\xef\xbb\xbf" + json.dumps(POSTS, indent=1, ensure_ascii=False).encode(),
        "o.jsonl": "\n".join(json.dumps(post, indent=2) for post in POSTS).encode(),
        "cr.jsonl": jsonl.replace(b"\n", b"\r"),
        "cr.csv": table.replace("\n", "\r").encode(),
        "g.parquet": (tmp_path / "g.parquet").read_bytes(),
    }
    expected = [
        (post["id"], "@xzy @xzy https://example.org/a" if post["id"] == "6" else post["text"]) for post in POSTS
    ]
    for name, content in files.items():
        corpus = name.replace(".", "_")
        import_corpus(corpus, write(name, content))
        assert [(post["id"], post["text"]) for post in posts(corpus)] == expected, name


def test_csv_may_quote_newlines_and_one_bad_row_stays_one(write, import_corpus):
    content = b'id,text\n1,"two\nlines, ""quoted"""\n2,"broken" quote\n3,too,many\n4\n5,\xff\n\n6,fin\xc3\xa9\n7,'
    import_corpus("c", write("a.csv", content + b"a" * 200 + b"\n8,end\n"), longest_line=100)
    assert [(post["id"], post["text"]) for post in posts()] == [
        ("1", 'two\nlines, "quoted"'),
        ("6", "finé"),
        ("8", "end"),
    ]
    assert [(reject["line"], reject["reason"][:22]) for reject in rejects()] == [
        (4, "The row is not valid C"),
        (5, "The row has 3 fields, "),
        (6, "The row has 1 field, b"),
        (7, "The row is not UTF-8."),
        (10, "The line is longer tha"),
    ]
    import_corpus("tsv", write("a.tsv", 'id\ttext\n1\t"open quote\n2\ta "b" c\n'))
    assert [post["text"] for post in posts("tsv")] == ['"open quote', 'a "b" c']


ANEW = "The following lines are read separately."
UNCLOSED = f"A quote is opened in this row and not closed. {ANEW}"


def misclosed(line):
    return f"A quote is opened in this row and not closed correctly by line {line}. {ANEW}"


TAIL = "The row contains a quote that may close a quote from an earlier row, which was rejected."
LATE = f"A quote is opened in this row and closed in line 4. This makes 3 fields, but the header has 2. {ANEW}"


@pytest.mark.parametrize(
    ("rows", "ids", "faults"),
    [
        (b'bad,"open\n1,a\n2,"b\nb"\n3,c\n', "1 2 3", [(2, misclosed(4))]),
        (b'bad,"open\n1,a\n2,5",\n3,c\n', "1 3", [(2, LATE), (4, TAIL)]),
        (b'bad,"open\n1,a\nbad,"open\n2,b\n', "1 2", [(2, misclosed(4)), (4, UNCLOSED)]),
        (b'bad,"open\n1,\xc3\xa9\n2,\xff\n3,c\n', "1 3", [(2, UNCLOSED), (4, "The row is not UTF-8.")]),
        (
            b'bad,"open\n1,a\n2,' + b"b" * 200 + b"\n3,c\n",
            "1 3",
            [(2, UNCLOSED), (4, "The line is longer than 100 bytes.")],
        ),
        (b'1,a\nbad,"open', "1", [(3, UNCLOSED)]),
        (b'1,"a ""quoted""\nb, ""c""\n\nd"\n2,b\n', "1 2", []),
        (b'1,"a\n\nb",too many\n2,b\n', "2", [(2, LATE), (4, TAIL)]),
        (b'1,"a\nb, c" oops\n2,b\n', "2", [(2, misclosed(3)), (3, TAIL)]),
        (b'1,unlike\n2,"the next ends\n3,with a quote"\n', "1 2", []),  # a record like any other
    ],
)
def test_the_lines_that_an_open_quote_took_are_read_anew(write, import_corpus, rows, ids, faults):
    import_corpus("c", write("a.csv", b"id,text\n" + rows), longest_line=100)
    assert [(reject["line"], reject["reason"]) for reject in rejects()] == faults
    assert [post["id"] for post in posts()] == ids.split()


def test_quotes_that_close_and_open_on_every_line_are_given_up_in_good_time(write, import_corpus):
    # Each line alone opens a quote; after another one, it closes that quote and opens the next.
    rows = 20_000
    import_corpus("c", write("a.csv", "id,text\nfirst,fine\n" + 'a","b\n' * rows + "last,fine\n"))
    assert [reject["line"] for reject in rejects()] == list(range(3, rows + 3))
    assert [post["id"] for post in posts()] == ["first", "last"]


def test_parquet_is_read_as_lines_would_have_it_and_a_bad_row_stays_one(import_corpus, tmp_path):
    def of_parquet(name, **columns):
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
        import_corpus(name, tmp_path / f"{name}.parquet")
        return posts(name)

    letters = pa.array(["a", "b", "c"]).dictionary_encode()
    times = pa.array([1404216000000000001, None, 0], pa.timestamp("ns"))
    timed = of_parquet("times", id=pa.array(["1", "2", None]), text=letters, posted_at=times)
    assert [post["posted_at"] for post in timed] == [datetime(2014, 7, 1, 12, tzinfo=UTC), None]
    assert rejects("times") == [{"file": "times.parquet", "line": 3, "reason": "The id is missing."}]
    text = pa.array([b"a", b"\xff", b"c"]).view(pa.string())
    assert [post["id"] for post in of_parquet("broken", id=["1", "2", "3"], text=text)] == ["1", "3"]
    assert rejects("broken")[0]["reason"] == "The row is not UTF-8."
    for name, ids, expected in (
        ("bytes", pa.array([b"1", b"2"], pa.binary()), ["1", "2"]),
        ("decimals", pa.array([Decimal("12345678901234567890"), Decimal(2)], pa.decimal128(38, 0)), [str(LONG), "2"]),
        ("uuids", pa.array([UUID(int=1), UUID(int=2)], pa.uuid()), [str(UUID(int=1)), str(UUID(int=2))]),
    ):
        rows = of_parquet(name, id=ids, text=pa.array([b"a", b"b"], pa.binary()))
        assert [(post["id"], post["text"]) for post in rows] == list(zip(expected, "ab", strict=True))


@pytest.mark.parametrize("letters", ["é", "aé", "日本", "a😀"])
def test_a_long_line_of_utf_8_is_not_taken_for_another_encoding(write, import_corpus, letters):
    """A line is checked in pieces, which may split a character."""
    file = write("a.jsonl", as_jsonl([{"id": "1", "text": letters * 40_000}]) + "broken\n")
    with pytest.raises(CommandError) as error:
        import_corpus("c", file, max_rejects="5%")
    assert "First rejected row: line 2: " in str(error.value)
    assert "UTF-8" not in str(error.value)


def test_what_is_packed_by_xz_and_unpacks_to_too_much_is_refused(write, import_corpus):
    zeros = bytes(70 << 20)
    for name, content in (("a.jsonl.xz", lzma.compress(zeros)), ("b.jsonl.zst", with_a_window_of_2_gb(zeros))):
        with pytest.raises(CommandError, match="its content exceeds the limit of 67,108,864"):
            import_corpus("c", write(name, content))


def test_each_element_of_an_array_is_a_row_and_a_bad_one_stays_one(write, import_corpus):
    content = """[
 {"id": "1", "text": "a ] } \\" [ { b"},
 {"id": "2",
  "text": "c"}, 5, "six, [7]",
 {"id": "3", "text": },
 {"id": "4", "text": "LONG"} {"id": "5", "text": "e\\\\"}
]
""".replace("LONG", "d" * 200)
    import_corpus("c", write("a.json", content), longest_line=100)
    assert [(post["id"], post["text"]) for post in posts()] == [
        ("1", 'a ] } " [ { b'),
        ("2", "c"),
        ("5", "e\\"),
    ]
    assert {row["line"]: row["reason"] for row in rejects()} == {
        4: "There is text outside of a JSON object. Each row must be a JSON object.",
        5: "There is text outside of a JSON object. Each row must be a JSON object.",
        6: "The line is not valid JSON: Expecting value: line 1 column 21 (char 20).",
        7: "The object is longer than 100 bytes.",
    }


def test_an_array_that_is_cut_off_is_reported_and_not_taken_for_whole(write, import_corpus):
    for name, content, count in (
        ("c", json.dumps(POSTS, indent=1)[:-30], len(POSTS) - 1),
        ("d", json.dumps(POSTS)[:-1], len(POSTS)),
    ):
        import_corpus(name, write(f"{name}.json", content))
        assert len(posts(name)) == count
        sentence = "The JSON is not closed at the end of the file. The file is probably truncated."
        assert rejects(name)[0]["reason"] == sentence


def test_an_array_over_many_pieces_of_a_file_is_read_like_its_lines(write, import_corpus):
    rows = [{"id": str(n), "text": f'said "{n}" \\ [{{' * 20} for n in range(5000)]
    for name, indent in (("lines", None), ("array", None), ("pretty", 1)):
        content = as_jsonl(rows) if name == "lines" else json.dumps(rows, indent=indent)
        import_corpus(name, write(f"{name}.json", content))
    assert posts("array") == posts("pretty") == posts("lines")


def test_rows_in_the_same_line_of_an_array_are_counted_apart(write, import_corpus):
    rows = [
        {"id": "1", "text": "one"},
        {"id": "2"},
        {"id": "3"},
        {"id": "1", "text": "one"},
        {"id": "4", "text": "four"},
    ]
    import_corpus("line", write("line.json", json.dumps(rows)))
    assert [post["id"] for post in posts("line")] == ["1", "4"]
    assert [entry["line"] for entry in rejects("line")] == [2, 3]


def test_each_element_of_an_array_that_is_no_object_is_rejected(write, import_corpus):
    import_corpus(
        "mid", write("mid.json", '[{"id": "1", "text": "one"}, 5, null,\n"x", [], {"id": "2", "text": "two"}, true]')
    )
    assert (len(posts("mid")), len(rejects("mid"))) == (2, 5)


NESTED = [{"id": 11, "data": {"text": "The ferry leaves at seven"}, "annotations": [{"id": 5}]}]
WITHIN = "is a single JSON object, and its rows .* in '{}'.*jq -c '{}' a.json >"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.json", {"data": {"posts": POSTS}}, WITHIN.format("data.posts", r".data.posts\[\]")),
        ("a.json", {"a b": {"c": {"d-e": POSTS}}}, WITHIN.format("a b.c.d-e", r'.\["a b"\].c.\["d-e"\]\[\]')),
        ("a.jsonl", HUGE_NUMBER, "The line contains a number with thousands of digits, which cannot be read. Save"),
        (
            "a.jsonl",
            IN_RUSSIAN,
            "a non-Latin script. Save it as UTF-8; import_corpus can also read it with --encoding",
        ),
    ],
)
def test_a_file_whose_rows_are_written_otherwise_is_refused_with_what_to_do(
    write, import_corpus, name, content, sentence
):
    path = write(name, content if isinstance(content, str | bytes) else json.dumps(content))
    with pytest.raises(CommandError, match=sentence):
        import_corpus("c", path, max_rejects="5%")


def test_columns_are_mapped_and_what_lies_within_an_object_is_a_column_by_its_path(write, import_corpus):
    import_corpus("c", write("a.json", json.dumps(NESTED)), column=["text=data.text"])
    import_corpus("c", write("a.csv", "tweet_id,body\n1,hallo\n"), column=["id=tweet_id", "text=body"])
    import_corpus("c", write("b.jsonl", [{"tweet_id": 2, "body": "welt"}]), column=["id=tweet_id", "text=body"])
    rows = [("11", "The ferry leaves at seven"), ("1", "hallo"), ("2", "welt")]
    assert [(post["id"], post["text"]) for post in posts()] == rows


@pytest.mark.parametrize("broken", ["{", '{"id": {', '{"id": "0", "text": [', '{"id":'])
def test_a_broken_first_line_is_one_reject_and_swallows_no_other(tmp_path, broken):
    path = tmp_path / "posts.jsonl"
    rows = [f'{{"id": "{number}", "text": "a text"}}' for number in range(1, 6)]
    path.write_text("\n".join([broken, *rows]) + "\n")
    assert len(list(values_of(path, MAX_LINE, lambda count: None))) == 6
