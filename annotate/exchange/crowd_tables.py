"""Results of crowdsourcing platforms and other tools as one row for each answer: batch results of Amazon Mechanical
Turk, full reports of Appen (Figure Eight), and the annotated instances of Potato.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from annotate.exchange.project import Item, Object, Said, Tool
from annotate.kinds.forms.spans import Span

INPUT, ANSWER = "Input.", "Answer."


# --- Amazon Mechanical Turk


def _is_batch(first: Object) -> bool:
    return {"HITId", "WorkerId"} <= first.keys()


def _of_batch(objects: Iterable[Object], lost: Counter[str]) -> Iterator[Item]:
    by_key: dict[str, Item] = {}
    for row in objects:
        texts = {name.removeprefix(INPUT): value for name, value in row.items() if name.startswith(INPUT)}
        item = by_key.setdefault(str(row["HITId"]), Item(str(row["HITId"]), texts))
        if str(row.get("AssignmentStatus") or "").lower() == "rejected":
            lost["rejected assignments"] += 1
            continue
        answers: dict[str, list[str]] = {}
        for name, value in row.items():
            if name.startswith(ANSWER):
                _answer(name.removeprefix(ANSWER), value, answers)
        item.answers += [Said(str(row["WorkerId"]), name, tuple(labels)) for name, labels in answers.items()]
    yield from by_key.values()


def _answer(name: str, value: Any, answers: dict[str, list[str]]) -> None:
    """Add the answers in a column. Columns such as Answer.mood.happy contain true for the chosen one."""
    if isinstance(value, str) and value[:1] == "[" and name == "taskAnswers":
        for question, content in {key: one for part in json.loads(value) for key, one in part.items()}.items():
            _answer(question, content, answers)
    elif isinstance(value, dict) and "label" in value:
        answers.setdefault(name, []).append(str(value["label"]))
    elif isinstance(value, dict):
        for label, chosen in value.items():
            _answer(f"{name}.{label}", chosen, answers)
    elif str(value).lower() in ("true", "false") and "." in name:
        question, _, label = name.rpartition(".")
        answers.setdefault(question, []).extend([label] if str(value).lower() == "true" else [])
    elif value not in (None, ""):
        answers.setdefault(name.removesuffix(".label"), []).append(str(value))


MECHANICAL_TURK = Tool("Mechanical Turk", _is_batch, _of_batch)


# --- Appen


_OF_UNITS = ("orig__golden", "_gold", "_gold_reason")


def _is_report(first: Object) -> bool:
    return {"_unit_id", "_worker_id"} <= first.keys()


def _of_report(objects: Iterable[Object], lost: Counter[str]) -> Iterator[Item]:
    """Yield the units of a full report. Columns whose values differ within some unit are questions."""
    rows = list(objects)
    units: dict[str, list[Object]] = {}
    for row in rows:
        units.setdefault(str(row["_unit_id"]), []).append(row)
    names = [name for name in rows[0] if not name.startswith("_") and not name.endswith(_OF_UNITS)]
    asked = [name for name in names if f"{name}_gold" in rows[0]]
    asked = asked or [name for name in names if any(_differs(name, unit) for unit in units.values())]
    for key, unit in units.items():
        item = Item(key, {name: unit[0].get(name) for name in names if name not in asked})
        for row in unit:
            if str(row.get("_tainted")).lower() == "true":
                lost["answers of workers whom the platform excluded"] += 1
                continue
            for name in asked:
                if row.get(name) not in (None, ""):
                    item.answers.append(Said(str(row["_worker_id"]), name, tuple(str(row[name]).split("\n"))))
        yield item


def _differs(name: str, unit: Iterable[Object]) -> bool:
    return len({str(row.get(name)) for row in unit}) > 1


APPEN = Tool("Appen", _is_report, _of_report)


# --- Potato


def _is_instance(first: Object) -> bool:
    return {"instance_id", "label_annotations"} <= first.keys() or "instance_id_to_label_to_value" in first


def _of_instances(objects: Iterable[Object], lost: Counter[str]) -> Iterator[Item]:
    by_key: dict[str, Item] = {}
    for row in objects:
        user = str(row.get("user_id") or row.get("user") or "unknown")
        if "instance_id" in row:
            text = row.get("displayed_text") or row.get("text")
            item = by_key.setdefault(str(row["instance_id"]), Item(str(row["instance_id"]), {"text": text}))
            for schema, labels in (row.get("label_annotations") or {}).items():
                item.answers.append(Said(user, schema, tuple(_chosen(labels))))
            if spans := list(_spans(row.get("span_annotations") or ())):
                item.answers.append(Said(user, "spans", tuple(spans), "text"))
        else:
            lost["answers of a user state, which has no texts"] += len(row["instance_id_to_label_to_value"])
    yield from by_key.values()


def _chosen(labels: Any) -> Iterator[str]:
    """Yield the labels of a schema: its values in text fields and scales, its names where a box was ticked."""
    for name, value in labels.items() if isinstance(labels, dict) else [(labels, True)]:
        is_ticked = str(value).lower() in ("true", "on", "1") or str(value) == str(name)
        yield str(name) if is_ticked else str(value)


def _spans(annotations: Any) -> Iterator[Span]:
    marks = annotations.values() if isinstance(annotations, dict) else annotations
    for mark in marks:
        for one in mark if isinstance(mark, list) else [mark]:
            yield Span(
                int(one["start"]), int(one["end"]), str(one.get("name") or one.get("label") or one["annotation"])
            )


POTATO = Tool("Potato", _is_instance, _of_instances)
