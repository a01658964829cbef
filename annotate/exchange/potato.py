"""Annotations of Potato: annotated_instances (JSONL, or CSV with a column for each label) and user_state.json.

A user state has no texts, so the project's data file stands beside it. Its structure is that of `UserState.to_json` in
potato/user_state_management.py.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from annotate.exchange.items import FILE_NAME, Item, Object, Said, Tool, item_in, person_of
from annotate.kinds.forms.spans import Span
from corpora.core.values import is_missing

OF_LABEL = ":::"  # between the name of a schema and a label, in the names of columns
STATE, SPANS = "instance_id_to_label_to_value", "instance_id_to_span_to_value"


def _is_export(first: Object) -> bool:
    is_table = "instance_id" in first and any(OF_LABEL in name for name in first)
    return is_table or {"instance_id", "label_annotations"} <= first.keys() or STATE in first


def _items(objects: Iterable[Object], lost: Counter[str]) -> Iterator[Item]:
    by_key: dict[str, Item] = {}
    for row in objects:
        user = person_of(row.get("user_id") or row.get("user"))
        if "instance_id" in row:
            texts = {"text": row.get("displayed_text") or row.get("text")}
            item = item_in(by_key, str(row["instance_id"]), texts)
            labels = row.get("label_annotations") or _in_columns(row)
            _say(item, user, labels, row.get("span_annotations"))
        elif STATE in row:
            spans = row.get(SPANS) or {}
            for key in dict.fromkeys([*row[STATE], *spans]):
                item = by_key.setdefault(str(key), Item(str(key), {}))
                _say(item, user, row[STATE].get(key), spans.get(key))
        else:  # a row of the data file
            item = by_key.setdefault(str(row["id"]), Item(str(row["id"]), {}))
            item.texts = {name: value for name, value in row.items() if name not in ("id", FILE_NAME)}
    yield from by_key.values()


def _in_columns(row: Object) -> dict[str, dict[str, Any]]:
    """Return the labels of each schema in a row of a table, whose columns are named schema:::label."""
    labels: dict[str, dict[str, Any]] = {}
    for name, value in row.items():
        schema, is_label, label = name.partition(OF_LABEL)
        if is_label and not is_missing(value):
            labels.setdefault(schema, {})[label] = value
    return labels


def _say(item: Item, user: str, labels: Any, spans: Any) -> None:
    """Add the answers of a person to an item."""
    for schema, chosen in _by_schema(labels).items():
        item.answers.append(Said(user, schema, tuple(_chosen(chosen))))
    if marked := tuple(_spans(spans or ())):
        item.answers.append(Said(user, "spans", marked, "text"))


def _by_schema(labels: Any) -> dict[str, Any]:
    """Return the labels of each schema: name -> value. User states list pairs of ({schema, name}, value)."""
    if isinstance(labels, dict):
        return labels
    rows = sorted((str(label["schema"]), str(label["name"]), value) for label, value in labels or ())
    return {schema: {name: value for _, name, value in same} for schema, same in groupby(rows, key=lambda row: row[0])}


def _chosen(labels: Any) -> Iterator[str]:
    """Yield the labels of a schema: its values in text fields and scales, its names where a box was ticked."""
    for name, value in labels.items() if isinstance(labels, dict) else [(labels, True)]:
        if value is None:
            continue
        is_ticked = str(value).lower() in ("true", "on", "1") or str(value) == str(name)
        yield str(name) if is_ticked else str(value)


def _spans(annotations: Any) -> Iterator[Span]:
    """Yield spans, which are in a list, in lists by schema, or in pairs of a span and a value."""
    marks = annotations.values() if isinstance(annotations, dict) else annotations
    for mark in marks:
        for one in mark if isinstance(mark, list) else [mark]:
            if isinstance(one, dict):
                label = one.get("name") or one.get("label") or one["annotation"]
                yield Span(int(one["start"]), int(one["end"]), str(label))


POTATO = Tool("Potato", _is_export, _items)
