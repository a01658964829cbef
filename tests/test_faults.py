"""Faults in small, as the benchmark of that name has them by the hundred."""

import random

import pytest

from benchmarks import faults_server as server
from benchmarks.faults_commands import Undisturbed, half_written
from benchmarks.place import new_place

pytestmark = pytest.mark.slow


def test_every_answer_that_was_acknowledged_is_there_after_server_and_workers_were_killed(migrated):
    chance = random.Random(2015)
    with new_place(sqlite=True, migrated=migrated) as place:
        tokens = server.prepare(place, records=60)
        with server.at_work(place, tokens, workers=2) as (running, notes):
            server.befallen(running, notes, server.worker, 2, chance)
            server.befallen(running, notes, server.whole, 1, chance)
        found = server.found(place, notes)
    assert found.acknowledged >= 4 * server.PEOPLE
    assert (found.lost, found.unasked, found.too_many) == (0, 0, 0)


def test_an_answer_that_the_database_lacks_is_counted_as_lost(migrated):
    with new_place(sqlite=True, migrated=migrated) as place:
        notes = server.Notes()
        notes.note((1, "person0", "1"))
        assert server.found(place, notes) == server.Found(acknowledged=1, lost=1, unasked=0, too_many=0)


def test_a_file_is_half_written_that_is_neither_as_before_nor_as_after_a_command():
    before, after = {"page": "old"}, {"page": "new", "set/manifest.json": "all", "set/rows": "all"}
    expected = Undisturbed(seconds=1.0, room=1, before=before, after=after, meaning={})
    assert half_written(before, expected) == []
    assert half_written(after, expected) == []
    assert half_written(before | {".set.draft/rows": "some"}, expected) == []
    assert half_written(before | {"set/rows": "all"}, expected) == ["set"]
    assert half_written({"page": "some"}, expected) == ["page"]
    assert half_written(after | {"set/rows": "some"}, expected) == ["set"]
    assert half_written({}, expected) == ["page"]


def test_what_the_manifest_of_a_corpus_does_not_name_is_not_half_written():
    after = {"data/corpora/c/manifest.json": "one part", "data/corpora/c/parts/1": "all"}
    expected = Undisturbed(seconds=1.0, room=1, before={}, after=after, meaning={})
    assert half_written({"data/corpora/c/parts/1": "some"}, expected) == []
    assert half_written(after | {"data/corpora/c/parts/2": "some"}, expected) == []
    assert half_written(after | {"data/corpora/c/parts/1": "some"}, expected) == ["data/corpora/c"]
