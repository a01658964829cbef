"""The three real detectors."""

import json

import fasttext
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langid.langid import LanguageIdentifier, model

from corpora.core import CorpusError, detectors
from corpora.core.detectors import (
    CODES,
    DETECTORS,
    _fasttext_model,
    detect_cld2,
    detect_fasttext,
    detect_langid,
    detector_versions,
    langid_model,
)
from corpora.core.languages import LANGUAGES, normalise
from corpora.core.masking import clean_for_detectors, letters_alone
from corpora.core.voters import VOTERS
from tests.annotate.corpus import POSTS

GERMAN = "Guten Morgen zusammen, heute scheint in Hamburg die Sonne und alle gehen gern spazieren."
TEXTS = [GERMAN, "", "Сегодня мы долго гуляли в парке, а потом вернулись домой и пили чай.", "haha", "😀", "1"]


def test_they_stand_in_the_order_of_the_votes():
    assert tuple(DETECTORS) == tuple(VOTERS) == ("langid", "cld2", "fasttext")


@pytest.mark.parametrize("detector", DETECTORS)
def test_each_answers_every_text_best_first_in_our_codes(detector):
    answers = [*DETECTORS[detector](TEXTS, 3)]
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
    assert [*DETECTORS[detector]([""], 3)] == [[]]
    assert [*DETECTORS[detector]([], 3)] == []


NOTHING_KNOWN = [
    "LIVERPOOL ARSENAL CHELSEA EVERTON",
    "LIVERPOOL, ARSENAL, CHELSEA, EVERTON!!!",
    '"BARACK OBAMA" (ANGELA MERKEL)',
    "HAHAHAHAHAHAHAHAHAHAHAHAHA 😂😂😂",
    "hahahahahahahahahahahahaha",
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "1 2 3 4 5 6 7 8 9",
    "😀😀😀😀",
    "。。。！！！",
    "<3 <3 :) :(",
]


@pytest.mark.parametrize("text", NOTHING_KNOWN)
@pytest.mark.parametrize("detector", ["langid", "fasttext"])
def test_a_detector_that_knows_nothing_of_the_letters_has_no_vote(detector, text):
    assert [*DETECTORS[detector]([GERMAN, text, GERMAN], 3)][1] == []


@pytest.mark.parametrize(
    ("names", "language"),
    [("Justin Bieber Harry Styles Katy Perry", "en"), ("Berlin Hamburg München Köln", "de")],
)
def test_names_that_all_detectors_learnt_are_agreed(names, language):
    assert {next(iter(detect([names], 1)))[0][0] for detect in DETECTORS.values()} == {language}


def test_no_vote_has_the_score_of_a_text_without_features():
    """What the models themselves say of a text without features."""
    identifier = LanguageIdentifier.from_modelstring(model, norm_probs=True)
    ((certainty, label),) = fasttext.load_model(str(_fasttext_model())).f.predict("\n", 1, -1.0, "strict")
    defaults = {"langid": dict([identifier.classify("")]), "fasttext": {label.removeprefix("__label__"): certainty}}
    assert {detector: {*said} for detector, said in defaults.items()} == {"langid": {"en"}, "fasttext": {"en"}}
    lines = [json.loads(line)["text"] for line in POSTS.read_text("utf-8").splitlines()]
    words = [word for text in lines for word in clean_for_detectors(text).upper().split()]
    for detector, scores in defaults.items():
        ((_, default),) = scores.items()
        for ranking in DETECTORS[detector](words, 1):
            assert not ranking or ranking[0] != ("en", pytest.approx(default, abs=1e-6))


# A default is one language of those that are written in the script.
@pytest.mark.parametrize("text", ["HAHAHAHA", "הההההההההה", "ሀሀሀሀሀሀሀሀሀ"])
def test_the_default_of_cld2_for_a_script_is_no_vote(text):
    assert [*detect_cld2([text, f"{text} {text}"], 3)] == [[], []]


PLAIN = {
    "en": "hello everybody how are you doing today my dear friends",
    "fr": "bonjour tout le monde comment allez-vous ce matin mes amis",
    "ru": "доброе утро всем друзья как у вас сегодня дела",
    "ar": "السلام عليكم ورحمة الله وبركاته كيف حالكم اليوم",
    "fa": "سلام دوستان من می\u200cخواهم امروز به خانه شما بیایم اگر می\u200cشود",
    "hi": "नमस्ते दोस्तों आप सब कैसे हैं आज का दिन बहुत अच्छा है",
    "th": "สวัสดีทุกคนวันนี้คุณเป็นอย่างไรบ้างผมทำงานอยู่ที่บ้าน",
    "zh": "大家早上好，今天天气很好，我们一起去公园散步吧。",
}


def _styled(text, capital, small):
    """In letters of Unicode's mathematical alphabets, which begin at these code points."""
    return "".join(
        chr(ord(letter) - ord("a") + small)
        if "a" <= letter <= "z"
        else chr(ord(letter) - ord("A") + capital)
        if "A" <= letter <= "Z"
        else letter
        for letter in text
    )


@pytest.mark.parametrize("language", PLAIN)
def test_invisible_and_styled_characters_do_not_change_the_votes(language):
    text = PLAIN[language]
    hidden = [f"{mark}{text}{mark}" for mark in "\u200e\u200f\u202e\u2067\ufeff"]
    hidden += [mark.join(text) for mark in "\u200b\u2060\xad\ufe0f\U000e0061"]
    if text.isascii() or language == "ru":
        hidden += [mark.join(text) for mark in "\u200c\u200d\u0336\u0332"]
    if text.isascii():
        hidden += [_styled(text, 0x1D400, 0x1D41A), _styled(text, 0x1D4D0, 0x1D4EA), _styled(text, 0xFF21, 0xFF41)]
    if language == "ar":
        hidden.append("ﺍﻟﺴﻼﻡ ﻋﻠﻴﻜﻢ ﻭﺭﺣﻤﺔ ﺍﻟﻠﻪ ﻭﺑﺮﻛﺎﺗﻪ")
    for detect in DETECTORS.values():
        said = [ranking[0][0] for ranking in detect([clean_for_detectors(each) for each in [text, *hidden]], 1)]
        assert set(said) == {language}


@pytest.mark.parametrize("detector", ["langid", "fasttext"])
@pytest.mark.parametrize("k", [1, 3, 10])
def test_k_languages_are_named_even_where_one_is_certain(detector, k):
    assert [len(ranking) for ranking in DETECTORS[detector]([GERMAN, GERMAN * 20], k)] == [k, k]


def test_langids_second_language_is_a_near_one_even_where_its_probability_vanishes():
    """Its own rank() gives zu and zh here: the first two of the alphabet from behind."""
    codes = [code for code, _ in next(iter(detect_langid([GERMAN * 20], 3)))]
    assert codes[0] == "de"
    assert not {"zu", "zh", "xh"} & set(codes)


def test_two_codes_of_one_language_are_one_vote():
    """langid.py tells nb, nn and no apart."""
    text = "Jeg vet ikke hva dette er for noe, men det er fint."
    codes = [code for code, _ in next(iter(detect_langid([text], 5)))]
    assert codes[0] == "no"
    assert codes.count("no") == 1


@pytest.fixture(scope="module")
def package():
    return LanguageIdentifier.from_modelstring(model, norm_probs=True)


WORDS = st.sampled_from([*GERMAN.split(), "парке", "語", "हिन्दी", "\U0001f600", "\x00", "a" * 300])
WRITTEN = st.one_of(st.text(), st.lists(WORDS).map(" ".join))


@settings(max_examples=40)
@given(st.lists(WRITTEN, max_size=8), st.integers(1, 200))
@example(["", "", "a", "", "ab", "abc", "abcd", "de", ""], 1)
def test_langid_scores_many_texts_as_its_own_loop_scores_each(package, texts, block):
    """Exactly: sums of its float32 numbers lose no digit in float64. Blocks of every size, so that texts meet."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(detectors, "_BLOCK_BYTES", block)
        logs = langid_model().log_probabilities(texts)
    assert logs.shape == (len(texts), 97)
    for text, found in zip(texts, logs, strict=True):
        np.testing.assert_array_equal(found, package.nb_classprobs(package.instance2fv(text)))


@settings(max_examples=40)
@given(st.lists(WRITTEN.filter(bool), min_size=1, max_size=5))
def test_langid_names_first_what_its_own_loop_names(package, texts):
    for text, ranking in zip(texts, detect_langid(texts, 1), strict=True):
        label, certainty = package.classify(text)
        if not package.instance2fv(*letters_alone([text])).any():
            assert ranking == []
            continue
        assert ranking[0][0] == normalise("langid", label)
        assert ranking[0][1] == pytest.approx(certainty)


def test_langids_automaton_knows_the_last_four_bytes_alone():
    assert langid_model().memory == 4


def test_labels_of_fasttext_that_are_no_language_of_their_own_leave_room_for_others():
    """Egyptian Arabic is ar here too: asked for two, fastText names it beside ar."""
    text = "انت عامل ايه النهارده يا صاحبي"
    labels, _ = fasttext.load_model(str(_fasttext_model())).predict(text, k=2)
    assert {*labels} == {"__label__ar", "__label__arz"}
    codes = [code for code, _ in next(iter(detect_fasttext([text], 2)))]
    assert codes[0] == "ar"
    assert len(set(codes)) == 2


@pytest.mark.parametrize("detector", DETECTORS)
def test_the_first_languages_stand_in_an_array_too(detector):
    said = DETECTORS[detector](TEXTS, 3)
    firsts = [CODES[place] if place >= 0 else None for place in said.first()]
    assert firsts == [ranking[0][0] if ranking else None for ranking in said]


def test_both_scripts_of_chinese_are_the_coarse_code():
    answers = DETECTORS["cld2"](["这是一个简单的句子，我们都可以看懂。", "這是一個簡單的句子，我們都可以看懂。"], 3)
    assert [ranking[0][0] for ranking in answers] == ["zh", "zh"]


def test_versions_name_the_packages_and_the_models_digest():
    versions = detector_versions()
    assert tuple(versions) == tuple(VOTERS)
    assert versions["langid"] == "1.1.6"
    assert "lid.176.ftz sha256:8f3472cfe8738a7b6099e8e999c3cbfae0dcd15696aac7d7738a8039db603e83" in versions["fasttext"]


def test_a_model_file_that_was_changed_or_is_missing_is_refused(monkeypatch, tmp_path):
    changed = tmp_path / "lid.176.ftz"
    monkeypatch.setattr(detectors, "FASTTEXT_MODEL", changed)
    load = detectors._fasttext_model.__wrapped__
    with pytest.raises(CorpusError, match=r"lid.176.ftz is missing or is not the model that Assay ships. Install"):
        load()
    changed.write_bytes(_fasttext_model().read_bytes()[:-1])
    with pytest.raises(CorpusError, match=r"lid.176.ftz is missing or is not the model that Assay ships. Install"):
        load()
