"""The benchmark of the intervals of agreement: its true values, and the results of a small run."""

import numpy as np
import pytest

from benchmarks.agreeing_work import OTHERS, WORLDS, World, measures, populate, rows, set_row, truths

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("world", OTHERS[2:6])
def test_of_very_many_units_every_interval_is_short_and_near_the_truth(world):
    kinds, shares = populate(world)
    chance = np.random.default_rng(5)
    intervals = measures(kinds, chance.multinomial(300_000, shares), chance)
    true = truths(kinds, shares)
    assert intervals.keys() == true.keys()
    for measure, (low, high) in intervals.items():
        assert high - low < 0.05
        assert low - 0.01 < true[measure] < high + 0.01, measure


def test_answers_by_chance_have_an_alpha_of_0_in_every_population():
    worlds = [world for world in WORLDS if world.errors == "by chance"]
    assert len(worlds) == 54
    assert [truths(*populate(world))["alpha"] for world in worlds] == pytest.approx([0.0] * len(worlds), abs=1e-9)


def test_with_a_rare_label_the_interval_of_alpha_covers_and_the_bootstrap_it_had_does_not():
    by_measure = {row.measure: row for row in rows(World(2, 0.01, "3", "miss 20%, by mistake 1%"), (50,), 100, "1")}
    alpha, bootstrap = by_measure["alpha"], by_measure["alpha, percentile bootstrap"]
    assert alpha.covers > 0.9 * alpha.intervals
    assert bootstrap.covers < 0.6 * bootstrap.intervals


def test_alpha_of_sets_of_labels_is_covered_too():
    held, width = set_row(2, 30, 40, "1")
    assert held >= 35
    assert 0.05 < width < 0.3
