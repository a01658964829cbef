"""The blind answers of a set in which people saw suggestions, on which a predictor that suggested is measured.

People adopt suggestions, so labels made with them favour the predictor that suggested. Its reference labels are
therefore made from the answers that were given without seeing its label.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from annotate.core.aggregation.answer_table import at_first
from annotate.core.draws.hash_order import lot
from annotate.evaluation.subjects import is_file
from annotate.kinds.forms import FORMS
from corpora.predictions.predictor_labels import find_imported

# Units without a label that count here, because people disagreed about them or could not tell.
COUNTED_TOO = ("no_majority", "skipped")


class Reference(NamedTuple):
    """A reference label from blind answers.

    chance: probability with which a unit with as many answers has a blind one.
    """

    label: str
    chance: float


ReferenceOf = Callable[[Mapping[str, Any]], Reference | None]


def suggesters(manifest: Mapping[str, Any]) -> list[str]:
    """Return the predictors whose labels people saw, as NAME@VERSION."""
    return list((manifest.get("task") or {}).get("suggest") or ())


def has_suggested(manifest: Mapping[str, Any], corpus: str, spelled: str, is_same: Callable[[], bool]) -> bool:
    """Return whether a measured system suggested labels to the people who made a set.

    spelled: path of a file, or name of a predictor.
    is_same: function that returns whether the labels in a file are the suggested ones.
    """
    names = suggesters(manifest)
    return bool(names) and (is_same() if is_file(spelled) else str(find_imported(corpus, spelled)) in names)


def reference_of(manifest: Mapping[str, Any]) -> ReferenceOf:
    """Return a function that makes a row's reference label from its blind answers; None if it has none.

    Of the answers in force that were asked for at first, those without a suggestion count. Their label is aggregated as
    in the task. If this gives none, such as for two different answers, it is that of one answer, drawn by the row's id.
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
        label = aggregate(labels, task["labels"], len(labels)) or _one(row["id"], blind)["label"]
        return Reference(label, 1 - (1 - task["blind_share"]) ** len(answers))

    return reference


def _counts(judgment: Mapping[str, Any]) -> bool:
    is_answer = judgment["kind"] == "answer" and judgment["label"] and not judgment["voided_at"]
    return bool(is_answer and judgment["suggestions_shown"] is not None)


def _one(key: str, answers: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return min(answers, key=lambda answer: lot("", "blind reference", f"{key} {answer['annotator']}"))


def statement(names: Sequence[str], units: int, noun: str) -> str:
    """Return the sentence of a report that is measured on blind answers."""
    return (
        f"{', '.join(names)} suggested labels to the people who made this set, so everything is measured on the "
        f"{units:,} {noun}s that somebody answered without seeing a suggestion. The reference label is that of most of "
        "these answers, or of one of them at random if none has most. Chances and weights include the probability of "
        "such an answer."
    )


def warning(names: Sequence[str]) -> str:
    """Return the warning of a report on another system."""
    return (
        f"People saw labels by {', '.join(names)} while they answered, so the labels of this set favour systems that "
        "resemble it."
    )
