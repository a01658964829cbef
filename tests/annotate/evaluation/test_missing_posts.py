"""Posts that were chosen for the audit and that nobody could label: taken as missing at random, with bounds beside."""

import numpy as np
import pytest

from annotate.evaluation.cells import NOT_TOLD, Cell
from annotate.evaluation.comparison import _accuracy, differences
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
def test_bounds_hold_all_that_an_interval_would_hold_if_people_had_found_any_label(missing, truth):
    def figures(uniform):
        yield accuracy(uniform, with_und=True)
        yield recall("en", uniform, {})
        yield precision(UND, uniform, {}, with_und=True)

    for unknown, known in zip(figures(stream(missing)), figures(stream(LOST, found=truth)), strict=True):
        low, high = unknown.bounds
        assert low <= known.estimate.low + 1e-9
        assert high >= known.estimate.high - 1e-9


@pytest.mark.parametrize("missing", [LOST, UNTOLD], ids=["named", "counted"])
@pytest.mark.parametrize("truth", WHATEVER)
def test_so_do_the_bounds_of_how_far_two_predictors_are_apart(missing, truth):
    """If all is und, the first is right on 100 posts of which the second is wrong; if it is English, the other way."""
    _, _, (low, high) = _accuracy(stream(missing), with_und=True)
    known, _, bounds = _accuracy(stream(LOST, found=truth), with_und=True)
    assert bounds is None
    assert low <= known.low + 1e-9 <= known.high <= high + 1e-9


def test_value_and_interval_are_those_of_what_people_could_label():
    without = Uniform(stream(LOST).posts)
    assert accuracy(stream(LOST), with_und=True).estimate == accuracy(without, with_und=True).estimate
    one, other = (differences(each)["accuracy", "with und"] for each in (stream(LOST), without))
    assert [one[key] for key in ("value", "low", "high")] == [other[key] for key in ("value", "low", "high")]
    assert one["note"].endswith("whatever the posts without a label are")
    assert other["note"] == ""


def test_where_both_say_as_the_detectors_it_is_not_known_of_either_and_of_neither_alone():
    both = stream({key: cell._replace(said="en") for key, cell in LOST.items()})
    one = accuracy(both, with_und=True)
    assert one.bounds[0] < one.estimate.low - 0.02
    apart, _, bounds = _accuracy(both, with_und=True)
    assert abs(bounds[1] - apart.high) < abs(one.bounds[0] - one.estimate.low)


def test_two_audits_in_a_hundred_that_are_lost_leave_recalls_their_intervals():
    """40 streams of 6,000 posts in ten labels, 3% of the agreement wrong, 400 audits, 8 of them lost by chance."""
    chance, labels = np.random.default_rng(7), [f"l{n}" for n in range(10)]
    shares = np.array([1 / (n + 1) for n in range(10)])
    shares /= shares.sum()
    inside, withheld = [], 0
    for _ in range(40):
        truth, other = (chance.choice(10, 6_000, p=shares) for _ in range(2))
        agreed = np.where(chance.random(6_000) < 0.03, other, truth)
        said = np.where(chance.random(6_000) < 0.95, truth, agreed)
        audited = chance.permutation(6_000)[:400]
        lost = set(audited[:8].tolist())
        read = set(audited.tolist()) - lost
        cells = {
            str(n): Cell(
                labels[agreed[n]],
                labels[agreed[n]],
                n in read,
                labels[(truth if n in read else agreed)[n]],
                labels[said[n]],
            )
            for n in range(6_000)
        }
        uniform = Uniform(
            {key: cell for key, cell in cells.items() if int(key) not in lost}, {str(n): cells[str(n)] for n in lost}
        )
        for label in (0, 3, 6):
            found = recall(labels[label], uniform, {})
            expected = 0.95 + 0.05 * 0.97
            withheld += not found.estimate.has_interval
            inside.append(found.estimate.low <= expected <= found.estimate.high)
    assert withheld == 0
    assert np.mean(inside) >= 0.92
