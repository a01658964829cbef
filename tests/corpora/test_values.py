"""Ids, labels, workers and authors that pandas, Excel or a site has damaged."""

import pytest

from corpora.core.values import ValueFault, is_missing, is_removed, matching, read_value, word_count

NFD = "cafe\u0301"


def test_a_word_for_none_is_no_value_unless_it_is_declared():
    for written in ["", "  ", "nan", "NaN", "None", "NULL", "null", "N/A", "#N/A", "<NA>", "NaT", "NA"]:
        assert is_missing(written)
        assert read_value(written) == ""
    assert [read_value(None), read_value(float("nan"))] == ["", ""]
    others = ["none", "none of these", "na", "no", "0", "false", "Nan", "not", "N"]
    assert [read_value(written) for written in others] == others
    assert read_value("None", ["None", "Some"]) == "None"


def test_one_value_is_written_in_one_way():
    written = ["1.0", 1.0, "-3,00", 7, "007", "1.5", NFD, "\u00a0a \u3000 b "]
    assert [read_value(value) for value in written] == ["1", "1", "-3", "7", "007", "1.5", "café", "a b"]


def test_a_value_is_taken_as_those_that_are_known_have_it():
    assert matching("1", ["0.0", "1.0"]) == "1.0"
    assert matching("1.0", ["0", "1"]) == "1"
    assert read_value("1.0", ["0.0", "1.0"]) == "1.0"
    assert matching("2", ["0", "1"]) == "2"


@pytest.mark.parametrize("written", ["9.06E+17", "1e5", "906000000000000000.0"])
def test_a_number_whose_digits_are_lost_is_refused(written):
    with pytest.raises(ValueFault, match="is a number that another program has rewritten"):
        read_value(written)


@pytest.mark.parametrize("written", ["TRUE", "False"])
def test_a_truth_value_is_no_name_but_may_be_a_label(written):
    assert read_value(written) == written
    with pytest.raises(ValueFault, match="is a truth value, perhaps rewritten by another program"):
        read_value(written, is_name=True)


def test_characters_that_nobody_can_see_are_removed():
    assert [read_value(value) for value in ("\ufeffx", "a\u200bb")] == ["x", "ab"]


NOTICES = [
    "[deleted]",
    "[Removed]",
    "[deleted by user]",
    "[ Removed by Reddit ]",
    "[ Removed by reddit in response to a copyright notice. ]",
    "[ Removed by Reddit on account of violating the [content policy](/help/contentpolicy). ]",
    "[comment removed by moderator]",
    "[deleted by author]",
    "[Deleted User]",
    "[redacted]",
    "[unavailable]",
    "[removed too many times]",
    "[removed: spam]",
    "\\[deleted\\]",
    "**[removed]**",
    "&#91;deleted&#93;",
    "[gelöscht]",
    "This message was deleted",
    "Comment removed by moderator",
    "Sorry, this post has been removed by the moderators of r/science.",
]
SAID = "The user was deleted by mistake, and then all of my files were gone"
NO_NOTICES = [
    "removed",
    "[removed the crusts first]",
    "[sic]",
    "I [deleted] it",
    "deleted by user",
    "[dead serious]",
    SAID,
]


def test_a_notice_of_removal_is_known_in_its_forms():
    assert [text for text in [*NOTICES, *NO_NOTICES] if is_removed(text)] == NOTICES


def test_words_are_counted_by_spaces_or_by_characters_where_a_script_has_no_spaces():
    assert [word_count(text) for text in ("", "Two\twords.\n", "naïve idea", "日本語 ok", "ไทย", "한국 말")] == [
        0,
        2,
        2,
        4,
        3,
        2,
    ]
