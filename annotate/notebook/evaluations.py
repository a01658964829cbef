"""Predictions measured on gold sets in a notebook, as the command `evaluate` measures them."""

import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from django.template.loader import render_to_string

from annotate.actions import evaluate as action
from annotate.evaluation.evaluate import evaluate as measured
from annotate.evaluation.given import EvaluationError
from annotate.notebook.asking import SAID, told
from annotate.notebook.installation import AssayError
from annotate.notebook.rows import check_pandas
from annotate.reports import writing

if TYPE_CHECKING:
    import pandas as pd

Folder = str | os.PathLike[str]
Given = Union[str, os.PathLike[str], Mapping[str, str], "pd.DataFrame"]
OPTION = re.compile("--([a-z][a-z-]*[a-z])")
# The options of the command that are named arguments here, or that a notebook has no use for.
OWN = ("predictions", "gold", "against", "judge", "out", "format")
COLUMNS = ("measure", "value", "low", "high", "units", "better", "p", "p_holm", "note")


def evaluate(predictions: Given | None = None, gold: Folder | Sequence[Folder] = (), **how: Any) -> "pd.DataFrame":
    """The figures of `report` as a DataFrame, a row each. how: its other arguments, among them `against` and the
    options of the command.

    AssayError where pandas is not installed, and for what cannot, or must not, be computed.
    """
    check_pandas()
    return report(predictions, gold, **how).to_pandas()


def report(
    predictions: Given | None = None,
    gold: Folder | Sequence[Folder] = (),
    *,
    against: Given | None = None,
    judge: Given | None = None,
    name: str = "This classifier",
    **options: Any,
) -> "Report":
    """What predictions are worth on gold sets, each figure with its 95% interval.

    predictions: the path of a file or folder, as the command takes it; id -> label; a DataFrame with the columns id and
    label, or id and a column of scores for each label; or the name of a predictor of the corpus, such as "fasttext" or
    "ours@2". gold: the folder of a set, or what assay.gold returns of it, or several. against: other predictions,
    compared unit by unit. judge: in place of predictions, a machine judge's labels of every item of the corpus. name:
    what the report calls predictions that come neither from a file nor from the corpus. options: those of the command
    `evaluate`, with _ for -, such as unfinished=True, split="test" or map={"zh": ["zh-CN", "zh-TW"]}.

    AssayError for what cannot, or must not, be computed of them.
    """
    folders = [Path(folder).expanduser() for folder in ([gold] if isinstance(gold, str | os.PathLike) else gold)]
    with told(), tempfile.TemporaryDirectory(prefix="assay") as aside:

        def spelled(given: Given, name: str) -> str:
            if isinstance(given, str | os.PathLike):
                return os.fspath(Path(given).expanduser()) if Path(given).expanduser().exists() else os.fspath(given)
            return os.fspath(_written(given, Path(aside) / f"{name.replace('/', '-')}{WRITTEN}"))

        def as_named(text: str) -> str:
            return text.replace(f"{aside}{os.sep}", "").replace(WRITTEN, "")

        try:
            if not folders:
                raise EvaluationError("No gold set is named; give the folder of one, or several, as gold.")
            other = "" if against is None else spelled(against, "The other one")
            said = "" if predictions is None else spelled(predictions, name)
            machine = "" if judge is None else spelled(judge, name)
            found = measured(said, folders, against=other, judge=machine, **_values(options))
        except SAID as error:
            raise AssayError(OPTION.sub(lambda option: option[1].replace("-", "_"), as_named(str(error)))) from None
        return Report(json.loads(as_named(json.dumps(found))))


WRITTEN = ".of-memory.jsonl"


def _values(options: Mapping[str, Any]) -> dict[str, Any]:
    """What the command would have of these options."""
    known = {option.name: option for option in action.ACTION.options if option.name not in OWN}
    values: dict[str, Any] = {}
    for name, value in options.items():
        if name not in known:
            near = get_close_matches(name, known, 1)
            raise EvaluationError(
                f"There is no option {name!r}{f'; did you mean {near[0]}' if near else ''}; there are: "
                f"{', '.join(known)}."
            )
        if name == "map" and isinstance(value, Mapping):
            value = [f"{label}={to if isinstance(to, str) else ','.join(to)}" for label, to in value.items()]
        if name == "vanished" and not isinstance(value, str | os.PathLike):
            values[name] = frozenset(value)
            continue
        values[name] = known[name].value([value] if known[name].several and isinstance(value, str) else value)
    return values


def _written(given: Any, path: Path) -> Path:
    """Predictions from memory as a file, so that they are read by the rules that hold for files."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in _rows(given))
    return path


def _rows(given: Any) -> Iterator[dict[str, Any]]:
    """The rows, numbers of NumPy as Python's."""
    columns = list(map(str, getattr(given, "columns", ())))
    if isinstance(given, Mapping):
        columns, rows = ["id", "label"], given.items()
    elif "id" in columns:
        rows = zip(*(given[column] for column in given.columns), strict=True)
    else:
        raise EvaluationError(
            "Predictions are the path of a file, a dict of id -> label, a DataFrame with the column id and the column "
            "label or one for each label, or the name of a predictor; what was given is of the type "
            f"{type(given).__name__}."
        )
    if twice := [column for column, number in Counter(columns).items() if number > 1]:
        raise EvaluationError(f"The DataFrame of predictions has the column {twice[0]!r} twice; keep one of them.")
    for values in rows:
        yield dict(zip(columns, map(_plain, values), strict=True))


def _plain(value: Any) -> Any:
    if isinstance(value, str | int | float | bool | None):
        return value
    return value.item() if hasattr(value, "item") else str(value)


class Report:
    """What came of an evaluation: a table in a notebook, the text of the command where it is printed."""

    def __init__(self, report: dict[str, Any]) -> None:
        self._report = report

    def to_dict(self) -> dict[str, Any]:
        """The whole report, as report.json has it."""
        copied: dict[str, Any] = json.loads(json.dumps(self._report))
        return copied

    def to_pandas(self, table: str = "rows") -> "pd.DataFrame":
        """A table of the report. rows: its figures, with the columns measure, one for each slice such as label or
        language ("" where a figure is of all units), value, low and high (a 95% interval; shares between 0 and 1),
        units that it rests on, and note. comparison: the same of two systems, with better, p and p_holm. errors: the
        units where gold and prediction differ. confusion: gold, predicted, units.

        AssayError where pandas is not installed, or the report has no such table.
        """
        check_pandas()
        import pandas as pd

        tables = {name: rows for name, rows in self._tables().items() if rows is not None}
        if table not in tables:
            raise AssayError(f"The report has no table {table!r}; it has: {', '.join(tables)}.")
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
        return writing.as_text(self._report)

    def _repr_html_(self) -> str:
        return render_to_string("annotate/report_in_notebook.html", writing.as_context(self._report))


def _flat(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows with a column for each dimension of their slices."""
    # A field of the records may have the name of a column.
    columns = {name: f"{name} of the unit" if name in COLUMNS else name for row in rows for name in row["of"]}
    return [
        {"measure": row["measure"]}
        | {column: row["of"].get(name, "") for name, column in columns.items()}
        | {name: row[name] for name in COLUMNS if name in row}
        for row in rows
    ]
