"""Simulated judgments of two systems, whose true shares are known.

Each message has a share of people who prefer the one system, the other, or neither, drawn once; its judges answer by
that, and one of them may always take what stands first.
"""

from dataclasses import dataclass

import numpy as np

from annotate.core.preferences import TIE, Judgment

SYSTEMS = ("one", "two")


@dataclass(frozen=True)
class Population:
    """alike: how alike messages are; the lower it is, the more all judges of a message say the same. shares: of people
    who prefer the one system, the other, or neither. left: how many of the judges always take the first side."""

    shares: tuple[float, float, float]
    alike: float
    judges: int = 3
    left: int = 0

    def truth(self):
        """The share of all judgments for each system, and of ties, over all messages; sides being drawn by lot."""
        biased = self.left / self.judges
        first, second, tie = ((1 - biased) * share for share in self.shares)
        return {SYSTEMS[0]: first + biased / 2, SYSTEMS[1]: second + biased / 2, TIE: tie}


# Hard ones: messages on which all judges say the same, many ties, few of them, and judges who look at the side alone.
POPULATIONS = {
    "every message alike": Population((0.45, 0.35, 0.2), alike=1000),
    "messages differ strongly": Population((0.45, 0.35, 0.2), alike=0.5),
    "many ties": Population((0.12, 0.08, 0.8), alike=0.5),
    "one of three takes the left": Population((0.45, 0.35, 0.2), alike=1, left=1),
    "one of three takes the left, many ties": Population((0.06, 0.04, 0.9), alike=0.5, left=1),
}


def judgments(population, messages, chance):
    """One task: `messages` messages, each judged by all judges, the biased ones first."""
    alpha = np.array(population.shares) * population.alike
    answers = np.array([*SYSTEMS, TIE])
    found = []
    for message in range(messages):
        said = answers[chance.choice(3, size=population.judges, p=chance.dirichlet(alpha))]
        for judge in range(population.judges):
            first = SYSTEMS[chance.integers(2)]
            answer = first if judge < population.left else str(said[judge])
            found.append(Judgment(message, f"judge {judge}", SYSTEMS, answer, first))
    return found
