"""Files of posts in every format, packing and encoding, whole and damaged."""

import bz2
import gzip
import io
import json
import lzma
import re
import zipfile
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
from tests.corpora.on_disk import posts, rejects

pytestmark = pytest.mark.django_db


def table(delimiter):
    head = ["text", "id", "author"]
    rows = [head, *([post["text"], post["id"], "ann"] for post in POSTS)]
    return "".join(delimiter.join(row if delimiter == "\t" else [f'"{row[0]}"', *row[1:]]) + "\n" for row in rows)


SKIPPED = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"  # a frame that zstd skips


def with_a_window_of_2_gb(content):
    how = zstandard.ZstdCompressionParameters.from_level(3, window_log=31)
    packer = zstandard.ZstdCompressor(compression_params=how).compressobj()  # without the size, so the window is told
    return packer.compress(content) + packer.flush()


def zipped(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def as_parquet(path):
    table = pa.table({"id": [int(post["id"]) for post in POSTS], "text": [post["text"] for post in POSTS]})
    pq.write_table(table, path)
    return path.read_bytes()


def test_every_format_and_packing_gives_the_same_posts(write, import_corpus, tmp_path):
    jsonl = as_jsonl(POSTS).encode()
    files = {
        "a.jsonl": jsonl,
        "b.jsonl.gz": gzip.compress(jsonl),
        "two_members.jsonl.gz": gzip.compress(jsonl[:100]) + gzip.compress(jsonl[100:]),
        "c.jsonl.zst": zstandard.compress(jsonl),
        "packed_by_its_first_bytes.jsonl": zstandard.compress(jsonl),
        "of_a_wrong_name.jsonl.gz": zstandard.compress(jsonl),
        "long_window.jsonl.zst": with_a_window_of_2_gb(jsonl),
        "two_frames.jsonl.zst": SKIPPED + zstandard.compress(jsonl[:100]) + zstandard.compress(jsonl[100:]),
        "h.jsonl.xz": lzma.compress(jsonl),
        "i.jsonl.bz2": bz2.compress(jsonl[:100]) + bz2.compress(jsonl[100:]),
        "j.jsonl": bz2.compress(jsonl),
        "k.zip": zipped({"posts.jsonl": jsonl, "__MACOSX/._posts.jsonl": b"x"}),
        "l.csv.zip": zipped({"posts.csv": table(",").encode()}),
        "m.json": json.dumps(POSTS).encode(),
        "n.jsonl": b"\xef\xbb\xbf" + json.dumps(POSTS, indent=1, ensure_ascii=False).encode(),
        "o.jsonl": "\n".join(json.dumps(post, indent=2) for post in POSTS).encode(),
        "p.json.xz": lzma.compress(json.dumps(POSTS, indent=1).encode()),
        "cr.csv": table(",").replace("\n", "\r").encode(),
        "cr.tsv": table("\t").replace("\n", "\r").encode(),
        "cr.jsonl": jsonl.replace(b"\n", b"\r"),
        "d.csv": table(",").encode(),
        "e.tsv": table("\t").encode(),
        "f.tsv.gz": gzip.compress(table("\t").encode()),
        "g.parquet": as_parquet(tmp_path / "g.parquet"),
    }
    for name, content in files.items():
        corpus = name.replace(".", "_")
        import_corpus(corpus, write(name, content))
        assert [(post["id"], post["text"]) for post in posts(corpus)] == [
            ("6", "@xzy @xzy https://example.org/a") if post["id"] == "6" else (post["id"], post["text"])
            for post in POSTS
        ], name


def test_csv_may_quote_newlines_and_one_bad_row_stays_one(write, import_corpus):
    content = (
        b'id,text\n1,"two\nlines, ""quoted"""\n2,"broken" quote\n3,too,many\n4\n5,\xff\n\n6,fine\n'
        + b"7,"
        + b"a" * 200
        + b"\n8,end\n"
    )
    import_corpus("c", write("a.csv", content), longest_line=100)
    assert [(post["id"], post["text"]) for post in posts()] == [
        ("1", 'two\nlines, "quoted"'),
        ("6", "fine"),
        ("8", "end"),
    ]
    assert [(reject["line"], reject["reason"][:22]) for reject in rejects()] == [
        (4, "The row is not CSV: ',"),
        (5, "The row has 3 fields w"),
        (6, "The row has 1 field wh"),
        (7, "The row is not UTF-8."),
        (10, "The line is longer tha"),
    ]


ANEW = "the lines after this one are read anew."
UNCLOSED = f"A quote is opened in this row and not closed; {ANEW}"


def test_a_quote_that_is_never_closed_costs_its_own_line_alone(write, import_corpus):
    rows = "".join(f"{n},text {n}\n" for n in range(1000))
    import_corpus("c", write("a.csv", f'id,text\nfirst,fine\nbad,"open\n{rows}'), longest_line=1000)
    assert rejects() == [{"file": "a.csv", "line": 3, "reason": UNCLOSED}]
    assert [post["id"] for post in posts()] == ["first", *map(str, range(1000))]


def misclosed(line):
    return f"A quote is opened in this row and not rightly closed by line {line}; {ANEW}"


TAIL = "The row holds a quote that may be the end of one opened in a row before, which was rejected."
LATE = f"A quote is opened in this row and closed in line 4, which makes 3 fields where the header has 2; {ANEW}"


@pytest.mark.parametrize(
    ("rows", "ids", "found"),
    [
        (b'bad,"open\n1,a\n2,"b\nb"\n3,c\n', "1 2 3", [(2, misclosed(4))]),
        (b'bad,"open\n1,a\n2,5",\n3,c\n', "1 3", [(2, LATE), (4, TAIL)]),
        (b'bad,"open\n1,a\nbad,"open\n2,b\n', "1 2", [(2, misclosed(4)), (4, UNCLOSED)]),
        (b'bad,"open\n1,a\n2,\xff\n3,c\n', "1 3", [(2, UNCLOSED), (4, "The row is not UTF-8.")]),
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
def test_the_lines_that_an_open_quote_took_are_read_anew(write, import_corpus, rows, ids, found):
    import_corpus("c", write("a.csv", b"id,text\n" + rows), longest_line=100)
    assert [(reject["line"], reject["reason"]) for reject in rejects()] == found
    assert [post["id"] for post in posts()] == ids.split()


def test_quotes_that_close_and_open_on_every_line_are_given_up_in_good_time(write, import_corpus):
    # Each line alone opens a quote; after another it closes that one and opens the next.
    rows = 20_000
    import_corpus("c", write("a.csv", "id,text\nfirst,fine\n" + 'a","b\n' * rows + "last,fine\n"))
    assert [reject["line"] for reject in rejects()] == list(range(3, rows + 3))
    assert [post["id"] for post in posts()] == ["first", "last"]


def test_tsv_knows_no_quoting(write, import_corpus):
    import_corpus("c", write("a.tsv", 'id\ttext\n1\t"open quote\n2\ta "b" c\n'))
    assert [post["text"] for post in posts()] == ['"open quote', 'a "b" c']


def test_columns_can_be_mapped(write, import_corpus):
    import_corpus("c", write("a.csv", "tweet_id,body\n1,hallo\n"), column=["id=tweet_id", "text=body"])
    import_corpus("c", write("b.jsonl", [{"tweet_id": 2, "body": "welt"}]), column=["id=tweet_id", "text=body"])
    assert [(post["id"], post["text"]) for post in posts()] == [("1", "hallo"), ("2", "welt")]


def test_parquet_times_nanoseconds_and_dictionaries_are_read(import_corpus, tmp_path):
    columns = {
        "id": pa.array(["1", "2", None]),
        "text": pa.array(["a", "b", "c"]).dictionary_encode(),
        "posted_at": pa.array([1404216000000000001, None, 0], pa.timestamp("ns")),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    import_corpus("c", tmp_path / "a.parquet")
    assert [post["posted_at"] for post in posts()] == [datetime(2014, 7, 1, 12, tzinfo=UTC), None]
    assert rejects() == [{"file": "a.parquet", "line": 3, "reason": "The id is missing."}]


def test_parquet_with_broken_utf8_loses_only_the_broken_row(import_corpus, tmp_path):
    text = pa.array([b"a", b"\xff", b"c"]).view(pa.string())
    pq.write_table(pa.table({"id": ["1", "2", "3"], "text": text}), tmp_path / "a.parquet")
    import_corpus("c", tmp_path / "a.parquet")
    assert [post["id"] for post in posts()] == ["1", "3"]
    assert rejects()[0]["reason"] == "The row is not UTF-8."


@pytest.mark.parametrize("letters", ["é", "aé", "日本", "a😀"])
def test_a_long_line_of_utf_8_is_not_taken_for_another_encoding(write, import_corpus, letters):
    """A line is looked at in pieces, and a character may be cut between two of them."""
    file = write("a.jsonl", as_jsonl([{"id": "1", "text": letters * 40_000}]) + "broken\n")
    with pytest.raises(CommandError) as error:
        import_corpus("c", file, max_rejects="5%")
    assert "the first is line 2: " in str(error.value)
    assert "UTF-8" not in str(error.value)


def test_a_long_line_in_another_encoding_is_told_as_such(write, import_corpus):
    file = write("a.jsonl", as_jsonl([{"id": "1", "text": "Ein Wört. " * 9_000}]).encode("latin-1"))
    with pytest.raises(CommandError, match="seems to be ISO-8859-1: save it as UTF-8"):
        import_corpus("c", file, max_rejects="5%")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.jsonl.xz", lzma.compress(as_jsonl(POSTS).encode() * 50)[:-9], "is cut off or damaged"),
        ("a.jsonl.bz2", bz2.compress(as_jsonl(POSTS).encode() * 50)[:-9], "is cut off or damaged"),
        ("a.jsonl.zst", with_a_window_of_2_gb(as_jsonl(POSTS).encode() * 50)[:-9], "is cut off or damaged"),
        ("a.zip", zipped({"posts.jsonl": as_jsonl(POSTS).encode()})[:-9], "does not tell its format"),
        ("a.jsonl.zip", zipped({"posts.jsonl": as_jsonl(POSTS).encode()})[:-9], "is cut off or damaged"),
        ("a.jsonl.zip", zipped({"a.jsonl": b"{}", "b.jsonl": b"{}"}), "is a ZIP file of 2 files, and one is read"),
        ("a.csv", zipped({"[Content_Types].xml": b"<x/>", "xl/workbook.xml": b"<x/>"}), "is a spreadsheet; save it as"),
        ("a.csv", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "is a spreadsheet; save it as CSV"),
        (
            "a.jsonl",
            b"7z\xbc\xaf\x27\x1c" + bytes(60),
            "is compressed by 7-Zip, which is not read here; unpack",
        ),
        (
            "a.jsonl",
            b"\x04\x22\x4d\x18" + bytes(60),
            "is compressed by LZ4, which is not read here; unpack it",
        ),
        ("a.jsonl.xz", b"plain", "is named as xz but does not begin as xz does"),
    ],
)
def test_a_packed_file_that_cannot_be_read_is_refused_by_its_format(write, import_corpus, name, content, sentence):
    with pytest.raises(CommandError, match=sentence) as refused:
        import_corpus("c", write(name, content))
    assert "iconv" not in str(refused.value)


def test_what_is_packed_by_xz_and_unpacks_to_too_much_is_refused(write, import_corpus):
    zeros = bytes(70 << 20)
    for name, content in (("a.jsonl.xz", lzma.compress(zeros)), ("b.jsonl.zst", with_a_window_of_2_gb(zeros))):
        with pytest.raises(CommandError, match="holds more than 67,108,864"):
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
        4: "Something that is not a JSON object stands here; each row must be one.",
        5: "The line is not JSON: Expecting value: line 1 column 21 (char 20).",
        6: "The object is longer than 100 bytes.",
    }


def test_an_array_that_is_cut_off_is_reported_and_not_taken_for_whole(write, import_corpus):
    import_corpus("c", write("a.json", json.dumps(POSTS, indent=1)[:-30]))
    assert len(posts()) == len(POSTS) - 1
    assert (
        rejects()[0]["reason"] == "This is not JSON: it is not closed where the file ends, which seems to be cut off."
    )
    import_corpus("d", write("b.json", json.dumps(POSTS)[:-1]))
    assert len(posts("d")) == len(POSTS)
    assert (
        rejects("d")[0]["reason"]
        == "This is not JSON: it is not closed where the file ends, which seems to be cut off."
    )


def test_an_array_over_many_pieces_of_a_file_is_read_like_its_lines(write, import_corpus):
    rows = [{"id": str(n), "text": f'said "{n}" \\ [{{' * 20} for n in range(5000)]
    for name, indent in (("lines", None), ("array", None), ("pretty", 1)):
        content = as_jsonl(rows) if name == "lines" else json.dumps(rows, indent=indent)
        import_corpus(name, write(f"{name}.json", content))
    assert posts("array") == posts("pretty") == posts("lines")


def test_what_lies_within_an_object_is_a_column_by_its_path(write, import_corpus):
    rows = [{"id": 11, "data": {"text": "The ferry leaves at seven"}, "annotations": [{"id": 5}]}]
    with pytest.raises(CommandError, match=r"its columns are: id, data.text, annotations.*--column text=data.text"):
        import_corpus("c", write("a.json", json.dumps(rows)))
    import_corpus("c", write("a.json", json.dumps(rows)), column=["text=data.text"])
    assert [(post["id"], post["text"]) for post in posts()] == [("11", "The ferry leaves at seven")]
    with pytest.raises(CommandError, match=r"is one JSON object, whose rows .* in 'data'.*jq -c '.data\[\]' a.json"):
        import_corpus("d", write("a.json", json.dumps({"version": 1, "data": POSTS})))


@pytest.mark.parametrize(
    ("keys", "steps"),
    [(("data", "posts"), ".data.posts[]"), (("a b", "c", "d-e"), '.["a b"].c.["d-e"][]')],
)
def test_rows_that_lie_deep_within_an_object_are_found_for_jq(write, import_corpus, keys, steps):
    held = POSTS
    for key in reversed(keys):
        held = {"version": 1, key: held}
    told = f"rows seem to be in '{'.'.join(keys)}'. Write them one a line, for example with jq -c '{steps}' a.json >"
    with pytest.raises(CommandError, match=re.escape(told)):
        import_corpus("c", write("a.json", json.dumps(held)))


def test_rows_of_json_that_are_lists_or_end_with_a_comma_are_rejected_with_what_to_do(write, import_corpus):
    content = as_jsonl(POSTS)
    with pytest.raises(CommandError, match=r'not a JSON object, but a list; each row must be one, such as {"id": "...'):
        import_corpus("c", write("a.json", '[["1", "a"], ["2", "b"]]'))
    with pytest.raises(CommandError, match=r"line 1: The line ends with a comma, .*take the comma at the end of each"):
        import_corpus("c", write("a.jsonl", content.replace("}\n", "},\n")))


def test_a_number_of_thousands_of_digits_is_a_reject_in_plain_words(write, import_corpus):
    content = as_jsonl(POSTS) + '{"id": ' + "9" * 5000 + ', "text": "a"}\n'
    import_corpus("c", write("a.jsonl", content))
    assert (
        rejects()[0]["reason"]
        == "The line is not JSON that can be read: it has a number of thousands of digits. Save it as text."
    )


def test_what_parquet_has_besides_strings_is_read_as_lines_would_have_it(write, import_corpus, tmp_path):
    ids = {
        "bytes": pa.array([b"1", b"2"], pa.binary()),
        "decimals": pa.array([Decimal("12345678901234567890"), Decimal(2)], pa.decimal128(38, 0)),
        "uuids": pa.array([UUID(int=1), UUID(int=2)], pa.uuid()),
    }
    for name, column in ids.items():
        pq.write_table(pa.table({"id": column, "text": pa.array([b"a", b"b"], pa.binary())}), tmp_path / "a.parquet")
        import_corpus(name, tmp_path / "a.parquet")
    assert [[post["id"] for post in posts(name)] for name in ids] == [
        ["1", "2"],
        ["12345678901234567890", "2"],
        [str(UUID(int=1)), str(UUID(int=2))],
    ]
    assert [post["text"] for post in posts("bytes")] == ["a", "b"]


@pytest.mark.parametrize("broken", ["{", '{"id": {', '{"id": "0", "text": [', '{"id":'])
def test_a_broken_first_line_is_one_reject_and_swallows_no_other(tmp_path, broken):
    path = tmp_path / "posts.jsonl"
    rows = [f'{{"id": "{number}", "text": "a text"}}' for number in range(1, 6)]
    path.write_text("\n".join([broken, *rows]) + "\n")
    assert len(list(values_of(path, MAX_LINE, lambda count: None))) == 6
