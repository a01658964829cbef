"""The rule that pauses annotators with too many wrong gold answers, and its error rates.

After each gold answer, an annotator has `right` of `answers` correct. They are paused if `answers` is at least
`rule.least` and the posterior probability that their accuracy is below `rule.below` is at least `rule.confidence`. The
posterior is Beta(right + 1/2, answers - right + 1/2), from the Jeffreys prior (Brown, Cai and DasGupta 2001, Interval
Estimation for a Binomial Proportion, Statistical Science 16(2)).

The rule is applied after every gold answer, so its error rate is higher than 1 - confidence (Armitage, McPherson and
Rowe 1969, Repeated Significance Tests on Accumulating Data, JRSS A 132(2)). This module computes the error rate
exactly, assuming that gold answers are independent and that an annotator's accuracy is constant. The accuracy of
annotators who always give the same label is that label's share of the gold answers. If all labels are equally frequent,
they are therefore detected as fast as annotators who guess at random.

The default rule requires 70% accuracy with 95% confidence, from the eighth gold answer on. Annotators who guess between
two labels are paused by the 20th gold answer with probability 72% and by the 40th with 92%, on average after 18. Those
who guess among five labels are paused by the 10th with probability 97%. Annotators with 80% accuracy are paused by the
40th gold answer with probability 2.3%, and those with 90% accuracy with probability 0.1%. If one unit in ten is a gold
answer, an annotator reaches the 20th gold answer after 200 units. If your annotators label fewer units, increase the
share of gold answers.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import scipy

# Typical accuracies: guesses among five labels, guesses between two labels, and poor to very good annotators.
ACCURACIES = (0.2, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
ANSWERS = (10, 20, 40)
# The mean number of gold answers until a pause isn't reported if a share of annotators above MAX_ACTIVE is still active
# after HORIZON gold answers.
HORIZON = 1_000
MAX_ACTIVE = 1e-4
# With this confidence and this minimum number of gold answers, few good annotators are paused, and annotators who guess
# are paused soon (docs/explanation/pausing.md).
CONFIDENCE = 0.95
LEAST = 8


@dataclass(frozen=True)
class Rule:
    """A pause rule.

    below: accuracy that annotators must reach; with 0, nobody is paused.
    confidence: an annotator is paused if the posterior probability of an accuracy below `below` is at least this high.
    least: minimum number of gold answers before a pause.

    Raise ValueError if a value is out of range.
    """

    below: float = 0.7
    confidence: float = CONFIDENCE
    least: int = LEAST

    def __post_init__(self) -> None:
        if not 0 <= self.below <= 1:
            raise ValueError(f"The accuracy that annotators must reach must be between 0 and 1, not {self.below}.")
        if not 0 <= self.confidence <= 1:
            raise ValueError(f"The confidence of a pause must be between 0 and 1, not {self.confidence}.")
        if self.least < 1:
            raise ValueError(f"The number of gold answers before a pause must be at least 1, not {self.least}.")


DEFAULT = Rule()
# Rules that a manager can choose from: a milder rule, the default and a stricter rule, followed by two rules that
# require the default accuracy with less and with more confidence.
CHOICES = (Rule(below=0.6), DEFAULT, Rule(below=0.75), Rule(confidence=0.9), Rule(confidence=0.98))


def probability_below(right: int, answers: int, below: float) -> float:
    """Return the posterior probability that the accuracy is less than `below`.

    Raise ValueError if `right` is not between 0 and `answers`.
    """
    if not 0 <= right <= answers:
        raise ValueError(f"{right} right answers out of {answers} gold answers are impossible.")
    return float(scipy.special.betainc(right + 0.5, answers - right + 0.5, below))


@lru_cache(maxsize=100_000)
def limit(answers: int, rule: Rule) -> int:
    """Return the largest number of right answers out of `answers` that leads to a pause, or -1 if none does.

    Fewer right answers always lead to a pause too, because the posterior probability decreases in `right`.
    """
    if answers < rule.least:
        return -1

    def stays_active(right: int) -> bool:
        return probability_below(right, answers, rule.below) < rule.confidence

    return bisect_left(range(answers + 1), True, key=stays_active) - 1


def pauses(right: int, answers: int, rule: Rule) -> bool:
    """Return whether the rule pauses an annotator with `right` of `answers` gold answers correct.

    Raise ValueError if `right` is not between 0 and `answers`.
    """
    if not 0 <= right <= answers:
        raise ValueError(f"{right} right answers out of {answers} gold answers are impossible.")
    return right <= limit(answers, rule)


def chance_of_pause(accuracy: float, answers: int, rule: Rule) -> list[float]:
    """Return the exact probability of a pause by each gold answer, from the first to number `answers`.

    The recursion tracks, for annotators who are still active, the probability of each number of right answers.
    """
    if not 0 <= accuracy <= 1:
        raise ValueError(f"An accuracy must be between 0 and 1, not {accuracy}.")
    still_active = [1.0]  # still_active[k] is the probability of k right answers without a pause
    paused, chances = 0.0, []
    for number in range(1, answers + 1):
        missed = [chance * (1 - accuracy) for chance in still_active]
        hit = [chance * accuracy for chance in still_active]
        still_active = [a + b for a, b in zip([*missed, 0.0], [0.0, *hit], strict=True)]
        bound = limit(number, rule) + 1
        paused += math.fsum(still_active[:bound])
        still_active[:bound] = [0.0] * bound
        chances.append(min(1.0, paused))
    return chances


@lru_cache(maxsize=1_000)
def mean_until_pause(accuracy: float, rule: Rule) -> float | None:
    """Return the mean number of gold answers until a pause.

    Return None if the accuracy meets the requirement, or if a pause within HORIZON gold answers is not nearly certain.
    """
    if accuracy >= rule.below:
        return None
    by = chance_of_pause(accuracy, HORIZON, rule)
    return None if 1 - by[-1] > MAX_ACTIVE else 1 + math.fsum(1 - chance for chance in by)


@dataclass(frozen=True)
class Row:
    """The effect of a rule on annotators with a given accuracy.

    by: (number of gold answers, probability of a pause by then) pairs.
    mean: mean number of gold answers until a pause; None if not reported.
    """

    rule: Rule
    accuracy: float
    by: tuple[tuple[int, float], ...]
    mean: float | None

    @property
    def is_false_pause(self) -> bool:
        """Whether a pause would be an error, because the accuracy meets the requirement."""
        return self.accuracy >= self.rule.below


def table(
    rules: Iterable[Rule] = CHOICES, accuracies: Sequence[float] = ACCURACIES, answers: Sequence[int] = ANSWERS
) -> list[Row]:
    """Tabulate the effect of each rule at each accuracy.

    The probability of a pause is the rule's power if the accuracy is too low, and its false-pause rate otherwise.
    """
    rows = []
    for rule in rules:
        for accuracy in accuracies:
            chances = chance_of_pause(accuracy, max(answers), rule)
            by = tuple((number, chances[number - 1]) for number in answers)
            rows.append(Row(rule, accuracy, by, mean_until_pause(accuracy, rule)))
    return rows
