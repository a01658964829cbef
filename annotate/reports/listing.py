"""What there is, in tables for a terminal: corpora, tasks, what waits for whom, draws, predictors,
vocabularies.

The figures are those of corpora/listing.py, corpora/vocabularies.py and work/standing.py.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from annotate.kinds.labels import label_name
from annotate.reports.numbers import NOT_MEASURED, percent
from annotate.reports.tables import NAME, NOTE, NUMBER, Cell, Column, Table, numbered, numbers, ratio, table, timed

Rows = Iterable[dict[str, Any]]


def corpora_table(rows: Rows) -> Table:
    heads = (
        Column("corpus", "corpus"),
        numbered("rows", "rows"),
        Column("holds", "of"),
        Column("voted", "with votes", NUMBER, lambda row: _votes(row, row["voted"], row["rows"])),
        Column("agreed", "agreed on", NUMBER, lambda row: _votes(row, row["agreed"], row["voted"])),
        Column("licence", "licence", says=lambda row: row["licence"] or NOT_MEASURED),
        Column("text", "text", NAME, lambda row: "may leave" if row["text_may_leave"] else "stays"),
        *numbers({"draws": "draws"}),
        Column("predictors", "predictors", NAME, lambda row: ", ".join(row["predictors"])),
        Column("note", "", NOTE, lambda row: row["fault"]),
    )
    return table("Corpora", heads, rows)


def corpora_on_page(rows: Rows, address: Callable[[str], str], asked: str = "") -> Table:
    """The same for a page, sorted as it is asked. address: of a corpus's page."""
    made = corpora_table(rows)
    linked = replace(made.columns[0], says=lambda row: Cell(row["corpus"], row["corpus"], url=address(row["corpus"])))
    return table("Corpora", (linked, *made.columns[1:]), rows, slug="corpora", asked=asked)


def _votes(row: dict[str, Any], part: int, whole: int) -> Cell:
    return ratio(part, whole) if row["holds"] == "posts" else Cell(NOT_MEASURED)


def tasks_table(rows: Rows) -> Table:
    heads = (
        Column("task", "task", says=lambda row: row["name"]),
        Column("kind", "kind"),
        Column("corpora", "corpus", NAME, lambda row: ", ".join(row["corpora"])),
        Column("open", "is", says=lambda row: "open" if row["is_open"] else "closed"),
        *numbers({"units": "units"}),
        Column("done", "done", NUMBER, lambda row: ratio(row["done"], row["units"])),
        *numbers({"queued": "queued", "missing": "missing", "answers_today": "in 24 h"}),
        *numbers({"adjudication": "to settle"}),
        Column("next", "next", NOTE),
    )
    return table("Tasks", heads, rows)


def waits_table(rows: Rows) -> Table:
    heads = (
        Column("task", "task"),
        Column("for", "waits for", says=_for_whom),
        *numbers({"waiting": "units", "missing": "answers missing", "able": "who may"}),
        Column("stuck", "", says=lambda row: "stands still" if row["stuck"] else ""),
    )
    return table("What waits for whom", heads, rows)


def _for_whom(row: dict[str, Any]) -> str:
    return f"readers of {label_name(row['queue'])}" if row["queue"] else "adjudicators"


def draws_table(rows: Rows) -> Table:
    heads = (
        numbered("draw", "draw"),
        Column("corpus", "corpus"),
        Column("design", "design"),
        Column("language", "for", says=lambda row: row["language"] or "all"),
        Column("predictor", "by", says=lambda row: row["predictor"] or NOT_MEASURED),
        Column("seed", "seed"),
        *numbers({"drawn": "drawn", "frame": "of"}),
        Column("chance", "chance", NUMBER, lambda row: Cell(percent(row["chance"]), row["chance"])),
        Column("tasks", "task", says=lambda row: ", ".join(row["tasks"]) or _unused(row)),
        Column("created_at", "made", NAME, lambda row: f"{row['created_at']:%Y-%m-%d}"),
    )
    return table("Draws", heads, rows)


def _unused(row: dict[str, Any]) -> str:
    return "(enlarged)" if row["extended"] else NOT_MEASURED


def predictors_table(rows: list[dict[str, Any]]) -> Table:
    classes = Column("classes", "classes of several labels", NAME, lambda row: " ".join(row["classes"]))
    heads = (
        Column("predictor", "predictor"),
        Column("corpus", "corpus"),
        *numbers({"posts": "posts", "of": "of"}),
        Column("source", "from", says=lambda row: row["source"] or "the detectors' votes"),
        *([classes] if any(row["classes"] for row in rows) else []),
        *([Column("ranked", "ranks labels", NAME, _ranked)] if any(row["ranked"] for row in rows) else []),
        Column("note", "", NOTE, _incomplete),
    )
    return table("Predictors", heads, rows)


def _ranked(row: dict[str, Any]) -> str:
    return "ranked" if row["ranked"] else NOT_MEASURED


def _incomplete(row: dict[str, Any]) -> str:
    if row["complete"]:
        return ""
    if not row["source"]:
        return f"posts lack votes; run `assay prelabel {row['corpus']}`"
    if row["ranked"]:
        return "the corpus has grown since, and what was added has no ranked labels"
    return "the corpus has grown since: import predictions for all of its posts under the same version"


def vocabularies_table(rows: Rows) -> Table:
    heads = (
        Column("vocabulary", "vocabulary"),
        *numbers({"version": "version", "concepts": "concepts"}),
        Column("languages", "languages", says=lambda row: " ".join(tag or NOT_MEASURED for tag in row["languages"])),
        Column("source", "from"),
        Column("imported_at", "imported", NAME, lambda row: f"{row['imported_at']:%Y-%m-%d}"),
    )
    return table("Vocabularies", heads, rows)


def pauses_table(rows: Rows) -> Table:
    heads = (
        Column("task", "task"),
        Column("name", "annotator"),
        Column("right", "gold answers right", NUMBER, lambda row: f"{row['right']:,} of {row['asked']:,}"),
        timed("at", "since"),
    )
    return table("Pauses", heads, rows)
