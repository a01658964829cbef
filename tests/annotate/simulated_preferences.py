"""Simulated comparisons of two systems with known true shares, and of three systems with known true strengths.

For each message, the shares of people who prefer one system, the other, or neither are drawn once. The judges answer
with these probabilities, but biased judges always choose the first side. Three systems have strengths for each message.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import expit

from annotate.core.measures.paired_comparisons import TIE, Judgment, strengths

SYSTEMS = ("one", "two")


@dataclass(frozen=True)
class Population:
    """alike: similarity of messages; if it is low, the judges of a message mostly agree. shares: shares of people who
    prefer one system, the other, or neither. left: number of judges who always choose the first side."""

    shares: tuple[float, float, float]
    alike: float
    judges: int = 3
    left: int = 0

    def truth(self):
        """Return the expected share of judgments for each system and of ties, if the order of the sides is random."""
        biased = self.left / self.judges
        first, second, tie = ((1 - biased) * share for share in self.shares)
        return {SYSTEMS[0]: first + biased / 2, SYSTEMS[1]: second + biased / 2, TIE: tie}


# Difficult populations: messages on which all judges agree, many or few ties, and judges who always choose one side.
POPULATIONS = {
    "every message alike": Population((0.45, 0.35, 0.2), alike=1000),
    "messages differ strongly": Population((0.45, 0.35, 0.2), alike=0.5),
    "many ties": Population((0.12, 0.08, 0.8), alike=0.5),
    "one of three takes the left": Population((0.45, 0.35, 0.2), alike=1, left=1),
    "one of three takes the left, many ties": Population((0.06, 0.04, 0.9), alike=0.5, left=1),
}


def judgments(population, messages, chance):
    """Return the judgments of a task in which all judges answer each message, the biased ones first."""
    alpha = np.array(population.shares) * population.alike
    answers = np.array([*SYSTEMS, TIE])
    rows = []
    for message in range(messages):
        labels = answers[chance.choice(3, size=population.judges, p=chance.dirichlet(alpha))]
        for judge in range(population.judges):
            first = SYSTEMS[chance.integers(2)]
            answer = first if judge < population.left else str(labels[judge])
            rows.append(Judgment(message, f"judge {judge}", SYSTEMS, answer, first))
    return rows


@dataclass(frozen=True)
class Field:
    """Several systems. strengths: their mean strengths over messages; differ: the standard deviation between messages
    (natural logarithm); ties: the share of judgments that are ties."""

    strengths: tuple[float, ...]
    differ: float
    ties: float = 0.2
    judges: int = 3

    @property
    def systems(self):
        return [f"system {number}" for number in range(len(self.strengths))]

    def chances(self, messages, chance):
        """Return for each message the probability that the row's system is preferred to the column's, without ties."""
        strengths = np.array(self.strengths) + self.differ * chance.standard_normal((messages, len(self.strengths)))
        return expit(strengths[:, :, None] - strengths[:, None, :])

    def truth(self, *, ties):
        """Return the strengths for infinitely many messages. ties: whether a tie counts as half a win for both. The
        strengths are closer together if messages differ, or if ties count."""
        chances = self.chances(400_000, np.random.default_rng(1)).mean(axis=0)
        if ties:
            chances = (1 - self.ties) * chances + self.ties / 2
        return dict(zip(self.systems, strengths(chances * (1 - np.eye(len(chances)))), strict=True))


FIELDS = {
    "alike": Field((0, 0, 0), differ=0.5),
    "near each other, messages differ strongly": Field((0.3, 0, -0.3), differ=2),
    "far apart": Field((1.5, 0, -1.5), differ=0.5),
    "five, many ties": Field((0.8, 0.4, 0, -0.4, -0.8), differ=1, ties=0.7),
}


def compared_judgments(field, messages, chance):
    """Return the judgments of a task in which all judges compare all pairs of systems on each message."""
    rows = []
    pairs = list(combinations(range(len(field.systems)), 2))
    for message, chances in enumerate(field.chances(messages, chance)):
        for a, b in pairs:
            drawn = chance.random((field.judges, 2))
            for judge, (tie, first) in enumerate(drawn):
                answer = TIE if tie < field.ties else field.systems[a if first < chances[a, b] else b]
                unit = (message, a, b)
                systems = (field.systems[a], field.systems[b])
                rows.append(Judgment(unit, f"judge {judge}", systems, answer, message=message))
    return rows
