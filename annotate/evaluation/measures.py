"""A predictor's measures on joined gold sets, as rows of a report.

subjects.py reads predictors and gold sets, joined_sets.py joins them, and metrics.py estimates the figures.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from math import fsum, hypot, sqrt
from typing import Any

import numpy as np

from annotate.core.estimation.differences import Difference, detectable_difference, difference, holm
from annotate.core.estimation.label_errors import ASSUMED
from annotate.core.estimation.proportions import (
    CHECKS,
    DRAW,
    RECHECKS,
    SECONDS,
    UNKNOWN,
    UNREAD,
    UNRESOLVED,
    Estimate,
    mover,
    proportion,
    with_interval,
)
from annotate.core.measures import classification as classes
from annotate.core.measures.figure_rows import Row, row
from annotate.evaluation import metrics, unread_triggers
from annotate.evaluation.joined_sets import Joined, KeptRows
from annotate.evaluation.metrics import Measured, bounds_of, lone_triggers
from annotate.goldsets.gold_set import ROUND, objects_in
from annotate.reports.numbers import percent
from annotate.reports.tables import many
from corpora.core.languages import UND

WITH_UND, WITHOUT_UND = "with und", "without und"
POSTS = {WITH_UND: True, WITHOUT_UND: False}
WELL_MEASURED = 30  # the second mean includes only labels with at least this many posts
SIGNIFICANT = 0.05
UNKNOWN_FALSE_YES = "the rate of false Yes answers is unknown because no decoy was answered"


def _row(measure: str, slice_keys: Mapping[str, str], measured: Measured, *notes: str) -> Row:
    estimate, bounds = measured.estimate, dict[str, Any]()
    if measured.extremes:
        ends = bounds_of(measured.extremes)
        notes = *notes, bounds_note(ends)
        extremes = [row(measure, slice_keys, extreme, measured.posts) for extreme in measured.extremes]
        bounds = {"bounds": [*ends], "extremes": extremes}
    note = "; ".join(filter(None, notes)) or ("no post" if estimate.value is None else "")
    sources = estimate.sources if len(estimate.parts) > 1 else {}
    figure_row = row(measure, slice_keys, estimate, measured.posts, note) | bounds
    return figure_row | ({"width_sources": sources} if len(sources) > 1 else {})


def bounds_note(bounds: Collection[float], *, signed: bool = False) -> str:
    """Return a row's note on how far posts without a label could move the figure.

    bounds: lowest and highest possible value.
    signed: whether to show a plus sign, for differences.
    """
    low, high = (f"{bound:+.1%}" if signed else percent(bound) for bound in bounds)
    return f"{low} to {high}, depending on the posts without a label"


# For each source of an interval's width, what would narrow the interval, and the command or option for it.
REMEDIES = {
    DRAW: ("a larger draw", "assay extend_task TASK"),
    UNREAD: ("more audited posts", "assay audit TASK --add N"),
    CHECKS: ("more checks", "assay audit TASK --add N --checks"),
    RECHECKS: ("more audited posts, some of them checked", "assay audit TASK --add N"),
    UNRESOLVED: ("fewer unresolved audits, or a narrower range of their error rates", "--missing-rate"),
    SECONDS: ("more second opinions", "assay open_task --check-share"),
}


def accuracy(joined: Joined) -> Iterator[Row]:
    """Yield accuracy and naive accuracy, then each error source's share of the accuracy interval's width."""
    assert joined.labelled is not None
    uniform, sources = joined.uniform_for(), dict[str, float]()
    assert uniform is not None
    for posts, with_und in POSTS.items():
        figure_row = _row("accuracy", {"posts": posts}, metrics.accuracy(uniform, with_und=with_und))
        if with_und:
            sources = figure_row.get("width_sources", {})
        yield figure_row
        # Naive accuracy treats every label of the set as true, even labels given only by the detectors.
        cells = {cell: n for cell, n in joined.labelled.cells.items() if with_und or cell.truth != UND}
        right_count, number = sum(n for cell, n in cells.items() if cell.predicted == cell.truth), sum(cells.values())
        yield row(
            "naive_accuracy", {"posts": posts}, proportion(right_count, number), number, "" if number else "no post"
        )
    for source, part in sources.items():
        yield row("width_share", {"source": source}, part, None, f"narrower with {REMEDIES[source][0]}")


def recall(joined: Joined) -> Iterator[Row]:
    truths = {cell.truth for cell in joined.uniform.cells if cell.annotated} if joined.uniform else set()
    measured = {
        label: partial(metrics.recall, label, joined.uniform_for(label), joined.recall, joined.reach)
        for label in metrics.und_last(truths | {*joined.recall, *joined.confirmed})
    }
    figures = {label: estimate(joined.false_yes.get(label, 0.0)) for label, estimate in measured.items()}
    left_out, class_notes = _coarse_labels(figures, joined)
    averaged = {label: figure for label, figure in figures.items() if label not in left_out}
    well_measured = {label for label, figure in averaged.items() if figure.posts >= WELL_MEASURED}
    # Without a figure for `und`, there is no mean with `und`.
    for labels, over in (("all labels", averaged.keys()), (f"{WELL_MEASURED}+ posts", well_measured)):
        part = {label: figure for label, figure in averaged.items() if label in over}
        yield from _means("recall", labels, {WITH_UND: part if UND in part else {}, WITHOUT_UND: part}, joined)
    for label, figure in figures.items():
        if not joined.recall.get(label):
            yield _row("recall", {"label": label}, figure, class_notes[label])
            continue
        both = _frames(label, joined)
        frame_note = (
            "not estimated because the two kinds of sets differ (see the check)" if both and both.differ else ""
        )
        if joined.uniform and not both:
            frame_note = "covers only posts by the drawn authors; their share of the language is unknown"
        notes = class_notes[label], frame_note, _false_yes(label, joined)
        yield _row("recall", {"label": label}, figure, *notes)
        if both:
            yield _row("reach", {"label": label}, both.part)
    for label, estimate in measured.items():
        if joined.recall.get(label):
            yield from _under_assumed_errors("recall", label, joined, estimate)


def _frames(label: str, joined: Joined) -> metrics.TwoFrames | None:
    """Estimate recall from both kinds of sets. Returns None if one kind is missing or the reach is unknown."""
    predicted, uniform = joined.recall.get(label), joined.uniform_for(label)
    if not (predicted and uniform and label in joined.reach):
        return None
    return metrics.two_frames(label, uniform, predicted, joined.reach[label], joined.false_yes.get(label, 0.0))


def _false_yes(label: str, joined: Joined) -> str:
    if label in joined.unbounded:
        return UNKNOWN_FALSE_YES
    share = joined.false_yes.get(label, 0.0)
    return f"up to {share:.1%} of its Yes answers may be false, according to the decoys" if share else ""


def _under_assumed_errors(measure: str, label: str, joined: Joined, measured: Callable[..., Measured]) -> Iterator[Row]:
    """Yield a figure's rows under assumed rates of mistaken Yes answers; none if decoys bound this rate.

    measure: name of the measure.
    label: label to measure.
    measured: returns the figure for a value of `false_yes`.
    """
    if label in joined.unbounded:
        false_share = joined.false_yes.get(label, 0.0)
        for share in ASSUMED:
            yield _row(
                measure, {"label": label, "false_yes": f"{share:.0%}"}, measured(false_yes=max(share, false_share))
            )


def _means(measure: str, labels: str, figures: Mapping[str, Mapping[str, Measured]], joined: Joined) -> Iterator[Row]:
    """Yield the means over labels with a known figure, provided that at least one of them is a language.

    measure: name of the measure.
    labels: description of the labels, as shown in the report.
    figures: a mapping from label to figure for each key of POSTS. Only the mean with `und` includes the class `und`.
    """
    for posts, of_labels in figures.items():
        estimates = {label: figure.estimate for label, figure in of_labels.items() if figure.estimate.value is not None}
        if posts == WITHOUT_UND:
            estimates.pop(UND, None)
        if languages := estimates.keys() - {UND}:
            over = f"mean over {many(len(languages), 'language')}{' and und' if UND in estimates else ''}"
            mean = _mean(measure, estimates, joined, with_und=posts == WITH_UND)
            yield row(f"mean_{measure}", {"posts": posts, "labels": labels}, mean, None, over)


# For each measure, its estimator on weighted posts, and how many labels' figures a single error affects.
WEIGHTED = {"recall": (classes.recalls, 1), "precision": (classes.precisions, 1), "f1": (classes.f1s, 2)}


def _mean(measure: str, estimates: Mapping[str, Estimate], joined: Joined, *, with_und: bool) -> Difference:
    """Return the unweighted mean of the labels' figures, with an interval.

    Different labels' figures are based on different posts, so the squared distances to the ends of their intervals add
    up (MOVER). If one error affects several figures, its distances are added before squaring.

    The result's interval also covers a second interval, computed from the weighted posts. A draw usually contains too
    few of the rare posts with large weights, and sometimes too many; in either situation, one of the intervals fails.
    """
    weighted, labels_of_error = WEIGHTED[measure]
    value = fsum(estimate.value or 0.0 for estimate in estimates.values()) / len(estimates)
    times = sqrt(labels_of_error) / len(estimates)
    down = times * hypot(*((estimate.value or 0.0) - estimate.low for estimate in estimates.values()))
    up = times * hypot(*((estimate.value or 0.0) - estimate.high for estimate in estimates.values()))
    plain = Difference(value, max(0.0, value - down), min(1.0, value + up))
    if joined.uniform is None or estimates.keys() & {*joined.recall, *joined.precision}:
        return plain
    # Also estimate the mean from the weighted annotated posts. The jackknife's interval alone would be too narrow if no
    # post with a large weight is an error.
    uniform = joined.uniform
    cells = {cell: n for cell, n in uniform.cells.items() if cell.annotated and (with_und or cell.truth != UND)}
    labels = metrics.und_last({*estimates, *(label for cell in cells for label in (cell.truth, cell.predicted))})
    sides = [cell.truth for cell in cells], [cell.predicted for cell in cells]
    gold, predicted = (np.repeat(classes.places_of(side, labels), [*cells.values()]) for side in sides)
    weights = np.repeat([uniform.weights[cell] for cell in cells], [*cells.values()])
    pairs = classes.Paired(gold, predicted, len(labels), weights)
    weighted_mean = pairs.estimate(classes.macro(weighted, np.isin(labels, [*estimates])))
    if weighted_mean.value in (0.0, 1.0):  # without variation, the jackknife gives no interval
        return plain
    return Difference(plain.value, min(plain.low, weighted_mean.low), max(plain.high, weighted_mean.high))


def f1(rows: Collection[Row], joined: Joined) -> Iterator[Row]:
    """Yield each label's F1 and the mean F1, computed from the recall and precision rows. Here, `und` is a class too.

    In the means, F1 is 0 for a label that is predicted but never true, or true but never predicted (Opitz and Burst
    2019, Macro F1 and Macro F1). False positives and false negatives are different posts, so the squared distances of
    precision and recall to the ends of their intervals add up (MOVER).
    """
    estimates: dict[str, dict[str, Estimate]] = {}
    posts = Counter[str]()
    for figure_row in rows:
        if figure_row["measure"] in ("recall", "precision") and list(figure_row["of"]) == ["label"]:
            label, value, count = figure_row["of"]["label"], figure_row["value"], figure_row["count"] or 0.0
            low, high = (figure_row["low"], figure_row["high"]) if figure_row["low"] is not None else (0.0, 1.0)
            estimates.setdefault(label, {})[figure_row["measure"]] = Estimate(value, low, high, 0.0, count)
            posts[label] = max(posts[label], figure_row["units"])
    coarse, _ = _coarse_labels(estimates, joined)
    sides = {
        label: (by_measure.get("precision", UNKNOWN), by_measure.get("recall", UNKNOWN))
        for label, by_measure in estimates.items()
        if label not in coarse
    }
    f1s = {label: _f1(*both) for label, both in sides.items()}
    for label, estimate in f1s.items():
        yield row("f1", {"label": label}, estimate, posts[label], "" if estimate.has_interval else NO_F1)
    occurring = [label for label, (_, recall) in sides.items() if recall.value is not None]
    for labels, over in (("labels that occur", occurring), ("all labels", [*f1s])):
        figures = {label: f1s[label] if f1s[label].value is not None else ZERO for label in over}
        if figures:
            note, mean = f"mean over {many(len(figures), 'label')}", _mean("f1", figures, joined, with_und=True)
            yield row("mean_f1", {"posts": WITH_UND, "labels": labels}, mean, None, note)


ZERO = Estimate(0.0, 0.0, 0.0, 0.0, 0.0)
NO_F1 = "recall or precision is unknown or has no interval"


def _f1(precision: Estimate, recall: Estimate) -> Estimate:
    if precision.value is None or recall.value is None:
        return UNKNOWN
    by_precision = [(end, recall.value) for end in (precision.low, precision.high)]
    by_recall = [(precision.value, end) for end in (recall.low, recall.high)]
    pairs = [(precision.value, recall.value), *by_precision, *by_recall]
    value, *ends = (2 * p * r / (p + r) if p + r else 0.0 for p, r in pairs)
    low, high = mover(value, [(ends[0], ends[1]), (ends[2], ends[3])])
    return with_interval(value, low, high, precision.count + recall.count)


NAIVE = {"recall": "naive_recall", "precision": "naive_precision"}


def naive_rows(rows: Iterable[Row], joined: Joined) -> Iterator[Row]:
    """Yield the rows to report if the uniform set treats the detectors' agreement as the truth.

    Renames recall and precision to naive recall and naive precision, and drops the means. Recall measured only on a
    recall-oriented set is unchanged.
    """
    for figure_row in rows:
        label = figure_row["of"].get("label")
        if label in joined.recall and label not in joined.reach:
            yield figure_row
        elif figure_row["measure"] in NAIVE and list(figure_row["of"]) == ["label"]:
            yield figure_row | {"measure": NAIVE[figure_row["measure"]]}
        elif figure_row["measure"] == "naive_accuracy":
            yield figure_row


def _coarse_labels(labels: Collection[str], joined: Joined) -> tuple[set[str], dict[str, str]]:
    """Return the coarse codes to leave out of means, and a note for each label.

    A coarse code is left out if any of its finer labels has a row. A label's note lists its finer labels.
    """
    left_out = {label for label in labels if not joined.accepted.get(label, frozenset()).isdisjoint(labels)}
    notes = dict.fromkeys(labels, "")
    for label in labels:
        if finer := ", ".join(sorted(finer for finer, coarse in joined.fold.items() if coarse == label)):
            notes[label] = f"includes {finer}"
        elif label in joined.accepted:
            finer = ", ".join(sorted(joined.accepted[label]))
            notes[label] = f"includes {finer}, but only on posts where people used {label}"
            notes[label] += "; not in the mean, because these labels have their own rows" if label in left_out else ""
    return left_out, notes


def precision(joined: Joined) -> Iterator[Row]:
    predicted_labels = {cell.predicted for cell in joined.uniform.cells if cell.annotated} if joined.uniform else set()
    measured = {
        label: partial(metrics.precision, label, joined.uniform_for(label), joined.precision)
        for label in metrics.und_last(predicted_labels | {*joined.precision, *joined.verified})
    }
    by_label: dict[str, dict[str, Measured]] = {}
    for label, estimate in measured.items():
        false_share = joined.false_yes.get(label, 0.0)
        by_label[label] = {posts: estimate(with_und=und, false_yes=false_share) for posts, und in POSTS.items()}
    # The mean covers only labels that occur in the sets. Otherwise, a label would count as soon as the predictor gives
    # it by mistake.
    truths = {cell.truth for cell in joined.labelled.cells} if joined.labelled else set()
    occurring = {UND, *joined.precision, *joined.confirmed, *truths}
    left_out, class_notes = _coarse_labels(by_label, joined)
    averaged = [label for label in by_label if label in occurring and label not in left_out]
    well_measured = [label for label in averaged if by_label[label][WITH_UND].posts >= WELL_MEASURED]
    for labels, over in (("all labels", averaged), (f"{WELL_MEASURED}+ posts", well_measured)):
        figures = {posts: {label: by_label[label][posts] for label in over} for posts in POSTS}
        yield from _means("precision", labels, figures, joined)
    for label, by_posts in by_label.items():
        predictors = unread_triggers.list_predictors(joined.foreign[label]) if label in joined.foreign else ""
        yield _row(
            "precision",
            {"label": label},
            by_posts[WITH_UND],
            class_notes[label],
            f"drawn by {predictors}; precision on other posts is unknown" if predictors else "",
            "" if label in occurring else "no post has this label; not in the mean",
            _false_yes(label, joined) if joined.precision.get(label) else "",
        )
        # For `und` itself, leaving out the posts labelled `und` would leave only errors.
        if label != UND:
            yield _row("precision_without_und", {"label": label}, by_posts[WITHOUT_UND])
    for label, estimate in measured.items():
        if joined.precision.get(label):
            yield from _under_assumed_errors("precision", label, joined, partial(estimate, with_und=True))
        elif (uniform := joined.uniform_for(label)) and (lone := lone_triggers(uniform, label)):
            for measure, bound in zip(("if_wrong", "if_right"), lone.bounds, strict=True):
                yield row(measure, {"label": label}, bound, lone.posts)


def recall_check(joined: Joined, placed: Collection[str] = ()) -> list[Row]:
    """Compare recall in the recall-oriented set with recall in other samples.

    placed: ids of the uniform set's posts that have a place (or another field). These posts form a third sample.
    """
    assert joined.uniform is not None
    pairs, elsewhere = {}, joined.uniform.posts.keys() - set(placed)
    for label, predicted in sorted(joined.recall.items()):
        both = _frames(label, joined)
        # The test needs independent samples, so leave the recall-oriented set's posts out of the uniform set.
        uniform = joined.uniform_for(label)
        assert uniform is not None
        on_uniform = both.inside if both else metrics.recall(label, uniform, {}, excluded=predicted)
        if on_uniform.posts and predicted:
            from_recall = metrics.recall_on_recall_set(predicted, label, joined.false_yes.get(label, 0.0))
            pairs[label, "uniform_set"] = from_recall, on_uniform
            with_place = metrics.recall(label, uniform, {}, excluded={*predicted, *elsewhere}) if placed else None
            if with_place and with_place.posts:
                pairs[label, "placed_set"] = from_recall, with_place
    p_values = [difference(from_recall.estimate, other.estimate) for from_recall, other in pairs.values()]
    rows: list[Row] = []
    for ((label, sample), (from_recall, other)), p, adjusted in zip(
        pairs.items(), p_values, holm(p_values), strict=True
    ):
        slice_keys, differ = {"label": label}, "the two recalls differ" if adjusted < SIGNIFICANT else ""
        if sample == "uniform_set":
            rows.append(_row("recall_set", slice_keys, from_recall))
        rows.append(_row(sample, slice_keys, other, differ) | {"p": p, "p_holm": adjusted})
        if sample == "uniform_set":
            rows.append(row("visible", slice_keys, detectable_difference(from_recall.estimate, other.estimate), None))
    return rows


def balanced_precision(joined: Joined) -> Iterator[Row]:
    weights = metrics.natural_weights(joined.uniform) if joined.uniform else None
    for label in sorted(joined.recall):
        # If the label is a coarse code that annotators used, it includes the posts of all its finer labels.
        sets: dict[str, dict[str, str]] = {}
        for language, predicted in joined.recall.items():
            merged = {key: joined.coarsen(prediction, label) for key, prediction in predicted.items()}
            sets.setdefault(joined.coarsen(language, label), {}).update(merged)
        yield _row("balanced_precision", {"label": label}, metrics.balanced_precision(label, sets))
        if weights and weights.get(label):
            yield _row("natural_precision", {"label": label}, metrics.balanced_precision(label, sets, weights))


def error_analysis(joined: Joined, kept: KeptRows) -> dict[str, Any]:
    """Return the report's confusion matrix and list of errors.

    The matrix is computed from the uniform set, weighted by stratum. Without a uniform set, it is computed from the
    recall-oriented sets. The errors are the posts that annotators labelled differently from the predictor. Each is
    listed once, with its text if the set includes texts.
    """
    posts = joined.labelled.posts if joined.labelled else {}
    pairs = {key: (cell.truth, cell.predicted) for key, cell in posts.items() if cell.annotated}
    weights: defaultdict[tuple[str, str], float] = defaultdict(float)
    if uniform := joined.uniform:
        for cell, number in uniform.cells.items():
            if cell.annotated:
                weights[cell.truth, cell.predicted] += number * uniform.weights[cell]
    for label, predictions in joined.recall.items():
        pairs |= {key: (label, prediction) for key, prediction in predictions.items() if key not in pairs}
        for prediction in () if uniform else predictions.values():
            weights[label, prediction] += 1.0
    for label, truths in joined.precision.items():
        pairs |= {key: (truth, label) for key, truth in truths.items() if key not in pairs}
    is_weighted = uniform is not None and any(uniform.weights[cell] != 1 for cell in uniform.cells if cell.annotated)
    cells = [[*pair, round(weight, 6)] for pair, weight in sorted(weights.items())]
    labels = metrics.und_last({label for pair in weights for label in pair})
    wrong = {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}
    texts: dict[str, str] = {}
    for gold, _ in kept:
        rows = objects_in(gold.jsonl, (row.id in wrong for row in gold.rows), end=ROUND)
        texts |= {raw["id"]: raw["text"] for _, raw in rows if raw.get("text")}
    errors = [
        {"id": key, "gold": gold, "predicted": predicted} | ({"fields": {"text": texts[key]}} if key in texts else {})
        for key, (gold, predicted) in wrong.items()
    ]
    return {
        "confusion": {"labels": labels, "cells": cells, "weighted": is_weighted} if cells else None,
        "errors": errors,
        "error_count": len(errors),
        "error_base": len(pairs),
    }
