"""The form of an answer that is a set of labels."""

import inspect
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.core.aggregation.answer_table import at_first, outcome
from annotate.kinds import KINDS
from annotate.kinds.forms import CHOICE, FORMS, labels

CODES = {"1565", "2443", "2644", "c_4ee83dea", "c_4EE83DEA"}
LABELS = FORMS["labels"]
ANSWERS = st.lists(st.sets(st.sampled_from("abcd"), min_size=1).map(lambda ids: LABELS.read([*ids])), min_size=1)


@pytest.mark.parametrize("name", ["read", "check", "agrees", "facets", "values", "distances"])
def test_it_is_called_like_any_form(name):
    own, other = (inspect.signature(getattr(form, name)).parameters for form in (LABELS, CHOICE))
    assert [key for key, each in own.items() if each.default is inspect.Parameter.empty] == [*other]
    assert LABELS.aggregations.keys() == CHOICE.aggregations.keys()


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
    kind = replace(KINDS["language"], form=LABELS).with_parts(pages={"called": names.__getitem__})
    assert kind.name("1565 2443") == "tariff, preferential; import"


@pytest.mark.parametrize(
    ("answers", "kept"),
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
def test_a_label_stays_that_more_than_half_chose_two_of_three(answers, kept):
    assert {labels.majority(order) for order in permutations(answers)} == {kept}
    assert labels.support(["a b", "b c", "b"]) == {"a": 1, "b": 3, "c": 1}


@given(st.lists(ANSWERS.map(lambda answers: answers[0]), min_size=5, max_size=5), st.sampled_from([1, 3, 5]))
def test_stopping_early_where_enough_people_give_the_same_set_never_changes_the_labels(answers, asked):
    redundancy = at_first(asked, stop_early=True)
    options = {"aggregate": labels.majority, "order": (), "people": asked}
    while isinstance(came_to := outcome(answers[:redundancy], **options), int):
        redundancy = came_to
    assert came_to == labels.majority(answers[:asked])


@pytest.mark.parametrize(
    ("said", "known", "right_from", "right"),
    [
        ("a b", "b c", 0.5, True),  # one of two each: F1 is a half
        ("a", "a b c d", 0.5, False),  # 2/5
        ("a b c", "a b c d", 0.8, True),  # 6/7
        ("a b c", "a b c d", 0.9, False),
        ("a b", "a b", 1.0, True),
        ("", "a", 0.5, False),
    ],
)
def test_an_answer_is_right_from_a_stated_f1_on(said, known, right_from, right):
    assert LABELS.agrees(said, known, right_from) is right
    assert LABELS.agrees(said, known) is (right if right_from == 0.5 else True)


def test_agreement_tells_the_sets_apart_that_were_given_and_compares_people_by_masi():
    said = ["b c", "a b", "b c"]
    assert LABELS.values(["a", "b", "c", "d"], said) == ["a b", "b c"]
    found = LABELS.distances(["a b", "b c"])
    assert list(found) == ["nominal", "jaccard", "masi"]
    assert [round(float(each[0, 1]), 4) for each in found.values()] == [1.0, 0.6667, 0.8889]
    assert [each.shape for each in LABELS.distances([]).values()] == [(0, 0)] * 3
