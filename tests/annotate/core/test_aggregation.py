from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.core import stages
from annotate.core.aggregation.answer_table import at_first, majority, median, outcome

GRADES = ["4", "3", "2", "1", "0"]
ANSWERS = st.lists(st.sampled_from("abc"), min_size=1, max_size=7)


@pytest.mark.parametrize(
    ("answers", "people", "label"),
    [
        *(("a", 0, "a"), ("aa", 0, "a"), ("ab", 0, None), ("aab", 0, "a"), ("abc", 0, None), ("aabb", 0, None)),
        *(("aaab", 0, "a"), ("", 0, None)),
        # Of more answers than three two suffice, unless as many agree on something else.
        *(("abca", 3, "a"), ("abcab", 3, None), ("abcac", 3, None), ("abcaa", 3, "a"), ("abcd", 3, None)),
    ],
)
def test_a_label_is_what_more_than_half_answered(answers, people, label):
    assert majority(list(answers), people=people) == label


@given(ANSWERS)
def test_the_order_of_the_answers_plays_no_part(answers):
    assert len({majority(list(order)) for order in permutations(answers[:5])}) == 1


@pytest.mark.parametrize(("answers", "label"), [("321", "2"), ("400", "0"), ("443", "4"), ("31", "1"), ("", None)])
def test_the_median_is_the_grade_in_the_middle_or_the_worse_of_two(answers, label):
    assert median(list(answers), GRADES) == label


def run(answers, **options):
    """The label of a unit, and how many of the answers it took."""
    options = {"aggregate": majority, "order": GRADES, "people": 3} | options
    redundancy = at_first(options["people"], stop_early=options.pop("stop_early", False))
    while isinstance(came_to := outcome(answers[:redundancy], **options), int):
        assert came_to == redundancy + 1
        redundancy = came_to
    return came_to, redundancy


@pytest.mark.parametrize(
    ("answers", "options", "label", "took"),
    [
        ("aab", {}, "a", 3),
        ("abc", {}, None, 3),
        ("aab", {"stop_early": True}, "a", 2),
        ("aba", {"stop_early": True}, "a", 3),
        ("abc", {"stop_early": True}, None, 3),
        ("aabbb", {"people": 5, "stop_early": True}, "b", 5),
        ("aaabb", {"people": 5, "stop_early": True}, "a", 3),
        ("420", {"aggregate": median}, "2", 3),
        ("420", {"aggregate": median, "stop_early": True}, "2", 3),
        ("440", {"aggregate": median, "stop_early": True}, "4", 2),
    ],
)
def test_people_are_asked_until_the_label_is_certain(answers, options, label, took):
    assert run(list(answers), **options) == (label, took)


@given(st.lists(st.sampled_from(GRADES), min_size=9, max_size=9), st.sampled_from([1, 3, 5, 7, 9]))
def test_stopping_early_changes_no_label_of_two_and_no_majority_or_median_of_grades(answers, people):
    of_two = ["a" if answer in "43" else "b" for answer in answers]
    for labels, aggregate in ((of_two, majority), (answers, majority), (answers, median)):
        options = {"people": people, "aggregate": aggregate}
        assert run(labels, stop_early=True, **options)[0] == run(labels, **options)[0]


# --- the stages of a unit and its moves between them, and the majority of its answers


def test_every_stage_can_be_reached_every_unfinished_one_can_be_left_and_every_move_is_told_in_words():
    reached = {end for _, _, end, _ in stages.MOVES} | {stages.NEW}
    left = {start for start, _, _, _ in stages.MOVES}
    assert reached == set(stages.STAGES)
    assert set(stages.STAGES) - set(stages.FINISHED) <= left
    words = {(start, event, end): stages.describe_move(start, event, end) for start, event, end, _ in stages.MOVES}
    assert all(sentence and sentence != "as above" for sentence in words.values())
    assert words[stages.DISCARDED, "undone", stages.QUEUED] == "an answer was undone"


def test_a_move_that_is_not_in_the_table_is_refused():
    for function in (stages.check_move, stages.describe_move):
        with pytest.raises(ValueError, match="AGREED to QUEUED by 'skipped'"):
            function(stages.AGREED, "skipped", stages.QUEUED)
