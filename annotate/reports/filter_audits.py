"""What the audit of a filter found, in words and a table: for the task's page, the command and the cards.

The report comes from quality/filter_audits.py, or from a manifest. Nothing is counted here.
"""

from collections.abc import Mapping
from typing import Any

from annotate.reports.numbers import count, estimate
from annotate.reports.tables import NUMBER, Cell, Column, Table, many, share, table

NOT_DRAWN = "It was not drawn from what a filter kept and dropped, so nothing is told of a filter."
EMPTY = table("", (), ())
OLD_FILTER = (
    "Scores were imported since, and this is about the filter as it was before: about other sets of kept and dropped "
    "pairs than the corpus has now."
)


def words(audit: Mapping[str, Any]) -> list[str]:
    """Sentences on the audit in all."""
    kept, dropped, name = audit["kept"], audit["dropped"], audit["meant"]
    unresolved = kept["unresolved"] + dropped["unresolved"]
    drawn = (
        f"The filter kept {many(kept['pairs'], 'pair')} and dropped {count(dropped['pairs'])}. Of those kept "
        f"{_drawn(kept)} and of those dropped {_drawn(dropped)} were drawn by lot and mixed, so that nobody who read "
        f"them could tell which is which; {count(kept['read'])} and {count(dropped['read'])} of them have a label."
    )
    lacking = (
        f"{many(unresolved, 'pair')} of the audit {'has' if unresolved == 1 else 'have'} no label, since people could "
        f"not tell or are not done; the intervals hold whether or not these are {name}."
    )
    return [
        *([] if audit["is_current"] else [OLD_FILTER]),
        drawn,
        *_of_kept(kept, name),
        *_of_dropped(dropped, name),
        *_of_recall(audit, name),
        *([lacking] if unresolved else []),
        f"A pair counts as {name} where most of those who read it said so; where most of them are mistaken, so are "
        "these figures.",
    ]


def _drawn(part: Mapping[str, Any]) -> str:
    return f"all {count(part['drawn'])}" if part["drawn"] == part["pairs"] else count(part["drawn"])


def _of_kept(part: Mapping[str, Any], name: str) -> list[str]:
    found = part["share"]
    if found["value"] is None:
        return []
    if not part["found"] and found["high"]:
        return [
            f"None of the {count(part['read'])} read of those kept is {name}: at most {found['high']:.2%} of all kept."
        ]
    return [f"Of those kept {estimate(found)} are {name}{_certain(found)}."]


def _of_dropped(part: Mapping[str, Any], name: str) -> list[str]:
    found = part["share"]
    if found["value"] is None:
        return []
    return [f"Of those dropped {estimate(found)} are {name}{_certain(found)}: the filter’s precision."]


def _of_recall(audit: Mapping[str, Any], name: str) -> list[str]:
    found, begin = audit["recall"], f"The filter’s recall, of all {audit['meant']} pairs the share that it dropped,"
    if found["value"] is None:
        nothing = all(audit[part]["share"]["value"] is not None for part in ("kept", "dropped"))
        why = f"nothing {name} was found" if nothing else "too few were read"
        return [f"{begin} is not known: {why}."]
    if found["low"] is None:
        return [f"{begin} can be anything: too few {name} pairs were found."]
    if found["value"] == 1 and found["low"] < 1:
        return [f"{begin} is at least {found['low']:.1%}, since nothing {name} was found among those kept."]
    return [f"{begin} is {estimate(found)}{_certain(found)}."]


def _certain(found: Mapping[str, Any]) -> str:
    return ", which is certain, since all of them were read" if found["low"] == found["high"] else ""


def _read(part: str) -> Column:
    return Column(
        f"{part}_read",
        f"{part}: read of",
        NUMBER,
        lambda row: f"{count(row[part]['read'])} of {count(row[part]['pairs'])}",
    )


def _share(part: str, heading: str) -> Column:
    return Column(f"{part}_share", heading, NUMBER, lambda row: share(row[part]["share"]))


def figures_table(audit: Mapping[str, Any]) -> Table:
    """A row for all pairs, and one for each language of which something was drawn."""
    rows = [{"language": "", **audit}, *audit["languages"]]
    name = audit["meant"]
    columns = (
        Column("language", "language", says=lambda row: Cell(row["language"] or "all")),
        _read("kept"),
        _share("kept", f"{name} of the kept, 95% interval"),
        _read("dropped"),
        _share("dropped", f"{name} of the dropped (precision)"),
        Column("recall", "recall, 95% interval", NUMBER, lambda row: share(row["recall"])),
    )
    return table("The filter, by what people read", columns, rows)
