"""The rule of the pause: the lookup against its definition, and its chances against counting every case."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from annotate.core.pause_rule import (
    CHOICES,
    DEFAULT,
    Rule,
    chance_of_pause,
    limit,
    mean_until_pause,
    pauses,
    probability_below,
    table,
)

RULES = st.builds(Rule, below=st.floats(0, 1), confidence=st.floats(0.5, 1, exclude_max=True), least=st.integers(1, 30))
COUNTS = st.integers(0, 60).flatmap(lambda number: st.tuples(st.integers(0, number), st.just(number)))


@given(COUNTS, RULES)
def test_people_are_paused_when_the_posterior_says_that_they_are_below(counts, rule):
    right, total = counts
    sure = beta.cdf(rule.below, right + 0.5, total - right + 0.5)
    if abs(sure - rule.confidence) > 1e-9:  # else the two ways of computing it may differ
        assert pauses(right, total, rule) == (total >= rule.least and sure >= rule.confidence)
    # One more right answer never pauses, and one more wrong answer never saves.
    if pauses(right, total, rule):
        assert pauses(right, total + 1, rule)
    elif total >= rule.least:
        assert not pauses(right + 1, total + 1, rule)
    assert limit(total, rule) <= limit(total + 1, rule)


def by_counting(accuracy, total, rule):
    """Sum the chances of all sequences of right and wrong answers; one is paused if any beginning of it is."""
    chances = [0.0] * total
    for answers in product((0, 1), repeat=total):
        chance = accuracy ** sum(answers) * (1 - accuracy) ** (total - sum(answers))
        for number in range(1, total + 1):
            if number >= rule.least:
                right = sum(answers[:number])
                if probability_below(right, number, rule.below) >= rule.confidence:
                    for later in range(number - 1, total):
                        chances[later] += chance
                    break
    return chances


@pytest.mark.parametrize("rule", [DEFAULT, Rule(0.6, 0.8, 3), Rule(0.9, 0.5, 1), Rule(0.75, 0.9, 5)])
@pytest.mark.parametrize("accuracy", [0.0, 0.2, 0.5, 0.85, 1.0])
def test_the_chance_is_that_of_all_sequences_counted_one_by_one(accuracy, rule):
    assert chance_of_pause(accuracy, 11, rule) == pytest.approx(by_counting(accuracy, 11, rule), abs=1e-12)


@given(st.floats(0, 1), st.floats(0, 1), RULES)
def test_better_people_are_paused_less_and_the_chance_never_falls_with_time(one, other, rule):
    worse = chance_of_pause(min(one, other), 30, rule)
    better = chance_of_pause(max(one, other), 30, rule)
    assert all(a >= b - 1e-9 for a, b in zip(worse, better, strict=True))
    assert worse == sorted(worse)
    assert all(0 <= chance <= 1 for chance in worse)
    assert not any(worse[: rule.least - 1])
    assert chance_of_pause(one, 40, Rule(below=0))[-1] == 0


def test_the_mean_is_that_of_the_number_at_the_pause():
    by = chance_of_pause(0.5, 900, DEFAULT)
    first = [later - earlier for earlier, later in zip([0.0, *by], by, strict=False)]
    assert mean_until_pause(0.5, DEFAULT) == pytest.approx(
        sum(number * chance for number, chance in enumerate(first, 1)), abs=0.01
    )
    assert mean_until_pause(0.0, DEFAULT) == DEFAULT.least
    assert mean_until_pause(0.7, DEFAULT) is None  # as good as is asked: most are never paused


def test_the_table_has_a_row_a_rule_and_accuracy_and_says_which_pauses_are_errors():
    rows = table([DEFAULT, Rule(below=0.6)], (0.5, 0.6, 0.7), (10, 40))
    accuracies = [(rule, accuracy, accuracy >= rule) for rule in (0.7, 0.6) for accuracy in (0.5, 0.6, 0.7)]
    assert [(row.rule.below, row.accuracy, row.is_false_pause) for row in rows] == accuracies
    for row in rows:
        assert row.by == tuple((number, chance_of_pause(row.accuracy, 40, row.rule)[number - 1]) for number in (10, 40))


def test_the_default_rule_finds_most_who_answer_at_random_and_hardly_anybody_who_works_well():
    """The figures that the documentation gives for a manager to choose by."""
    percentages = {row.accuracy: [round(100 * chance, 1) for _, chance in row.by] for row in table([DEFAULT])}
    assert percentages == {
        0.2: [97.3, 100.0, 100.0],
        0.5: [43.2, 71.7, 92.1],
        0.6: [21.1, 39.9, 60.0],
        0.7: [7.0, 13.4, 18.9],
        0.8: [1.2, 2.1, 2.3],
        0.9: [0.0, 0.1, 0.1],
        0.95: [0.0, 0.0, 0.0],
    }
    assert mean_until_pause(0.5, DEFAULT) == pytest.approx(17.95, abs=0.005)
    assert DEFAULT in CHOICES


ACCURACIES = (0.2, 0.5, 0.6, 0.7, 0.8, 0.9)


def test_the_table_for_managers_is_exact(settings):
    text = (settings.BASE_DIR / "annotate/docs/explanation/pausing.md").read_text(encoding="utf-8")
    rows = text.split("by the 20th and the 40th gold answer |")[1].split("\n\n")[0].replace("*", "").splitlines()[2:]
    assert len(rows) == len(CHOICES)
    for row, rule in zip(rows, CHOICES, strict=True):
        named = f"below {rule.below:.0%}, {rule.confidence:.0%} sure"
        by_accuracy = [
            [100 * chance_of_pause(accuracy, number, rule)[-1] for number in (20, 40)] for accuracy in ACCURACIES
        ]
        chances = [f"{by_20th:.1f}, {by_40th:.1f}" for by_20th, by_40th in by_accuracy]
        assert [cell.strip() for cell in row.strip("| ").split("|")] == [named, *chances]


def test_rules_and_counts_that_cannot_be_are_refused_with_what_is_wrong():
    for refused, sentence in (
        (lambda: Rule(below=1.2), "The accuracy that annotators must reach must be between 0 and 1, not 1.2."),
        (lambda: Rule(confidence=95), "The confidence of a pause must be between 0 and 1, not 95."),
        (lambda: Rule(least=0), "The number of gold answers before a pause must be at least 1, not 0."),
        (lambda: pauses(5, 4, DEFAULT), "5 right answers out of 4 gold answers are impossible"),
        (lambda: chance_of_pause(2, 4, DEFAULT), "An accuracy must be between 0 and 1, not 2"),
    ):
        with pytest.raises(ValueError, match=sentence):
            refused()
