"""The benchmarks of faults and of load, in small: a real server with people at work, killed or not."""

import random

import pytest

from benchmarks import faults_server as server
from benchmarks.faults_commands import Undisturbed, half_written
from benchmarks.load import at_assay
from benchmarks.place import new_place
from benchmarks.server_load.__main__ import main
from benchmarks.server_load.work import Done

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


UNITS, PEOPLE = 40, 4
FOR_EVER = 1e9  # seconds: they end when nothing is left


@pytest.mark.parametrize("way", ["page", "api"])
def test_people_at_work_get_every_unit_once_and_what_is_acknowledged_is_stored(way, migrated):
    done, lost, _ = at_assay(UNITS, PEOPLE, way, FOR_EVER, migrated)
    assert (done.answers, len(done.answered), lost) == (UNITS, UNITS, 0)
    assert done.more_often_than(1) == 0
    assert not done.refused
    assert not done.errors
    assert done.a_second > 0
    assert 0 < done.median_ms <= done.p95_ms


def test_answers_beyond_what_a_unit_asks_for_are_counted():
    done = Done()
    done.answered.update({"once": 1, "twice": 2, "four times": 4})
    assert (done.more_often_than(1), done.more_often_than(2), done.more_often_than(4)) == (4, 2, 0)


@pytest.mark.parametrize(("people", "said"), [(None, "cannot be read"), ("ann\n", "is not a name and a password")])
def test_people_who_cannot_be_read_are_told_of(tmp_path, capsys, people, said):
    path = tmp_path / "people.txt"
    if people is not None:
        path.write_text(people)
    with pytest.raises(SystemExit):
        main(["http://127.0.0.1:1", "t", str(path), "--label", "en"])
    assert said in capsys.readouterr().err


def test_a_server_that_is_not_there_is_counted_as_an_error_for_each_person(tmp_path, capsys):
    path = tmp_path / "people.txt"
    path.write_text("ann one\nbea two\n")
    assert main(["http://127.0.0.1:1", "t", str(path), "--label", "en"]) == 1
    assert "ConnectionRefusedError: 2" in capsys.readouterr().out
