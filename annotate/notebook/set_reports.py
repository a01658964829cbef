"""Gold sets in notebooks, and evaluation of predictions on them, with the same results as the `evaluate` command."""

import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import pyarrow as pa
from django.template.loader import render_to_string

from annotate.actions.evaluate import OF_COMMAND
from annotate.evaluation.measurement import evaluate as measured
from annotate.evaluation.subjects import EvaluationError
from annotate.goldsets.set_folder import manifest_of
from annotate.notebook.campaign_data import find_action, read_options
from annotate.notebook.lazy_rows import (
    READABLE,
    AssayError,
    Rows,
    check_pandas,
    from_dicts,
    from_files,
    readable_errors,
)
from annotate.reports import report_renderer

if TYPE_CHECKING:
    import pandas as pd

Folder = str | os.PathLike[str]
Source = Union[str, os.PathLike[str], Mapping[str, str], "pd.DataFrame"]
OPTION = re.compile("--([a-z][a-z-]*[a-z])")
COLUMNS = ("measure", "value", "low", "high", "units", "better", "p", "p_holm", "note")


def evaluate(predictions: Source | None = None, gold: Folder | Sequence[Folder] = (), **how: Any) -> "pd.DataFrame":
    """Evaluate predictions and return the statistics as a DataFrame.

    predictions, gold: as in `report`.
    how: keyword arguments of `report`, such as `against` and the command's options.

    Raise AssayError if pandas is not installed, or if the evaluation is not possible.
    """
    check_pandas()
    return report(predictions, gold, **how).to_pandas()


def report(
    predictions: Source | None = None,
    gold: Folder | Sequence[Folder] = (),
    *,
    against: Source | None = None,
    judge: Source | None = None,
    name: str = "This classifier",
    **options: Any,
) -> "Report":
    """Evaluate predictions on gold sets. Each statistic has a 95% interval.

    predictions: path of a file or folder, as in the command; a mapping from id to label; a DataFrame with the column
        `id` and either the column `label` or a score column per label; or a predictor of the corpus, such as "fasttext"
        or "ours@2".
    gold: folder of a set, a result of assay.gold, or a list of these.
    against: predictions of a second system, for a unit-by-unit comparison with the first.
    judge: a machine judge's labels for every item of the corpus; use this instead of `predictions`.
    name: name in the report for predictions that come neither from a file nor from the corpus.
    options: options of the `evaluate` command, with underscores for hyphens, such as unfinished=True, split="test" or
        map={"zh": ["zh-CN", "zh-TW"]}.

    Raise AssayError if the evaluation is not possible.
    """
    folders = [Path(folder).expanduser() for folder in ([gold] if isinstance(gold, str | os.PathLike) else gold)]
    with readable_errors(), tempfile.TemporaryDirectory(prefix="assay") as temporary:
        try:
            if not folders:
                raise EvaluationError("The argument 'gold' is empty. Specify a gold set folder, or a list of folders.")
            system, rival, labels = (
                _as_name_or_path(source, Path(temporary) / f"{title.replace('/', '-')}{MEMORY_SUFFIX}")
                for source, title in ((predictions, name), (against, "The other system"), (judge, name))
            )
            result = measured(system, folders, against=rival, **_values(options, gold=folders, judge=labels))
        except READABLE as error:
            raise AssayError(
                OPTION.sub(lambda option: option[1].replace("-", "_"), _hide_paths(temporary, str(error)))
            ) from None
        return Report(json.loads(_hide_paths(temporary, json.dumps(result))))


MEMORY_SUFFIX = ".of-memory.jsonl"


def _hide_paths(temporary: str, text: str) -> str:
    """Replace paths of temporary files in the text by the predictions' names in the report."""
    return text.replace(f"{temporary}{os.sep}", "").replace(MEMORY_SUFFIX, "")


def _values(options: Mapping[str, Any], **arguments: Any) -> dict[str, Any]:
    """Return the keyword arguments for the evaluator.

    options: options of the command.
    arguments: the other arguments of `report`.
    """
    cleaned = dict(options)
    vanished: Any = options.get("vanished")
    if from_memory := vanished is not None and not isinstance(vanished, str | os.PathLike):
        del cleaned["vanished"]
    if isinstance(cleaned.get("map"), Mapping):
        classes = ((label, [to] if isinstance(to, str) else to) for label, to in cleaned["map"].items())
        cleaned["map"] = [f"{label}={','.join(to)}" for label, to in classes]
    if unsupported := sorted(cleaned.keys() & {"out", "format"}):
        raise EvaluationError(f"Reports in notebooks have no option {unsupported[0]}. Use assay.run to write files.")
    action = find_action("evaluate")
    values = action.read({**read_options(action, cleaned), **arguments})
    values |= {"vanished": frozenset(vanished)} if from_memory else {}
    return {name: value for name, value in values.items() if name not in OF_COMMAND}


def _as_name_or_path(predictions: Source | None, path: Path) -> str:
    """Return the path of a file with the predictions, or the name of a predictor.

    path: where to write predictions from memory, so that they follow the same rules as files.
    """
    if predictions is None:
        return ""
    if isinstance(predictions, str | os.PathLike):
        file_path = Path(predictions).expanduser()
        return os.fspath(file_path if file_path.exists() else predictions)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in _rows(predictions))
    return os.fspath(path)


def _rows(predictions: Any) -> Iterator[dict[str, Any]]:
    """Yield the predictions as dicts, with NumPy scalars converted to Python values."""
    columns = list(map(str, getattr(predictions, "columns", ())))
    rows: Iterable[Any]
    if isinstance(predictions, Mapping):
        columns, rows = ["id", "label"], predictions.items()
    elif "id" in columns:
        rows = zip(*(predictions[column] for column in predictions.columns), strict=True)
    else:
        raise EvaluationError(
            f"The predictions have the type {type(predictions).__name__}. They must be the path of a file, the name of "
            "a predictor, a dict from id to label, or a DataFrame with the column id and either the column label or a "
            "column for each label."
        )
    if repeated := [column for column, number in Counter(columns).items() if number > 1]:
        raise EvaluationError(f"The DataFrame of predictions has the column {repeated[0]!r} twice. Remove one of them.")
    for values in rows:
        yield dict(zip(columns, map(_plain, values), strict=True))


def _plain(value: Any) -> Any:
    if isinstance(value, str | int | float | bool | None):
        return value
    return value.item() if hasattr(value, "item") else str(value)


class Report:
    """The result of an evaluation.

    Notebooks show it as a table. print() shows the command's text output.
    """

    def __init__(self, report: dict[str, Any]) -> None:
        self._report = report

    def to_dict(self) -> dict[str, Any]:
        """Return the whole report, with the same content as report.json."""
        return deepcopy(self._report)

    def to_pandas(self, table: str = "rows") -> "pd.DataFrame":
        """Return a table of the report.

        table: name of the table, one of the following.

        rows: the statistics, with `measure`, one column per slice dimension such as `label` ("" for all units),
            `value`, `low` and `high` (95% interval; shares from 0 to 1), `units` (number of units) and `note`.
        comparison: the same columns for the comparison of two systems, plus `better`, `p` and `p_holm`.
        errors: units whose gold label differs from the prediction.
        confusion: `gold`, `predicted` and `units`.

        Raise AssayError if pandas is not installed, or if the report has no such table.
        """
        check_pandas()
        import pandas as pd

        tables = {name: rows for name, rows in self._tables().items() if rows is not None}
        if table not in tables:
            raise AssayError(f"The report has no table {table!r}. Its tables are: {', '.join(tables)}.")
        frame = pd.DataFrame(tables[table])
        frame.attrs = {"warnings": self._report["warnings"]}
        return frame

    def _tables(self) -> dict[str, list[dict[str, Any]] | None]:
        comparison, confusion = (self._report.get(name) for name in ("comparison", "confusion"))
        cells = ("gold", "predicted", "units")
        return {
            "rows": _flat(self._report["rows"]),
            "comparison": comparison and _flat(comparison["rows"]),
            "errors": self._report.get("errors"),
            "confusion": confusion and [dict(zip(cells, cell, strict=True)) for cell in confusion["cells"]],
        }

    def __repr__(self) -> str:
        return report_renderer.as_text(self._report)

    def _repr_html_(self) -> str:
        return render_to_string("annotate/report_in_notebook.html", report_renderer.as_context(self._report))


def _flat(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows with a separate column for each slice dimension."""
    # A field of the records may have the same name as one of the other columns.
    columns = {name: f"{name} of the unit" if name in COLUMNS else name for row in rows for name in row["of"]}
    return [
        {"measure": row["measure"]}
        | {column: row["of"].get(name, "") for name, column in columns.items()}
        | {name: row[name] for name in COLUMNS if name in row}
        for row in rows
    ]


# --- Gold sets


def gold(folder: str | os.PathLike[str]) -> "Gold":
    """Return the gold set in a folder that was written by export_gold or import_gold.

    Raise AssayError if the folder does not contain a gold set, or if its manifest was modified.
    """
    path = Path(folder).expanduser()
    with readable_errors():
        return Gold(path, manifest_of(path))


class Gold:
    """A gold set.

    manifest: content of manifest.json, with seed, digests, versions, counts and draws.
    """

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder, self.manifest = folder, manifest

    @property
    def name(self) -> str:
        """The name of the task or, for an imported set, the name chosen at import."""
        return str((self.manifest.get("imported") or self.manifest["task"])["name"])

    @property
    def card(self) -> str:
        """The dataset card in Markdown. Raise AssayError if it cannot be read."""
        with readable_errors(str(self.folder / "README.md")):
            return (self.folder / "README.md").read_text(encoding="utf-8")

    @property
    def labels(self) -> dict[str, int]:
        """A mapping from label to number of rows, most frequent first."""
        counted: dict[str, int] = self.manifest["counts"]["by_label"]
        return dict(sorted(counted.items(), key=lambda pair: (-pair[1], pair[0])))

    def rows(self) -> Rows:
        """Return the rows with all exported columns.

        All sets have `id` and `label`. Exported sets also have votes, judgments, transitions and other columns that the
        card describes. A set of records is sorted by split and has a column `split`.
        """
        names = [name for name in self.manifest["files"] if name.startswith("gold")]
        if files := [self.folder / name for name in names if name.endswith(".parquet")]:
            return from_files(files, None, f"gold set {self.name}")
        # Imported sets have no Parquet file.
        with readable_errors(f"gold set {self.name}"):
            (lines,) = (self.folder / name for name in names if name.endswith(".jsonl"))
            listed = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
        return from_dicts(listed, list(listed[0]) if listed else ["id", "label"], f"gold set {self.name}")

    def to_arrow(self, columns: Collection[str] | None = None) -> pa.Table:
        """Return rows() as an Arrow table."""
        return self.rows().to_arrow(columns)

    def to_pandas(self, columns: Collection[str] | None = None) -> "pd.DataFrame":
        """Return rows() as a DataFrame. Raise AssayError if pandas is not installed."""
        return self.rows().to_pandas(columns)

    def evaluate(self, predictions: Source | None = None, **how: Any) -> "pd.DataFrame":
        """Evaluate predictions on this set. To evaluate on several sets, use assay.evaluate."""
        return evaluate(predictions, [self.folder], **how)

    def report(self, predictions: Source | None = None, **how: Any) -> Report:
        """Return the report on predictions for this set. See assay.report."""
        return report(predictions, [self.folder], **how)

    def __fspath__(self) -> str:
        return str(self.folder)

    def __repr__(self) -> str:
        posts, labels = sum(self.labels.values()), len(self.labels)
        unfinished = "" if self.manifest["finished"] else ", unfinished"
        return f"Gold set {self.name}: {posts:,} labelled, {labels:,} labels, {self.manifest['design']}{unfinished}"
