"""The form of an answer that is one of two systems, and the lot by which one of them stands first."""

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.core.draws.hash_order import secret_lot
from annotate.core.estimation.proportions import proportion
from annotate.kinds.forms import CHOICE, FORMS, pair

PAIR = FORMS["pair"]
SYSTEMS = st.from_regex(pair.SYSTEM, fullmatch=True).filter(lambda name: name not in pair.TAKEN)


@pytest.mark.parametrize("name", ["read", "check", "name", "agrees", "facets", "values", "distances", "unlike"])
def test_it_is_called_like_any_form(name):
    assert inspect.signature(getattr(PAIR, name)) == inspect.signature(getattr(CHOICE, name))
    assert [slug for slug, form in FORMS.items() if "sides" in form.controls] == ["pair"]


@given(first=SYSTEMS, second=SYSTEMS, side=st.sampled_from(pair.SIDES))
def test_what_is_sent_as_a_side_is_stored_as_a_system_and_told_as_that_side_again(first, second, side):
    if first != second:
        stored = PAIR.from_side(side, first, second)
        assert stored in (first, second, "tie")
        assert PAIR.to_side(stored, first) == side


def test_the_same_system_is_another_side_for_whom_it_stands_second():
    assert PAIR.from_side("first", "mt5", "bert") == PAIR.from_side("second", "bert", "mt5") == "mt5"
    assert PAIR.to_side("mt5", "mt5") == "first"
    assert PAIR.to_side("mt5", "bert") == "second"


def test_no_answer_stays_none():
    assert PAIR.from_side("", "mt5", "bert") == PAIR.to_side("", "mt5") == ""


@pytest.mark.parametrize("sent", ["mt5", "bert", "none", "First", "another", "0"])
def test_the_name_of_a_system_is_refused_in_the_same_words_as_any_other(sent):
    with pytest.raises(ValueError, match=rf"^'{sent}' is not an answer here; it is one of first, second, tie\.$"):
        PAIR.from_side(sent, "mt5", "bert")


@pytest.mark.parametrize("name", ["mt5", "XLM-R", "a", "0", "bert_2.1", "a" * 40])
def test_a_system_has_a_plain_name(name):
    pair.check_system(name)


@pytest.mark.parametrize("name", ["tie", "first", "second", "none"])
def test_no_system_is_called_by_a_word_that_says_something_else(name):
    with pytest.raises(ValueError, match=rf"^No system can be called {name}, which says something else here\."):
        pair.check_system(name)


@pytest.mark.parametrize("name", ["", "-a", ".a", "_a", "a b", "ä", "a" * 41, "a\n", "a/b", "<b>"])
def test_other_names_are_refused_in_a_sentence(name):
    with pytest.raises(ValueError, match=r" cannot be the name of a system\. Write up to 40 letters"):
        pair.check_system(name)


def test_a_secret_lot_is_an_hmac_that_nobody_draws_without_the_secret():
    # What `printf sides:1 | openssl dgst -sha256 -hmac key` prints.
    assert secret_lot("key", "sides", "1") == "f498461a6af22aa9cf0cfd1df0d74e3f0d7ae40e6e7bf78802a22af71f8f8ee8"
    assert secret_lot("key", "sides", "1") != secret_lot("other", "sides", "1") != secret_lot("other", "sides", "2")


def test_the_lots_of_6000_fall_on_either_half_within_the_interval():
    low = sum(int(secret_lot("a secret", "sides", str(key))[0], 16) < 8 for key in range(6000))
    assert proportion(low, 6000).low <= 0.5 <= proportion(low, 6000).high
