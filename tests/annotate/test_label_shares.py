"""How often labels are in a set's documents: buckets by the train count, and how far splits differ."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.core.draws.splits import apart, buckets, counts, total_variation

COUNTS = st.dictionaries(st.sampled_from("abcde"), st.integers(1, 20), min_size=1).map(Counter)
SPLITS = {
    "train": [{"a", "b"}, {"a", "c"}, {"a"}, {"b"}],
    "dev": [{"b", "d"}, set()],
    "test": [{"e", "a"}],
}


def test_a_label_is_frequent_few_or_zero_by_the_documents_of_train_that_have_it():
    assert counts(SPLITS["train"]) == {"a": 3, "b": 2, "c": 1}
    assert buckets(SPLITS, "train", frequent_over=2) == {"frequent": {"a"}, "few": {"b", "c"}, "zero": {"d", "e"}}
    # As published, over 50.
    assert buckets(SPLITS, "train") == {"frequent": set(), "few": {"a", "b", "c"}, "zero": {"d", "e"}}


@given(st.lists(st.sets(st.sampled_from("abcde"))), st.lists(st.sets(st.sampled_from("abcdefg"))), st.integers(1, 4))
def test_every_label_that_a_split_has_is_in_one_bucket(train, test, over):
    found = buckets({"train": train, "test": test}, "train", frequent_over=over)
    listed = [label for labels in found.values() for label in labels]
    assert len(listed) == len(set(listed))
    assert set(listed) == set().union(*train, *test)


def test_a_threshold_below_1_and_a_split_that_is_missing_are_refused():
    with pytest.raises(ValueError, match="not over 0"):
        buckets(SPLITS, "train", frequent_over=0)
    with pytest.raises(
        ValueError, match="no split 'training', whose documents are counted; there are train, dev, test"
    ):
        buckets(SPLITS, "training")


def test_splits_differ_by_half_the_sum_of_what_their_labels_shares_differ_by():
    # Shares of a, b, c: 1/2, 1/2, 0 and 1/4, 1/4, 1/2.
    assert total_variation(Counter(a=3, b=3), Counter(a=1, b=1, c=2)) == 0.5
    assert total_variation(Counter(a=1), Counter(b=7)) == 1
    assert total_variation(Counter(a=1), Counter()) is None


@given(COUNTS, COUNTS, st.integers(1, 9))
def test_how_far_splits_differ_is_0_for_the_same_shares_and_the_same_either_way(first, second, times):
    more = Counter({label: times * number for label, number in first.items()})
    assert total_variation(first, more) == 0
    assert total_variation(first, second) == total_variation(second, more)
    assert 0 <= total_variation(first, second) <= 1


def drawn(chance, number, shares):
    return [{str(label) for label in chance.choice(len(shares), 3, replace=False, p=shares)} for _ in range(number)]


def test_splits_by_lot_differ_as_chance_would_have_it_and_others_by_more():
    chance = np.random.default_rng(1)
    shares = np.arange(1, 31) / np.arange(1, 31).sum()
    first, second, other = (drawn(chance, 200, each) for each in (shares, shares, shares[::-1]))
    alike, unlike = apart(first, second, seed="1"), apart(first, other, seed="1")
    assert 0 < alike.low <= alike.value <= alike.high < 0.2
    assert unlike.value > 0.3 > 0.2 > unlike.high
    assert apart(first, second, seed="1") == alike != apart(first, second, seed="2")


def test_nothing_is_said_of_a_split_without_labels():
    assert apart([{"a"}], [set()], seed="1") == apart([], [], seed="1") == (None, None, None)
