"""Tables, plots and sentences for managers' pages: the progress and pace of tasks, and stalled queues.

The rows come from `task_statistics.py` and `queue_states.py`. `address` is a function that returns the URL of a task
from its name, or of an annotator from the primary key.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from itertools import starmap
from typing import Any

from django.utils.safestring import SafeString

from annotate.core import stages
from annotate.kinds.interface_language import label_name
from annotate.reports.numbers import count
from annotate.reports.plots import Moment, Parts, Span, columns, ranges, stacked
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
# The parts of stacked bars, which are stages, with their descriptions.
PARTS = (
    (stages.LABELLED, "labelled by people"),
    (stages.AGREED, "labelled without people"),
    (stages.DISCARDED, "left out"),
    (stages.ADJUDICATION, "with an adjudicator"),
    (stages.QUEUED, "waiting for annotators"),
)
DONE = Column("done", "done", NUMBER, lambda row: ratio(row["done"], row["units"]))


# --- All tasks


def tasks_table(rows: Iterable[dict[str, Any]], address: Callable[[str], str], asked: str) -> Table:
    def task(row: dict[str, Any]) -> Cell:
        note = row["name"] if row["is_open"] else f"{row['name']}, closed"
        return Cell(row["title"], row["title"], address(row["name"]), note)

    def paused(row: dict[str, Any]) -> Cell:
        note = f"{row['newly_paused']:,} new" if row["newly_paused"] else ""
        return Cell(count(row["paused"]), row["paused"], note=note)

    heads = (
        Column("task", "task", says=task),
        Column("kind", "type"),
        DONE,
        *numbers({"units": "of units", "queued": "waiting", "adjudication": "with an adjudicator"}),
        numbered("answers_today", "answers in 24 hours"),
        Column("paused", "paused", NUMBER, paused),
        numbered("stuck", "queues that stand still"),
    )
    return table("All tasks", heads, rows, slug="tasks", asked=asked)


# --- One task by language


def progress_table(progress: dict[str, Any], asked: str) -> Table:
    """Return the table of progress by language. Columns for unused stages are omitted."""

    def of(row: dict[str, Any]) -> Cell:
        return Cell("all languages") if row["language"] is None else language(row["language"])

    at = {stage: words for stage, words in (*PARTS, (stages.COPIED, "copies")) if progress["all"][stage]}
    heads = (
        Column("language", "language", SHORT, of),
        numbered("units", "units"),
        DONE,
        *numbers(at | ({"waiting_copies": "copies that wait"} if progress["all"]["waiting_copies"] else {})),
        numbered("missing", "answers missing"),
    )
    rows = progress["languages"]
    total = [{**progress["all"], "language": None}] if len(rows) > 1 else []
    return table("Progress by language", heads, rows, total=total, slug="progress", asked=asked)


def progress_plot(progress: dict[str, Any]) -> SafeString:
    rows = sorted(progress["languages"], key=lambda row: (-row["units"], row["language"]))
    parts = [
        Parts(row["language"] or "–", label_name(row["language"]), tuple(row[stage] for stage, _ in PARTS))
        for row in rows
        if any(row[stage] for stage, _ in PARTS)
    ]
    return stacked(parts, [words for _, words in PARTS], title="Units by language and stage") if parts else NONE


# --- Queues, and annotators without work


def queues_table(states: dict[str, Any], asked: str, *, tested: bool) -> Table:
    """Return the table of queues.

    tested: whether the task has a test.
    """

    def state(row: dict[str, Any]) -> Cell:
        return Cell(row["said"], not row["stuck"], note="stuck" if row["stuck"] else "")

    heads = (
        Column("queue", "queue", says=lambda row: language(row["queue"])),
        Column("said", "how it stands", SENTENCE, state),
        *numbers({"waiting": "waiting", "missing": "answers missing", "leased": "open now", "readers": "readers"}),
        *numbers({"passed": "passed"} if tested else {}),
        numbered("able", "may work"),
        timed("last", "last judged"),
    )
    return table("Queues", heads, states["queues"], slug="queues", asked=asked)


def idle_table(states: dict[str, Any], address: Callable[[int], str], asked: str) -> Table:
    def last(row: dict[str, Any]) -> Cell:
        return Cell(when(row["last"]).shown, row["last"], note="within the last hour" if row["at_work"] else "")

    heads = (
        person(address),
        Column("queues", "languages", says=lambda row: Cell(", ".join(row["queues"]), row["queues"])),
        Column("last", "last judged", SHORT, last),
        Column("said", "why", SENTENCE),
    )
    return table("Annotators without work", heads, states["idle"], slug="idle", asked=asked)


# --- Over time


def last_day_plot(pace: dict[str, Any]) -> SafeString:
    moments = [
        Moment(f"{row['at']:%H}" if row["at"].hour % 3 == 0 else "", f"{row['at']:%A %H:%M}", row["answers"])
        for row in pace["last_day"]
    ]
    return columns(moments, title="Answers an hour in the last 24 hours")


SAID = {"hour": "%a %d %b, %H:%M", "day": "%a %d %b %Y", "week": "the week of %d %b %Y"}
TICKS = 6  # maximum number of labels below a plot over time


def since_plot(pace: dict[str, Any]) -> SafeString:
    rows, cut = pace["since"], pace["cut"]
    if not rows:
        return NONE
    every = -(-len(rows) // TICKS)
    form = "%d %b %H:00" if cut == "hour" else "%d %b"
    moments = [
        # Start in the middle of the first interval, because a label would not fit below a column at the edge.
        Moment(f"{row['at']:{form}}" if place % every == every // 2 else "", f"{row['at']:{SAID[cut]}}", row["answers"])
        for place, row in enumerate(rows)
    ]
    return columns(moments, title=f"Answers {'an' if cut == 'hour' else 'a'} {cut} since the beginning")


def times_plot(rows: list[dict[str, Any]], title: str, names: dict[int, str]) -> SafeString:
    """Plot the times per answer.

    names: annotators' names by primary key; needed only if the rows are about annotators.
    """
    spans = []
    for row in sorted(rows, key=lambda row: row["quartiles"][1]):
        head = names.get(row["annotator"], "?") if "annotator" in row else row["language"] or "–"
        low, middle, high = row["quartiles"]
        spans.append(Span(head, label_name(row.get("language", "")), low, middle, high, row["count"]))
    return ranges(spans, title=title) if spans else NONE


# --- Routes and their queues


def routes_table(routes: Iterable[Any], address: Callable[[str], str], asked: str = "") -> Table:
    """Return the table of routes.

    address: function that returns the URL of the page on which a language's route can be changed; the URL is empty if
        changes are not allowed.
    """

    def code(route: Any) -> Cell:
        name = LANGUAGES[route.language].name if route.language in LANGUAGES else "no language seen"
        return Cell(route.language, route.language, url=address(route.language), note=name)

    columns = (
        Column("language", "language", SHORT, code),
        Column("queue", "waits in the queue", SHORT, lambda route: route.queue),
        Column("extra", "tried after it", SENTENCE, lambda route: " ".join(route.extra_candidates)),
        Column("never", "the detectors’ agreement", SHORT, lambda route: "never counts" if route.never_agree else ""),
    )
    return table("Routes", columns, routes, slug="routes", asked=asked)


def route_queues_table(caption: str, rows: Iterable[Any]) -> Table:
    """Return the table of a task's queues.

    rows: `QueueRow` objects of queue_states.py.
    """

    def readers(row: Any) -> Cell:
        it = "it" if row.lacking == 1 else "them"
        lack = f"{are(row.lacking, 'lacks', 'lack')} readers: invite some, or reroute {it}"
        return Cell(", ".join(row.readers) or "nobody", note=lack if row.lacking else "")

    columns = (
        Column("queue", "queue", SHORT, lambda row: Cell(row.queue, row.queue, mark="stuck" if row.lacking else "")),
        Column("labels", "labels", SENTENCE, lambda row: " ".join(row.labels)),
        numbered("waiting", "waiting", lambda row: row.waiting),
        numbered("leased", "open now", lambda row: row.leased),
        Column("readers", "readers at this task’s level", SENTENCE, readers),
    )
    return table(caption, columns, rows)


# --- Forecast, from finish_forecast.py


Told = Mapping[str, Any]
BEYOND = "two years"  # horizon of figures/finish_simulation.py
NEVER = "not foreseeable"


def _ends(told: Told, kind: str, headings: Mapping[str, str], shown: Callable[[Told, float], str]) -> list[Column]:
    """Return columns for the days in a range of dates.

    headings: mapping from a key of the range to the heading of its column.
    shown: function that formats a day.
    """

    def done(row: Told, end: str) -> Cell:
        days = row["days"][end]
        return Cell("–" if days is None else shown(told, days), days)

    def column(end: str, words: str) -> Column:
        return Column(end, words, kind, lambda row: done(row, end))

    return list(starmap(column, headings.items()))


def forecast_table(told: Told, asked: str = "") -> Table:
    """Return the forecast as a table with a row for each queue, last to finish first."""
    ends = {"middle": "done about", "low": "no earlier than", "high": "no later than"}
    heads = (
        Column("language", "language", SHORT, lambda row: language(row["queue"])),
        *_ends(told, SHORT, ends, _date),
        Column("more", "with two more readers", SENTENCE, lambda row: Cell(_more(told, row), _sooner(row))),
        *numbers({"answers": "answers missing", "readers": "readers"}),
    )
    return table("When it will be done", heads, told["queues"], slug="forecast", asked=asked)


def drawn_table(told: Told) -> Table:
    """Return the table of a draw that has not been made yet.

    There is a row for each language, with most reading first.
    """
    heads = {"posts": "posts", "agreed": "agreed on", "people": "to people", "audits": "of these audits"}
    heads |= {"checks": "checks", "readers": "readers"}
    rows = [{name: round(of) if isinstance(of, float) else of for name, of in row.items()} for row in told["drawn"]]
    total = {name: sum(row[name] for row in rows) for name in heads if name != "readers"}
    named = lambda row: language(row["language"]) if row["language"] else Cell("all")  # noqa: E731
    columns = (Column("language", "language", SHORT, named), *numbers(heads))
    return table("What such a draw gives", columns, rows, total=[{"language": "", "readers": None, **total}])


def terminal_table(told: Told) -> Table:
    """Return the forecast table for a terminal. It omits the names of languages and the effect of more readers."""
    ends = {"low": "earliest", "middle": "about", "high": "latest"}
    heads = (
        Column("queue", "queue"),
        *numbers({"answers": "answers", "readers": "readers"}),
        *_ends(told, NUMBER, ends, lambda told, days: _day(told, days).date().isoformat()),
    )
    return table("Expected to be done", heads, told["queues"])


def finish_words(told: Told) -> str:
    """Return a few words that state when all work with readers will be finished."""
    return span(told, told["all"]) if told["all"] and any(row["readers"] for row in told["queues"]) else NEVER


def span(told: Told, days: Told) -> str:
    """Return a range such as "about 3 Mar, 24 Feb to 20 Mar"."""
    if days["middle"] is None:
        return NEVER
    low = _date(told, days["low"])
    range_ = f"not before {low}" if days["high"] is None else f"{low} to {_date(told, days['high'])}"
    return f"about {_date(told, days['middle'])}, {range_}"


def forecast_words(told: Told) -> list[str]:
    read = [row for row in told["queues"] if row["readers"]]
    words = [_in_all(told, served=read)] if read and told["all"] is not None else []
    if risky := [row["queue"] for row in read if row["days"]["high"] is None]:
        words.append(
            f"There is no latest date for {' '.join(risky)}: in more than one of twenty futures so many of the few who "
            f"read it stop or never begin that it is not done within {BEYOND}."
        )
    decide = told["adjudication"]
    last = max((row["days"]["middle"] or 0 for row in told["queues"]), default=0)
    if not decide["adjudicators"] and (decide["waiting"] or decide["chosen"]):
        words.append("Nobody adjudicates, so what comes to adjudicators is not done; it is left out of the dates.")
    elif decide["adjudicators"] and (decide["days"]["middle"] is None or decide["days"]["middle"] > last):
        people = are(decide["adjudicators"], "person", "people")
        takes = span(told, decide["days"])
        words.append(f"By itself, what comes to adjudicators ({people}) takes longest: {takes}.")
    if told["assumed"]:
        words.append(
            f"These dates suppose {told['assumed']['seconds']:g} seconds an answer and {told['assumed']['weekly']:g} "
            "hours a week of each reader, about which the range supposes doubt; once people answer, their own pace "
            "takes the place of that."
        )
    else:
        worked = are(told["measured"], "person has", "people have")
        words.append(f"They rest on how fast, and on which days, {worked} worked.")
    if told["supposed"]:
        words.append("Everybody who reads a language is taken to pass its test.")
    sooner = ((row, _sooner(row)) for row in read)
    if better := next(((row, days) for row, days in sooner if days and days >= 1), None):
        row, days = better
        words.append(f"Two more readers of {label_name(row['queue'])}: {many(round(days), 'day')} earlier.")
    return words


def _in_all(told: Told, served: list[Told]) -> str:
    days = told["all"]
    if days["middle"] is None:
        return f"When all is done cannot be foretold: in most futures that are simulated not within {BEYOND}."
    what = "All" if len(served) == len(told["queues"]) else "The work that has readers"
    low = _date(told, days["low"])
    latest = f"between {low} and {_date(told, days['high'])}" if days["high"] is not None else ""
    range_ = latest or f"not before {low}, and with no latest date"
    return f"{what} is expected to be done about {_date(told, days['middle'])}; in nine of ten cases {range_}."


def _more(told: Told, row: Told) -> str:
    if not row["more"]:
        return ""
    days, sooner = row["more"]["days"], row["more"]["sooner"]
    if days["middle"] is None:
        return NEVER
    if sooner is None:
        return f"about {_date(told, days['middle'])}"
    return f"{many(round(sooner), 'day')} earlier" if sooner >= 1 else "less than a day earlier"


def _sooner(row: Told) -> float | None:
    sooner: float | None = row["more"] and row["more"]["sooner"]
    return sooner


def _day(told: Told, days: float) -> datetime:
    return datetime.fromisoformat(told["from"]) + timedelta(days=days)


def _date(told: Told, days: float) -> str:
    """Return a date such as "3 Mar". It includes the year if this differs from the year of the forecast."""
    day = _day(told, days)
    year = "" if day.year == datetime.fromisoformat(told["from"]).year else f" {day.year}"
    return f"{day.day} {day:%b}{year}"


def dates_table(told: Iterable[tuple[Any, Told]], address: Callable[[str], str], asked: str) -> Table:
    """Return the table of the queues that finish last, for all tasks.

    It includes only queues for which the effect of two more readers was simulated.
    """

    def task(row: Told) -> Cell:
        title, name = row["task"].title, row["task"].name
        return Cell(title, title, f"{address(name)}#forecast", name)

    rows = [{"task": task, "told": of, **row} for task, of in told for row in of["queues"] if row["more"]]
    heads = (
        Column("task", "task", says=task),
        Column("language", "language", SHORT, lambda row: language(row["queue"])),
        Column("middle", "done", SENTENCE, lambda row: Cell(span(row["told"], row["days"]), row["days"]["middle"])),
        Column("more", "with two more readers", SENTENCE, lambda row: Cell(_more(row["told"], row), _sooner(row))),
        *numbers({"answers": "answers missing", "readers": "readers"}),
    )
    return table("When they will be done", heads, rows, slug="dates", asked=asked)
