"""The answer form for text that annotators write, such as a question about a passage or the title of an article.

The canonical text is normalized to NFC, on one line with single spaces. A reviewer accepts a text by answering with the
same text, corrects it with a different version, or rejects it with REJECTED.
"""

import difflib
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from annotate.core.aggregation.answer_table import majority
from annotate.core.refusals import Wrong
from annotate.kinds.forms.labels import Labels
from corpora.core.graphemes import UNSPACED

# The answer of a reviewer who would not keep the text.
REJECTED = "<rejected>"
# Pages submit an accepted text with this prefix, because the form might also contain an abandoned correction.
ACCEPTED = "<accepted>"
# Categories of characters that no text may contain: control characters and halves of surrogate pairs.
_FORBIDDEN = ("Cc", "Cs")
# Characters that set the direction of the following text, until the matching terminator (Unicode Standard Annex 9).
_TERMINATORS = {"LRE": "PDF", "RLE": "PDF", "LRI": "PDI", "RLI": "PDI", "FSI": "PDI"}
_OVERRIDES = ("LRO", "RLO")
# How parts differ between two versions of a text.
SAME, ADDED, REMOVED = "same", "added", "removed"
# A character of a script without spaces, with any vowel signs and tone marks that follow it.
_UNSPACED = f"[{UNSPACED}]"
_SIGNS = r"[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u17b6-\u17d3\u3099\u309a]"
_MARKS = r"""[.,;:!?؟،؛।。！？、¿¡…"“”„«»‹›()\[\]]"""
_WORD = rf"(?s)\s+|{_UNSPACED}{_SIGNS}*|{_MARKS}|(?:(?!\s|{_UNSPACED}|{_MARKS}).)+"


@dataclass(frozen=True)
class Writing:
    """A kind's rules for texts.

    least, most: minimum and maximum length (characters)
    start: field whose text the writer edits; "" to start with an empty text
    reviewers: number of people who review each text
    review: the question for reviewers, by language; empty for the default question
    """

    least: int = 1
    most: int = 500
    start: str = ""
    reviewers: int = 2
    review: Mapping[str, str] | None = None


class Text(Labels):
    """Texts, which statistics compare as sets of words."""

    slug = "text"
    tables = ("text",)
    lists = False
    controls = ("review",)
    aggregations = {"majority": majority}
    Measures: Any = None
    measured_by = "annotate.evaluation.written_texts"
    template = "annotate/text.html"
    bench = "annotate/bench_text.html"
    assets = ("annotate/text.css", "annotate/text.js")
    about = (
        "One annotator writes a text. Then others accept, correct or reject it, without knowing each other's answers.",
    )
    refuses_files = "shows versions of a text, which a file cannot do. Decide on its pages or through the API."

    def __init__(self, writing: Writing = Writing()) -> None:
        self.writing = writing

    def read(self, sent: Sequence[str]) -> str:
        """Return the canonical text. If one of the values is an accepted text or a rejection, ignore the others.

        An accepted text keeps its prefix, because only the `review` control knows which texts can be accepted.
        """
        texts = [text for text in sent if text.strip()]
        accepted = next((text.removeprefix(ACCEPTED) for text in texts if text.startswith(ACCEPTED)), None)
        if accepted is not None:
            return ACCEPTED + canonical(accepted)
        if REJECTED in texts:
            return REJECTED
        if len(texts) > 1:
            raise Wrong("Several texts were sent, but only one is allowed. Send one.")
        return canonical(texts[0]) if texts else ""

    def check(self, text: str, codes: Collection[str] = (), least: int = 0, most: int | None = None) -> None:
        """Raise ValueError if a canonical text is not a valid answer. The parameters of Labels are not used."""
        if text == REJECTED:
            return
        if any(unicodedata.category(letter) in _FORBIDDEN for letter in text):
            raise Wrong("The text contains a control character. Remove it.")
        if code := _direction_fault(text):
            raise Wrong(
                "The text contains %(code)s, an invisible character that changes the direction of writing. Remove it.",
                code=code,
            )
        if text.startswith((ACCEPTED, REJECTED)):
            raise Wrong("A text cannot start with %(start)s. Remove it.", start=text[: text.index(">") + 1])
        if not any(unicodedata.category(letter)[0] in "LN" for letter in text):
            raise Wrong("The text contains no letter and no digit. Write a text, or skip.")
        length, writing = len(text), self.writing
        if length < writing.least:
            raise Wrong(
                "The text has %(number)s character, but needs at least %(least)s.",
                "The text has %(number)s characters, but needs at least %(least)s.",
                number=length,
                least=writing.least,
            )
        if length > writing.most:
            raise Wrong(
                "The text has %(number)s character, but may have at most %(most)s. Shorten it.",
                "The text has %(number)s characters, but may have at most %(most)s. Shorten it.",
                number=length,
                most=writing.most,
            )

    def facets(self, text: str) -> tuple[str, ...]:
        return (text,)

    def counted(self, text: str) -> tuple[str, ...]:
        """Return no labels, because nearly all texts differ."""
        return ()

    def fault(self, labels: Sequence[str], task: Any) -> str:
        return ""

    def written(self, unit: Any, annotator: Any) -> str:
        """Return the text that an annotator reviews; "" if the annotator is to write one."""
        return self.texts_for(unit, annotator)[0]

    def texts_for(self, unit: Any, annotator: Any) -> tuple[str, str]:
        """Return the text that an annotator reviews, and the annotator's own last answer. A missing text is "".

        The text to review is the first valid one, unless the annotator has answered before it. An annotator who undoes
        their own text therefore never sees its reviews.
        """
        written = last_answer = ""
        judgments = unit.judgments.answers().order_by("pk") if unit.pk else ()  # a preview's unit is not stored
        for judgment in judgments:
            if judgment.annotator_id == annotator.pk:
                last_answer = judgment.label
            elif not (written or last_answer) and judgment.voided_at is None and judgment.label != REJECTED:
                written = judgment.label
        return written, last_answer


def canonical(text: str) -> str:
    """Return the text in NFC on one line, without white space at its ends."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def _direction_fault(text: str) -> str:
    """Return the code point of the first direction override or unbalanced direction character; "" if there is none."""
    unclosed: list[str] = []
    for letter in text:
        direction = unicodedata.bidirectional(letter)
        if direction in _TERMINATORS:
            unclosed.append(letter)
        elif direction in _OVERRIDES:
            return _code(letter)
        elif direction in _TERMINATORS.values():
            begins = unicodedata.bidirectional(unclosed.pop()) if unclosed else ""
            if _TERMINATORS.get(begins) != direction:
                return _code(letter)
    return _code(unclosed[0]) if unclosed else ""


def _code(letter: str) -> str:
    return f"U+{ord(letter):04X}"


def versions(labels: Iterable[str]) -> list[str]:
    """Return the distinct texts among answers, in order of their first occurrence."""
    return [label for label in dict.fromkeys(labels) if label != REJECTED]


class Part(NamedTuple):
    """A part of the old or new text. change: SAME, ADDED or REMOVED"""

    change: str
    text: str


def differences(old: str, new: str) -> list[Part]:
    """Compare two versions of a text word by word, and return the parts in order.

    Scripts without spaces are compared by character. A removed part comes before the part that replaces it.
    """
    old_words, new_words = re.findall(_WORD, old), re.findall(_WORD, new)
    parts: list[Part] = []
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old_words, new_words, autojunk=False).get_opcodes():
        if tag == "equal":
            parts.append(Part(SAME, "".join(old_words[i:j])))
        else:
            texts = (REMOVED, "".join(old_words[i:j])), (ADDED, "".join(new_words[k:m]))
            parts += [Part(*part) for part in texts if part[1]]
    return parts
