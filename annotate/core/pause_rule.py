"""When gold answers say that an annotator works too badly to go on, and what that rule does to whom. No database.

After each gold answer an annotator has `right` of `asked`. They are paused where `asked` is at least `rule.least` and
the probability that their accuracy is below `rule.below` is at least `rule.confidence`, under the posterior
Beta(right + 1/2, asked - right + 1/2) of Jeffreys' prior (Brown, Cai and DasGupta 2001, Interval Estimation for a
Binomial Proportion, Statistical Science 16(2)).

The rule is looked at after every gold answer, so it errs more often than one look at 1 - confidence would (Armitage,
McPherson and Rowe 1969, Repeated Significance Tests on Accumulating Data, JRSS A 132(2)). How often is computed here
exactly, for gold answers that are independent of each other and of one accuracy. Somebody who gives one label to
everything has the accuracy of that label's share of the gold answers: where there are as many of each label, they are
found like somebody who answers at random.

The default asks for 70%, with 95% confidence, from the eighth gold answer on. Somebody who answers at random to two
labels is paused by the 20th gold answer with 72% and by the 40th with 92%, after 18 on average; to five labels by the
10th with 97%. Somebody who is right in 80% is paused by the 40th with 2.3%, in 90% with 0.1%. With one gold answer in
ten units, the 20th is an annotator's 200th unit; where annotators do fewer, the share of gold answers must be larger.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import scipy

# Accuracies that a manager knows: answers at random to five labels and to two, then people from poor to very good.
ACCURACIES = (0.2, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
ASKED = (10, 20, 40)
# A mean is not given where more than this share would go on after so many gold answers.
HORIZON = 1_000
LEFT = 1e-4
# How certain a pause must be, and after how many gold answers it may come first: with these, few good annotators are
# paused, and somebody who guesses is paused soon (docs/explanation/pausing.md).
CONFIDENCE = 0.95
LEAST = 8


@dataclass(frozen=True)
class Rule:
    """below: the accuracy that is asked for, 0 for no pauses; confidence: of being below it; least: gold answers."""

    below: float = 0.7
    confidence: float = CONFIDENCE
    least: int = LEAST

    def __post_init__(self) -> None:
        if not 0 <= self.below <= 1:
            raise ValueError(f"The accuracy below which people are paused is between 0 and 1, not {self.below}.")
        if not 0 <= self.confidence <= 1:
            raise ValueError(f"The confidence of a pause is between 0 and 1, not {self.confidence}.")
        if self.least < 1:
            raise ValueError(f"Nobody can be paused before one gold answer, but the least number is {self.least}.")


DEFAULT = Rule()
# The rules from which a manager may choose: milder, the default, stricter; then the default's bar with more and with
# less doubt.
CHOICES = (
    Rule(below=0.6),
    DEFAULT,
    Rule(below=0.75),
    Rule(confidence=0.9),
    Rule(confidence=0.98),
)


def probability_below(right: int, asked: int, below: float) -> float:
    """The posterior probability that somebody with `right` of `asked` has an accuracy below `below`."""
    if not 0 <= right <= asked:
        raise ValueError(f"{right} right of {asked} gold answers cannot be; give right between 0 and the count.")
    return float(scipy.special.betainc(right + 0.5, asked - right + 0.5, below))


@lru_cache(maxsize=100_000)
def limit(asked: int, rule: Rule) -> int:
    """The most right answers of `asked` at which the rule pauses; -1 where it does at none.

    One right answer more makes the accuracy likelier to be high, so below this number it pauses always.
    """
    if asked < rule.least:
        return -1

    def stays(right: int) -> bool:
        return probability_below(right, asked, rule.below) < rule.confidence

    return bisect_left(range(asked + 1), True, key=stays) - 1


def pauses(right: int, asked: int, rule: Rule) -> bool:
    """Whether somebody with `right` of `asked` gold answers is paused."""
    if not 0 <= right <= asked:
        raise ValueError(f"{right} right of {asked} gold answers cannot be; give right between 0 and the count.")
    return right <= limit(asked, rule)


def chance_of_pause(accuracy: float, asked: int, rule: Rule) -> list[float]:
    """The chance to have been paused by the 1st, 2nd, ... and `asked`-th gold answer, exactly.

    It goes over the number of right answers of people who are not yet paused; a paused person is asked no more.
    """
    if not 0 <= accuracy <= 1:
        raise ValueError(f"An accuracy is between 0 and 1, not {accuracy}.")
    going_on = [1.0]  # at [k], the chance to have k right and not to be paused
    paused, found = 0.0, []
    for number in range(1, asked + 1):
        missed = [chance * (1 - accuracy) for chance in going_on]
        hit = [chance * accuracy for chance in going_on]
        going_on = [a + b for a, b in zip([*missed, 0.0], [0.0, *hit], strict=True)]
        bound = limit(number, rule) + 1
        paused += math.fsum(going_on[:bound])
        going_on[:bound] = [0.0] * bound
        found.append(min(1.0, paused))
    return found


@lru_cache(maxsize=1_000)
def mean_until_pause(accuracy: float, rule: Rule) -> float | None:
    """How many gold answers a pause takes on average; None if it is not certain, or takes longer than is counted."""
    if accuracy >= rule.below:
        return None
    by = chance_of_pause(accuracy, HORIZON, rule)
    return None if 1 - by[-1] > LEFT else 1 + math.fsum(1 - chance for chance in by)


@dataclass(frozen=True)
class Row:
    """What a rule does to people of one accuracy: `by` holds the chance to have been paused after so many answers."""

    rule: Rule
    accuracy: float
    by: tuple[tuple[int, float], ...]
    mean: float | None

    @property
    def falsely(self) -> bool:
        """Whether a pause is an error of the rule: these people are as good as is asked."""
        return self.accuracy >= self.rule.below


def table(
    rules: Iterable[Rule] = CHOICES, accuracies: Sequence[float] = ACCURACIES, asked: Sequence[int] = ASKED
) -> list[Row]:
    """What a manager chooses by: a row a rule and accuracy, with power where it is too low, false pauses where not."""
    rows = []
    for rule in rules:
        for accuracy in accuracies:
            chances = chance_of_pause(accuracy, max(asked), rule)
            by = tuple((number, chances[number - 1]) for number in asked)
            rows.append(Row(rule, accuracy, by, mean_until_pause(accuracy, rule)))
    return rows
