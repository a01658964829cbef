"""Ids, labels, workers and authors that pandas, Excel or a site has spoilt."""

import pytest

from corpora.core.values import ValueFault, is_missing, is_removed, matching, read_value

NFD = "cafe\u0301"


@pytest.mark.parametrize(
    "written", ["", "  ", "nan", "NaN", "None", "NULL", "null", "N/A", "#N/A", "<NA>", "NaT", "NA"]
)
def test_a_word_for_none_is_no_value(written):
    assert is_missing(written)
    assert read_value(written) == ""


@pytest.mark.parametrize("value", [None, float("nan")])
def test_neither_null_nor_nan_is_a_value(value):
    assert read_value(value) == ""


@pytest.mark.parametrize("written", ["none", "none of these", "na", "no", "0", "false", "Nan", "not", "N"])
def test_other_words_are_values(written):
    assert read_value(written) == written


def test_a_word_for_none_is_a_value_where_somebody_has_said_so():
    assert read_value("None", ["None", "Some"]) == "None"


@pytest.mark.parametrize(
    ("written", "taken"),
    [
        ("1.0", "1"),
        (1.0, "1"),
        ("-3,00", "-3"),
        (7, "7"),
        ("007", "007"),
        ("1.5", "1.5"),
        (NFD, "café"),
        ("\u00a0a \u3000 b ", "a b"),
    ],
)
def test_one_value_is_written_in_one_way(written, taken):
    assert read_value(written) == taken


def test_a_value_is_taken_as_those_that_are_known_have_it():
    assert matching("1", ["0.0", "1.0"]) == "1.0"
    assert matching("1.0", ["0", "1"]) == "1"
    assert read_value("1.0", ["0.0", "1.0"]) == "1.0"
    assert matching("2", ["0", "1"]) == "2"


@pytest.mark.parametrize("written", ["9.06E+17", "1e5", "906000000000000000.0"])
def test_a_number_whose_digits_are_lost_is_refused(written):
    with pytest.raises(ValueFault, match="is a number that another program has rewritten"):
        read_value(written)


@pytest.mark.parametrize(
    "text",
    [
        "[deleted]",
        "[Removed]",
        "[deleted by user]",
        "[ Removed by Reddit ]",
        "[ Removed by reddit in response to a copyright notice. ]",
        "[ Removed by Reddit on account of violating the [content policy](/help/contentpolicy). ]",
        "[comment removed by moderator]",
    ],
)
def test_a_notice_of_removal_is_known_in_its_forms(text):
    assert is_removed(text)


@pytest.mark.parametrize(
    "text", ["removed", "[removed the crusts first]", "[sic]", "I [deleted] it", "deleted by user"]
)
def test_other_words_in_brackets_are_no_notice(text):
    assert not is_removed(text)
