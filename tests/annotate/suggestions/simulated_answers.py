"""Simulated answers to units with suggestions, by people who follow a shown suggestion with a known probability."""

import numpy as np

from annotate.controls.suggestion_ledger import Answer

LABELS = 4


def simulated(rng, follow, *, units=400, people=10, each=3, blind_share=0.2, right=0.75, differ=False):
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
        for person in rng.choice(people, size=each, replace=False):
            is_right = rng.random() < skill[person] * ease[unit]
            own = truth[unit] if is_right else (truth[unit] + rng.integers(1, LABELS)) % LABELS
            is_shown = bool(rng.random() >= blind_share)
            own_equal.append(own == suggested[unit])
            label = suggested[unit] if is_shown and rng.random() < follows[person] else own
            labels = frozenset([str(label)]), frozenset([str(suggested[unit])])
            answers.append(Answer(f"p{person}", unit, is_shown, *labels, 5.0))
    return answers, follow * (1 - float(np.mean(own_equal))), float(np.mean(own_equal))
