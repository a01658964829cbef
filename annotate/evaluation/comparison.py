"""Comparison of two predictors on the same posts: differences in accuracy, recall and precision, with intervals.

metrics.py estimates each predictor's shares separately, from strata, sampling probabilities and the audit. A plain
count over the annotated posts would be misleading: the detectors disagreed on most of these posts, so a detector that
voted looks worse there than on the whole stream.
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
from annotate.evaluation.joined_sets import KeptRows, join
from annotate.evaluation.measures import POSTS, WITH_UND, bounds_note
from annotate.evaluation.metrics import bounds_of, clip, effect_sign, share, share_from_counts
from annotate.evaluation.subjects import Subject
from annotate.evaluation.uniform import Cell, CellTest, Uniform
from annotate.kinds.designs import TRIGGERS
from corpora.core.languages import UND


def comparison(first: Subject, second: Subject, kept: KeptRows, rates: tuple[float, float]) -> dict[str, Any]:
    """Return the report's section that compares two predictors.

    It contains the rows with the differences, and the labels merged into each class. Sets drawn from a predictor's
    triggers are left out, because they contain only posts selected by that predictor.

    first, second: the two predictors.
    kept: each gold set with its rows, without the rows of vanished posts.
    rates: assumed error rates in unresolved audits, see `join`.
    """
    comparable = [(gold, rows) for gold, rows in kept if gold.population != TRIGGERS]
    # Apply both predictors' coarse classes to both, so that labels merged by either predictor count as one class.
    sides = [join(subject, comparable, [first.mapping, second.mapping], rates) for subject in (first, second)]
    both, second_uniform = (side.uniform for side in sides)
    if both and second_uniform:  # add the second predictor's label to each post
        second_cells = {**second_uniform.posts, **second_uniform.missing}
        both = both.map_cells(lambda key, cell: cell._replace(other=second_cells[key].predicted))
    rows_by_key = differences(both, (sides[0].recall, sides[1].recall))
    if both and not sides[0].recall and all(cell.annotated for cell in both.cells):
        # Plain counts are valid only if all drawn posts are annotated, so that every post has the same weight.
        only_right = [
            sum(n for cell, n in side.cells.items() if _only_first_right(cell)) for side in (both, both.swapped)
        ]
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


# The difference (None if one predictor's share is unknown), the number of posts it is based on, and its extremes (see
# `metrics.Measured`).
Outcome = tuple[Difference | None, int, tuple[Difference, ...]]


def differences(
    both: Uniform | None, sets: tuple[metrics.RecallSets, metrics.RecallSets] = ({}, {})
) -> dict[tuple[str, str], Row]:
    """Return the row of each difference between the two predictors, by measure and label.

    A key is a tuple such as ("recall", "de"). For accuracy, it contains "with und" or "without und" instead of a label.

    both: the uniform set with both predictors' labels; None if there is no uniform set.
    sets: each predictor's recall-oriented sets, as a mapping from language to {post id: predicted label}.
    """
    cells = [cell for cell in both.cells if cell.annotated] if both else []
    labels = metrics.und_last(
        {*sets[0], *(label for cell in cells for label in (cell.truth, cell.predicted, cell.other))}
    )
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

    As for a single predictor's recall, a label's difference has no interval if it is based on fewer than LEAST_COUNT
    posts.
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
    return figure_row | {"note": bounds_note(bounds_of(extremes), signed=True)}


def _only_first_right(cell: Cell) -> bool:
    """Return whether the first predictor is right and the second is not."""
    return cell.predicted == cell.truth != cell.other


def _accuracy(both: Uniform, *, with_und: bool) -> Outcome:
    return _difference_in_shares(
        both,
        lambda cell: with_und or cell.truth != UND,
        _only_first_right,
        lambda cell: cell.predicted != cell.other,
        (UND,),
    )


def _recall(label: str, both: Uniform | None, sets: tuple[metrics.RecallSets, metrics.RecallSets]) -> Outcome:
    """Return the difference in recall. Prefer the language's recall-oriented set to the uniform set."""
    first_predictions, second_predictions = (recall_sets.get(label, {}) for recall_sets in sets)
    if first_predictions:
        # The difference is the share of posts that only the first predictor gets right, minus the share that only the
        # second gets right. Both shares come from the same simple random sample, and no post counts in both.
        pairs = Counter(
            (prediction == label, second_predictions[key] == label) for key, prediction in first_predictions.items()
        )
        only_right = [
            share_from_counts(pairs[sides], pairs.total()).estimate for sides in ((True, False), (False, True))
        ]
        share_a, share_b = (share.value or 0.0 for share in only_right)
        correlated = -sqrt(share_a * share_b / ((1 - share_a) * (1 - share_b))) if share_a < 1 and share_b < 1 else -1.0
        return paired(only_right[0], only_right[1], correlated), pairs.total(), ()
    if both is None:
        return None, 0, ()
    can_differ = lambda cell: (cell.predicted == label) != (cell.other == label)  # noqa: E731
    return _difference_in_shares(both, lambda cell: cell.truth == label, _only_first_right, can_differ, (label,))


def _precision(label: str, both: Uniform) -> Outcome:
    is_right, can_differ = (lambda cell: cell.truth == label), (lambda cell: cell.other != label)
    return _difference_in_shares(both, lambda cell: cell.predicted == label, is_right, can_differ, (UND,))


def _difference_in_shares(
    both: Uniform, domain: CellTest, right: CellTest, can_differ: CellTest, truths: Collection[str]
) -> Outcome:
    """Estimate the difference between the two predictors' shares from the uniform set.

    domain: returns whether a post is in the domain.
    right: returns whether the predictor's label of a post in the domain is correct.
    can_differ: returns whether a post in the domain can make the shares differ. The proportion of such posts is an
        upper bound on the difference.
    truths: possible true labels of missing posts, see `share`.
    """

    def difference_on(uniform: Uniform) -> Outcome:
        sides = uniform, uniform.swapped
        first_share, second_share = (share(side, domain, right, truths=truths) for side in sides)
        # If no annotated post counts differently for the two predictors, their estimates differ only because of guesses
        # about unannotated posts. Such guesses can't show that one predictor is better.
        is_observed = any(
            domain(original) != domain(swapped) or (domain(original) and right(original) != right(swapped))
            for original, swapped in ((cell, cell.swapped) for cell in uniform.cells if cell.annotated)
        )
        difference = paired(
            first_share.estimate, second_share.estimate, correlation(uniform, domain, right) if is_observed else 0.0
        )
        bound = max(share(side, domain, can_differ, truths=truths).estimate.high for side in sides)
        difference = difference and difference.within(bound)
        return (
            difference if is_observed else difference and difference.undecided(),
            min(first_share.posts, second_share.posts),
            (),
        )

    difference, *at_limits = (difference_on(uniform.without_missing)[0] for uniform in both.reweighted)
    at_random, posts, _ = difference_on(both.without_missing)
    if not difference or not both.missing:
        return difference, posts, ()
    sign = effect_sign(domain, right)
    ends = both.extremes(lambda cell: sign(cell) - sign(cell.swapped), truths)
    extremes = tuple(extreme for extreme in (at_random, *(difference_on(end)[0] for end in ends)) if extreme)
    low, high = bounds_of([clip(bounds_of(extremes), interval) for interval in (difference, *at_limits) if interval])
    return replace(difference, low=low, high=high), posts, extremes


def correlation(both: Uniform, domain: CellTest, right: CellTest) -> float:
    """Estimate the correlation between two predictors' shares of correct labels in a domain, from -1 to 1.

    Both shares are estimated from the same uniform set. Their covariance is that of the residuals hit - R * domain,
    where hit and domain are 1 or 0 for each post. As in `proportions.stratified`, it has two components: one from
    drawing posts from the stream, and one from annotating only some of the drawn posts (Cochran 1977, Sampling
    Techniques, 3rd edition, section 12.2).

    R is the weighted share among annotated posts, so the residuals have mean zero. The estimated share can't serve as
    R: it includes guesses about unannotated posts, which would make two constants appear correlated.

    Returns 0 if either predictor's residuals do not vary among the annotated posts.
    """
    observed = []
    for side in (both, both.swapped):
        weights = {cell: posts * side.weights[cell] for cell, posts in side.cells.items() if domain(cell)}
        total = fsum(weights.values())
        observed.append(fsum(weight for cell, weight in weights.items() if right(cell)) / total if total else 0.0)

    def residuals(cell: Cell) -> list[float]:
        sides = cell, cell.swapped
        return [domain(side) * (right(side) - value) for side, value in zip(sides, observed, strict=True)]

    draw_rows: list[tuple[float, ...]] = []  # (number of posts, first residual, second residual)
    annotation_rows: dict[str, list[tuple[float, ...]]] = {}
    for cell, posts in both.cells.items():
        if not (weight := both.weights[cell]):
            continue
        true = residuals(cell)
        draw_rows.append((posts * weight, *true))
        if weight > 1:
            guessed = residuals(cell._replace(truth=cell.agreed)) if cell.stratum else [0.0, 0.0]
            residual_changes = (actual - guess for actual, guess in zip(true, guessed, strict=True))
            annotation_rows.setdefault(cell.stratum, []).append((posts, *residual_changes))
    sums = [_moments(draw_rows)]
    for stratum, rows in annotation_rows.items():
        weight = both.drawn[stratum] / both.annotated[stratum]
        sums.append(weight * (weight - 1) * _moments(rows))
    variance_a, variance_b, product = map(float, sum(sums, np.zeros(3)))
    return max(-1.0, min(1.0, product / sqrt(variance_a * variance_b))) if variance_a > 0 and variance_b > 0 else 0.0


def _moments(rows: Sequence[tuple[float, ...]]) -> Floats:
    """Centre two values; return each value's sum of squares and the sum of their products, (3,).

    If a value is constant up to rounding, its sum of squares and the sum of products are 0.

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
