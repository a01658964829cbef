"""Small files that expand to gigabytes are refused with a clear message, and without using much memory."""

import gzip
import os
import re
import zipfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError

from corpora.core import CorpusError
from corpora.sources.compression import AT_LEAST, MOST_TIMES, entries_of
from corpora.sources.readers import Columns, read_rows
from corpora.sources.text import MAX_LINE, Fault
from corpora.storage import intake
from tests.corpora.on_disk import rejects

pytestmark = pytest.mark.slow


ROWS = 1000
MEMORY = 300  # MB that reading may take, including the program's own memory
COLUMNS = {"id": "id", "text": "text"}


def parquet(path, text, **options):
    table = pa.table({"id": [str(number) for number in range(len(text))], "text": text})
    pq.write_table(table, path, compression="zstd", store_schema=False, **options)
    return path


def same(text, times):
    """Return a column that repeats a text. The text is in memory, and in Parquet, only once."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * times, pa.int32()), pa.array([text]))


def in_lists(values, count):
    """Return the values in a single list."""
    return pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), values)


def shared(folder, size=4_500_000):
    """Write a text of 4.5 MB that a thousand rows share."""
    return parquet(folder / "shared.parquet", same("x" * size, ROWS))


def shared_short(folder):
    """Write a text of allowed length that a thousand rows share."""
    return shared(folder, size=500_000)


def plain(folder):
    """Write the same letters again and again, separately in each row."""
    return parquet(folder / "plain.parquet", ["y" * 100_000] * ROWS, use_dictionary=False)


def lists(folder):
    """Write a label of a megabyte three thousand times."""
    return parquet(folder / "lists.parquet", in_lists(same("z" * 1_000_000, 3000), 3000))


def turns(folder):
    """Write a thread with a hundred thousand equal turns."""
    array = pa.StructArray.from_arrays([same("a" * 1000, 100_000), same("b", 100_000)], ["said", "by"])
    return parquet(folder / "turns.parquet", in_lists(array, 100_000))


def gzipped(path):
    return gzip.open(path, "wb", compresslevel=9)


def zstandard(path):
    return pa.CompressedOutputStream(str(path), "zstd")


def packed(pack):
    def make(folder):
        with pack(folder / "bomb.jsonl") as file:
            for _ in range((AT_LEAST >> 20) + 2):
                file.write(b'{"id": "1", "text": "a"}' + b" " * ((1 << 20) - 25) + b"\n")
        return folder / "bomb.jsonl"

    return make


def read(path):
    """Return (rows, the last row, final message, maximum memory in MB)."""
    rows, last, sentence = 0, None, ""
    format = "parquet" if path.suffix == ".parquet" else "jsonl"
    try:
        for _, row in read_rows(path, format, Columns(COLUMNS, ("id", "text")), MAX_LINE, lambda count: None):
            rows, last = rows + 1, row
    except CorpusError as error:
        sentence = str(error)
    # ru_maxrss would begin with the memory of the parent process.
    [most] = re.findall(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    return rows, last, sentence, int(most) >> 10


def apart(path):
    """Run the same in a separate process, to measure its memory alone."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(read, path).result()


def refusal(path):
    size = os.path.getsize(path)
    most = max(AT_LEAST, MOST_TIMES * size)
    return f"{path} has {size:,} bytes, but its content exceeds the limit of {most:,} bytes, which is 200 times the"


@pytest.mark.parametrize("make", [shared_short, plain, packed(gzipped), packed(zstandard)])
def test_a_small_file_that_comes_to_more_than_may_be_is_refused_in_little_memory(tmp_path, make):
    path = make(tmp_path)
    assert os.path.getsize(path) < 100_000
    rows, _, sentence, memory = apart(path)
    assert sentence.startswith(refusal(path))
    assert rows <= (AT_LEAST >> 20) * 3
    assert memory < MEMORY


@pytest.mark.parametrize("make", [shared, lists, turns])
def test_a_text_that_is_too_long_is_rejected_without_being_written_out(tmp_path, make):
    path = make(tmp_path)
    assert os.path.getsize(path) < 10_000
    rows, last, sentence, memory = apart(path)
    assert (sentence, last) == ("", Fault("The text is longer than 1,048,576 characters."))
    assert rows == (ROWS if make is shared else 1)
    assert memory < MEMORY
    # Parquet files with texts of normal size are read whole.
    texts = [f"Post {number}: grüße an alle, {number * 7919 % 1000}" for number in range(300)]
    assert read(parquet(tmp_path / "posts.parquet", texts))[:3] == (300, {"id": "299", "text": texts[-1]}, "")


def test_an_archive_whose_documents_come_to_more_than_may_be_is_refused(tmp_path):
    path = tmp_path / "stories.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range((AT_LEAST >> 20) + 8):
            archive.writestr(f"{number}.xml", b" " * (1 << 20))
    with pytest.raises(CorpusError) as refused:
        for _ in entries_of(path, ".xml", 1 << 20):
            pass
    assert str(refused.value).startswith(refusal(path))


def test_a_line_of_suggested_replies_without_an_end_is_refused(tmp_path):
    from corpora.threads.pair_sets import examples  # imports models, which a process of `apart` cannot

    path = tmp_path / "replies.tsv.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"x" * (MAX_LINE + 2))
    with pytest.raises(CorpusError, match=r"line 1: The line is longer than 1,048,576 bytes"):
        next(examples(path))


def test_a_small_file_of_a_great_many_equal_rows_is_refused_before_it_is_read(tmp_path, import_corpus):
    one = pa.table({"id": pa.array(["1"]).dictionary_encode(), "text": pa.array(["a"]).dictionary_encode()})
    many = pa.concat_tables([one] * 1000).combine_chunks()
    with pq.ParquetWriter(tmp_path / "a.parquet", many.schema) as writer:
        writer.write_table(pa.concat_tables([many] * 20_000).combine_chunks(), row_group_size=1 << 30)
    with pytest.raises(CommandError, match="but its content exceeds the limit of 67,108,864"):
        import_corpus("c", tmp_path / "a.parquet")


def test_a_file_of_which_most_is_rejected_is_given_up_and_its_list_stays_short(tmp_path, import_corpus, monkeypatch):
    monkeypatch.setattr(intake, "HOPELESS", 100)
    path = tmp_path / "a.csv"
    path.write_text('id,text\n1,"open\n' + "x\n" * 5000)
    with pytest.raises(CommandError, match=r"100 of the first 101 rows were rejected. The other rows"):
        import_corpus("c", path, max_rejects="5%")
    assert len(rejects()) == 100
    with pytest.raises(CommandError, match=r"all of its 5,001 rows were rejected"):
        import_corpus("c", path, max_rejects="100%")
