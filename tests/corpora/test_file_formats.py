"""Files of posts in every format, packing and encoding, whole and damaged."""

import gzip
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from django.core.management import CommandError

from tests.corpora.conftest import POSTS, as_jsonl
from tests.corpora.on_disk import posts, rejects

pytestmark = pytest.mark.django_db


def table(delimiter):
    head = ["text", "id", "author"]
    rows = [head, *([post["text"], post["id"], "ann"] for post in POSTS)]
    return "".join(delimiter.join(row if delimiter == "\t" else [f'"{row[0]}"', *row[1:]]) + "\n" for row in rows)


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
