"""Words as a search compares them: without accents, case and punctuation."""

import re
import unicodedata

# Letters that Unicode does not take apart into a letter and its accent.
_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ŧ": "t", "ı": "i", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe"}
)
# A letter of a script that parts no words by spaces (Thai to Tibetan, Burmese, Khmer, kana, Han) is a word of its own.
_SINGLE = "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_WORD = re.compile(rf"[{_SINGLE}]|[^\W_{_SINGLE}]+")
LONGEST = 64  # letters of a word that count; an index of PostgreSQL holds no more than 2,700 bytes of one


def words_of(text: str) -> list[str]:
    """The runs of letters and digits in their order: "L'été à Århus" is l, ete, a, arhus. None where there is none."""
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    plain = "".join(letter for letter in apart if not unicodedata.combining(letter))
    return [word[:LONGEST] for word in _WORD.findall(plain.translate(_LETTERS))]
