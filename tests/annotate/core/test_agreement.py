"""Krippendorff's alpha, Gwet's AC1 and each annotator against the rest, of single labels and of sets of labels."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from annotate.core.aggregation.answer_table import credit, tabulate, winners
from annotate.core.agreement.coefficients import (
    ac1,
    against_rest,
    alpha,
    by_label,
    f1,
    few_others,
    having,
    jaccard,
    masi,
    observed_agreement,
    ordinal,
    unlike,
)
from tests.annotate import crowd

# Four observers, twelve units; a dot is not an answer (Krippendorff 2011, sections C and D).
KRIPPENDORFF = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."]
LABELS = "abcd"


def rows_of(observers):
    return [(unit, who, label) for who, line in enumerate(observers) for unit, label in enumerate(line) if label != "."]


@st.composite
def answers(draw, least=0):
    """Rows of up to 5 people on up to 12 units, each pair answered once."""
    pairs = draw(st.sets(st.tuples(st.integers(0, 11), st.integers(0, 4)), min_size=least))
    return [(unit, who, draw(st.sampled_from(LABELS))) for unit, who in sorted(pairs)]


def counts_of(rows, labels=LABELS):
    return tabulate(rows, labels).counts()


def value(rows, distance=None, labels=LABELS):
    return alpha(counts_of(rows, labels), distance, seed=1, replicates=10).value


def same(one, other):
    return one is other is None or one == pytest.approx(other)


def by_pairs(rows, apart):
    """Alpha from its definition, pair by pair: mean disagreement within units, and among all paired answers."""
    units = Counter(unit for unit, _, _ in rows)
    paired = [(unit, label) for unit, _, label in rows if units[unit] > 1]
    within = sum(
        apart(one[1], other[1]) / (units[one[0]] - 1)
        for i, one in enumerate(paired)
        for j, other in enumerate(paired)
        if i != j and one[0] == other[0]
    )
    among = sum(apart(one[1], other[1]) for i, one in enumerate(paired) for j, other in enumerate(paired) if i != j)
    return 1 - within * (len(paired) - 1) / among if among else None


@pytest.mark.parametrize(("distance", "published"), [(None, 0.743), (ordinal, 0.815)])
def test_alpha_is_what_krippendorff_publishes_for_his_example(distance, published):
    best_first, worst_first = (value(rows_of(KRIPPENDORFF), distance, labels) for labels in ("54321", "12345"))
    assert round(worst_first, 3) == published
    assert best_first == pytest.approx(worst_first)


@given(answers())
def test_nominal_alpha_is_its_definition_pair_by_pair(rows):
    assert same(value(rows), by_pairs(rows, lambda one, other: one != other))


@given(st.lists(st.sampled_from(LABELS), min_size=1, max_size=30), st.integers(2, 4))
def test_alpha_of_perfect_agreement_is_1_and_of_a_single_label_unknown(truth, people):
    rows = [(unit, who, label) for unit, label in enumerate(truth) for who in range(people)]
    for distance in (None, ordinal):
        assert same(value(rows, distance), 1.0 if len(set(truth)) > 1 else None)
    for coefficient in (observed_agreement, ac1):
        agreed = coefficient(counts_of(rows), seed=1)
        assert (agreed.value, agreed.high) == (1.0, 1.0)
        assert agreed.low < 1


def test_an_annotator_who_always_gives_the_frequent_label_agrees_often_and_has_a_kappa_of_0():
    rng = np.random.default_rng(3)
    truth = rng.random(500) < 0.1
    careful = [(u, who, "ba"[int(t == (rng.random() < 0.95))]) for u, t in enumerate(truth) for who in ("x", "y")]
    annotators = against_rest(tabulate([*careful, *((u, "lazy", "b") for u in range(500))], "ab"), seed=1)
    assert [one.annotator for one in annotators] == ["x", "y", "lazy"]
    assert annotators[2].agreement.value > 0.8
    assert annotators[2].kappa.value == pytest.approx(0, abs=1e-9)
    assert annotators[0].kappa.low > 0.25


def test_a_miss_by_one_grade_costs_less_than_one_by_four_where_labels_are_grades():
    truth = "01234" * 20
    near = str.maketrans("01234", "10233")
    far = str.maketrans("01234", "40230")
    rows = [(u, "rest", t) for u, t in enumerate(truth)]
    near, far = (
        against_rest(
            tabulate([*rows, *((u, "one", t.translate(how)) for u, t in enumerate(truth))], "01234"), ordinal, seed=1
        )[1]
        for how in (near, far)
    )
    assert near.agreement.value == far.agreement.value == pytest.approx(0.4)
    assert near.kappa.value > 0.8 > 0 > far.kappa.value


def test_an_annotators_own_repeat_is_not_one_of_the_rest():
    rows = [(1, "ann", "a"), (1, "ann", "b"), (1, "bob", "a"), (2, "ann", "a"), (2, "ann", "a")]
    annotators = {one.annotator: one for one in against_rest(tabulate(rows, "ab"), seed=1)}
    assert annotators["ann"].units == annotators["bob"].units == 1
    assert annotators["ann"].agreement.value == annotators["bob"].agreement.value == 0.5


def test_intervals_come_again_from_the_seed_and_hold_the_value():
    counts = counts_of(crowd.rows("cf_amt"), "01234")
    first, again, other = (alpha(counts, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert first.value == other.value
    assert first.low < first.value < first.high
    assert first.units == 300


def test_the_interval_of_many_units_is_that_of_a_bootstrap_unit_by_unit():
    counts = counts_of(crowd.rows("zencrowd_in"), "01")
    rng = np.random.default_rng(11)
    drawn = [alpha(counts[rng.integers(0, len(counts), len(counts))], seed=1, replicates=2).value for _ in range(400)]
    estimate = alpha(counts, seed=1)
    assert (estimate.low, estimate.high) == pytest.approx(tuple(np.quantile(drawn, (0.025, 0.975))), abs=0.005)


def of_two(agreed, apart, rare):
    """Units of two answers: both a, one of each, both b."""
    return np.array([[2, 0]] * agreed + [[1, 1]] * apart + [[0, 2]] * rare)


def test_of_two_labels_and_two_answers_the_interval_is_that_of_jeffreys_prior():
    # Where b is rare, alpha is 2q / (1 + q), q being the share of both b among all units with b.
    estimate = alpha(of_two(100_000, 4, 6), seed=1, replicates=20_000)
    low, high = beta(6.5, 4.5).ppf((0.025, 0.975))
    assert (estimate.low, estimate.high) == pytest.approx((2 * low / (1 + low), 2 * high / (1 + high)), abs=0.01)


@given(answers(least=2))
def test_an_interval_holds_its_value_and_stays_where_the_coefficient_can_be(rows):
    counts = counts_of(rows)
    for estimate in (alpha(counts, seed=1), alpha(counts, ordinal, seed=1), ac1(counts, seed=1)):
        assert (
            estimate.value is estimate.low is estimate.high is None
            or estimate.low <= estimate.value <= estimate.high <= 1 + 1e-9
        )
    observed = observed_agreement(counts, seed=1)
    assert observed.value is None or 0 <= observed.low <= observed.value <= observed.high <= 1 + 1e-9


def test_there_is_no_interval_without_a_value_or_where_only_one_label_may_be_given():
    nothing = {"value": None, "low": None, "high": None, "units": 0}
    for coefficient in (alpha, ac1, observed_agreement):
        assert coefficient(counts_of([]), seed=1).as_dict() == nothing
    single = [[3], [2]]
    assert alpha(np.array(single), seed=1).as_dict() == nothing | {"units": 2}
    assert ac1(np.array(single), seed=1).as_dict() == nothing | {"units": 2}
    assert observed_agreement(np.array(single), seed=1).as_dict() == nothing | {"value": 1.0, "units": 2}


@pytest.mark.parametrize(
    ("counts", "published"),
    [
        (counts_of(rows_of(KRIPPENDORFF), "12345"), 0.77515),
        (of_two(118, 7, 0), 0.94078),
        (of_two(40, 15, 45), 0.70075),
        (of_two(2999, 1, 0), 0.99967),
        (counts_of(crowd.first_kept(crowd.rows("cf_amt")), "01234"), 0.54616),
        (counts_of(crowd.first_kept(crowd.rows("zencrowd_in")), "01"), 0.31623),
    ],
)
def test_ac1_is_what_a_published_implementation_makes_of_the_same_answers(counts, published):
    # The package irrCAC 0.4.4 for Python, CAC(...).gwet(), categories as given here;
    # of Krippendorff's example the units of two answers or more.
    assert round(ac1(counts, seed=1).value, 5) == published


def test_one_dissent_among_3000_units_leaves_alpha_at_0_and_ac1_near_1_which_counts_all_labels_that_may_be_given():
    counts = of_two(2999, 1, 0)
    krippendorff, gwet = alpha(counts, seed=1), ac1(counts, seed=1)
    assert krippendorff.value == pytest.approx(0, abs=1e-9)
    assert krippendorff.high > 0.6
    assert 0.998 < gwet.low < gwet.value < 1
    assert few_others(counts) == (0, 1)
    # Labels that may be given count for AC1 although nobody has given them.
    counts = of_two(40, 15, 45)
    more = np.pad(counts, ((0, 0), (0, 3)))
    assert ac1(more, seed=1).value > ac1(counts, seed=1).value
    assert alpha(more, seed=1) == alpha(counts, seed=1)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (of_two(3000, 0, 0), (0, 0)),
        (of_two(0, 5, 3000), (1, 5)),
        (of_two(3000, 5, 4), (0, 9)),
        (of_two(3000, 5, 5), None),
        (of_two(3, 1, 3), None),
        (of_two(0, 0, 0).reshape(0, 2), None),
    ],
)
def test_few_units_have_another_label_where_nearly_all_answers_are_one(counts, expected):
    assert few_others(counts) == expected


@given(answers(least=2))
def test_the_alpha_of_a_label_is_that_of_it_against_all_others(rows):
    alphas = {LABELS[one.label]: one for one in by_label(counts_of(rows), seed=1, replicates=10)}
    units = Counter(unit for unit, _, _ in rows)
    paired = [row for row in rows if units[row[0]] > 1]
    assert alphas.keys() == {label for _, _, label in paired}
    for label, one in alphas.items():
        assert same(one.alpha.value, value([(u, who, "ab"[answer == label]) for u, who, answer in rows]))
        assert one.units == len({unit for unit, _, answer in paired if answer == label})


def test_tied_labels_all_win_and_share_the_credit_and_other_answers_are_refused():
    counts = np.array([[2, 2, 0], [1, 3, 0], [1, 1, 1]])
    assert winners(counts).tolist() == [[True, True, False], [False, True, False], [True, True, True]]
    assert credit(counts, np.array([1, 0, 2])).tolist() == pytest.approx([0.5, 0.0, 1 / 3])
    assert winners(np.zeros((0, 3))).shape == (0, 3)
    with pytest.raises(ValueError, match="'x' is not one of the labels a, b"):
        tabulate([(1, "ann", "x")], "ab")


SETS = st.lists(st.sets(st.sampled_from("abcde"), min_size=1), min_size=1, max_size=8)

# Two coders on ten units; the figures of both distances are those of NLTK's AnnotationTask, with M of 2/3 and 1/3.
CODERS = [
    ("l1 l2", "l1"),
    ("l1 l2", "l1 l2"),
    ("l1", "l1"),
    ("l3", "l3"),
    ("l3", "l1 l3"),
    ("l4", "l4"),
    ("l2", "l4"),
    ("l1 l2", "l1"),
    ("l1 l2", "l1 l2 l3"),
    ("l1", "l1"),
]


def coded(units):
    """The table of answers, each a text of labels, and the set of labels of each distinct answer."""
    rows = [(unit, who, answer) for unit, answers in enumerate(units) for who, answer in enumerate(answers)]
    values = sorted({answer for *_, answer in rows})
    return tabulate(rows, values), [frozenset(value.split()) for value in values]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "other", "of_masi", "of_jaccard", "of_f1"),
    [
        ("ab", "abc", 0.5556, 1 / 3, 0.2),
        ("ab", "bc", 0.8889, 2 / 3, 0.5),
        ("ab", "ab", 0, 0, 0),
        ("ab", "cd", 1, 1, 1),
        ("a", "abcd", 1 - 2 / 3 / 4, 0.75, 0.6),
    ],
)
def test_two_sets_differ_by_what_they_have_in_common_and_by_whether_one_is_a_part_of_the_other(
    one, other, of_masi, of_jaccard, of_f1
):
    both = [set(one), set(other)]
    for distance, expected in ((masi, of_masi), (jaccard, of_jaccard), (unlike, of_f1)):
        matrix = distance(both)
        assert matrix[0, 1] == matrix[1, 0] == pytest.approx(expected, abs=5e-5)
        assert matrix.diagonal().tolist() == [0, 0]
    assert 1 - f1(*both) == pytest.approx(of_f1)


@pytest.mark.slow
@given(SETS)
def test_distances_are_0_only_for_equal_sets_and_1_only_without_a_common_label_and_masi_is_the_largest(sets):
    matrices = {distance: distance(sets) for distance in (masi, jaccard, unlike)}
    same = np.array([[one == other for other in sets] for one in sets])
    apart = np.array([[one.isdisjoint(other) for other in sets] for one in sets])
    for matrix in matrices.values():
        assert ((matrix == 0) == same).all()
        assert ((matrix == 1) == apart).all()
        assert np.allclose(matrix, matrix.T)
    assert (matrices[masi] >= matrices[jaccard] - 1e-12).all()
    assert (matrices[jaccard] >= matrices[unlike] - 1e-12).all()
    assert matrices[unlike] == pytest.approx(np.array([[1 - f1(one, other) for other in sets] for one in sets]))


@pytest.mark.slow
def test_an_empty_set_is_refused_since_no_answer_is_one():
    for distance in (masi, jaccard, unlike):
        with pytest.raises(ValueError, match="without labels has no distance"):
            distance([{"a"}, set()])
    with pytest.raises(ValueError, match="has no F1"):
        f1(set(), {"a"})


@pytest.mark.slow
def test_alpha_of_sets_is_what_nltk_gives_for_two_coders():
    answers, sets = coded(CODERS)
    for distance, published in ((masi, 0.5136), (jaccard, 0.5794)):
        result = alpha(answers.counts(), distance(sets), seed=1)
        assert round(result.value, 4) == published
        assert result.low < result.value < result.high
    # A unit with one answer changes nothing, though nobody else gave its value.
    more, more_sets = coded([*CODERS, ("l9 l8",)])
    assert alpha(more.counts(), masi(more_sets), seed=1) == alpha(answers.counts(), masi(sets), seed=1)
    with pytest.raises(ValueError, match=r"shape \(6, 6\), but 7 labels require the shape \(7, 7\)"):
        alpha(answers.counts(), masi(sets[1:]), seed=1)


@pytest.mark.slow
@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), min_size=1, max_size=10))
def test_where_every_set_has_one_label_all_distances_give_the_nominal_figures_with_their_intervals(units):
    answers, sets = coded(units)
    plain = alpha(answers.counts(), seed=1, replicates=20)
    rest = against_rest(answers, seed=1, replicates=20)
    for distance in (masi, jaccard, unlike):
        assert alpha(answers.counts(), distance(sets), seed=1, replicates=20) == plain
        assert against_rest(answers, distance(sets), unlike(sets), seed=1, replicates=20) == rest


@pytest.mark.slow
def test_a_person_agrees_with_the_rest_by_the_mean_f1_over_units_and_over_the_others():
    # With the others on the first unit 1 and 2/3, on the second 0.
    answers, sets = coded([("a b", "a b", "a"), ("c", "d")])
    first, *_ = against_rest(answers, masi(sets), unlike(sets), seed=1)
    assert first.units == 2
    assert first.agreement.value == pytest.approx(((1 + 2 / 3) / 2 + 0) / 2)


@pytest.mark.slow
def test_each_label_of_sets_has_the_alpha_of_whether_it_was_chosen():
    answers, sets = coded(CODERS)
    labels = ["l1", "l2", "l3", "l4"]
    alphas = by_label(answers.counts(), having(sets, labels), seed=1)
    assert [labels[row.label] for row in alphas] == labels
    for row in alphas:
        chosen = [tuple("ny"[labels[row.label] in answer.split()] for answer in unit) for unit in CODERS]
        plain = alpha(coded(chosen)[0].counts(), seed=1)
        assert row.alpha.value == pytest.approx(plain.value)
        assert row.units == sum("y" in unit for unit in chosen)


@pytest.mark.slow
def test_hundreds_of_units_with_mostly_different_sets_are_compared_too():
    chance = np.random.default_rng(3)
    units = []
    for _ in range(300):
        gold = chance.choice(3000, 5, replace=False)
        # Each misses 30% of the labels.
        people = [" ".join(sorted(str(c) for c in gold if chance.random() > 0.3) or ["0"]) for _ in range(3)]
        units.append((*people, " ".join(sorted(str(c) for c in chance.choice(3000, 4, replace=False)))))
    answers, sets = coded([unit[:3] for unit in units])
    assert len(sets) > 700
    result = alpha(answers.counts(), masi(sets), seed=1, replicates=200)
    # No label is there by chance, so alpha is 1 less the mean distance.
    distances = masi(sets)
    table = answers.label.reshape(300, 3)
    mean = np.mean([distances[table[:, one], table[:, other]].mean() for one, other in ((0, 1), (0, 2), (1, 2))])
    assert result.value == pytest.approx(1 - mean, abs=0.01)
    assert result.low < result.value < result.high < result.low + 0.1
    # A fourth person answers unlike all others, and has the least F1 and no kappa to speak of.
    answers, sets = coded(units)
    *careful, careless = against_rest(answers, masi(sets), unlike(sets), seed=1, replicates=100)
    assert min(person.agreement.low for person in careful) > 0.4 > 0.15 > careless.agreement.high
    assert careless.kappa.low < 0.05 < 0.15 < careful[0].kappa.low
