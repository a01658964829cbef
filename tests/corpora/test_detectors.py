"""The three real detectors."""

import pytest

from corpora.core.detectors import DETECTORS, detector_versions
from corpora.core.languages import LANGUAGES
from corpora.core.voting import DETECTOR_NAMES

GERMAN = "Guten Morgen zusammen, heute scheint in Hamburg die Sonne und alle gehen gern spazieren."
TEXTS = [GERMAN, "", "Сегодня мы долго гуляли в парке, а потом вернулись домой и пили чай.", "haha", "😀", "1"]


def test_they_stand_in_the_order_of_the_votes():
    assert tuple(DETECTORS) == DETECTOR_NAMES == ("langid", "cld2", "fasttext")


@pytest.mark.parametrize("detector", DETECTORS)
def test_each_answers_every_text_best_first_in_our_codes(detector):
    answers = DETECTORS[detector](TEXTS, 3)
    assert len(answers) == len(TEXTS)
    assert [answers[0][0][0], answers[2][0][0]] == ["de", "ru"]
    for ranking in answers:
        codes = [code for code, _ in ranking]
        assert len(codes) == len(set(codes)) <= 3
        assert set(codes) <= set(LANGUAGES)
        scores = [score for _, score in ranking]
        assert all(0 <= score <= 1 for score in scores)
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("detector", DETECTORS)
def test_an_empty_text_has_no_language(detector):
    assert DETECTORS[detector]([""], 3) == [[]]


@pytest.mark.parametrize("detector", ["langid", "fasttext"])
@pytest.mark.parametrize("k", [1, 3, 10])
def test_k_languages_are_named_even_where_one_is_certain(detector, k):
    assert [len(ranking) for ranking in DETECTORS[detector]([GERMAN, GERMAN * 20], k)] == [k, k]


def test_langids_second_language_is_a_near_one_even_where_its_probability_vanishes():
    """Its own rank() gives zu and zh here: the first two of the alphabet from behind."""
    codes = [code for code, _ in DETECTORS["langid"]([GERMAN * 20], 3)[0]]
    assert codes[0] == "de"
    assert not {"zu", "zh", "xh"} & set(codes)


def test_two_codes_of_one_language_are_one_vote():
    """langid.py tells nb, nn and no apart."""
    codes = [code for code, _ in DETECTORS["langid"](["Jeg vet ikke hva dette er for noe, men det er fint."], 5)[0]]
    assert codes[0] == "no"
    assert codes.count("no") == 1


def test_both_scripts_of_chinese_are_the_coarse_code():
    answers = DETECTORS["cld2"](["这是一个简单的句子，我们都可以看懂。", "這是一個簡單的句子，我們都可以看懂。"], 3)
    assert [ranking[0][0] for ranking in answers] == ["zh", "zh"]


def test_versions_name_the_packages_and_the_models_digest():
    versions = detector_versions()
    assert tuple(versions) == DETECTOR_NAMES
    assert versions["langid"] == "1.1.6"
    assert "lid.176.ftz sha256:8f3472cfe8738a7b6099e8e999c3cbfae0dcd15696aac7d7738a8039db603e83" in versions["fasttext"]
