"""Evaluation of a system on gold sets. Each kind of set has its own evaluator.

An evaluator takes a path or a predictor's name and the folders of the sets, and returns a JSON-serializable dict.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any

from annotate.core.measures.figure_rows import at_every_look
from annotate.evaluation import language_pairs, ranked_documents
from annotate.evaluation.blind_arm import suggesters, warning
from annotate.evaluation.evaluator import evaluate_units
from annotate.evaluation.measures import bounds_note
from annotate.evaluation.posts import evaluate_posts
from annotate.evaluation.prediction_files import SUFFIX
from annotate.evaluation.record_sets import read_published_sets
from annotate.evaluation.subjects import UNFAIR_LOOK, EvaluationError, is_file
from annotate.goldsets import set_folder
from annotate.goldsets.formats import evaluable_format
from annotate.goldsets.formats.mrs import MADE_BY
from annotate.goldsets.set_folder import GoldSetError, manifest_of
from annotate.kinds.designs import DESIGNS
from annotate.kinds.forms import FORMS
from annotate.reports import report_renderer
from annotate.reports.evaluation_report import KIND, texts
from annotate.reports.slice_tables import MEASURES
from corpora.sources.compression import format_of
from corpora.storage.layout import digest_of
from corpora.system import VERSION

POSTS, UNITS, RANKED, OF_FORM, PUBLISHED = (
    "sets of posts",
    "sets of records, or of posts that compare two systems",
    "ranked labels of documents",
    "sets whose form of answers has its own measures",
    "files of a known benchmark",
)
LOOKS = texts("looks").words
# Ranges of measures. The default is 0 to 1 for shares and 0 to infinity for other measures.
BOUNDS = {
    **dict.fromkeys(("kappa", "weighted_kappa", "mcc"), (-1.0, 1.0)),
    **dict.fromkeys(("roc_auc", "average_precision", "macro_roc_auc", "macro_average_precision"), (0.0, 1.0)),
}
# The kinds of set that an option applies to. Options not listed apply to all kinds.
APPLIES_TO: Mapping[str, Collection[str]] = {
    **dict.fromkeys(
        ("map", "vanished", "placed", "allow_erased", "measure", "balanced_precision", "missing_rate"), (POSTS,)
    ),
    **dict.fromkeys(("corpus", "column", "file_format"), (POSTS, UNITS, RANKED, OF_FORM)),
    **dict.fromkeys(("first", "threshold", "frequent_over"), (RANKED,)),
    "split": (RANKED, UNITS, OF_FORM, PUBLISHED),
    "group": (PUBLISHED,),
    **dict.fromkeys(("half_width", "epsilon"), (POSTS, UNITS)),
}
OF_JUDGE = ("half_width", "epsilon")  # options of a judge's certificate
# Options that a judge's certificate does not accept, each with the reason shown in the error message.
NOT_FOR_JUDGE = {"split": ", because the certificate requires all items of the draw", "missing_rate": ""}


def evaluate(
    predictions: str,
    gold: Sequence[Path],
    *,
    against: str = "",
    judge: str = "",
    sequential: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Evaluate predictions and return the report.

    predictions: path of a file, folder of published files, or name of a predictor in the corpus, such as mine@2.
    gold: folders of the gold sets.
    against: path or name of a second system's predictions; "" for no comparison.
    judge: a machine judge's labels of the whole corpus, to be certified; used instead of `predictions`.
    sequential: whether the intervals must be valid at every look at the data.
    options: the options in APPLIES_TO, and `unfinished`.

    Raise EvaluationError, GoldSetError or CorpusError if the predictions cannot be measured on the sets.
    """
    kind, options = validate_options(predictions, gold, against=against, judge=judge, sequential=sequential, **options)
    measured = predictions or judge
    if judge:
        options["judge"] = {name: options.pop(name) for name in OF_JUDGE if name in options}
    if sequential and kind == UNITS:
        options["sequential"] = True
    evaluator = evaluate_posts if kind == POSTS else partial(_report, kind)
    report = evaluator(measured, gold, against=against, **options)
    if kind in (OF_FORM, PUBLISHED) and (names := suggesters(manifest_of(gold[0]))):
        report["warnings"] = [warning(names), *report.get("warnings", ())]
    compared = report.get("comparison") or {}
    for part, name in ((report, "rows"), (compared, "rows"), (compared, "other_rows")):
        if name in part:
            rows = (_widen(row) if sequential else row for row in part[name])
            part[name] = [{key: value for key, value in row.items() if key != "extremes"} for row in rows]
    report["reading"] = [*report.get("reading", ()), LOOKS["every" if sequential else "one"]]
    other_digests = _digests(compared["other"]["spelled"], against) if against else ()
    return (
        {"kind": KIND} | report | {"files": dict([*_digests(report["predictor"]["spelled"], measured), *other_digests])}
    )


def validate_options(
    predictions: str, gold: Sequence[Path], *, against: str, judge: str, sequential: bool, **options: Any
) -> tuple[str, dict[str, Any]]:
    """Return the gold sets' kind and the options without empty values. For the parameters, see `evaluate`.

    Raise EvaluationError or GoldSetError if the options are inconsistent.
    """
    options = {name: value for name, value in options.items() if value is not False and value not in (None, "", (), [])}
    measured = predictions or judge
    kind = kind_of(gold[0], measured)
    for other in gold[1:]:
        if kind_of(other, measured) != kind:
            raise EvaluationError(
                f"{gold[0]} and {other} are sets of different kinds, so their predictions cannot be in one file. "
                "Measure each set separately."
            )
    _check(kind, gold[0], predictions, judge, against, sequential, options)
    return kind, options


def range_of(measure: str) -> tuple[float, float]:
    """Return a measure's lowest and highest possible value."""
    return BOUNDS.get(measure, (0.0, 1.0 if MEASURES[measure].is_share else inf))


def _widen(row: Mapping[str, Any]) -> dict[str, Any]:
    """Widen a row's interval so that it is valid at every look at the data, within the figure's range.

    If posts are missing, the row also has bounds that allow any labels for them. The bounds are widened too, and the
    interval is clipped to them.
    """
    widened, is_difference = at_every_look(row), "better" in row
    lowest, highest = range_of(row["measure"])
    if is_difference:
        lowest, highest = lowest - highest, highest - lowest
    if widened["low"] is not None:
        widened |= {"low": max(lowest, widened["low"]), "high": min(highest, widened["high"])}
    if "extremes" not in row:
        return widened

    def bounds(extremes: Iterable[Mapping[str, Any]]) -> list[float]:
        ends = [
            (lowest, highest) if extreme["low"] is None else (extreme["low"], extreme["high"]) for extreme in extremes
        ]
        return [min(low for low, _ in ends), max(high for _, high in ends)]

    low, high = wide = bounds(map(_widen, row["extremes"]))
    once, always = (bounds_note(ends, signed=is_difference) for ends in (bounds(row["extremes"]), wide))
    widened["note"] = widened["note"].replace(once, always)
    if widened["low"] is not None:
        widened |= {"low": max(low, widened["low"]), "high": min(high, widened["high"])}
    return widened | ({"bounds": wide} if "bounds" in row else {})


def _report(kind: str, predictions: str, gold: Sequence[Path], against: str, **options: Any) -> dict[str, Any]:
    """Return the report for any kind of set except sets of posts."""
    sets = [] if kind == UNITS else read_published_sets(gold, unfinished=options.pop("unfinished", False))
    format = evaluable_format(sets[0].format) if sets else None
    of_pairs = kind == PUBLISHED and has_language_pairs(predictions)
    if len(gold) > 1 and not (format and format.of_several and not of_pairs):
        raise EvaluationError(
            f"{len(gold)} gold sets were specified, but the predictions are for one. Measure each set separately."
        )
    if kind == UNITS:
        return evaluate_units(predictions, gold[0], against=against, **options)
    if "group" in options and not of_pairs:
        raise EvaluationError("--group applies only to files named after two languages, such as de-en.prediction.")
    header = {"gold": [published_set.describe() for published_set in sets]}
    if kind == RANKED:
        return header | ranked_documents.grade(predictions, sets, against, **options)
    grade: Callable[..., dict[str, Any]] = language_pairs.grade
    if kind == OF_FORM:
        grade = import_module(FORMS[sets[0].manifest["task"]["form"]].measured_by).grade
        return header | grade(predictions, sets, against, **options)
    if not of_pairs:
        assert format, "every other kind of set was recognized by its format"
        grade = import_module(format.measured_by).grade
    return header | grade(Path(predictions), sets, Path(against) if against else None, **options)


def _digests(name: str, source: str) -> Iterator[tuple[str, str]]:
    """Yield the name and SHA-256 of each prediction file; nothing for an imported predictor.

    name: the system's name in the report.
    source: path or predictor's name.
    """
    path = Path(source)
    if is_file(source):
        files = sorted(entry for entry in path.rglob("*") if entry.is_file()) if path.is_dir() else [path]
        for file in files:
            yield "/".join([name, *file.relative_to(path).parts]), digest_of(file)


def _check(
    kind: str, folder: Path, predictions: str, judge: str, against: str, sequential: bool, options: Mapping[str, Any]
) -> None:
    """Raise EvaluationError if the options conflict with each other or with the kind of set."""
    measured = predictions or judge
    are_files = [is_file(system) for system in (measured, against) if system]
    spellings = {name: f"--{name.replace('_', '-')}" for name in options}
    judge_options = [spellings[name] for name in OF_JUDGE if name in options]
    file_options = [spellings[name] for name in ("map", "column", "file_format") if name in options]
    inapplicable = [name for name in options if kind not in APPLIES_TO.get(name, (kind,))]
    wrong = ""
    if bool(predictions) == bool(judge):
        wrong = "Specify either predictions to measure, or --judge with a machine judge's labels of the whole corpus."
    elif judge_options and not judge:
        wrong = f"{judge_options[0]} applies only to a machine judge. Specify the judge's labels with --judge."
    elif judge and (unfit := [name for name in NOT_FOR_JUDGE if name in options]):
        wrong = f"{spellings[unfit[0]]} cannot be used with --judge{NOT_FOR_JUDGE[unfit[0]]}. Remove it."
    elif against and (against == measured or Path(against).resolve() == Path(measured).resolve()):
        wrong = f"{measured} cannot be compared with itself. Specify other predictions with --against."
    elif file_options and not any(are_files):
        wrong = (
            f"{' and '.join(file_options)} can be used only with a file of predictions. For an imported predictor, use "
        )
        wrong += "them with import_predictions."
    elif "corpus" in options and all(are_files) and not judge:
        wrong = f"--corpus applies only to an imported predictor or a machine judge, but {measured} is a file. Remove "
        wrong += "the option."
    elif judge and sequential:
        wrong = "--sequential cannot be used with --judge, because the certificate is valid for one look only. Remove "
        wrong += f"--sequential, or specify {judge} without --judge."
    elif judge and kind not in (POSTS, UNITS):
        wrong = (
            f"--judge cannot be used with {folder} ({kind}), only with {POSTS} and {UNITS}. Specify {judge} without "
        )
        wrong += "--judge."
    elif inapplicable:
        wrong = f"{spellings[inapplicable[0]]} cannot be used with {folder} ({kind}), only with "
        wrong += f"{' and '.join(APPLIES_TO[inapplicable[0]])}. Remove the option."
    elif sequential and kind == POSTS and "unfinished" in options:
        wrong = UNFAIR_LOOK
    if wrong:
        raise EvaluationError(wrong)


def kind_of(folder: Path, predictions: str) -> str:
    """Return a set's kind, which decides how predictions are measured: POSTS, UNITS, RANKED, OF_FORM or PUBLISHED."""
    manifest = manifest_of(folder)
    if manifest.get("made_by") == MADE_BY:
        return PUBLISHED
    design = manifest.get("design")
    if design not in DESIGNS:
        raise GoldSetError(
            f"{folder / 'manifest.json'} contains the unknown design {design!r}. Known designs are "
            f"{', '.join(DESIGNS)}."
        )
    if DESIGNS[str(design)].sets.measures:
        return POSTS
    form = FORMS.get((manifest.get("task") or {}).get("form", ""))
    if form and form.measured_by:
        return OF_FORM
    if form and form.several and manifest.get("concepts"):
        return RANKED
    published = (manifest.get("published") or {}).get("format", "")
    # If the predictions are in a single file, even a set in a published format is measured unit by unit.
    as_published = is_file(predictions) and not format_of(Path(predictions)) and not Path(predictions).is_file()
    return PUBLISHED if as_published and (evaluable_format(published) or has_language_pairs(predictions)) else UNITS


def has_language_pairs(predictions: str) -> bool:
    """Return whether a folder directly contains files named after a training and a test language (de-en.prediction)."""
    return any(Path(predictions).glob(f"*-*{SUFFIX}"))


# --- on disk


def write_report(report: dict[str, Any], out: Path) -> None:
    """Write report.json, report.md, report.html and report.tex, and errors.jsonl if the report lists errors.

    An earlier evaluation of the same predictor is replaced.

    Raise EvaluationError and leave the folder unchanged if it contains anything but an earlier evaluation of the same
    predictor, or if it cannot be written.
    """
    figures, errors_file = {key: value for key, value in report.items() if key != "errors"}, "errors.jsonl"
    in_folder = report | ({"errors_file": errors_file} if "errors" in report else {})
    written = {
        "report.json": json.dumps(figures, ensure_ascii=False, indent=2) + "\n",
        "report.md": report_renderer.as_markdown(in_folder),
        "report.html": report_renderer.as_html(in_folder),
        "report.tex": report_renderer.as_latex(in_folder),
    }
    if "errors" in report:
        lines = (json.dumps(error_row, ensure_ascii=False) for error_row in report["errors"])
        written[errors_file] = "".join(f"{line}\n" for line in lines)
    name = report["predictor"]["spelled"]
    try:
        with set_folder.replacing(out.resolve(), "evaluation", name) as folder:
            for file, text in written.items():
                (folder / file).write_text(text, encoding="utf-8")
            manifest = {
                "evaluated": {
                    "name": name,
                    "predictions": report.get("files", {}),
                    "gold": [
                        {key: gold_set[key] for key in ("name", "folder_name", "digest")} for gold_set in report["gold"]
                    ],
                },
                "versions": {"assay": VERSION},
                "files": {file: digest_of(folder / file) for file in sorted(written)},
            }
            (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    except set_folder.ExportError as error:
        raise EvaluationError(str(error)) from error
