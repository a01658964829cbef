"""Evaluation of predicted spans by boundaries and label. Answers to questions are also compared word by word.

Predictions are a JSONL file with an id and either `spans` (start, end, label) or `label` (as in the set) for each
record, or a folder of CoNLL files, such as en.test, with the same tokens as the set's files.
"""

import json
import re
import string
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from annotate.core.aggregation.answer_table import Floats
from annotate.core.draws.splits import TEST
from annotate.core.estimation.resampling import LEAST_UNITS, compare_scores
from annotate.core.measures import ranked_labels
from annotate.core.measures.classification import ClassSample, mean
from annotate.core.measures.figure_rows import NO_UNITS, Row, add_holm_p_values, difference_row, row
from annotate.core.measures.ranked_labels import Answered
from annotate.evaluation.prediction_files import describe_system, system_names
from annotate.evaluation.record_sets import PublishedSet, unfinished_warnings
from annotate.evaluation.subjects import EvaluationError, list_ids
from annotate.goldsets.formats.conll import CONLL, ConllError, Tagged, read_conll, spans_of
from annotate.goldsets.gold_set import objects_in
from annotate.goldsets.set_folder import RESTORE, GoldSetError, get
from annotate.kinds.forms.spans import Spans, check_places, spans_in
from annotate.reports.tables import many

FORM = Spans()
WORDS = ("token_f1", "exact_match")
COMPLETE = "Write one complete JSON object with an id per line."
READING = (
    "x [a, b] is an estimate with its 95% interval, for other records like these: from the bootstrap over records for "
    "span figures, and Jeffreys’ at the effective size for means over records."
)


@dataclass(frozen=True)
class Marked:
    """The gold or predicted spans of a record.

    place: the record's language, and its id or number in a file.
    marks: the spans as START:END:LABEL, in characters or in tokens.
    text: text of the first span; "" if there is none.
    """

    place: tuple[str, str]
    marks: frozenset[str]
    text: str


Pair = tuple[Marked, Marked]  # gold and predicted spans of a record


def grade(
    predictions: str, sets: Sequence[PublishedSet], against: str = "", *, split: str = TEST, **reading: Any
) -> dict[str, Any]:
    """Evaluate predicted spans and return the report.

    predictions: path of the predictions.
    sets: a sequence with the gold set as its first element.
    against: path of a second system's predictions; "" for no comparison.
    split: name of the split to measure.
    reading: options for reading predictions, none of which apply to spans.

    Raise EvaluationError if the predictions cannot be measured.
    """
    gold, paths = sets[0], [Path(path) for path in (predictions, against) if path]
    if reading:
        raise EvaluationError(f"--{next(iter(reading)).replace('_', '-')} does not apply to spans. Remove it.")
    if {path.is_dir() for path in paths} == {True, False}:
        raise EvaluationError("One system has a folder and the other a file. Compare two of the same type.")
    names = system_names(paths)
    try:
        systems = [_measures(path, gold, split) for path in paths]
    except (ConllError, GoldSetError) as error:
        raise EvaluationError(str(error)) from error
    comparison = None
    if against:
        test = "a two-sided randomization test, which swaps the two systems’ answers at random for each record"
        comparison = {"other": describe_system(names[1]), "test": test, "rows": systems[0].compared(systems[1])}
    return {
        "form": FORM.slug,
        "unit": "record",
        "head": systems[0].head,
        "words": {"gold": [f"Measured on {many(len(systems[0].pairs), 'record')} of the split {split}."]},
        "reading": [READING],
        "predictor": describe_system(names[0]),
        "rows": list(systems[0].rows()),
        "comparison": comparison,
        "told": [],
        "warnings": unfinished_warnings(sets),
    }


def _measures(path: Path, gold: PublishedSet, split: str) -> "Measures":
    pairs = list((_read_folder if path.is_dir() else _read_file)(path, gold, split))
    if not pairs:
        raise EvaluationError(f"The set {gold.name} has no records in the split {split}. Choose one with --split.")
    return Measures(pairs, gold.manifest["task"]["marking"]["one"], f"{gold.digest}:{split}")


def _read_file(path: Path, gold: PublishedSet, split: str) -> Iterator[Pair]:
    task = gold.manifest["task"]
    field = task["marking"]["field"]
    try:
        predicted = _read_rows(path)
    except GoldSetError as error:  # its advice applies to a gold set's files
        raise EvaluationError(str(error).replace(RESTORE, COMPLETE)) from error
    rows = [raw for _, raw in objects_in(gold.folder / f"gold{gold.mark}.jsonl") if raw["split"] == split]
    if missing := [raw["id"] for raw in rows if raw["id"] not in predicted]:
        raise EvaluationError(
            f"{path} has no spans for {len(missing):,} of {len(rows):,} records{list_ids(missing)}. Add a row for "
            "each, with an empty list if nothing is predicted."
        )
    for raw in rows:
        place, text, row = (raw["language"], raw["id"]), raw.get(field), predicted[raw["id"]]
        _check(row, text, task)
        yield _marks_in_text(place, raw["label"], text or ""), _marks_in_text(place, row.label, text or "")


class _Predicted(NamedTuple):
    """A row of predictions.

    location: file and line, for messages.
    label: canonical text of the spans.
    texts: mapping from a span's canonical text to its text as stated in the row.
    """

    location: str
    label: str
    texts: dict[str, str]


def _read_rows(path: Path) -> dict[str, _Predicted]:
    rows: dict[str, _Predicted] = {}
    for location, raw in objects_in(path):
        key, row = get(location, raw, "id", str), _parse(location, raw)
        first = rows.setdefault(key, row)
        if first.label != row.label:
            raise EvaluationError(
                f"{location}: the record {key} has other spans in {first.location.rpartition(', ')[2]}. Keep one row."
            )
    return rows


def _parse(location: str, raw: Mapping[str, Any]) -> _Predicted:
    """Parse the spans in a row of predictions. The format is that of a gold set's rows."""
    spans, label = raw.get("spans"), raw.get("label")
    if spans is None and not isinstance(label, str):
        raise EvaluationError(
            f"{location} has neither `spans` nor `label`. Write a list of spans, empty if nothing is predicted."
        )
    try:
        if spans is None:
            return _Predicted(location, FORM.read([str(label)]), {})
        texts = {FORM.read([json.dumps([span])]): span["text"] for span in spans if span.get("text") is not None}
        return _Predicted(location, FORM.read([json.dumps(spans)]), texts)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        sentence = str(error) if isinstance(error, ValueError) else "`spans` is not a list of objects. Correct it."
        raise EvaluationError(f"{location}: {sentence}") from error


def _check(row: _Predicted, text: str | None, task: Mapping[str, Any]) -> None:
    """Raise EvaluationError if predicted spans are inconsistent with the record or with each other.

    text: the record's text; None if the set does not include it.
    """
    marking, spans = task["marking"], spans_in(row.label)
    try:
        FORM.check(row.label, task["labels"])
        length = max((span.end for span in spans), default=0) if text is None else len(text)
        check_places(spans, length, overlap=marking["overlap"], one=marking["one"])
    except ValueError as error:
        raise EvaluationError(f"{row.location}: {error}") from error
    if text is None:
        return
    for mark, quote in row.texts.items():
        [span] = spans_in(mark)
        if quote != (marked := text[span.start : span.end]):
            raise EvaluationError(
                f"{row.location}: {mark} is {marked!r} in the set, but its text is {quote!r}. Count code points from "
                "0, as Python does, and not UTF-16 units, as JavaScript and Java do."
            )


def _marks_in_text(place: tuple[str, str], label: str, text: str) -> Marked:
    spans = spans_in(label)
    return Marked(place, frozenset(map(str, spans)), text[spans[0].start : spans[0].end] if spans else "")


def _read_folder(folder: Path, gold: PublishedSet, split: str) -> Iterator[Pair]:
    if gold.format != CONLL:
        raise EvaluationError(f"{gold.folder} has no CoNLL files. Give a JSONL file instead of the folder {folder}.")
    for name in gold.files:
        if not name.endswith(f".{split}"):
            continue
        base = Path(name).name.replace(gold.mark, "", 1) if gold.mark else Path(name).name
        path = folder / base if (folder / base).exists() and not (folder / name).exists() else folder / name
        true, predicted = read_conll(gold.folder / name), read_conll(path)
        tokens, predicted_tokens = ([[token for token, _ in item] for item in items] for items in (true, predicted))
        if tokens != predicted_tokens:
            raise EvaluationError(f"{path} does not have the tokens of {gold.folder / name}. Keep its lines in order.")
        language = base.removesuffix(f".{split}")
        for number, (gold_item, predicted_item) in enumerate(zip(true, predicted, strict=True)):
            place = (language, str(number))
            yield _marks_in_tokens(place, gold_item), _marks_in_tokens(place, predicted_item)


def _marks_in_tokens(place: tuple[str, str], tagged: Tagged) -> Marked:
    spans = spans_of(tag for _, tag in tagged)
    text = " ".join(token for token, _ in tagged[spans[0].start : spans[0].end]) if spans else ""
    return Marked(place, frozenset(map(str, spans)), text)


# --- Measures


@dataclass(frozen=True)
class Measures:
    """The measures of one system.

    is_single: whether each record has at most one span, the answer to a question.
    seed: seed of the bootstrap and the randomization tests.
    """

    pairs: Sequence[Pair]
    is_single: bool
    seed: str

    @property
    def head(self) -> list[dict[str, Any]]:
        return [{"measure": name, "of": {}} for name in (WORDS if self.is_single else ("span_f1",))]

    @property
    def answered(self) -> list[Answered]:
        return [Answered(gold.marks, predicted.marks) for gold, predicted in self.pairs]

    @property
    def word_scores(self) -> Floats:
        """Token F1 and exact match of each record, (records, 2)."""
        scores = [word_scores(gold.text, predicted.text, gold.place[0]) for gold, predicted in self.pairs]
        return np.array(scores, dtype=np.float64).reshape(-1, 2)

    def rows(self) -> Iterator[Row]:
        yield from self._rows({})
        labels = sorted({_label_of(mark) for pair in self.pairs for marked in pair for mark in marked.marks})
        for label in labels if len(labels) > 1 else ():
            yield from self._with_label(label)._span_rows({"label": label})
        languages = sorted({gold.place[0] for gold, _ in self.pairs})
        for language in languages if len(languages) > 1 else ():
            part = [pair for pair in self.pairs if pair[0].place[0] == language]
            yield from replace(self, pairs=part)._rows({"language": language})

    @property
    def _size_note(self) -> str:
        return f"fewer than {LEAST_UNITS} records" if len(self.pairs) < LEAST_UNITS else ""

    def _with_label(self, label: str) -> "Measures":
        """Return the measures for the spans with one label."""

        def only(marked: Marked) -> Marked:
            return replace(marked, marks=frozenset(mark for mark in marked.marks if _label_of(mark) == label))

        return replace(self, pairs=[(only(gold), only(predicted)) for gold, predicted in self.pairs])

    def _rows(self, of: Mapping[str, str]) -> Iterator[Row]:
        if self.is_single:
            for name, values in zip(WORDS, self.word_scores.T, strict=True):
                score = mean([ClassSample(1.0, values)])
                is_few = len(values) < LEAST_UNITS
                yield row(name, of, score.value if is_few else score, len(values), self._size_note)
        yield from self._span_rows(of)

    def _span_rows(self, of: Mapping[str, str]) -> Iterator[Row]:
        micro, units = ranked_labels.micro(self.answered, seed=self.seed), len(self.pairs)
        figures = (
            ("f1", micro.f1, ""),
            ("precision", micro.precision, f"{micro.hits:,} of {micro.assigned:,}"),
            ("recall", micro.recall, f"{micro.hits:,} of {micro.gold:,}"),
        )
        for name, share, counts in figures:
            why = NO_UNITS if share.value is None else self._size_note
            yield row(f"span_{name}", of, share, units, "; ".join(filter(None, (counts, why))))

    def compared(self, other: "Measures") -> list[Row]:
        """Return the differences from another system on the same records, with Holm-corrected p-values."""
        rows, number, systems = [], len(self.pairs), (self, other)
        columns = {"span_f1": [_span_sums(system.answered) for system in systems]}
        for index, name in enumerate(WORDS if self.is_single else ()):
            columns[name] = [np.stack([system.word_scores[:, index], np.ones(number)], axis=1) for system in systems]
        for name, (first, second) in columns.items():
            difference, p = compare_scores(first, second, _ratio, seed=f"{self.seed}:{name}")
            note = "" if difference else f"fewer than {LEAST_UNITS} records, or no variation"
            rows.append(difference_row(name, {}, difference, number, note, p))
        return add_holm_p_values(rows)


def _label_of(mark: str) -> str:
    return mark.split(":", 2)[2]


def _span_sums(answered: Sequence[Answered]) -> Floats:
    """Return each record's contributions to the numerator and the denominator of F1, (records, 2)."""
    sums = [(2 * len(gold & predicted), len(gold) + len(predicted)) for gold, predicted in answered]
    return np.array(sums, dtype=np.float64).reshape(-1, 2)


def _ratio(sums: Floats) -> Floats:
    shares: Floats = sums[0] / np.maximum(sums[1], 1)
    return shares


# --- Words of an answer, compared as in MLQA's evaluation (Lewis et al. 2020, mlqa_evaluation_v1.py)


ARTICLES = {
    "en": r"\b(a|an|the)\b",
    "es": r"\b(un|una|unos|unas|el|la|los|las)\b",
    "vi": r"\b(của|là|cái|chiếc|những)\b",
    "de": r"\b(ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "ar": r"\sال^|ال",
}
UNSEPARATED = ("zh", "ja", "th")  # each character is a word; of these, MLQA covers only Chinese
# Characters that count as separate words. Words in other scripts stay whole.
_SINGLE = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"


@cache
def _punctuation() -> dict[int, None]:
    marks = (chr(code) for code in range(sys.maxunicode) if unicodedata.category(chr(code)).startswith("P"))
    return dict.fromkeys(map(ord, (*marks, *string.punctuation)))


def words_of(text: str, language: str) -> list[str]:
    """Return the words of an answer in lower case, without punctuation and articles."""
    code = language.partition("-")[0]
    plain = re.sub(ARTICLES.get(code, r"(?!)"), " ", text.lower().translate(_punctuation()))
    if code not in UNSEPARATED:
        return plain.split()
    return re.findall(rf"[{_SINGLE}]|[^\s{_SINGLE}]+", plain)


def word_scores(gold: str, predicted: str, language: str) -> tuple[float, float]:
    """Return the token F1 of two answers, and their exact match (1 or 0). An answer can be empty."""
    gold_words, predicted_words = (words_of(text, language) for text in (gold, predicted))
    if not (gold_words and predicted_words):
        return (float(gold_words == predicted_words),) * 2
    common = (Counter(gold_words) & Counter(predicted_words)).total()
    return 2 * common / (len(gold_words) + len(predicted_words)), float(gold_words == predicted_words)
