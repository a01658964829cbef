"""Two predictors on the same posts: how far their accuracy, recall and precision are apart, each with its interval.

Each of them is estimated as it is for one predictor, by stratum, chance and audit (metrics.py). A plain count of the
posts that were read would be mostly of disputed ones, and there a detector that voted does worst by selection.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, replace
from math import sqrt
from typing import Any, NamedTuple

from annotate.core.comparing import Difference, mcnemar, paired
from annotate.core.estimation import Estimate
from annotate.evaluation import metrics
from annotate.evaluation.cells import Cell
from annotate.evaluation.given import Subject
from annotate.evaluation.matching import Joined, join
from annotate.evaluation.measures import described
from annotate.evaluation.uniform import Measured, Uniform, counted, share
from annotate.goldsets.reading import GoldRow, GoldSet
from annotate.kinds.designs import DESIGNS
from annotate.kinds.labels import label_name
from corpora.core.languages import UND

Of = Callable[[Cell], bool]


class Ratio(NamedTuple):
    """The share of right posts in a domain, and what is estimated of it."""

    domain: Of
    right: Of
    measured: Measured


def comparison(first: Subject, second: Subject, left: list[tuple[GoldSet, list[GoldRow]]]) -> dict[str, Any]:
    """The part of a report about two predictors. Sets that one of the two drew say nothing here and are left out."""
    read = [(gold, rows) for gold, rows in left if not DESIGNS[gold.design].by_trigger]
    # The classes of both predictors, so that neither is blamed for what the other does not tell apart.
    sides = [join(subject, read, [first.mapping, second.mapping]) for subject in (first, second)]
    both = _both(*sides)
    sets = (sides[0].recall, sides[1].recall)
    found = differences(both, sets)
    return {
        "other": described(second, any(second.voted_in(gold) for gold, _ in read)),
        "accuracy": {"with_und": found["accuracy", ""], "without_und": _accuracy(both, with_und=False)}
        if both
        else None,
        "languages": [
            {"language": label, "name": label_name(label)}
            | {measure: found.get((measure, label)) for measure in ("recall", "precision")}
            for label in _labels(both, sets[0])
        ],
        "mcnemar": _mcnemar(both) if both and not sides[0].recall else None,
        "together": _together(sides[0].fold),
    }


def _both(first: Joined, second: Joined) -> Uniform | None:
    """The uniform set with what each of the two says."""
    if not (first.uniform and second.uniform):
        return None
    others = second.uniform.posts
    return replace(
        first.uniform,
        posts={key: cell._replace(other=others[key].said) for key, cell in first.uniform.posts.items()},
    )


def _labels(both: Uniform | None, sets: metrics.RecallSets) -> list[str]:
    said = {label for cell in both.cells if cell.read for label in (cell.said, cell.other)} if both else set()
    return sorted({*metrics.recall_labels(both, sets), *said}, key=lambda label: (label == UND, label))


def _together(fold: Mapping[str, str]) -> dict[str, list[str]]:
    """Class -> the labels that are taken together in it."""
    return {coarse: sorted(fine for fine in fold if fold[fine] == coarse) for coarse in sorted(set(fold.values()))}


# --- the differences


Told = dict[str, Any]


def differences(
    both: Uniform | None, sets: tuple[metrics.RecallSets, metrics.RecallSets] = ({}, {})
) -> dict[tuple[str, str], Told | None]:
    """(accuracy, recall or precision; label, "" for accuracy) -> what the first reaches less what the second does:
    {"value", "low", "high", "posts", "better": "first", "second" or None}; None where one of them is not known.

    sets: for each of the two, language -> id -> what it says of a post of a recall set.
    """
    found: dict[tuple[str, str], Told | None] = {("accuracy", ""): _accuracy(both, with_und=True)} if both else {}
    for label in _labels(both, sets[0]):
        found["recall", label] = _recall(label, both, sets)
        if both:
            found["precision", label] = _precision(label, both)
    return found


def _first_alone(cell: Cell) -> bool:
    return cell.said == cell.truth != cell.other


def _second_alone(cell: Cell) -> bool:
    return cell.other == cell.truth != cell.said


def _accuracy(both: Uniform, *, with_und: bool) -> Told | None:
    return _of_uniform(both, lambda cell: with_und or cell.truth != UND, (UND,))


def _recall(label: str, both: Uniform | None, sets: tuple[metrics.RecallSets, metrics.RecallSets]) -> Told | None:
    """On the recall-oriented set, where the language has one: the two sets stand for other posts."""
    first, second = (own.get(label, {}) for own in sets)
    if first:
        return _of_pairs(Counter((said == label, second[key] == label) for key, said in first.items()))
    return _of_uniform(both, lambda cell: cell.truth == label, (label,)) if both else None


# The difference of two shares of the same posts: what the first alone has right, less what the second alone has.


def _of_pairs(pairs: Counter[tuple[bool, bool]]) -> Told | None:
    """pairs: which of the two are right -> posts of a recall set."""
    first, second = (counted(pairs[alone], pairs.total()) for alone in ((True, False), (False, True)))
    found = paired(first.estimate, second.estimate, _of_counts(first.estimate, second.estimate))
    return _told(found, pairs.total())


def _of_uniform(both: Uniform, domain: Of, truths: Collection[str]) -> Told | None:
    """truths: as in share."""
    rights = (_first_alone, _second_alone)
    first, second = (Ratio(domain, right, share(both, domain, right, truths=truths)) for right in rights)
    found = paired(first.measured.estimate, second.measured.estimate, correlation(both, first, second))
    return _told(found, first.measured.posts)


def _of_counts(first: Estimate, second: Estimate) -> float:
    """The correlation of two shares of one plain sample that exclude each other."""
    one, other = first.value or 0.0, second.value or 0.0
    return -sqrt(one * other / ((1 - one) * (1 - other))) if one < 1 and other < 1 else -1.0


def _precision(label: str, both: Uniform) -> Told | None:
    ratios = [
        Ratio(domain, right, share(both, domain, right, truths=(UND,)))
        for domain, right in (
            (lambda cell: cell.said == label, lambda cell: cell.truth == label),
            (lambda cell: cell.other == label, lambda cell: cell.truth == label),
        )
    ]
    first, second = (ratio.measured for ratio in ratios)
    if first.value is None or second.value is None:
        return None
    found = paired(first.estimate, second.estimate, correlation(both, *ratios))
    return _told(found, min(first.posts, second.posts))


def correlation(uniform: Uniform, first: Ratio, second: Ratio) -> float:
    """Of two ratios that are estimated from one uniform set, from -1 to 1; 0 where one of them does not vary.

    The covariance is that of their residuals, hit - R domain, by drawing posts from the frame and by reading some of
    them (Cochran 1977, Sampling Techniques, 3rd edition, section 12.2), as in estimation.stratified.
    """
    left = 1 - sum(uniform.drawn.values()) / uniform.frame if uniform.frame else 1.0
    of_draw = _Moments()
    of_reading: dict[str, _Moments] = {}
    for cell, posts in uniform.cells.items():
        if not (weight := uniform.weight(cell)):
            continue
        residuals = [_residual(cell, ratio) for ratio in (first, second)]
        of_draw.add(posts * weight * left, *residuals)
        if weight > 1:
            as_agreed = cell._replace(truth=cell.agreed)
            guessed = [_residual(as_agreed, ratio) if cell.stratum else 0.0 for ratio in (first, second)]
            of_reading.setdefault(cell.stratum, _Moments()).add(
                posts, *(true - guess for true, guess in zip(residuals, guessed, strict=True))
            )
    sums = [of_draw.products]
    for stratum, moments in of_reading.items():
        weight = uniform.drawn[stratum] / uniform.read[stratum]
        sums.append([weight * (weight - 1) * product for product in moments.central()])
    one, other, both = (sum(part) for part in zip(*sums, strict=True))
    return max(-1.0, min(1.0, both / sqrt(one * other))) if one > 0 and other > 0 else 0.0


def _residual(cell: Cell, ratio: Ratio) -> float:
    return int(ratio.right(cell)) - (ratio.measured.value or 0.0) if ratio.domain(cell) else 0.0


class _Moments:
    """Sums of squares and of products of two values that come with their number."""

    def __init__(self) -> None:
        self.number, self.sums, self.products = 0.0, [0.0, 0.0], [0.0, 0.0, 0.0]

    def add(self, number: float, one: float, other: float) -> None:
        self.number += number
        self.sums = [self.sums[0] + number * one, self.sums[1] + number * other]
        squares = (one * one, other * other, one * other)
        self.products = [known + number * square for known, square in zip(self.products, squares, strict=True)]

    def central(self) -> list[float]:
        one, other = self.sums
        means = (one * one, other * other, one * other)
        return [product - mean / self.number for product, mean in zip(self.products, means, strict=True)]


def _told(found: Difference | None, posts: int) -> Told | None:
    return None if found is None else {**asdict(found), "posts": posts, "better": found.better}


# --- the plain test


def _mcnemar(both: Uniform) -> dict[str, Any] | None:
    """McNemar's exact test, unweighted: only where people have read all that was drawn, so that every post had the same
    chance.
    """
    if not all(cell.read for cell in both.cells):
        return None
    alone = [sum(n for cell, n in both.cells.items() if right(cell)) for right in (_first_alone, _second_alone)]
    return {
        "items": both.cells.total(),
        "only_first": alone[0],
        "only_second": alone[1],
        "p": mcnemar(*alone),
    }
