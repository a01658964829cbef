"""Models with a hidden true label: Dawid and Skene's on their own example, the one-coin model, MACE and GLAD."""

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from annotate.core.aggregation import annotator_models
from annotate.core.aggregation.annotator_models import MODEL, fit_dawid_skene
from annotate.core.aggregation.answer_table import credit, tabulate, winners
from tests.annotate import crowd

pytestmark = pytest.mark.slow


# 45 patients, graded 1 to 4 three times by the first anaesthetist and once by each of four others (Dawid and Skene
# 1979, table 1).
ANAESTHETISTS = """
    1111111 3334334 1122122 2223121 2223222 2223322 1222111 3333433 2222223 2322223 4444444 2223343 1111111 2223212
    1211111 1112111 1111111 1111111 2222221 2221322 2222222 2222221 2223222 2212222 1111111 1111111 2322222 1111111
    1111111 1121121 1111111 3333233 1111111 2222222 2223232 4334343 2212232 2323233 3333432 1111111 1111111 1212111
    2322222 1211111 2222222
"""
LABELS = "abc"


@st.composite
def answers(draw):
    pairs = draw(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 4)), max_size=40))
    return [(unit, who, draw(st.sampled_from(LABELS))) for unit, who in pairs]


def anaesthetists():
    rows = [
        (patient, max(0, place - 2), grade)
        for patient, grades in enumerate(ANAESTHETISTS.split())
        for place, grade in enumerate(grades)
    ]
    return tabulate(rows, "1234")


def confused(seed, units, people, accuracy):
    """Ten labels that are confused in pairs: four errors of five go to the other label of the pair."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 10, units)
    chances = np.full((people, 10, 10), 0.02)
    for person in range(people):
        right = rng.uniform(*accuracy, 10)
        chances[person] *= (1 - right)[:, None]
        chances[person, range(10), [label ^ 1 for label in range(10)]] += 0.8 * (1 - right)
        chances[person, range(10), range(10)] += right
    rows = [
        (unit, who, str(rng.choice(10, p=chances[who, truth[unit]]))) for unit in range(units) for who in range(people)
    ]
    return tabulate(rows, "0123456789")


def from_votes(table):
    """The log-likelihood that EM reaches from the vote shares alone, without random starts and annealing."""
    now = next(annotator_models._draw_batches(table, ""))[0].of([0])
    return annotator_models._run_em(
        annotator_models._build_table(table), MODEL, now, 3000, 1e-6, np.ones(1)
    ).likelihood[0]


def test_what_the_authors_print_of_their_example_is_a_maximum_and_a_greater_one_is_found():
    table = anaesthetists()
    maxima = annotator_models.find_maxima(table, MODEL)
    theirs = maxima.prior.round(2).tolist().index([0.40, 0.42, 0.11, 0.07])
    assert maxima.chances[0, :, theirs].T.round(2).tolist() == [
        [0.89, 0.11, 0.0, 0.0],
        [0.07, 0.88, 0.05, 0.0],
        [0.0, 0.34, 0.66, 0.0],
        [0.0, 0.0, 0.56, 0.44],
    ]
    assert maxima.likelihood[theirs] == pytest.approx(-192.891, abs=0.001)
    assert fit_dawid_skene(table).likelihood == pytest.approx(-191.569, abs=0.001)


@pytest.mark.parametrize(("made", "seed"), [((1, 400, 5, (0.4, 0.7)), ""), ((3, 300, 6, (0.4, 0.6)), "another")])
def test_of_ten_labels_confused_in_pairs_a_greater_maximum_is_found_than_from_the_votes(made, seed):
    table = confused(*made)
    fit = fit_dawid_skene(table, seed=seed)
    assert fit.converged
    assert fit.likelihood > from_votes(table) + 1


@pytest.mark.parametrize(
    ("name", "votes", "reached"), [("cf_amt", -3942.808, -3912.73), ("zencrowd_in", -6463.6507, -6463.6507)]
)
def test_on_the_crowd_sets_the_likelihood_is_never_below_that_from_the_votes(name, votes, reached):
    table = tabulate(crowd.rows(name), sorted(set(crowd.gold(name).values())))
    assert from_votes(table) == pytest.approx(votes, abs=0.001)
    assert fit_dawid_skene(table).likelihood >= reached


def test_the_likelihood_is_that_of_prior_and_confusion():
    table = anaesthetists()
    fit = fit_dawid_skene(table)
    weight = np.tile(fit.prior, (len(table.units), 1))
    for unit, annotator, label in zip(table.unit, table.annotator, table.label, strict=True):
        weight[unit] *= fit.confusion[annotator, :, label]
    assert fit.likelihood == pytest.approx(np.log(weight.sum(axis=1)).sum())


@settings(max_examples=25)
@given(answers())
def test_posteriors_priors_and_rows_of_confusion_sum_to_1_and_labels_that_nobody_gave_have_probability_0(rows):
    table = tabulate(rows, LABELS)
    fit = fit_dawid_skene(table)
    assert fit.posterior.shape == (len(table.units), 3)
    assert fit.posterior.sum(axis=1) == pytest.approx(1)
    assert fit.prior.sum() == pytest.approx(1 if rows else 0)
    sums = fit.confusion.sum(axis=2)
    assert np.all(np.isclose(sums, 1) | (sums == 0))
    assert not np.isnan(fit.confusion).any()
    assert np.all(fit.posterior[table.counts().sum(axis=1) == 0] == 0)
    assert np.all(fit.posterior[:, table.counts().sum(axis=0) == 0] == 0)


def test_many_answers_are_fitted_once_for_units_that_are_alike(monkeypatch):
    # As if there were so many that only the vote shares are tried.
    monkeypatch.setattr(annotator_models, "MAX_NUMBERS", 1)
    table = tabulate([(unit, who, "ab"[unit % 5 % (who + 2) > 1]) for unit in range(90) for who in range(3)], "ab")
    fit = annotator_models.fit_one_coin(table)
    assert len({*map(tuple, fit.posterior.tolist())}) < 5
    assert fit.posterior[:5].tolist() * 18 == fit.posterior.tolist()
    assert fit.prior == pytest.approx(fit.posterior.mean(axis=0), abs=1e-6)
    chances = fit.prior * fit.confusion[table.annotator, :, table.label].reshape(90, 3, 2).prod(axis=1)
    assert fit.likelihood == pytest.approx(np.log(chances.sum(axis=1)).sum())
    assert fit.posterior == pytest.approx(chances / chances.sum(axis=1, keepdims=True), abs=1e-6)


def test_perfect_agreement_is_believed():
    table = tabulate([(unit, who, LABELS[unit % 3]) for unit in range(9) for who in range(3)], LABELS)
    fit = fit_dawid_skene(table)
    assert winners(fit.posterior).tolist() == (np.eye(3)[np.arange(9) % 3] == 1).tolist()
    # Three answers of four are known to be right, and the fourth is spread over three labels.
    assert fit.posterior.max(axis=1) == pytest.approx(10**3 / (10**3 + 2))
    assert fit.confusion == pytest.approx(np.stack([np.eye(3)] * 3))


def test_two_who_contradict_each_other_throughout_leave_ties_that_are_named():
    rows = [(unit, who, "ab"[(unit + who) % 2]) for unit in range(10) for who in (0, 1)]
    assert winners(fit_dawid_skene(tabulate(rows, "ab")).posterior).all()


def test_a_fit_that_runs_out_of_rounds_has_not_converged(monkeypatch):
    monkeypatch.setattr(annotator_models, "MAX_ROUNDS", 3)
    fit = fit_dawid_skene(tabulate(crowd.rows("zencrowd_in"), "01"))
    assert (fit.rounds, fit.converged) == (3, False)


# What crowd-kit 1.4.2 (Ustalov, Pavlichenko and Tseitlin 2024, Journal of Open Source Software 9(96)) makes of Dawid
# and Skene's example by MACE(method=..., n_iter=3000, n_restarts=1): each patient's label, and some posteriors.
CROWD_KIT = (
    "132222132242121111222222112111131223233111212",
    {
        1: [0.0, 0.0, 0.999955, 0.000044],
        2: [0.135108, 0.864840, 0.000026, 0.000026],
        3: [0.002404, 0.997480, 0.000100, 0.000015],
        35: [0.000010, 0.000010, 0.948984, 0.050997],
    },
)
FITS = [
    annotator_models.fit_dawid_skene,
    annotator_models.fit_one_coin,
    annotator_models.fit_mace,
    annotator_models.fit_glad,
]


def test_mace_gives_the_figures_of_a_published_program():
    table = anaesthetists()
    labels, posteriors = CROWD_KIT
    fit = annotator_models.fit_mace(table)
    assert "".join(table.labels[place] for place in fit.posterior.argmax(axis=1)) == labels
    for unit, posterior in posteriors.items():
        assert fit.posterior[unit] == pytest.approx(posterior, abs=2e-6)


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
    fit = annotator_models.fit_one_coin(table)
    for person, share in enumerate(right):
        accuracy = fit.confusion[person].diagonal()
        assert accuracy == pytest.approx(accuracy[0])
        assert accuracy[0] == pytest.approx(share, abs=0.05)
    assert credit(fit.posterior, truth).mean() > credit(table.counts(), truth).mean()


def brute_force(table, ability, log_ease):
    """GLAD's log-likelihood with its priors, summed unit by unit and label by label."""
    likelihood = -(((ability - 1) ** 2).sum() + ((log_ease - 1) ** 2).sum()) / 2
    for unit in range(len(table.units)):
        chances = np.full(len(table.labels), 1 / len(table.labels))
        for who, label in zip(table.annotator[table.unit == unit], table.label[table.unit == unit], strict=True):
            right = 1 / (1 + np.exp(-ability[who] * np.exp(log_ease[unit])))
            chances *= np.where(np.arange(len(table.labels)) == label, right, (1 - right) / (len(table.labels) - 1))
        likelihood += np.log(chances.sum())
    return likelihood


def test_glad_reaches_the_greatest_likelihood_that_a_search_from_many_places_finds():
    chance = np.random.default_rng(4)
    rows = [
        (unit, who, "abc"[unit % 3 if chance.random() < 0.4 + who / 7 else chance.integers(3)])
        for unit in range(8)
        for who in range(4)
    ]
    table = tabulate(rows, "abc")
    fit = annotator_models.fit_glad(table)
    assert fit.objective == pytest.approx(brute_force(table, fit.ability, np.log(fit.ease)), abs=1e-9)
    searched = [
        scipy.optimize.minimize(lambda at: -brute_force(table, at[:4], at[4:]), 1 + chance.normal(0, 0.5, 12))
        for _ in range(4)
    ]
    assert fit.objective == pytest.approx(max(-optimum.fun for optimum in searched), abs=1e-4)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("labels", ["a", "ab", "abc"])
def test_no_answers_one_answer_and_labels_that_nobody_gave_make_posteriors_that_sum_to_1(fit, labels):
    assert fit(tabulate([], labels)).posterior.shape == (0, len(labels))
    for rows in ([(1, 1, "a")], [(1, 1, "a"), (1, 2, "a"), (2, 1, "a"), (2, 2, "a")]):
        fitted = fit(tabulate(rows, labels))
        assert fitted.posterior.sum(axis=1) == pytest.approx(1)
        assert winners(fitted.posterior)[:, 0].all()


@pytest.mark.parametrize("fit", FITS)
def test_a_seed_gives_the_same_to_the_last_bit_and_smaller_blocks_the_same_fit(fit, monkeypatch):
    table = tabulate(crowd.rows("cf_amt")[:1_200], "01234")
    first = fit(table, seed="one")
    assert np.array_equal(first.posterior, fit(table, seed="one").posterior)
    monkeypatch.setattr(annotator_models, "BLOCK", 150)
    assert first.posterior == pytest.approx(fit(table, seed="one").posterior, abs=1e-4)


def test_labels_of_the_truth_are_named_by_the_votes():
    table = tabulate([(unit, who, "ab"[unit % 2]) for unit in range(6) for who in range(3)], "ab")
    maxima = annotator_models.find_maxima(table, annotator_models.MODEL)
    turned = annotator_models.EMState(
        maxima.posterior[..., ::-1].copy(),
        maxima.prior[..., ::-1].copy(),
        maxima.chances[..., ::-1].copy(),
        maxima.likelihood,
    )
    named = annotator_models._align_labels(turned, annotator_models._vote_shares(table))
    assert named.posterior == pytest.approx(maxima.posterior)
    assert named.chances == pytest.approx(maxima.chances)
