"""Fixtures with real files for the tests of corpora/. The data folder is `data_dir` in the root conftest."""

import json

import pytest

from annotate.actions.registry import call_command
from tests.annotate.corpus import demo_corpus, prelabelled  # noqa: F401 - fixtures

POSTS = [
    {"id": "1", "text": "Guten Morgen zusammen, heute scheint in Hamburg die Sonne und alle gehen spazieren."},
    {"id": "2", "text": "The weather has been lovely this week and we have all been outside a lot."},
    {"id": "3", "text": "Aujourd'hui nous sommes allés au marché pour acheter des légumes et du fromage."},
    {"id": "4", "text": "Сегодня мы долго гуляли в парке, а потом вернулись домой и пили чай."},
    {"id": "5", "text": "haha"},
    {"id": "6", "text": "@someone @other https://example.org/a"},
]
# A post with all possible columns.
FULL = {
    "id": 7,
    "text": "@ann look: https://example.org",
    "author": "Ann",
    "posted_at": "2014-07-01T14:00:00+02:00",
    "url": "https://example.org/7",
}


def as_jsonl(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file from text, bytes, or a list of rows as JSON lines."""

    def write(name, content):
        path = tmp_path / name
        if isinstance(content, list):
            content = as_jsonl(content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def printed(db, capsys):
    """Return a function: printed("suggest", "acts", "law") runs the command and returns the output."""

    def run(command, *words, **options):
        capsys.readouterr()
        call_command(command, *map(str, words), **options)
        return "".join(capsys.readouterr())

    return run


@pytest.fixture
def import_corpus(printed):
    """Return a function that imports a corpus with any number of rejected rows."""

    def run(name, *files, licence="CC0-1.0", max_rejects="100%", **options):
        return printed("import_corpus", name, *files, licence=licence, max_rejects=max_rejects, **options)

    return run
