"""The characters that people see, compared with those that the package regex finds."""

import random
import unicodedata

import pytest
import regex

from corpora.core.graphemes import is_invisible, is_within_character
from tests.annotate.spans.marked_texts import TEXTS

# Signs of many kinds: letters with signs, jamo, flags, joined emoji, tags, and characters that end a cluster.
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
    known = [letter for letter in letters if unicodedata.category(letter) not in ("Cn", "Co", "Cs")]
    assert [letter for letter in known if not is_split_alike(f"a{letter}b")] == []


@pytest.mark.parametrize("letter", ["\u200f", "\u202b", "\ufeff", "\xad"])
def test_marks_of_direction_and_the_like_are_invisible(letter):
    assert is_invisible(letter)


@pytest.mark.parametrize("letter", ["a", " ", "\u200c", "\u200d", "\u0600", "\U000e0067"])
def test_letters_and_what_belongs_to_a_letter_are_not_invisible(letter):
    assert not is_invisible(letter)
