"""The answer form for one label from a list. Its canonical text is the label's code."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from annotate.core.aggregation.answer_table import Bools, Floats
from annotate.core.measures import classification as classes
from annotate.core.measures.classification import Measure, Paired
from annotate.core.measures.figure_rows import (
    Row,
    accuracy_apart,
    difference_row,
    measures_apart,
    row,
    why_withheld,
)
from annotate.kinds.forms.form import Form, register

BY_LABEL: Mapping[str, Measure] = {"precision": classes.precisions, "recall": classes.recalls, "f1": classes.f1s}


class Measures:
    """Measures that compare predicted labels with gold labels.

    Macro averages are taken over the labels that occur in the gold set or the predictions. A label that is never
    predicted has a precision of 0. A prediction that is not one of the labels is a refusal, and counts as wrong.
    """

    head = ("accuracy", "macro_f1", "kappa")

    def __init__(self, pairs: Paired, labels: Sequence[str]) -> None:
        self.pairs, self.labels = pairs, labels
        margins = pairs.margins
        self.occurring: Bools = (margins.gold + margins.predicted) > 0
        self.occurring[len(labels) :] &= margins.gold[len(labels) :] > 0
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
            names, is_gold, is_said = {"label": label}, pairs.gold == index, pairs.predicted == index
            if self.occurring[index]:
                gold, predicted, either = (int(domain.sum()) for domain in (is_gold, is_said, is_gold | is_said))
                yield row(
                    "precision", names, pairs.share(is_gold, is_said), predicted, "" if predicted else "never predicted"
                )
                yield row("recall", names, pairs.share(is_said, is_gold), gold, "" if gold else "never in gold")
                yield row("f1", names, pairs.estimate(partial(_f1, index=index), [either]), either)

    @property
    def units_of_labels(self) -> list[int]:
        """The number of units on which each label is gold or predicted, for labels that occur."""
        gold, predicted = self.pairs.gold, self.pairs.predicted
        return [int(((gold == index) | (predicted == index)).sum()) for index in np.flatnonzero(self.occurring)]

    @property
    def macros(self) -> dict[str, Measure]:
        return {f"macro_{name}": classes.macro(measure, self.occurring) for name, measure in BY_LABEL.items()}

    def sliced(self, names: Mapping[str, str], in_slice: Bools) -> Iterator[Row]:
        """Yield accuracy and macro F1 for some of the units. The average is taken over the labels that occur in them.

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
            yield accuracy_apart(names, self.pairs.where(in_slice), other.pairs.where(in_slice))

    def _all_compared(self, other: "Measures") -> Iterator[Row]:
        yield accuracy_apart({}, self.pairs, other.pairs)
        coefficients = {"kappa": classes.kappa, "mcc": classes.matthews}
        yield from measures_apart(self.pairs, other.pairs, self.macros | coefficients, other.macros | coefficients)

    def _labels_compared(self, other: "Measures") -> Iterator[Row]:
        """Yield the differences in precision, recall and F1 for each label that occurs. Only F1 has a p-value."""
        label_indices = np.flatnonzero(self.occurring | other.occurring)

        def measure(of: classes.Margins) -> Floats:
            found = np.stack([each(of)[..., label_indices] for each in BY_LABEL.values()], axis=-1)
            return found.reshape(*of.gold.shape[:-1], -1)

        found = iter(classes.apart(self.pairs, other.pairs, measure, most=[1.0] * (len(BY_LABEL) * len(label_indices))))
        for index in label_indices:
            is_gold, predicted, other_predicted = (
                each == index for each in (self.pairs.gold, self.pairs.predicted, other.pairs.predicted)
            )
            domains = (predicted | other_predicted, is_gold, is_gold | predicted | other_predicted)
            notes = ("" if predicted.any() and other_predicted.any() else "never predicted by one of the two", "", "")
            for name, (difference, p), units, note in zip(BY_LABEL, found, domains, notes, strict=False):
                note = note or why_withheld(difference, int(units.sum()), self.pairs)
                difference, p = (None, None) if note else (difference, p if name == "f1" else None)
                yield difference_row(name, {"label": self.labels[int(index)]}, difference, int(units.sum()), note, p)


def _f1(margins: classes.Margins, index: int) -> Floats:
    """Return the F1 of one label."""
    return classes.f1s(margins)[..., index]


def coefficient(name: str, pairs: Paired, measure: Measure) -> Row:
    """Return the row of a measure whose values are between -1 and 1, such as kappa, for all units."""
    estimate, units = pairs.coefficient(measure), len(pairs.gold)
    return row(name, {}, estimate, units, why_withheld(estimate, units, pairs))


class Choice(Form):
    slug = "choice"
    Measures = Measures


CHOICE = register(Choice())
