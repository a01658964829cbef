"""The answer forms for a single label: from a list, from a scale of grades, or the better of two systems.

The canonical text is the label. In comparisons, it is the name of the preferred system, or `tie`. Annotators don't see
the systems' names, but two sides, and submit one of SIDES. `from_side` and `to_side` convert between sides and systems.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from annotate.core.aggregation.answer_table import Bools, Floats, majority, median
from annotate.core.agreement import coefficients
from annotate.core.measures import classification as classes
from annotate.core.measures.classification import Measure, Paired
from annotate.core.measures.figure_rows import (
    Row,
    compare_accuracy,
    compare_measures,
    difference_row,
    row,
    why_withheld,
)
from annotate.core.measures.ranked_labels import mean_ndcg
from annotate.kinds.forms.form import Form, register

BY_LABEL: Mapping[str, Measure] = {"precision": classes.precisions, "recall": classes.recalls, "f1": classes.f1s}


class Measures:
    """Measures that compare predicted labels with gold labels.

    Macro averages include the labels that occur in the gold set or the predictions. A label that is never predicted has
    a precision of 0. A prediction that is not one of the labels counts as a refusal, which is wrong.
    """

    head = ("accuracy", "macro_f1", "kappa")

    def __init__(self, pairs: Paired, labels: Sequence[str]) -> None:
        self.pairs, self.labels = pairs, labels
        margins = pairs.margins
        self.has_units: Bools = (margins.gold + margins.predicted) > 0
        self.has_units[len(labels) :] &= margins.gold[len(labels) :] > 0
        self.refused: Bools = pairs.predicted >= len(labels)

    def rows(self) -> Iterator[Row]:
        pairs, units = self.pairs, len(self.pairs.gold)
        all_units = np.ones(units, dtype=np.bool_)
        yield row("accuracy", {}, pairs.share(pairs.right, all_units), units)
        if number := int(self.refused.sum()):
            yield row("refused", {}, pairs.share(self.refused, all_units), units, f"{number:,} of {units:,}")
        for name, measure in self.macros.items():
            yield row(name, {}, pairs.estimate(measure, self.units_of_labels), units)
        yield coefficient("kappa", pairs, classes.kappa)
        yield coefficient("mcc", pairs, classes.matthews)
        for index, label in enumerate(self.labels):
            names, is_gold, is_predicted = {"label": label}, pairs.gold == index, pairs.predicted == index
            if self.has_units[index]:
                domains = is_gold, is_predicted, is_gold | is_predicted
                gold, predicted, either = (int(domain.sum()) for domain in domains)
                note = "" if predicted else "never predicted"
                yield row("precision", names, pairs.share(is_gold, is_predicted), predicted, note)
                yield row("recall", names, pairs.share(is_predicted, is_gold), gold, "" if gold else "never in gold")
                yield row("f1", names, pairs.estimate(partial(_f1, index=index), [either]), either)

    @property
    def units_of_labels(self) -> list[int]:
        """How many units have each label as the gold label or the prediction. Labels that never occur are left out."""
        gold, predicted = self.pairs.gold, self.pairs.predicted
        return [int(((gold == index) | (predicted == index)).sum()) for index in np.flatnonzero(self.has_units)]

    @property
    def macros(self) -> dict[str, Measure]:
        return {f"macro_{name}": classes.macro(measure, self.has_units) for name, measure in BY_LABEL.items()}

    def sliced(self, names: Mapping[str, str], in_slice: Bools) -> Iterator[Row]:
        """Yield accuracy and macro F1 for a slice of the units. Macro F1 averages over the labels in the slice.

        names: names of the slice, for the rows
        in_slice: whether each unit belongs to the slice (U)
        """
        part = Measures(self.pairs.where(in_slice), self.labels)
        pairs, units = part.pairs, len(part.pairs.gold)
        accuracy = row("accuracy", names, pairs.share(pairs.right, np.ones(units, dtype=np.bool_)), units)
        yield accuracy | {"count": min(accuracy["count"], units)}
        macro_f1 = row("macro_f1", names, pairs.estimate(part.macros["macro_f1"], part.units_of_labels), units)
        yield macro_f1 | {"count": None}  # an average over labels has no number of units

    def compared(self, other: "Measures", slices: Iterable[tuple[Mapping[str, str], Bools]]) -> Iterator[Row]:
        """Yield the differences from another system on the same units: for all units, by label and by slice."""
        yield from self._all_compared(other)
        yield from self._labels_compared(other)
        for names, in_slice in slices:
            yield compare_accuracy(names, self.pairs.where(in_slice), other.pairs.where(in_slice))

    def _all_compared(self, other: "Measures") -> Iterator[Row]:
        yield compare_accuracy({}, self.pairs, other.pairs)
        coefficients = {"kappa": classes.kappa, "mcc": classes.matthews}
        yield from compare_measures(self.pairs, other.pairs, self.macros | coefficients, other.macros | coefficients)

    def _labels_compared(self, other: "Measures") -> Iterator[Row]:
        """Yield the differences in precision, recall and F1 for each label that occurs. Only F1 has a p-value."""
        label_indices = np.flatnonzero(self.has_units | other.has_units)

        def measure(margins: classes.Margins) -> Floats:
            values = np.stack([function(margins)[..., label_indices] for function in BY_LABEL.values()], axis=-1)
            return values.reshape(*margins.gold.shape[:-1], -1)

        most = [1.0] * (len(BY_LABEL) * len(label_indices))
        differences = iter(classes.compare(self.pairs, other.pairs, measure, most=most))
        for index in label_indices:
            columns = (self.pairs.gold, self.pairs.predicted, other.pairs.predicted)
            is_gold, predicted, other_predicted = (column == index for column in columns)
            domains = (predicted | other_predicted, is_gold, is_gold | predicted | other_predicted)
            notes = ("" if predicted.any() and other_predicted.any() else "never predicted by one of the two", "", "")
            for name, (difference, p), units, note in zip(BY_LABEL, differences, domains, notes, strict=False):
                note = note or why_withheld(difference, int(units.sum()), self.pairs)
                difference, p = (None, None) if note else (difference, p if name == "f1" else None)
                yield difference_row(name, {"label": self.labels[int(index)]}, difference, int(units.sum()), note, p)


def _f1(margins: classes.Margins, index: int) -> Floats:
    """Return the F1 of one label."""
    return classes.f1s(margins)[..., index]


def coefficient(name: str, pairs: Paired, measure: Measure) -> Row:
    """Return the row for a coefficient between -1 and 1, such as kappa, computed over all units."""
    estimate, units = pairs.coefficient(measure), len(pairs.gold)
    return row(name, {}, estimate, units, why_withheld(estimate, units, pairs))


class Choice(Form):
    slug = "choice"
    controls: tuple[str, ...] = ("suggestions",)
    fits_tools = True
    Measures = Measures


CHOICE = register(Choice())


# --- Grades, best first. They have a median and distances.


class GradeMeasures(Measures):
    """Measures of predicted grades, which also use the distance between grades and the ranking of pages.

    A prediction that is not a grade is a refusal. It is scored as the grade farthest from the gold grade, and its page
    is ranked last.
    """

    head = ("accuracy", "mae", "weighted_kappa")

    @property
    def graded(self) -> Paired:
        """The pairs of gold and predicted grades, with each refusal replaced by the farthest grade."""
        gold, worst = self.pairs.gold, len(self.labels) - 1
        farthest = np.where(2 * gold < worst, worst, 0)
        return replace(self.pairs, predicted=np.where(self.refused, farthest, self.pairs.predicted))

    def rows(self) -> Iterator[Row]:
        yield from super().rows()
        pairs, graded, units = self.pairs, self.graded, len(self.pairs.gold)
        distance = pairs.mean(np.abs(pairs.gold - graded.predicted).astype(np.float64))
        yield row("mae", {}, distance, units, why_withheld(distance, units, pairs))
        yield coefficient("weighted_kappa", graded, classes.weighted_kappa)
        if pairs.groups is not None:
            grade = len(self.labels) - 1
            pages = sorted(zip(pairs.groups.tolist(), grade - pairs.gold, grade - pairs.predicted, strict=True))
            ndcg = mean_ndcg(
                ((str(group), float(true), float(predicted)) for group, true, predicted in pages), seed="ndcg"
            )
            yield row("ndcg", {}, ndcg, ndcg.queries, "" if ndcg.queries else "no group has two items")

    def _all_compared(self, other: Measures) -> Iterator[Row]:
        assert isinstance(other, GradeMeasures)
        yield from super()._all_compared(other)
        farthest = float(max(1, len(self.labels) - 1))
        distance, kappa = {"mae": classes.mean_absolute_error}, {"weighted_kappa": classes.weighted_kappa}
        yield from compare_measures(self.graded, other.graded, distance, most=farthest)
        yield from compare_measures(self.graded, other.graded, kappa)


class Grades(Choice):
    slug = "grades"
    aggregations = {"majority": majority, "median": median}
    Measures = GradeMeasures

    def distances(self, values: Sequence[str]) -> dict[str, coefficients.Distance]:
        return super().distances(values) | {"ordinal": coefficients.ordinal}


GRADES = register(Grades())


# --- Comparisons of two systems.


FIRST, SECOND, TIE = SIDES = ("first", "second", "tie")
# Words that can't be names of systems, because they have a special meaning. Reports use `none` if there is no majority.
RESERVED_NAMES = frozenset({*SIDES, "none"})
SYSTEM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}", re.ASCII)


def check_system(name: str) -> None:
    """Raise ValueError if a name is not a valid system name."""
    if name in RESERVED_NAMES:
        raise ValueError(f"{name} has a special meaning and cannot be the name of a system. Choose another name.")
    if not SYSTEM.fullmatch(name):
        raise ValueError(
            f"{name!r} is not a valid name for a system. Use up to 40 letters a to z, digits, dots, _ and -, starting "
            "with a letter or a digit."
        )


class Pair(Choice):
    slug = "pair"
    controls = ("sides", "suggestions")
    imports = "pairs"
    fits_tools = False
    about = ("The order of the two systems is random for each annotator. An answer is the preferred system, or tie.",)
    refuses_files = "shows two sets side by side, which a file cannot do. Decide on its pages or through the API."

    def from_side(self, sent: str, first: str, second: str) -> str:
        """Convert a submitted side to its canonical text; "" if nothing was submitted.

        first, second: names of the systems on the two sides, as the annotator saw them

        Raise ValueError if the submitted text is not a side. Names of systems are also rejected: if they were accepted,
        an annotator could find out which system is on which side.
        """
        if not sent:
            return ""
        self.check(sent, SIDES)
        return {FIRST: first, SECOND: second, TIE: TIE}[sent]

    def to_side(self, text: str, first: str) -> str:
        """Convert a canonical text to the side that the annotator saw; "" if there is no answer.

        first: name of the system that the annotator saw on the first side
        """
        return text if text in ("", TIE) else FIRST if text == first else SECOND

    def sent(self, labels: Sequence[str], answers: Iterable[str]) -> list[str]:
        """Return the sides. Annotators must not learn the systems' names."""
        return list(answers)

    def filters(self, labels: Sequence[str]) -> Sequence[str]:
        return ()
