"""The measures of a predictor on joined gold sets, as the rows of a report.

given.py reads what is given, matching.py joins it; metrics.py estimates the numbers.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from math import fsum, hypot, sqrt
from typing import Any

from annotate.core import classification as classes
from annotate.core.comparing import Difference, difference, holm, visible
from annotate.core.estimation import CHECKS, DRAW, RECHECKS, SECONDS, UNKNOWN, UNREAD, UNRESOLVED, Estimate
from annotate.core.false_yes import ASSUMED
from annotate.core.figure_rows import Row, row
from annotate.evaluation import metrics, unread_triggers
from annotate.evaluation.matching import Joined
from annotate.evaluation.uniform import Measured, counted, lone_triggers
from annotate.evaluation.unread_triggers import Left
from annotate.reports.numbers import percent
from annotate.reports.tables import many
from corpora.core.languages import UND

WITH_UND, WITHOUT_UND = "with und", "without und"
POSTS = {WITH_UND: True, WITHOUT_UND: False}
WELL_MEASURED = 30  # posts that a language has at least for the second of the means
SIGNIFICANT = 0.05
UNKNOWN_FALSE_YES = "false Yes is unknown, as no decoy was answered"


def _row(measure: str, of: Mapping[str, str], found: Measured, *notes: str) -> Row:
    note = "; ".join(filter(None, [*notes, bounded(found.bounds)]))
    bounds: dict[str, Any] = {"bounds": [*found.bounds]} if found.bounds else {}
    if found.extremes:
        bounds["extremes"] = [row(measure, of, each, found.posts) for each in found.extremes]
    made = row(measure, of, found.estimate, found.posts, note or ("no post" if found.value is None else ""))
    sources = found.estimate.sources
    return made | bounds | ({"width_sources": sources} if len(sources) > 1 else {})


def bounded(bounds: Collection[float] | None, *, signed: bool = False) -> str:
    """What a row notes of missing posts. signed: of a difference."""
    if bounds is None:
        return ""
    low, high = (f"{each:+.1%}" if signed else percent(each) for each in bounds)
    return f"{low} to {high}, whatever the posts without a label are"


def accuracy(joined: Joined) -> Iterator[Row]:
    assert joined.uniform is not None
    assert joined.labelled is not None
    uniform = joined.uniform.with_verified(joined.verified)
    for posts, with_und in POSTS.items():
        yield _row("accuracy", {"posts": posts}, metrics.accuracy(uniform, with_und=with_und))
        # With the detectors' labels taken for the truth, as they stand in the set.
        cells = {cell: n for cell, n in joined.labelled.cells.items() if with_und or cell.truth != UND}
        naive = counted(sum(n for cell, n in cells.items() if cell.said == cell.truth), sum(cells.values()))
        yield _row("naive_accuracy", {"posts": posts}, naive)


# What narrows an interval, by the source of its width.
NARROWS = {
    DRAW: "a larger draw: extend the task",
    UNREAD: "more audited posts: assay audit TASK --add N",
    CHECKS: "more checks: assay audit TASK --add N --checks",
    RECHECKS: "more audited posts, some of which are checked: assay audit TASK --add N; in a new task --audit-recheck",
    UNRESOLVED: "fewer unresolved audits, or a narrower range of --missing-rate",
    SECONDS: "more second opinions: open_task --check-share",
}


def width_sources(rows: Iterable[Row]) -> Iterator[Row]:
    """What the width of accuracy comes from, with und. rows: those of accuracy."""
    for each in rows:
        if each["measure"] == "accuracy" and each["of"] == {"posts": WITH_UND}:
            for source, share in each.get("width_sources", {}).items():
                yield row("width_share", {"source": source}, share, None, f"narrower by {NARROWS[source]}")


def recall(joined: Joined) -> Iterator[Row]:
    measured = {
        label: partial(metrics.recall, label, joined.about(label), joined.recall, joined.reach)
        for label in metrics.labels_read("truth", joined.uniform, {*joined.recall, *joined.confirmed})
    }
    found = {label: of(joined.false_yes.get(label, 0.0)) for label, of in measured.items()}
    twice = _counted_twice(found, joined)
    once = {label: each for label, each in found.items() if label not in twice}
    well = {label for label, each in once.items() if each.posts >= WELL_MEASURED}
    # Und is a row like the others; without it there is no mean with und.
    for labels, over in (("all labels", once.keys()), (f"{WELL_MEASURED}+ posts", well)):
        part = {label: each for label, each in once.items() if label in over}
        yield from _means("recall", labels, {WITH_UND: part if UND in part else {}, WITHOUT_UND: part}, joined)
    for label, each in found.items():
        if not joined.recall.get(label):
            yield _row("recall", {"label": label}, each, _note(label, twice, joined))
            continue
        both = _frames(label, joined)
        notes = _note(label, twice, joined), _of_authors(both, joined), _false_yes(label, joined)
        yield _row("recall", {"label": label}, each, *notes)
        if both:
            yield _row("reach", {"label": label}, both.part)
    for label, of in measured.items():
        if joined.recall.get(label):
            yield from _assumed("recall", label, joined, of)


def _frames(label: str, joined: Joined) -> metrics.TwoFrames | None:
    """Both kinds of sets together; None where one has no posts of the language, or the reach is not known."""
    found, uniform = joined.recall.get(label), joined.about(label)
    if not (found and uniform and label in joined.reach):
        return None
    return metrics.two_frames(label, uniform, found, joined.reach[label], joined.false_yes.get(label, 0.0))


def _of_authors(both: metrics.TwoFrames | None, joined: Joined) -> str:
    if both is None:
        return "of the posts of its authors; which part of the language that is, is not known" if joined.uniform else ""
    return "not estimated, since the two kinds of sets differ: see the check" if both.differ else ""


def _false_yes(label: str, joined: Joined) -> str:
    if label in joined.unbounded:
        return UNKNOWN_FALSE_YES
    share = joined.false_yes.get(label, 0.0)
    return f"up to {share:.1%} of its posts may be false Yes, by the decoys" if share else ""


def _assumed(measure: str, label: str, joined: Joined, measured: Callable[..., Measured]) -> Iterator[Row]:
    """A figure if such a share of the posts of its recall- or precision-oriented set were false Yes; none where decoys
    bound that. measured: the figure with at most such a share."""
    if label in joined.unbounded:
        least = joined.false_yes.get(label, 0.0)
        for share in ASSUMED:
            yield _row(measure, {"label": label, "false_yes": f"{share:.0%}"}, measured(false_yes=max(share, least)))


def _means(measure: str, labels: str, figures: Mapping[str, Mapping[str, Measured]], joined: Joined) -> Iterator[Row]:
    """Means over what was measured, where that is one language at least; und is a class of the mean with und alone.
    labels: what they are over, in words; figures: with and without und, by label."""
    for posts, of_labels in figures.items():
        known = {label: each.estimate for label, each in of_labels.items() if each.value is not None}
        if posts == WITHOUT_UND:
            known.pop(UND, None)
        if languages := known.keys() - {UND}:
            over = f"mean over {many(len(languages), 'language')}{' and und' if UND in known else ''}"
            found = _mean(measure, known, joined, with_und=posts == WITH_UND)
            yield row(f"mean_{measure}", {"posts": posts, "labels": labels}, found, None, over)


# Measure -> what estimates it from weighted posts, and in how many labels' figures an error counts.
WEIGHTED = {"recall": (classes.recalls, 1), "precision": (classes.precisions, 1), "f1": (classes.f1s, 2)}


def _mean(measure: str, known: Mapping[str, Estimate], joined: Joined, *, with_und: bool) -> Difference:
    """The plain mean of the figures of labels.

    Labels rest on different posts, so that their distances from their own ends are squared and added up (MOVER); where
    an error counts in several figures, its distances add up first. The interval holds both this one and that of the
    weighted posts. Of the rare posts that stand for many, a draw mostly holds too few, and sometimes too many: the one
    fails there, or the other."""
    weighted, labels_of_error = WEIGHTED[measure]
    value = fsum(each.value or 0.0 for each in known.values()) / len(known)
    times = sqrt(labels_of_error) / len(known)
    down = times * hypot(*((each.value or 0.0) - each.low for each in known.values()))
    up = times * hypot(*((each.value or 0.0) - each.high for each in known.values()))
    found = Difference(value, max(0.0, value - down), min(1.0, value + up))
    if joined.uniform is None or known.keys() & {*joined.recall, *joined.precision}:
        return found
    other = metrics.by_weight(joined.uniform, weighted, [*known], with_und=with_und)
    if other.value in (0.0, 1.0):  # nothing varies, so a jackknife knows nothing
        return found
    return Difference(found.value, min(found.low, other.low), max(found.high, other.high))


def f1(rows: Collection[Row], joined: Joined) -> Iterator[Row]:
    """F1 by label and its means, with und as a class, from the rows of recall and of precision. In the means F1 is 0
    where a predictor says a label that no post has, or never says one that posts have (Opitz and Burst 2019, Macro F1
    and Macro F1)."""
    found: dict[str, dict[str, Estimate]] = {}
    posts: dict[str, float] = {}
    for each in rows:
        if each["measure"] in ("recall", "precision") and list(each["of"]) == ["label"]:
            label, value, count = each["of"]["label"], each["value"], each["count"] or 0.0
            low, high = (each["low"], each["high"]) if each["low"] is not None else (0.0, 1.0)
            found.setdefault(label, {})[each["measure"]] = Estimate(value, low, high, 0.0, count)
            posts[label] = max(posts.get(label, 0), each["units"])
    for label in _counted_twice(found, joined):
        del found[label]
    made = {label: metrics.f1(of.get("precision", UNKNOWN), of.get("recall", UNKNOWN)) for label, of in found.items()}
    occurring = [label for label, of in found.items() if of.get("recall", UNKNOWN).value is not None]
    for label, estimate in made.items():
        yield row("f1", {"label": label}, estimate, posts[label], "" if estimate.has_interval else NO_F1)
    for labels, over in (("labels that occur", occurring), ("all labels", [*made])):
        known = {label: made[label] if made[label].value is not None else NOUGHT for label in over}
        if known:
            mean = _mean("f1", known, joined, with_und=True)
            yield row(
                "mean_f1", {"posts": WITH_UND, "labels": labels}, mean, None, f"mean over {many(len(known), 'label')}"
            )


NOUGHT = Estimate(0.0, 0.0, 0.0, 0.0, 0.0)
NO_F1 = "recall or precision is not known, or has no interval"


NAIVE = {"recall": "naive_recall", "precision": "naive_precision"}


def naive(rows: Iterable[Row], joined: Joined) -> Iterator[Row]:
    """The rows of a uniform set whose truth is the detectors' agreement: under names of their own, and without what
    would be quoted, such as means. Recall on a recall-oriented set alone stays as it is."""
    for each in rows:
        label = each["of"].get("label")
        if label in joined.recall and label not in joined.reach:
            yield each
        elif each["measure"] in NAIVE and list(each["of"]) == ["label"]:
            yield each | {"measure": NAIVE[each["measure"]]}
        elif each["measure"] == "naive_accuracy":
            yield each


def _counted_twice(found: Collection[str], joined: Joined) -> set[str]:
    """The coarse codes that stand beside their own labels: means leave them out."""
    return {label for label in found if not joined.asked.get(label, frozenset()).isdisjoint(found)}


def _note(label: str, twice: Collection[str], joined: Joined) -> str:
    finer = sorted(finer for finer, coarse in joined.fold.items() if coarse == label)
    if finer or label not in joined.asked:
        return f"{', '.join(finer)} taken together" if finer else ""
    finer = sorted(joined.asked[label])
    apart = "; its labels have their own rows, so it is not in the mean" if label in twice else ""
    return f"{', '.join(finer)} taken together on posts where people used {label}, and nowhere else{apart}"


def precision(joined: Joined) -> Iterator[Row]:
    measured = {
        label: partial(metrics.precision, label, joined.about(label), joined.precision)
        for label in metrics.labels_read("said", joined.uniform, {*joined.precision, *joined.verified})
    }
    found = {
        label: {posts: of(with_und=und, false_yes=joined.false_yes.get(label, 0.0)) for posts, und in POSTS.items()}
        for label, of in measured.items()
    }
    # Otherwise the mean would include every code that a predictor ever says by mistake.
    truths = {cell.truth for cell in joined.labelled.cells} if joined.labelled else set()
    there = {UND, *joined.precision, *joined.confirmed, *truths}
    twice = _counted_twice(found, joined)
    averaged = [label for label in found if label in there and label not in twice]
    well = [label for label in averaged if found[label][WITH_UND].posts >= WELL_MEASURED]
    for labels, over in (("all labels", averaged), (f"{WELL_MEASURED}+ posts", well)):
        yield from _means(
            "precision", labels, {posts: {label: found[label][posts] for label in over} for posts in POSTS}, joined
        )
    for label, each in found.items():
        others = unread_triggers.spelled(joined.strangers[label]) if label in joined.strangers else ""
        yield _row(
            "precision",
            {"label": label},
            each[WITH_UND],
            _note(label, twice, joined),
            f"drawn by {others}; precision on other posts is unknown" if others else "",
            "" if label in there else "no post in it was found; not in the mean",
            _false_yes(label, joined) if joined.precision.get(label) else "",
        )
        # If a predictor calls a post undefined, it is right only on undefined posts.
        if label != UND:
            yield _row("precision_without_und", {"label": label}, each[WITHOUT_UND])
    for label, of in measured.items():
        if joined.precision.get(label):
            yield from _assumed("precision", label, joined, partial(of, with_und=True))
        elif (uniform := joined.about(label)) and (lone := lone_triggers(uniform, label)):
            for measure, bound in zip(("if_wrong", "if_right"), lone.bounds, strict=True):
                yield row(measure, {"label": label}, bound, lone.posts)


def recall_check(joined: Joined) -> list[Row]:
    assert joined.uniform is not None
    pairs = {}
    for label, found in sorted(joined.recall.items()):
        both = _frames(label, joined)
        # Without the posts of the recall set, since the test needs independent samples.
        uniform = joined.about(label)
        assert uniform is not None
        on_uniform = both.inside if both else metrics.recall_on(uniform, label, found)
        if on_uniform.posts and found:
            pairs[label] = metrics.recall_in(found, label, joined.false_yes.get(label, 0.0)), on_uniform
    estimates = [(first.estimate, second.estimate) for first, second in pairs.values()]
    p_values = [difference(*pair) for pair in estimates]
    rows: list[Row] = []
    for (label, sides), pair, p, adjusted in zip(pairs.items(), estimates, p_values, holm(p_values), strict=True):
        of, differ = {"label": label}, "they differ" if adjusted < SIGNIFICANT else ""
        rows += [
            _row("recall_set", of, sides[0]),
            _row("uniform_set", of, sides[1], differ) | {"p": p, "p_holm": adjusted},
            row("visible", of, visible(*pair), None),
        ]
    return rows


def balanced(joined: Joined) -> Iterator[Row]:
    weights = metrics.natural_weights(joined.uniform) if joined.uniform else None
    for label in sorted(joined.recall):
        sets = _as_asked(label, joined)
        yield _row("balanced_precision", {"label": label}, metrics.balanced_precision(label, sets))
        if weights and weights.get(label):
            yield _row("natural_precision", {"label": label}, metrics.balanced_precision(label, sets, weights))


def _as_asked(label: str, joined: Joined) -> dict[str, dict[str, str]]:
    """The recall sets for one row: a coarse code that people used has all the posts of its labels."""
    sets: dict[str, dict[str, str]] = {}
    for language, found in joined.recall.items():
        told = {key: joined.within(said, label) for key, said in found.items()}
        sets.setdefault(joined.within(language, label), {}).update(told)
    return sets


def gone(missing: Mapping[str, Mapping[str, Any]]) -> Iterator[Row]:
    """How many posts are left out, by label. missing: see given.left_out."""
    for label in metrics.und_last({label for each in missing.values() for label in each["by_label"]}):
        for measure, each in missing.items():
            yield row(measure, {"label": label}, each["by_label"].get(label, 0), None)


def confusion(joined: Joined) -> dict[str, Any] | None:
    """Posts by gold label and predicted label: of the uniform set, weighted by stratum; without one, of the recall
    sets."""
    weights: dict[tuple[str, str], float] = {}
    if uniform := joined.uniform:
        for cell, posts in uniform.cells.items():
            if cell.read:
                pair = cell.truth, cell.said
                weights[pair] = weights.get(pair, 0.0) + posts * uniform.weight(cell)
    else:
        for label, found in joined.recall.items():
            for said, posts in Counter(found.values()).items():
                weights[label, said] = float(posts)
    if not weights:
        return None
    labels = metrics.und_last({label for pair in weights for label in pair})
    return {"labels": labels, "cells": [[*pair, round(weight, 6)] for pair, weight in sorted(weights.items())]}


def errors(joined: Joined, left: Left) -> dict[str, Any]:
    """The parts of the report on the posts that people read and where the predictor says otherwise, each once, with
    their texts where the licence lets these leave."""
    posts = joined.labelled.posts if joined.labelled else {}
    read = {key: (cell.truth, cell.said) for key, cell in posts.items() if cell.read}
    for label, found in joined.recall.items():
        read |= {key: (label, said) for key, said in found.items() if key not in read}
    for label, shown in joined.precision.items():
        read |= {key: (truth, label) for key, truth in shown.items() if key not in read}
    wrong = {key: pair for key, pair in read.items() if pair[0] != pair[1]}
    texts = {row["id"]: row["text"] for gold, _ in left for row in gold.written(wrong) if row.get("text")}
    rows = []
    for key, (gold_label, said) in wrong.items():
        fields = {"fields": {"text": texts[key]}} if key in texts else {}
        rows.append({"id": key, "gold": gold_label, "predicted": said} | fields)
    return {"errors": rows, "error_count": len(rows), "error_base": len(read)}
