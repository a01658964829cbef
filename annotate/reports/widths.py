"""The expected widths of a uniform draw, and the curve of width against reading; in the terms of work/widths.py."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from django.utils.safestring import SafeString

from annotate.core.further_work import AUDITS, CHECKS, POSTS, SECONDS
from annotate.kinds.labels import label_name
from annotate.reports.curves import Spot, lines
from annotate.reports.numbers import NOT_MEASURED, percent, rounded
from annotate.reports.plans import in_points
from annotate.reports.tables import LANGUAGE, NOTE, NUMBER, Cell, Column, Table, table

Widths = Mapping[str, Any]
ERROR_IN_ALL = "error of agreement"
NEEDED = {"audits": "audits", "read": "read in all", "hours": "hours"}
NEEDED_WORDS = (
    "recall, precision, error: in most of the languages of which 30 posts or more are drawn. A dash: not even reading "
    "every post is enough; draw more."
)


def points(width: float | None) -> Cell:
    return Cell(NOT_MEASURED if width is None else f"{100 * width:.1f}", width)


def language_table(found: Widths) -> Table:
    heads = (*LANGUAGE, *_rounded("posts", "audits"), *_widths("recall", "precision", "error"))
    return table("expected width of the 95% interval, in points", heads, found["languages"])


def curve_table(found: Widths) -> Table:
    """The task's own share is marked by an arrow."""

    def share(row: Widths) -> Cell:
        own = row["share"] == found["share"]
        return Cell(f"{'→ ' if own else ''}{percent(row['share'])}", row["share"])

    read = (*_rounded("audits"), *_rounded("read", heading="read in all"), *_rounded("hours"))
    heads = (Column("share", "audited", NUMBER, share), *read, *_curve_widths(found))
    return table("width by audits", heads, found["curve"])


def next_words(found: Widths) -> str:
    best = found["next"][0]["work"] if found["next"] else ""
    return f"For as many more posts to read, {best} would narrow accuracy most:" if best else ""


def next_table(found: Widths) -> Table:
    heads = (Column("work", "more of"), *_rounded("more", heading="posts read"), *_curve_widths(found))
    return table("width by further work", heads, found["next"])


# What a manager runs for each kind of further work.
COMMANDS = {
    AUDITS: "assay audit {task} --add {amount}",
    CHECKS: "assay audit {task} --add {amount} --checks",
    POSTS: "assay open_task {task} --extend --size {amount}",
    SECONDS: "only in a new task: open_task --second-share",
}


def command(row: Widths, task: str) -> str:
    written = COMMANDS[row["work"]].format(task=task, amount=row["amount"])
    return f"{written} --languages {row['label']}" if row["label"] else written


def further_table(found: Widths, does: Callable[[Widths], Cell | str]) -> Table:
    """Each kind of further work, with what reaches the wished width or comes closest. does: what begins it."""

    def work(row: Widths) -> str:
        return f"{row['work']} of {row['label']}" if row["label"] else str(row["work"])

    heads = (
        Column("work", "more", says=work),
        *_rounded("posts", heading="posts to read"),
        Column("hours", "hours", NUMBER, lambda row: Cell(rounded(row["hours"]), row["hours"])),
        Column("width", "width in points", NUMBER, lambda row: points(row["width"])),
        Column("gain", "points per hour", NUMBER, lambda row: Cell(f"{100 * row['gain']:,.2f}", row["gain"])),
        Column("does", "by", NOTE, does),
    )
    return table("width of accuracy by further work", heads, found["rows"])


def further_words(found: Widths) -> str:
    now = points(found["width"]).shown
    measured = (
        f"For a predictor that is right in {percent(found['accuracy'])} of the posts, the 95% interval of accuracy "
        f"will be about {now} points wide when all that is chosen has been read"
    )
    if not found["rows"]:
        narrow = found["width"] <= found["wished"]
        rest = "which is as narrow as wished" if narrow else "and no further work would make it narrower"
        return f"{measured}, {rest}."
    pace = f"at {found['seconds']:,.1f} seconds an answer"
    all_there_is = " Rows with a larger width are all the work there is of that kind."
    short = "" if all(row["enough"] for row in found["rows"]) else all_there_is
    wished = in_points(found["wished"])
    return f"{measured}. Further work for {wished}, {pace}; what narrows most per hour comes first.{short}"


def _curve_widths(found: Widths) -> Iterator[Column]:
    typical = found["typical"]
    of = {"recall": f"recall {typical}", "precision": f"precision {typical}"} if typical else {}
    names = {"accuracy": "accuracy", "error": ERROR_IN_ALL, **of}
    for key, name in names.items():
        yield Column(key, name, NUMBER, lambda row, key=key: points(row[key]))


def _rounded(*keys: str, heading: str = "") -> Iterator[Column]:
    for key in keys:
        yield Column(key, heading or key, NUMBER, lambda row, key=key: Cell(rounded(row[key]), row[key]))


def _widths(*keys: str) -> Iterator[Column]:
    for key in keys:
        yield Column(key, key, NUMBER, lambda row, key=key: points(row[key]))


def words(found: Widths) -> str:
    expected = found["expected"]
    voted = "voted" if expected["voted"] else "did not vote"
    accuracy, error = points(found["accuracy"]).shown, points(found["error"]).shown
    return (
        f"The 95% interval of accuracy will be about {accuracy} points wide, and that of the error of agreement "
        f"{error}. This expects a predictor that {voted} and is right in "
        f"{percent(expected['accuracy'])} of the posts, and agreement that is wrong in {percent(expected['wrong'])}."
    )


def curve_plot(found: Widths) -> SafeString:
    typical = label_name(found["typical"]) if found["typical"] else ""
    names = {"accuracy": "accuracy", "error": ERROR_IN_ALL}
    names |= {measure: f"{measure}, {typical}" for measure in ("recall", "precision")} if typical else {}
    series = {
        name: [
            Spot(row["read"], 100 * row[key], words=f"{name}: {row['audits']:,.0f} audits, {100 * row[key]:.1f} points")
            for row in found["curve"]
            if row[key] is not None
        ]
        for key, name in names.items()
    }
    return lines(
        series, title="Width of the 95% interval by reading", across="posts that people read", up="width in points"
    )


def needed_table(needed: Sequence[Widths]) -> Table:
    heads = (
        Column("measure", "measure"),
        Column("share", "audited", NUMBER, lambda row: Cell(percent(row["share"]), row["share"])),
        *(column for key, heading in NEEDED.items() for column in _rounded(key, heading=heading)),
    )
    return table("audits for a wished width", heads, needed)
