"""The shares of labels in a corpus, from a draw of which people read a part of each stratum."""

import numpy as np
import pytest

from annotate.core.estimation.share_estimators import AuditedDraw, shares_of_draw
from benchmarks.judge import WORLDS
from benchmarks.judge_work import estimate

LABELS = ("no", "yes")
WAYS = ("people", "rogan_gladen", "prediction_powered")


def draw(cells, corpus=(600, 400)):
    """cells: number of items for each (stratum, judge, people), people -1 where nobody read them."""
    rows = np.array([cell for cell, number in cells.items() for _ in range(number)])
    return AuditedDraw(LABELS, np.array(corpus), rows[:, 1], rows[:, 2], rows[:, 0])


# 200 items: 60 of stratum 0 all read, and 20 of the 140 of stratum 1, of which 1 in 10 is a yes.
CELLS = {
    (0, 0, 0): 25,
    (0, 0, 1): 5,
    (0, 1, 0): 5,
    (0, 1, 1): 25,
    (1, 0, 0): 17,
    (1, 0, 1): 1,
    (1, 1, 0): 1,
    (1, 1, 1): 1,
    (1, 0, -1): 108,
    (1, 1, -1): 12,
}


def test_people_alone_count_each_stratum_by_its_items_in_the_draw():
    people = shares_of_draw(draw(CELLS))[1].people
    assert people.value == pytest.approx((30 + 140 * 2 / 20) / 200)
    assert people.low < people.value < people.high


def test_the_judge_moves_the_tuned_estimate_to_the_corpus():
    cells = {**CELLS, (1, 0, 1): 0, (1, 0, 0): 18}
    in_draw, more = (shares_of_draw(draw(cells, corpus))[1].prediction_powered for corpus in ((780, 220), (600, 400)))
    # Of the 14 items of stratum 1 to which the judge gives the label, half have it; of the others none.
    by_judge = {1: (25 + 14 * 1 / 2) / 44, 0: 5 / 156}
    for share, judged in ((in_draw, 0.22), (more, 0.4)):
        assert share.value == pytest.approx(judged * by_judge[1] + (1 - judged) * by_judge[0])


def test_a_corpus_that_was_drawn_and_read_completely_has_exact_shares():
    read = {cell: number for cell, number in CELLS.items() if cell[2] >= 0}
    shares = shares_of_draw(draw(read, (48, 32)))[1]
    for way in WAYS:
        one = getattr(shares, way)
        assert (one.value, one.low, one.high) == pytest.approx((32 / 80, 32 / 80, 32 / 80))


def test_the_items_still_to_read_belong_to_a_larger_draw():
    wide, narrow = (shares_of_draw(draw(CELLS, (60_000, 40_000)), width)[1].people for width in (0.04, 0.02))
    assert 0 < wide.more < narrow.more
    assert shares_of_draw(draw(CELLS), 0.2)[1].people.more == 0
    assert shares_of_draw(draw(CELLS, (126, 84)), 0.001)[1].people.more is None


def test_a_stratum_that_nobody_read_is_refused():
    with pytest.raises(ValueError, match="Nobody read any item of a stratum"):
        draw({(0, 0, 0): 3, (1, 0, -1): 2})


@pytest.mark.slow
def test_intervals_cover_in_a_population_of_known_truth():
    name = "four languages, disputed ones read and agreed ones audited"
    rows = list(estimate(name, WORLDS[name], 300, 40, "7"))
    for way in WAYS:
        estimates = [row for row in rows if row.way == way]
        assert sum(row.of_people for row in estimates) / len(estimates) > 0.93
