"""A predictor measured on gold sets: everything that a report says, as one dict that JSON can hold.

How sets and labels come together, and what is refused, is in joining.py; how numbers are estimated, in
core/metrics.py; how the report is written down, in reporting.py.
"""

import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from annotate.core import metrics
from annotate.core.comparing import difference, holm
from annotate.core.metrics import Pair
from annotate.evaluation import unread_triggers
from annotate.evaluation.matching import EvaluationError, Joined, Subject, erased, gone, join, rows_of
from annotate.goldsets import folders
from annotate.goldsets.reading import GoldRow, GoldSet
from annotate.reports import writing
from annotate.reports.predictor_report import name_of
from corpora import store
from corpora.core.languages import UND

MEASURES = ("accuracy", "recall", "precision")
WELL_MEASURED = 30  # posts that a language has at least for the second of the means
# Measure -> the designs that it can be taken from.
SOURCES = {"accuracy": ("uniform",), "recall": ("recall", "uniform"), "precision": ("precision", "uniform")}


def evaluate(
    subject: Subject,
    sets: list[GoldSet],
    *,
    against: Subject | None = None,
    vanished: Collection[str] = frozenset(),
    measures: Collection[str] = (),
    balanced: bool = False,
) -> dict[str, Any]:
    """The report. measures: those that must be in it, and no other; empty for all that the sets allow.

    balanced: precision on the recall sets too, under the name of what it is. EvaluationError for what cannot, or must
    not, be computed from these sets; CorpusError where the corpus has not what it takes.
    """
    designs = {gold.design for gold in sets}
    _check_measures(designs, measures, balanced)
    wanted = [measure for measure in measures or MEASURES if designs & set(SOURCES[measure])]
    _check_used(sets, wanted, balanced, against)
    left = rows_of(sets, vanished)
    joined = join(subject, left, [subject.mapping])
    warnings = [*_of_sets(sets), *joined.warnings]
    recall_sets, uniform = joined.recall, joined.uniform
    precision = _precision(subject, joined) if "precision" in wanted else None
    if "precision" in wanted:
        warnings += unread_triggers.warnings(subject, joined)
    elif "recall" in designs and not measures and not balanced:
        warnings.append(
            "Precision is not measured: a recall-oriented set has as many posts of a rare language as of a common one, "
            "so it lacks nearly all false triggers on the common ones. Give a precision-oriented or a uniform set."
        )
    both = uniform is not None and bool(recall_sets) and "recall" in wanted
    return {
        "predictor": _described(subject, any(subject.voted_in(gold) for gold in sets)),
        "gold": [_gold(gold, rows) for gold, rows in left],
        "vanished": gone(sets, vanished),
        "erased": erased(sets),
        "accuracy": _accuracy(joined) if "accuracy" in wanted else None,
        "recall": _recall(joined) if "recall" in wanted else None,
        "precision": precision,
        "recall_check": _recall_check(joined) if both else None,
        "unseen": unread_triggers.unseen(subject, joined, left) if precision else None,
        "balanced": _balanced(joined) if balanced else None,
        "comparison": _comparison(subject, against, left) if against else None,
        "confusion": _confusion(joined),
        "warnings": warnings,
    }


# --- what is refused


def _check_measures(designs: set[str], measures: Collection[str], balanced: bool) -> None:
    for measure in measures:
        if designs & set(SOURCES[measure]) or (measure == "precision" and balanced):
            continue
        takes = " or a ".join(f"{design}{'' if design == 'uniform' else '-oriented'}" for design in SOURCES[measure])
        refusal = f"{measure.capitalize()} takes a {takes} set, and none is given."
        if measure == "precision" and "recall" in designs:
            refusal += (
                " A recall-oriented set has as many posts of a rare language as of a common one, so what precision it "
                "gives is that of no stream; --balanced-precision computes it, under that name."
            )
        raise EvaluationError(refusal)
    if balanced and "recall" not in designs:
        raise EvaluationError("--balanced-precision takes a recall-oriented set, and none is given.")


def _check_used(sets: list[GoldSet], wanted: list[str], balanced: bool, against: Subject | None) -> None:
    used = {design for measure in wanted for design in SOURCES[measure]}
    # The uniform set gives natural shares to the balanced precision, and the posts on which two are compared.
    used |= {"recall", "uniform"} if balanced or against else set()
    for gold in sets:
        if gold.design not in used:
            raise EvaluationError(
                f"The gold set {gold.name} is {gold.design}-oriented, which nothing that was asked for is computed "
                "from; leave it out, or ask for more with --measure."
            )
    if against and not {gold.design for gold in sets} & {"recall", "uniform"}:
        raise EvaluationError(
            "Two predictors are compared on uniform and recall-oriented sets, and none is given; on a "
            "precision-oriented set, only posts that one predictor chose were read."
        )


# --- the parts of the report


def _described(subject: Subject, voted: bool) -> dict[str, Any]:
    return {
        "name": subject.name,
        "version": subject.version,
        "spelled": subject.spelled,
        "voted": voted,
        "mapping": {coarse: list(labels) for coarse, labels in subject.mapping.items()},
    }


def _gold(gold: GoldSet, rows: list[GoldRow]) -> dict[str, Any]:
    return {
        "name": gold.name,
        "design": gold.design,
        "folder_name": gold.folder.resolve().name,
        "posts": len(rows),
        "finished": gold.finished,
        "predictor": ", ".join(sorted(set(gold.predictors.values()))),
        "digest": gold.digest,
    }


def _of_sets(sets: Iterable[GoldSet]) -> list[str]:
    return [
        f"The gold set {gold.name} is unfinished: posts that still wait for people are missing from it, and they are "
        "the hard ones."
        for gold in sets
        if not gold.finished
    ]


def _accuracy(joined: Joined) -> dict[str, Any]:
    assert joined.uniform is not None
    assert joined.labelled is not None
    found = {}
    for key, with_und in (("with_und", True), ("without_und", False)):
        found[key] = metrics.accuracy(joined.uniform, with_und=with_und).as_dict()
        found[f"naive_{key}"] = metrics.naive_accuracy(joined.labelled, with_und=with_und).as_dict()
    return found


def _source(own: str, sets: dict[str, Any], joined: Joined) -> str:
    return " and ".join([*([own] if sets else []), *(["uniform"] if joined.uniform else [])])


def _recall(joined: Joined) -> dict[str, Any] | None:
    found = {
        label: metrics.recall(label, joined.uniform, joined.recall)
        for label in metrics.recall_labels(joined.uniform, joined.recall)
    }
    if not found:
        return None
    values = {label: measured.value for label, measured in found.items() if not _twice(label, found, joined)}
    well = {label: value for label, value in values.items() if found[label].posts >= WELL_MEASURED}
    return {
        "source": _source("recall", joined.recall, joined),
        # Und is a row like the others, and without it no mean is one with und.
        "macro": _macros(*((part if UND in part else {}, part) for part in (values, well))),
        "languages": [
            {
                "language": label,
                "name": name_of(label),
                "estimate": measured.as_dict(),
                "note": _note(label, found, joined),
            }
            for label, measured in found.items()
        ],
    }


Values = dict[str, float | None]


def _macros(every: tuple[Values, Values], well: tuple[Values, Values]) -> dict[str, Any]:
    """The means with and without und over all, and over the labels with enough posts: a few are worth little."""
    return _macro(*every) | {"well_measured": {"least_posts": WELL_MEASURED} | _macro(*well)}


def _macro(with_und: Values, without_und: Values) -> dict[str, Any]:
    """Means over what was measured; languages: how many that are, und apart."""
    languages = {label: value for label, value in without_und.items() if label != UND}
    return {
        "with_und": metrics.mean(with_und.values()),
        "without_und": metrics.mean(languages.values()),
        "languages": sum(value is not None for value in languages.values()),
    }


def _twice(label: str, found: Collection[str], joined: Joined) -> bool:
    """Whether a coarse code is there beside labels of its own, which a mean would count twice."""
    return not joined.asked.get(label, frozenset()).isdisjoint(found)


def _note(label: str, found: Collection[str], joined: Joined) -> str:
    finer = sorted(finer for finer, coarse in joined.fold.items() if coarse == label)
    if finer or label not in joined.asked:
        return f"{', '.join(finer)} taken together" if finer else ""
    finer = sorted(joined.asked[label])
    apart = "; its labels have rows of their own, so it is not in the mean" if _twice(label, found, joined) else ""
    return f"{', '.join(finer)} taken together on posts where people used {label}, and nowhere else{apart}"


def _precision(subject: Subject, joined: Joined) -> dict[str, Any] | None:
    found = {
        label: [metrics.precision(label, joined.uniform, joined.precision, with_und=und) for und in (True, False)]
        for label in metrics.precision_labels(joined.uniform, joined.precision)
    }
    if not found:
        return None
    # Else the mean would be that of all the codes that a predictor ever says by mistake.
    there = {UND, *joined.precision, *({cell.truth for cell in joined.labelled.cells} if joined.labelled else ())}
    absent = {label: "" if label in there else "no post in it was found; not in the mean" for label in found}
    averaged = [label for label in found if label in there and not _twice(label, found, joined)]
    well = [label for label in averaged if found[label][0].posts >= WELL_MEASURED]
    notes = {label: [_note(label, found, joined), _foreign(label, subject, joined), absent[label]] for label in found}
    return {
        "source": _source("precision", joined.precision, joined),
        "macro": _macros(
            *(
                ({label: found[label][0].value for label in part}, {label: found[label][1].value for label in part})
                for part in (averaged, well)
            )
        ),
        "languages": [
            {
                "language": label,
                "name": name_of(label),
                "with_und": with_und.as_dict(),
                # Of what a predictor calls undefined, only undefined posts are right.
                "without_und": without_und.as_dict() if label != UND else None,
                "note": "; ".join(filter(None, notes[label])),
            }
            for label, (with_und, without_und) in found.items()
        ],
    }


def _foreign(label: str, subject: Subject, joined: Joined) -> str:
    others = unread_triggers.strangers(subject, joined).get(label)
    return f"drawn by {unread_triggers.spelled(others)}; precision on other posts is unknown" if others else ""


def _recall_check(joined: Joined) -> list[dict[str, Any]] | None:
    assert joined.uniform is not None
    pairs = {}
    for label, found in sorted(joined.recall.items()):
        # Without the posts of the recall set, since the test is of independent samples.
        on_uniform = metrics.recall_on(joined.uniform, label, found)
        if on_uniform.posts and found:
            pairs[label] = metrics.recall_in(found, label), on_uniform
    p_values = [difference(first.estimate, second.estimate) for first, second in pairs.values()]
    return [
        {
            "language": label,
            "name": name_of(label),
            "recall_set": first.as_dict(),
            "uniform": second.as_dict(),
            "p": p,
            "p_holm": adjusted,
        }
        for (label, (first, second)), p, adjusted in zip(pairs.items(), p_values, holm(p_values), strict=True)
    ] or None


def _balanced(joined: Joined) -> dict[str, Any]:
    weights = metrics.natural_weights(joined.uniform) if joined.uniform else None
    return {
        "languages": [
            {
                "language": label,
                "name": name_of(label),
                "balanced": metrics.balanced_precision(label, _as_asked(label, joined)).as_dict(),
                "natural": metrics.balanced_precision(label, _as_asked(label, joined), weights).as_dict()
                if weights and weights.get(label)
                else None,
            }
            for label in sorted(joined.recall)
        ]
    }


def _as_asked(label: str, joined: Joined) -> dict[str, dict[str, str]]:
    """The recall sets as they are for one row: a coarse code that people used has all the posts of its labels."""
    sets: dict[str, dict[str, str]] = {}
    for language, found in joined.recall.items():
        told = {key: joined.within(said, label) for key, said in found.items()}
        sets.setdefault(joined.within(language, label), {}).update(told)
    return sets


def _comparison(first: Subject, second: Subject, left: list[tuple[GoldSet, list[GoldRow]]]) -> dict[str, Any]:
    read = [(gold, rows) for gold, rows in left if gold.design != "precision"]
    # The classes of both, so that neither is blamed for what the other does not tell apart.
    sides = [join(subject, read, [first.mapping, second.mapping]) for subject in (first, second)]
    truths = dict(sides[0].truths)
    if sides[0].labelled:
        truths |= {key: cell.truth for key, cell in sides[0].labelled.posts.items() if cell.read}
    pairs = [
        Pair(truth, *(side.within(side.said[key], truth) == truth for side in sides)) for key, truth in truths.items()
    ]
    return {
        "other": _described(second, any(second.voted_in(gold) for gold, _ in read)),
        "overall": metrics.compared(pairs),
        "together": _together(sides[0].fold),
        "languages": [
            {"language": label, "name": name_of(label)} | row for label, row in metrics.compared_by_label(pairs).items()
        ],
    }


def _together(fold: dict[str, str]) -> dict[str, list[str]]:
    """Class -> the labels that are taken together in it."""
    return {coarse: sorted(fine for fine in fold if fold[fine] == coarse) for coarse in sorted(set(fold.values()))}


def _confusion(joined: Joined) -> dict[str, Any] | None:
    cells = metrics.confusion(joined.uniform, joined.recall)
    if not cells:
        return None
    labels = {label for truth, said, _ in cells for label in (truth, said)}
    return {"labels": sorted(labels, key=lambda label: (label == UND, label)), "cells": [list(cell) for cell in cells]}


# --- on disk


def write_report(report: dict[str, Any], out: Path) -> None:
    """report.json, report.md and report.html into a folder; an earlier evaluation of the predictor is replaced.

    EvaluationError where the folder holds something else or cannot be written; it is then as it was.
    """
    written = {
        "report.json": json.dumps(report, ensure_ascii=False, indent=2) + "\n",
        "report.md": writing.as_markdown(report),
        "report.html": writing.as_html(report),
    }
    name = report["predictor"]["spelled"]
    try:
        with folders.replacing(out.resolve(), "evaluation", name) as folder:
            for file, text in written.items():
                (folder / file).write_text(text, encoding="utf-8")
            manifest = {
                "evaluated": {"name": name},
                "files": {file: store.digest_of(folder / file) for file in sorted(written)},
            }
            (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    except folders.FolderError as error:
        raise EvaluationError(str(error)) from error
