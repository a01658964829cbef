"""The measures and dimensions of reports on evaluations: their names, and a sentence on each measure that needs one."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from annotate.kinds.forms import FORMS


class Measure(NamedTuple):
    """name: at the head of a column. about: what it is, a sentence. is_share: whether it is written in percent.
    is_exact: whether it was counted or is a plain mean, and so has no interval; a number if it is no share.
    is_difference: whether it is written in points, with its sign."""

    name: str
    about: str = ""
    is_share: bool = True
    is_exact: bool = False
    is_difference: bool = False


class Names(dict[str, Measure]):
    """Measure -> its name; forms from outside name their own measures."""

    def __missing__(self, measure: str) -> Measure:
        return {name: Measure(*words) for form in FORMS.values() for name, words in form.measures.items()}[measure]


_NAMES: Mapping[str, Measure] = {
    "accuracy": Measure("accuracy", "Accuracy is the share of units whose predicted label is the gold label."),
    "refused": Measure(
        "refused",
        "A refusal is a unit to which the system gave no label, an empty one in its file. It counts as wrong, and as "
        "the grade that is farthest from gold.",
    ),
    "precision": Measure(
        "precision", "The precision of a label is the share of the units predicted so whose gold label it is."
    ),
    "recall": Measure("recall", "The recall of a label is the share of the units with this gold label that are found."),
    "f1": Measure("F1", "F1 is the harmonic mean of precision and recall."),
    "macro_precision": Measure("macro precision", ""),
    "macro_recall": Measure("macro recall", ""),
    "macro_f1": Measure(
        "macro F1",
        "Macro means are plain means over the labels that occur, in gold or predicted; a label that is never predicted "
        "counts 0. The micro means of precision, recall and F1 are all the accuracy here, as each unit has one label.",
    ),
    "kappa": Measure(
        "Cohen’s kappa",
        "Cohen’s kappa is the agreement of predicted and gold labels beyond chance, 1 at best (Cohen 1960).",
        is_share=False,
    ),
    "mcc": Measure(
        "MCC",
        "MCC is Matthews’ correlation of predicted and gold labels, 1 at best, 0 for chance (Gorodkin 2004).",
        is_share=False,
    ),
    "mae": Measure(
        "mean absolute error", "The mean absolute error is in grades: how many grades a prediction is off.", False
    ),
    "weighted_kappa": Measure(
        "weighted kappa", "Weighted kappa counts an error by the square of its distance in grades (Cohen 1968).", False
    ),
    "ndcg": Measure(
        "nDCG",
        "nDCG is the mean over groups of units, such as the pages of a query, ranked by their predicted grades. "
        "The gain of a page is its grade, discounted by log2(rank + 1). Pages with one prediction share ranks.",
    ),
    "log_loss": Measure("log loss", is_share=False),
    "brier": Measure("Brier score", is_share=False),
    "ece": Measure("expected calibration error"),
    "aurc": Measure(
        "area under risk-coverage",
        "The area under the risk-coverage curve is the mean share of wrong answers at each confidence or above.",
    ),
    "macro_roc_auc": Measure("macro ROC-AUC", is_share=False),
    "macro_average_precision": Measure("macro average precision", is_share=False),
    "roc_auc": Measure("ROC-AUC", is_share=False),
    "average_precision": Measure("average precision", is_share=False),
    "cross_entropy": Measure(
        "soft cross-entropy",
        "The soft cross-entropy and the Manhattan distance compare the scores with the distribution of people’s "
        "answers (LeWiDi); both are small where a system is unsure as people are.",
        is_share=False,
    ),
    "manhattan": Measure("Manhattan distance", is_share=False),
    "threshold": Measure("score from", is_share=False),
    "reached_precision": Measure("precision"),
    "recall_there": Measure("recall", is_exact=True),
    "coverage_there": Measure("coverage", is_exact=True),
    "least_score": Measure("score from", is_share=False),
    "accuracy_there": Measure("accuracy", is_exact=True),
    "winning_rate": Measure("winning rate", is_exact=True),
    "pairwise_agreement": Measure("pairwise agreement"),
    "agreement_difference": Measure("less people’s", is_difference=True),
    "alpha": Measure("Krippendorff’s alpha", "", False),
    "judge_close": Measure("judge as close", is_exact=True),
    "person_close": Measure("person as close", is_exact=True),
    "corpus_share": Measure("share in the corpus", ""),
    "answers_needed": Measure("further answers", is_share=False, is_exact=True),
    "bleu4": Measure(
        "BLEU-4",
        "BLEU-4 is sacrebleu’s, of all texts of a test file together, in lower case: how many of their words, and runs "
        "of up to four words, are in those of people; 100% at best.",
    ),
    "mean_accuracy": Measure("mean accuracy", "Mean accuracy is the mean over pairs of train and test language."),
    "transfer": Measure("transfer", "Transfer is the mean accuracy over pairs of two different languages."),
    "P": Measure("P@K", "P@K is the share of gold labels among the first K labels of a document’s ranking."),
    "R": Measure("R@K", "R@K is the share of a document’s gold labels that are among its first K."),
    "RP": Measure("RP@K", "RP@K is the number of gold labels among the first K, divided by the most there can be."),
    "nDCG": Measure(
        "nDCG@K", "nDCG@K is the sum of 1/log2(rank + 1) over those gold labels, divided by that of the best ranking."
    ),
    "micro_precision": Measure("micro precision", "Micro precision is the share of the labels given that are right."),
    "micro_recall": Measure("micro recall", "Micro recall is the share of the gold labels that are given."),
    "micro_f1": Measure("micro F1", "Micro F1 is the harmonic mean of micro precision and recall."),
    "weighted_rouge": Measure("weighted ROUGE", "Weighted ROUGE is ROUGE-1/6 + ROUGE-2/3 + ROUGE-3/2."),
    "rouge1": Measure(
        "ROUGE-1", "ROUGE-n is the F1 of distinct n-grams of words, without full stops, in small letters."
    ),
    "rouge2": Measure("ROUGE-2", ""),
    "rouge3": Measure("ROUGE-3", ""),
    "dist1": Measure(
        "Dist-1",
        "Dist-1 and Dist-2 are the distinct words, and the distinct pairs of words, of the replies that counted, "
        "divided by the number of their words. They fall as examples are added. Their intervals are somewhat too wide.",
    ),
    "dist2": Measure("Dist-2", ""),
    "p1": Measure(
        "precision at one", "Precision at one is the share of references in the response set that were suggested first."
    ),
    "mrr": Measure(
        "MRR", "MRR is the mean of 1/rank of these references among the suggestions, 0 where they are none of them."
    ),
    "width_share": Measure("share of the width", is_exact=True),
    "naive_accuracy": Measure("naive"),
    "naive_recall": Measure(
        "naive recall", "Naive figures take the detectors’ agreement for the truth. They are not to be quoted."
    ),
    "naive_precision": Measure("naive precision"),
    "mean_recall": Measure("macro recall", "Macro means are plain means over labels."),
    "mean_precision": Measure("macro precision"),
    "mean_f1": Measure("macro F1"),
    "precision_without_und": Measure("without und"),
    "reach": Measure("within reach", "Within reach is the part of a label’s posts for which its recall set stands."),
    "recall_set": Measure("recall set"),
    "uniform_set": Measure("uniform set"),
    "visible": Measure("would see", is_exact=True),
    "if_wrong": Measure("if wrong", is_exact=True),
    "if_right": Measure("if right", is_exact=True),
    "never_shown": Measure("never shown", is_exact=True),
    "posts_never_shown": Measure("posts never shown", is_share=False, is_exact=True),
    "outside": Measure("outside the frame", is_share=False, is_exact=True),
    "balanced_precision": Measure("balanced"),
    "natural_precision": Measure("reweighted to natural shares"),
    "vanished": Measure("vanished", is_share=False, is_exact=True),
    "erased": Measure("erased", is_share=False, is_exact=True),
}
MEASURES = Names(_NAMES)
# Row of the table in docs/explanation/measuring.md -> the measures that it explains. Of two rows with the same measure,
# the first is for posts.
METHODS: Mapping[str, Collection[str]] = {
    "Accuracy": ("accuracy", "width_share"),
    "Recall": ("recall",),
    "Precision": ("precision", "precision_without_und", "balanced_precision", "natural_precision"),
    "F1": ("f1",),
    "Means over labels": ("mean_recall", "mean_precision", "mean_f1"),
    "Recall of two frames": ("reach", "recall_set", "uniform_set"),
    "Naive figures": ("naive_accuracy", "naive_recall", "naive_precision"),
    "One label per unit": (
        *("accuracy", "precision", "recall", "f1", "macro_precision", "macro_recall", "macro_f1"),
        *("kappa", "mcc", "mae", "weighted_kappa"),
    ),
    "Scores": (
        *("log_loss", "brier", "ece", "aurc", "macro_roc_auc", "macro_average_precision", "roc_auc"),
        *("average_precision", "cross_entropy", "manhattan"),
    ),
    "Thresholds": ("threshold", "reached_precision", "least_score"),
    "Share in the corpus": ("corpus_share",),
    "Agreement with people": ("pairwise_agreement", "agreement_difference", "alpha"),
    "Queries and texts": ("ndcg", "bleu4"),
    "Balanced sets": ("mean_accuracy", "transfer"),
    "Ranked labels": ("P", "R", "RP", "nDCG"),
    "Several labels": ("micro_precision", "micro_recall", "micro_f1"),
    "Suggested replies": ("weighted_rouge", "rouge1", "rouge2", "rouge3", "dist1", "dist2", "p1", "mrr"),
    "Without an interval": (
        *("refused", "recall_there", "coverage_there", "accuracy_there", "winning_rate", "judge_close", "person_close"),
        *("answers_needed", "visible", "if_wrong", "if_right", "never_shown", "posts_never_shown", "outside"),
        *("vanished", "erased"),
    ),
}
DIFFERENCE = "Difference of two systems"  # the row of all of them
# Row of that table -> its anchor, as pages of the documentation have it.
ANCHORS = {row: f"row-{row.lower().replace(' ', '-')}" for row in (*METHODS, DIFFERENCE)}


def method(measure: str, form: str) -> str:
    """The row that explains a measure. form: of the report."""
    rows = [row for row, measures in METHODS.items() if measure in measures] or ["One label per unit"]
    return rows[0] if form == "posts" else rows[-1]


DIMENSIONS: Mapping[str, str] = {
    "people": "agreement among people",
    "way": "way of estimating",
    "needed": "way",
    "answers": "answers",
    "wished": "wished precision",
    "train": "trained on",
    "test": "tested on",
    "k": "K",
    "false_yes": "false Yes",
}
