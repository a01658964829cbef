"""Baselines of a gold set: predictions by simple systems, their figures, and the table on the dataset card.

`evaluate` computes the figures. A set with baselines has these files, and its manifest has the `baselines` section:

    baselines/NAME…             predictions of a baseline, in a file or folder that `evaluate` reads
    baselines/baselines.json    all figures
"""

import csv
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from django.template.loader import render_to_string

from annotate.evaluation.baseline_predictions import make_plan
from annotate.evaluation.measurement import POSTS, evaluate, kind_of
from annotate.evaluation.subjects import EvaluationError
from annotate.evaluation.text_classifiers import check_installed
from annotate.goldsets.gold_set import read_gold_set
from annotate.goldsets.set_folder import SECTIONS, manifest_of, original_digest, replacing, write_manifest
from annotate.reports.evaluation_report import head_rows, name_of
from annotate.reports.numbers import NOT_MEASURED
from annotate.reports.slice_tables import figure, shown_value
from annotate.reports.table_formats import parts
from annotate.reports.tables import NUMBER, Cell, Column, Table, table
from corpora.core import CorpusError
from corpora.core.voters import DEFAULT, VOTERS
from corpora.predictions.predictor_labels import find_predictor, predicted_labels
from corpora.storage.layout import digest_of

FOLDER, FIGURES = "baselines", "baselines.json"
DECIMALS = 6
MOST_SLICES = 100  # maximum number of languages or language pairs on the card
HEADING = "## Baselines"
SUMMARY = ("name", "title", "head", "note")  # keys of a baseline in the manifest
TITLE = Column("title", "")
Say = Callable[[str], None]


def add_baselines(
    folder: Path, out: Path, *, fields: Sequence[str] = (), seed: str = "1", unfinished: bool = False, say: Say = print
) -> dict[str, Any]:
    """Measure a set's baselines and write a copy of the set that includes them. Return the contents of baselines.json.

    folder: folder of the set.
    out: folder to write; can be the same as `folder`.
    fields: names of the text fields of records; empty for all fields.
    seed: seed for the folds and for labels drawn at random.
    unfinished: whether to accept an unfinished set.
    say: called with a sentence after each baseline is measured.

    Raise EvaluationError or GoldSetError if the set cannot be measured, MissingExtra if scikit-learn is not installed,
    and ExportError if the folder cannot be written.
    """
    check_installed()
    manifest = manifest_of(folder)
    kind, key = next((kind, key) for kind, key in SECTIONS.items() if manifest.get(key) and kind != "evaluation")
    with replacing(out.resolve(), kind, manifest[key]["name"]) as new:
        shutil.copytree(folder, new, dirs_exist_ok=True)
        shutil.rmtree(new / FOLDER, ignore_errors=True)
        (new / FOLDER).mkdir()
        plan = make_plan(folder, fields, seed)
        systems = []
        for name, (title, model) in plan.models.items():
            path = plan.write(model, new / FOLDER / name)
            systems.append(_measure(name, title, str(path), folder, unfinished=unfinished, **plan.options))
            say(f"{title}: measured.")
        if kind_of(folder, "labels.csv") == POSTS:
            systems += _detectors(folder, new / FOLDER, unfinished)
        result = {
            "measured_on": original_digest(manifest),
            "seed": seed,
            "told": list(plan.notes),
            "versions": {package: version(package) for package in ("scikit-learn", "numpy", "scipy")},
            "systems": systems,
        }
        text = json.dumps(result, ensure_ascii=False, indent=2) + "\n"
        (new / FOLDER / FIGURES).write_text(text, encoding="utf-8")
        _add_to_card(new, manifest, result)
    return result


def _measure(name: str, title: str, predictions: str, folder: Path, **options: Any) -> dict[str, Any]:
    """Return a baseline's figures. Its headline figures are also listed with their measures' names."""
    report = evaluate(predictions, [folder], **options)
    rows = [_round(row) for row in report["rows"]]
    head = [{"name": name_of(report, row), **_round(row)} for row in head_rows(report, report["rows"])]
    note = "" if head else " ".join(["No main figure.", *report["warnings"]])
    return {"name": name, "title": title, "head": head, "rows": rows, "note": note}


def _round(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: round(value, DECIMALS) if isinstance(value, float) else value for key, value in row.items()}


def _detectors(folder: Path, out: Path, unfinished: bool) -> Iterator[dict[str, Any]]:
    """Write the labels of the corpus's detectors and yield their figures. The corpus must be on this machine.

    The detectors are measured as predictors of the corpus, so that `evaluate` knows whether they voted in the set.
    """
    gold = read_gold_set(folder)
    for name in (name for name in VOTERS if name in gold.voted.union(DEFAULT.voters)):
        voter = VOTERS[name]
        try:
            if not gold.corpus:
                raise EvaluationError("the set does not name a corpus")
            labels = predicted_labels(gold.corpus, find_predictor(gold.corpus, name), [row.id for row in gold.rows])
            measured = _measure(name, voter.title, name, folder, unfinished=unfinished)
        except (EvaluationError, CorpusError) as error:
            yield {"name": name, "title": voter.title, "head": [], "rows": [], "note": f"Not measured: {error}"}
            continue
        with (out / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerows([("id", "label"), *sorted(labels.items())])
        yield measured


# --- the set's card and manifest


def _add_to_card(folder: Path, manifest: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    """Add the baselines to a set's card and manifest."""
    card = folder / "README.md"
    context = {"sentences": result["told"], "tables": list(map(parts, tables(result))), "notes": notes(result)}
    section = render_to_string("annotate/_card_baselines.md", context)
    card.write_text(with_section(card.read_text(encoding="utf-8"), section), encoding="utf-8")
    files = {name: digest for name, digest in manifest["files"].items() if not name.startswith(f"{FOLDER}/")}
    paths = [card, *(path for path in (folder / FOLDER).rglob("*") if path.is_file())]
    files |= {path.relative_to(folder).as_posix(): digest_of(path) for path in paths}
    summary = {name: result[name] for name in ("measured_on", "seed", "told", "versions")}
    systems = [{name: system[name] for name in SUMMARY} for system in result["systems"]]
    write_manifest(
        folder, {**manifest, "files": dict(sorted(files.items())), "baselines": {**summary, "systems": systems}}
    )


def with_section(card: str, section: str) -> str:
    """Insert the section on baselines before the card's section `Origin`. Any earlier version is replaced."""
    card = re.sub(rf"^{HEADING}\n.*?(?=^## )", "", card, flags=re.MULTILINE | re.DOTALL)
    before, origin, after = card.partition("## Origin\n")
    return f"{before}{HEADING}\n\n{section.strip()}\n\n{origin}{after}"


def notes(result: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each baseline that was not measured."""
    return [f"{system['title']}. {system['note']}" for system in result["systems"] if system["note"]]


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Return the table of headline figures and, for several languages, a table by language or by task and language."""
    systems = [system for system in result["systems"] if system["head"]]
    names = dict.fromkeys(row["name"] for system in systems for row in system["head"])
    heads = [{"title": system["title"], **{row["name"]: row for row in system["head"]}} for system in systems]
    columns = [TITLE, *(Column(name, name, NUMBER, partial(_cell, name)) for name in names)]
    report_tables = [table("Baselines", columns, heads)]
    slices: dict[str, dict[str, Any]] = {}
    for system in systems:
        for row in system["rows"]:
            if _is_by_language(row, system["head"]):
                of = " → ".join(map(shown_value, row["of"].values()))
                slices.setdefault(of, {"title": of})[system["title"]] = row
    if 1 < len(slices) <= MOST_SLICES:
        titles = [system["title"] for system in systems]
        columns = [TITLE, *(Column(title, title, NUMBER, partial(_cell, title)) for title in titles)]
        report_tables.append(table("By language", columns, slices.values()))
    return report_tables


def _cell(name: str, row: Mapping[str, Any]) -> Cell:
    return figure(row[name]) if name in row else Cell(NOT_MEASURED, None)


def _is_by_language(row: Mapping[str, Any], head: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a row has the main measure for a language, a task in a language, or a language pair."""
    of, measure = row["of"], row["measure"]
    if of.keys() == {"train", "test"}:
        return bool(measure == "accuracy")
    if of.keys() == {"language"}:
        return bool(measure == head[0]["measure"])
    return of.keys() == {"task", "language"} and {"measure": measure, "of": {"task": of["task"]}} in [
        {key: headline[key] for key in ("measure", "of")} for headline in head
    ]
