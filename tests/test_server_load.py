"""The load harness itself: a few people at a real server, until nothing is left."""

import pytest

from benchmarks.load import at_assay
from benchmarks.server_load.__main__ import main
from benchmarks.server_load.work import Done

pytestmark = pytest.mark.slow


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
