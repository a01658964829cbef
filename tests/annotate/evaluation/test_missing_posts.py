"""Posts that were chosen for the audit and that nobody could label: missing at random or by a rate, with bounds."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from annotate.core import stages
from annotate.core.estimation.proportions import UNRESOLVED
from annotate.evaluation.comparison import _accuracy, differences
from annotate.evaluation.measurement import evaluate
from annotate.evaluation.metrics import accuracy, bounds_of, precision, recall
from annotate.evaluation.subjects import EvaluationError
from annotate.evaluation.uniform import UNKNOWN_PREDICTION, Cell, Uniform
from annotate.models import Unit
from benchmarks.made_posts import World, draw, populate
from benchmarks.measuring_work import of_second
from corpora.core.languages import UND
from tests.annotate.evaluation.figures import accuracy as accuracy_in
from tests.annotate.evaluation.figures import written

pytestmark = pytest.mark.slow


def stream(missing: dict[str, Cell], *, truth: str = "") -> Uniform:
    """The detectors agree on English on 1,000 posts. A predictor labels 100 of them und. Ten of these were audited, but
    nobody could label them. truth: the label of these ten, had people found it.
    """
    posts = {f"agreed {n}": Cell("en", "en", False, "en", "en", "en") for n in range(810)}
    posts |= {f"read {n}": Cell("en", "en", True, "en", "en", "en") for n in range(90)}
    posts |= {f"apart {n}": Cell("en", "en", False, "en", UND, "en") for n in range(90)}
    posts |= {f"disputed {n}": Cell("", "", True, "de", "de", "de") for n in range(200)}
    posts |= {f"undefined {n}": Cell("", "", True, UND, UND, UND) for n in range(100)}
    lost = {f"lost {n}": cell for n, cell in enumerate(missing.values())}
    if truth:
        return Uniform(posts | {key: cell._replace(annotated=True, truth=truth) for key, cell in lost.items()})
    return Uniform(posts, lost)


LOST = {str(n): Cell("en", "en", False, "en", UND, "en") for n in range(10)}
UNTOLD = {key: cell._replace(predicted=UNKNOWN_PREDICTION, other=UNKNOWN_PREDICTION) for key, cell in LOST.items()}
WHATEVER = ["en", UND, "de"]


@pytest.mark.parametrize("missing", [LOST, UNTOLD], ids=["named", "counted"])
@pytest.mark.parametrize("truth", WHATEVER)
def test_bounds_hold_all_that_an_interval_would_hold_if_people_had_found_any_label(missing, truth):
    def figures(uniform):
        yield accuracy(uniform, with_und=True)
        yield recall("en", uniform, {})
        yield precision(UND, uniform, {}, with_und=True)

    for bounded, resolved in zip(figures(stream(missing)), figures(stream(LOST, truth=truth)), strict=True):
        low, high = bounded.bounds
        assert low <= resolved.estimate.low + 1e-9
        assert high >= resolved.estimate.high - 1e-9
    # So do the bounds of how far two predictors are apart.
    low, high = bounds_of(_accuracy(stream(missing), with_und=True)[2])
    resolved, _, extremes = _accuracy(stream(LOST, truth=truth), with_und=True)
    assert extremes == ()
    assert low <= resolved.low + 1e-9 <= resolved.high <= high + 1e-9


def test_value_and_interval_are_those_of_what_people_could_label():
    without = Uniform(stream(LOST).posts)
    assert accuracy(stream(LOST), with_und=True).estimate == accuracy(without, with_und=True).estimate
    one, other = (differences(uniform)["accuracy", "with und"] for uniform in (stream(LOST), without))
    assert [one[key] for key in ("value", "low", "high")] == [other[key] for key in ("value", "low", "high")]
    assert one["note"].endswith("depending on the posts without a label")
    assert other["note"] == ""
    # Where both say as the detectors, it is not known of either, and of neither alone.
    both = stream({key: cell._replace(predicted="en") for key, cell in LOST.items()})
    alone = accuracy(both, with_und=True)
    assert alone.bounds[0] < alone.estimate.low - 0.02
    apart, _, extremes = _accuracy(both, with_und=True)
    assert abs(bounds_of(extremes)[1] - apart.high) < abs(alone.bounds[0] - alone.estimate.low)


def test_two_audits_in_a_hundred_that_are_lost_leave_recalls_their_intervals():
    world = World(labels=10, drawn=6_000, wrong=0.03, lost=(0.02, 0.02), posts=100_000)
    chance = np.random.default_rng(7)
    population = populate(world, chance)
    is_right, covered = population.second == population.truth, []
    for _ in range(40):
        uniform = of_second(draw(population, world, chance).both)
        assert uniform.missing
        for label in (0, 3, 6):
            estimate = recall(str(label), uniform, {}).estimate
            assert estimate.has_interval
            covered.append(estimate.low <= is_right[population.truth == label].mean() <= estimate.high)
    assert np.mean(covered) >= 0.92


# Half of the wrong audits and 5% of the right ones are unresolved: these are wrong 12.8 times as often as the others.
HARD = World(labels=10, drawn=6_000, wrong=0.05, lost=(0.05, 0.5), posts=100_000)


def drawn_by(world, seed, draws):
    """The accuracy of a voter, and uniform sets that measure it."""
    chance = np.random.default_rng(seed)
    population = populate(world, chance)
    both = (draw(population, world, chance).both for _ in range(draws))
    sets = [uniform.map_cells(lambda _, cell: cell._replace(other="")) for uniform in both]
    return (population.first == population.truth).mean(), sets


def test_a_range_of_rates_holds_the_truth_where_unresolved_audits_are_wrong_more_often():
    true, sets = drawn_by(HARD, 3, 40)

    def measured(*rates):
        """The figures of all draws, how many cover the truth, and how far their mean is from it."""
        figures = [accuracy(replace(uniform, rates=rates), with_und=True) for uniform in sets]
        covers = [figure.estimate.low <= true <= figure.estimate.high for figure in figures]
        return figures, np.mean(covers), np.mean([figure.estimate.value for figure in figures]) - true

    at_random, covers, apart = measured(1.0, 1.0)
    assert covers < 0.5
    assert apart > 0.01
    exact, covers, apart = measured(12.8, 12.8)
    assert covers >= 0.9
    assert abs(apart) < 0.005
    ranged, covers, _ = measured(1.0, 15.0)
    assert covers >= 0.95
    for one, at_rate, both in zip(at_random, exact, ranged, strict=True):
        assert both.estimate.value == one.estimate.value
        assert both.estimate.low <= min(one.estimate.low, at_rate.estimate.low)
        assert both.estimate.high >= max(one.estimate.high, at_rate.estimate.high) - 1e-9
        assert both.bounds[0] <= both.estimate.low
        assert sum(both.estimate.sources.values()) == pytest.approx(1)
        assert both.estimate.sources[UNRESOLVED] > 0.3


@pytest.mark.parametrize("rates", [(1.0, 50.0), (1e-5, 1.0), (1e5, 1e5)])
def test_an_interval_by_rates_lies_within_the_bounds_whatever_missing_posts_are(rates):
    """The interval ends where all the missing posts are wrong; the note keeps the bounds that it has without rates."""
    _, [uniform] = drawn_by(HARD, 1, 1)
    # A rate changes no number of posts in a stratum.
    [tilted] = replace(uniform, rates=(rates[1], rates[1])).reweighted
    assert dict(tilted.drawn) == pytest.approx(dict(uniform.drawn))
    assert min(tilted.cells.values()) >= 0
    few = {key: uniform.missing[key] for key in list(uniform.missing)[:3]}
    for missing in (uniform.missing, few):
        plain = replace(uniform, missing=missing)

        def figures(posts):
            yield accuracy(posts, with_und=True)
            for label in sorted(uniform.drawn)[1:4]:
                yield from (recall(label, posts, {}), precision(label, posts, {}, with_und=True))

        for at_random, ranged in zip(figures(plain), figures(replace(plain, rates=rates)), strict=True):
            assert ranged.bounds == at_random.bounds
            low, high = at_random.bounds
            assert low <= ranged.estimate.low <= ranged.estimate.value <= ranged.estimate.high <= high
    both = replace(stream(LOST), rates=rates)
    difference, _, extremes = _accuracy(both, with_und=True)
    low, high = bounds_of(extremes)
    assert low <= difference.low <= difference.high <= high
    assert extremes == _accuracy(stream(LOST), with_und=True)[2]


def test_a_difference_of_two_holds_what_each_rate_of_the_range_gives():
    """Of eight posts of which the first alone says und, three are; a higher rate makes more of the unread ones und."""
    both = stream(LOST)
    read = {f"und {n}": Cell("en", "en", True, UND, UND, "en") for n in range(3)}
    read |= {f"en {n}": Cell("en", "en", True, "en", UND, "en") for n in range(5)}
    both = replace(both, posts={**both.posts, **read})
    ranges = (1.0, 1.0), (1.0, 9.0), (9.0, 9.0)
    plain, ranged, most = (differences(replace(both, rates=rates))["accuracy", "with und"] for rates in ranges)
    assert ranged["value"] == plain["value"] < most["value"]
    assert (ranged["low"], ranged["high"]) == (min(plain["low"], most["low"]), max(plain["high"], most["high"]))


def test_a_range_of_rates_is_an_option_of_evaluate(world, tmp_path):
    table = [(36, "de", "audited", "de", "de"), (4, "de", "audited", "en", "de"), (60, "de", "agreed", "", "de")]
    table += [(40, "", "disputed", "en", "en")]
    whole, _ = world.uniform(table, "whole")
    folder, keys = world.uniform([*table, (8, "de", "audited", "de", "de")], "lost")
    lost = Unit.objects.filter(task__name="lost", item__key__in=keys[-8:])
    lost.update(stage=stages.DISCARDED, label="")
    shutil.rmtree(folder)
    folder = world.export(lost[0].task)
    predictions = written(tmp_path / "mine.tsv", [(key, world.predictions[key]) for key in world.predictions])

    def report(**options):
        return evaluate(str(predictions), [folder], **options)

    plain, ranged = report(), report(missing_rate="1:3")
    assert accuracy_in(ranged)["value"] == accuracy_in(plain)["value"]
    assert accuracy_in(ranged)["low"] < accuracy_in(plain)["low"]
    assert accuracy_in(ranged)["bounds"] == pytest.approx(accuracy_in(plain)["bounds"])
    assert (
        "assume that the detectors are wrong in these posts 1 to 3 times as often as in the posts"
        in ranged["warnings"][-1]
    )
    assert "unresolved audits" in accuracy_in(ranged)["width_sources"]
    for how in ({}, {"missing_rate": "1:3"}):
        once, always = report(**how), report(**how, sequential=True)
        for one, other in zip(once["rows"], always["rows"], strict=True):
            assert "extremes" not in {*one, *other}
            if "bounds" in one and one["low"] is not None:
                low, high = other["bounds"]
                assert low <= other["low"] <= one["low"] <= one["high"] <= other["high"] <= high
                assert low < one["bounds"][0]
                assert f"{low:.1%} to {high:.1%}, depending" in other["note"]
    numbers = "It must be LOW:HIGH, for example 1:3, with LOW above 0 and not above HIGH"
    for gold, options, sentence in (
        *((folder, {"missing_rate": text}, numbers) for text in ("3", "3:1", "0:2", "one:2", "1:inf", "1:2:3")),
        (whole, {"missing_rate": "1:3"}, "applies to unresolved audits, but the gold set whole has none"),
    ):
        with pytest.raises(EvaluationError, match=sentence):
            evaluate(str(predictions), [gold], **options)
    with pytest.raises(EvaluationError, match="--missing-rate cannot be used with --judge"):
        evaluate("", [folder], judge=str(predictions), missing_rate="1:3")
