"""What a gold set says of two systems that people compared: the columns of its rows, and a section of its manifest."""

from collections import Counter
from typing import Any

from annotate.core import stages
from annotate.goldsets.export import Export, Source
from annotate.models import Judgment


def systems(row: Source) -> list[str]:
    return list(row.unit.comparison.systems)


def replies(row: Source) -> list[dict[str, Any]]:
    found = row.unit.comparison
    return [
        {"system": found.system_a, "replies": found.replies_a},
        {"system": found.system_b, "replies": found.replies_b},
    ]


def preferred(row: Source) -> list[dict[str, Any]]:
    """Of answers that count, in the order of the systems, ties last."""
    said = Counter(each.label for each in row.judgments if each.kind == Judgment.ANSWER and each.voided_at is None)
    return [{"label": label, "votes": said[label]} for label in row.export.task.labels if said[label]]


def first(judgment: Judgment, row: Source) -> dict[str, str | None]:
    return {"first": row.export.sides.get((row.judged.pk, judgment.annotator_id))}


def section(export: Export) -> dict[str, Any]:
    """The systems with their files, how many messages and comparisons there are, and how many of these nobody was asked
    about, since both systems suggest the same.
    """
    units, parameters = export.task.units.exported(), export.draw.parameters
    return {
        "systems": parameters["systems"],
        "records": parameters["records"],
        "messages": units.order_by().values("item").distinct().count(),
        "comparisons": units.count(),
        "equal": units.filter(stage=stages.AGREED).count(),
    }
