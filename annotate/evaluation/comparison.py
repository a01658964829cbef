"""Comparison of two predictors on the same posts: differences in accuracy, recall and precision, with intervals.

metrics.py estimates each predictor's shares as if it were evaluated alone, from strata, sampling probabilities and the
audit. A plain count over the posts that people read would be misleading: the detectors disagreed on most of these
posts, so a detector that voted looks worse there than on the whole stream.
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
    """Return the report's section that compares two predictors.

    The section contains the rows with the differences, and the labels that were merged into each class. Sets that were
    drawn from a predictor's triggers are left out, because they contain only posts that this predictor chose.

    first, second: the two predictors.
    left: each gold set with its rows, without the rows of vanished posts.
    rates: assumed error rates in unresolved audits, see `join`.
    """
    read = [(gold, rows) for gold, rows in left if gold.population != TRIGGERS]
    # Apply the coarse classes of both predictors to both, so that labels that either predictor merges count as one.
    sides = [join(subject, read, [first.mapping, second.mapping], rates) for subject in (first, second)]
    both, second_uniform = (side.uniform for side in sides)
    if both and second_uniform:  # add the second predictor's label to each post
        second_cells = {**second_uniform.posts, **second_uniform.missing}
        both = both.with_each(lambda key, cell: cell._replace(other=second_cells[key].said))
    rows_by_key = differences(both, (sides[0].recall, sides[1].recall))
    if both and not sides[0].recall and all(cell.read for cell in both.cells):
        # Plain counts are valid only if people read all drawn posts, so that every post has the same weight.
        only_right = [sum(n for cell, n in side.cells.items() if _alone(cell)) for side in (both, both.of_other)]
        p = mcnemar(*only_right)
        note = f"of {both.cells.total():,} posts, only A is right on {only_right[0]:,} and only B on {only_right[1]:,}"
        rows_by_key["accuracy", WITH_UND] |= {"p": p, "p_holm": p, "note": note}
    if sides[0].is_naive:
        for row in rows_by_key.values():
            row |= {"better": None, "note": "naive because people read too few posts, so neither is shown to be better"}
    fold = sides[0].fold
    merged = {coarse: sorted(fine for fine in fold if fold[fine] == coarse) for coarse in sorted({*fold.values()})}
    return {"rows": list(rows_by_key.values()), "together": merged}


# --- the differences


# A tuple of the difference (None if the share of one predictor is unknown), the number of posts that it is based on,
# and its extremes (see `metrics.Measured`).
Found = tuple[Difference | None, int, tuple[Difference, ...]]


def differences(
    both: Uniform | None, sets: tuple[metrics.RecallSets, metrics.RecallSets] = ({}, {})
) -> dict[tuple[str, str], Row]:
    """Return the row of each difference between the first and the second predictor, by measure and label.

    A key is a tuple such as ("recall", "de"). For accuracy, the key contains "with und" or "without und" instead of a
    label.

    both: the uniform set with the labels of both predictors, None if there is no uniform set.
    sets: the recall-oriented sets of each predictor. Each is a mapping from language to {post id: predicted label}.
    """
    cells = [cell for cell in both.cells if cell.read] if both else []
    labels = metrics.und_last({*sets[0], *(label for cell in cells for label in (cell.truth, cell.said, cell.other))})
    results = {("accuracy", posts): _accuracy(both, with_und=und) for posts, und in POSTS.items()} if both else {}
    results |= {("recall", label): _recall(label, both, sets) for label in labels}
    results |= {("precision", label): _precision(label, both) for label in labels} if both else {}
    return {
        (measure, value): _row(measure, {"posts" if measure == "accuracy" else "label": value}, *result)
        for (measure, value), result in results.items()
    }


def _row(
    measure: str,
    slice_keys: dict[str, str],
    difference: Difference | None,
    posts: int,
    extremes: tuple[Difference, ...],
) -> Row:
    """Return the row of one difference.

    The difference for a label has no interval if it is based on fewer than LEAST_COUNT posts. The same rule applies to
    the recall of a single predictor.
    """
    if difference is None:
        return difference_row(measure, slice_keys, None, 0, "unknown for one of the two predictors", None)
    if posts < LEAST_COUNT and "label" in slice_keys:
        return difference_row(
            measure, slice_keys, Difference(difference.value, -1.0, 1.0), posts, f"fewer than {LEAST_COUNT} posts", None
        )
    figure_row = difference_row(measure, slice_keys, difference, posts, "", None)
    if not extremes:
        return figure_row
    figure_row["extremes"] = [difference_row(measure, slice_keys, extreme, posts, "", None) for extreme in extremes]
    return figure_row | {"note": bounded(bounds_of(extremes), signed=True)}


def _alone(cell: Cell) -> bool:
    """Return whether the first predictor is right and the second is not."""
    return cell.said == cell.truth != cell.other


def _accuracy(both: Uniform, *, with_und: bool) -> Found:
    return _of_uniform(
        both, lambda cell: with_und or cell.truth != UND, _alone, lambda cell: cell.said != cell.other, (UND,)
    )


def _recall(label: str, both: Uniform | None, sets: tuple[metrics.RecallSets, metrics.RecallSets]) -> Found:
    """Return the difference in recall, from the language's recall-oriented set or otherwise from the uniform set."""
    first_predictions, second_predictions = (recall_sets.get(label, {}) for recall_sets in sets)
    if first_predictions:
        # The difference is the share of posts on which only the first predictor is right minus the share on which only
        # the second is. Both shares come from the same simple random sample, and no post counts in both.
        pairs = Counter(
            (prediction == label, second_predictions[key] == label) for key, prediction in first_predictions.items()
        )
        only_right = [counted(pairs[sides], pairs.total()).estimate for sides in ((True, False), (False, True))]
        share_a, share_b = (share.value or 0.0 for share in only_right)
        correlated = -sqrt(share_a * share_b / ((1 - share_a) * (1 - share_b))) if share_a < 1 and share_b < 1 else -1.0
        return paired(only_right[0], only_right[1], correlated), pairs.total(), ()
    if both is None:
        return None, 0, ()
    can_differ = lambda cell: (cell.said == label) != (cell.other == label)  # noqa: E731
    return _of_uniform(both, lambda cell: cell.truth == label, _alone, can_differ, (label,))


def _precision(label: str, both: Uniform) -> Found:
    is_right, can_differ = (lambda cell: cell.truth == label), (lambda cell: cell.other != label)
    return _of_uniform(both, lambda cell: cell.said == label, is_right, can_differ, (UND,))


def _of_uniform(both: Uniform, domain: Of, right: Of, can_differ: Of, truths: Collection[str]) -> Found:
    """Return the difference between the two predictors' shares, estimated from the uniform set.

    domain: returns whether a post counts.
    right: returns whether the predictor's label of a post in the domain is right.
    can_differ: returns whether the two shares can differ because of a post in the domain. The proportion of such posts
        is an upper bound on the difference.
    truths: possible true labels of missing posts, see `share`.
    """

    def difference_on(uniform: Uniform) -> Found:
        sides = uniform, uniform.of_other
        first_share, second_share = (share(side, domain, right, truths=truths) for side in sides)
        # If no post that was read counts differently for the two predictors, their estimates differ only because of
        # guesses about unread posts. Such guesses cannot show that one predictor is better.
        is_seen = any(
            domain(original) != domain(swapped) or (domain(original) and right(original) != right(swapped))
            for original, swapped in ((cell, cell.of_other) for cell in uniform.cells if cell.read)
        )
        difference = paired(
            first_share.estimate, second_share.estimate, correlation(uniform, domain, right) if is_seen else 0.0
        )
        bound = max(share(side, domain, can_differ, truths=truths).estimate.high for side in sides)
        difference = difference and difference.within(bound)
        return (
            difference if is_seen else difference and difference.undecided(),
            min(first_share.posts, second_share.posts),
            (),
        )

    difference, *at_limits = (difference_on(uniform.known)[0] for uniform in both.by_rate)
    at_random, posts, _ = difference_on(both.known)
    if not difference or not both.missing:
        return difference, posts, ()
    of_share = worth(domain, right)
    ends = both.extremes(lambda cell: of_share(cell) - of_share(cell.of_other), truths)
    extremes = tuple(extreme for extreme in (at_random, *(difference_on(end)[0] for end in ends)) if extreme)
    low, high = bounds_of([within(bounds_of(extremes), interval) for interval in (difference, *at_limits) if interval])
    return replace(difference, low=low, high=high), posts, extremes


def correlation(both: Uniform, domain: Of, right: Of) -> float:
    """Estimate the correlation between two predictors' shares of right labels in a domain, from -1 to 1.

    Both shares are estimated from the same uniform set. Their covariance is the covariance of the residuals
    hit - R * domain, where hit and domain are 1 or 0 for each post. It has two components, as in
    `proportions.stratified`: one from drawing posts from the stream, and one from reading only some of the drawn posts
    (Cochran 1977, Sampling Techniques, 3rd edition, section 12.2).

    R is the weighted share among the posts that were read, so the residuals have mean zero. The estimated share cannot
    serve as R: it includes guesses about unread posts, which would make two constants appear correlated.

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

    of_draw: list[tuple[float, ...]] = []  # (number of posts, first residual, second residual)
    of_reading: dict[str, list[tuple[float, ...]]] = {}
    for cell, posts in both.cells.items():
        if not (weight := both.weights[cell]):
            continue
        true = residuals(cell)
        of_draw.append((posts * weight, *true))
        if weight > 1:
            guessed = residuals(cell._replace(truth=cell.agreed)) if cell.stratum else [0.0, 0.0]
            residual_changes = (is_so - guess for is_so, guess in zip(true, guessed, strict=True))
            of_reading.setdefault(cell.stratum, []).append((posts, *residual_changes))
    sums = [_moments(of_draw)]
    for stratum, rows in of_reading.items():
        weight = both.drawn[stratum] / both.read[stratum]
        sums.append(weight * (weight - 1) * _moments(rows))
    variance_a, variance_b, product = map(float, sum(sums, np.zeros(3)))
    return max(-1.0, min(1.0, product / sqrt(variance_a * variance_b))) if variance_a > 0 and variance_b > 0 else 0.0


def _moments(rows: Sequence[tuple[float, ...]]) -> Floats:
    """Centre two values, and return the sum of squares of each and the sum of their products, (3,).

    If a value is constant up to rounding, its sum of squares and the sum of products are set to 0.

    rows: tuples of the number of posts, the first value and the second value.
    """
    if not rows:
        return np.zeros(3)
    number, first_values, second_values = np.array(rows, float).T
    squares = first_values * first_values, second_values * second_values, first_values * second_values
    added = (number, number * first_values, number * second_values, *(number * square for square in squares))
    total, first_sum, second_sum, *raw = (np.cumsum(column)[-1] for column in added)
    moments = np.array(raw) - np.array([first_sum * first_sum, second_sum * second_sum, first_sum * second_sum]) / total
    constant = moments[:2] <= SLACK * np.array(raw[:2])
    return np.where([*~constant, not constant.any()], moments, 0.0)
