"""Predictions in files of a published format: the sets that they are for, and what measures each format."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from annotate.evaluation import language_pairs, ranked_documents, suggested_replies, xglue_tasks
from annotate.evaluation.given import EvaluationError
from annotate.evaluation.prediction_files import OF_PAIRS, read_published_sets

# The format of a set -> what makes the report of (predictions, sets, other predictions to compare them with).
GRADED: Mapping[str, Callable[..., dict[str, Any]]] = {
    "XGLUE": xglue_tasks.grade,
    "MLDoc": language_pairs.grade,
    "EURLEX57K": ranked_documents.grade,
    OF_PAIRS: suggested_replies.grade,
}
# The format of a set -> what may be chosen for its report besides, by the names of options.
CHOICES: Mapping[str, Collection[str]] = {"EURLEX57K": ("split", "first", "threshold", "frequent_over")}


def grade(
    predictions: Path,
    folders: Sequence[Path],
    *,
    against: Path | None = None,
    unfinished: bool = False,
    chosen: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The report on the predictions in a folder or file. chosen: of CHOICES, what is not to be as usual.

    EvaluationError or GoldSetError if they do not fit the sets.
    """
    sets = read_published_sets(folders, unfinished=unfinished)
    first, *others = sets
    for gold in others:
        if gold.format != first.format:
            raise EvaluationError(
                f"{first.folder} is a set in the format {first.format} and {gold.folder} in {gold.format}, whose "
                "predictions are not in one folder; measure on each by itself."
            )
    if first.format not in GRADED:
        *formats, last = GRADED
        raise EvaluationError(
            f"{first.folder} is a set in the format {first.format}, for which no predictions can be measured; there "
            f"are measures for {', '.join(formats)} and {last}."
        )
    chosen = chosen or {}
    for name in (name for name in chosen if name not in CHOICES.get(first.format, ())):
        raise EvaluationError(
            f"--{name.replace('_', '-')} is for ranked labels of documents, and {first.folder} is a set in the format "
            f"{first.format}; leave it out."
        )
    return GRADED[first.format](predictions, sets, against, **chosen)
