"""Comparison of two predictors on the same posts: differences in accuracy, recall and precision, with intervals.

Each predictor's share is estimated as for a single predictor, with strata, chances and the audit (metrics.py). A plain
count over the posts that were read would consist mostly of disputed ones, on which a detector that voted does worst by
selection.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from math import fsum, sqrt
from typing import Any

import numpy as np

from annotate.core.aggregation.answer_table import Floats
from annotate.core.estimation.differences import Difference, mcnemar, paired
from annotate.core.estimation.proportions import LEAST_COUNT, SLACK
from annotate.core.measures.figure_rows import Row, difference_row
from annotate.evaluation import metrics
from annotate.evaluation.joined_sets import join
from annotate.evaluation.measures import POSTS, WITH_UND, bounded
from annotate.evaluation.metrics import bounds_of, counted, share, within, worth
from annotate.evaluation.subjects import Subject
from annotate.evaluation.uniform import Cell, Of, Uniform
from annotate.goldsets.gold_set import GoldRow, GoldSet
from annotate.kinds.designs import TRIGGERS
from corpora.core.languages import UND


def comparison(
    first: Subject, second: Subject, left: list[tuple[GoldSet, list[GoldRow]]], rates: tuple[float, float]
) -> dict[str, Any]:
    """Return the report's section on two predictors: the rows, and the labels that each shared class comprises.

    Sets drawn by one of the two predictors from its own triggers are left out.

    first, second: the two predictors.
    left: gold sets with the rows that remain after filtering.
    rates: error rates of unresolved audits, see `join`.
    """
    read = [(gold, rows) for gold, rows in left if gold.population != TRIGGERS]
    # Merge the classes of both predictors, so that neither is blamed for distinctions that the other does not make.
    sides = [join(subject, read, [first.mapping, second.mapping], rates) for subject in (first, second)]
    both, other = (side.uniform for side in sides)
    if both and other:  # add the second predictor's label to each post
        others = {**other.posts, **other.missing}
        both = both.with_each(lambda key, cell: cell._replace(other=others[key].said))
    found = differences(both, (sides[0].recall, sides[1].recall))
    if both and not sides[0].recall and all(cell.read for cell in both.cells):
        # Plain counts are valid only if people read all drawn posts, so that every post has the same weight.
        alone = [sum(n for cell, n in side.cells.items() if _alone(cell)) for side in (both, both.of_other)]
        p = mcnemar(*alone)
        note = f"of {both.cells.total():,} posts, A alone is right on {alone[0]:,} and B alone on {alone[1]:,}"
        found["accuracy", WITH_UND] |= {"p": p, "p_holm": p, "note": note}
    if sides[0].is_naive:
        for row in found.values():
            row |= {"better": None, "note": "naive, since too little was read; nothing shows which is better"}
    fold = sides[0].fold
    together = {coarse: sorted(fine for fine in fold if fold[fine] == coarse) for coarse in sorted({*fold.values()})}
    return {"rows": list(found.values()), "together": together}


# --- the differences


# (difference, None if unknown for one predictor; number of posts it rests on; its extremes, see `metrics.Measured`)
Found = tuple[Difference | None, int, tuple[Difference, ...]]


def differences(
    both: Uniform | None, sets: tuple[metrics.RecallSets, metrics.RecallSets] = ({}, {})
) -> dict[tuple[str, str], Row]:
    """Return the differences between first and second predictor as (measure, posts or label) -> row.

    both: the uniform set with the labels of both predictors, None if there is none.
    sets: for each predictor, language -> post id -> label on the recall-oriented set.
    """
    cells = [cell for cell in both.cells if cell.read] if both else []
    labels = metrics.und_last({*sets[0], *(label for cell in cells for label in (cell.truth, cell.said, cell.other))})
    found = {("recall", label): _recall(label, both, sets) for label in labels}
    if both:
        accuracies = {("accuracy", posts): _accuracy(both, with_und=with_und) for posts, with_und in POSTS.items()}
        found = accuracies | found | {("precision", label): _precision(label, both) for label in labels}
    return {
        (measure, value): _row(measure, {"posts" if measure == "accuracy" else "label": value}, *each)
        for (measure, value), each in found.items()
    }


def _row(
    measure: str, of: dict[str, str], apart: Difference | None, posts: int, extremes: tuple[Difference, ...]
) -> Row:
    """Return the row of one difference. By label, fewer than LEAST_COUNT posts give no interval, as for a recall."""
    if apart is None:
        return difference_row(measure, of, None, 0, "one of the two is not known", None)
    if posts < LEAST_COUNT and "label" in of:
        return difference_row(
            measure, of, Difference(apart.value, -1.0, 1.0), posts, f"fewer than {LEAST_COUNT} posts", None
        )
    made = difference_row(measure, of, apart, posts, "", None)
    if not extremes:
        return made
    made["extremes"] = [difference_row(measure, of, each, posts, "", None) for each in extremes]
    return made | {"note": bounded(bounds_of(extremes), signed=True)}


def _alone(cell: Cell) -> bool:
    """Return whether the first predictor is right and the second is not."""
    return cell.said == cell.truth != cell.other


def _accuracy(both: Uniform, *, with_und: bool) -> Found:
    return _of_uniform(
        both, lambda cell: with_und or cell.truth != UND, _alone, lambda cell: cell.said != cell.other, (UND,)
    )


def _recall(label: str, both: Uniform | None, sets: tuple[metrics.RecallSets, metrics.RecallSets]) -> Found:
    """Measure recall on the language's recall-oriented set if it has one, otherwise on the uniform set."""
    first, second = (own.get(label, {}) for own in sets)
    if first:
        # The difference is the share that only the first predictor has right minus the share that only the second has
        # right. The two shares come from one simple sample and exclude each other.
        pairs = Counter((said == label, second[key] == label) for key, said in first.items())
        shares = [counted(pairs[alone], pairs.total()).estimate for alone in ((True, False), (False, True))]
        one, other = (each.value or 0.0 for each in shares)
        correlated = -sqrt(one * other / ((1 - one) * (1 - other))) if one < 1 and other < 1 else -1.0
        return paired(*shares, correlated), pairs.total(), ()
    if both is None:
        return None, 0, ()
    return _of_uniform(
        both,
        lambda cell: cell.truth == label,
        _alone,
        lambda cell: (cell.said == label) != (cell.other == label),
        (label,),
    )


def _precision(label: str, both: Uniform) -> Found:
    return _of_uniform(
        both,
        lambda cell: cell.said == label,
        lambda cell: cell.truth == label,
        lambda cell: cell.other != label,
        (UND,),
    )


def _of_uniform(both: Uniform, domain: Of, right: Of, apart: Of, truths: Collection[str]) -> Found:
    """Return the difference of two shares, estimated from the uniform set.

    domain: whether a post counts.
    right: whether a post of the domain is right.
    apart: selects the posts of the domain on which the shares can differ. The difference is at most the greater share
        of such posts.
    truths: possible true labels of missing posts, see `share`.
    """

    def of(uniform: Uniform) -> Found:
        sides = uniform, uniform.of_other
        first, second = (share(side, domain, right, truths=truths) for side in sides)
        # If no post that was read counts differently for the two predictors, the estimates differ only by guesses at
        # unread posts, which cannot show that one predictor is better.
        is_seen = any(
            domain(one) != domain(other) or (domain(one) and right(one) != right(other))
            for one, other in ((cell, cell.of_other) for cell in uniform.cells if cell.read)
        )
        found = paired(first.estimate, second.estimate, correlation(uniform, domain, right) if is_seen else 0.0)
        most = max(share(side, domain, apart, truths=truths).estimate.high for side in sides)
        found = found and found.within(most)
        return found if is_seen else found and found.undecided(), min(first.posts, second.posts), ()

    found, *others = (of(each.known)[0] for each in both.by_rate)
    at_random, posts, _ = of(both.known)
    if not found or not both.missing:
        return found, posts, ()
    of_share = worth(domain, right)
    ends = both.extremes(lambda cell: of_share(cell) - of_share(cell.of_other), truths)
    extremes = tuple(each for each in (at_random, *(of(end)[0] for end in ends)) if each)
    low, high = bounds_of([within(bounds_of(extremes), each) for each in (found, *others) if each])
    return replace(found, low=low, high=high), posts, extremes


def correlation(both: Uniform, domain: Of, right: Of) -> float:
    """Estimate the correlation, from -1 to 1, of two predictors' shares of right posts in a domain.

    Both shares come from the same uniform set. The covariance is that of the residuals, hit - R domain, over drawing
    posts from the stream and over reading some of them (Cochran 1977, Sampling Techniques, 3rd edition, section 12.2),
    as in estimation.stratified. R is the weighted share among the posts that were read, so that the residuals have mean
    zero. With the estimated share, which includes guesses at unread posts, two constants would appear correlated.

    Returns 0 if either predictor's residuals do not vary among the posts that were read.
    """
    observed = []
    for side in (both, both.of_other):
        weights = {cell: posts * side.weights[cell] for cell, posts in side.cells.items() if domain(cell)}
        total = fsum(weights.values())
        observed.append(fsum(weight for cell, weight in weights.items() if right(cell)) / total if total else 0.0)

    def residuals(cell: Cell) -> list[float]:
        sides = cell, cell.of_other
        return [domain(side) * (right(side) - value) for side, value in zip(sides, observed, strict=True)]

    of_draw: list[tuple[float, ...]] = []  # (posts, residual of the first predictor, of the second)
    of_reading: dict[str, list[tuple[float, ...]]] = {}
    for cell, posts in both.cells.items():
        if not (weight := both.weights[cell]):
            continue
        true = residuals(cell)
        of_draw.append((posts * weight, *true))
        if weight > 1:
            guessed = residuals(cell._replace(truth=cell.agreed)) if cell.stratum else [0.0, 0.0]
            apart = (is_so - guess for is_so, guess in zip(true, guessed, strict=True))
            of_reading.setdefault(cell.stratum, []).append((posts, *apart))
    sums = [_moments(of_draw)]
    for stratum, rows in of_reading.items():
        weight = both.drawn[stratum] / both.read[stratum]
        sums.append(weight * (weight - 1) * _moments(rows))
    one, other, product = map(float, sum(sums))
    return max(-1.0, min(1.0, product / sqrt(one * other))) if one > 0 and other > 0 else 0.0


def _moments(rows: Sequence[tuple[float, ...]]) -> Floats:
    """Return the sums of squares and of products of two centred values, (3,).

    All sums with a value that is constant up to rounding are 0.

    rows: (number of posts, first value, second value).
    """
    if not rows:
        return np.zeros(3)
    number, one, other = np.array(rows, float).T
    squares = one * one, other * other, one * other
    added = (number, number * one, number * other, *(number * square for square in squares))
    total, first, second, *raw = (np.cumsum(each)[-1] for each in added)
    found = np.array(raw) - np.array([first * first, second * second, first * second]) / total
    constant = found[:2] <= SLACK * np.array(raw[:2])
    return np.where([*~constant, not constant.any()], found, 0.0)
