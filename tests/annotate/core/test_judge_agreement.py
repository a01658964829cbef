"""The agreement of a judge with people beside that of people with each other, and the alternative annotator test, held
against the verdicts of its authors' published program."""

from itertools import combinations

import numpy as np
import pytest

from annotate.core.aggregation.answer_table import tabulate
from annotate.core.agreement.coefficients import alpha
from annotate.core.agreement.judge_agreement import NoVerdict, alternative_annotator_test, judge_agreement


def made(units=60, seed=3, slips=0.2):
    """Three people's answers to each unit and a judge's, each of which slips; the last ten units have one answer."""
    chance = np.random.default_rng(seed)
    truth = chance.integers(0, 3, units)
    labels = np.where(chance.random((4, units)) < slips, chance.integers(0, 3, (4, units)), truth)
    rows = [
        (unit, person, "abc"[labels[person, unit]])
        for unit in range(units)
        for person in range(3 if unit < units - 10 else 1)
    ]
    return tabulate(rows, "abc"), labels


def test_the_means_are_those_of_all_pairs_on_a_unit():
    answers, labels = made()
    agreement = judge_agreement(answers, labels[3], seed=1)
    shared = labels[:, :50]
    pairs = [np.mean(shared[first] == shared[second]) for first, second in combinations(range(3), 2)]
    with_judge = [np.mean(shared[person] == shared[3]) for person in range(3)]
    assert agreement.people.value == pytest.approx(np.mean(pairs))
    assert agreement.judge_shared.value == pytest.approx(np.mean(with_judge))
    assert agreement.difference.value == pytest.approx(np.mean(with_judge) - np.mean(pairs))
    assert (agreement.units, agreement.units_shared) == (60, 50)
    assert agreement.people.low < agreement.people.value < agreement.people.high
    assert agreement.difference.low < agreement.difference.value < agreement.difference.high
    # Alpha is that of the answers with the judge among the annotators, and without.
    counts = answers.counts()[:50]
    assert agreement.people_alpha == alpha(counts, seed=1)
    assert agreement.judge_alpha == alpha(counts + np.eye(3, dtype=int)[labels[3, :50]], seed=1)
    # Units that the judge did not label do not count.
    agreement = judge_agreement(answers, np.where(np.arange(60) < 30, -1, labels[3]), seed=1)
    assert (agreement.units, agreement.units_shared) == (30, 20)


def test_what_cannot_be_compared_has_no_figure():
    answers = tabulate([(unit, person, "ab"[unit % 2]) for unit in range(40) for person in range(2)], "ab")
    agreement = judge_agreement(answers, np.arange(40) % 2, seed=1)
    assert agreement.judge_shared.value == agreement.people.value == 1
    assert agreement.people.low < 1
    assert agreement.difference is None  # it is the same everywhere
    one_each = tabulate([(unit, 0, "ab"[unit % 2]) for unit in range(40)], "ab")
    agreement = judge_agreement(one_each, np.zeros(40, dtype=int), seed=1)
    assert agreement.judge.value == 0.5
    assert agreement.people.value is agreement.difference is agreement.people_alpha.value is None
    agreement = judge_agreement(tabulate([], "ab"), np.zeros(0, dtype=int), seed=1)
    assert agreement.judge.value is agreement.people.value is agreement.difference is None
    assert agreement.units == 0


@pytest.mark.slow
def test_the_intervals_cover_what_many_units_show():
    answers, labels = made(units=60_010)
    true = judge_agreement(answers, labels[3], seed=1, replicates=10)
    covered = np.zeros(3)
    for seed in range(200):
        agreement = judge_agreement(*_judged(seed), seed=1, replicates=1)
        for place, name in enumerate(("judge_shared", "people", "difference")):
            one, of = getattr(agreement, name), getattr(true, name)
            covered[place] += one.low <= of.value <= one.high
    assert (covered >= 182).all(), covered


def _judged(seed):
    answers, labels = made(seed=1000 + seed)
    return answers, labels[3]


LABELS = "12345"
# Five people and three judges on 60 units, a digit each; "." is no answer. Made by chance, from one truth.
PEOPLE = {
    "ada": "242111232553545454442144151322144243413333151114214532434325",
    "ben": "4.51.121.5.3...4..22234..3.3.521.2151133..12.214314532.323.5",
    "cleo": "233111225453555554412321151515544211413333121514214232435325",
    "dan": "23111.212..554.454422344.3122.2442134133331.11142.45.2421321",
    "eve": "2....1222.5.....5.422341..133...42.....3..1.1.115..5325.....",
}
JUDGES = {
    "good": "431111222551545452421544131325244213413333121143214532431325",
    "fair": "235512112554515451451314131325241322433333143214254533431155",
    "poor": "553521214151434425114315521421344523132141111543413531421324",
}
# What alt_test of github.com/nitaytech/AltTest (revision 18428b1) returned for these answers as whole numbers, with
# scoring_function, epsilon -> winning rate, advantage probability, and the p-values of ada, ben, cleo and dan inside
# it. It leaves out eve, who has 28 units.
PUBLISHED = {
    ("good", 0.1): (0.5, 0.8859337637494021, (0.007610, 0.018055, 0.001117, 0.167256)),
    ("good", 0.2): (1.0, 0.8859337637494021, (0.000089, 0.001119, 0.000018, 0.006471)),
    ("fair", 0.1): (0.0, 0.6987027737924438, (0.728465, 0.812479, 0.290884, 0.947237)),
    ("fair", 0.2): (0.0, 0.6987027737924438, (0.271535, 0.481768, 0.050952, 0.665492)),
    ("poor", 0.2): (0.0, 0.46119679579148737, (0.997932, 0.970646, 0.992396, 0.999986)),
}


def answers_of(*people):
    rows = ((unit, name, label) for name in people for unit, label in enumerate(PEOPLE[name]) if label != ".")
    return tabulate(rows, LABELS)


def labels_of(judge, answers):
    return np.array([LABELS.index(judge[unit]) if judge[unit] != "." else -1 for unit in answers.units])


def result_of(judge, *people, **options):
    answers = answers_of(*people or PEOPLE)
    return alternative_annotator_test(answers, labels_of(judge, answers), **options)


@pytest.mark.parametrize("case", PUBLISHED)
def test_the_verdict_is_that_of_the_published_program(case):
    judge, epsilon = case
    verdict = result_of(JUDGES[judge], epsilon=epsilon)
    rate, advantage, p_values = PUBLISHED[case]
    assert (verdict.winning_rate, verdict.advantage) == pytest.approx((rate, advantage))
    assert [one.p for one in verdict.annotators if one.p is not None] == pytest.approx(p_values, abs=1e-6)
    assert verdict.passed is (rate >= 0.5)
    assert not verdict.reasons


def test_few_people_or_units_give_no_verdict_and_a_copy_of_an_annotator_wins_for_certain():
    eve = result_of(JUDGES["good"]).annotators[4]
    assert (eve.annotator, eve.units, eve.p, eve.adjusted, eve.judge_wins) == ("eve", 28, None, None, False)
    two, one = (result_of(JUDGES["good"], *people, epsilon=0.2) for people in (("ada", "cleo"), ("ada",)))
    assert one.reasons == two.reasons == (NoVerdict.FEW_ANNOTATORS,)
    assert (two.passed, two.winning_rate, one.annotators[0].units) == (None, 1, 0)
    assert result_of("." * 60).passed is None
    ada = result_of(PEOPLE["ada"]).annotators[0]
    assert (ada.judge, ada.person, ada.p) == (1, 1, 0)
    verdict = result_of("." * 31 + JUDGES["good"][31:])
    assert verdict.reasons == (NoVerdict.FEW_UNITS,)
    assert (verdict.passed, verdict.winning_rate, verdict.advantage) == (None, None, None)
    assert max(one.units for one in verdict.annotators) == 29


@pytest.mark.parametrize("epsilon", [-0.1, 1, float("nan")])
def test_an_epsilon_that_cannot_be_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        result_of(JUDGES["good"], epsilon=epsilon)


def test_labels_that_do_not_fit_the_answers_are_refused():
    answers = answers_of(*PEOPLE)
    for judge in (np.zeros(59, dtype=int), np.full(60, 5), np.full(60, -2)):
        with pytest.raises(ValueError, match="do not match the answers"):
            alternative_annotator_test(answers, judge)
