"""Blind answers: reference labels for a predictor whose suggestions the annotators saw.

Annotators adopt suggestions, so labels given with suggestions favour the predictor that made them. Its reference labels
are therefore computed from answers given without seeing its suggestion.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from annotate.core.aggregation.answer_table import at_first
from annotate.core.draws.hash_order import lot
from annotate.evaluation.subjects import is_file
from annotate.kinds.forms import FORMS
from corpora.predictions.predictor_labels import find_imported

# Units left out of the set for these reasons are measured too, because they may have blind answers.
MEASURED_REASONS = ("no_majority", "skipped")


class Reference(NamedTuple):
    """A reference label from blind answers.

    chance: probability that a unit with this number of answers has at least one blind answer.
    """

    label: str
    chance: float


ReferenceOf = Callable[[Mapping[str, Any]], Reference | None]


def suggesters(manifest: Mapping[str, Any]) -> list[str]:
    """Return the predictors whose labels the annotators saw, as NAME@VERSION."""
    return list((manifest.get("task") or {}).get("suggest") or ())


def has_suggested(manifest: Mapping[str, Any], corpus: str, source: str, is_same: Callable[[], bool]) -> bool:
    """Return whether a system suggested labels to a set's annotators.

    manifest: the set's manifest.
    corpus: corpus name.
    source: path of a file, or name of a predictor.
    is_same: returns whether a file's labels are the suggested labels.
    """
    names = suggesters(manifest)
    return bool(names) and (is_same() if is_file(source) else str(find_imported(corpus, source)) in names)


def build_reference(manifest: Mapping[str, Any]) -> ReferenceOf:
    """Return a function that computes a row's reference label from its blind answers, or None if there are none.

    Only the first valid answers are used, as many as were originally requested. Those given without a suggestion are
    aggregated as in the task. If they do not decide a label, one of them is drawn at random, seeded with the row's id.
    """
    task = manifest["task"]
    aggregate = FORMS[task["form"]].aggregations[task.get("aggregation") or "majority"]
    first = at_first(int(task["redundancy"]), stop_early=bool(task.get("stop_early")))

    def reference(row: Mapping[str, Any]) -> Reference | None:
        answers = [judgment for judgment in row["judgments"] or () if _counts(judgment)][:first]
        blind = [judgment for judgment in answers if not judgment["suggestions_shown"]]
        if not blind:
            return None
        labels = [judgment["label"] for judgment in blind]
        label = aggregate(labels, task["labels"], len(labels)) or _draw_answer(row["id"], blind)["label"]
        return Reference(label, 1 - (1 - task["blind_share"]) ** len(answers))

    return reference


def _counts(judgment: Mapping[str, Any]) -> bool:
    is_answer = judgment["kind"] == "answer" and judgment["label"] and not judgment["voided_at"]
    return bool(is_answer and judgment["suggestions_shown"] is not None)


def _draw_answer(key: str, answers: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return min(answers, key=lambda answer: lot("", "blind reference", f"{key} {answer['annotator']}"))


def statement(names: Sequence[str], units: int, noun: str) -> str:
    """Return the sentence for a report whose figures are measured on blind answers."""
    return (
        f"{', '.join(names)} suggested labels to the people who made this set, so everything is measured on the "
        f"{units:,} {noun}s that somebody answered without seeing a suggestion. The reference label is the majority of "
        "these answers, or a random one of them if there is no majority. Chances and weights include the probability "
        "of such an answer."
    )


def warning(names: Sequence[str]) -> str:
    """Return the warning for a report on a system that made no suggestions."""
    return (
        f"People saw labels by {', '.join(names)} while they answered, so the labels of this set favour systems that "
        "resemble it."
    )
