"""How good a filter is, by what people found in pairs that it kept and in pairs that it dropped.

Both were drawn by lot and are read mixed (corpora/draws/part_draws.py); what follows from the counts is in
core/filter_audit.py.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from annotate.core import stages
from annotate.core.filter_audit import Part, audit
from annotate.models import Task
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
