"""Answers that are sets of labels: MASI, Jaccard, F1, and the agreement of people who give them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.core.aggregation.answer_table import tabulate
from annotate.core.agreement.coefficients import against_rest, alpha, by_label, f1, having, jaccard, masi, unlike

pytestmark = pytest.mark.slow


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


def answered(units):
    """The answers of people on units, each a text of labels, and the sets that there are."""
    rows = [(unit, who, said) for unit, answers in enumerate(units) for who, said in enumerate(answers)]
    values = sorted({said for *_, said in rows})
    return tabulate(rows, values), [frozenset(value.split()) for value in values]


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


@given(SETS)
def test_distances_are_0_for_the_same_set_alone_1_without_a_common_label_alone_and_masi_is_the_farther(sets):
    found = {distance: distance(sets) for distance in (masi, jaccard, unlike)}
    same = np.array([[one == other for other in sets] for one in sets])
    apart = np.array([[one.isdisjoint(other) for other in sets] for one in sets])
    for each in found.values():
        assert ((each == 0) == same).all()
        assert ((each == 1) == apart).all()
        assert np.allclose(each, each.T)
    assert (found[masi] >= found[jaccard] - 1e-12).all()
    assert (found[jaccard] >= found[unlike] - 1e-12).all()
    assert found[unlike] == pytest.approx(np.array([[1 - f1(one, other) for other in sets] for one in sets]))


def test_an_empty_set_is_refused_since_no_answer_is_one():
    for distance in (masi, jaccard, unlike):
        with pytest.raises(ValueError, match="without labels has no distance"):
            distance([{"a"}, set()])
    with pytest.raises(ValueError, match="has no F1"):
        f1(set(), {"a"})


def test_alpha_of_sets_is_what_nltk_gives_for_two_coders():
    answers, sets = answered(CODERS)
    for distance, published in ((masi, 0.5136), (jaccard, 0.5794)):
        result = alpha(answers.counts(), distance(sets), seed=1)
        assert round(result.value, 4) == published
        assert result.low < result.value < result.high
    # A unit with one answer changes nothing, though nobody else gave its value.
    more, more_sets = answered([*CODERS, ("l9 l8",)])
    assert alpha(more.counts(), masi(more_sets), seed=1) == alpha(answers.counts(), masi(sets), seed=1)
    with pytest.raises(ValueError, match=r"shape \(6, 6\), but 7 labels require the shape \(7, 7\)"):
        alpha(answers.counts(), masi(sets[1:]), seed=1)


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), min_size=1, max_size=10))
def test_where_every_set_has_one_label_all_distances_give_the_nominal_figures_with_their_intervals(units):
    answers, sets = answered(units)
    plain = alpha(answers.counts(), seed=1, replicates=20)
    rest = against_rest(answers, seed=1, replicates=20)
    for distance in (masi, jaccard, unlike):
        assert alpha(answers.counts(), distance(sets), seed=1, replicates=20) == plain
        assert against_rest(answers, distance(sets), unlike(sets), seed=1, replicates=20) == rest


def test_a_person_agrees_with_the_rest_by_the_mean_f1_over_units_and_over_the_others():
    # With the others on the first unit 1 and 2/3, on the second 0.
    answers, sets = answered([("a b", "a b", "a"), ("c", "d")])
    first, *_ = against_rest(answers, masi(sets), unlike(sets), seed=1)
    assert first.units == 2
    assert first.agreement.value == pytest.approx(((1 + 2 / 3) / 2 + 0) / 2)


def test_each_label_of_sets_has_the_alpha_of_whether_it_was_chosen():
    answers, sets = answered(CODERS)
    labels = ["l1", "l2", "l3", "l4"]
    found = by_label(answers.counts(), having(sets, labels), seed=1)
    assert [labels[each.label] for each in found] == labels
    for each in found:
        chosen = [tuple("ny"[labels[each.label] in said.split()] for said in unit) for unit in CODERS]
        plain = alpha(answered(chosen)[0].counts(), seed=1)
        assert each.alpha.value == pytest.approx(plain.value)
        assert each.units == sum("y" in unit for unit in chosen)


def test_the_sets_of_hundreds_of_units_nearly_all_of_which_differ_are_compared_too():
    chance = np.random.default_rng(3)
    units = []
    for _ in range(300):
        gold = chance.choice(3000, 5, replace=False)
        # Each misses 30% of the labels.
        people = [" ".join(sorted(str(c) for c in gold if chance.random() > 0.3) or ["0"]) for _ in range(3)]
        units.append((*people, " ".join(sorted(str(c) for c in chance.choice(3000, 4, replace=False)))))
    answers, sets = answered([unit[:3] for unit in units])
    assert len(sets) > 700
    result = alpha(answers.counts(), masi(sets), seed=1, replicates=200)
    # No label is there by chance, so alpha is 1 less the mean distance.
    distances = masi(sets)
    table = answers.label.reshape(300, 3)
    mean = np.mean([distances[table[:, one], table[:, other]].mean() for one, other in ((0, 1), (0, 2), (1, 2))])
    assert result.value == pytest.approx(1 - mean, abs=0.01)
    assert result.low < result.value < result.high < result.low + 0.1
    # A fourth person answers unlike all others, and has the least F1 and no kappa to speak of.
    answers, sets = answered(units)
    *careful, careless = against_rest(answers, masi(sets), unlike(sets), seed=1, replicates=100)
    assert min(person.agreement.low for person in careful) > 0.4 > 0.15 > careless.agreement.high
    assert careless.kappa.low < 0.05 < 0.15 < careful[0].kappa.low
