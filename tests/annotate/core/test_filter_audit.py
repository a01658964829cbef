"""Shares, recall and precision of a filter, from what people read of its two parts, in whole numbers of the corpus."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom, hypergeom

from annotate.core.estimation.filter_quality import MOST, Part, audit, recall, share
from annotate.core.estimation.proportions import UNKNOWN

# The English validation part of oasst1: pairs kept and dropped by Detoxify above 0.5, and how many people called toxic.
KEPT, KEPT_TOXIC, DROPPED, DROPPED_TOXIC = 1_683, 93, 30, 17


@pytest.mark.parametrize(
    ("part", "value", "low", "high"),
    [
        (Part(99_000_000, 300, 0), 0, 0, 0.0083309),  # the rule of three, by Jeffreys' interval
        (Part(DROPPED, DROPPED, DROPPED_TOXIC), 17 / 30, 17 / 30, 17 / 30),  # read to the end, and so certain
        (Part(10, 9, 4), 4 / 9, 0.4, 0.5),  # no end lies beyond what was found
        (Part(KEPT, 300, 17), 17 / 300, 62 / KEPT, 141 / KEPT),  # an end is a whole number of the corpus
    ],
)
def test_the_share_of_a_part(part, value, low, high):
    estimate = share(part)
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((value, low, high), abs=1e-6)


def test_recall_where_one_percent_was_dropped_and_all_of_it_toxic_and_where_all_was_read():
    estimate = recall(Part(99_000_000, 300, 0), Part(1_000_000, 1_000_000, 1_000_000))
    assert (round(estimate.low, 3), estimate.high, estimate.value) == (0.548, 1.0, 1.0)
    both = audit(Part(KEPT, KEPT, KEPT_TOXIC), Part(DROPPED, DROPPED, DROPPED_TOXIC))
    assert [both.recall.value, both.recall.low, both.recall.high] == pytest.approx([17 / 110] * 3, rel=1e-9)
    assert both.precision == both.dropped


def test_what_has_no_label_widens_and_is_not_taken_for_harmless():
    whole, lacking = Part(KEPT, 300, 17), Part(KEPT, 290, 17, unresolved=10)
    assert share(lacking).low == share(whole).low
    assert share(lacking).high == share(Part(KEPT, 300, 27)).high
    assert share(lacking).value == 17 / 290
    dropped = Part(DROPPED, 20, 12, unresolved=10)
    estimate = recall(lacking, dropped)
    assert estimate.low == pytest.approx(recall(Part(KEPT, 300, 27), Part(DROPPED, 30, 12)).low)
    assert estimate.high == pytest.approx(recall(whole, Part(DROPPED, 30, 22)).high)


def test_of_what_nobody_read_dropped_or_found_nothing_is_known():
    assert share(Part(KEPT, 0, 0, unresolved=300)) == UNKNOWN
    assert recall(Part(KEPT, 0, 0), Part(DROPPED, 30, 17)) == UNKNOWN
    assert recall(Part(KEPT, 300, 17), Part(DROPPED, 0, 0)) == UNKNOWN
    assert recall(Part(KEPT, 300, 0), Part(DROPPED, 30, 0)) == UNKNOWN
    nothing = audit(Part(KEPT, 300, 17), Part(0, 0, 0))
    assert (nothing.dropped, nothing.recall.value, nothing.recall.low) == (UNKNOWN, 0.0, 0.0)


@pytest.mark.parametrize("impossible", [(10, 11, 0, 0), (10, 5, 6, 0), (10, 5, 1, 6), (10, 5, -1, 0), (10, 5, 0, -1)])
def test_counts_that_cannot_be_are_refused(impossible):
    with pytest.raises(ValueError, match="impossible"):
        Part(*impossible)


def test_many_unread_have_the_figures_of_the_largest_number_that_is_computed_exactly():
    retained, dropped = (300, 5), (100, 60)
    exact = audit(Part(MOST + 300, *retained), Part(MOST + 100, *dropped))
    by_share = audit(Part(MOST + 301, *retained), Part(MOST + 101, *dropped))
    for one, other in zip(
        (exact.retained, exact.dropped, exact.recall),
        (by_share.retained, by_share.dropped, by_share.recall),
        strict=True,
    ):
        assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=2e-3)


@st.composite
def parts(draw):
    size = draw(st.integers(1, 400))
    read = draw(st.integers(1, size))
    positives = draw(st.integers(0, read))
    return Part(size, read, positives, draw(st.integers(0, size - read)))


@given(parts(), parts())
def test_recall_of_two_parts_is_that_of_every_pair_of_numbers(retained, dropped):
    """By definition: every number of one part with every number of the other, and the probability of the pair."""
    all_figures = audit(retained, dropped)
    for estimate in (all_figures.retained, all_figures.dropped, all_figures.recall):
        assert estimate.value is None or 0 <= estimate.low <= estimate.value <= estimate.high <= 1
    if all_figures.recall.value is None:
        return
    unwidened = [Part(part.size, part.read, part.positives) for part in (retained, dropped)]
    if not all(part.positives for part in unwidened):
        return
    (left, of_left), (right, of_right) = (_every_number(part) for part in unwidened)
    recalls = (right[None, :] / (left[:, None] + right[None, :])).ravel()
    chances = (of_left[:, None] * of_right[None, :]).ravel()
    plain = recall(*unwidened)
    slack = 1e-7
    for end, tail in ((plain.low, 0.025), (plain.high, 0.975)):
        if end != plain.value:
            assert chances[recalls < end - slack].sum() <= tail + slack
            assert chances[recalls < end + slack].sum() + chances[abs(recalls - end) <= slack].sum() >= tail - slack


def _every_number(part):
    """The possible numbers of positives in a part, and their probabilities by the beta-binomial distribution."""
    unread = np.arange(part.size - part.read + 1)
    return part.positives + unread, betabinom.pmf(
        unread, part.size - part.read, part.positives + 0.5, part.read - part.positives + 0.5
    )


# (kept, of them toxic, read), the same of the dropped: what is covered is counted over all samples, not simulated.
POPULATIONS = {
    "oasst1, all dropped read": ((KEPT, KEPT_TOXIC, 300), (DROPPED, DROPPED_TOXIC, 30), 0.945),
    "oasst1, twenty dropped read": ((KEPT, KEPT_TOXIC, 300), (DROPPED, DROPPED_TOXIC, 20), 0.94),
    "one in a thousand kept, few dropped": ((20_000, 20, 300), (1_000, 50, 100), 0.945),
    "one in a thousand kept, most dropped": ((20_000, 20, 300), (1_000, 950, 100), 0.945),
    # The dip of Jeffreys' interval where a sample is expected to hold three (Brown, Cai and DasGupta, figure 4).
    "one in a hundred kept": ((20_000, 200, 300), (1_000, 950, 100), 0.92),
    "a fifth kept": ((5_000, 1_000, 300), (1_000, 950, 100), 0.945),
}


@pytest.mark.slow
@pytest.mark.parametrize("population", POPULATIONS)
def test_the_intervals_cover_the_truth_as_often_as_they_say(population):
    retained, dropped, least = POPULATIONS[population]
    truth = (retained[1] / retained[0], dropped[1] / dropped[0], dropped[1] / (retained[1] + dropped[1]))
    covered, seen = np.zeros(3), 0.0
    for of_retained, one in _samples(*retained):
        for of_dropped, other in _samples(*dropped):
            figures = audit(of_retained, of_dropped)
            seen += one * other
            covered += [
                one * other * (estimate.low - 1e-9 <= true <= estimate.high + 1e-9)
                for estimate, true in zip((figures.retained, figures.dropped, figures.recall), truth, strict=True)
            ]
    assert seen > 0.999
    assert all(least <= coverage <= 0.97 or coverage > 0.999 for coverage in covered / seen)


def _samples(size, toxic, read):
    """Every sample of a part that is not very unlikely, and its probability."""
    for positives in range(max(0, read - (size - toxic)), min(read, toxic) + 1):
        chance = hypergeom.pmf(positives, size, toxic, read)
        if chance > 2e-5:
            yield Part(size, read, positives), chance


@pytest.mark.parametrize(
    ("cells", "size", "read", "rate", "width"),
    [
        (1, 70, 35, 0.1, 0.13),
        (1, 70, 63, 0.1, 0.036),
        (7, 70, 14, 0.1, 0.105),
        (7, 70, 60, 0.1, 0.021),
        (7, 20, 5, 0.1, 0.165),
        (28, 50, 10, 0.01, 0.022),
    ],
)
def test_the_interval_holds_the_error_of_the_documents_themselves_and_is_no_wider_than_it_need_be(
    cells, size, read, rate, width
):
    """Width: at most, on average of 1,000 audits."""
    rng = np.random.default_rng(7)
    wrong = rng.binomial(size, rate, (1000, cells))
    audits = rng.hypergeometric(wrong, size - wrong, read)
    intervals = [share(*(Part(size, read, int(number)) for number in audit)) for audit in audits]
    truth = wrong.sum(axis=1) / (cells * size)
    holds = [one.low - 1e-12 <= true <= one.high + 1e-12 for one, true in zip(intervals, truth, strict=True)]
    assert 0.92 <= np.mean(holds) <= 0.985
    assert np.mean([one.high - one.low for one in intervals]) <= width
    # A class that nobody has read counts as the others, and may be wrong as a whole or not at all.
    read, unread = Part(70, 35, 7), Part(30, 0, 0)
    alone, both = share(read), share(read, unread)
    assert both.value == alone.value == 0.2
    assert both.low == pytest.approx(alone.low * 0.7)
    assert both.high == pytest.approx(alone.high * 0.7 + 0.3)
    assert share(unread) == share() == UNKNOWN
