"""Predictions for exported records, measured as XGLUE's evaluation does: accuracy, nDCG by query, BLEU-4.

Measured for each language, and averaged with all languages counted alike. The report is one dict that JSON can hold,
like that of evaluate.py; reports/xglue_report.py says it in words.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from annotate.core.bleu import corpus_bleu
from annotate.core.estimation import proportion
from annotate.core.ranking import mean_ndcg
from annotate.evaluation.given import EvaluationError
from annotate.evaluation.metrics import mean
from annotate.evaluation.prediction_files import PublishedSet, unfinished_ones
from annotate.evaluation.xglue_predictions import Graded, Measured, check_sets, read_predictions
from annotate.kinds.labels import label_name
from annotate.reports import xglue_report


def grade(predictions: Path, sets: Sequence[PublishedSet], against: Path | None = None) -> dict[str, Any]:
    """The report. EvaluationError if the predictions do not fit the sets."""
    if against:
        raise EvaluationError("--against is not for XGLUE's tasks; measure each folder by itself.")
    check_sets(sets)
    graded = read_predictions(predictions, sets)
    name = predictions.resolve().name
    return {
        "kind": xglue_report.KIND,
        "predictor": {"name": name, "version": "", "spelled": name},
        "gold": [gold.described() for gold in sets],
        **{part.task: _task(part) for part in graded},
        "warnings": [*unfinished_ones(sets), *_extra(graded)],
    }


def _task(part: Graded) -> dict[str, Any]:
    metric, measure = MEASURES[part.task]
    rows = [
        {
            "language": each.language,
            "name": label_name(each.language),
            "rows": len(each.truth),
            **measure(each, f"{part.gold.digest}:{part.task}:{each.language}"),
        }
        for each in part.languages
    ]
    values = [row["estimate"]["value"] for row in rows]
    return {
        "metric": metric,
        "set": part.gold.name,
        "average": mean(values),
        "averaged": sum(value is not None for value in values),
        "languages": rows,
    }


def _accuracy(each: Measured, seed: str) -> dict[str, Any]:
    right = sum(said == truth for said, truth in zip(each.said, each.truth, strict=True))
    return {"estimate": proportion(right, len(each.truth)).as_dict()}


def _ndcg(each: Measured, seed: str) -> dict[str, Any]:
    pages = zip(each.groups, map(float, each.truth), map(float, each.said), strict=True)
    found = asdict(mean_ndcg(pages, seed=seed))
    return {"estimate": {key: found.pop(key) for key in ("value", "low", "high")}, **found}


def _bleu(each: Measured, seed: str) -> dict[str, Any]:
    found = asdict(corpus_bleu(each.said, each.truth, seed=seed))
    return {"estimate": {key: found.pop(key) for key in ("value", "low", "high")}, **found}


# XGLUE's task -> its metric, and the function that computes it from one language's test rows.
MEASURES: dict[str, tuple[str, Callable[[Measured, str], dict[str, Any]]]] = {
    "qadsm": ("accuracy", _accuracy),
    "qam": ("accuracy", _accuracy),
    "wpr": ("nDCG", _ndcg),
    "qg": ("BLEU-4", _bleu),
}


def _extra(graded: Iterable[Graded]) -> list[str]:
    return [
        f"There are also predictions of {part.task.upper()} in {', '.join(part.extra)}, but the set "
        f"{part.gold.name} has no test rows there; they are not measured."
        for part in graded
        if part.extra
    ]
