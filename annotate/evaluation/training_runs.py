"""Evaluation of a system that was trained several times: in several runs, or in several settings such as zero-shot.

As in XGLUE and EURLEX57K, the best run is selected on `dev` and reported on `test`, together with the means over all
runs. A file contains the predictions for both splits. A folder of published files has the predictions for `dev` in its
subfolder `dev`.

Each setting is a subfolder. The report describes the first setting, and has tables by language and setting for all
settings, as in MLDoc (Schwenk and Li 2018) and MRS (Zhang et al. 2021, table 3).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import inf, sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import scipy

from annotate.core.draws.splits import DEV, TEST
from annotate.core.estimation.proportions import LEVEL
from annotate.core.measures.figure_rows import Row
from annotate.evaluation.measurement import evaluate, range_of
from annotate.evaluation.prediction_files import SUFFIX, describe_system, system_names
from annotate.evaluation.subjects import EvaluationError
from annotate.goldsets.set_folder import GoldSetError
from annotate.kinds.balanced_draw import JOINT
from annotate.reports.evaluation_report import head_rows, name_of
from annotate.reports.slice_tables import MEASURES, capital
from corpora.core.languages import LANGUAGES
from corpora.threads.pair_sets import OF_LANGUAGE

Report = dict[str, Any]


# --- Several runs


def evaluate_runs(
    runs: Sequence[str], gold: Sequence[Path], *, against: str = "", split: str | None = None, **options: Any
) -> Report:
    """Return the report on the run that is best on `dev`, including the means over all runs.

    runs: paths or names of the runs' predictions; see `evaluate`.
    gold, against, options: see `evaluate`. `against` is compared with the best run.
    split: the split to measure. By default, `test` if the runs can be measured on `dev`, otherwise the whole set.

    Raise EvaluationError, GoldSetError or CorpusError if a run cannot be measured.
    """
    if options.get("judge"):
        raise EvaluationError("--judge certifies a single judge. Specify one file of labels.")
    on_dev, why = _on_dev(runs, gold, **options)
    split = split or (TEST if on_dev else None)
    tested = [evaluate(run, gold, split=split, **options) for run in runs]
    dev_figures = [_headline(report) for report in on_dev]
    best = dev_figures.index(max(dev_figures)) if dev_figures else 0
    names = system_names(runs)
    report = evaluate(runs[best], gold, against=against, split=split, **options) if against else tested[best]
    if why:
        report["warnings"] = [
            *report["warnings"],
            f"No run was selected on {DEV}, so the figures of single items are those of {names[best]}. {why}",
        ]
    return report | {
        "runs": {
            "chosen": names[best] if dev_figures else "",
            "runs": [
                {"name": name, "dev": dev_figures[index] if dev_figures else None, "rows": tested[index]["rows"]}
                for index, name in enumerate(names)
            ],
            "rows": _means(tested),
        },
        "files": {key: digest for one in (*tested, report) for key, digest in one["files"].items()},
    }


def _on_dev(runs: Sequence[str], gold: Sequence[Path], **options: Any) -> tuple[list[Report], str]:
    """Return the reports on `dev` and "". If there are none, return an empty list and the reason."""
    places = [Path(run) / DEV if Path(run).is_dir() else run for run in runs]
    try:
        return [evaluate(str(place), gold, split=DEV, **options) for place in places], ""
    except (EvaluationError, GoldSetError) as error:
        return [], str(error)


def _headline(report: Report) -> float:
    """Return the first headline figure. Without any, return minus infinity, so that the run is never the best."""
    row = next(iter(head_rows(report, report["rows"])), None)
    return -inf if row is None or row["value"] is None else float(row["value"])


def _means(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """Return the mean over runs of each figure that all runs have, with Student's interval and standard deviation."""
    values: dict[tuple[Any, ...], list[float]] = {}
    for report in reports:
        for row in report["rows"]:
            if row["value"] is not None:
                values.setdefault((row["measure"], *row["of"].items()), []).append(row["value"])
    heads = [(head["measure"], *head["of"].items()) for head in reports[0]["head"]]
    return [
        {"name": name_of(reports[0], {"measure": measure, "of": dict(of)}), "measure": measure, "of": dict(of)}
        | _mean(measure, numbers)
        | {"is_head": (measure, *of) in heads}
        for (measure, *of), numbers in values.items()
        if len(numbers) == len(reports)
    ]


def _mean(measure: str, values: Sequence[float]) -> dict[str, Any]:
    mean, spread = fmean(values), stdev(values)
    half = float(scipy.stats.t.ppf(1 - (1 - LEVEL) / 2, len(values) - 1)) * spread / sqrt(len(values))
    lowest, highest = range_of(measure)
    return {
        "value": mean,
        "low": max(lowest, mean - half),
        "high": min(highest, mean + half),
        "deviation": spread,
        "values": list(values),
    }


# --- Several settings


SETTING = "setting"
# Known settings, by the names of their folders in lower case without punctuation.
KNOWN_SETTINGS: Mapping[str, tuple[str, str]] = {
    "monolingual": ("monolingual", "trained on the language of the test"),
    "zeroshot": ("zero-shot", "trained and selected on another language; nothing in the language of the test was seen"),
    "targeted": ("targeted", "trained on another language, and selected on dev in the language of the test"),
    JOINT: ("joint", "trained on all languages together"),
    "mt": ("mt", "trained on text that was machine-translated to the language of the test"),
    "multilingual": ("multilingual", "trained on several languages together"),
}
# Settings with different training and test languages.
ACROSS_LANGUAGES = ("zero-shot", "targeted")
# The dimensions of each measure's table.
TABLES: Mapping[str, tuple[str, ...]] = {
    "accuracy": ("train", "test"),
    **dict.fromkeys(("mean_accuracy", "transfer"), ("languages",)),
    **dict.fromkeys(("weighted_rouge", "dist1", "dist2"), ("language",)),
}
ALL = "all"


def find_settings(predictions: str) -> dict[str, str]:
    """Return a mapping from setting to subfolder. It is empty if the folder contains no settings.

    A subfolder is a setting if it contains files that are named after a language pair or contain suggested replies.
    """
    folder = Path(predictions)
    if not predictions or not folder.is_dir() or _is_setting(folder):
        return {}
    subfolders = sorted((path for path in folder.iterdir() if path.is_dir() and _is_setting(path)), key=_sort_key)
    return {_name_and_description(path)[0]: str(path) for path in subfolders}


def _is_setting(folder: Path) -> bool:
    pairs = (path.name.removesuffix(SUFFIX).partition("-") for path in folder.glob(f"*-*{SUFFIX}"))
    return any(folder.glob(f"*{OF_LANGUAGE}")) or any(
        train in (*LANGUAGES, JOINT) and test in LANGUAGES for train, _, test in pairs
    )


def _name_and_description(folder: Path) -> tuple[str, str]:
    """Return a setting's name and description. An unknown setting has its folder's name and no description."""
    return KNOWN_SETTINGS.get(re.sub(r"[^a-z]", "", folder.name.casefold()), (folder.name, ""))


def _sort_key(folder: Path) -> tuple[int, str]:
    names = [name for name, _ in KNOWN_SETTINGS.values()]
    name = _name_and_description(folder)[0]
    return names.index(name) if name in names else len(names), name


def evaluate_settings(
    settings: Mapping[str, str], gold: Sequence[Path], *, against: str = "", **options: Any
) -> dict[str, Any]:
    """Return the report on the first setting, with tables of all settings.

    settings: mapping from setting to the folder of its predictions.
    gold, options: see `evaluate`.
    against: must be empty, because a comparison applies to two settings.

    Raise EvaluationError, GoldSetError or CorpusError if a setting cannot be measured.
    """
    if against:
        first, *_, last = settings.values()
        raise EvaluationError(f"Compare two settings directly: evaluate {first} --against {last}.")
    reports = {name: evaluate(path, gold, **options) for name, path in settings.items()}
    first, report = next(iter(reports.items()))
    rows = [row for name, one in reports.items() for row in _rows(one, name)]
    sections = [
        {"slug": f"settings-{measure}", "title": f"{capital(MEASURES[measure].name)} by setting"}
        | {"measures": [measure], "of": [*dimensions, SETTING], "across": list(settings)}
        for measure, dimensions in TABLES.items()
        if any(row["measure"] == measure for row in rows)
    ]
    descriptions = ((name, _name_and_description(Path(path))[1]) for name, path in settings.items())
    notes = [f"{name}: {description}." for name, description in descriptions if description]
    across = [name for name in reports if name in ACROSS_LANGUAGES]
    if any(_is_in_one_language(row) for name in across for row in reports[name]["rows"]):
        notes.append(f"Pairs of a language with itself do not count in {' and '.join(across)}.")
    notes.append(f"All other sections are about {first}.")
    return report | {
        "predictor": describe_system(Path(next(iter(settings.values()))).resolve().parent.name),
        "rows": [*rows, *report["rows"]],
        "sections": [*sections, *report["sections"]],
        "words": report["words"] | {sections[0]["slug"]: notes},
        "told": [f"{name}: {note}" for name, one in reports.items() for note in one["told"]],
        "files": {key: digest for one in reports.values() for key, digest in one["files"].items()},
    }


def _rows(report: Mapping[str, Any], setting: str) -> Iterator[Row]:
    """Yield a report's rows for the tables. Means have one line for each test language or group of languages.

    A classifier trained jointly on all languages is shown as trained on ALL.
    """
    rows = _across_languages(report["rows"]) if setting in ACROSS_LANGUAGES else report["rows"]
    for row in rows:
        dimensions, of = TABLES.get(row["measure"], ()), row["of"]
        is_joint = of.get("train") == JOINT
        of = of | ({"train": ALL} if is_joint else {})
        if len(dimensions) == 1 and len(of) <= 1 and ("train" not in of or is_joint):
            yield row | {"of": {dimensions[0]: next(iter(of.values()), ALL), SETTING: setting}}
        elif len(dimensions) > 1 and tuple(of) == dimensions:
            yield row | {"of": of | {SETTING: setting}}


def _across_languages(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows for pairs of different languages. The mean over these pairs replaces the mean accuracy."""
    for row in rows:
        if row["measure"] == "transfer":
            yield row | {"measure": "mean_accuracy"}
        if row["measure"] != "mean_accuracy" and not _is_in_one_language(row):
            yield row


def _is_in_one_language(row: Row) -> bool:
    return "train" in row["of"] and row["of"]["train"] == row["of"].get("test")
