"""Exports of Argilla: records of version 2 (JSON, or flat columns as in datasets on the Hugging Face Hub), feedback
records of version 1 (flat columns), and the older records of text and token classification.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from annotate.exchange.items import UNKNOWN, Answer, Item, Object, Tool, person_name
from annotate.kinds.forms.spans import Span

RESPONSES, SUGGESTION, SUBMITTED = ".responses", ".suggestion", ("submitted", None)
_RESPONSE = {"user_id", "value", "status"}


def _is_export(first: Object) -> bool:
    is_nested = isinstance(first.get("fields"), dict) and ("responses" in first or "suggestions" in first)
    is_flat = any(name.endswith(RESPONSES) for name in first) or any(map(_is_response, first.values()))
    return is_nested or is_flat or {"annotation", "annotation_agent"} <= first.keys()


def _is_response(value: Any) -> bool:
    """Return whether a value contains the responses to a question in a version 1 feedback dataset."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(entry, dict) and entry.keys() >= _RESPONSE for entry in value)
    return isinstance(value, dict) and value.keys() >= _RESPONSE


def _items(objects: Iterable[Object], not_kept: Counter[str]) -> Iterator[Item]:
    for number, record in enumerate(objects, 1):
        key = str(record.get("id") or record.get("external_id") or number)
        if "annotation_agent" in record:
            yield _old_item(key, record)
        elif isinstance(record.get("fields"), dict):
            yield _nested_item(key, record, not_kept)
        elif any(name.endswith(RESPONSES) for name in record):
            yield _flat_item(key, record, not_kept)
        else:
            yield _feedback_item(key, record, not_kept)


def _nested_item(key: str, record: Object, not_kept: Counter[str]) -> Item:
    item = Item(key, {**record["fields"], **(record.get("metadata") or {})})
    for question, response in _responses(record.get("responses") or {}):
        _add_response(item, response.get("user_id"), question, response.get("value"), response.get("status"), not_kept)
    suggestions = record.get("suggestions") or {}
    if isinstance(suggestions, list):  # as the server's API returns them
        suggestions = {str(entry.get("question_name") or entry.get("question_id")): entry for entry in suggestions}
    for question, suggestion in suggestions.items():
        if suggestion:
            prediction = Answer(str(suggestion.get("agent") or "model"), question, _labels(suggestion.get("value")))
            item.predictions.append(prediction)
    return item


def _responses(responses: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (question, response). The server's API returns a list with one object per annotator."""
    if isinstance(responses, list):
        for response in responses:
            for question, answer in (response.get("values") or {}).items():
                yield question, {**response, **answer}
    else:
        for question, answers in responses.items():
            yield from ((question, answer) for answer in answers)


def _flat_item(key: str, record: Object, not_kept: Counter[str]) -> Item:
    questions = [name.removesuffix(RESPONSES) for name in record if name.endswith(RESPONSES)]
    prefixes = tuple(f"{question}." for question in questions)
    texts = {
        name: value
        for name, value in record.items()
        if not name.startswith(prefixes) and name not in ("id", "_server_id", "status")
    }
    item = Item(key, texts)
    for question in questions:
        values = record[f"{question}{RESPONSES}"] or ()
        users = record.get(f"{question}{RESPONSES}.users") or [UNKNOWN] * len(values)
        statuses = record.get(f"{question}{RESPONSES}.status") or [None] * len(values)
        for value, user, status in zip(values, users, statuses, strict=False):
            _add_response(item, user, question, value, status, not_kept)
        if (value := record.get(f"{question}{SUGGESTION}")) is not None:
            agent = str(record.get(f"{question}{SUGGESTION}.agent") or "model")
            item.predictions.append(Answer(agent, question, _labels(value)))
    return item


def _feedback_item(key: str, record: Object, not_kept: Counter[str]) -> Item:
    questions = [name for name, value in record.items() if _is_response(value)]
    other_columns = ("id", "external_id", "metadata", *questions)
    texts = {
        name: value
        for name, value in record.items()
        if name not in other_columns and not any(name.startswith(f"{question}-suggestion") for question in questions)
    }
    item = Item(key, texts)
    for question in questions:
        for response in _rows(record[question]):
            _add_response(item, response["user_id"], question, response["value"], response["status"], not_kept)
        if (value := record.get(f"{question}-suggestion")) is not None:
            agent = (record.get(f"{question}-suggestion-metadata") or {}).get("agent") or "model"
            item.predictions.append(Answer(str(agent), question, _labels(value)))
    return item


def _rows(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the responses in a column, which is a list of objects or an object of lists."""
    if isinstance(value, list):
        yield from value
    else:
        names = ("user_id", "value", "status")
        yield from (dict(zip(names, row, strict=True)) for row in zip(*(value[name] for name in names), strict=True))


def _add_response(item: Item, user: Any, question: str, value: Any, status: Any, not_kept: Counter[str]) -> None:
    if value is None or status not in SUBMITTED:
        not_kept[f"answers that were {status or 'empty'}"] += 1
    else:
        is_grade = isinstance(value, int) and not isinstance(value, bool)
        not_kept["ranks below the first"] += isinstance(value, list) and any(map(_is_lower, value))
        item.answers.append(Answer(person_name(user), question, _labels(value), is_grade=is_grade))


def _is_lower(value: Any) -> bool:
    return isinstance(value, dict) and value.get("rank", 1) != 1


def _labels(value: Any) -> tuple[Any, ...]:
    """Return the labels in an answer: a single label, several labels, spans, or the labels ranked first."""
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        return (str(value),)
    if value and all(isinstance(mark, dict) and "start" in mark for mark in value):
        return tuple(Span(int(mark["start"]), int(mark["end"]), str(mark["label"])) for mark in value)
    if value and all(isinstance(rank, dict) and "rank" in rank for rank in value):
        return tuple(str(rank["value"]) for rank in value if rank["rank"] == 1)
    return tuple(str(label.get("label", label) if isinstance(label, dict) else label) for label in value)


def _old_item(key: str, record: Object) -> Item:
    """Return the item of an older record of text or token classification."""
    inputs = record.get("inputs") or record.get("text")
    texts = inputs if isinstance(inputs, dict) else {"text": inputs}
    item = Item(key, {**texts, **(record.get("metadata") or {})})
    if record.get("annotation") not in (None, []):
        labels = _old_labels(record["annotation"])
        item.answers.append(Answer(person_name(record.get("annotation_agent")), "", labels))
    if predicted := record.get("prediction"):
        agent = str(record.get("prediction_agent") or "model")
        first = predicted[:1] if isinstance(predicted[0], dict) and "score" in predicted[0] else predicted
        item.predictions.append(Answer(agent, "", _old_labels(first)))
    return item


def _old_labels(value: Any) -> tuple[Any, ...]:
    ranges = [mark for mark in value if isinstance(mark, list | tuple)] if isinstance(value, list) else []
    if ranges and isinstance(ranges[0][1], int):
        return tuple(Span(int(start), int(end), str(label)) for label, start, end, *_ in ranges)
    return tuple(str(label) for label, *_ in ranges) if ranges else _labels(value)


ARGILLA = Tool("Argilla", _is_export, _items)
