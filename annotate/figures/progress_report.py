"""Tables, plots and sentences for managers' pages: the progress and pace of tasks, stalled queues, and forecasts.

The rows come from `task_statistics.py`, `queue_states.py` and `finish_forecast.py`. `address` maps a task's name or an
annotator's primary key to a URL.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from itertools import starmap
from typing import Any

from django.utils.safestring import SafeString

from annotate.core import stages
from annotate.core.estimation.label_errors import LEAST_READ, LEAST_READ_IN_ALL
from annotate.kinds.interface_language import label_name
from annotate.reports.numbers import count
from annotate.reports.plots import Moment, Parts, Span, bar, columns, ranges, sparkline, stacked, swatch
from annotate.reports.tables import (
    NUMBER,
    SENTENCE,
    SHORT,
    Cell,
    Column,
    Table,
    are,
    language,
    many,
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
# The parts of stacked bars: stages with their descriptions.
PARTS = (
    (stages.LABELLED, "labelled by people"),
    (stages.AGREED, "auto-labelled"),
    (stages.DISCARDED, "excluded"),
    (stages.ADJUDICATION, "in adjudication"),
    (stages.QUEUED, "waiting for annotators"),
)
FEW = 12  # maximum number of languages in the plot of progress
DONE = Column("done", "done", NUMBER, lambda row: ratio(row["done"], row["units"]))


# --- All tasks


def tasks_table(rows: Iterable[dict[str, Any]], address: Callable[[str], str], sort: str) -> Table:
    def task(row: dict[str, Any]) -> Cell:
        note = row["name"] if row["is_open"] else f"{row['name']}, closed"
        return Cell(row["title"], row["title"], address(row["name"]), note)

    def paused(row: dict[str, Any]) -> Cell:
        new = "all new" if row["newly_paused"] == row["paused"] else f"{row['newly_paused']:,} of them new"
        return Cell(count(row["paused"]), row["paused"], note=new if row["newly_paused"] else "")

    heads = (
        Column("task", "task", says=task),
        Column("kind", "type"),
        DONE,
        *numbers({"units": "items", "queued": "waiting", "adjudication": "in adjudication"}),
        numbered("answers_today", "answers in the last 24 hours"),
        Column("paused", "paused", NUMBER, paused),
        numbered("stuck", "stalled queues"),
    )
    return table("All tasks", heads, rows, slug="tasks", sort=sort)


# --- A task by language


def progress_table(progress: dict[str, Any], sort: str) -> Table:
    """Return the table of progress by language. Columns for unused stages are omitted."""

    def of(row: dict[str, Any]) -> Cell:
        return Cell("all languages") if row["language"] is None else language(row["language"])

    stage_headings = {stage: words for stage, words in (*PARTS, (stages.COPIED, "copies")) if progress["all"][stage]}
    heads = (
        Column("language", "language", SHORT, of),
        numbered("units", "items"),
        DONE,
        *numbers(stage_headings | ({"waiting_copies": "waiting copies"} if progress["all"]["waiting_copies"] else {})),
        numbered("missing", "answers to go"),
    )
    rows = progress["languages"]
    total = [{**progress["all"], "language": None}] if len(rows) > 1 else []
    return table("Progress by language", heads, rows, total=total, slug="progress", sort=sort)


def progress_bar(row: dict[str, Any]) -> SafeString:
    return bar([row[stage] for stage, _ in PARTS], [words for _, words in PARTS], title="Items by state")


def shares(row: dict[str, Any]) -> list[tuple[SafeString, str, int, str]]:
    """Return the legend of `progress_bar` as (mark, description, number of units, stage) tuples."""
    parts = [(swatch(index), words, row[stage], stage) for index, (stage, words) in enumerate(PARTS) if row[stage]]
    copies = [(NONE, "copies of other items", row[stages.COPIED], stages.COPIED)] if row[stages.COPIED] else []
    return [*parts, *copies]


def trend(counts: list[int], title: str) -> SafeString:
    """Return a sparkline of counts over time, latest last, or nothing if there are fewer than two counts."""
    return sparkline(counts[-30:], title=title) if len(counts) > 1 else NONE


def progress_plot(progress: dict[str, Any]) -> SafeString:
    """Return the plot of progress in the FEW languages with the most units. `shares` is its legend."""
    rows = sorted(progress["languages"], key=lambda row: (-row["units"], row["language"]))[:FEW]
    parts = [
        Parts(row["language"] or "–", label_name(row["language"]), tuple(row[stage] for stage, _ in PARTS))
        for row in rows
        if any(row[stage] for stage, _ in PARTS)
    ]
    if not parts:
        return NONE
    return stacked(parts, [words for _, words in PARTS], title="Items by language and state")


# --- Queues, and annotators without work


def queues_table(states: dict[str, Any], sort: str, *, tested: bool) -> Table:
    """Return the table of queues.

    tested: whether the task has a test.
    """

    def state(row: dict[str, Any]) -> Cell:
        return Cell(row["said"], not row["stuck"], note="stuck" if row["stuck"] else "")

    heads = (
        Column("queue", "queue", says=lambda row: language(row["queue"])),
        Column("said", "status", SENTENCE, state),
        *numbers({"waiting": "waiting", "missing": "answers to go", "leased": "open now", "readers": "readers"}),
        *numbers({"passed": "passed"} if tested else {}),
        numbered("able", "may work"),
        timed("last", "last judged"),
    )
    return table("Queues", heads, states["queues"], slug="queues", sort=sort)


def idle_table(states: dict[str, Any], address: Callable[[int], str], sort: str) -> Table:
    def last(row: dict[str, Any]) -> Cell:
        return Cell(when(row["last"]).shown, row["last"], note="within the last hour" if row["at_work"] else "")

    heads = (
        person(address),
        Column("queues", "languages", says=lambda row: Cell(", ".join(row["queues"]), row["queues"])),
        Column("last", "last judged", SHORT, last),
        Column("said", "why", SENTENCE),
    )
    return table("Annotators without work", heads, states["idle"], slug="idle", sort=sort)


# --- Over time


def last_day_plot(pace: dict[str, Any]) -> SafeString:
    moments = [
        Moment(f"{row['at']:%H}" if row["at"].hour % 3 == 0 else "", f"{row['at']:%A %H:%M}", row["answers"])
        for row in pace["last_day"]
    ]
    return columns(moments, title="Answers per hour in the last 24 hours")


FORMATS = {"hour": "%a %d %b, %H:%M", "day": "%a %d %b %Y", "week": "the week of %d %b %Y"}
TICKS = 6  # maximum number of labels below a plot over time


def since_plot(pace: dict[str, Any]) -> SafeString:
    rows, cut = pace["since"], pace["cut"]
    if not rows:
        return NONE
    every = -(-len(rows) // TICKS)
    form = "%d %b %H:00" if cut == "hour" else "%d %b"
    moments = [
        # Start in the middle of the first interval, because a label wouldn't fit below a column at the edge.
        Moment(
            f"{row['at']:{form}}" if place % every == every // 2 else "",
            f"{row['at']:{FORMATS[cut]}}",
            row["answers"],
        )
        for place, row in enumerate(rows)
    ]
    return columns(moments, title=f"Answers per {cut} since the beginning")


def times_plot(rows: list[dict[str, Any]], title: str, names: dict[int, str]) -> SafeString:
    """Plot the times per answer.

    names: annotators' names by primary key; only needed if the rows are about annotators.
    """
    spans = []
    for row in sorted(rows, key=lambda row: row["quartiles"][1]):
        head = names.get(row["annotator"], "?") if "annotator" in row else row["language"] or "–"
        low, middle, high = row["quartiles"]
        spans.append(Span(head, label_name(row.get("language", "")), low, middle, high, row["count"]))
    return ranges(spans, title=title) if spans else NONE


# --- Routes and their queues


def routes_table(routes: Iterable[Any], address: Callable[[str], str], sort: str = "") -> Table:
    """Return the table of routes.

    address: maps a language to the URL of the page for changing its route, or "" if changes are not allowed.
    """

    def code(route: Any) -> Cell:
        name = LANGUAGES[route.language].name if route.language in LANGUAGES else "no detected language"
        return Cell(route.language, route.language, url=address(route.language), note=name)

    columns = (
        Column("language", "language", SHORT, code),
        Column("queue", "queue", SHORT, lambda route: route.queue),
        Column("extra", "also tried", SENTENCE, lambda route: " ".join(route.extra_candidates)),
        Column("never", "detectors’ agreement", SHORT, lambda route: "ignored" if route.never_agree else ""),
    )
    return table("Routes", columns, routes, slug="routes", sort=sort)


def route_queues_table(caption: str, rows: Iterable[Any]) -> Table:
    """Return the table of a task's queues.

    rows: `QueueRow` objects of queue_states.py.
    """

    def readers(row: Any) -> Cell:
        it = "it" if row.lacking == 1 else "them"
        lack = f"{are(row.lacking, 'item lacks', 'items lack')} readers: invite some, or reroute {it}"
        more = row.reader_count - len(row.readers)
        shown = ", ".join(row.readers) + (f" and {more:,} more" if more else "")
        return Cell(shown or "none", note=lack if row.lacking else "")

    columns = (
        Column("queue", "queue", SHORT, lambda row: Cell(row.queue, row.queue, mark="stuck" if row.lacking else "")),
        Column("labels", "languages", SENTENCE, lambda row: " ".join(row.labels)),
        numbered("waiting", "waiting", lambda row: row.waiting),
        numbered("leased", "open now", lambda row: row.leased),
        Column("readers", "readers", SENTENCE, readers),
    )
    return table(caption, columns, rows)


# --- Forecast, from finish_forecast.py


Result = Mapping[str, Any]
BEYOND = "two years"  # horizon of figures/finish_simulation.py
NEVER = "not foreseeable"
YEAR = 365  # dates further away (days) are not shown, because they are only an order of magnitude
FAR = "over a year"


def _ends(
    result: Result, kind: str, headings: Mapping[str, str], format_day: Callable[[Result, float], str]
) -> list[Column]:
    """Return columns for the bounds and the middle of a range of days.

    headings: column headings, keyed like the range.
    format_day: formats a number of days from the start of the forecast.
    """

    def done(row: Result, end: str) -> Cell:
        days = row["days"][end]
        return Cell("–" if days is None else format_day(result, days), days)

    def column(end: str, words: str) -> Column:
        return Column(end, words, kind, lambda row: done(row, end))

    return list(starmap(column, headings.items()))


def forecast_table(result: Result, sort: str = "") -> Table:
    """Return the forecast as a table with a row for each queue, last to finish first."""
    ends = {"middle": "expected", "low": "earliest", "high": "latest"}
    heads = (
        Column("language", "language", SHORT, lambda row: language(row["queue"])),
        *_ends(result, SHORT, ends, _date),
        Column("more", "with two more readers", SENTENCE, lambda row: Cell(_more(result, row), _sooner(row))),
        *numbers({"answers": "answers to go", "readers": "readers"}),
    )
    return table("Forecast", heads, result["queues"], slug="forecast", sort=sort)


def drawn_table(result: Result) -> Table:
    """Return the table of a planned draw, with a row for each language, most reading first."""
    heads = {"posts": "posts", "agreed": "agreed", "people": "read by people", "audits": "audits"}
    heads |= {"checks": "checks", "readers": "readers"}
    rows = [
        {name: round(value) if isinstance(value, float) else value for name, value in row.items()}
        for row in result["drawn"]
    ]
    total = {name: sum(row[name] for row in rows) for name in heads if name != "readers"}
    language_cell = lambda row: language(row["language"]) if row["language"] else Cell("all")  # noqa: E731
    columns = (Column("language", "language", SHORT, language_cell), *numbers(heads))
    return table("Expected items of this draw", columns, rows, total=[{"language": "", "readers": None, **total}])


def draw_headline(result: Result) -> str:
    """Return a sentence about a planned draw: its posts, the work and the date.

    result: result of forecast_before
    """
    total = {name: round(sum(row[name] for row in result["drawn"])) for name in ("posts", "agreed", "people", "audits")}
    audits, disputed = total["audits"], total["people"] - total["audits"]
    read = f"The detectors agree on {total['agreed']:,} of {many(total['posts'], 'post')}; "
    read += f"people read {audits:,} of them as a check"
    read += f", and {disputed:,} on which the detectors differ." if disputed else "."
    if not result["people"]:
        return f"{read} No annotator reads these languages yet. The next step is to invite some."
    days = result["all"] and result["all"]["middle"]
    people = f"with {many(result['people'], 'annotator')}"
    if _is_far(days):
        return f"{read} It takes more than a year {people}; add people."
    return f"{read} Done by {_weekday(result, days)} {people}."


def audit_warning(result: Result) -> str:
    """Return a warning if too few audits are expected to measure the detectors, or "".

    result: result of forecast_before
    """
    agreed, audits = (sum(row[name] for row in result["drawn"]) for name in ("agreed", "audits"))
    least = min(round(agreed), LEAST_READ_IN_ALL)
    advice = "Raise “Minimum audits” under Advanced, or leave it empty."
    if round(audits) < least:
        advice = "Raise “Audit share” under Advanced, or leave it empty."
        few = f"{round(audits):,} of at least {least:,}"
    else:
        short = [
            f"{label_name(row['language'])} ({round(row['audits'])} of at least {needed})"
            for row in result["drawn"]
            if round(row["audits"]) < (needed := min(round(row["agreed"]), LEAST_READ))
        ]
        few = ", ".join(short)
    if not few:
        return ""
    return f"Too few audited items to measure the detectors: {few}. {advice}"


def _weekday(result: Result, days: float) -> str:
    return f"{_day(result, days):%A}" if days < 6 else _date(result, days)


def terminal_table(result: Result) -> Table:
    """Return the forecast table for a terminal, without the names of languages and the effect of more readers."""
    ends = {"low": "earliest", "middle": "about", "high": "latest"}
    heads = (
        Column("queue", "queue"),
        *numbers({"answers": "answers", "readers": "readers"}),
        *_ends(result, NUMBER, ends, lambda result, days: _day(result, days).date().isoformat()),
    )
    return table("Expected finish", heads, result["queues"])


def finish_day(result: Result) -> str:
    """Return the expected day of the finish, such as "3 Mar"."""
    days = result["all"] if any(row["readers"] for row in result["queues"]) else None
    return _date(result, days["middle"]) if days and days["middle"] is not None else NEVER


def finish_words(result: Result) -> str:
    """Return a phrase for when all queues with readers will be finished."""
    return span(result, result["all"]) if result["all"] and any(row["readers"] for row in result["queues"]) else NEVER


def span(result: Result, days: Result) -> str:
    """Return a range such as "about 3 Mar, 24 Feb to 20 Mar"."""
    if days["middle"] is None:
        return NEVER
    if _is_far(days["middle"]):
        return FAR
    low = _date(result, days["low"])
    range_ = f"not before {low}" if _is_far(days["high"]) else f"{low} to {_date(result, days['high'])}"
    return f"about {_date(result, days['middle'])}, {range_}"


def forecast_words(result: Result) -> list[str]:
    read = [row for row in result["queues"] if row["readers"]]
    sentences = [_in_all(result, served=read)] if read and result["all"] is not None else []
    if risky := [row["queue"] for row in read if row["days"]["high"] is None]:
        sentences.append(
            f"There is no latest date for {' '.join(risky)}: in more than 5% of the simulations, too few of its "
            f"readers start or continue, so it is not finished within {BEYOND}."
        )
    decide = result["adjudication"]
    last = max((row["days"]["middle"] or 0 for row in result["queues"]), default=0)
    if not decide["adjudicators"] and (decide["waiting"] or decide["chosen"]):
        sentences.append("There are no adjudicators, so adjudication is not included in the dates.")
    elif decide["adjudicators"] and (decide["days"]["middle"] is None or decide["days"]["middle"] > last):
        people = are(decide["adjudicators"], "person", "people")
        dates = span(result, decide["days"])
        sentences.append(f"Bottleneck: adjudication ({people}), {dates}.")
    if result["assumed"]:
        sentences.append(
            f"The dates assume {result['assumed']['seconds']:g} seconds per answer and "
            f"{result['assumed']['weekly']:g} hours per week for each reader, with some uncertainty. They will use "
            "the measured pace once people have answered."
        )
    else:
        workers = are(result["measured"], "person", "people")
        sentences.append(f"The dates are based on the pace and working days of {workers}.")
    if result["supposed"]:
        sentences.append("The forecast assumes that all readers pass the test.")
    sooner = ((row, _sooner(row)) for row in read)
    if better := next(((row, days) for row, days in sooner if days and days >= 1), None):
        row, days = better
        sentences.append(f"Two more readers of {label_name(row['queue'])}: {many(round(days), 'day')} earlier.")
    return sentences


def _in_all(result: Result, served: list[Result]) -> str:
    days = result["all"]
    if _is_far(days["middle"]):
        return "In most simulations, the finish is more than a year from now. Add people."
    subject = "All work" if len(served) == len(result["queues"]) else "All work with readers"
    low = _date(result, days["low"])
    range_ = f"{low} to {_date(result, days['high'])}" if not _is_far(days["high"]) else f"{low} or later"
    return f"{subject} finishes about {_date(result, days['middle'])}. 90% range: {range_}."


def _more(result: Result, row: Result) -> str:
    if not row["more"]:
        return ""
    days, sooner = row["more"]["days"], row["more"]["sooner"]
    if days["middle"] is None:
        return NEVER
    if sooner is None:
        return FAR if _is_far(days["middle"]) else f"about {_date(result, days['middle'])}"
    return f"{many(round(sooner), 'day')} earlier" if sooner >= 1 else "less than a day earlier"


def _sooner(row: Result) -> float | None:
    sooner: float | None = row["more"] and row["more"]["sooner"]
    return sooner


def _day(result: Result, days: float) -> datetime:
    return datetime.fromisoformat(result["from"]) + timedelta(days=days)


def _is_far(days: float | None) -> bool:
    """Return whether the days are more than a year, or beyond the simulated horizon."""
    return days is None or days > YEAR


def _date(result: Result, days: float) -> str:
    """Format a date such as "3 Mar", with the year unless it is this year, or FAR if it is too far off."""
    if _is_far(days):
        return FAR
    day = _day(result, days)
    year = "" if day.year == datetime.fromisoformat(result["from"]).year else f" {day.year}"
    return f"{day.day} {day:%b}{year}"


def dates_table(forecasts: Iterable[tuple[Any, Result]], address: Callable[[str], str], sort: str) -> Table:
    """Return the table of the queues that finish last, in all tasks.

    It includes only queues where the effect of two more readers was simulated.
    """

    def task(row: Result) -> Cell:
        title, name = row["task"].title, row["task"].name
        return Cell(title, title, f"{address(name)}#forecast", name)

    rows = [{"task": task, "result": of, **row} for task, of in forecasts for row in of["queues"] if row["more"]]
    heads = (
        Column("task", "task", says=task),
        Column("language", "language", SHORT, lambda row: language(row["queue"])),
        Column("middle", "done", SENTENCE, lambda row: Cell(span(row["result"], row["days"]), row["days"]["middle"])),
        Column("more", "with two more readers", SENTENCE, lambda row: Cell(_more(row["result"], row), _sooner(row))),
        *numbers({"answers": "answers to go", "readers": "readers"}),
    )
    return table("Forecasts", heads, rows, slug="dates", sort=sort)
