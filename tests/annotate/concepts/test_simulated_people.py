"""What a majority of three makes of people who miss concepts and add wrong ones, as it was worked out beforehand."""

import random
from collections import Counter
from typing import NamedTuple

import pytest

from annotate.core.measures.ranked_labels import Answered, micro
from annotate.kinds import Answer
from annotate.work.judgments import judge
from annotate.work.queue import take
from corpora.models import Concept
from tests.annotate.concepts.acts import begun
from tests.annotate.conftest import make_person

pytestmark = [pytest.mark.usefixtures("corpus"), pytest.mark.on_sqlite]


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
    """Of acts by how many gold concepts they have, with so many concepts in the vocabulary."""
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


def label():
    """The acts, after three people who miss concepts and add wrong ones: the units, and what each person had said."""
    task = begun()
    readers = [make_person(f"reader{number}", "en") for number in range(3)]
    everything = sorted(Concept.objects.values_list("key", flat=True))
    said = []
    for number, reader in enumerate(readers):
        chance = random.Random(number)
        while lease := take(reader, task):
            said.append((lease.unit_id, answer(reader, lease, everything, chance)))
    return list(task.units.select_related("item")), said, len(everything)


BEGUN = label


@pytest.fixture
def labelled(corpus):
    return corpus


@pytest.mark.slow
def test_the_majority_of_three_who_miss_3_in_10_has_the_expected_micro_figures(labelled):
    """A gold concept is missed with a chance of .3, so it has two votes of three with p²(3 - 2p) = .784, where p is .7.

    Where all n gold concepts of an act would be missed one of them is kept, by lot, so that nobody's answer is empty
    and each is chosen with p = .7 + .3^n / n. Of a person's concepts, n p, one in five brings a wrong one along, out of
    the V - n others: two of three choose the same with about 3 (.2 n p / (V - n))², for each of V - n, which is less
    than one concept in all acts together. Where no concept has two votes an act has no label, and all of its gold
    concepts are missed.
    """
    units, _, size = labelled
    documents = [Answered(frozenset(unit.item.declared), frozenset(unit.label.split())) for unit in units]
    found, right = micro(documents, seed="1"), expected(Counter(len(each.gold) for each in documents), size)
    assert right.recall == pytest.approx(0.784, abs=0.01)
    assert right.precision > 0.995
    assert found.recall.low <= right.recall <= found.recall.high
    assert found.f1.low <= right.f1 <= found.f1.high
    # So rare that there may be none, and no interval of them.
    assert found.assigned - found.hits <= 2


@pytest.mark.slow
def test_one_person_alone_is_farther_from_the_truth_than_three_together(labelled):
    """Of one person's concepts 1 / 1.2 are right, and .7 of the gold concepts are among them: an F1 of .761."""
    units, said, _ = labelled
    gold = {unit.pk: frozenset(unit.item.declared) for unit in units}
    alone = micro([Answered(gold[unit], frozenset(keys)) for unit, keys in said], seed="1")
    together = micro([Answered(gold[unit.pk], frozenset(unit.label.split())) for unit in units], seed="1")
    precision, recall = 1 / (1 + ADDED), 1 - MISSED
    assert alone.f1.low <= 2 * precision * recall / (precision + recall) <= alone.f1.high < together.f1.low
