"""An answer form plug-in: a number from 0 to the maximum in the kind's file."""

from pathlib import Path

import numpy as np

from annotate.core.measures.figure_rows import row
from annotate.kinds.forms import Form, choice
from annotate.kinds.kind import Named

NEAR = 10


class Measures(choice.Measures):
    head = ("near",)

    def rows(self):
        pairs, units = self.pairs, len(self.pairs.gold)
        is_near = (np.abs(pairs.gold - pairs.predicted) <= NEAR) & ~self.refused
        yield row("near", {}, pairs.share(is_near, np.ones(units, dtype=np.bool_)), units)
        yield from super().rows()


def middle(answers, order=(), people=0):
    """Return the median. Return None if two people differ widely, so that an adjudicator decides."""
    numbers = sorted(map(int, answers))
    return str(numbers[len(numbers) // 2]) if numbers and numbers[-1] - numbers[0] <= NEAR else None


class Rating(Form):
    slug = "rating"
    tables = ("rating",)
    aggregations = {"majority": middle}
    Measures = Measures
    measures = {"near": ("within 10", f"A rating is near if it is at most {NEAR} from the gold rating.")}
    template = "rating/question.html"
    bench = "rating/bench.html"
    folder = Path(__file__).parent / "templates"

    def answers(self, top):
        most = top.table("rating").take("most", int, 100)
        return {str(number): Named({"en": str(number)}) for number in range(most + 1)}

    def read(self, sent):
        text = super().read(sent).strip()
        return str(int(text)) if text.isdecimal() else text

    def agrees(self, answer, correct):
        return abs(int(answer) - int(correct)) <= NEAR
