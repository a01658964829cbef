"""The paragraphs of a long text, for the eye. What is stored, exported and served by the API stays as it came.

Many collections of news come with each article on one line, of up to 23,000 letters: a wall in which whoever scrolls
loses the place. Such a line is parted at ends of sentences, and nothing is added to it or taken from it.
"""

import re
from unicodedata import east_asian_width

# Letters, of which wide ones, as in Chinese, count twice: a line of more is parted, into paragraphs of as many or
# a sentence more. In a column of 65 letters these are 20 lines and 10.
LONGEST = 1300
PART = 650
_EMPTY = re.compile(r"\n(?:[^\S\n]*\n)+")
# The end of a sentence, with the space behind it. A full stop after fewer than three letters may be that of "Dr.".
_END = re.compile(r"""(?:(?<=\w\w\w)\.|[!?…؟۔।॥])["'”’»)\]]*\s+|[。！？]["'”’」』）]*\s*""")


def paragraphs(text: str) -> list[str]:
    """The lines of a text, the empty ones too, and in place of each that is too long its parts."""
    return [part for line in text.splitlines() for part in _parted(line)]


def parted(text: str) -> list[str]:
    """What empty lines part, such as the articles of an act; without the empty lines."""
    return [part for part in _EMPTY.split(text.strip("\n")) if part.strip()]


def _parted(line: str) -> list[str]:
    if _width(line) <= LONGEST:
        return [line]
    parts, begin, ends = [], 0, [found.end() for found in _END.finditer(line)]
    for end in ends:
        # A small letter does not begin a sentence.
        if not line[end : end + 1].islower() and _width(line[begin:end]) >= PART:
            parts.append(line[begin:end])
            begin = end
    return [*parts, line[begin:]] if begin < len(line) else parts


def _width(text: str) -> int:
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)
