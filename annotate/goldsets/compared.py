"""What a gold set says of two systems that people compared: the columns of its rows, and a section of its manifest."""

from collections import Counter
from typing import Any

from annotate.core import stages
from annotate.goldsets.export import Export, Source
from annotate.goldsets.records import JudgmentRow
from annotate.models import Judgment


def systems(row: Source) -> list[str]:
    found = row.unit.comparison
    assert found
    return [found.system_a, found.system_b]


def replies(row: Source) -> list[tuple[str, list[str]]]:
    found = row.unit.comparison
    assert found
    return [(found.system_a, found.replies_a), (found.system_b, found.replies_b)]


def preferred(row: Source) -> list[tuple[str, int]]:
    """Of answers that count, in the order of the systems, ties last."""
    said = Counter(each.label for each in row.judgments if each.kind == Judgment.ANSWER and each.voided_at is None)
    return [(label, said[label]) for label in row.export.task.labels if said[label]]


def first(judgment: JudgmentRow, row: Source) -> tuple[str | None]:
    return (row.export.sides.get((row.judged.pk, judgment.annotator.pk)),)


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
