"""The joint meaning of votes: agreement, and the ranking of candidates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.core.languages import ARTICLE_LABELS
from corpora.core.voters import DEFAULT, agreed_label, agreed_vote, all_unanimous, rank_candidates

CODES = st.sampled_from(["de", "nl", "en", "fr", "zh", "bs", "hr", "sr"])
RANKINGS = st.lists(CODES, unique=True, max_size=3).map(lambda codes: [[code, 0.5] for code in codes])
VOTES = st.fixed_dictionaries(dict.fromkeys(DEFAULT.voters, RANKINGS))


def unanimous(votes):
    return agreed_vote(votes, DEFAULT)


def votes(langid="", cld2="", fasttext=""):
    lists = {"langid": langid, "cld2": cld2, "fasttext": fasttext}
    return {detector: [[code, 0.9] for code in codes.split()] for detector, codes in lists.items()}


@given(VOTES, st.permutations([*DEFAULT.voters]))
def test_every_language_that_is_named_is_a_candidate_once_in_whatever_order_the_detectors_are(votes, order):
    candidates = rank_candidates(votes)
    assert sorted(candidates) == sorted({vote[0] for ranking in votes.values() for vote in ranking})
    shuffled = {detector: votes[detector] for detector in order}
    assert (rank_candidates(shuffled), unanimous(shuffled)) == (candidates, unanimous(votes))
    firsts = [ranking[0][0] for ranking in votes.values() if ranking]
    assert all(candidates[0] == code for code in firsts if firsts.count(code) == 2), "two first places come before one"


@given(VOTES, CODES)
def test_the_unanimous_language_comes_first(votes, code):
    for detector, ranking in votes.items():
        votes[detector] = [[code, 0.9], *(vote for vote in ranking if vote[0] != code)]
    assert unanimous(votes) == code
    assert rank_candidates(votes)[0] == code


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


def agreed(votes, **options):
    how = {"letters": 50, "labels": ARTICLE_LABELS, "never_agree": (), "least_letters": 10} | options
    return agreed_label(unanimous(votes), how.pop("letters"), **how)


@pytest.mark.parametrize(
    ("why", "given_votes", "options", "label"),
    [
        ("all three agree", votes("de en", "de", "de nl"), {}, "de"),
        ("long enough", votes("de", "de", "de"), {"letters": 10}, "de"),
        ("too short", votes("de", "de", "de"), {"letters": 9}, None),
        ("two of three", votes("de", "de", "nl"), {}, None),
        ("one names nothing", votes("de", "", "de"), {}, None),
        ("none names anything", votes(), {}, None),
        ("not a label of the task", votes("de", "de", "de"), {"labels": ["en"]}, None),
        ("a label that people decide", votes("hi", "hi", "hi"), {"never_agree": ["hi"]}, None),
        ("coarse", votes("zh", "zh", "zh"), {}, None),
        ("langid.py does not know it", votes("ckb", "ckb", "ckb"), {}, None),
        ("CLD2 does not know it", votes("an", "an", "an"), {"labels": ["an"]}, None),
        ("fastText does not know it", votes("rw", "rw", "rw"), {"labels": ["rw"]}, None),
    ],
)
def test_agreement_of_all_three_settles_a_label_and_else_people_are_asked(why, given_votes, options, label):
    assert agreed(given_votes, **options) == label


@given(st.lists(VOTES, max_size=10))
def test_of_many_texts_the_same_are_unanimous_as_one_by_one(texts):
    numbers = {code: place for place, code in enumerate(["de", "nl", "en", "fr", "zh", "bs", "hr", "sr"])}
    firsts = [
        np.array([numbers[text[detector][0][0]] if text[detector] else -1 for text in texts], np.int16)
        for detector in DEFAULT.voters
    ]
    assert all_unanimous(firsts).tolist() == [unanimous(text) is not None for text in texts]
