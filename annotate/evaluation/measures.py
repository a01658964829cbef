"""The measures of a predictor on joined gold sets: the parts of a report, as dicts that JSON can hold.

given.py reads what is given, matching.py joins it; metrics.py estimates the numbers.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from annotate.core.comparing import difference, holm, visible
from annotate.core.false_yes import ASSUMED
from annotate.evaluation import frames, metrics, unread_triggers
from annotate.evaluation.given import Subject
from annotate.evaluation.matching import Joined
from annotate.evaluation.uniform import Measured, lone_triggers
from annotate.kinds.designs import DESIGNS, Design
from annotate.kinds.labels import label_name
from corpora.core.languages import UND

WELL_MEASURED = 30  # posts that a language has at least for the second of the means


def sources(measure: str) -> list[Design]:
    """The designs whose sets tell a measure; the one that samples all posts comes last."""
    found = [design for design in DESIGNS.values() if measure in design.measures]
    return sorted(found, key=lambda design: design.of_stream)


def _source(measure: str, joined: Joined) -> str:
    return " and ".join(design.name for design in sources(measure) if joined.has(design))


def described(subject: Subject, voted: bool) -> dict[str, Any]:
    return {
        "name": subject.name,
        "version": subject.version,
        "spelled": subject.spelled,
        "voted": voted,
        "mapping": {coarse: list(labels) for coarse, labels in subject.mapping.items()},
    }


def accuracy(joined: Joined) -> dict[str, Any]:
    assert joined.uniform is not None
    assert joined.labelled is not None
    found, uniform = {}, joined.uniform.with_verified(joined.verified)
    for key, with_und in (("with_und", True), ("without_und", False)):
        found[key] = metrics.accuracy(uniform, with_und=with_und).as_dict()
        found[f"naive_{key}"] = metrics.naive_accuracy(joined.labelled, with_und=with_und).as_dict()
    return found


def recall(joined: Joined) -> dict[str, Any] | None:
    def measured(label: str, false_yes: float) -> Measured:
        return metrics.recall(label, joined.about(label), joined.recall, joined.reach, false_yes)

    found = {
        label: measured(label, joined.false_yes.get(label, 0.0))
        for label in metrics.recall_labels(joined.uniform, {*joined.recall, *joined.confirmed})
    }
    if not found:
        return None
    values = {label: each.value for label, each in found.items() if not _twice(label, found, joined)}
    well = {label: value for label, value in values.items() if found[label].posts >= WELL_MEASURED}
    assumed = {
        label: _assumed(label, joined, partial(measured, label)) if joined.recall.get(label) else [] for label in found
    }
    notes = {
        label: (
            _note(label, found, joined),
            _of_authors(label, joined),
            _false_yes(label, joined, each.as_dict(), assumed[label]) if joined.recall.get(label) else "",
        )
        for label, each in found.items()
    }
    return {
        "source": _source("recall", joined),
        "hiding": _hiding(joined),
        # Und is a row like the others; without it there is no mean with und.
        "macro": _macros(*((part if UND in part else {}, part) for part in (values, well))),
        "languages": [
            {
                "language": label,
                "name": label_name(label),
                "estimate": each.as_dict(),
                "assumed": assumed[label],
                "reach": _reach(label, joined),
                "note": "; ".join(filter(None, notes[label])),
            }
            for label, each in found.items()
        ],
    }


def _hiding(joined: Joined) -> list[str]:
    """The labels on which the detectors agree where posts in other languages may hide most, as each that was read there
    stands for many others; at most three, and none where all was read."""
    uniform = joined.uniform
    if uniform is None:
        return []
    unread = {label: posts for label, posts in uniform.drawn.items() if label and uniform.read[label] < posts}
    by_spread = sorted(unread, key=lambda label: (-(unread[label] ** 2) / max(1, uniform.read[label]), label))
    return by_spread[:3]


def _frames(label: str, joined: Joined) -> frames.TwoFrames | None:
    """Both kinds of sets together; None where one has no posts of the language, or the reach is not known."""
    found, uniform = joined.recall.get(label), joined.about(label)
    if not (found and uniform and label in joined.reach):
        return None
    return frames.two_frames(label, uniform, found, joined.reach[label], joined.false_yes.get(label, 0.0))


def _reach(label: str, joined: Joined) -> dict[str, float | None] | None:
    """The part of a language's posts that is within the reach of its recall-oriented draw."""
    both = _frames(label, joined)
    return both.part.as_dict() if both else None


def _of_authors(label: str, joined: Joined) -> str:
    if not joined.recall.get(label):
        return ""
    both = _frames(label, joined)
    if both is None:
        return "of the posts of its authors; which part of the language that is, is not known" if joined.uniform else ""
    return "not estimated, since the two kinds of sets differ: see the check" if both.differ else ""


def _false_yes(label: str, joined: Joined, estimate: Mapping[str, Any], assumed: Sequence[Mapping[str, Any]]) -> str:
    if assumed:
        shares: dict[str, list[str]] = {}
        for one in assumed:
            shares.setdefault(_ends(one), []).append(f"{one['share']:.0%}")
        effects = ", ".join(
            f"{' or '.join(some)} of its posts would "
            + (f"make it {ends}" if ends != _ends(estimate) else "leave the interval as it is")
            for ends, some in shares.items()
        )
        return f"false Yes is unknown, as no decoy was answered: {effects}"
    share = joined.false_yes.get(label, 0.0)
    return f"up to {share:.1%} of its posts may be false Yes, by the decoys" if share else ""


def _ends(figure: Mapping[str, Any]) -> str:
    """Its interval, in percent."""
    return "unknown" if figure["low"] is None else f"[{100 * figure['low']:.1f}, {100 * figure['high']:.1f}]"


def _assumed(label: str, joined: Joined, measured: Callable[[float], Measured]) -> list[dict[str, Any]]:
    """[{"share", "low", "high"}]: the interval of a figure if such a share of the posts of its recall- or precision-
    oriented set were false Yes; none where decoys bound that. measured: the figure with at most such a share."""
    if label not in joined.unbounded:
        return []
    least = joined.false_yes.get(label, 0.0)
    figures = {share: measured(max(share, least)).as_dict() for share in ASSUMED}
    return [{"share": share, "low": found["low"], "high": found["high"]} for share, found in figures.items()]


Values = dict[str, float | None]


def _macros(every: tuple[Values, Values], well: tuple[Values, Values]) -> dict[str, Any]:
    """The means with and without und, over all labels and over those with enough posts, since a few posts
    tell little.
    """
    return _macro(*every) | {"well_measured": {"least_posts": WELL_MEASURED} | _macro(*well)}


def _macro(with_und: Values, without_und: Values) -> dict[str, Any]:
    """Means over what was measured, and what that is; und is a class of the mean with und alone."""
    with_und, without_und = (
        {label: value for label, value in values.items() if value is not None} for values in (with_und, without_und)
    )
    without_und.pop(UND, None)
    return {
        "with_und": metrics.mean(with_und.values()),
        "with_und_over": {"languages": len(with_und.keys() - {UND}), "classes": len(with_und)},
        "without_und": metrics.mean(without_und.values()),
        "languages": len(without_und),
    }


def _twice(label: str, found: Collection[str], joined: Joined) -> bool:
    """Whether a coarse code stands beside its own labels, which a mean would then count twice."""
    return not joined.asked.get(label, frozenset()).isdisjoint(found)


def _note(label: str, found: Collection[str], joined: Joined) -> str:
    finer = sorted(finer for finer, coarse in joined.fold.items() if coarse == label)
    if finer or label not in joined.asked:
        return f"{', '.join(finer)} taken together" if finer else ""
    finer = sorted(joined.asked[label])
    apart = "; its labels have their own rows, so it is not in the mean" if _twice(label, found, joined) else ""
    return f"{', '.join(finer)} taken together on posts where people used {label}, and nowhere else{apart}"


def precision(subject: Subject, joined: Joined) -> dict[str, Any] | None:
    def measured(label: str, und: bool, false_yes: float) -> Measured:
        return metrics.precision(label, joined.about(label), joined.precision, with_und=und, false_yes=false_yes)

    found = {
        label: [measured(label, und, joined.false_yes.get(label, 0.0)) for und in (True, False)]
        for label in metrics.precision_labels(joined.uniform, {*joined.precision, *joined.verified})
    }
    if not found:
        return None
    # Otherwise the mean would include every code that a predictor ever says by mistake.
    truths = {cell.truth for cell in joined.labelled.cells} if joined.labelled else set()
    there = {UND, *joined.precision, *joined.confirmed, *truths}
    absent = {label: "" if label in there else "no post in it was found; not in the mean" for label in found}
    averaged = [label for label in found if label in there and not _twice(label, found, joined)]
    well = [label for label in averaged if found[label][0].posts >= WELL_MEASURED]
    assumed = {
        label: _assumed(label, joined, partial(measured, label, True)) if joined.precision.get(label) else []
        for label in found
    }
    notes = {
        label: [
            _note(label, found, joined),
            _foreign(label, subject, joined),
            absent[label],
            _false_yes(label, joined, with_und.as_dict(), assumed[label]) if joined.precision.get(label) else "",
        ]
        for label, (with_und, _) in found.items()
    }
    return {
        "source": _source("precision", joined),
        "macro": _macros(
            *(
                ({label: found[label][0].value for label in part}, {label: found[label][1].value for label in part})
                for part in (averaged, well)
            )
        ),
        "languages": [
            {
                "language": label,
                "name": label_name(label),
                "with_und": with_und.as_dict(),
                # If a predictor calls a post undefined, it is right only on undefined posts.
                "without_und": without_und.as_dict() if label != UND else None,
                "assumed": assumed[label],
                "lone": _lone(label, joined),
                "note": "; ".join(filter(None, notes[label])),
            }
            for label, (with_und, without_und) in found.items()
        ],
    }


def _lone(label: str, joined: Joined) -> dict[str, Any] | None:
    """The bounds of the precision on a uniform set alone; None where another set tells of the label too."""
    uniform = joined.about(label)
    if uniform is None or joined.precision.get(label):
        return None
    found = lone_triggers(uniform, label)
    return found and {"posts": found.posts, "if_wrong": found.bounds[0], "if_right": found.bounds[1]}


def _foreign(label: str, subject: Subject, joined: Joined) -> str:
    others = unread_triggers.strangers(subject, joined).get(label)
    return f"drawn by {unread_triggers.spelled(others)}; precision on other posts is unknown" if others else ""


def recall_check(joined: Joined) -> list[dict[str, Any]] | None:
    assert joined.uniform is not None
    pairs = {}
    for label, found in sorted(joined.recall.items()):
        both = _frames(label, joined)
        # Without the posts of the recall set, since the test needs independent samples.
        uniform = joined.about(label)
        assert uniform is not None
        on_uniform = both.inside if both else metrics.recall_on(uniform, label, found)
        if on_uniform.posts and found:
            pairs[label] = frames.recall_in(found, label, joined.false_yes.get(label, 0.0)), on_uniform
    estimates = [(first.estimate, second.estimate) for first, second in pairs.values()]
    p_values = [difference(*pair) for pair in estimates]
    return [
        {
            "language": label,
            "name": label_name(label),
            "recall_set": first.as_dict(),
            "uniform_set": second.as_dict(),
            "within_reach": label in joined.reach,
            "visible": visible(*pair),
            "p": p,
            "p_holm": adjusted,
        }
        for (label, (first, second)), pair, p, adjusted in zip(
            pairs.items(), estimates, p_values, holm(p_values), strict=True
        )
    ] or None


def balanced(joined: Joined) -> dict[str, Any]:
    weights = metrics.natural_weights(joined.uniform) if joined.uniform else None
    return {
        "languages": [
            {
                "language": label,
                "name": label_name(label),
                "balanced": metrics.balanced_precision(label, _as_asked(label, joined)).as_dict(),
                "natural": metrics.balanced_precision(label, _as_asked(label, joined), weights).as_dict()
                if weights and weights.get(label)
                else None,
            }
            for label in sorted(joined.recall)
        ]
    }


def _as_asked(label: str, joined: Joined) -> dict[str, dict[str, str]]:
    """The recall sets for one row: a coarse code that people used has all the posts of its labels."""
    sets: dict[str, dict[str, str]] = {}
    for language, found in joined.recall.items():
        told = {key: joined.within(said, label) for key, said in found.items()}
        sets.setdefault(joined.within(language, label), {}).update(told)
    return sets


def confusion(joined: Joined) -> dict[str, Any] | None:
    cells = metrics.confusion(joined.uniform, joined.recall)
    if not cells:
        return None
    labels = {label for truth, said, _ in cells for label in (truth, said)}
    return {"labels": sorted(labels, key=lambda label: (label == UND, label)), "cells": [list(cell) for cell in cells]}
