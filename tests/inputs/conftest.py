"""A small installation for all rows of a module, and a function that runs a row of its table.

    ("import_corpus new FILE.csv --licence CC0-1.0", b"", 1, "is empty")

is a command, the content of FILE.csv (bytes, or a function that writes it), the exit status, and a pattern for the
message.
"""

import os
import re
import shlex
import shutil
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings as django_settings
from django.db import connection, transaction
from django.test import override_settings

from annotate import exit_status
from annotate.actions.registry import call_command
from corpora.models import Corpus
from tests.annotate.corpus import NAME, prelabelled  # noqa: F401 - fixture
from tests.annotate.labelled_sets import labelled_set

FIXTURES = django_settings.BASE_DIR / "fixtures"
TALK = """\
{"id": "a", "parent_id": null, "text": "What is the largest ocean in the world?", "thread": "t"}
{"id": "b", "parent_id": "a", "text": "The Pacific Ocean is the largest ocean in the world.", "thread": "t"}
"""
# Files that a failed command may leave behind: lists of rejected rows, and empty or locked files.
MAY_BE_LEFT = re.compile(r"rejects|(^|/)(lock|[^/]*\.writers|tmp/.*)$")


@pytest.fixture(scope="module")
def world(prelabelled, django_db_setup, django_db_blocker, tmp_path_factory):  # noqa: F811 - fixture
    """The folder of an installation with tasks of three kinds, a person, and gold sets of all types."""
    folder = tmp_path_factory.mktemp("world")
    shutil.copytree(prelabelled, folder / "var")
    hasher = "django.contrib.auth.hashers.MD5PasswordHasher"
    with (
        django_db_blocker.unblock(),
        override_settings(DATA_DIR=folder / "var", PASSWORD_HASHERS=[hasher]),
        transaction.atomic(),
    ):
        Corpus.objects.create(name=NAME)
        people = folder / "people.csv"
        people.write_text("username,name,languages,adjudicates\nanna,Anna,de:5 en:4,no\nada,Ada,,yes\n")
        call_command("add_annotators", people)
        common = {"corpus": NAME, "seed": "1"}
        call_command("open_task", "posts", size=60, audit_least=2, audit_limit=1.0, **common)
        call_command("open_task", "ver", design="precision", predictor="majority", languages=["de"], size=5, **common)
        ads = sorted(map(str, (FIXTURES / "records").glob("ad_relevance.en.jsonl")))
        call_command("import_corpus", "ads", *ads, fields="query title description", licence="CC0-1.0")
        pairs = {"fields": "message reply", "column": ["message=query", "reply=title"]}
        call_command("import_corpus", "prompts", *ads, **pairs, licence="CC0-1.0")
        call_command("open_task", "ads", corpus="ads", seed="1", kind="ad_relevance", gold_share=0, test_items=0)
        crowd = folder / "crowd.tsv"
        lines = (FIXTURES / "crowd" / "cf_amt.labels.tsv").read_text().splitlines(keepends=True)
        crowd.write_text("".join(lines[:200]))
        call_command("import_judgments", "crowd", crowd)
        call_command("export_gold", "posts", out=folder / "unfinished")
        topics = [str(FIXTURES / "topics" / f"sib200.{code}.jsonl") for code in ("de", "en")]
        fields = {"fields": "headline body", "column": ["headline=topic", "body=text"], "labels": "topic"}
        call_command("import_corpus", "topics", *topics, licence="CC-BY-SA-4.0", **fields)
        drawn = {"labels": "sports health", "design": "balanced", "kind": "topic"}
        call_command("open_task", "topics", corpus="topics", seed="1", sets="test 10 train 10", **drawn)
        call_command("open_task", "untested", corpus="topics", seed="1", sets="train 10", **drawn)
        for name in ("topics", "untested"):
            call_command("export_gold", name, out=folder / name)
        acts = {"train": {"t": ["cat"]}, "test": {"a": ["cat", "elk"], "b": ["elk"]}}
        concepts = {"animal": [], "cat": ["animal"], "elk": ["animal"]}
        labelled_set(folder / "acts", acts, concepts)
        labelled_set(folder / "waiting", acts, concepts, finished=False)
        labelled_set(folder / "testless", {"train": acts["train"]}, concepts)
        talk = folder / "talk.jsonl"
        talk.write_text(TALK, encoding="utf-8")
        call_command("import_threads", "talk", talk, licence="CC0-1.0")
        published = FIXTURES / "twitter_langid" / "uniformly_sampled.tsv"
        call_command("import_gold", published, out=folder / "published", design="uniform", name="published")
        yield folder
        transaction.set_rollback(True)


@dataclass(frozen=True)
class Ended:
    status: int
    output: str
    changed: list[str]


@pytest.fixture(scope="module")
def tables_of_world(world, django_db_blocker):
    with django_db_blocker.unblock():
        return tables()


@pytest.fixture
def ended(world, tables_of_world, data_dir, tmp_path, monkeypatch, capsys, db):
    """Return a function: ended(command, content) runs a command in a copy of the world. The database is rolled back."""
    shutil.copytree(world / "var", data_dir, dirs_exist_ok=True)
    here = tmp_path / "here"
    here.mkdir()
    for name in ("unfinished", "published", "topics", "untested", "acts", "waiting", "testless"):
        shutil.copytree(world / name, here / name)
    monkeypatch.chdir(here)
    stored = tables_of_world

    def run(command, content=None):
        nonlocal stored
        words = shlex.split(command)
        for word in {match[0] for word in words if (match := re.search(r"FILE\.[\w.]+", word))}:
            content(Path(word)) if callable(content) else Path(word).write_bytes(content)
        before = files(data_dir, here) | stored
        capsys.readouterr()
        try:
            status = exit_status.run(partial(call_command, *words))
        except SystemExit as exit:
            status = exit.code
        stored = tables()
        after = files(data_dir, here) | stored
        changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        return Ended(status, "".join(capsys.readouterr()), changed)

    return run


def files(*folders):
    """Return the files that a command could leave incomplete (for the database, see `tables`)."""
    digests = {}
    for folder in folders:
        for path in folder.rglob("*"):
            name = str(path.relative_to(folder.parent))
            if path.is_file() and path.stat().st_size < 1 << 24 and not MAY_BE_LEFT.search(name):
                digests[name] = sha256(path.read_bytes()).hexdigest() if not path.is_symlink() else os.readlink(path)
    return digests


def tables():
    digests = {}
    with connection.cursor() as cursor:
        for model in apps.get_models():
            cursor.execute(f"SELECT * FROM {model._meta.db_table}")
            digests[model._meta.label] = hash(tuple(cursor.fetchall()))
    return digests


def check(ended, row):
    """Check a row: the status and the message, no traceback, and no leftovers if the command failed."""
    command, content, status, pattern = row
    result = ended(command, content)
    assert "Traceback" not in result.output
    assert (result.status, bool(re.search(pattern, result.output))) == (status, True), result
    if status:
        assert result.changed == []
    assert not [name for name in result.changed if re.search(r"draft|staging|/\.|\.new$", name)]
