"""The texts that people see, and those that detectors read."""

import random
import sys
import unicodedata

import pycld2
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from corpora.core import masking
from corpora.core.detectors import DETECTORS
from corpora.core.graphemes import is_invisible, is_within_character
from corpora.core.masking import clean_for_detectors, count_letters, letters_alone, mask_mentions, readable
from tests.annotate.spans.marked_texts import TEXTS

POSTLIKE = st.text(alphabet=st.sampled_from("@＠ab_1.-さé #:/RTrt\n\u200d"), max_size=40)


MENTIONS = {
    "@common_squirrel Wow!": "@xzy Wow!",
    ".@user look": ".@xzy look",
    "RT @user: hi": "RT @xzy: hi",
    "RT@user hi": "RT@xzy hi",
    "＠user hallo": "@xzy hallo",
    "@userさん、おはよう": "@xzyさん、おはよう",
    "見て@user": "見て@xzy",
    "@ann@mastodon.social, see": "@xzy, see",
    "@first.last@host.example.org": "@xzy",
    "@one@two": "@xzy",
    "(@user)": "(@xzy)",
    "@user's": "@xzy's",
    "https://medium.com/@user": "https://medium.com/@xzy",
}
NO_MENTIONS = ["write to ann@example.org", "write to sport@example.org.", "#HarryStyles #größe", "5 @ 3, a @ b, @"]


@pytest.mark.parametrize(("text", "masked"), [*MENTIONS.items(), *zip(NO_MENTIONS, NO_MENTIONS, strict=True)])
def test_mentions_are_masked(text, masked):
    assert mask_mentions(text) == masked


@given(POSTLIKE)
def test_masking_again_changes_nothing_and_detectors_read_the_same_of_the_masked_text(text):
    """The masked text is stored, so votes must not depend on whether a text has been masked."""
    masked = mask_mentions(text)
    assert mask_mentions(masked) == masked
    assert clean_for_detectors(masked) == clean_for_detectors(text)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("@a  Guten\nMorgen\t@b", "Guten Morgen"),
        ("see https://t.co/a1B2?x=1#y now", "see now"),
        ("見てhttp://t.co/a1見た", "見て 見た"),
        ("www.example.org/größe gut", "gut"),
        ("foto pic.twitter.com/abc123", "foto"),
        ("mail ann@example.org bitte", "mail bitte"),
        ("a\x00b\x85c\ufdd0d\U0001ffffe", "a b c d e"),
        ("❤\ufe0f", "❤"),
        ("@a https://example.org", ""),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("ന\u200dമ", "ന\u200dമ"),
        ("👨\u200d👩\u200d👧", "👨👩👧"),
        ("h\u200de\u200cl\u200bl\u2060o \u202edu\xad\u200f", "hello du"),
        ("𝐇𝐞𝐥𝐥𝐨 𝓭𝓾 ｄｕ ⓗⓞ", "Hello du du ho"),
        ("ﺍﻟﺴﻼﻡ", "السلام"),
        ("s\u0336o\u0336 e\u0301t u\u0332n", "so ét un"),
        ("＠ｕｓｅｒ ｈｔｔｐｓ：／／ｔ．ｃｏ／ａ ja", "ja"),
        ("@\u200duser ja", "ja"),
        ("大家好，今天！ ＡＢ！", "大家好，今天！ AB!"),
        ("it´s … ทำ ㅋㅋ", "it´s … ทำ ㅋㅋ"),
    ],
)
def test_detectors_read_plain_letters_without_mentions_addresses_or_what_is_invisible(text, cleaned):
    assert clean_for_detectors(text) == cleaned


@pytest.mark.slow
def test_cld2_takes_every_character_that_cleaning_leaves():
    everything = [chr(code) for code in range(sys.maxunicode + 1)]
    cleaned = clean_for_detectors("".join(everything))
    assert len(cleaned) > 1_000_000
    pycld2.detect(cleaned, isPlainText=True)
    for character in everything:
        if masking._UNREADABLE.match(character):
            assert clean_for_detectors(f"a{character}b") == "a b"
        if unicodedata.category(character) == "Cf":
            assert clean_for_detectors(f"a{character}b") == "ab"


@given(st.text())
def test_every_detector_takes_every_text_once_cleaned(text):
    cleaned = clean_for_detectors(text)
    assert cleaned == cleaned.strip()
    assert not {unicodedata.category(character) for character in cleaned} & {"Cc", "Cs"}
    for detect in DETECTORS.values():
        detect([cleaned], 3)


LETTERS = {
    "haha 123 !!!": 4,
    "हिन्दी": 6,
    "@user https://example.org/abc": 0,
    "❤️👍🏽": 0,
    "日本語": 3,
    "": 0,
    "#love #party #summer": 0,
    "＃日本 ＃東京": 0,
    "So warm in #Berlin!": 8,
    "HAHAHAHAHA hahaha Haha": 2,
    "jajaja jajaja": 2,
    "ㅋㅋㅋㅋㅋㅋㅋㅋㅋㅋ": 1,
    "हाहाहाहा": 2,
    "Goooooooool": 3,
    "lol lol lol": 3,
    "go home, go home": 12,
    "\u3164\u3164\u3164": 0,
}


def test_letters_are_counted_as_detectors_read_them_without_hashtags_and_repetitions():
    counts = count_letters([clean_for_detectors(text) for text in LETTERS])
    assert dict(zip(LETTERS, counts.tolist(), strict=True)) == LETTERS


SIGNS = [
    "www.",
    "WwW.",
    "/",
    "http://",
    "t.co",
    "@",
    "＠",
    "a@b.de",
    "\ufe0f",
    "\x00",
    "\ufdd0",
    "\u2028",
    " ",
    "é",
    "x",
]


@given(st.lists(st.one_of(st.sampled_from(SIGNS), st.characters())).map("".join))
def test_a_pattern_is_left_out_only_where_it_would_find_nothing(text):
    """Each pattern is searched only in texts with a character that it needs; these texts have all of them."""
    addresses = (masking._URL, masking._MENTION, masking._EMAIL)
    expected = text
    for pattern in addresses:
        expected = pattern.sub(" ", expected)
    expected = masking._UNREADABLE.sub(" ", readable(expected))
    for pattern in addresses:
        expected = pattern.sub(" ", expected)
    assert clean_for_detectors(text) == " ".join(expected.split())


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize(
    "text",
    ["Việt Nam rất đẹp", "Übung macht den Meister", "안녕하세요 여러분", "ガギグゲゴ", "હું ગુજરાતી", "добрий їжак"],
)
def test_composed_and_decomposed_letters_are_read_alike(text, form):
    assert clean_for_detectors(unicodedata.normalize(form, text)) == text


def test_letters_alone_leave_out_signs_digits_and_emoji():
    texts = ['"BARACK OBAMA" (2008) 😀', "", "!!!", "می\u200cخواهم، हिन्दी"]
    assert letters_alone(texts) == ["BARACK OBAMA", "", "", "می\u200cخواهم हिन्दी"]


# --- the characters that people see, compared with those that the package regex finds


# Characters of many kinds: letters with marks, jamo, flags, joined emoji, tags, and ends of clusters.
PIECES = [
    *"aकষद\u093f한국가\u1100\u1161\u11a8🇪🇸🇫🇷👩👧👍🏽\r\n\u0301\ufe0f\u20e3↔🙂\u200f\u0600\u0e33\U000e0067\U000e007f🏴",
    *("क\u094d", "র\u09cd", "ക\u0d4d", "క\u0c4d", "क\u093c\u094d", "🙂\u200d", "a\u200d", "a\u200c", "क\u094d\u200c"),
]


def is_split_alike(text):
    bounds = {0} | {match.end() for match in regex.finditer(r"\X", text)}
    return bounds == {place for place in range(len(text) + 1) if not is_within_character(text, place)}


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("language", TEXTS)
def test_texts_in_six_scripts_have_the_characters_of_regex(language, form):
    assert is_split_alike(unicodedata.normalize(form, TEXTS[language][0]))


def test_random_sequences_of_signs_have_the_characters_of_regex():
    chance = random.Random(5)
    texts = ["".join(chance.choices(PIECES, k=chance.randint(2, 7))) for _ in range(3000)]
    assert [text for text in texts if not is_split_alike(text)] == []


@pytest.mark.slow
def test_every_letter_continues_or_ends_a_character_as_in_regex():
    letters = (chr(code) for code in range(0x110000))
    assigned = [letter for letter in letters if unicodedata.category(letter) not in ("Cn", "Co", "Cs")]
    assert [letter for letter in assigned if not is_split_alike(f"a{letter}b")] == []


@pytest.mark.parametrize("letter", ["\u200f", "\u202b", "\ufeff", "\xad"])
def test_marks_of_direction_and_the_like_are_invisible(letter):
    assert is_invisible(letter)


@pytest.mark.parametrize("letter", ["a", " ", "\u200c", "\u200d", "\u0600", "\U000e0067"])
def test_letters_and_what_belongs_to_a_letter_are_not_invisible(letter):
    assert not is_invisible(letter)
