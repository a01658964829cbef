"""What votes mean together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.core.languages import ARTICLE_LABELS
from corpora.core.voters import VOTERS, agreed_label, all_unanimous, rank_candidates, unanimous

CODES = st.sampled_from(["de", "nl", "en", "fr", "zh", "bs", "hr", "sr"])
RANKINGS = st.lists(CODES, unique=True, max_size=3).map(lambda codes: [[code, 0.5] for code in codes])
VOTES = st.fixed_dictionaries(dict.fromkeys(VOTERS, RANKINGS))


def votes(langid="", cld2="", fasttext=""):
    lists = {"langid": langid, "cld2": cld2, "fasttext": fasttext}
    return {detector: [[code, 0.9] for code in codes.split()] for detector, codes in lists.items()}


@given(VOTES, st.permutations([*VOTERS]))
def test_the_order_of_the_detectors_in_the_record_does_not_matter(given_votes, order):
    shuffled = {detector: given_votes[detector] for detector in order}
    assert rank_candidates(shuffled) == rank_candidates(given_votes)
    assert unanimous(shuffled) == unanimous(given_votes)


@given(VOTES)
def test_every_language_that_is_named_is_a_candidate_once(given_votes):
    named = {vote[0] for ranking in given_votes.values() for vote in ranking}
    candidates = rank_candidates(given_votes)
    assert len(candidates) == len(set(candidates))
    assert set(candidates) == named


@given(VOTES, CODES)
def test_the_unanimous_language_comes_first(given_votes, code):
    for detector, ranking in given_votes.items():
        given_votes[detector] = [[code, 0.9], *(vote for vote in ranking if vote[0] != code)]
    assert unanimous(given_votes) == code
    assert rank_candidates(given_votes)[0] == code


@given(VOTES)
def test_a_language_that_two_put_first_is_before_one_that_one_puts_first(given_votes):
    firsts = [ranking[0][0] for ranking in given_votes.values() if ranking]
    candidates = rank_candidates(given_votes)
    for code in set(firsts):
        if firsts.count(code) == 2:
            assert candidates[0] == code


@pytest.mark.parametrize(
    ("given_votes", "candidates"),
    [
        (votes("de nl", "nl", "nl de"), ["nl", "de"]),  # 2.5 against 1.5
        (votes("de", "nl", "fr"), ["nl", "fr", "de"]),  # all 1: CLD2, fastText, langid.py
        (votes("de", "en fr", "nl fr"), ["en", "nl", "de", "fr"]),  # all 1: first places
        (votes("de", "nl de", "nl de"), ["nl", "de"]),  # both 2: first places
        (votes("a b c", "d e f", "g b c"), ["d", "g", "a", "b", "c", "e", "f"]),
        (votes(), []),
        (votes(langid="de"), ["de"]),
    ],
)
def test_candidates_are_ranked_by_summed_reciprocal_rank(given_votes, candidates):
    assert rank_candidates(given_votes) == candidates


def agreed(given_votes, letters=50, labels=ARTICLE_LABELS, never_agree=(), least_letters=10):
    return agreed_label(
        unanimous(given_votes), letters, labels=labels, never_agree=never_agree, least_letters=least_letters
    )


def test_agreement_of_all_three_settles_a_label():
    assert agreed(votes("de en", "de", "de nl")) == "de"
    assert agreed(votes("de", "de", "de"), letters=10) == "de"


@pytest.mark.parametrize(
    ("why", "given_votes", "options"),
    [
        ("two of three", votes("de", "de", "nl"), {}),
        ("one names nothing", votes("de", "", "de"), {}),
        ("none names anything", votes(), {}),
        ("too short", votes("de", "de", "de"), {"letters": 9}),
        ("not a label of the task", votes("de", "de", "de"), {"labels": ["en"]}),
        ("a label that people decide", votes("hi", "hi", "hi"), {"never_agree": ["hi"]}),
        ("coarse", votes("zh", "zh", "zh"), {}),
        ("langid.py does not know it", votes("ckb", "ckb", "ckb"), {}),
        ("CLD2 does not know it", votes("an", "an", "an"), {"labels": ["an"]}),
        ("fastText does not know it", votes("rw", "rw", "rw"), {"labels": ["rw"]}),
    ],
)
def test_people_are_asked_where(why, given_votes, options):
    assert agreed(given_votes, **options) is None


@given(st.lists(VOTES, max_size=10))
def test_of_many_texts_the_same_are_unanimous_as_one_by_one(texts):
    numbers = {code: place for place, code in enumerate(["de", "nl", "en", "fr", "zh", "bs", "hr", "sr"])}
    firsts = [
        np.array([numbers[text[detector][0][0]] if text[detector] else -1 for text in texts], np.int16)
        for detector in VOTERS
    ]
    assert all_unanimous(firsts).tolist() == [unanimous(text) is not None for text in texts]
