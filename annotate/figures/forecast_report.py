"""When a task will be done, by queue and in all, as tables and sentences; rows as in finish_forecast.py."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from annotate.kinds.labels import label_name
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
    numbers,
    table,
)

Told = Mapping[str, Any]
BEYOND = "two years"  # figures/finish_simulation.py's horizon
NEVER = "not foreseeable"


def forecast_table(told: Told, asked: str = "") -> Table:
    """A row a queue, the last to be done first."""

    def done(row: Told, end: str) -> Cell:
        days = row["days"][end]
        return Cell(_date(told, days) if days is not None else "–", days)

    heads = (
        Column("language", "language", SHORT, lambda row: language(row["queue"])),
        Column("middle", "done about", SHORT, lambda row: done(row, "middle")),
        Column("low", "no earlier than", SHORT, lambda row: done(row, "low")),
        Column("high", "no later than", SHORT, lambda row: done(row, "high")),
        Column("more", "with two more readers", SENTENCE, lambda row: Cell(_more(told, row), _sooner(row))),
        *numbers({"answers": "answers missing", "readers": "readers"}),
    )
    return table("When it will be done", heads, told["queues"], slug="forecast", asked=asked)


def drawn_table(told: Told) -> Table:
    """Of a draw that nobody has made yet: what becomes of its posts, by language; the most reading first."""
    heads = {
        "posts": "posts",
        "agreed": "agreed on",
        "people": "to people",
        "audits": "of these audits",
        "checks": "checks",
        "readers": "readers",
    }
    rows = [{name: round(of) if isinstance(of, float) else of for name, of in row.items()} for row in told["drawn"]]
    total = {name: sum(row[name] for row in rows) for name in heads if name != "readers"}
    of = Column(
        "language", "language", SHORT, lambda row: language(row["language"]) if row["language"] else Cell("all")
    )
    return table(
        "What such a draw gives", (of, *numbers(heads)), rows, total=[{"language": "", "readers": None, **total}]
    )


def terminal_table(told: Told) -> Table:
    """The same without what a terminal has no room for: names of languages, and what further readers would change."""
    ends = {"low": "earliest", "middle": "about", "high": "latest"}
    heads = (
        Column("queue", "queue"),
        *numbers({"answers": "answers", "readers": "readers"}),
        *(Column(end, words, NUMBER, partial(_end, told, end)) for end, words in ends.items()),
    )
    return table("Expected to be done", heads, told["queues"])


def words(told: Told) -> list[str]:
    return [*_whole(told), *_risky(told), *_adjudicated(told), *_rests_on(told), *_better(told)]


def whole(told: Told) -> str:
    """When all is done that somebody reads, in a few words."""
    return span(told, told["all"]) if told["all"] and any(row["readers"] for row in told["queues"]) else NEVER


def span(told: Told, days: Told) -> str:
    """about 3 Mar, 24 Feb to 20 Mar."""
    if days["middle"] is None:
        return NEVER
    return f"about {_date(told, days['middle'])}, {_span(told, days)}"


def _whole(told: Told) -> Iterator[str]:
    days = told["all"]
    if not any(row["readers"] for row in told["queues"]):
        return
    if days is None or days["middle"] is None:
        if days is not None:
            yield f"When all is done cannot be foretold: in most futures that are simulated not within {BEYOND}."
        return
    served = "The work that has readers" if any(not row["readers"] for row in told["queues"]) else "All"
    yield (
        f"{served} is expected to be done about {_date(told, days['middle'])}; in nine of ten cases "
        f"{_span(told, days, between=True)}."
    )


def _risky(told: Told) -> Iterator[str]:
    risky = [row["queue"] for row in told["queues"] if row["readers"] and row["days"]["high"] is None]
    if risky:
        yield (
            f"There is no latest date for {' '.join(risky)}: in more than one of twenty futures so many of the few who "
            f"read it stop or never begin that it is not done within {BEYOND}."
        )


def _adjudicated(told: Told) -> Iterator[str]:
    of = told["adjudication"]
    if not of["adjudicators"] and (of["waiting"] or of["chosen"]):
        yield "Nobody adjudicates, so what comes to adjudicators is not done; it is left out of the dates."
    elif _is_last(told) and of["adjudicators"]:
        people = are(of["adjudicators"], "person", "people")
        yield f"By itself, what comes to adjudicators ({people}) takes longest: {span(told, of['days'])}."


def _is_last(told: Told) -> bool:
    """Whether adjudicators are done after all that somebody reads."""
    last = max((row["days"]["middle"] or 0 for row in told["queues"]), default=0)
    middle = told["adjudication"]["days"]["middle"]
    return middle is None or middle > last


def _rests_on(told: Told) -> Iterator[str]:
    if told["assumed"]:
        yield (
            f"These dates suppose {told['assumed']['seconds']:g} seconds an answer and {told['assumed']['weekly']:g} "
            "hours a week of each reader, about which the range supposes doubt; once people answer, their own pace "
            "takes the place of that."
        )
    else:
        yield f"They rest on how fast, and on which days, {are(told['measured'], 'person has', 'people have')} worked."
    if told["supposed"]:
        yield "Everybody who reads a language is taken to pass its test."


def _better(told: Told) -> Iterator[str]:
    for row in told["queues"]:
        if row["more"] and row["readers"] and (sooner := row["more"]["sooner"]) and sooner >= 1:
            yield f"Two more readers of {label_name(row['queue'])}: {many(round(sooner), 'day')} earlier."
            return


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
    return row["more"] and row["more"]["sooner"]


def _end(told: Told, end: str, row: Told) -> Cell:
    days = row["days"][end]
    return Cell("–" if days is None else _day(told, days).date().isoformat(), days)


def _span(told: Told, days: Told, *, between: bool = False) -> str:
    low = _date(told, days["low"])
    if days["high"] is None:
        return f"not before {low}, and with no latest date" if between else f"not before {low}"
    return f"between {low} and {_date(told, days['high'])}" if between else f"{low} to {_date(told, days['high'])}"


def _day(told: Told, days: float) -> datetime:
    return datetime.fromisoformat(told["from"]) + timedelta(days=days)


def _date(told: Told, days: float) -> str:
    """3 Mar, with the year where it is another one."""
    day = _day(told, days)
    year = "" if day.year == datetime.fromisoformat(told["from"]).year else f" {day.year}"
    return f"{day.day} {day:%b}{year}"


# --- all tasks together


def dates_table(told: Iterable[tuple[Any, Told]], address: Callable[[str], str], asked: str) -> Table:
    """Of each task the queues that are done last, as far as two more readers of them were thought of."""
    rows = [{"task": task, "told": of, **row} for task, of in told for row in of["queues"] if row["more"]]
    heads = (
        Column("task", "task", says=lambda row: _task(row, address)),
        Column("language", "language", SHORT, lambda row: language(row["queue"])),
        Column("middle", "done", SENTENCE, lambda row: Cell(span(row["told"], row["days"]), row["days"]["middle"])),
        Column("more", "with two more readers", SENTENCE, lambda row: Cell(_more(row["told"], row), _sooner(row))),
        *numbers({"answers": "answers missing", "readers": "readers"}),
    )
    return table("When they will be done", heads, rows, slug="dates", asked=asked)


def _task(row: Told, address: Callable[[str], str]) -> Cell:
    return Cell(row["task"].title, row["task"].title, f"{address(row['task'].name)}#forecast", row["task"].name)
