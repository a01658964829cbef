"""Evaluation of generated texts against texts written by annotators, by language, with BLEU-4 and chrF.

Predictions are a table with the columns `id` and `text`, or a folder with XGLUE's files. With a table, several sets can
provide references for the same records.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotate.core.draws.splits import TEST
from annotate.core.estimation.resampling import compare_scores
from annotate.core.measures.figure_rows import Row, add_holm_p_values, difference_row, mean_of_rows, row
from annotate.core.measures.generated_texts import BLEU4, BLEU4_CHAR, METRICS, counts, scores, signature
from annotate.evaluation import xglue_tasks
from annotate.evaluation.prediction_files import describe_system, read_id_rows, system_names
from annotate.evaluation.record_sets import PublishedSet, unfinished_warnings
from annotate.evaluation.subjects import NAMED, EvaluationError, list_ids
from annotate.goldsets.gold_set import objects_in
from annotate.kinds.forms.free_text import canonical
from annotate.reports.tables import many
from corpora.core.graphemes import is_unspaced
from corpora.sources.compression import check_file, format_of
from corpora.sources.readers import Columns, named_columns

FIELDS = ("id", "text")


@dataclass(frozen=True)
class Texts:
    """The generated texts in a language, with each text's references."""

    language: str
    generated: list[str]
    references: list[list[str]]

    @property
    def bleu(self) -> str:
        return _bleu_for(self.references)


def grade(
    predictions: str,
    sets: Sequence[PublishedSet],
    against: str = "",
    *,
    split: str = TEST,
    column: Sequence[str] = (),
    file_format: str | None = None,
) -> dict[str, Any]:
    """Evaluate generated texts and return the report.

    predictions: path of the predictions.
    sets: the gold sets.
    against: path of a second system's predictions; "" for no comparison.
    split: name of the split to measure.
    column, file_format: column names and file format of the tables.

    Raise EvaluationError if the predictions cannot be measured.
    """
    paths = [Path(path) for path in (predictions, against) if path]
    if all(path.is_dir() for path in paths):
        return xglue_tasks.grade(paths[0], sets, paths[1] if against else None, split=split)
    if any(path.is_dir() for path in paths):
        raise EvaluationError("One system has a folder and the other a file. Compare two of the same type.")
    references, names = _references(sets, split), system_names(paths)
    columns = Columns(dict(zip(FIELDS, FIELDS, strict=True)) | named_columns(column, FIELDS), FIELDS)
    systems = [list(_read(path, file_format, columns, references)) for path in paths]
    main = [figure for measure in METRICS for figure in _figures(measure, systems[0], sets[0].digest)]
    test = "a two-sided randomization test, which swaps the two systems’ texts at random"
    compared = (
        {"other": describe_system(names[1]), "test": test, "rows": _compare(systems, sets[0])} if against else None
    )
    most = max(map(len, references.values()))
    return {
        "unit": "text",
        "head": [{"measure": measure, "of": {}} for measure in METRICS],
        "words": {
            "gold": [_size_note(len(references), split, most), *xglue_tasks.signatures(), *_character_note(systems[0])]
        },
        "reading": xglue_tasks.TEXTS.reading,
        "predictor": describe_system(names[0]),
        "rows": main,
        "confusion": None,
        "comparison": compared,
        "told": [],
        "warnings": unfinished_warnings(sets),
    }


def _size_note(number: int, split: str, most: int) -> str:
    several = f", each with up to {most} texts by people" if most > 1 else ""
    return f"Measured on {many(number, 'record')} of the split {split}{several}."


def _character_note(system: Sequence[Texts]) -> list[str]:
    """Return a sentence about the languages whose BLEU compares characters, if there are any."""
    if not (languages := [texts.language for texts in system if texts.bleu == BLEU4_CHAR]):
        return []
    return [
        f"BLEU-4 in {' '.join(languages)} compares characters instead of words, because these languages are written "
        f"without spaces. It is higher than BLEU-4 of words. Its signature: {signature(BLEU4_CHAR)}."
    ]


def _references(sets: Sequence[PublishedSet], split: str) -> dict[tuple[str, str], list[str]]:
    """Return each record's texts from all sets, by language and id."""
    references: dict[tuple[str, str], list[str]] = {}
    for gold in sets:
        for _, raw in objects_in(gold.folder / f"gold{gold.mark}.jsonl"):
            if raw["split"] == split:
                texts = references.setdefault((raw["language"], raw["id"]), [])
                texts += [raw["label"]] if raw["label"] not in texts else []
    if not references:
        raise EvaluationError(f"The set {sets[0].name} has no records in the split {split}. Choose one with --split.")
    return references


def _read(
    path: Path, file_format: str | None, columns: Columns, references: Mapping[tuple[str, str], list[str]]
) -> Iterator[Texts]:
    """Yield the texts of each language."""
    check_file(path, file_format)
    predicted: dict[str, str] = {}
    for line, key, raw in read_id_rows(path, file_format or format_of(path) or "", columns):
        if key in predicted:
            raise EvaluationError(f"{path}, line {line:,}: the id {key} is repeated. Keep one row per record.")
        predicted[key] = canonical(str(raw.get("text") or ""))
    if missing := [key for _, key in references if key not in predicted]:
        raise EvaluationError(
            f"{path} has no text for {len(missing):,} of {len(references):,} records{list_ids(missing[:NAMED])}. Add a "
            "row for each, with an empty text if the system gave none."
        )
    for language in sorted({language for language, _ in references}):
        of_language = {key: texts for (code, key), texts in references.items() if code == language}
        yield Texts(language, [predicted[key] for key in of_language], list(of_language.values()))


def _figures(measure: str, system: Sequence[Texts], digest: str) -> Iterator[Row]:
    """Yield the mean over languages, followed by each language's figure, as in XGLUE's evaluation."""
    rows = [
        figure
        for texts in system
        for figure in xglue_tasks.generated_rows(
            texts.generated,
            texts.references,
            {"language": texts.language},
            seed=f"{digest}:{texts.language}",
            bleu=texts.bleu,
        )
        if figure["measure"] == measure
    ]
    yield row(measure, {}, mean_of_rows(rows), None, f"mean over {many(len(rows), 'language')}")
    yield from rows


def _compare(systems: Sequence[Sequence[Texts]], gold: PublishedSet) -> list[Row]:
    """Return the two systems' differences in BLEU-4, with Holm-corrected p-values."""
    rows: list[Row] = []
    for first, second in zip(*systems, strict=True):
        first_counts, second_counts = (
            counts(texts.generated, texts.references, first.bleu) for texts in (first, second)
        )
        difference, p = compare_scores(first_counts, second_counts, scores, seed=f"{gold.digest}:{first.language}")
        note = "" if difference else xglue_tasks.NO_INTERVAL
        rows.append(difference_row(BLEU4, {"language": first.language}, difference, len(first.generated), note, p))
    return add_holm_p_values(rows)


def _bleu_for(references: Iterable[Sequence[str]]) -> str:
    """Return BLEU4_CHAR if most letters of the references are in scripts written without spaces, otherwise BLEU4."""
    letters = [letter for texts in references for text in texts for letter in text if letter.isalpha()]
    return BLEU4_CHAR if 2 * sum(map(is_unspaced, letters)) > len(letters) else BLEU4
