"""Encodings and delimiters: what is recognized, what is never guessed, and what the manifest records."""

import gzip

import pytest
from django.core.management import CommandError

from corpora.sources.compression import format_of
from corpora.sources.readers import Columns, read_rows
from corpora.sources.text import DELIMITERS, text_format_of
from corpora.storage.layout import manifest_of
from tests.corpora.on_disk import posts

TEXTS = ["Grüße; viele, sehr", 'ein "Zitat"', "einfach"]


def table(delimiter, quoted='"{}"'):
    rows = [f"{n}{delimiter}{quoted.format(text.replace(chr(34), chr(34) * 2))}" for n, text in enumerate(TEXTS)]
    return "\n".join([f"id{delimiter}text", *rows, ""])


@pytest.mark.parametrize("delimiter", DELIMITERS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "windows-1252", "latin-1"])
def test_a_table_is_read_whatever_separates_and_encodes_it(write, import_corpus, delimiter, encoding):
    path = write("a.csv", table(DELIMITERS[delimiter][0]).encode(encoding))
    output = import_corpus("c", path)
    assert [post["text"] for post in posts()] == TEXTS
    [source] = manifest_of("c").sources
    expected = {"utf-8-sig": "utf-8", "utf-16-be": "utf-16", "latin-1": "windows-1252"}.get(encoding, encoding)
    assert (source.encoding, source.delimiter) == (expected, delimiter)
    assert ("can only be guessed" in output) == (expected == "windows-1252")
    assert ("was read as" in output) == ((expected, delimiter) != ("utf-8", "comma"))
    assert "already imported" in import_corpus("c", path, encoding=expected, delimiter=delimiter)


@pytest.mark.parametrize(
    ("content", "delimiter"),
    [
        ("id;text, long\n1;a\n2;b, c\n", "semicolon"),
        ("id,text; long\n1,a\n2,b; c\n", "comma"),
        ("id,text\n1,a; b\n2,c; d; e\n", "comma"),
        ("id;text\n1;a;b\n2;c\n", "semicolon"),
        ('"id;a","text"\n1,b\n', "comma"),
        ("text\na\n", "comma"),
        ("\n", "comma"),
        ("id\ttext;x,y\n1\ta\n", "tab"),
        ('id;text\n1;"a\nb;c"\n2;d\n', "semicolon"),
    ],
)
def test_the_delimiter_is_the_one_that_makes_columns(write, content, delimiter):
    assert text_format_of(write("a.csv", content), "csv").delimiter == delimiter


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (b"id,text\n1,a\n", "utf-8"),
        ("id,text\n1,é\n".encode(), "utf-8"),
        ("id,text\n1,é\n".encode() + b"2,\xe9\n" * 9, "utf-8"),  # a row in another encoding is rejected, not guessed
        (b"id,text\n" + b"2,\xe9\n" * 9 + "1,é\n".encode(), "utf-8"),
        (b"id,text\n1,a\n" * 9_000 + b"2,\xe9\n", "windows-1252"),
        ("id,text\n1,Сегодня\n".encode("cp1251"), "utf-8"),  # another script is refused, not guessed
        (b"id,text\n1,\x81\xe9\n", "utf-8"),  # Windows-1252 has no such character
        (gzip.compress("id,text\n1,é\n".encode("cp1252")), "windows-1252"),
    ],
)
def test_what_may_be_utf_8_is_never_taken_for_another_encoding(write, content, encoding):
    path = write("a.csv.gz" if content.startswith(b"\x1f") else "a.csv", content)
    assert text_format_of(path, "csv").encoding == encoding


def test_the_search_for_letters_beyond_ascii_ends(write):
    path = write("a.csv", b"id,text\n1,a\n" * 9_000 + b"2,\xe9\n")
    assert text_format_of(path, "csv", most=1_000).encoding == "utf-8"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("windows-1250", "Źdźbło"),
        ("windows-1251", "Сегодня"),
        ("windows-1256", "مرحبا"),
        ("shift_jis", "今日は"),
        ("gb18030", "你好"),
        ("euc-kr", "안녕하세요"),
        ("koi8-r", "Сегодня"),
    ],
)
def test_a_chosen_encoding_holds(write, import_corpus, encoding, text):
    import_corpus("c", write("a.csv", f"id,text\n1,{text}\n".encode(encoding)), encoding=encoding)
    assert [post["text"] for post in posts()] == [text]
    assert manifest_of("c").sources[0].encoding == encoding


def test_bytes_without_a_meaning_cost_their_row_alone(write):
    def read(name, content, encoding):
        path = write(name, content)
        text_format = text_format_of(path, format_of(path), encoding)
        columns = Columns({"id": "id", "text": "text"})
        return [
            getattr(row, "reason", row) for _, row in read_rows(path, format_of(path), columns, 99, None, text_format)
        ]

    rows = read("a.csv", b"id,text\n1,\x81\n2,\xe9\n", "windows-1252")
    assert rows == ["The row is not UTF-8.", {"id": "2", "text": "é"}]
    half = "id,text\n1,a\ud800\n2,é\n".encode("utf-16", "surrogatepass")
    assert read("b.csv", half, "") == ["The row is not UTF-8.", {"id": "2", "text": "é"}]


def test_utf_16_that_is_cut_is_damaged(write, import_corpus):
    with pytest.raises(CommandError, match="is truncated or damaged"):
        import_corpus("c", write("a.csv", "id,text\n1,a\n".encode("utf-16")[:-1]))


def test_a_first_line_for_excel_names_the_delimiter(write):
    path = write("a.csv", b"sep=;\r\nid;text\r\n1;a,b\r\n")
    assert text_format_of(path, "csv").delimiter == "semicolon"
    columns = Columns({"id": "id", "text": "text"})
    assert [row for _, row in read_rows(path, "csv", columns)] == [{"id": "1", "text": "a,b"}]
