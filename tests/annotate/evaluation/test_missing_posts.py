"""Posts that were chosen for the audit and that nobody could label: figures hold whatever they are."""

import pytest

from annotate.evaluation.cells import NOT_TOLD, Cell
from annotate.evaluation.comparison import differences
from annotate.evaluation.metrics import accuracy, precision, recall
from annotate.evaluation.uniform import Uniform
from corpora.core.languages import UND


def stream(missing: dict[str, Cell], *, found: str = "") -> Uniform:
    """Detectors agree on English of 1,000 posts. A predictor says und of 100, of which the audit of a tenth has lost
    all, and English of the others. found: the truth of what was lost, had people found it.
    """
    posts = {f"agreed {n}": Cell("en", "en", False, "en", "en", "en") for n in range(810)}
    posts |= {f"read {n}": Cell("en", "en", True, "en", "en", "en") for n in range(90)}
    posts |= {f"apart {n}": Cell("en", "en", False, "en", UND, "en") for n in range(90)}
    posts |= {f"disputed {n}": Cell("", "", True, "de", "de", "de") for n in range(200)}
    posts |= {f"undefined {n}": Cell("", "", True, UND, UND, UND) for n in range(100)}
    lost = {f"lost {n}": cell for n, cell in enumerate(missing.values())}
    if found:
        return Uniform(posts | {key: cell._replace(read=True, truth=found) for key, cell in lost.items()})
    return Uniform(posts, lost)


LOST = {str(n): Cell("en", "en", False, "en", UND, "en") for n in range(10)}
UNTOLD = {key: cell._replace(said=NOT_TOLD, other=NOT_TOLD) for key, cell in LOST.items()}
WHATEVER = ["en", UND, "de"]


@pytest.mark.parametrize("missing", [LOST, UNTOLD], ids=["named", "counted"])
@pytest.mark.parametrize("truth", WHATEVER)
def test_an_interval_holds_all_that_it_would_hold_if_people_had_found_any_label(missing, truth):
    def figures(uniform):
        yield accuracy(uniform, with_und=True)
        yield recall("en", uniform, {})
        yield precision(UND, uniform, {}, with_und=True)

    for unknown, known in zip(figures(stream(missing)), figures(stream(LOST, found=truth)), strict=True):
        assert known.value is not None
        assert unknown.value is not None
        assert unknown.estimate.low <= known.estimate.low + 1e-9
        assert unknown.estimate.high >= known.estimate.high - 1e-9


@pytest.mark.parametrize("missing", [LOST, UNTOLD], ids=["named", "counted"])
@pytest.mark.parametrize("truth", WHATEVER)
def test_so_does_the_interval_of_how_far_two_predictors_are_apart(missing, truth):
    """If all is und, the first is right on 100 posts of which the second is wrong; if it is English, the other way."""
    unknown = differences(stream(missing))["accuracy", "with und"]
    known = differences(stream(LOST, found=truth))["accuracy", "with und"]
    assert unknown["low"] <= known["low"] + 1e-9 <= known["high"] <= unknown["high"] + 1e-9


def test_the_value_stays_that_of_what_people_could_label():
    without = Uniform(stream(LOST).posts)
    assert accuracy(stream(LOST), with_und=True).value == accuracy(without, with_und=True).value
    assert (
        differences(stream(LOST))["accuracy", "with und"]["value"]
        == differences(without)["accuracy", "with und"]["value"]
    )


def test_where_both_say_as_the_detectors_it_is_not_known_of_either_and_of_neither_alone():
    both = {key: cell._replace(said="en") for key, cell in LOST.items()}
    one, other = (accuracy(each, with_und=True).estimate for each in (stream(both), Uniform(stream(both).posts)))
    assert one.low < other.low - 0.02
    apart, plain = (differences(each)["accuracy", "with und"] for each in (stream(both), Uniform(stream(both).posts)))
    assert abs(apart["high"] - plain["high"]) < abs(one.low - other.low)
