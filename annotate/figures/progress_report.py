"""The progress and pace of tasks, and why queues are stuck: tables, plots and sentences for the manager's pages.

The rows are those of task_statistics.py and queue_states.py. address: of the page of a task, by its name, or of a
person, by their key.
"""

from collections.abc import Callable, Iterable
from typing import Any

from django.utils.safestring import SafeString

from annotate.core import stages
from annotate.kinds.labels import label_name
from annotate.reports.numbers import count
from annotate.reports.plots import Moment, Parts, Span, columns, ranges, stacked
from annotate.reports.tables import (
    NUMBER,
    SENTENCE,
    SHORT,
    Cell,
    Column,
    Table,
    language,
    numbered,
    numbers,
    person,
    ratio,
    table,
    timed,
    when,
)
from corpora.core.languages import LANGUAGES

NONE = SafeString("")
# What stacked bars are made of: stage and its words.
PARTS = (
    (stages.LABELLED, "labelled by people"),
    (stages.AGREED, "labelled without people"),
    (stages.DISCARDED, "left out"),
    (stages.ADJUDICATION, "with an adjudicator"),
    (stages.QUEUED, "waiting for annotators"),
)
DONE = Column("done", "done", NUMBER, lambda row: ratio(row["done"], row["units"]))


# --- all tasks


def tasks_table(rows: Iterable[dict], address: Callable[[str], str], asked: str) -> Table:
    heads = (
        Column("task", "task", says=lambda row: Cell(row["title"], row["title"], address(row["name"]), _closed(row))),
        Column("kind", "type"),
        DONE,
        *numbers({"units": "of units", "queued": "waiting", "adjudication": "with an adjudicator"}),
        numbered("answers_today", "answers in 24 hours"),
        Column("paused", "paused", NUMBER, lambda row: Cell(count(row["paused"]), row["paused"], note=_new(row))),
        numbered("stuck", "queues that stand still"),
    )
    return table("All tasks", heads, rows, slug="tasks", asked=asked)


def _closed(row: dict) -> str:
    return row["name"] if row["is_open"] else f"{row['name']}, closed"


def _new(row: dict) -> str:
    return f"{row['newly_paused']:,} new" if row["newly_paused"] else ""


# --- one task by language


def progress_table(progress: dict, asked: str) -> Table:
    """Stages without units have no column."""
    at = {stage: words for stage, words in (*PARTS, (stages.COPIED, "copies")) if progress["all"][stage]}
    heads = (
        Column("language", "language", SHORT, _language),
        numbered("units", "units"),
        DONE,
        *numbers(at | ({"waiting_copies": "copies that wait"} if progress["all"]["waiting_copies"] else {})),
        numbered("missing", "answers missing"),
    )
    rows = progress["languages"]
    total = [{**progress["all"], "language": None}] if len(rows) > 1 else []
    return table("Progress by language", heads, rows, total=total, slug="progress", asked=asked)


def _language(row: dict) -> Cell:
    return Cell("all languages") if row["language"] is None else language(row["language"])


def progress_plot(progress: dict) -> SafeString:
    rows = sorted(progress["languages"], key=lambda row: (-row["units"], row["language"]))
    parts = [
        Parts(row["language"] or "–", label_name(row["language"]), tuple(row[stage] for stage, _ in PARTS))
        for row in rows
        if any(row[stage] for stage, _ in PARTS)
    ]
    return stacked(parts, [words for _, words in PARTS], title="Units by language and stage") if parts else NONE


# --- its queues, and annotators without work


def queues_table(states: dict, asked: str, *, tested: bool) -> Table:
    """tested: whether people who may work have passed a test."""
    heads = (
        Column("queue", "queue", says=lambda row: language(row["queue"])),
        Column("said", "how it stands", SENTENCE, _standing),
        *numbers({"waiting": "waiting", "missing": "answers missing", "leased": "open now", "readers": "readers"}),
        *numbers({"passed": "passed"} if tested else {}),
        numbered("able", "may work"),
        timed("last", "last judged"),
    )
    return table("Queues", heads, states["queues"], slug="queues", asked=asked)


def _standing(row: dict) -> Cell:
    return Cell(row["said"], not row["stuck"], note="stuck" if row["stuck"] else "")


def idle_table(states: dict, address: Callable[[int], str], asked: str) -> Table:
    heads = (
        person(address),
        Column("queues", "languages", says=lambda row: Cell(", ".join(row["queues"]), row["queues"])),
        Column("last", "last judged", SHORT, _last),
        Column("said", "why", SENTENCE),
    )
    return table("Annotators without work", heads, states["idle"], slug="idle", asked=asked)


def _last(row: dict) -> Cell:
    return Cell(when(row["last"]).shown, row["last"], note="within the last hour" if row["at_work"] else "")


# --- over time


def last_day_plot(pace: dict) -> SafeString:
    moments = [
        Moment(f"{row['at']:%H}" if row["at"].hour % 3 == 0 else "", f"{row['at']:%A %H:%M}", row["answers"])
        for row in pace["last_day"]
    ]
    return columns(moments, title="Answers an hour in the last 24 hours")


SAID = {"hour": "%a %d %b, %H:%M", "day": "%a %d %b %Y", "week": "the week of %d %b %Y"}
TICKS = 6  # below a plot over time, at most


def since_plot(pace: dict) -> SafeString:
    rows, cut = pace["since"], pace["cut"]
    if not rows:
        return NONE
    every = -(-len(rows) // TICKS)
    form = "%d %b %H:00" if cut == "hour" else "%d %b"
    moments = [
        # Not at the very ends, where words would not stand below their column.
        Moment(f"{row['at']:{form}}" if place % every == every // 2 else "", f"{row['at']:{SAID[cut]}}", row["answers"])
        for place, row in enumerate(rows)
    ]
    return columns(moments, title=f"Answers {'an' if cut == 'hour' else 'a'} {cut} since the beginning")


def times_plot(rows: list[dict], title: str, names: dict[int, str]) -> SafeString:
    """names: of annotators, by their keys, where the rows are of them."""
    spans = [
        Span(*_code_and_name(row, names), *row["quartiles"], row["count"])
        for row in sorted(rows, key=lambda row: row["quartiles"][1])
    ]
    return ranges(spans, title=title) if spans else NONE


def _code_and_name(row: dict, names: dict[int, str]) -> tuple[str, str]:
    if "annotator" in row:
        return names.get(row["annotator"], "?"), ""
    return row["language"] or "–", label_name(row["language"])


# --- routes, and the queues to which they lead


def routes_table(routes: Iterable[Any], address: Callable[[str], str], asked: str = "") -> Table:
    """address: of the page on which the route of a language is changed; empty where it may not be."""
    columns = (
        Column("language", "language", SHORT, lambda route: _route_language(route.language, address(route.language))),
        Column("queue", "waits in the queue", SHORT, lambda route: route.queue),
        Column("extra", "tried after it", SENTENCE, lambda route: " ".join(route.extra_candidates)),
        Column("never", "the detectors’ agreement", SHORT, lambda route: "never counts" if route.never_agree else ""),
    )
    return table("Routes", columns, routes, slug="routes", asked=asked)


def _route_language(code: str, url: str) -> Cell:
    name = LANGUAGES[code].name if code in LANGUAGES else "no language seen"
    return Cell(code, code, url=url, note=name)


def route_queues_table(caption: str, rows: Iterable[Any]) -> Table:
    """Queues of one task, as figures/personal_progress.py has them."""
    columns = (
        Column("queue", "queue", SHORT, lambda row: Cell(row.queue, row.queue, mark="stuck" if row.lacking else "")),
        Column("labels", "labels", SENTENCE, lambda row: " ".join(row.labels)),
        numbered("waiting", "waiting", lambda row: row.waiting),
        numbered("leased", "open now", lambda row: row.leased),
        Column("readers", "readers at this task’s level", SENTENCE, _readers),
    )
    return table(caption, columns, rows)


def _readers(row: Any) -> Cell:
    one = row.lacking == 1
    lack = f"{row.lacking:,} lack{'s' if one else ''} readers: invite some, or reroute {'it' if one else 'them'}"
    return Cell(", ".join(row.readers) or "nobody", note=lack if row.lacking else "")
