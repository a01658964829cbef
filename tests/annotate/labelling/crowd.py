"""Simulated people who know the declared concepts of an act, and miss some and add wrong ones."""

from typing import NamedTuple

from annotate.kinds import Answer
from annotate.work.judgments import judge

MISSED = 0.3  # the chance of each gold concept to be left out
ADDED = 0.2  # the chance of each chosen concept to bring along another, drawn from all that are not gold


class Expected(NamedTuple):
    """The micro figures of a majority of three."""

    precision: float
    recall: float
    f1: float


def answer(annotator, lease, everything, chance):
    """Answer a lease; the concepts that were chosen. everything: ids of all concepts; chance: a random.Random."""
    gold = sorted(set(lease.unit.item.declared))
    # Nobody's answer is empty: who would miss all keeps one by lot.
    right = [key for key in gold if chance.random() >= MISSED] or [chance.choice(gold)]
    chosen = set(right)
    for _ in right:
        if chance.random() < ADDED:
            chosen.add(next(key for key in iter(lambda: chance.choice(everything), None) if key not in gold))
    # They mean a concept beside a broader one too.
    judge(annotator, lease.pk, Answer(" ".join(sorted(chosen)), is_sure=True))
    return chosen


def expected(sizes, concepts):
    """Of acts by how many gold concepts they have, with so many concepts in the vocabulary; test_simulated_people.py
    says why.
    """
    hits = wrong = gold = 0.0
    for n, acts in sizes.items():
        p = 1 - MISSED + MISSED**n / n
        others = concepts - n
        each = ADDED * n * p / others
        hits += acts * n * p**2 * (3 - 2 * p)
        wrong += acts * others * each**2 * (3 - 2 * each)
        gold += acts * n
    precision, recall = hits / (hits + wrong), hits / gold
    return Expected(precision, recall, 2 * precision * recall / (precision + recall))
