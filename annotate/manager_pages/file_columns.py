"""The columns of an uploaded file on forms: a select for each field, with a guess, and the first rows of the file."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.http import QueryDict

from annotate.manager_pages import inbox
from corpora.core import CorpusError
from corpora.predictions.prediction_rows import FIELDS, OBLIGATORY
from corpora.sources.compression import format_of
from corpora.sources.readers import Sample
from corpora.sources.recognition import guess, recognized

CUT = 160  # maximum length of a cell in the sample of a file, in characters
ROWS = 3  # number of rows in the sample of an action's form
# Action -> the option with a file of predictions, whose columns the form offers.
FILES: Mapping[str, str] = {"evaluate": "predictions", "import_predictions": "file"}
SHOWN_FOR = "columns-of"  # form field with the name of the file whose columns the form shows


def shown(preview: Sample, rows: int | None = None) -> dict[str, Any]:
    """Return the template context for the first rows of a file.

    rows: maximum number of rows; all by default
    """

    def cell(value: Any) -> str:
        # A page cannot contain half of a surrogate pair. The import will reject the row.
        text = "" if value is None else str(value).encode(errors="replace").decode()
        return text if len(text) <= CUT else f"{text[:CUT]}…"

    cells = [[row] if isinstance(row, str) else list(map(cell, row)) for row in preview.rows[:rows]]
    return {"columns": preview.columns, "rows": cells}


@dataclass(frozen=True)
class FileColumns:
    """The choice of columns on the form of an action.

    name: name of the file
    fields: (field, label, is_required, selected column) tuples
    """

    name: str
    fields: list[tuple[str, str, bool, str]]
    sample: dict[str, Any]

    @property
    def are_obvious(self) -> bool:
        """Whether the required columns have the names of the fields, so that there is nothing to choose."""
        return set(OBLIGATORY) <= set(self.sample["columns"])


def of_form(action: str, values: Mapping[str, Any]) -> FileColumns | None:
    """Return the choice of columns for the file that a form names, or None if it names no file with columns."""
    path = str(values.get(FILES.get(action, ""), ""))
    if (preview := _preview(path)) is None:
        return None
    guesses = {field: guess(field, preview.columns) for field in FIELDS}
    if format_of(Path(path)) == "tsv" and not any(guesses.values()):
        return None  # the file has no header
    chosen = guesses | dict(pair.split("=", 1) for pair in values.get("column", ()) if "=" in pair)
    fields = [(field, field.capitalize(), field in OBLIGATORY, chosen[field]) for field in FIELDS]
    return FileColumns(Path(path).name, fields, shown(preview, ROWS))


def chosen_columns(posted: QueryDict) -> list[str]:
    """Return FIELD=COLUMN for each select of a form in which a column with another name was chosen."""
    selects = {name.removeprefix("column-"): posted[name] for name in posted if name.startswith("column-")}
    return [f"{field}={column}" for field, column in selects.items() if column and column != field]


def are_open(action: str, values: Mapping[str, Any], posted: QueryDict) -> bool:
    """Return whether the form must be shown again, because the columns of its file have yet to be chosen."""
    columns = of_form(action, values)
    return columns is not None and not columns.are_obvious and posted.get(SHOWN_FOR) != columns.name


def _preview(path: str) -> Sample | None:
    """Return the first rows of a file in the inbox, or None if it is not a table that can be read."""
    if path not in map(str, inbox.files()):
        return None
    try:
        return recognized(Path(path)).sample
    except CorpusError:
        return None
