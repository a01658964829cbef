"""The difference of two predictors: its interval, and whether it covers where the truth is known."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.core.estimation.differences import paired
from annotate.core.estimation.label_errors import slips_of
from annotate.core.estimation.proportions import UNKNOWN, Estimate, jeffreys, proportion
from annotate.evaluation.comparison import differences
from annotate.evaluation.metrics import accuracy, precision
from annotate.evaluation.uniform import Cell, Uniform
from benchmarks import comparing_work
from benchmarks.made_posts import SMALL, World

pytestmark = pytest.mark.slow
COUNTS = st.integers(1, 500).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of)))
CORRELATIONS = st.floats(-1, 1)


@given(COUNTS, COUNTS, CORRELATIONS)
def test_the_interval_holds_the_difference_and_turns_with_the_two(one, other, correlation):
    first, second = proportion(*one), proportion(*other)
    difference, turned = paired(first, second, correlation), paired(second, first, correlation)
    assert -1 <= difference.low <= difference.value <= difference.high <= 1
    assert (turned.value, turned.low, turned.high) == pytest.approx(
        (-difference.value, -difference.high, -difference.low)
    )


def test_what_is_unknown_is_not_compared_and_without_an_interval_of_both_there_is_none_of_the_difference():
    assert paired(UNKNOWN, proportion(1, 2), 0.0) is paired(proportion(1, 2), UNKNOWN, 0.0) is None
    with pytest.raises(ValueError, match=r"A correlation must be between -1 and 1, not 1\.5\."):
        paired(proportion(1, 2), proportion(1, 2), 1.5)
    difference = paired(proportion(40, 50), Estimate(0.9, 0.0, 1.0, 1.8, 2.0), 0.0)
    assert (difference.value, difference.has_interval, difference.better) == (pytest.approx(-0.1), False, None)
    low, high = jeffreys(3, 50)
    against_the_known = paired(proportion(3, 50), proportion(0, 10**12), 0.0)
    assert (against_the_known.low, against_the_known.high) == pytest.approx((low, high), abs=1e-6)
    # But a known limit of the difference holds.
    assert (difference.within(0.3).low, difference.within(0.3).high, difference.within(0.3).better) == (-0.3, 0.3, None)


def uniform(*parts):
    """parts: (posts, agreed label, read, truth, label of the first predictor, label of the second)."""
    cells = {}
    for posts, agreed, read, truth, label, other in parts:
        for _ in range(posts):
            cells[str(len(cells))] = Cell(agreed, agreed, read, truth, label, other)
    return Uniform(cells)


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
    read = [cell for cell in both.posts.values() if cell.annotated]
    assert sum(cell.predicted == "de" for cell in read) < sum(cell.other == "de" for cell in read)
    difference = differences(both)["accuracy", "with und"]
    assert difference["value"] == pytest.approx(250 / 9_750)
    assert difference["better"] == "first"


def test_where_two_never_differ_nothing_is_uncertain_though_few_were_read():
    disputed = [(60, "", True, "de", "de", "nl"), (20, "", True, "de", "nl", "de"), (120, "", True, "de", "nl", "nl")]
    audited = [(30, "en", True, "en", "en", "en"), (770, "en", False, "en", "en", "en")]
    as_if = [(800, "en", True, "en", "en", "en")]
    few, all_read = (differences(uniform(*disputed, *agreed))["accuracy", "with und"] for agreed in (audited, as_if))
    assert (few["value"], few["low"], few["high"]) == pytest.approx((0.04, all_read["low"], all_read["high"]))
    assert (few["better"], few["units"], all_read["units"]) == ("first", 230, 1_000)


def alike_where_read(first_only, second_only):
    """Two predictors that say the same of every post that was read, each labels x on some unread posts alone."""
    alike = [(24, "", True, *"xxx"), (60, "y", True, *"yyy"), (60, "y", False, *"yyy"), (40, "z", True, *"zzz")]
    others = [(40, "z", False, *"zzz"), (2, "z", True, *"www"), (4, "z", False, *"zww")]
    return uniform(*alike, *others, (first_only, "y", False, *"yxy"), (second_only, "y", False, *"yyx"))


@pytest.mark.parametrize("alone", [(3, 1), (0, 3), (20, 3)])
def test_no_predictor_is_better_where_both_say_the_same_of_every_post_that_was_read(alone):
    rows = differences(alike_where_read(*alone))
    assert not any(row["better"] for row in rows.values())
    recall = rows["recall", "x"]
    assert recall["value"] != 0
    assert recall["low"] < -0.02 < 0.02 < recall["high"]
    # Nor where the shares of both vary among the posts that were read, and always together.
    read = [(20, "", True, "x", "x", "x"), (9, "", True, "x", "y", "y"), (60, "y", True, *"yyy")]
    unread = [(200, "y", False, *"yyy"), (alone[0], "y", False, *"yxy"), (alone[1], "y", False, *"yyx")]
    assert not any(row["better"] for row in differences(uniform(*read, *unread)).values())


LABELS = st.sampled_from(["de", "en", "nl", "und"])


@st.composite
def sets_of_two(draw):
    """Posts disputed or agreed on, read or not, by one person or several, checked or not, and what two say of each."""
    cells = []
    for _ in range(draw(st.integers(1, 12))):
        stratum, truth = draw(LABELS | st.just("")), draw(LABELS)
        is_read = not stratum or draw(st.booleans())
        source = draw(st.sampled_from(["", "unaudited", "audited", "adjudicated"])) if is_read else ""
        first = draw(LABELS) if source in ("unaudited", "audited") and draw(st.booleans()) else ""
        label, other = draw(LABELS), draw(LABELS)
        cell = Cell(stratum, stratum, is_read, truth if is_read else stratum, label, other, source, first)
        cells += [cell] * draw(st.integers(1, 60))
    slips = draw(st.none() | st.integers(0, 9).map(lambda differing: slips_of(9, differing)))
    return Uniform({str(number): cell for number, cell in enumerate(cells)}, slips=slips)


@given(sets_of_two())
def test_accuracies_differ_by_no_more_than_the_share_of_posts_with_different_predictions(both):
    difference = differences(both)["accuracy", "with und"]
    most = proportion(sum(cell.predicted != cell.other for cell in both.posts.values()), len(both.posts)).high
    if difference["low"] is not None:
        assert -most - 1e-9 <= difference["low"] <= difference["value"] <= difference["high"] <= most + 1e-9
    assert difference["value"] is None or difference["low"] is not None or most > 0.99


@given(sets_of_two())
def test_a_comparison_turns_round_with_the_two(both):
    turned = differences(both.swapped)
    for figure, row in differences(both).items():
        if row["value"] is None:
            assert turned[figure]["value"] is None
            continue
        ends = [None if row[end] is None else pytest.approx(-row[end], abs=1e-9) for end in ("high", "low")]
        assert [turned[figure]["low"], turned[figure]["high"]] == ends
        assert turned[figure]["value"] == pytest.approx(-row["value"], abs=1e-9)


@given(sets_of_two())
def test_what_was_not_read_names_no_winner(both):
    alike = both.map_cells(lambda key, cell: cell._replace(other=cell.predicted) if cell.annotated else cell)
    assert not any(row["better"] for row in differences(alike).values())


@given(sets_of_two(), st.data())
def test_what_is_true_where_both_say_the_same_does_not_matter_to_which_is_more_accurate(both, data):
    """Where all was read; else what is true of one post is a guide to others."""
    posts = {key: cell._replace(annotated=True, source="", first_label="") for key, cell in both.posts.items()}
    in_truth = {
        key: cell._replace(truth=data.draw(LABELS)) if cell.predicted == cell.other else cell
        for key, cell in posts.items()
    }
    one, other = (differences(Uniform(cells))["accuracy", "with und"] for cells in (posts, in_truth))
    ends = ("value", "low", "high")
    assert [one[end] for end in ends] == [other[end] and pytest.approx(other[end]) for end in ends]
    assert one["better"] == other["better"]


def one_reader(both, checked):
    """The same set, decided by one reader; this many labels of each part were checked, and none was wrong."""
    posts, left = {}, dict.fromkeys(both.cells, checked)
    for key, cell in both.posts.items():
        left[cell] -= 1
        first, chance = (cell.truth, checked / both.cells[cell]) if left[cell] >= 0 else ("", 1.0)
        posts[key] = cell._replace(source="unaudited", first_label=first, chance=chance)
    return Uniform(posts)


def test_few_checks_of_single_readers_widen_accuracy_but_no_comparison_of_equal_predictions():
    """Of 151 posts the first alone is right on 18, the second alone on 16."""
    parts = (97, "de", "de", "de"), (20, "ar", "ar", "ar"), (18, "de", "de", "nl"), (16, "de", "nl", "de")
    read = uniform(*((posts, "", True, *labels) for posts, *labels in parts))
    plain, checked = (differences(both) for both in (read, one_reader(read, checked=1)))
    alone = accuracy(one_reader(read, checked=1), with_und=True).estimate
    assert alone.high - alone.low > 0.7
    accuracies = [rows["accuracy", "with und"] for rows in (plain, checked)]
    assert accuracies[0]["value"] == pytest.approx(2 / 151)
    assert -34 / 151 - 0.08 < accuracies[1]["low"] < accuracies[0]["low"] < 0
    assert 0 < accuracies[0]["high"] < accuracies[1]["high"] < 34 / 151 + 0.08
    # On all of the Arabic both say the same.
    assert (checked["recall", "ar"]["low"], checked["recall", "ar"]["high"]) == pytest.approx(
        (plain["recall", "ar"]["low"], plain["recall", "ar"]["high"]), abs=0.01
    )


def test_precisions_differ_by_no_more_than_posts_that_only_one_of_the_two_labels_so_allow():
    """Of 900 posts 30 were read, and all of them are right: what both label so may be wrong, and is so for both."""
    agreed = [(30, "de", True, "de", "de", "de"), (870, "de", False, "de", "de", "de")]
    both = uniform(*agreed, (5, "", True, "de", "de", "nl"), (50, "", True, "nl", "nl", "nl"))
    difference, one = differences(both)["precision", "de"], precision("de", both, {}, with_und=True).estimate
    assert one.low < 0.93
    assert difference["value"] == 0
    assert (difference["low"], difference["high"]) == (-proportion(5, 905).high, proportion(5, 905).high)


@pytest.mark.parametrize(
    "world",
    [
        World(drawn=2_000, labels=10, posts=200_000),
        World(drawn=1_000, labels=10, posts=200_000, all_read=True),
        replace(SMALL["151 posts, readers slip in 1.5%"], posts=200_000),
        replace(SMALL["151 posts, audits of 5"], posts=200_000),
    ],
    ids=["audited", "all read", "few posts, readers slip", "few posts, audits of five"],
)
def test_intervals_of_differences_cover_in_a_population_of_known_truth(world):
    rows = list(comparing_work.compare(world, 120, 8))
    for measure in ("accuracy", "recall", "precision"):
        estimates = [row for row in rows if row.measure == measure and row.has_interval]
        assert len(estimates) >= 120
        assert sum(row.covers for row in estimates) / len(estimates) >= 0.92, measure
        assert sum(row.wrongly for row in estimates) / len(estimates) <= 0.03, measure
    # A difference of a few points is seen in some draws of many posts.
    assert any(row.named for row in rows) or world.drawn < 1_000
