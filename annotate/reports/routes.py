"""Routes of languages, and the queues to which they lead, in tables for the manager's page."""

from collections.abc import Callable, Iterable
from typing import Any

from annotate.reports.tables import SENTENCE, SHORT, Cell, Column, Table, numbered, table
from corpora.core.languages import LANGUAGES


def routes_table(routes: Iterable[Any], address: Callable[[str], str], asked: str = "") -> Table:
    """address: of the page on which the route of a language is changed; empty where it may not be."""
    columns = (
        Column("language", "language", SHORT, lambda route: _language(route.language, address(route.language))),
        Column("queue", "waits in the queue", SHORT, lambda route: route.queue),
        Column("extra", "tried after it", SENTENCE, lambda route: " ".join(route.extra_candidates)),
        Column("never", "the detectors’ agreement", SHORT, lambda route: "never counts" if route.never_agree else ""),
    )
    return table("Routes", columns, routes, slug="routes", asked=asked)


def _language(code: str, url: str) -> Cell:
    name = LANGUAGES[code].name if code in LANGUAGES else "no language seen"
    return Cell(code, code, url=url, note=name)


def queues_table(caption: str, rows: Iterable[Any]) -> Table:
    """Queues of one task, as work/progress.py has them."""
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
