"""The error of agreement, from what people found in the audited posts."""

from dataclasses import replace
from itertools import pairwise, product
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.controls.audit_report import audit_table
from annotate.core.estimation.label_errors import (
    EXPONENT,
    Audit,
    additional_units,
    allocate,
    bounds,
    contest_chance,
    error,
    expected_contested,
    is_over,
    overall_bounds,
    overall_error,
    power_allocation,
    round_to_total,
    slips_of,
    without_slips,
)
from annotate.core.estimation.proportions import UNKNOWN, Estimate, jeffreys, proportion
from annotate.reports.table_formats import parts
from tests.annotate.core.test_estimation import holds, numbers, same


@st.composite
def audits(draw):
    doubted, confirmed = draw(st.integers(0, 60)), draw(st.integers(0, 60))
    checked = draw(st.integers(0, confirmed))
    unresolved = draw(st.integers(0, 20))
    return Audit(
        posts=doubted + confirmed + unresolved + draw(st.integers(0, 3000)),
        doubted=doubted,
        doubted_wrong=draw(st.integers(0, doubted)),
        confirmed=confirmed,
        checked=checked,
        checked_wrong=draw(st.integers(0, checked)),
        unresolved=unresolved,
    )


def audited(posts=1000, resolved=30, wrong=0, **counts):
    """An audit in which every doubt was right and no confirmation was checked, unless the test says otherwise."""
    usual = {"doubted": wrong, "doubted_wrong": wrong, "confirmed": resolved - wrong, "checked": 0, "checked_wrong": 0}
    return Audit(posts, **(usual | counts))


def test_counts_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="impossible"):
        Audit(posts=10, doubted=5, doubted_wrong=0, confirmed=6, checked=0, checked_wrong=0)
    with pytest.raises(ValueError, match="impossible"):
        audited(checked=3, checked_wrong=4)


@given(audits())
def test_the_error_of_agreement_lies_in_its_interval_which_is_the_plain_one_where_checks_leave_nothing_open(audit):
    assert holds(error(audit))
    nothing = replace(audit, checked_wrong=0, unresolved=0)
    assert error(nothing) == proportion(audit.doubted_wrong, audit.resolved)
    every = replace(audit, checked=audit.confirmed, unresolved=0)
    assert error(every) == proportion(audit.doubted_wrong + audit.checked_wrong, audit.resolved)
    (low, high), interval = bounds(audit), error(audit)
    assert 0 <= low <= high <= 1
    assert not interval.has_interval or low <= interval.low <= interval.high <= high
    resolved = replace(audit, unresolved=0)
    assert bounds(resolved) == (error(resolved).low, error(resolved).high)


def test_checks_stand_for_all_confirmations_at_the_price_of_a_wider_interval():
    estimate = error(audited(resolved=100, wrong=4, checked=24, checked_wrong=1))
    assert estimate.value == pytest.approx((4 + 96 / 24) / 100)
    assert estimate.count < 60
    assert estimate.low < proportion(8, 100).low < proportion(8, 100).high < estimate.high
    assert error(audited(resolved=30, checked=1, checked_wrong=1)).low < 0.5


def test_the_unresolved_are_all_right_or_all_wrong_in_the_bounds_and_like_what_was_read_in_intervals():
    assert bounds(audited(wrong=1, unresolved=6)) == (jeffreys(1, 36)[0], jeffreys(7, 36)[1])
    assert bounds(audited(resolved=0, unresolved=2)) == (0.0, 1.0)
    complete, partial = audited(1500, 12, 0), audited(1500, 12, 0, unresolved=18)
    assert error(partial) == error(complete)
    assert overall_error([partial]) == overall_error([complete])
    assert overall_bounds([complete]) == (overall_error([complete]).low, overall_error([complete]).high)
    assert overall_bounds([partial])[1] > jeffreys(18, 30)[1] - 0.05
    # A limit is tested with the bounds.
    assert [is_over(audited(1500, 100, 1, unresolved=number), 0.15) for number in (0, 20)] == [False, True]


def test_the_overall_error_weighs_languages_by_their_posts():
    estimate = overall_error([audited(9000, 300, 3), audited(1000, 30, 6)])
    assert estimate.value == pytest.approx(0.9 * 0.01 + 0.1 * 0.2)
    assert holds(estimate)
    # the plain interval where all was audited
    assert overall_error([audited(30, 30, 3), audited(12, 12, 0)]) == proportion(3, 42)


def test_one_wrong_post_that_stands_for_itself_alone_hardly_widens_the_overall_error():
    others = [audited(posts=600) for _ in range(7)]
    without, with_it = overall_error(others), overall_error([*others, audited(posts=1, resolved=1, wrong=1)])
    assert with_it.value == pytest.approx(1 / 4201)
    assert without.high < with_it.high < 1.7 * without.high


def test_a_language_without_audit_counts_as_the_mean_of_the_others():
    others = [audited(9000, 300, 3), audited(1000, 30, 6)]
    with_it = overall_error([*others, audited(500, 0)])
    assert with_it.value == pytest.approx(overall_error(others).value, rel=0.001)
    assert overall_error([audited(0, 0), *others]) == overall_error(others)
    assert overall_error([audited(500, 0)]) == overall_error([]) == UNKNOWN
    # and may be all wrong
    assert overall_error([*others, audited(90_000, 0)]).high > 0.9


@given(st.lists(audits(), max_size=4), st.integers(0, 20), st.integers(0, 20), st.randoms())
def test_the_overall_error_lies_in_its_interval_and_bounds_whatever_the_order_of_languages(
    languages, differing, alike, random
):
    overall, (low, high) = overall_error(languages), overall_bounds(languages)
    assert holds(overall)
    assert holds(overall_error(languages, slips_of(differing + alike, differing)))
    assert 0 <= low <= high <= 1
    assert not overall.has_interval or low <= overall.low <= overall.high <= high
    assert numbers(overall_error(random.sample(languages, len(languages)))) == same(overall)


def test_readers_are_taken_to_confirm_no_more_wrong_posts_than_they_doubt_until_a_check_finds_one():
    def checked(wrong):
        return overall_error([audited(9000, 300, 3, checked=60, checked_wrong=wrong)])

    unchecked = overall_error([audited(9000, 300, 3)])
    assert unchecked.high < checked(0).high < 2 * unchecked.high
    assert checked(1).high > 2 * unchecked.high


# --- adjudicators who slip


def test_an_adjudicator_has_slipped_in_half_of_what_two_decide_differently():
    slips = slips_of(50, 4)
    low, high = jeffreys(4, 50)
    assert (slips.value, slips.low, slips.high) == (0.04, low / 2, high / 2)
    assert slips_of(0, 0).value is None


def test_what_adjudicators_call_wrong_by_mistake_is_taken_off_the_error():
    estimate = overall_error([audited(9000, 900, 18)])
    slips = Estimate(0.01, 0.01, 0.01, 10.0, 1000.0)
    assert without_slips(estimate, slips).value == pytest.approx((0.02 - 0.01) / 0.98)
    assert without_slips(estimate, slips_of(0, 0)) == without_slips(estimate, None) == estimate
    unsure = without_slips(estimate, slips_of(100, 2))
    assert unsure.value == pytest.approx(without_slips(estimate, slips).value)
    assert unsure.low < without_slips(estimate, slips).low
    assert without_slips(estimate, Estimate(0.05, 0.05, 0.05, 5.0, 100.0)).value == 0


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_slips_known_from_few_second_opinions_leave_a_small_error_its_upper_end(wrong):
    """Adjudicators differed once in 21 decisions, which makes slips of 2.4% [0.3, 10.1]."""
    audit = audited(824, 104, wrong)
    plain, corrected = error(audit), error(audit, slips_of(21, 1))
    assert (corrected.value, corrected.low) == (0, 0)
    assert plain.high - 0.005 < corrected.high < plain.high
    assert overall_error([audit], slips_of(21, 1)).high > 0.9 * corrected.high


def test_slips_that_the_checks_found_widen_the_overall_error():
    plain = overall_error([audited(9000, 300, 9), audited(1000, 30, 6)])
    slips = overall_error([audited(9000, 300, 6, checked=98, checked_wrong=1), audited(1000, 30, 6)])
    assert slips.value == pytest.approx(plain.value)
    assert slips.count < plain.count
    assert plain.high < slips.high


@pytest.mark.parametrize("decisions", [5, 17, 42, 300])
def test_few_audited_posts_keep_their_interval_where_adjudicators_never_slipped(decisions):
    """The effective count of one post is found by bisection, which comes to 0.9999992."""
    plain, corrected = error(Audit(5, 0, 0, 5, 1, 0)), error(Audit(5, 0, 0, 5, 1, 0), slips_of(decisions, 0))
    assert corrected.has_interval
    assert (corrected.low, corrected.high) == pytest.approx((plain.low, plain.high), abs=1e-6)
    assert error(Audit(1, 0, 0, 1, 1, 0), slips_of(decisions, 0)).has_interval
    row = {"language": "ja", "posts": 5, "audited": 5, "unresolved": 0, "contested": False, "over_limit": False}
    audit = {"limit": 0.15, "languages": [row | {"error": corrected.as_dict(), "waiting": False}]}
    assert "0.0% [0.0, 37.9]" in str(parts(audit_table(audit)))


# --- what a limit costs: the posts of languages that are over it by chance


@pytest.mark.parametrize(
    ("audits", "wrong", "limit"), list(product((1, 7, 30), (0.0, 0.01, 0.2), (0.05, 0.1, 0.15, 0.2, 1.0)))
)
def test_the_chance_to_be_contested_is_that_of_all_findings_over_the_limit(audits, wrong, limit):
    over = [
        comb(audits, errors) * wrong**errors * (1 - wrong) ** (audits - errors)
        for errors in range(audits + 1)
        if is_over(Audit(audits, errors, errors, audits - errors, 0, 0), limit)
    ]
    assert contest_chance(audits, wrong, limit) == pytest.approx(sum(over), abs=1e-12)


def test_without_audits_nothing_is_contested_and_where_all_is_audited_nothing_more_is_read():
    assert contest_chance(0, 0.5, 0.1) == expected_contested(20, 20, 0.5, 0.1) == 0


# --- how a total is spread over strata


SIZES = st.dictionaries(st.text("abcde", min_size=1, max_size=3), st.integers(0, 5_000), min_size=1)


def chosen(sizes, share, least):
    return additional_units({key: (size, 0) for key, size in sizes.items()}, share, least)


@given(SIZES, st.floats(0, 1), st.integers(0, 40))
def test_the_total_is_spread_and_no_stratum_gets_less_than_its_least_or_more_than_it_has(sizes, share, least):
    counts = chosen(sizes, share, least)
    lowest = {key: min(least, size) for key, size in sizes.items()}
    assert all(lowest[key] <= counts[key] <= size for key, size in sizes.items())
    assert share * sum(sizes.values()) <= sum(counts.values()) + 1e-6
    assert sum(counts.values()) <= max(share * sum(sizes.values()) + 1, sum(lowest.values()))


@given(SIZES, st.floats(0.01, 1), st.integers(0, 40))
def test_a_larger_stratum_gets_no_fewer(sizes, share, least):
    counts = power_allocation(sizes, share, least)
    in_order = [counts[key] for key in sorted(sizes, key=sizes.get)]
    assert all(few <= many + 1e-9 for few, many in pairwise(in_order))


def test_ten_times_as_many_posts_get_five_times_as_many_audits():
    counts = power_allocation({"en": 10_000, "nl": 1_000, "cy": 100, "fo": 10}, 0.05, 0)
    assert counts["en"] / counts["nl"] == pytest.approx(10**EXPONENT)
    assert counts["nl"] / counts["cy"] == pytest.approx(5.01, abs=0.01)
    assert sum(counts.values()) == pytest.approx(0.05 * 11_110)


def test_audits_are_spread_in_whole_numbers_and_what_a_small_stratum_lacks_goes_to_the_others():
    assert allocate(20, {"de": 1, "fr": 1}, {"de": 4, "fr": 40}) == {"de": 4, "fr": 16}
    assert allocate(20, {"de": 1, "fr": 3}, {"de": 40, "fr": 40}, least=8) == {"de": 8, "fr": 12}
    assert allocate(99, {"de": 1, "fr": 3}, {"de": 4, "fr": 40}) == {"de": 4, "fr": 40}
    assert allocate(99, {}, {}) == {}
    assert round_to_total({"fr": 1.5, "de": 1.5, "en": 0.9, "es": 2.1}) == {"de": 2, "en": 1, "es": 2, "fr": 1}
    # The share of all counts when posts are added, and what was chosen earlier.
    assert chosen({"de": 50, "fr": 3}, 1.0, 0) == {"de": 50, "fr": 3}
    assert chosen({"de": 50, "fr": 3}, 0.0, 5) == {"de": 5, "fr": 3}
    assert additional_units({"de": (50, 5), "fr": (50, 9)}, 0.2, 0) == {"de": 5, "fr": 1}
    assert additional_units({"de": (50, 11), "fr": (50, 0)}, 0.2, 0) == {"de": 0, "fr": 10}
