"""The answer form for one of several grades, best first. Grades have a median and distances."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from annotate.core.aggregation.answer_table import majority, median
from annotate.core.agreement import coefficients
from annotate.core.measures import classification as classes
from annotate.core.measures.classification import Paired
from annotate.core.measures.figure_rows import Row, measures_apart, resampled, row, why_withheld
from annotate.core.measures.ranked_labels import mean_ndcg
from annotate.kinds.forms import choice
from annotate.kinds.forms.form import register


class Measures(choice.Measures):
    """Measures of predicted grades, some of which use the distance between grades or the ranking of pages.

    A prediction that is not a grade is a refusal. It counts as the grade that is farthest from the gold grade, and its
    page is ranked last.
    """

    head = ("accuracy", "mae", "weighted_kappa")

    @property
    def graded(self) -> Paired:
        """The pairs of gold and predicted grades, in which each refusal is replaced by the farthest grade."""
        gold, worst = self.pairs.gold, len(self.labels) - 1
        farthest = np.where(2 * gold < worst, worst, 0)
        return replace(self.pairs, predicted=np.where(self.refused, farthest, self.pairs.predicted))

    def rows(self) -> Iterator[Row]:
        yield from super().rows()
        pairs, graded, units = self.pairs, self.graded, len(self.pairs.gold)
        distance = pairs.mean(np.abs(pairs.gold - graded.predicted).astype(np.float64))
        yield row("mae", {}, distance, units, why_withheld(distance, units, pairs))
        yield choice.coefficient("weighted_kappa", graded, classes.weighted_kappa)
        if pairs.groups is not None:
            grade = len(self.labels) - 1
            pages = sorted(
                zip(
                    pairs.groups.tolist(),
                    grade - pairs.gold,
                    grade - pairs.predicted,
                    strict=True,
                )
            )
            ndcg = mean_ndcg(
                ((str(group), float(true), float(predicted)) for group, true, predicted in pages), seed="ndcg"
            )
            yield row("ndcg", {}, resampled(ndcg), ndcg.queries, "" if ndcg.queries else "no group has two units")

    def _all_compared(self, other: choice.Measures) -> Iterator[Row]:
        assert isinstance(other, Measures)
        yield from super()._all_compared(other)
        farthest = float(max(1, len(self.labels) - 1))
        distance, kappa = {"mae": classes.mean_absolute_error}, {"weighted_kappa": classes.weighted_kappa}
        yield from measures_apart(self.graded, other.graded, distance, most=farthest)
        yield from measures_apart(self.graded, other.graded, kappa)


class Grades(choice.Choice):
    slug = "grades"
    aggregations = {"majority": majority, "median": median}
    Measures = Measures

    def distances(self, values: Sequence[str]) -> dict[str, coefficients.Distance]:
        return super().distances(values) | {"ordinal": coefficients.ordinal}


GRADES = register(Grades())
