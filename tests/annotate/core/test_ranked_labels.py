"""Ranked labels and pages measured against the right ones, and how often the intervals hold the truth."""

from functools import cache
from itertools import pairwise, permutations
from math import log2
from statistics import fmean, mean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.core.estimation.proportions import UNKNOWN
from annotate.core.measures.ranked_labels import (
    Answered,
    Judged,
    above,
    add_ancestors,
    differences,
    first_of,
    mean_ndcg,
    means,
    measures_at,
    micro,
    micro_differences,
    micro_p_value,
    ndcg,
    p_values,
    with_ancestors,
    with_gold,
    within,
)
from corpora.predictions.rankings import fuse_rankings, rank_labels

pytestmark = pytest.mark.slow
LABELS = "abcdefghijklmnop"
RANKINGS = st.permutations(LABELS).flatmap(lambda labels: st.integers(0, len(labels)).map(lambda n: labels[:n]))
GOLD = st.sets(st.sampled_from(LABELS), min_size=1)
DOCUMENTS = st.lists(st.builds(Judged, GOLD, RANKINGS), min_size=1, max_size=6)


def test_each_measure_is_that_of_the_published_code_worked_out_by_hand():
    # Three gold labels, found at ranks 1 and 4; one gold label, at rank 2; none found, of a short ranking.
    measures = measures_at(
        [Judged({"a", "b", "c"}, ["a", "x", "y", "b", "z"]), Judged({"a"}, ["x", "a"]), Judged({"a", "b"}, ["x"])], 5
    )
    assert measures["P"].tolist() == [[1, 1 / 2, 1 / 3, 2 / 4, 2 / 5], [0, 1 / 2, 1 / 3, 1 / 4, 1 / 5], [0] * 5]
    assert measures["R"].tolist() == [[1 / 3, 1 / 3, 1 / 3, 2 / 3, 2 / 3], [0, 1, 1, 1, 1], [0] * 5]
    assert measures["RP"].tolist() == [[1, 1 / 2, 1 / 3, 2 / 3, 2 / 3], [0, 1, 1, 1, 1], [0] * 5]
    second, third, fifth = 1 / log2(3), 1 / log2(4), 1 / log2(5)
    ideal = 1 + second + third
    assert measures["nDCG"] == pytest.approx(
        np.array(
            [
                [1, 1 / (1 + second), 1 / ideal, (1 + fifth) / ideal, (1 + fifth) / ideal],
                [0, second, second, second, second],
                [0] * 5,
            ]
        )
    )


def test_means_are_over_documents_that_have_gold_labels_and_of_a_bucket_only_its_labels_are_kept():
    documents = [Judged({"a", "b"}, ["a", "b"]), Judged(set(), ["a"]), Judged({"b"}, ["a", "b"])]
    assert len(with_gold(documents)) == 2
    averages = means(with_gold(documents), 2)
    assert [average.value for average in averages["P"]] == [0.5, 0.75]
    assert [average.value for average in averages["RP"]] == [0.5, 1.0]
    assert means([], 1)["P"] == [UNKNOWN]
    documents = [Judged({"a", "b"}, ["x", "a", "y", "b"]), Judged({"a"}, ["b", "a"])]
    assert within(documents, {"b", "y"}) == [Judged({"b"}, ["y", "b"])]
    assert within(documents, frozenset()) == []
    # An answer is the first labels, or those above a threshold; equal scores stand in the order of their ids.
    assert first_of([Judged({"a"}, ["x", "a", "y"])], 2) == [Answered({"a"}, {"a", "x"})]
    assert above({"a": 0.7, "b": 0.5, "c": 0.49}, 0.5) == {"a", "b"}
    assert rank_labels({"9": 1.0, "10": 1.0, "c_4e": 2.0, "2": 1.0}) == ["c_4e", "10", "2", "9"]


def test_a_document_without_gold_labels_and_a_label_ranked_twice_are_refused():
    with pytest.raises(ValueError, match="without gold labels has no measure"):
        measures_at([Judged(set(), ["a"])])
    for measured in (lambda: measures_at([Judged({"a"}, ["a", "a"])]), lambda: fuse_rankings([["a"], ["b", "b"]])):
        with pytest.raises(ValueError, match="a label twice"):
            measured()


def test_rankings_are_joined_by_the_sum_of_one_over_the_rank():
    # a: 1 + 1/3, b: 1/2 + 1, c: 1/3, d: 1/2
    assert fuse_rankings([["a", "b", "c"], ["b", "d", "a"]]) == ["b", "a", "d", "c"]
    assert fuse_rankings([["b"], ["a"]]) == ["a", "b"]
    assert fuse_rankings([]) == []


def test_precision_recall_and_f1_are_of_all_labels_together():
    documents = [
        Answered({"a", "b"}, {"a", "x"}),
        Answered({"c"}, {"c"}),
        Answered(set(), {"y"}),
        Answered({"d"}, set()),
    ]
    measures = micro(documents, seed="1")
    assert (measures.hits, measures.assigned, measures.gold) == (2, 4, 4)
    assert (measures.precision.value, measures.recall.value, measures.f1.value) == (0.5, 0.5, 0.5)
    assert measures.f1.low is measures.f1.high is None  # of four documents
    assert micro([Answered({"a"}, set())], seed="1")[:3] == ((None,) * 3, (0.0, None, None), (0.0, None, None))


PARENTS = {
    "cat": ["pet", "mammal"],
    "dog": ["pet", "mammal"],
    "mammal": ["animal"],
    "pet": [],
    "one": ["other"],
    "other": ["one"],
}


def test_with_all_ancestors_a_near_miss_is_half_right():
    assert with_ancestors(["cat"], PARENTS) == {"cat", "pet", "mammal", "animal"}
    assert with_ancestors(["one"], PARENTS) == {"one", "other"}  # a circle ends
    (document,) = add_ancestors([Answered({"cat"}, {"dog"})], PARENTS)
    assert micro([document], seed="1").f1.value == 0.75
    assert micro([Answered({"cat"}, {"dog"})], seed="1").f1.value == 0


@given(DOCUMENTS)
def test_every_measure_lies_between_0_and_1_and_the_r_precision_is_the_greater_of_precision_and_recall(documents):
    measures = measures_at(documents)
    assert all(((values >= 0) & (values <= 1)).all() for values in measures.values())
    assert np.array_equal(measures["RP"], np.maximum(measures["P"], measures["R"]))
    assert np.array_equal(measures["RP"][:, 0], measures["P"][:, 0])
    assert (np.diff(measures["R"]) >= 0).all()


def test_systems_that_are_not_measured_on_the_same_documents_are_not_paired():
    one, other = [Judged({"a"}, ["a"])], [Judged({"b"}, ["a"])]
    for compare in (
        lambda: differences(one, other),
        lambda: p_values(one, other, 5, seed="1"),
        lambda: micro_differences(first_of(one, 1), [], seed="1"),
        lambda: micro_p_value(first_of(one, 1), [], seed="1"),
    ):
        with pytest.raises(ValueError, match="must be measured on the same documents"):
            compare()


@cache
def population():
    """Documents of one to eight labels, some hard and some easy, and two systems of which the second is the better."""
    chance = np.random.default_rng(57)
    systems = [], []
    for _ in range(20_000):
        size = 1 + chance.binomial(7, 0.55)
        gold = {f"g{n}" for n in range(size)}
        ease = chance.beta(1, 2)
        for system, better in zip(systems, (0.0, 0.1), strict=True):
            hits = [label for label in sorted(gold) if chance.random() < ease + better]
            scores = {label: chance.normal(1.0) for label in hits} | {f"m{n}": chance.normal() for n in range(8)}
            system.append(Judged(gold, rank_labels(scores)))
    return systems


def is_held(interval, truth):
    return interval.low <= truth <= interval.high


@pytest.mark.parametrize("documents", [40, 200])
def test_95_percent_intervals_of_means_and_of_paired_differences_hold_the_truth_in_about_95_percent_of_draws(documents):
    systems = population()
    truth, other = ({name: values[:, 2].mean() for name, values in measures_at(side, 3).items()} for side in systems)
    chance = np.random.default_rng(21)
    held, apart = [], []
    for _ in range(400):
        drawn = chance.integers(len(systems[0]), size=documents)
        first, second = ([system[place] for place in drawn] for system in systems)
        averages, between = means(first, 3), differences(first, second, 3)
        held += [is_held(averages[name][2], truth[name]) for name in truth]
        apart += [is_held(between[name][2], truth[name] - other[name]) for name in truth]
    # The four measures go together, so that chance moves a share of 400 draws by 1% or so.
    assert 0.92 <= fmean(held) <= 0.98
    assert 0.92 <= fmean(apart) <= 0.98


def test_means_of_few_hits_hold_the_truth_as_often_as_others():
    """RP@5 of documents of one to five labels, of which 8% have a hit: as sparse as a zero-shot bucket."""
    chance, odds = np.random.default_rng(8), [0.2, 0.2, 0.25, 0.35]
    kinds = [Judged({f"g{n}" for n in range(size)}, ["g0"]) for size in (1, 2, 3, 5)]
    miss, truth, held = Judged({"g0"}, ["x"]), 0.08 * (0.2 + 0.1 + 0.25 / 3 + 0.07), []
    for draw in range(250):
        hits = chance.random(40) < 0.08
        drawn = [kinds[kind] if hit else miss for hit, kind in zip(hits, chance.choice(4, 40, p=odds), strict=True)]
        held.append(is_held(means(drawn, 5, seed=str(draw))["RP"][4], truth))
    assert 0.94 <= fmean(held) <= 0.99


def test_where_values_are_dense_or_whole_hits_and_misses_the_interval_is_jeffreys():
    halves, hits, misses = ([Judged({"a", "b"}, ["a"])], [Judged({"a"}, ["a"])], [Judged({"a"}, ["x"])])
    for documents, is_jeffreys in ((halves * 12, True), (misses * 19 + hits, True), (misses * 19 + halves, False)):
        [one, again, other] = (means(documents, 2, seed=seed)["RP"][1] for seed in "112")
        assert one == again
        assert (one == other) == is_jeffreys


def test_intervals_of_micro_averages_and_of_their_paired_differences_are_as_wide_as_draws_differ():
    first, second = (first_of(system, 5) for system in population())
    table = np.array(
        [(len(g & a), len(a), len(g & b), len(b), len(g)) for (g, a), (_, b) in zip(first, second, strict=True)]
    )

    def f1(places):
        a, assigned, b, other, gold = table[places].sum(axis=0)
        return 2 * a / (assigned + gold), 2 * a / (assigned + gold) - 2 * b / (other + gold)

    chance = np.random.default_rng(9)
    drawn = [chance.integers(len(first), size=100) for _ in range(2000)]
    spread = np.std([f1(places) for places in drawn], axis=0)
    widths = []
    for places in drawn[:12]:
        ones, others = ([system[place] for place in places] for system in (first, second))
        estimates = micro(ones, seed="1").f1, micro_differences(ones, others, seed="1")["f1"]
        assert [estimate.value for estimate in estimates] == pytest.approx(f1(places))
        widths.append([estimate.high - estimate.low for estimate in estimates])
    assert np.mean(widths, axis=0) == pytest.approx(2 * 1.96 * spread, rel=0.1)
    # Two systems on the same documents are told apart better than each on documents of its own.
    assert spread[1] < 2**0.5 * spread[0]


def test_a_p_value_is_the_share_of_all_ways_to_trade_that_lie_as_far_apart():
    # On 7 documents only the first system finds the label, on 1 only the second, on 2 both. In 18 of the 256 ways to
    # trade those 8, one of the two has 7 or 8 of them.
    hit, miss = Judged({"a"}, ["a"]), Judged({"a"}, ["x"])
    first, second = [hit] * 7 + [miss] + [hit] * 2, [miss] * 7 + [hit] + [hit] * 2
    expected = pytest.approx(18 / 256, abs=0.01)
    assert p_values(first, second, 1, seed="1") == dict.fromkeys(("P", "R", "RP", "nDCG"), expected)
    assert micro_p_value(first_of(first, 1), first_of(second, 1), seed="1") == expected
    assert p_values(first, first, 1, seed="1")["RP"] == 1
    assert micro_p_value([], [], seed="1") == 1
    # Intervals and p-values come again from the seed.
    answers, others = (first_of(system[:50], 5) for system in population())
    assert micro(answers, seed="1") == micro(answers, seed="1") != micro(answers, seed="2")
    values = [micro_p_value(answers, others, seed=seed) for seed in "112"]
    assert values[0] == values[1] != values[2]


def test_of_systems_that_are_equally_good_a_twentieth_is_told_apart_at_5_percent():
    chance, rejected = np.random.default_rng(5), []
    first, second = population()
    for draw in range(200):
        # Which system is called the first is tossed for each document, so that neither is better.
        drawn = [(first[n], second[n])[:: chance.choice((1, -1))] for n in chance.integers(len(first), size=60)]
        ones, others = ([pair[side] for pair in drawn] for side in (0, 1))
        p = p_values(ones, others, 5, seed=str(draw))
        rejected += [p["RP"] < 0.05, micro_p_value(first_of(ones, 5), first_of(others, 5), seed=str(draw)) < 0.05]
    assert 0.02 <= fmean(rejected) <= 0.085
    ones, others = (system[:200] for system in population())
    assert p_values(ones, others, 5, seed="1")["RP"] < 0.01


PAGES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("grades", "scores", "expected"),
    [
        # by sklearn.metrics.ndcg_score, which XGLUE's script calls
        ([3, 2, 0, 1], [4, 4, 1, 1], 0.9539682252597386),
        ([4, 0], [0, 4], 0.6309297535714573),
        ([4, 3, 2, 1, 0], [2, 2, 2, 2, 2], 0.8052086790151614),
        ([0, 1, 2, 3, 4], [0.1, 0.5, 0.2, 0.9, 0.9], 0.9653362804685146),
        ([0, 0, 0], [1, 2, 3], 0.0),
    ],
)
def test_ndcg_is_that_of_the_published_evaluation(grades, scores, expected):
    assert ndcg(grades, scores) == pytest.approx(expected, abs=1e-12)


@given(PAGES)
def test_pages_predicted_alike_count_as_the_mean_over_all_their_orders(pages):
    grades, scores = zip(*pages, strict=True)
    orders = [order for order in permutations(range(len(pages))) if _falls([scores[page] for page in order])]
    untied = [ndcg([grades[page] for page in order], range(len(pages), 0, -1)) for order in orders]
    assert ndcg(grades, scores) == pytest.approx(mean(untied))


def _falls(scores):
    return all(before >= after for before, after in pairwise(scores))


def test_grades_below_nothing_and_pages_without_a_prediction_are_refused():
    with pytest.raises(ValueError, match="grades of 0 or more"):
        ndcg([-1, 2], [1, 2])
    with pytest.raises(ValueError, match="2 grades and 1 predictions"):
        ndcg([1, 2], [1])


def test_the_mean_leaves_out_queries_of_one_page_and_counts_those_without_a_relevant_one_as_nothing():
    pages = [("a", 4, 4), ("a", 0, 0), ("b", 3, 0), ("c", 0, 2), ("c", 0, 1), ("d", 0, 4), ("d", 4, 0)]
    average = mean_ndcg(pages, seed="1")
    assert average.value == pytest.approx((1 + 0 + 1 / log2(3)) / 3)
    assert (average.queries, average.single, average.irrelevant) == (3, 1, 1)
    assert average.low is average.high is None  # of three queries
    # A query that comes again later in the file is another one, as in the published script.
    assert mean_ndcg([("a", 4, 1), ("a", 0, 2), ("b", 1, 1), ("b", 1, 1), ("a", 2, 2)], seed="1").single == 1
    assert mean_ndcg([("a", 4, 4)], seed="1").value is None
    assert mean_ndcg([], seed="1").queries == 0


def test_the_interval_is_over_queries_and_the_same_for_the_same_seed():
    pages = [(f"q{query}", grade, (grade * query) % 7) for query in range(200) for grade in range(5)]
    average = mean_ndcg(pages, seed="1")
    assert average == mean_ndcg(pages, seed="1") != mean_ndcg(pages, seed="2")
    values = [ndcg(range(5), [(grade * query) % 7 for grade in range(5)]) for query in range(200)]
    spread = (mean(value**2 for value in values) - mean(values) ** 2) ** 0.5 / 200**0.5
    assert average.value == pytest.approx(mean(values))
    assert average.low == pytest.approx(average.value - 1.96 * spread, abs=spread / 5)
    assert average.high == pytest.approx(average.value + 1.96 * spread, abs=spread / 5)
