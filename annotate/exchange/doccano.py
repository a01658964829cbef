"""Exports of doccano: JSONL or CSV with one line for each text, and a ZIP file with one JSONL file for each person.

In projects in which people share their answers, the only file is all.jsonl (or all.csv), and the person is unknown.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from annotate.exchange.project import FILE_NAME, GOLD, Item, Object, Said, Tool
from annotate.kinds.forms.spans import Span

_ANSWERS = ("label", "labels", "entities", "cats", "annotations")
# Columns that Assay adds, because doccano's files state neither the person nor the time of an answer.
BY, AT = "annotated_by", "answered_at"
_LEFT_OUT = (
    BY,
    AT,
    "id",
    "text",
    "data",
    "meta",
    "Comments",
    "comments",
    "relations",
    "annotation_approver",
    FILE_NAME,
)


def _is_export(first: Object) -> bool:
    has_text = isinstance(first.get("text", first.get("data")), str)
    answers = [first[name] for name in _ANSWERS if name in first]
    return has_text and "_input_hash" not in first and any(isinstance(value, list | str) for value in answers)


def _items(objects: Iterable[Object], lost: Counter[str]) -> Iterator[Item]:
    by_key: dict[str, Item] = {}
    for number, row in enumerate(objects, 1):
        key, text = str(row.get("id", number)), row.get("text", row.get("data"))
        further = {name: value for name, value in row.items() if name not in (*_ANSWERS, *_LEFT_OUT)}
        meta = row.get("meta") if isinstance(row.get("meta"), dict) else {}
        item = by_key.setdefault(key, Item(key, {"text": text, **(meta or {}), **further}))
        lost["comments"] += len(row.get("Comments") or row.get("comments") or ())
        lost["relations"] += len(row.get("relations") or ())
        by = str(row.get(BY) or row.get(FILE_NAME) or "unknown")
        (item.predictions if by == GOLD else item.answers).extend(_answers(row, "unknown" if by == "all" else by))
    yield from by_key.values()


def _answers(row: Object, by: str) -> Iterator[Said]:
    value = next((row[name] for name in _ANSWERS if row.get(name)), None)
    if isinstance(value, str):
        yield Said(by, "", tuple(label for label in value.split("#") if label), at=row.get(AT))
    elif value and all(isinstance(mark, dict) and "user" in mark for mark in value):  # doccano 1.0, as JSON
        people: dict[Any, list[Any]] = {}
        for mark in value:
            people.setdefault(mark["user"], []).append(_mark(mark))
        yield from (Said(str(user), "", tuple(labels), "text") for user, labels in people.items())
    elif value:
        yield Said(by, "", tuple(map(_mark, value)), "text", at=row.get(AT))


def _mark(mark: Any) -> Any:
    if isinstance(mark, list):
        return Span(int(mark[0]), int(mark[1]), str(mark[2]))
    if isinstance(mark, dict) and "start_offset" in mark:
        return Span(int(mark["start_offset"]), int(mark["end_offset"]), str(mark["label"]))
    return str(mark["label"]) if isinstance(mark, dict) else str(mark)


DOCCANO = Tool("doccano", _is_export, _items)
