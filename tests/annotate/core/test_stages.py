"""The stages of a unit and its moves between them, and the majority of its answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.core import stages
from annotate.core.aggregation.answer_table import majority


def test_every_stage_can_be_reached_every_unfinished_one_can_be_left_and_every_move_is_told_in_words():
    reached = {end for _, _, end, _ in stages.MOVES} | {stages.NEW}
    left = {start for start, _, _, _ in stages.MOVES}
    assert reached == set(stages.STAGES)
    assert set(stages.STAGES) - set(stages.FINISHED) <= left
    words = {(start, event, end): stages.happened(start, event, end) for start, event, end, _ in stages.MOVES}
    assert all(sentence and sentence != "as above" for sentence in words.values())
    assert words[stages.DISCARDED, "undone", stages.QUEUED] == "an answer was undone"


def test_a_move_that_is_not_in_the_table_is_refused():
    for function in (stages.check_move, stages.happened):
        with pytest.raises(ValueError, match="AGREED to QUEUED by 'skipped'"):
            function(stages.AGREED, "skipped", stages.QUEUED)


@given(st.lists(st.sampled_from("abc"), max_size=7))
def test_the_majority_is_what_more_than_half_said_whatever_the_order(answers):
    label = majority(answers)
    assert label == majority(answers[::-1])
    for candidate in "abc":
        assert (label == candidate) == (answers.count(candidate) * 2 > len(answers))
