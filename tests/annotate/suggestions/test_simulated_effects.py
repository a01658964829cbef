"""In simulations with a known effect of suggestions, the effect is found, and the blind answers are unbiased."""

from operator import attrgetter

import numpy as np
import pytest
from scipy.stats import binom

from annotate.controls.suggestions import Answer, effect_of_suggestions
from annotate.evaluation.blind_arm import build_reference

RUNS, LABELS = 200, 4


def simulated(rng, follow, *, units=400, people=10, readers=3, blind_share=0.2, right=0.75, differ=False):
    """Return the answers, the expected raise of the suggester's score, and its score without suggestions.

    People are right in 70% to 90% of easy units, and in half as many of the hard ones, a fifth. The suggester is right
    in three of four. A person who follows gives the suggested label whatever they would have answered.

    differ: whether half of the people follow twice as often, and the others never
    """
    truth = rng.integers(LABELS, size=units)
    wrong = (truth + rng.integers(1, LABELS, size=units)) % LABELS
    suggested = np.where(rng.random(units) < right, truth, wrong)
    skill = np.linspace(0.7, 0.9, people)
    ease = np.where(rng.random(units) < 0.2, 0.5, 1.0)
    follows = rng.choice([0, 2 * follow], size=people) if differ else np.full(people, follow)
    answers, own_equal = [], []
    for unit in range(units):
        for person in rng.choice(people, size=readers, replace=False):
            is_right = rng.random() < skill[person] * ease[unit]
            unaided = truth[unit] if is_right else (truth[unit] + rng.integers(1, LABELS)) % LABELS
            is_shown = bool(rng.random() >= blind_share)
            own_equal.append(unaided == suggested[unit])
            label = suggested[unit] if is_shown and rng.random() < follows[person] else unaided
            labels = frozenset([str(label)]), frozenset([str(suggested[unit])])
            answers.append(Answer(f"p{person}", unit, is_shown, *labels, 5.0))
    return answers, follow * (1 - float(np.mean(own_equal))), float(np.mean(own_equal))


def runs(follow, **how):
    for seed in range(RUNS):
        answers, expected, unaided = simulated(np.random.default_rng(seed), follow, **how)
        yield effect_of_suggestions(["mine@1"], answers, is_several=False), expected, unaided


@pytest.mark.slow
@pytest.mark.parametrize(("follow", "units", "least"), [(0.3, 400, 0.9), (0.4, 400, 0.95), (0.2, 1500, 0.95)])
def test_an_effect_is_found_in_nine_of_ten_runs_and_its_interval_covers_the_truth(follow, units, least):
    results = [(result["score"], expected) for result, expected, _ in runs(follow, units=units)]
    assert np.mean([score["low"] > 0 for score, _ in results]) >= least
    assert np.mean([score["low"] <= expected <= score["high"] for score, expected in results]) >= 0.93
    errors = [score["value"] - expected for score, expected in results]
    assert abs(np.mean(errors)) < 3 * np.std(errors) / RUNS**0.5


@pytest.mark.slow
@pytest.mark.parametrize("people", [4, 10])
def test_without_an_effect_one_is_rarely_found(people):
    effects = [not result["score"]["low"] <= 0 <= result["score"]["high"] for result, *_ in runs(0, people=people)]
    assert np.mean(effects) <= 0.07


@pytest.mark.slow
def test_where_only_half_of_the_people_follow_the_interval_still_covers_the_mean_effect():
    results = runs(0.3, people=12, units=800, differ=True)
    covered = [result["score"]["low"] <= expected <= result["score"]["high"] for result, expected, _ in results]
    assert np.mean(covered) >= 0.92


@pytest.mark.slow
def test_the_score_of_blind_answers_is_that_without_suggestions_and_of_the_others_is_too_high():
    blind, shown = [], []
    for result, expected, unaided in runs(0.4):
        blind.append(result["blind"]["score"] - unaided)
        shown.append(result["shown"]["score"] - unaided - expected)
    for errors in (blind, shown):
        assert abs(np.mean(errors)) < 3 * np.std(errors) / RUNS**0.5


TASK = {"form": "choice", "aggregation": "majority", "labels": ["right", "wrong"], "redundancy": 5, "blind_share": 0.2}


def rows(rng, follow, units=300):
    """Rows of a set: hard units, where people are rarely right, have two answers, and easy ones have five."""
    for unit in range(units):
        is_hard = unit % 2 == 0
        judgments = []
        for person in range(2 if is_hard else 5):
            is_shown = bool(rng.random() >= TASK["blind_share"])
            is_right = rng.random() < (0.4 if is_hard else 0.9) or (is_shown and rng.random() < follow)
            label = "right" if is_right else "wrong"
            common = {"annotator": f"p{person}", "kind": "answer", "voided_at": None}
            judgments.append({**common, "label": label, "suggestions_shown": is_shown})
        yield {"id": f"u{unit}", "judgments": judgments}


def score(rng, follow, *, weighted=True):
    """The accuracy of a system that always predicts "right", which was also suggested, on the blind answers."""
    references = [made for row in rows(rng, follow) if (made := build_reference({"task": TASK})(row))]
    weights = [1 / made.chance if weighted else 1.0 for made in references]
    return np.average([made.label == "right" for made in references], weights=weights)


@pytest.mark.slow
def test_the_weights_of_blind_units_keep_the_score_of_all_units_whatever_people_follow():
    # A blind reference of a unit is nearly always a single answer, so the truth is 65%, and a little more by majority.
    for follow in (0.0, 0.6):
        values = [score(np.random.default_rng(seed), follow) for seed in range(RUNS)]
        unweighted = [score(np.random.default_rng(seed), follow, weighted=False) for seed in range(RUNS)]
        assert abs(np.mean(values) - expected_score()) < 3 * np.std(values) / RUNS**0.5
        assert np.mean(unweighted) > expected_score() + 0.05


def expected_score(share=0.2):
    """The chance that the reference of a unit is right, on average over hard and easy units, from its definition."""
    chances = []
    for answers, right in ((2, 0.4), (5, 0.9)):
        blind = binom.pmf(range(answers + 1), answers, share)
        by_number = [_majority(k, right) for k in range(1, answers + 1)]
        chances.append(np.dot(blind[1:], by_number) / blind[1:].sum())
    return np.mean(chances)


def _majority(number, right):
    """The chance that most of some answers are right. If half are, one of them decides."""
    return binom.sf(number // 2, number, right) + binom.pmf(number / 2, number, right) / 2


def test_a_small_comparison_has_the_figures_that_are_counted_by_hand():
    answers, *_ = simulated(np.random.default_rng(1), 0.5, units=60, people=4)
    result = effect_of_suggestions(["mine@1"], answers, is_several=False)
    for arm, is_shown in (("shown", True), ("blind", False)):
        of_arm = [answer for answer in answers if answer.is_shown is is_shown]
        equal = sum(answer.chosen == answer.first for answer in of_arm)
        assert result[arm]["exactly"] == equal
        assert result[arm]["score"] == pytest.approx(equal / len(of_arm))
        pairs = [
            one.chosen == other.chosen
            for number, one in enumerate(of_arm)
            for other in of_arm[number + 1 :]
            if one.unit == other.unit
        ]
        assert result[arm]["pairs"] == len(pairs)
        assert result[arm]["agreement"] == pytest.approx(np.mean(pairs))
    assert result["score"]["value"] == pytest.approx(result["shown"]["score"] - result["blind"]["score"])
    for label in result["labels"]:
        shares = [
            np.mean([label["label"] in answer.chosen for answer in answers if answer.is_shown is is_shown])
            for is_shown in (True, False)
        ]
        assert (label["shown"], label["blind"]) == pytest.approx(shares)
        assert label["difference"]["value"] == pytest.approx(shares[0] - shares[1])
    assert [row["annotator"] for row in result["people"]] == sorted({*map(attrgetter("person"), answers)})
