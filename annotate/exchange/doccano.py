"""Exports of doccano: JSONL or CSV with one line per text, and a ZIP file with one JSONL file per annotator.

If annotators share their answers, the ZIP file contains only all.jsonl (or all.csv), and the annotators are unknown.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from annotate.exchange.items import FILE_NAME, GOLD, SPOILED, UNKNOWN, Answer, Item, Object, Tool, get_item, person_name
from annotate.kinds.forms.spans import Span
from corpora.core.values import is_missing

_ANSWERS = ("label", "labels", "entities", "cats", "annotations")
# Columns that Assay adds, because doccano's files state neither the annotator nor the time of an answer.
BY, AT = "annotated_by", "answered_at"
_IGNORED = (
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


def _items(objects: Iterable[Object], not_kept: Counter[str]) -> Iterator[Item]:
    by_key: dict[str, Item] = {}
    for number, row in enumerate(objects, 1):
        key, text = str(row.get("id", number)), row.get("text", row.get("data"))
        data = {name: value for name, value in row.items() if name not in (*_ANSWERS, *_IGNORED)}
        item = get_item(by_key, key, {"text": text, **_metadata(row.get("meta")), **data})
        not_kept["comments"] += len(row.get("Comments") or row.get("comments") or ())
        not_kept["relations"] += len(row.get("relations") or ())
        not_kept["approvals"] += bool(row.get("annotation_approver"))
        by = person_name(row.get(BY) or row.get(FILE_NAME))
        columns = [name for name in _ANSWERS if row.get(name)]
        # In CSV, a missing label may have become nan.
        missing = [name for name in columns if isinstance(row[name], str) and is_missing(row[name])]
        not_kept[SPOILED] += len(missing)
        columns = [name for name in columns if name not in missing]
        for name in columns:
            # Projects for intent detection have two questions: spans and classes.
            answers = _answers(row[name], UNKNOWN if by == "all" else by, name if "cats" in row else "", row.get(AT))
            (item.predictions if by == GOLD else item.answers).extend(answers)
    yield from by_key.values()


def _metadata(written: Any) -> Mapping[str, Any]:
    """Return a row's metadata. Older versions of doccano wrote the metadata as text."""
    try:
        value = json.loads(written) if isinstance(written, str) else written
    except ValueError:
        return {"meta": written}
    return value if isinstance(value, dict) else {}


def _answers(value: Any, by: str, question: str, at: Any) -> Iterator[Answer]:
    if isinstance(value, str):
        yield Answer(by, question, tuple(label for label in value.split("#") if label), at=at)
    elif value and all(isinstance(mark, dict) and "user" in mark for mark in value):  # doccano 1.0, as JSON
        people: dict[Any, list[Any]] = {}
        for mark in value:
            people.setdefault(mark["user"], []).append(_mark(mark))
        yield from (Answer(str(user), question, tuple(labels), "text") for user, labels in people.items())
    elif value:
        yield Answer(by, question, tuple(map(_mark, value)), "text", at=at)


def _mark(mark: Any) -> Any:
    if isinstance(mark, list):
        return Span(int(mark[0]), int(mark[1]), str(mark[2]))
    if isinstance(mark, dict) and "start_offset" in mark:
        return Span(int(mark["start_offset"]), int(mark["end_offset"]), str(mark["label"]))
    return str(mark["label"]) if isinstance(mark, dict) else str(mark)


DOCCANO = Tool("doccano", _is_export, _items)
