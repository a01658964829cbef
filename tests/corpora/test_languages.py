"""Every code of every detector is decided, once."""

from functools import cache

import pycld2
import pytest

from corpora.core import detectors
from corpora.core.detectors import langid_model
from corpora.core.languages import (
    ARTICLE_LABELS,
    CONFUSABLE,
    COVERAGE,
    LANGUAGES,
    NO_VOTE,
    UND,
    confusable_with,
    normalise,
)

NAMED_BY_CLD2 = {code for name, code in pycld2.LANGUAGES if name in pycld2.DETECTED_LANGUAGES}


@cache
def codes():
    """Of each detector, all that it can name."""
    fasttext = detectors._fasttext().predict("a", k=-1, threshold=-1.0)[0]
    return {
        "langid": sorted(map(str, langid_model().languages)),
        "cld2": sorted({code for _, code in pycld2.LANGUAGES} | {"un"}),
        "fasttext": sorted(label.removeprefix("__label__") for label in fasttext),
    }


@pytest.mark.parametrize(("detector", "count"), [("langid", 97), ("cld2", 283), ("fasttext", 176)])
def test_every_code_of_a_detector_is_decided_and_its_coverage_follows_from_that(detector, count):
    ours = {code: normalise(detector, code) for code in codes()[detector]}
    assert len(ours) == count
    assert [code for code, language in ours.items() if language is not None and language not in LANGUAGES] == []
    # CLD2 lists codes that it never names.
    named = NAMED_BY_CLD2 if detector == "cld2" else ours
    assert COVERAGE[detector] == {normalise(detector, code) for code in named} - {None}
    with pytest.raises(KeyError):
        normalise(detector, "qq")


@pytest.mark.parametrize("detector", COVERAGE)
def test_the_table_names_no_code_that_its_detector_does_not_have(detector):
    owned = [own for language in LANGUAGES.values() for own in getattr(language, detector).split()]
    assert len(owned) == len(set(owned))
    assert set(owned) <= set(codes()[detector])
    refused = {code for by, code in NO_VOTE if by == detector} - {"xx-*"}
    assert refused <= set(codes()[detector])
    assert not refused & set(owned)


def test_the_article_has_70_labels_and_all_are_languages_with_names_of_their_own():
    assert len(ARTICLE_LABELS) == len(set(ARTICLE_LABELS)) == 70
    assert list(ARTICLE_LABELS) == sorted(ARTICLE_LABELS)
    assert set(ARTICLE_LABELS) <= set(LANGUAGES)
    assert UND not in LANGUAGES
    assert len({language.name for language in LANGUAGES.values()}) == len(LANGUAGES)


@pytest.mark.parametrize(
    ("detector", "codes"),
    [
        ("langid", {"nb": "no", "nn": "no"}),
        ("cld2", {"iw": "he", "jw": "jv", "zh": "zh", "zh-Hant": "zh"}),
        ("cld2", dict.fromkeys(("un", "xx-Goth", "zzp", "sr-ME", "bh"))),
        ("fasttext", {"bh": "bho", "als": "gsw", "eml": None, "sh": "sh", "arz": "ar"}),
    ],
)
def test_codes_that_need_a_decision(detector, codes):
    assert {code: normalise(detector, code) for code in codes} == codes


def test_coarse_codes_stand_for_labels_and_are_none_themselves():
    coarse = {code: language.labels for code, language in LANGUAGES.items() if language.labels}
    assert coarse == {"zh": ("zh-CN", "zh-TW"), "sh": ("bs", "hr", "sr")}
    assert not set(coarse) & set(ARTICLE_LABELS)
    assert all(label in LANGUAGES for labels in coarse.values() for label in labels)


def test_what_is_confusable_are_labels_and_each_with_the_other():
    named = [code for group in CONFUSABLE for code in group]
    assert [code for code in named if code not in LANGUAGES or LANGUAGES[code].labels] == []
    assert all(len(group) == len(set(group)) > 1 for group in CONFUSABLE)
    for code in LANGUAGES:
        assert code not in confusable_with(code)
        assert all(code in confusable_with(other) for other in confusable_with(code))
    # A label has all that share a group with it.
    assert {"bs", "sr", "sl"} == confusable_with("hr")
    assert {"fa", "ar", "hi-Latn"} <= confusable_with("ur")
    assert confusable_with("ko") == confusable_with(UND) == frozenset()
