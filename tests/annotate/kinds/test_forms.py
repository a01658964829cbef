"""The answer forms `labels` (a set of labels) and `pair` (one of two systems in random order)."""

import hmac
import inspect
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.core.aggregation.answer_table import at_first, outcome
from annotate.core.draws.hash_order import secret_lot
from annotate.core.estimation.proportions import proportion
from annotate.kinds import KINDS
from annotate.kinds.forms import CHOICE, FORMS, choice, labels

CODES = {"1565", "2443", "2644", "c_4ee83dea", "c_4EE83DEA"}
LABELS, PAIR = FORMS["labels"], FORMS["pair"]
ANSWERS = st.lists(st.sets(st.sampled_from("abcd"), min_size=1).map(lambda ids: LABELS.read([*ids])), min_size=1)


@pytest.mark.parametrize("form", [LABELS, PAIR], ids=["labels", "pair"])
@pytest.mark.parametrize("name", ["read", "check", "agrees", "facets", "values", "distances", "unlike"])
def test_it_is_called_like_any_form(form, name):
    parameters, other = (inspect.signature(getattr(candidate, name)).parameters for candidate in (form, CHOICE))
    assert [key for key, parameter in parameters.items() if parameter.default is inspect.Parameter.empty] == [*other]
    assert LABELS.aggregations.keys() == CHOICE.aggregations.keys()
    assert [slug for slug, form in FORMS.items() if "sides" in form.controls] == ["pair"]


@pytest.mark.parametrize(
    "sent", [["2644", "1565", "c_4ee83dea"], ["c_4ee83dea 2644", "", "1565"], [" 2644\t1565 c_4ee83dea"]]
)
def test_ids_are_read_in_any_order_together_or_one_by_one_and_stored_sorted_as_text(sent):
    assert LABELS.read(sent) == "1565 2644 c_4ee83dea"
    assert LABELS.read([]) == LABELS.read(["", " "]) == ""


def test_a_label_that_is_sent_twice_is_refused_and_ids_that_differ_by_case_are_two():
    with pytest.raises(ValueError, match=r"^1565 was sent twice\. Send each label once\.$"):
        LABELS.read(["1565", "2443", "1565"])
    assert LABELS.read(["c_4ee83dea", "c_4EE83DEA"]) == "c_4EE83DEA c_4ee83dea"


@pytest.mark.parametrize(
    ("text", "counts", "sentence"),
    [
        ("1565 99", {}, "'99' is not one of the 5 valid labels. Look it up or remove it."),
        ("1565 1565", {}, "1565 occurs twice. Name each label once."),
        ("2443 1565", {}, "'2443 1565' is not sorted or not separated by single spaces. Write '1565 2443'."),
        ("1565  2443", {}, "'1565  2443' is not sorted or not separated by single spaces. Write '1565 2443'."),
        ("", {}, "0 labels were chosen, but at least 1 are required. Add the missing labels."),
        ("1565", {"least": 2}, "1 label was chosen, but at least 2 are required. Add the missing labels."),
        (
            "1565 2443 2644",
            {"most": 2},
            "3 labels were chosen, but at most 2 are allowed. Remove the least suitable labels.",
        ),
    ],
)
def test_labels_that_are_unknown_twice_too_few_or_too_many_are_refused_with_a_sentence(text, counts, sentence):
    with pytest.raises(ValueError) as refused:
        LABELS.check(text, CODES, **counts)
    assert str(refused.value) == sentence


@given(st.sets(st.sampled_from(sorted(CODES)), min_size=1))
def test_what_is_read_of_labels_that_there_are_may_be_given_and_comes_apart_again(ids):
    text = LABELS.read([*ids])
    LABELS.check(text, CODES, least=1, most=len(CODES))
    assert set(LABELS.facets(text)) == ids
    assert LABELS.read([text]) == text


def test_names_are_parted_by_semicolons_since_they_have_commas():
    names = {"1565": "tariff, preferential", "2443": "import"}
    kind = replace(KINDS["language"], form=LABELS).with_parts(pages={"code_name": names.__getitem__})
    assert kind.name("1565 2443") == "tariff, preferential; import"


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (["a b", "b c", "c d"], "b c"),
        (["a b", "a b", "c"], "a b"),
        (["a", "b", "c"], None),
        (["a b"], "a b"),
        (["a b", "a c"], "a"),
        (["a", "b"], None),
        (["a b", "a b", "a", "c", "c"], "a"),
        ([], None),
    ],
)
def test_a_label_stays_that_more_than_half_chose_two_of_three(answers, expected):
    assert {labels.majority(order) for order in permutations(answers)} == {expected}
    assert labels.support(["a b", "b c", "b"]) == {"a": 1, "b": 3, "c": 1}


@given(st.lists(ANSWERS.map(lambda answers: answers[0]), min_size=5, max_size=5), st.sampled_from([1, 3, 5]))
def test_stopping_early_where_enough_people_give_the_same_set_never_changes_the_labels(answers, people):
    redundancy = at_first(people, stop_early=True)
    options = {"aggregate": labels.majority, "order": (), "people": people}
    while isinstance(came_to := outcome(answers[:redundancy], **options), int):
        redundancy = came_to
    assert came_to == labels.majority(answers[:people])


@pytest.mark.parametrize(
    ("answer", "gold", "right_from", "right"),
    [
        ("a b", "b c", 0.5, True),  # one of two each: F1 is a half
        ("a", "a b c d", 0.5, False),  # 2/5
        ("a b c", "a b c d", 0.8, True),  # 6/7
        ("a b c", "a b c d", 0.9, False),
        ("a b", "a b", 1.0, True),
        ("", "a", 0.5, False),
    ],
)
def test_an_answer_is_right_from_a_stated_f1_on(answer, gold, right_from, right):
    assert LABELS.agrees(answer, gold, right_from) is right
    assert LABELS.agrees(answer, gold) is (right if right_from == 0.5 else True)


def test_agreement_tells_the_sets_apart_that_were_given_and_compares_people_by_masi():
    answers = ["b c", "a b", "b c"]
    assert LABELS.values(["a", "b", "c", "d"], answers) == ["a b", "b c"]
    distances = LABELS.distances(["a b", "b c"])
    assert list(distances) == ["nominal", "jaccard", "masi"]
    assert [round(float(matrix[0, 1]), 4) for matrix in distances.values()] == [1.0, 0.6667, 0.8889]
    assert [matrix.shape for matrix in LABELS.distances([]).values()] == [(0, 0)] * 3


SYSTEMS = st.from_regex(choice.SYSTEM, fullmatch=True).filter(lambda name: name not in choice.RESERVED_NAMES)


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
    for secret in ("", "a" * 64, "ä" * 40):
        assert secret_lot(secret, "sides", "1") == hmac.digest(secret.encode(), b"sides:1", "sha256").hex()
    assert secret_lot("key", "sides", "1") != secret_lot("other", "sides", "1") != secret_lot("other", "sides", "2")
    low = sum(int(secret_lot("a secret", "sides", str(key))[0], 16) < 8 for key in range(6000))
    assert proportion(low, 6000).low <= 0.5 <= proportion(low, 6000).high
