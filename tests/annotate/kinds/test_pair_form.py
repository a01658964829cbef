"""The form of an answer that is one of two systems, and the lot by which one of them stands first."""

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.core.draws.hash_order import secret_lot
from annotate.core.estimation.proportions import proportion
from annotate.kinds.forms import CHOICE, FORMS, choice

PAIR = FORMS["pair"]
SYSTEMS = st.from_regex(choice.SYSTEM, fullmatch=True).filter(lambda name: name not in choice.TAKEN)


@pytest.mark.parametrize("name", ["read", "check", "agrees", "facets", "values", "distances", "unlike"])
def test_it_is_called_like_any_form(name):
    assert inspect.signature(getattr(PAIR, name)) == inspect.signature(getattr(CHOICE, name))
    assert [slug for slug, form in FORMS.items() if "sides" in form.controls] == ["pair"]


@given(first=SYSTEMS, second=SYSTEMS, side=st.sampled_from(choice.SIDES))
def test_what_is_sent_as_a_side_is_stored_as_a_system_and_told_as_that_side_again(first, second, side):
    if first != second:
        stored = PAIR.from_side(side, first, second)
        assert stored in (first, second, "tie")
        assert PAIR.to_side(stored, first) == side


def test_the_same_system_is_another_side_for_whom_it_stands_second():
    assert PAIR.from_side("first", "mt5", "bert") == PAIR.from_side("second", "bert", "mt5") == "mt5"
    assert (PAIR.to_side("mt5", "mt5"), PAIR.to_side("mt5", "bert")) == ("first", "second")
    assert PAIR.from_side("", "mt5", "bert") == PAIR.to_side("", "mt5") == ""


def test_a_systems_name_is_no_answer_is_plain_and_has_no_other_meaning():
    for sent in ("mt5", "bert", "none", "First", "another", "0"):
        with pytest.raises(
            ValueError, match=rf"^'{sent}' is not a valid answer\. Valid answers: first, second, tie\.$"
        ):
            PAIR.from_side(sent, "mt5", "bert")
    for name in ("mt5", "XLM-R", "a", "0", "bert_2.1", "a" * 40):
        choice.check_system(name)
    for name in ("tie", "first", "second", "none"):
        with pytest.raises(ValueError, match=rf"^{name} has a special meaning and cannot be the name of a system\."):
            choice.check_system(name)
    for name in ("", "-a", ".a", "_a", "a b", "ä", "a" * 41, "a\n", "a/b", "<b>"):
        with pytest.raises(ValueError, match=r" is not a valid name for a system\. Use up to 40 letters"):
            choice.check_system(name)


def test_a_secret_lot_is_an_hmac_that_falls_on_either_half_alike():
    # What `printf sides:1 | openssl dgst -sha256 -hmac key` prints.
    assert secret_lot("key", "sides", "1") == "f498461a6af22aa9cf0cfd1df0d74e3f0d7ae40e6e7bf78802a22af71f8f8ee8"
    assert secret_lot("key", "sides", "1") != secret_lot("other", "sides", "1") != secret_lot("other", "sides", "2")
    low = sum(int(secret_lot("a secret", "sides", str(key))[0], 16) < 8 for key in range(6000))
    assert proportion(low, 6000).low <= 0.5 <= proportion(low, 6000).high
