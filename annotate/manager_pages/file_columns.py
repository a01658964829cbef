"""The columns of an uploaded file on forms: a select for each field, with a guess, and the first rows of the file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.http import QueryDict

from annotate.manager_pages import inbox
from corpora.core import CorpusError
from corpora.predictions.prediction_rows import FIELDS, OBLIGATORY
from corpora.sources.compression import check_file, format_of
from corpora.sources.readers import MOST_INSPECTED, Sample, sample
from corpora.sources.text import text_format_of

# Field -> other common column names for the field. The form preselects a column with such a name.
ALSO: Mapping[str, tuple[str, ...]] = {
    "id": ("tweet_id", "id_str", "post_id", "doc_id", "celex_id", "uid", "key", "nr", "nummer", "numéro", "número"),
    "text": (
        *("body", "content", "tweet", "message", "sentence", "full_text", "document"),
        *("beitrag", "inhalt", "satz", "texte", "texto"),
    ),
    "author": ("user", "user_id", "author_id", "username", "screen_name"),
    "posted_at": ("created_at", "date", "time", "timestamp", "published_at", "datum", "fecha"),
    "url": ("link", "permalink", "uri"),
    "language": ("lang", "locale", "iso", "sprache", "langue", "idioma"),
    "labels": ("label", "gold", "topic", "category", "eurovoc_concepts"),
    "label": (
        *("prediction", "predicted", "pred", "predicted_label", "answer", "class", "category", "topic"),
        *("lang", "language", "sprache", "langue", "idioma", "klasse"),
    ),
    "score": ("confidence", "probability", "prob", "wert"),
}
CUT = 160  # maximum length of a cell in the sample of a file, in characters
ROWS = 3  # number of rows in the sample of an action's form
# Action -> the option with a file of predictions, whose columns the form offers.
FILES: Mapping[str, str] = {"evaluate": "predictions", "import_predictions": "file"}
SHOWN_FOR = "columns-of"  # form field with the name of the file whose columns the form shows


def guess(field: str, columns: Sequence[str]) -> str:
    """Return the column that probably contains a field, or ""."""
    columns_by_lower_name = {column.lower(): column for column in reversed(columns)}
    ending = [name for name in columns_by_lower_name if name.endswith(f"_{field}")]  # such as review_id
    names = (field, *ALSO.get(field, ()), *(ending if len(ending) == 1 else ()))
    return next((columns_by_lower_name[name] for name in names if name in columns_by_lower_name), "")


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
        format_name = format_of(Path(path))
        check_file(Path(path), format_name)
        text_format = text_format_of(Path(path), format_name or "", most=MOST_INSPECTED)
        return sample(Path(path), format_name or "", text_format)
    except CorpusError:
        return None
