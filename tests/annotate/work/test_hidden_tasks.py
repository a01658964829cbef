"""A task that is being opened is hidden until it is complete. On SQLite, answers are saved meanwhile."""

import hashlib
import shutil
import signal
import sqlite3
import subprocess
import sys

import pytest
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from annotate.core.draws.committed_draws import AUDIT
from annotate.kinds import Answer
from annotate.kinds.language import KIND
from annotate.models import Judgment, Task, Transition, Unit
from annotate.quality import commitments
from annotate.work import unit_entry
from annotate.work.judgments import judge
from annotate.work.moves import insert_units
from annotate.work.queue import take
from annotate.work.task_creation import open_task
from annotate.work.unit_entry import TextIndex
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

    def begin(task, units, **fixed):
        insert_units(task, units, **fixed)
        if units["position"][0] == 1:
            transaction.on_commit(answer)

    monkeypatch.setattr(unit_entry, "CHUNK", 100)
    monkeypatch.setattr(unit_entry, "insert_units", begin)
    open_large(demo_corpus)
    assert seen == [False, 1]
    assert Task.objects.get(name="large").units.count() == POSTS


@pytest.mark.django_db(transaction=True)
@pytest.mark.sqlite_only
def test_an_answer_is_saved_while_audits_are_drawn_and_they_go_on(demo_corpus, make_task, person, monkeypatch):
    ann, keep = person("ann", "de"), commitments.record_draw
    leases = [take(ann, make_task([DISPUTED]))]

    def answer_first(task, purpose, *draw):
        if purpose == AUDIT and leases:
            at_once(lambda: judge(ann, leases.pop().pk, Answer("de")))
        keep(task, purpose, *draw)

    monkeypatch.setattr(commitments, "record_draw", answer_first)
    open_large(demo_corpus, options={"audit_share": 0.5})
    assert Judgment.objects.count() == 1
    assert Task.objects.get(name="large").units.filter(audited=True).count() > 1


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
from annotate.actions.registry import call_command
from annotate.work import moves, unit_entry
from corpora.models import Corpus

def insert_units(task, units, **fixed):
    if units["position"][0] > 200:
        os.kill(os.getpid(), signal.SIGKILL)
    moves.insert_units(task, units, **fixed)

Corpus.objects.create(name={corpus!r})
unit_entry.CHUNK, unit_entry.insert_units = 100, insert_units
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


# --- what has come before, in arrays: as a dictionary would have it


# Few texts, so that many repeat, and so that two digests may share one half.
HALVES = st.sampled_from([b"\0" * 8, b"\0" * 7 + b"\1", b"\xff" * 8, b"abcdefgh"])
DIGESTS = st.tuples(HALVES, HALVES).map(b"".join) | st.binary(min_size=16, max_size=16)


@given(st.lists(st.lists(DIGESTS, max_size=6), max_size=12))
def test_a_text_is_found_from_the_time_on_that_it_was_added(batches):
    seen, places = TextIndex(), {}
    for batch in batches:
        assert seen.find(batch) == {digest: places[digest] for digest in batch if digest in places}
        new = {digest: len(places) + place for place, digest in enumerate(dict.fromkeys(batch)) if digest not in places}
        seen.add(new)
        places |= new
    assert seen.find(places) == places


def test_few_arrays_are_looked_through_however_many_texts_there_are():
    seen = TextIndex()
    digests = [hashlib.blake2b(str(n).encode(), digest_size=16).digest() for n in range(20_000)]
    for start in range(0, len(digests), 100):
        seen.add({digest: start + n for n, digest in enumerate(digests[start : start + 100])})
    assert len(seen.runs) < 8
    assert seen.find(digests) == {digest: n for n, digest in enumerate(digests)}
    assert not seen.find([b"nothing of these"])
