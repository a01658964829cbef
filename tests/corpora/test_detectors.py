"""The three real detectors."""

import json

import fasttext
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langid.langid import LanguageIdentifier, model

from corpora.core import CorpusError, detectors
from corpora.core.detectors import (
    CODES,
    DETECTORS,
    _fasttext_model,
    detect_fasttext,
    detect_langid,
    detector_versions,
    langid_model,
)
from corpora.core.languages import LANGUAGES, normalise
from corpora.core.masking import clean_for_detectors, letters_alone
from corpora.core.voters import DEFAULT
from tests.annotate.corpus import POSTS

GERMAN = "Guten Morgen zusammen, heute scheint in Hamburg die Sonne und alle gehen gern spazieren."
TEXTS = [GERMAN, "", "Сегодня мы долго гуляли в парке, а потом вернулись домой и пили чай.", "haha", "😀", "1"]


def first_codes(detector, *texts):
    return [ranking[0][0] if ranking else None for ranking in DETECTORS[detector](texts, 1)]


@pytest.mark.parametrize("detector", DETECTORS)
def test_each_answers_every_text_best_first_in_our_codes(detector):
    answers = DETECTORS[detector](TEXTS, 3)
    rankings = [*answers]
    assert len(rankings) == len(TEXTS)
    assert [rankings[0][0][0], rankings[2][0][0], rankings[1]] == ["de", "ru", []]
    for ranking in rankings:
        codes = [code for code, _ in ranking]
        assert len(codes) == len(set(codes)) <= 3
        assert set(codes) <= set(LANGUAGES)
        scores = [score for _, score in ranking]
        assert all(0 <= score <= 1 for score in scores)
        assert scores == sorted(scores, reverse=True)
    # The first languages are also stored in an array.
    firsts = [CODES[place] if place >= 0 else None for place in answers.first()]
    assert firsts == [ranking[0][0] if ranking else None for ranking in rankings]
    assert [*DETECTORS[detector]([], 3)] == []
    assert first_codes(detector, "Justin Bieber Harry Styles Katy Perry", "Berlin Hamburg München Köln") == ["en", "de"]
    if detector != "cld2":  # which may omit improbable languages
        for k in (1, 3, 10):
            assert [len(ranking) for ranking in DETECTORS[detector]([GERMAN, GERMAN * 20], k)] == [k, k]


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


@pytest.mark.parametrize("detector", ["langid", "fasttext"])
def test_a_detector_that_knows_nothing_of_the_letters_has_no_vote(detector):
    texts = [text for unknown in NOTHING_KNOWN for text in (GERMAN, unknown)]
    assert first_codes(detector, *texts) == ["de", None] * len(NOTHING_KNOWN)


def test_decisions_of_each_detector_that_are_easily_lost():
    # CLD2's default is one of the languages written in the script.
    scripts = ["HAHAHAHA", "הההההההההה", "ሀሀሀሀሀሀሀሀሀ"]
    assert first_codes("cld2", *scripts, *(f"{text} {text}" for text in scripts)) == [None] * 6
    both_scripts = ["这是一个简单的句子，我们都可以看懂。", "這是一個簡單的句子，我們都可以看懂。"]
    assert first_codes("cld2", *both_scripts) == ["zh", "zh"]
    # langid.py separates nb, nn and no; here they share one vote.
    codes = [code for code, _ in next(iter(detect_langid(["Jeg vet ikke hva dette er, men det er fint."], 5)))]
    assert (codes[0], codes.count("no")) == ("no", 1)
    # If probabilities underflow, its own rank() returns zu and zh, the last two in the alphabet.
    codes = [code for code, _ in next(iter(detect_langid([GERMAN * 20], 3)))]
    assert codes[0] == "de"
    assert not {"zu", "zh", "xh"} & set(codes)
    # Egyptian Arabic is ar here too. Asked for two languages, fastText returns it next to ar, so another is taken.
    text = "انت عامل ايه النهارده يا صاحبي"
    assert {*fasttext.load_model(str(_fasttext_model())).predict(text, k=2)[0]} == {"__label__ar", "__label__arz"}
    codes = [code for code, _ in next(iter(detect_fasttext([text], 2)))]
    assert (codes[0], len(set(codes))) == ("ar", 2)


@pytest.mark.slow
def test_no_vote_has_the_score_of_a_text_without_features(package):
    """Ask the models themselves for the score of a text without features."""
    ((certainty, label),) = fasttext.load_model(str(_fasttext_model())).f.predict("\n", 1, -1.0, "strict")
    defaults = {"langid": package.classify(""), "fasttext": (label.removeprefix("__label__"), certainty)}
    lines = [json.loads(line)["text"] for line in POSTS.read_text("utf-8").splitlines()]
    words = [word for text in lines for word in clean_for_detectors(text).upper().split()]
    for detector, (language, default) in defaults.items():
        assert language == "en"
        for ranking in DETECTORS[detector](words, 1):
            assert not ranking or ranking[0] != ("en", pytest.approx(default, abs=1e-6))


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
    """Return a text in Unicode's mathematical alphabets, which begin at these code points."""
    text = "".join(chr(ord(letter) - ord("a") + small) if "a" <= letter <= "z" else letter for letter in text)
    return "".join(chr(ord(letter) - ord("A") + capital) if "A" <= letter <= "Z" else letter for letter in text)


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
    cleaned = [clean_for_detectors(variant) for variant in (text, *hidden)]
    for detector in DETECTORS:
        assert set(first_codes(detector, *cleaned)) == {language}


@pytest.fixture(scope="module")
def package():
    return LanguageIdentifier.from_modelstring(model, norm_probs=True)


WORDS = st.sampled_from([*GERMAN.split(), "парке", "語", "हिन्दी", "\U0001f600", "\x00", "a" * 300])
WRITTEN = st.one_of(st.text(), st.lists(WORDS).map(" ".join))


@pytest.mark.slow
@given(st.lists(WRITTEN, max_size=8), st.integers(1, 200))
@example(["", "", "a", "", "ab", "abc", "abcd", "de", ""], 1)
def test_langid_scores_many_texts_as_its_own_loop_scores_each(package, texts, block):
    """The scores are exactly equal: sums of its float32 numbers lose no digit in float64. Blocks have every size, so
    that texts are scored together.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(detectors, "_BLOCK_BYTES", block)
        logs = langid_model().log_probabilities(texts)
    assert langid_model().memory == 4, "its automaton knows the last four bytes alone"
    assert logs.shape == (len(texts), 97)
    for text, row in zip(texts, logs, strict=True):
        np.testing.assert_array_equal(row, package.nb_classprobs(package.instance2fv(text)))


@pytest.mark.slow
@given(st.lists(WRITTEN.filter(bool), min_size=1, max_size=5))
def test_langid_names_first_what_its_own_loop_names(package, texts):
    for text, ranking in zip(texts, detect_langid(texts, 1), strict=True):
        label, certainty = package.classify(text)
        if not package.instance2fv(*letters_alone([text])).any():
            assert ranking == []
            continue
        assert ranking[0][0] == normalise("langid", label)
        assert ranking[0][1] == pytest.approx(certainty)


def test_versions_name_the_packages_and_the_models_digest():
    versions = detector_versions()
    assert tuple(DETECTORS) == DEFAULT.voters == tuple(versions) == ("langid", "cld2", "fasttext")
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
