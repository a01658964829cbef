"""Tables and sentences about a single panel or several panels, from the forecasts in panel_forecast.py."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from annotate.core.estimation.label_errors import LEAST_READ_IN_ALL
from annotate.kinds.language import LEAST_LETTERS
from annotate.reports.numbers import NOT_MEASURED, estimate, hours_words, percent
from annotate.reports.tables import LANGUAGE, NUMBER, Column, Table, many, numbered, table

Forecast = Mapping[str, Any]
ROWS = 20  # maximum number of rows in a table in a terminal


def name_of(forecast: Forecast) -> str:
    """Return the name of a panel, such as `cld2 mine@1 yours@1, 2 of 3`."""
    voters = forecast["voters"]
    some = "" if forecast["agree"] == len(voters) else f", {forecast['agree']} of {len(voters)}"
    return " ".join(voters) + some


def panels_table(forecasts: Sequence[Forecast]) -> Table:
    """Return a table with a row for each panel."""
    heads = (
        Column("panel", "panel", says=name_of),
        Column("agreed", "agreed", NUMBER, lambda row: percent(_share(row["agreed"], row["items"]))),
        numbered("people", "people read"),
        numbered("hours", "hours"),
        *_errors(forecasts),
    )
    return table(many(len(forecasts), "panel"), heads, forecasts)


def _errors(rows: Sequence[Forecast]) -> Iterator[Column]:
    """Yield columns for the error on items with a known true label, and for the error in earlier audits, if any."""
    if any(row["known"] for row in rows):
        yield numbered("known", "known")
        yield Column("error", "wrong, 95% interval", NUMBER, lambda row: estimate(row["error"]))
    if any(row["earlier"] for row in rows):
        yield Column("earlier", "wrong in earlier audits", NUMBER, lambda row: estimate(row["earlier"]))


def labels_table(forecast: Forecast, most: int | None = None) -> Table:
    """Return a table of the labels on which a panel agrees, most frequent first.

    most: maximum number of rows
    """
    heads = (
        Column("label", "label"),
        numbered("items", "agreed"),
        Column("share", "share", NUMBER, lambda row: percent(_share(row["items"], forecast["agreed"]))),
        *_errors(forecast["labels"]),
    )
    return table(many(len(forecast["labels"]), "label"), heads, forecast["labels"][:most])


def voters_table(forecast: Forecast) -> Table:
    heads = [
        Column("voter", "voter"),
        Column("voted", "items with a vote", NUMBER, lambda row: percent(_share(row["voted"], forecast["items"]))),
    ]
    if any(row["known"] for row in forecast["single"]):
        heads += [
            numbered("known", "known"),
            Column("accuracy", "right, 95% interval", NUMBER, lambda row: estimate(row["accuracy"])),
        ]
    return table(many(len(forecast["single"]), "voter"), heads, forecast["single"])


def pairs_table(forecast: Forecast) -> Table:
    def correlation(row: Mapping[str, Any]) -> str:
        return NOT_MEASURED if row["correlation"] is None else f"{row['correlation']:.2f}"

    heads = (
        Column("voters", "two voters", says=lambda row: " ".join(row["voters"])),
        numbered("voted", "both vote"),
        Column("same", "same label", NUMBER, lambda row: percent(_share(row["same"], row["voted"]))),
        Column("correlation", "correlation of errors", NUMBER, correlation),
    )
    return table(many(len(forecast["pairs"]), "pair"), heads, forecast["pairs"])


def queues_table(forecast: Forecast, most: int | None = None) -> Table:
    heads = (*LANGUAGE, *(numbered(key, key) for key in ("items", "disputed", "audits", "hours")))
    return table(many(len(forecast["queues"]), "queue"), heads, forecast["queues"][:most])


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def sentences(forecast: Forecast) -> Iterator[str]:
    """Yield sentences that summarize a panel's forecast and explain where the numbers come from."""
    yield (
        f"The voters agree on {forecast['agreed']:,} of {many(forecast['items'], 'item')}. People read "
        f"{round(forecast['people']):,} items, which take {hours_words(forecast['hours'])}."
    )
    if unused := forecast["unused"]:
        yield (
            f"The voters also agree on {many(unused, 'post')} that people read nevertheless: texts with fewer than "
            f"{LEAST_LETTERS} letters, and languages whose agreement the task does not use. The share that prelabel "
            "reports includes them."
        )
    if forecast["known"]:
        checked, wrong = forecast["known"], forecast["wrong"]
        have = "has" if wrong == 1 else "have"
        yield f"The true label of {checked:,} agreed items is known, and {wrong:,} of these {have} another label."
    if earlier := forecast["earlier"]:
        unseen = f" {many(earlier['unseen'], 'item')} with labels that were never audited widen the interval."
        yield (
            f"People audited {many(earlier['audited'], 'item')} with these labels in {', '.join(earlier['tasks'])}. "
            f"Each label is weighted by its items here.{unseen if earlier['unseen'] else ''}"
        )
        if earlier["audited"] < LEAST_READ_IN_ALL:
            yield f"With fewer than {LEAST_READ_IN_ALL} audits, the interval is wide."
    elif not forecast["known"]:
        yield "Nobody has audited this panel, and no true label is known, so its error is unknown."
