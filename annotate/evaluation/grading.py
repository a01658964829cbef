"""Predictions in files of a published format: the sets that they are for, and what measures each format."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from annotate.evaluation import mldoc_grading, xglue_grading
from annotate.evaluation.given import EvaluationError
from annotate.evaluation.prediction_files import read_published_sets

# The format of a set -> what makes the report of (predictions, sets, other predictions to compare them with).
GRADED: Mapping[str, Callable[..., dict[str, Any]]] = {"XGLUE": xglue_grading.grade, "MLDoc": mldoc_grading.grade}


def check_of_records(of_posts: Collection[str]) -> None:
    """of_posts: options that were given and are for sets of posts. EvaluationError if there is one."""
    for option in of_posts:
        raise EvaluationError(
            f"{option} is for sets of posts; with --predictions give the sets of records with --gold, and nothing else."
        )


def grade(
    predictions: Path, folders: Sequence[Path], *, against: Path | None = None, unfinished: bool = False
) -> dict[str, Any]:
    """The report on the predictions in a folder. EvaluationError or GoldSetError if they do not fit the sets."""
    sets = read_published_sets(folders, unfinished=unfinished)
    first, *others = sets
    for gold in others:
        if gold.format != first.format:
            raise EvaluationError(
                f"{first.folder} is a set in the format {first.format} and {gold.folder} in {gold.format}, whose "
                "predictions are not in one folder; measure on each by itself."
            )
    if first.format not in GRADED:
        raise EvaluationError(
            f"{first.folder} is a set in the format {first.format}, for which no predictions can be measured; there "
            f"are measures for {' and '.join(GRADED)}."
        )
    return GRADED[first.format](predictions, sets, against)
