"""How a total is spread over strata: by power allocation, with a least number in each."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.core.estimation.label_errors import EXPONENT, by_power, further, rounded, spread

SIZES = st.dictionaries(st.text("abcde", min_size=1, max_size=3), st.integers(0, 5_000), min_size=1)


def chosen(sizes, share, least):
    return further({key: (size, 0) for key, size in sizes.items()}, share, least)


@given(SIZES, st.floats(0, 1), st.integers(0, 40))
def test_the_total_is_spread_and_no_stratum_gets_less_than_its_least_or_more_than_it_has(sizes, share, least):
    found = chosen(sizes, share, least)
    lowest = {key: min(least, size) for key, size in sizes.items()}
    assert all(lowest[key] <= found[key] <= size for key, size in sizes.items())
    assert share * sum(sizes.values()) <= sum(found.values()) + 1e-6
    assert sum(found.values()) <= max(share * sum(sizes.values()) + 1, sum(lowest.values()))


@given(SIZES, st.floats(0.01, 1), st.integers(0, 40))
def test_a_larger_stratum_gets_no_fewer(sizes, share, least):
    found = by_power(sizes, share, least)
    in_order = [found[key] for key in sorted(sizes, key=sizes.get)]
    assert all(few <= many + 1e-9 for few, many in pairwise(in_order))


def test_ten_times_as_many_posts_get_five_times_as_many_audits():
    found = by_power({"en": 10_000, "nl": 1_000, "cy": 100, "fo": 10}, 0.05, 0)
    assert found["en"] / found["nl"] == pytest.approx(10**EXPONENT)
    assert found["nl"] / found["cy"] == pytest.approx(5.01, abs=0.01)
    assert sum(found.values()) == pytest.approx(0.05 * 11_110)


def test_what_a_small_stratum_lacks_goes_to_the_others():
    assert spread(20, {"de": 1, "fr": 1}, {"de": 4, "fr": 40}) == {"de": 4, "fr": 16}
    assert spread(20, {"de": 1, "fr": 3}, {"de": 40, "fr": 40}, least=8) == {"de": 8, "fr": 12}
    assert spread(99, {"de": 1, "fr": 3}, {"de": 4, "fr": 40}) == {"de": 4, "fr": 40}
    assert spread(99, {}, {}) == {}


def test_the_share_of_all_and_the_earlier_choice_count_when_posts_are_added():
    assert chosen({"de": 50, "fr": 3}, 1.0, 0) == {"de": 50, "fr": 3}
    assert chosen({"de": 50, "fr": 3}, 0.0, 5) == {"de": 5, "fr": 3}
    assert further({"de": (50, 5), "fr": (50, 9)}, 0.2, 0) == {"de": 5, "fr": 1}
    assert further({"de": (50, 11), "fr": (50, 0)}, 0.2, 0) == {"de": 0, "fr": 10}


def test_whole_numbers_are_made_by_largest_remainder():
    assert rounded({"fr": 1.5, "de": 1.5, "en": 0.9, "es": 2.1}) == {"de": 2, "en": 1, "es": 2, "fr": 1}
