"""How good a filter is, by what people found in pairs that it kept and in pairs that it dropped.

Both were drawn by lot and are read mixed (corpora/draws/part_draws.py); what follows from the counts is in
core/estimation/filter_quality.py.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from annotate.core import stages
from annotate.core.estimation.filter_quality import Part, audit
from annotate.kinds.control import Panel, QualityControl, register
from annotate.models import Task
from annotate.reports.numbers import count, estimate
from annotate.reports.tables import NUMBER, Cell, Column, Table, many, share, table
from corpora.draws.part_draws import DRAWN, DROPPED, FILTER, FRAME, IDS, KEPT, SIDES
from corpora.storage.layout import manifest_of
from corpora.threads.scorers import filter_digest


def report(task: Task) -> dict[str, Any] | None:
    """What the audit found, in JSON's terms; None of a task that was not drawn from both sides of a filter.

    meant: the answer of what the filter is meant to drop. is_current: whether the corpus is filtered by the same scores
    and thresholds still. kept, dropped: of each part its pairs, how many were drawn
    and are read (have a label), how many of these are meant (found), how many have no label, and the share that is
    meant with its interval; of the dropped that is the filter's precision. recall: of what is meant the share that was
    dropped. languages: the same by language, for those of which something was drawn, if there are several.
    """
    drawn = _drawn(task)
    if not drawn:
        return None
    frame = next(iter(drawn.values()))[FRAME]
    counts = _counted(task, {key for parameters in drawn.values() for key in parameters[IDS][DROPPED]})
    rows = {
        code: {
            part: {
                "pairs": frame[code][part],
                "drawn": parameters[DRAWN][part],
                "read": counts[code, part, True] + counts[code, part, False],
                "found": counts[code, part, True],
            }
            for part in SIDES
        }
        for code, parameters in drawn.items()
    }
    others = [frame[code] for code in frame if code not in rows]
    return {
        "meant": task.kind.filtered,
        "is_current": _is_current(task),
        **_told(_summed([*rows.values(), *map(_undrawn, others)])),
        "languages": [{"language": code, **_told(row)} for code, row in rows.items()] if len(frame) > 1 else [],
    }


def _drawn(task: Task) -> dict[str, dict[str, Any]]:
    """Language -> the parameters of its draw from both sides of a filter."""
    return {draw.language: draw.parameters for draw in task.draws.order_by("language") if FILTER in draw.parameters}


def _is_current(task: Task) -> bool:
    draw = task.draws.select_related("corpus").first()
    return draw.parameters[FILTER] == filter_digest(manifest_of(draw.corpus.name))


def _undrawn(frame: dict[str, int]) -> dict[str, dict[str, int]]:
    return {part: {"pairs": frame[part], "drawn": 0, "read": 0, "found": 0} for part in SIDES}


def _summed(rows: Iterable[dict[str, dict[str, int]]]) -> dict[str, dict[str, int]]:
    listed = list(rows)
    return {part: {key: sum(row[part][key] for row in listed) for key in listed[0][part]} for part in SIDES}


def _told(row: dict[str, dict[str, int]]) -> dict[str, Any]:
    # What was drawn and is no unit, since its answer was known, has no label here either.
    parts = {
        part: Part(each["pairs"], each["read"], each["found"], each["drawn"] - each["read"])
        for part, each in row.items()
    }
    found = audit(parts[KEPT], parts[DROPPED])
    return {
        **{
            part: {**row[part], "unresolved": parts[part].unresolved, "share": share.as_dict()}
            for part, share in ((KEPT, found.kept), (DROPPED, found.dropped))
        },
        "recall": found.recall.as_dict(),
    }


def _counted(task: Task, dropped: set[str]) -> Counter[tuple[str, str, bool]]:
    """(language, part, whether it is meant) -> pairs that have a label; a copy has that of its original."""
    counts: Counter[tuple[str, str, bool]] = Counter()
    for unit in task.units.exported().select_related("item", "copy_of"):
        judged = unit.copy_of or unit
        if judged.stage in stages.WITH_LABEL:
            part = DROPPED if unit.item.key in dropped else KEPT
            counts[unit.item.language, part, judged.label == task.kind.filtered] += 1
    return counts


# --- sentences and a table

NOT_DRAWN = "It was not drawn from what a filter kept and dropped, so nothing is told of a filter."
OLD_FILTER = (
    "Scores were imported since, and this is about the filter as it was before: about other sets of kept and dropped "
    "pairs than the corpus has now."
)


def filter_words(audit: Mapping[str, Any]) -> list[str]:
    """Sentences on the audit in all."""
    kept, dropped, name = audit["kept"], audit["dropped"], audit["meant"]
    unresolved = kept["unresolved"] + dropped["unresolved"]
    drawn = (
        f"The filter kept {many(kept['pairs'], 'pair')} and dropped {count(dropped['pairs'])}. Of those kept "
        f"{_number_drawn(kept)} and of those dropped {_number_drawn(dropped)} were drawn by lot and mixed, so that "
        "nobody who read them could tell which is which; "
        f"{count(kept['read'])} and {count(dropped['read'])} of them have a label."
    )
    lacking = (
        f"{many(unresolved, 'pair')} of the audit {'has' if unresolved == 1 else 'have'} no label, since people could "
        f"not tell or are not done; the intervals hold whether or not these are {name}."
    )
    return [
        *([] if audit["is_current"] else [OLD_FILTER]),
        drawn,
        *_filter_shares(kept, dropped, name),
        _filter_recall(audit),
        *([lacking] if unresolved else []),
        f"A pair counts as {name} where most of those who read it said so; where most of them are mistaken, so are "
        "these figures.",
    ]


def _number_drawn(part: Mapping[str, Any]) -> str:
    return f"all {count(part['drawn'])}" if part["drawn"] == part["pairs"] else count(part["drawn"])


def _filter_shares(kept: Mapping[str, Any], dropped: Mapping[str, Any], name: str) -> Iterator[str]:
    share = kept["share"]
    if share["value"] is not None and not kept["found"] and share["high"]:
        yield (
            f"None of the {count(kept['read'])} read of those kept is {name}: at most {share['high']:.2%} of all kept."
        )
    elif share["value"] is not None:
        yield f"Of those kept {estimate(share)} are {name}{_certain(share)}."
    share = dropped["share"]
    if share["value"] is not None:
        yield f"Of those dropped {estimate(share)} are {name}{_certain(share)}: the filter’s precision."


def _filter_recall(audit: Mapping[str, Any]) -> str:
    recall, name = audit["recall"], audit["meant"]
    if recall["value"] is None:
        nothing = all(audit[part]["share"]["value"] is not None for part in ("kept", "dropped"))
        what = f"is not known: {f'nothing {name} was found' if nothing else 'too few were read'}"
    elif recall["low"] is None:
        what = f"can be anything: too few {name} pairs were found"
    elif recall["value"] == 1 and recall["low"] < 1:
        what = f"is at least {recall['low']:.1%}, since nothing {name} was found among those kept"
    else:
        what = f"is {estimate(recall)}{_certain(recall)}"
    return f"The filter’s recall, of all {name} pairs the share that it dropped, {what}."


def _certain(found: Mapping[str, Any]) -> str:
    return ", which is certain, since all of them were read" if found["low"] == found["high"] else ""


def _filter_read(part: str) -> Column:
    def read(row: Mapping[str, Any]) -> str:
        return f"{count(row[part]['read'])} of {count(row[part]['pairs'])}"

    return Column(f"{part}_read", f"{part}: read of", NUMBER, read)


def _filter_share(part: str, heading: str) -> Column:
    return Column(f"{part}_share", heading, NUMBER, lambda row: share(row[part]["share"]))


def figures_table(audit: Mapping[str, Any]) -> Table:
    """A row for all pairs, and one for each language of which something was drawn."""
    rows = [{"language": "", **audit}, *audit["languages"]]
    name = audit["meant"]
    columns = (
        Column("language", "language", says=lambda row: Cell(row["language"] or "all")),
        _filter_read("kept"),
        _filter_share("kept", f"{name} of the kept, 95% interval"),
        _filter_read("dropped"),
        _filter_share("dropped", f"{name} of the dropped (precision)"),
        Column("recall", "recall, 95% interval", NUMBER, lambda row: share(row["recall"])),
    )
    return table("The filter, by what people read", columns, rows)


class AuditOfFilter(QualityControl):
    """People read what a filter keeps and drops, by a draw of its own."""

    name = "audit of a filter"
    manifest_key = "filter_audit"
    look_at = "audit"

    def section(self, task: Task) -> Any:
        return report(task)

    def panel(self, task: Task, found: dict[str, Any] | None) -> Panel:
        if found is None:
            return Panel("The audit of the filter", data={"filter": None}, empty=NOT_DRAWN)
        words, tables = filter_words(found), [figures_table(found)]
        return Panel("The audit of the filter", words, tables, found, "filter", page="how-to/pairs")


register(AuditOfFilter())
