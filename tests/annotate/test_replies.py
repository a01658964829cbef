"""What suggested replies are worth over all examples, and how often the intervals hold the truth."""

import random

import numpy as np
import pytest

from annotate.core.measures.replies import (
    DISTINCT,
    MEASURES,
    TESTED,
    Example,
    best_of,
    differences,
    figures,
    p_values,
    rank_of,
)

pytestmark = pytest.mark.slow


def example(message, suggestions, reference, response_set=()):
    return Example(message, best_of(suggestions, reference), rank_of(reference, suggestions, set(response_set)))


def values(examples):
    return {name: each.value for name, each in figures(examples).items()}


KNOWN = {"yes", "no", "thank you !"}
THREE = [
    example("a", ["no", "yes", "maybe so"], "yes", KNOWN),
    example("b", ["thank you !", "no", "yes"], "thank you !", KNOWN),
    example("c", ["no", "not at all"], "perhaps not at all", KNOWN),
]


def test_the_figures_of_three_examples_are_those_worked_out_by_hand():
    found = values(THREE)
    f = 2 * (1 * 3 / 4) / (1 + 3 / 4), 2 * (1 * 2 / 3) / (1 + 2 / 3), 2 * (1 * 1 / 2) / (1 + 1 / 2)
    assert found["rouge1"] == pytest.approx((1 + 1 + f[0]) / 3, abs=1e-7)
    assert found["rouge2"] == pytest.approx((0 + 1 + f[1]) / 3, abs=1e-7)
    assert found["rouge3"] == pytest.approx((0 + 1 + f[2]) / 3, abs=1e-7)
    assert found["weighted_rouge"] == pytest.approx((1 / 6 + 1 + f[0] / 6 + f[1] / 3 + f[2] / 2) / 3, abs=1e-7)
    # The replies that count are "yes", "thank you !" and "not at all": 7 words, all distinct, and 4 pairs of words.
    assert (found["dist1"], found["dist2"]) == (1, 4 / 7)
    # The reference of c is not in the response set; that of a comes second, that of b first.
    assert (found["p1"], found["mrr"]) == (1 / 2, (1 / 2 + 1) / 2)


def test_a_reference_in_the_response_set_that_is_not_suggested_counts_as_missed():
    found = values([*THREE, example("d", ["yes"], "no", KNOWN)])
    assert (found["p1"], found["mrr"]) == (1 / 3, (1 / 2 + 1 + 0) / 3)
    assert rank_of("No", ["No"], {"no"}) is None


def test_replies_that_say_the_same_again_are_less_distinct():
    found = values([example(str(number), ["thank you !"], "yes") for number in range(10)])
    assert (found["dist1"], found["dist2"]) == (3 / 30, 2 / 30)


def test_without_a_reference_in_the_response_set_there_is_no_precision_at_one():
    found = figures([example("a", ["yes"], "yes")])
    assert (found["p1"].value, found["mrr"].value, found["rouge1"].value) == (None, None, pytest.approx(1, abs=1e-7))


def test_of_no_example_nothing_is_known():
    assert set(values([]).values()) == {None}


def test_the_same_message_many_times_tells_no_more_than_once():
    apart = [example(str(number), ["yes" if number % 3 else "no"], "yes", KNOWN) for number in range(60)]
    once, thrice = figures(apart), figures([each for each in apart for _ in range(3)])
    for name in ("weighted_rouge", "rouge1", "p1", "mrr"):
        assert thrice[name].value == pytest.approx(once[name].value)
        assert (thrice[name].low, thrice[name].high) == pytest.approx((once[name].low, once[name].high))


# --- two systems


def test_a_system_against_itself_differs_by_nothing():
    examples = [each._replace(message=f"{each.message}{number}") for each in THREE for number in range(10)]
    for found in differences(examples, examples).values():
        assert (found.value, found.better) == (0, None)
        assert -0.2 < found.low == -found.high <= 0
    assert p_values(examples, examples, seed="s") == dict.fromkeys(TESTED, 1)


def test_the_better_of_two_systems_is_told_and_the_other_way_round_the_other():
    good = [example(str(number), ["yes", "no"], "yes", KNOWN) for number in range(30)]
    poor = [example(str(number), ["no", "yes"] if number < 20 else ["no"], "yes", KNOWN) for number in range(30)]
    there, back = differences(good, poor), differences(poor, good)
    assert (there["p1"].value, there["p1"].better, back["p1"].better) == (1, "first", "second")
    # That it was better in all thirty does not show that it would be in all others.
    assert 0.8 < there["p1"].low < 0.95
    assert there["mrr"].value == pytest.approx(1 - 20 / 30 / 2)
    assert there["weighted_rouge"].value == pytest.approx(10 / 30 / 6, abs=1e-7)
    assert back["weighted_rouge"].low == pytest.approx(-there["weighted_rouge"].high)
    assert p_values(good, poor, seed="s")["p1"] == 1 / 10_000


def test_of_few_messages_no_interval_of_a_difference_is_given():
    assert set(differences(THREE, THREE).values()) == {None}


def test_systems_measured_on_other_messages_are_not_compared():
    with pytest.raises(ValueError, match="not measured on the same messages"):
        differences(THREE, THREE[::-1])


# --- how often the intervals hold the truth

WORDS = [f"w{number}" for number in range(60)]


def simulated(rng, number):
    """Examples of a population: common and rare words, one to three replies of a message, hits by luck."""
    found = []
    while len(found) < number:
        message, skill = str(rng.random()), rng.betavariate(0.5, 1)
        suggestions = [" ".join(WORDS[int(rng.paretovariate(0.6)) % 60] for _ in range(5)) for _ in range(2)]
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            reference = suggestions[rng.choice([0, 0, 1])] if rng.random() < skill else "nothing like it"
            found.append(
                Example(message, best_of(suggestions, reference), rank_of(reference, suggestions, {reference}))
            )
    return found


def test_in_400_simulated_sets_the_intervals_hold_the_truth_about_as_often_as_they_say():
    rng = random.Random(20)
    drawn = [figures(simulated(rng, 100)) for _ in range(400)]
    truth = values(simulated(rng, 20_000))
    # Dist falls as replies are added, so its truth is that of sets of this size.
    truth |= {name: float(np.mean([each[name].value for each in drawn])) for name in DISTINCT}
    held = {name: np.mean([each[name].low <= truth[name] <= each[name].high for each in drawn]) for name in MEASURES}
    assert all(0.93 <= held[name] <= 0.98 for name in MEASURES if name not in DISTINCT), held
    # The jackknife takes every n-gram that was seen once for one that might as well not have been, and is wide.
    assert all(held[name] >= 0.93 for name in DISTINCT), held


def test_in_400_simulated_sets_the_intervals_of_differences_hold_the_truth_about_as_often_as_they_say():
    def both(size):
        """Two systems on the same messages, of which the second finds the reference less often."""
        first = simulated(rng, size)
        lost = example("", ["nothing at all"], "w1 w2 w3", [])
        worse = {each.message for each in first if rng.random() < 0.2}
        second = [
            each._replace(best=lost.best, rank=each.rank and 0) if each.message in worse else each for each in first
        ]
        return first, second

    rng = random.Random(5)
    means = [name for name in MEASURES if name not in DISTINCT]
    drawn = [differences(*both(100)) for _ in range(400)]
    first, second = map(values, both(20_000))
    held = {
        name: np.mean([each[name].low <= first[name] - second[name] <= each[name].high for each in drawn])
        for name in means
    }
    assert all(0.92 <= share <= 0.99 for share in held.values()), held
