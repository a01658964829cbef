import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.core import stages
from annotate.core.aggregation.answer_table import majority


def test_every_stage_can_be_reached_and_every_unfinished_one_can_be_left():
    reached = {end for _, _, end, _ in stages.MOVES} | {stages.NEW}
    left = {start for start, _, _, _ in stages.MOVES}
    assert reached == set(stages.STAGES)
    assert set(stages.STAGES) - set(stages.FINISHED) <= left


def test_a_move_that_is_not_in_the_table_is_refused():
    with pytest.raises(ValueError, match="AGREED to QUEUED by 'skipped'"):
        stages.check_move(stages.AGREED, "skipped", stages.QUEUED)


def test_every_move_is_told_in_words_and_as_above_means_the_words_above():
    told = {(start, event, end): stages.happened(start, event, end) for start, event, end, _ in stages.MOVES}
    assert all(words and words != "as above" for words in told.values())
    assert told[stages.DISCARDED, "undone", stages.QUEUED] == "an answer was taken back"
    with pytest.raises(ValueError, match="no unit goes from AGREED to QUEUED by 'skipped'"):
        stages.happened(stages.AGREED, "skipped", stages.QUEUED)


@given(st.lists(st.sampled_from("abc"), max_size=7))
def test_the_majority_is_what_more_than_half_said_whatever_the_order(answers):
    label = majority(answers)
    assert label == majority(answers[::-1])
    for candidate in "abc":
        assert (label == candidate) == (answers.count(candidate) * 2 > len(answers))


def test_two_of_three_are_a_majority_and_three_different_ones_are_none():
    assert majority(["a", "b", "a"]) == "a"
    assert majority(["a", "b", "c"]) is None
    assert majority(["a", "b"]) is None
    assert majority([]) is None
