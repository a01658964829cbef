"""Small runs of the benchmarks of faults and of load: a real server with people at work, killed or not."""

import random

import pytest

from benchmarks import faults_server as server
from benchmarks.load import at_assay
from benchmarks.place import new_place

pytestmark = pytest.mark.slow


def test_every_answer_that_was_acknowledged_is_there_after_server_and_workers_were_killed(migrated):
    chance = random.Random(2015)
    with new_place(sqlite=True, migrated=migrated) as place:
        tokens = server.prepare(place, records=60)
        with server.at_work(place, tokens, workers=2) as (running, notes):
            server.befallen(running, notes, server.worker, 2, chance)
            server.befallen(running, notes, server.whole, 1, chance)
        outcome = server.count_losses(place, notes)
    assert outcome.acknowledged >= 4 * server.PEOPLE
    assert (outcome.lost, outcome.unasked, outcome.too_many) == (0, 0, 0)


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
