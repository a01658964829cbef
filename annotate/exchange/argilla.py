"""Exports of Argilla: records of version 2 (JSON, or flat columns as in a dataset of the Hugging Face hub), feedback
records of version 1 (flat columns), and the older records for text and token classification.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from annotate.exchange.items import UNKNOWN, Answer, Item, Object, Tool, person_of
from annotate.kinds.forms.spans import Span

RESPONSES, SUGGESTION, SUBMITTED = ".responses", ".suggestion", ("submitted", None)
_RESPONSE = {"user_id", "value", "status"}


def _is_export(first: Object) -> bool:
    is_nested = isinstance(first.get("fields"), dict) and ("responses" in first or "suggestions" in first)
    is_flat = any(name.endswith(RESPONSES) for name in first) or any(map(_is_response, first.values()))
    return is_nested or is_flat or {"annotation", "annotation_agent"} <= first.keys()


def _is_response(value: Any) -> bool:
    """Return whether a value is the column of a question in a feedback dataset of version 1."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(one, dict) and one.keys() >= _RESPONSE for one in value)
    return isinstance(value, dict) and value.keys() >= _RESPONSE


def _items(objects: Iterable[Object], lost: Counter[str]) -> Iterator[Item]:
    for number, record in enumerate(objects, 1):
        key = str(record.get("id") or record.get("external_id") or number)
        if "annotation_agent" in record:
            yield _old(key, record)
        elif isinstance(record.get("fields"), dict):
            yield _nested(key, record, lost)
        elif any(name.endswith(RESPONSES) for name in record):
            yield _flat(key, record, lost)
        else:
            yield _feedback(key, record, lost)


def _nested(key: str, record: Object, lost: Counter[str]) -> Item:
    item = Item(key, {**record["fields"], **(record.get("metadata") or {})})
    for question, response in _responses(record.get("responses") or {}):
        _respond(item, response.get("user_id"), question, response.get("value"), response.get("status"), lost)
    suggestions = record.get("suggestions") or {}
    if isinstance(suggestions, list):  # as the server's API returns them
        suggestions = {str(entry.get("question_name") or entry.get("question_id")): entry for entry in suggestions}
    for question, suggestion in suggestions.items():
        if suggestion:
            prediction = Answer(str(suggestion.get("agent") or "model"), question, _labels(suggestion.get("value")))
            item.predictions.append(prediction)
    return item


def _responses(responses: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each response with its question. The server's API returns a list with one object for each person."""
    if isinstance(responses, list):
        for response in responses:
            for question, answer in (response.get("values") or {}).items():
                yield question, {**response, **answer}
    else:
        for question, answers in responses.items():
            yield from ((question, answer) for answer in answers)


def _flat(key: str, record: Object, lost: Counter[str]) -> Item:
    questions = [name.removesuffix(RESPONSES) for name in record if name.endswith(RESPONSES)]
    of_questions = tuple(f"{question}." for question in questions)
    texts = {
        name: value
        for name, value in record.items()
        if not name.startswith(of_questions) and name not in ("id", "_server_id", "status")
    }
    item = Item(key, texts)
    for question in questions:
        values = record[f"{question}{RESPONSES}"] or ()
        users = record.get(f"{question}{RESPONSES}.users") or [UNKNOWN] * len(values)
        statuses = record.get(f"{question}{RESPONSES}.status") or [None] * len(values)
        for value, user, status in zip(values, users, statuses, strict=False):
            _respond(item, user, question, value, status, lost)
        if (value := record.get(f"{question}{SUGGESTION}")) is not None:
            agent = str(record.get(f"{question}{SUGGESTION}.agent") or "model")
            item.predictions.append(Answer(agent, question, _labels(value)))
    return item


def _feedback(key: str, record: Object, lost: Counter[str]) -> Item:
    questions = [name for name, value in record.items() if _is_response(value)]
    beside = ("id", "external_id", "metadata", *questions)
    texts = {
        name: value
        for name, value in record.items()
        if name not in beside and not any(name.startswith(f"{question}-suggestion") for question in questions)
    }
    item = Item(key, texts)
    for question in questions:
        for response in _rows(record[question]):
            _respond(item, response["user_id"], question, response["value"], response["status"], lost)
        if (value := record.get(f"{question}-suggestion")) is not None:
            agent = (record.get(f"{question}-suggestion-metadata") or {}).get("agent") or "model"
            item.predictions.append(Answer(str(agent), question, _labels(value)))
    return item


def _rows(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the responses in a column, which are stored as a list of objects or as an object of lists."""
    if isinstance(value, list):
        yield from value
    else:
        names = ("user_id", "value", "status")
        yield from (dict(zip(names, row, strict=True)) for row in zip(*(value[name] for name in names), strict=True))


def _respond(item: Item, user: Any, question: str, value: Any, status: Any, lost: Counter[str]) -> None:
    if value is None or status not in SUBMITTED:
        lost[f"answers that were {status or 'empty'}"] += 1
    else:
        is_grade = isinstance(value, int) and not isinstance(value, bool)
        lost["ranks below the first"] += isinstance(value, list) and any(map(_is_lower, value))
        item.answers.append(Answer(person_of(user), question, _labels(value), is_grade=is_grade))


def _is_lower(value: Any) -> bool:
    return isinstance(value, dict) and value.get("rank", 1) != 1


def _labels(value: Any) -> tuple[Any, ...]:
    """Return the labels in an answer: one, several, ranges, or the first of a ranking."""
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        return (str(value),)
    if value and all(isinstance(mark, dict) and "start" in mark for mark in value):
        return tuple(Span(int(mark["start"]), int(mark["end"]), str(mark["label"])) for mark in value)
    if value and all(isinstance(rank, dict) and "rank" in rank for rank in value):
        return tuple(str(rank["value"]) for rank in value if rank["rank"] == 1)
    return tuple(str(one.get("label", one) if isinstance(one, dict) else one) for one in value)


def _old(key: str, record: Object) -> Item:
    """Return a record of version 1 for text or token classification."""
    inputs = record.get("inputs") or record.get("text")
    texts = inputs if isinstance(inputs, dict) else {"text": inputs}
    item = Item(key, {**texts, **(record.get("metadata") or {})})
    if record.get("annotation") not in (None, []):
        labels = _old_labels(record["annotation"])
        item.answers.append(Answer(person_of(record.get("annotation_agent")), "", labels))
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
