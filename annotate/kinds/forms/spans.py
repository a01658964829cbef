"""The answer form for spans: labelled ranges of a text, such as named entities or the answer to a question.

The canonical text consists of START:END:LABEL, sorted by position and separated by single spaces, or is NOTHING if
there is nothing to mark. Offsets count Unicode code points, as in Python, so the marked text is text[start:end].

Most annotators can agree that a character is marked, but not on a span that covers it. Such answers are in conflict,
even if other spans have a majority. The task's option `on_conflict` decides what happens to the unit.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from annotate.core.aggregation.answer_table import needed
from annotate.core.agreement import coefficients
from annotate.core.refusals import Wrong
from annotate.kinds.forms.labels import RIGHT_FROM, Labels
from corpora.core.graphemes import is_invisible, is_within_character

NOTHING = "none"


class Span(NamedTuple):
    start: int
    end: int
    label: str

    def __str__(self) -> str:
        return f"{self.start}:{self.end}:{self.label}"


def spans_in(text: str) -> list[Span]:
    """Return the spans of a canonical text. Raise ValueError if the text is invalid."""
    return [_span(mark) for mark in text.split() if mark != NOTHING]


def _span(mark: str) -> Span:
    start, _, rest = mark.partition(":")
    end, _, label = rest.partition(":")
    if not (_is_offset(start) and _is_offset(end) and label):
        raise Wrong("%(mark)s is not a span. Write its start, end and label, such as 0:5:PER.", mark=repr(mark[:40]))
    return Span(int(start), int(end), label)


def _is_offset(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10


def text_of(spans: Iterable[Span]) -> str:
    return " ".join(map(str, sorted(set(spans)))) or NOTHING


def majority(answers: Sequence[str], order: Sequence[str] = (), people: int = 0) -> str | None:
    """Return the spans that more than half of the annotators marked with the same bounds and label.

    Return NOTHING if more than half answered NOTHING. Return None if neither a span nor NOTHING has a majority, or if
    the answers are in conflict. Any two spans with a majority occur together in some answer, so they are compatible.

    order: not used
    people: number of annotators originally asked. The threshold is half of this number or half the number of answers,
        whichever is larger.
    """
    votes = Counter(mark for text in answers for mark in text.split())
    least = needed(max(people, len(answers)))
    chosen = sorted((mark for mark, number in votes.items() if number >= least), key=_place)
    text = " ".join(chosen)
    return None if _is_contested(answers, spans_in(text), least) else text or None


def _is_contested(answers: Sequence[str], chosen: Iterable[Span], least: int) -> bool:
    """Return whether at least `least` annotators marked a character that is in none of the chosen spans."""
    marked = Counter(place for text in answers for place in _places(spans_in(text)))
    return not {place for place, number in marked.items() if number >= least} <= _places(chosen)


def _places(spans: Iterable[Span]) -> set[int]:
    return {place for start, end, _ in spans for place in range(start, end)}


def _place(mark: str) -> tuple[int, int, str]:
    return (0, 0, mark) if mark == NOTHING else _span(mark)


def by_character(answers: Sequence[str], order: Sequence[str] = (), people: int = 0) -> str | None:
    """Return the spans of characters that more than half of the annotators marked with the same label.

    Adjacent characters with the same label form one span, unless most annotators started a new span between them.
    Spans must not overlap within an answer. The parameters and other results are as in `majority`.
    """
    least = needed(max(people, len(answers)))
    spans = [span for text in answers for span in spans_in(text)]
    votes = Counter((place, label) for start, end, label in spans for place in range(start, end))
    starts = Counter((start, label) for start, _, label in spans)
    chosen: list[Span] = []
    for place, label in sorted(key for key, number in votes.items() if number >= least):
        last = chosen[-1] if chosen else None
        if last and last[1:] == (place, label) and starts[place, label] < least:
            chosen[-1] = last._replace(end=place + 1)
        else:
            chosen.append(Span(place, place + 1, label))
    if _is_contested(answers, chosen, least):
        return None
    return text_of(chosen) if chosen or answers.count(NOTHING) >= least else None


def characters(text: str) -> set[tuple[int, str]]:
    """Return each marked character with its label. An answer without spans yields one special element."""
    marked = {(place, label) for start, end, label in spans_in(text) for place in range(start, end)}
    return marked or {(-1, NOTHING)}


def check_places(spans: Sequence[Span], length: int, *, overlap: bool, one: bool) -> None:
    """Raise ValueError if a span is outside the text, or if the spans break the rules `overlap` and `one`.

    spans: the spans in order
    length: number of characters of the text
    overlap: whether spans can overlap
    one: whether only one span is allowed
    """
    if one and len(spans) > 1:
        raise Wrong("%(number)s spans are marked, but only one is allowed. Keep the best.", number=len(spans))
    for span in spans:
        if not span.start < span.end <= length:
            raise Wrong(
                "%(span)s is outside the text, which has %(number)s characters. Count characters (code points) from 0.",
                span=str(span),
                number=length,
            )
    for first, second in pairwise(spans):
        if not overlap and second.start < first.end:
            raise Wrong("%(first)s and %(second)s overlap. Remove one.", first=str(first), second=str(second))


def check_marks(text: str, marked: str, *, overlap: bool, one: bool) -> None:
    """Call `check_places`. Also raise ValueError if a span starts or ends with a space or inside a character.

    text: canonical text of the spans
    marked: text that the spans mark
    """
    spans = spans_in(text)
    check_places(spans, len(marked), overlap=overlap, one=one)
    for span in spans:
        words = marked[span.start : span.end]
        if words != words.strip():
            raise Wrong("%(span)s begins or ends with a space. Leave it out.", span=str(span))
        if is_invisible(words[0]) or is_invisible(words[-1]):
            raise Wrong("%(span)s begins or ends with an invisible character. Leave it out.", span=str(span))
        if any(is_within_character(marked, place) for place in (span.start, span.end)):
            raise Wrong("%(span)s cuts a character from its accents or signs. Move its ends.", span=str(span))


class Spans(Labels):
    """Sets of spans. The table [spans] of the kind's file has the rules (kinds/span_kind.py)."""

    slug = "spans"
    tables = ("spans",)
    least_answers = 1
    aggregations = {"majority": majority, "characters": by_character}
    fits_tools = True
    template = "annotate/spans.html"
    bench = "annotate/bench_spans.html"
    assets = ("annotate/spans.js", "annotate/spans.css")
    measured_by = "annotate.evaluation.predicted_spans"
    measures = {
        "span_precision": ("precision", ""),
        "span_recall": ("recall", ""),
        "span_f1": (
            "span F1",
            "A predicted span is right if its bounds and its label are those of a gold span, as in seqeval’s strict "
            "mode. Without a label, precision, recall and F1 are of all spans together (micro).",
        ),
        "token_f1": (
            "token F1",
            "Token F1 is the mean F1 of the words of the predicted and the gold answer, without case, punctuation and "
            "articles, as in SQuAD and MLQA; it is 1 if neither has an answer.",
        ),
        "exact_match": ("exact match", "Exact match is the share of items in which these words are all the same."),
    }

    def read(self, sent: Sequence[str]) -> str:
        """Return the canonical text of submitted spans: START:END:LABEL, or JSON with start, end and label."""
        marks = [mark for text in sent for mark in ([text] if text.lstrip().startswith("[") else text.split())]
        spans = [span for mark in marks if mark != NOTHING for span in _parse(mark)]
        if spans and NOTHING in marks:
            raise Wrong("Both spans and “nothing” were sent. Send one of them.")
        return text_of(spans) if marks else ""

    def check(self, text: str, codes: Collection[str], least: int = 1, most: int | None = None) -> None:
        spans = spans_in(text)
        if text != text_of(spans):
            raise Wrong("%(text)s is not sorted. Write %(sorted)s.", text=repr(text[:80]), sorted=text_of(spans))
        for span in spans:
            if span.label not in codes:
                raise Wrong(
                    "%(label)s is not a label of this task. Its labels are %(labels)s.",
                    label=repr(span.label),
                    labels=", ".join(codes),
                )

    def agrees(self, answer: str, correct: str, right_from: float = RIGHT_FROM) -> bool:
        """Return whether the marked characters and their labels are similar enough to the known answer."""
        return bool(answer and correct) and coefficients.f1(characters(answer), characters(correct)) >= right_from

    def counted(self, text: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(span.label for span in spans_in(text))) or (NOTHING,)

    def distances(self, values: Sequence[str]) -> dict[str, coefficients.Distance]:
        return super().distances(values) | {"unitizing": coefficients.unitizing(list(map(characters, values)))}

    def fault(self, labels: Sequence[str], task: Any) -> str:
        """Return the first label that is not possible in a task. `labels` are spans, as in `facets`."""
        codes = [span.label for mark in labels for span in spans_in(mark)]
        return super(Labels, self).fault(codes, task)


def _parse(mark: str) -> list[Span]:
    if not mark.lstrip().startswith("["):
        return [_span(mark)]
    try:
        return [_span(f"{span['start']}:{span['end']}:{span['label']}") for span in json.loads(mark)]
    except (ValueError, TypeError, KeyError) as error:
        raise Wrong("The list of spans is not valid JSON with start, end and label. Correct it.") from error
