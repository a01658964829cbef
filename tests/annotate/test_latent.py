"""The one-coin model and MACE, and what all models with a hidden true label share."""

import numpy as np
import pytest
import scipy

from annotate.core.aggregation import annotator_models, latent_models
from annotate.core.aggregation.answer_table import credit, tabulate, winners
from tests.annotate import crowd
from tests.annotate.test_dawid_skene import anaesthetists

pytestmark = pytest.mark.slow


# What crowd-kit 1.4.2 (Ustalov, Pavlichenko and Tseitlin 2024, Journal of Open Source Software 9(96)) makes of Dawid
# and Skene's example by MACE(method=..., n_iter=3000, n_restarts=1): each patient's label, and some posteriors.
CROWD_KIT = {
    True: (
        "132222132242121111222222112111131223233111212",
        {
            1: [0.0, 0.0, 0.999955, 0.000044],
            2: [0.135108, 0.864840, 0.000026, 0.000026],
            3: [0.002404, 0.997480, 0.000100, 0.000015],
            35: [0.000010, 0.000010, 0.948984, 0.050997],
        },
    ),
    False: (
        "132222132243121111222222112111131224233111212",
        {
            1: [0.000001, 0.000001, 0.999269, 0.000730],
            2: [0.113530, 0.886386, 0.000042, 0.000042],
            3: [0.007394, 0.991898, 0.000591, 0.000117],
            35: [0.0, 0.0, 0.001125, 0.998874],
        },
    ),
}
FITS = [
    annotator_models.fit_dawid_skene,
    annotator_models.fit_one_coin,
    annotator_models.fit_mace,
    annotator_models.fit_glad,
]


@pytest.mark.parametrize("variational", [True, False])
def test_mace_says_what_a_published_program_says(variational):
    table = anaesthetists()
    labels, posteriors = CROWD_KIT[variational]
    found = annotator_models.fit_mace(table, variational=variational)
    assert "".join(table.labels[place] for place in found.posterior.argmax(axis=1)) == labels
    for unit, posterior in posteriors.items():
        assert found.posterior[unit] == pytest.approx(posterior, abs=2e-6)


def test_the_one_coin_model_gives_each_annotator_one_accuracy():
    rng = np.random.default_rng(6)
    truth = rng.integers(0, 4, 800)
    right = [0.9, 0.8, 0.7, 0.5]
    rows = [
        (unit, who, "abcd"[label if rng.random() < share else (label + rng.integers(1, 4)) % 4])
        for unit, label in enumerate(truth)
        for who, share in enumerate(right)
    ]
    table = tabulate(rows, "abcd")
    found = annotator_models.fit_one_coin(table)
    for person, share in enumerate(right):
        accuracy = found.confusion[person].diagonal()
        assert accuracy == pytest.approx(accuracy[0])
        assert accuracy[0] == pytest.approx(share, abs=0.05)
    assert credit(found.posterior, truth).mean() > credit(table.counts(), truth).mean()


def brute_force(table, ability, log_ease):
    """GLAD's log-likelihood with its priors, summed unit by unit and label by label."""
    found = -(((ability - 1) ** 2).sum() + ((log_ease - 1) ** 2).sum()) / 2
    for unit in range(len(table.units)):
        chances = np.full(len(table.labels), 1 / len(table.labels))
        for who, label in zip(table.annotator[table.unit == unit], table.label[table.unit == unit], strict=True):
            right = 1 / (1 + np.exp(-ability[who] * np.exp(log_ease[unit])))
            chances *= np.where(np.arange(len(table.labels)) == label, right, (1 - right) / (len(table.labels) - 1))
        found += np.log(chances.sum())
    return found


def test_glad_reaches_the_greatest_likelihood_that_a_search_from_many_places_finds():
    chance = np.random.default_rng(4)
    rows = [
        (unit, who, "abc"[unit % 3 if chance.random() < 0.4 + who / 7 else chance.integers(3)])
        for unit in range(8)
        for who in range(4)
    ]
    table = tabulate(rows, "abc")
    found = annotator_models.fit_glad(table)
    assert found.objective == pytest.approx(brute_force(table, found.ability, np.log(found.ease)), abs=1e-9)
    searched = [
        scipy.optimize.minimize(lambda at: -brute_force(table, at[:4], at[4:]), 1 + chance.normal(0, 0.5, 12))
        for _ in range(4)
    ]
    assert found.objective == pytest.approx(max(-each.fun for each in searched), abs=1e-4)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("labels", ["a", "ab", "abc"])
def test_no_answers_one_answer_and_labels_that_nobody_gave_make_posteriors_that_sum_to_1(fit, labels):
    assert fit(tabulate([], labels)).posterior.shape == (0, len(labels))
    for rows in ([(1, 1, "a")], [(1, 1, "a"), (1, 2, "a"), (2, 1, "a"), (2, 2, "a")]):
        found = fit(tabulate(rows, labels))
        assert found.posterior.sum(axis=1) == pytest.approx(1)
        assert winners(found.posterior)[:, 0].all()


@pytest.mark.parametrize("fit", FITS)
def test_a_seed_gives_the_same_to_the_last_bit_and_the_work_is_done_in_parts(fit, monkeypatch):
    table = tabulate(crowd.rows("cf_amt")[:1_200], "01234")
    found = fit(table, seed="one")
    assert np.array_equal(found.posterior, fit(table, seed="one").posterior)
    monkeypatch.setattr(latent_models, "BLOCK", 150)
    assert found.posterior == pytest.approx(fit(table, seed="one").posterior, abs=1e-4)


def test_labels_of_the_truth_are_named_by_the_votes():
    table = tabulate([(unit, who, "ab"[unit % 2]) for unit in range(6) for who in range(3)], "ab")
    found = latent_models.maxima(table, annotator_models.MODEL)
    turned = latent_models.Climb(
        found.posterior[..., ::-1].copy(),
        found.prior[..., ::-1].copy(),
        found.chances[..., ::-1].copy(),
        found.likelihood,
    )
    named = latent_models._named(turned, latent_models._votes(table))
    assert named.posterior == pytest.approx(found.posterior)
    assert named.chances == pytest.approx(found.chances)
