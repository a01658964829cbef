"""What people prefer, from judgments of two systems each, how far the figures can be trusted, and the strengths of
systems, held against choix."""

import choix
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.core.measures.paired_comparisons import (
    NONE,
    TIE,
    Judgment,
    compare_pairs,
    groups,
    majority,
    order,
    sides,
    strengths,
    win_rates,
)
from annotate.core.measures.ranked_labels import Share
from tests.annotate.simulated_preferences import (
    POPULATIONS,
    SYSTEMS,
    Field,
    Population,
    compared_judgments,
    judgments,
)

AB = ("a", "b")


def judgments_of(*answers, systems=AB):
    """A unit for each text of answers, such as "aab" or "at", t being a tie."""
    names = {"a": systems[0], "b": systems[1], "t": TIE}
    return [
        Judgment((systems, unit), place, systems, names[answer])
        for unit, text in enumerate(answers)
        for place, answer in enumerate(text)
    ]


def test_shares_are_of_judgments_and_of_majorities_with_ties_apart():
    [pair] = compare_pairs(judgments_of("aaa", "aab", "btt", "abt", "bba"))
    assert (pair.units, pair.judgments, pair.counts) == (5, 15, {"a": 7, "b": 5, TIE: 3})
    assert {answer: share.value for answer, share in pair.shares.items()} == {"a": 7 / 15, "b": 5 / 15, TIE: 3 / 15}
    assert pair.majority == {"a": 2, "b": 1, TIE: 1, NONE: 1}
    assert pair.majority_shares["a"].value == 2 / 5
    assert pair.win.value == (7 + 3 / 2) / 15


def test_the_sign_test_counts_majorities_and_a_unit_that_lacks_answers_has_none_yet():
    waits = [judgment._replace(unit="waiting", is_finished=False) for judgment in judgments_of("ab")]
    [pair] = compare_pairs([*judgments_of("aaa", "abt"), *waits])
    assert (pair.units, pair.finished, pair.counts) == (3, 2, {"a": 5, "b": 2, TIE: 1})
    assert pair.majority == {"a": 1, "b": 0, TIE: 0, NONE: 1}
    [none] = compare_pairs(waits)
    assert (none.finished, none.majority_shares["a"].value, none.p) == (0, None, 1)
    # The judgments of people who see the same replies are not tested one by one.
    [pair] = compare_pairs(judgments_of("aaa", "aaa", "aaa", "aaa", "bbb"))
    assert pair.p == pytest.approx(2 * (1 + 5) / 2**5)


@pytest.mark.parametrize(
    ("answers", "expected"), [("aab", "a"), ("att", TIE), ("abt", NONE), ("ab", NONE), ("a", "a"), ("aabb", NONE)]
)
def test_a_majority_is_more_than_half(answers, expected):
    assert majority([{"t": TIE}.get(answer, answer) for answer in answers]) == expected


def test_the_interval_of_a_share_is_over_units_and_no_shorter_for_judges_who_repeat_each_other():
    once = compare_pairs(judgments_of(*"aaaaaaabbbtt"))[0]
    thrice = compare_pairs(judgments_of(*(answer * 3 for answer in "aaaaaaabbbtt")))[0]
    for answer in ("a", "b", TIE):
        one, other = once.shares[answer], thrice.shares[answer]
        assert (one.low, one.high) == pytest.approx((other.low, other.high))


def test_a_system_that_everybody_prefers_has_an_interval_below_1():
    [pair] = compare_pairs(judgments_of(*["aaa"] * 12))
    assert (pair.shares["a"].value, pair.shares["a"].high) == (1, 1)
    assert 0.7 < pair.shares["a"].low < 0.9
    assert pair.majority_shares["a"].has_interval
    few = compare_pairs(judgments_of(*["aaa"] * 9))[0]
    assert not any(share.has_interval for share in (few.shares["a"], few.majority_shares["a"], few.win))


def test_each_two_systems_are_told_apart_and_a_system_stands_against_all_others():
    judgments = [
        *judgments_of("aaa", "bbt"),
        *judgments_of("aab", systems=("a", "c")),
        *judgments_of("ttt", systems=("b", "c")),
    ]
    assert [pair.systems for pair in compare_pairs(judgments)] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [(row.system, row.won, row.tied, row.judgments) for row in win_rates(judgments)] == [
        ("a", 5, 1, 9),
        ("b", 2, 4, 9),
        ("c", 1, 3, 6),
    ]
    assert win_rates(judgments)[0].win.value == 5.5 / 9


CYCLE = [
    *judgments_of(*["aab"] * 12, *["abb"] * 8, "att"),
    *judgments_of(*["aab"] * 14, *["bba"] * 6, systems=("a", "c")),
    *judgments_of(*["aab"] * 14, *["tbb"] * 6, systems=("b", "c")),
]


def test_strengths_have_intervals_and_stand_in_their_order():
    ranking = order(CYCLE, ties=False, seed="s", replicates=200)
    assert list(ranking.strengths) == ["a", "b", "c"]
    assert ranking.reference == "a"
    assert ranking.strengths.pop("a") == (0, 0, 0)
    assert all(strength.low < strength.value < strength.high for strength in ranking.strengths.values())
    assert {pair: difference.value for pair, difference in ranking.differences.items()} == pytest.approx(
        {
            ("a", "b"): -ranking.strengths["b"].value,
            ("a", "c"): -ranking.strengths["c"].value,
            ("b", "c"): ranking.strengths["b"].value - ranking.strengths["c"].value,
        }
    )
    ranking.strengths["a"] = Share(0.0, 0.0, 0.0)
    assert ranking == order(CYCLE, ties=False, seed="s", replicates=200)


def test_ties_as_half_draw_the_strengths_together():
    tied = [*CYCLE, *judgments_of(*["ttt"] * 30), *judgments_of(*["ttt"] * 30, systems=("a", "c"))]
    apart, together = (order(tied, ties=ties, seed="s", replicates=20).strengths for ties in (False, True))
    assert apart["a"].value - apart["c"].value > 2 * (together["a"].value - together["c"].value)
    assert {name: strength.value for name, strength in apart.items()} == pytest.approx(
        {name: strength.value for name, strength in order(CYCLE, ties=False, seed="s", replicates=20).strengths.items()}
    )


def test_a_system_that_was_never_preferred_is_reported_and_no_strength_is_infinite():
    ranking = order([*judgments_of("aab", "bba"), *judgments_of("aaa", systems=("a", "c"))], ties=False, seed="s")
    assert (ranking.strengths, ranking.groups, ranking.lost) == ({}, [["a", "b"], ["c"]], 1.0)
    # Nor has anything an interval where too many drawings have none, or of fewer than ten messages.
    ranking = order(
        [*judgments_of(*["aaa"] * 20, "bbb"), *judgments_of("aab", "abb", systems=("a", "c"))], ties=False, seed="s"
    )
    few = order([judgment._replace(message=judgment.unit[1] % 9) for judgment in CYCLE], ties=True, seed="s")
    assert ranking.lost > 0.05
    assert few.lost == 0
    for differences in (ranking.differences, few.differences):
        assert {(difference.low, difference.high) for difference in differences.values()} == {(None, None)}
    assert order([], ties=True, seed="s").strengths == {}
    assert (compare_pairs([]), win_rates([]), sides([])[1]) == ([], [], [])


def test_a_system_with_few_judgments_widens_its_own_differences_alone():
    rare = judgments_of(*["aab", "abb"] * 3, systems=("a", "d"))
    few = order([*CYCLE, *rare], ties=False, seed="s").differences
    without = order(CYCLE, ties=False, seed="s").differences
    widths = {pair: difference.high - difference.low for pair, difference in few.items()}
    assert widths["a", "d"] > 2 * widths["a", "b"]
    for pair, difference in without.items():
        assert widths[pair] == pytest.approx(difference.high - difference.low, rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("ties", [False, True])
def test_of_ten_messages_differences_of_strength_are_held_as_often_as_of_many(ties):
    field, chance = Field((0.4, 0, -0.4), differ=0.8), np.random.default_rng(6)
    truth = field.truth(ties=ties)
    held = []
    for task in range(200):
        ranking = order(compared_judgments(field, 10, chance), ties=ties, seed=str(task), replicates=300)
        held += [gap.low <= truth[a] - truth[b] <= gap.high for (a, b), gap in ranking.differences.items()]
    assert 0.93 <= np.mean(held) <= 0.975


def test_the_first_side_is_counted_where_it_is_known_and_no_tie():
    rows = [("p", "a", "a"), ("p", "a", "b"), ("p", "a", TIE), ("p", "", "a"), ("q", "b", "b"), (None, "a", TIE)]
    whole, people = sides(
        [Judgment(unit, person, AB, answer, first) for unit, (person, first, answer) in enumerate(rows)]
    )
    assert (whole.judgments, whole.ties, whole.first, whole.share.value) == (4, 1, 2, 2 / 3)
    assert {row.person: (row.judgments, row.ties, row.first) for row in people} == {"p": (3, 1, 1), "q": (1, 0, 1)}


@pytest.mark.slow
def test_in_200_tasks_a_judge_who_always_takes_the_left_is_noticed_and_hardly_anybody_else():
    chance = np.random.default_rng(11)
    population = Population((0.45, 0.35, 0.2), alike=1, left=1)
    tasks = [judgments(population, 60, chance) for _ in range(200)]
    first, *_ = people = sides(tasks[0])[1]
    assert (first.person, first.share.value, first.first) == ("judge 0", 1, 60)
    assert len(people) == 3
    seen = [[row.person for row in sides(task)[1] if row.is_flagged] for task in tasks]
    assert all("judge 0" in people for people in seen)
    assert sum(len(people) - 1 for people in seen) <= 6
    # By the two who look, 0.45 to 0.35; he adds as much to each, so that their difference shrinks and does not turn.
    shares = np.array([[compare_pairs(task)[0].shares[answer].value for answer in (*SYSTEMS, TIE)] for task in tasks])
    error = shares.std(axis=0) / len(tasks) ** 0.5
    assert np.abs(shares.mean(axis=0) - list(population.truth().values())) == pytest.approx(0, abs=4 * error.max())
    by_himself = np.mean([sum(j.answer == SYSTEMS[0] for j in task if j.person == "judge 0") / 60 for task in tasks])
    assert by_himself == pytest.approx(0.5, abs=4 * 0.5 / (200 * 60) ** 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("name", POPULATIONS)
def test_in_hard_populations_the_intervals_of_shares_hold_the_truth(name):
    chance, population = np.random.default_rng(3), POPULATIONS[name]
    held = dict.fromkeys(population.truth(), 0)
    for _ in range(300):
        [pair] = compare_pairs(judgments(population, 100, chance))
        for answer, true in population.truth().items():
            held[answer] += pair.shares[answer].low <= true <= pair.shares[answer].high
    # Of 300 draws at 95%, fewer than 276 hold the truth in 1 of 80 runs.
    assert all(number >= 272 for number in held.values()), held


# Won by the row's system against the column's.
THREE = np.array([[0, 6, 4], [2, 0, 5], [1, 3, 0]], float)


def by_choix(wins):
    pairs = [(a, b) for a, row in enumerate(wins) for b, number in enumerate(row) for _ in range(int(number))]
    logs = choix.ilsr_pairwise(len(wins), pairs, alpha=0, max_iter=1000, tol=1e-12)
    return logs - logs.mean()


@given(st.integers(2, 6).flatmap(lambda size: st.lists(st.integers(1, 30), min_size=size**2, max_size=size**2)))
def test_strengths_are_those_of_choix(numbers):
    size = int(len(numbers) ** 0.5)
    wins = np.array(numbers, float).reshape(size, size) * (1 - np.eye(size))
    assert strengths(wins) == pytest.approx(by_choix(wins), abs=1e-6)


def test_systems_are_ordered_through_others_halves_count_and_very_uneven_counts_have_strengths_too():
    wins = np.array([[0, 6, 0], [2, 0, 6], [0, 2, 0]], float)
    assert np.diff(strengths(wins)) == pytest.approx([-np.log(3), -np.log(3)])
    assert strengths(np.array([[0, 0.5], [0.5, 0]])) == pytest.approx([0, 0])
    logs = strengths(np.array([[0, 1e6], [1, 0]]))
    assert logs[0] - logs[1] == pytest.approx(np.log(1e6))


def test_systems_never_beaten_or_never_compared_have_no_strengths_and_unbeaten_groups_come_first():
    apart = np.kron(np.eye(2), [[0, 3], [3, 0]])
    for wins, parts in (
        ([[0, 2, 3], [0, 0, 2], [0, 1, 0]], [[0], [1, 2]]),
        (apart, [[0, 1], [2, 3]]),
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[2], [1], [0]]),
    ):
        assert groups(np.array(wins, float)) == parts
        assert np.isnan(strengths(np.array(wins, float))).all()


def test_many_comparisons_at_once_have_the_strengths_that_each_has_alone():
    unbeaten = np.array([[0, 2, 3], [0, 0, 2], [0, 1, 0]], float)
    whole = np.array([[THREE, unbeaten], [THREE.T, 100 * THREE]])
    assert strengths(whole) == pytest.approx(
        np.array([[strengths(wins) for wins in row] for row in whole]), abs=1e-9, nan_ok=True
    )
