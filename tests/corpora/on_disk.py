"""Functions that read the files of a corpus, and that compress files to import."""

import io
import json
import zipfile

import pyarrow.parquet as pq
import zstandard

from corpora.storage.layout import corpus_dir, manifest_of, reject_name


def posts(name="c"):
    """Return the posts of a corpus in the order of its parts."""
    folder = corpus_dir(name) / "parts"
    return [row for part in manifest_of(name).parts for row in pq.read_table(folder / part.name).to_pylist()]


def rejects(name="c", number=1):
    lines = (corpus_dir(name) / "rejects" / reject_name(number)).read_text().splitlines()
    return [json.loads(line) for line in lines]


def bytes_of(name="c"):
    """Return the contents of all files of a corpus, except for the lock."""
    folder = corpus_dir(name)
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock"
    }


def with_a_window_of_2_gb(content):
    how = zstandard.ZstdCompressionParameters.from_level(3, window_log=31)
    packer = zstandard.ZstdCompressor(compression_params=how).compressobj()  # no size, so the header states the window
    return packer.compress(content) + packer.flush()


def zipped(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()
