"""What a corpus has on disk."""

import json

import pyarrow.parquet as pq

from corpora.storage.layout import corpus_dir, manifest_of, reject_name


def posts(name="c"):
    """The posts of a corpus in the order of its parts."""
    folder = corpus_dir(name) / "parts"
    return [row for part in manifest_of(name).parts for row in pq.read_table(folder / part.name).to_pylist()]


def rejects(name="c", number=1):
    lines = (corpus_dir(name) / "rejects" / reject_name(number)).read_text().splitlines()
    return [json.loads(line) for line in lines]


def bytes_of(name="c"):
    """Everything that a corpus has on disk but its lock."""
    folder = corpus_dir(name)
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock"
    }
