"""A task that is being opened is hidden until it is complete. On SQLite, answers are saved meanwhile."""

import shutil
import signal
import sqlite3
import subprocess
import sys

import pytest
from django.db import transaction

from annotate.kinds import Answer
from annotate.kinds.language import KIND
from annotate.models import Judgment, Task, Transition, Unit
from annotate.work import unit_entry
from annotate.work.judgments import judge
from annotate.work.moves import begun
from annotate.work.queue import take
from annotate.work.task_creation import open_task
from corpora.models import Draw, Item
from tests.annotate.conftest import DISPUTED
from tests.annotate.corpus import NAME
from tests.running import DATA, DATABASE, ROOT, assay, environment, install
from tests.together import at_once

POSTS = 300


def open_large(corpus, **options):
    return open_task("large", corpus, KIND, seed="7", size=POSTS, **options)


@pytest.mark.django_db(transaction=True)
@pytest.mark.sqlite_only
def test_answers_are_saved_while_a_task_is_opened_and_nobody_sees_it_before_it_is_complete(
    demo_corpus, make_task, person, monkeypatch
):
    ann = person("ann", "de")
    lease = take(ann, make_task([DISPUTED]))
    seen = []

    def answer():
        # Another connection can write now.
        at_once(lambda: judge(ann, lease.pk, Answer("de")))
        seen.extend(["large" in set(Task.objects.values_list("name", flat=True)), Judgment.objects.count()])
        assert Unit.objects.filter(task__name="large").count() == 100

    def begin(task, first):
        begun(task, first)
        if first == 1:
            transaction.on_commit(answer)

    monkeypatch.setattr(unit_entry, "CHUNK", 100)
    monkeypatch.setattr(unit_entry, "begun", begin)
    open_large(demo_corpus)
    assert seen == [False, 1]
    assert Task.objects.get(name="large").units.count() == POSTS


@pytest.mark.django_db(transaction=True)
@pytest.mark.both_databases
def test_an_opening_that_fails_leaves_nothing(demo_corpus):
    def fail(opened):
        assert Unit.objects.count() == POSTS
        assert not Task.objects.exists()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_large(demo_corpus, then=fail)
    assert not any(rows.exists() for rows in (Task.all_objects, Unit.objects, Item.objects, Draw.objects))
    assert not Transition.objects.exists()
    open_large(demo_corpus)
    assert Task.objects.get().units.count() == POSTS


# Opens a task in a process that kills itself after some of the units were saved.
KILLED = """
import os, signal
import django
django.setup()
from annotate.actions.commands import call_command
from annotate.work import unit_entry
from corpora.models import Corpus

def begun(task, first):
    if first > 200:
        os.kill(os.getpid(), signal.SIGKILL)

Corpus.objects.create(name={corpus!r})
unit_entry.CHUNK, unit_entry.begun = 100, begun
call_command("open_task", "large", "--size=300", "--seed=7", "--corpus", {corpus!r})
"""


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_a_killed_opening_is_never_seen_and_is_deleted_by_the_next_one(prelabelled, migrated, tmp_path):
    install(tmp_path / DATA, migrated)
    shutil.copytree(prelabelled, tmp_path / DATA, dirs_exist_ok=True)
    variables = environment(tmp_path / DATA) | {"DJANGO_SETTINGS_MODULE": "deploy.settings"}
    killed = subprocess.run([sys.executable, "-c", KILLED.format(corpus=NAME)], cwd=ROOT, env=variables)
    assert killed.returncode == -signal.SIGKILL

    def count(rows):
        with sqlite3.connect(tmp_path / DATA / DATABASE) as database:
            return database.execute(f"SELECT count(*) FROM {rows}").fetchone()[0]

    assert count("annotate_unit") == 200
    assert '"tasks": []' in assay(tmp_path, "status", "--json").stdout
    opened = assay(tmp_path, "open_task", "large", "--size=300", "--seed=7", "--corpus", NAME)
    assert opened.returncode == 0, opened.stderr
    assert count("annotate_unit") == count("corpora_item") == 300
    assert count("annotate_task") == count("corpora_draw") == 1
