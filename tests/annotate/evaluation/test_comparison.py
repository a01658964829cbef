"""How far two predictors are apart: the interval of a difference, and whether it covers where the truth is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.core.comparing import paired
from annotate.core.estimation import UNKNOWN, proportion
from annotate.core.intervals import jeffreys
from annotate.evaluation.cells import Cell
from annotate.evaluation.comparison import differences
from annotate.evaluation.metrics import accuracy
from annotate.evaluation.uniform import Uniform
from tests.benchmarks import comparing_work
from tests.benchmarks.made_posts import World, draw, populate

COUNTS = st.integers(1, 500).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of)))
CORRELATIONS = st.floats(-1, 1)


@given(COUNTS, COUNTS, CORRELATIONS)
def test_the_interval_holds_the_difference_and_turns_with_the_two(one, other, correlation):
    first, second = proportion(*one), proportion(*other)
    found, turned = paired(first, second, correlation), paired(second, first, correlation)
    assert -1 <= found.low <= found.value <= found.high <= 1
    assert (turned.value, turned.low, turned.high) == pytest.approx((-found.value, -found.high, -found.low))


@given(COUNTS, COUNTS, st.tuples(CORRELATIONS, CORRELATIONS))
def test_the_more_two_estimates_go_together_the_narrower(one, other, correlations):
    less, more = (paired(proportion(*one), proportion(*other), each) for each in sorted(correlations))
    assert more.high - more.low <= less.high - less.low + 1e-9


def test_against_what_is_known_the_interval_is_that_of_the_estimate():
    known = proportion(0, 10**12)
    low, high = jeffreys(3, 50)
    found = paired(proportion(3, 50), known, 0.0)
    assert (found.value, found.low, found.high) == pytest.approx((0.06, low, high), abs=1e-6)


def test_what_is_unknown_is_not_compared_and_a_correlation_is_none_beyond_1():
    assert paired(UNKNOWN, proportion(1, 2), 0.0) is None
    assert paired(proportion(1, 2), UNKNOWN, 0.0) is None
    with pytest.raises(ValueError, match=r"A correlation is from -1 to 1; 1\.5 is none\."):
        paired(proportion(1, 2), proportion(1, 2), 1.5)


def uniform(*parts, frame=None):
    """Parts: (posts, agreed, read, truth, what the first says, what the second says)."""
    cells = {}
    for posts, agreed, read, truth, said, other in parts:
        for _ in range(posts):
            cells[str(len(cells))] = Cell(agreed, agreed, read, truth, said, other)
    return Uniform(cells, frame)


def test_a_detector_that_voted_is_not_worse_for_the_disputed_posts_that_people_read():
    """The first agrees with what was agreed on, which is right; the second is wrong there in 5%, and better where there
    is dispute, which is what people read."""
    both = uniform(
        (190, "de", True, "de", "de", "de"),
        (10, "de", True, "de", "de", "nl"),
        (7_410, "de", False, "de", "de", "de"),
        (390, "de", False, "de", "de", "nl"),
        (1_000, "", True, "de", "de", "de"),
        (450, "", True, "de", "nl", "de"),
        (300, "", True, "de", "de", "nl"),
    )
    read = [cell for cell in both.posts.values() if cell.read]
    assert sum(cell.said == "de" for cell in read) < sum(cell.other == "de" for cell in read)
    found = differences(both)["accuracy", ""]
    assert found["value"] == pytest.approx(250 / 9_750)
    assert found["better"] == "first"


def test_the_difference_is_that_of_the_two_accuracies_in_a_draw(population):
    both = draw(*population).both
    other = Uniform({key: cell._replace(said=cell.other) for key, cell in both.posts.items()}, None)
    apart = accuracy(both, with_und=True).value - accuracy(other, with_und=True).value
    assert differences(both)["accuracy", ""]["value"] == pytest.approx(apart, abs=3e-3)


def test_twins_are_not_apart():
    both = uniform(
        (50, "", True, "de", "de", "de"), (9, "", True, "de", "nl", "nl"), (40, "de", True, "de", "de", "de")
    )
    for found in differences(both).values():
        assert found is None or (found["value"] == 0 and found["better"] is None and found["low"] <= 0 <= found["high"])
    # Twins on what was drawn may differ elsewhere.
    assert differences(both)["accuracy", ""]["high"] > 0.01


def test_where_two_never_differ_nothing_is_uncertain_though_few_were_read():
    disputed = [(60, "", True, "de", "de", "nl"), (20, "", True, "de", "nl", "de"), (120, "", True, "de", "nl", "nl")]
    audited = [(30, "en", True, "en", "en", "en"), (770, "en", False, "en", "en", "en")]
    as_if = [(800, "en", True, "en", "en", "en")]
    few, all_read = (differences(uniform(*disputed, *agreed))["accuracy", ""] for agreed in (audited, as_if))
    assert (few["value"], few["low"], few["high"]) == pytest.approx((0.04, all_read["low"], all_read["high"]))
    assert (few["better"], few["posts"], all_read["posts"]) == ("first", 230, 1_000)


def test_where_the_whole_frame_was_read_the_difference_is_known():
    both = uniform((9, "", True, "de", "de", "nl"), (1, "", True, "de", "nl", "de"), frame=10)
    found = differences(both)["accuracy", ""]
    assert (found["low"], found["value"], found["high"]) == pytest.approx((0.8, 0.8, 0.8))


WORLD = World(drawn=2_000, labels=10, posts=200_000)


@pytest.fixture(scope="module")
def population():
    chance = np.random.default_rng(1)
    return populate(WORLD, chance), WORLD, chance


@pytest.mark.parametrize(
    "world", [WORLD, World(drawn=1_000, labels=10, posts=200_000, all_read=True)], ids=["audited", "all read"]
)
def test_intervals_of_differences_cover_in_a_population_of_known_truth(world):
    rows = list(comparing_work.compare(world, 60, 7))
    for measure in ("accuracy", "recall", "precision"):
        own = [row for row in rows if row.measure == measure]
        assert len(own) >= 60
        assert sum(row.covers for row in own) / len(own) >= 0.92, measure
        assert sum(row.wrongly for row in own) / len(own) <= 0.03, measure
    # A difference of a few points is seen in some draws.
    assert any(row.named for row in rows)
