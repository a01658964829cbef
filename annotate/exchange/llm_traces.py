"""Feedback of LangSmith and scores of Langfuse: what people and models said about the inputs and outputs of a program.

The texts are in the runs (LangSmith) or traces (Langfuse), which may be in a file of their own. The fields are those of
LangSmith's "Feedback data format" and "Run data format", and of the public API of Langfuse (`ScoreV1`, `Trace`).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from annotate.exchange.items import Item, Object, Said, Tool, person_of

MODELS = ("model", "auto_eval", "EVAL")


def _texts(row: Object, read: str, written: str) -> Mapping[str, Any]:
    """Return the texts of a run. Objects become one field for each of their keys.

    read, written: the keys of the inputs and the outputs
    """
    texts: dict[str, Any] = {}
    for name, value in ((read, row.get(read)), (written, row.get(written))):
        values = value if isinstance(value, dict) else {"": value}
        texts |= {f"{name} {key}".strip(): content for key, content in values.items() if content is not None}
    return texts


def _add(item: Item, said: Said, source: str) -> None:
    (item.predictions if source in MODELS else item.answers).append(said)


# --- LangSmith


def _is_langsmith(first: Object) -> bool:
    return {"run_id", "key", "feedback_source"} <= first.keys() or {"run_type", "inputs"} <= first.keys()


def _of_langsmith(objects: Iterable[Object], lost: Counter[str]) -> Iterator[Item]:
    by_key: dict[str, Item] = {}
    for row in objects:
        key = str(row["run_id"] if "key" in row else row["id"])
        item = by_key.setdefault(key, Item(key, {}))
        if "key" not in row:
            item.texts = _texts(row, "inputs", "outputs")
            continue
        lost["comments"] += bool(row.get("comment"))
        lost["corrections"] += bool(row.get("correction"))
        value = row["score"] if row.get("value") is None else row["value"]
        if value is None:
            lost["feedback without a score or value"] += 1
            continue
        source = row.get("feedback_source") or {}
        by = source.get("user_name") or source.get("user_id") or source.get("type") or "unknown"
        said = Said(str(by), str(row["key"]), (_number(value),), is_grade=_is_grade(value), at=row.get("created_at"))
        _add(item, said, str(source.get("type")))
    yield from by_key.values()


def _is_grade(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and float(value).is_integer()


def _number(value: Any) -> str:
    return str(int(value)) if _is_grade(value) else str(value)


LANGSMITH = Tool("LangSmith", _is_langsmith, _of_langsmith)


# --- Langfuse


def _is_langfuse(first: Object) -> bool:
    rows = first.get("data")
    if isinstance(rows, list) and "meta" in first:
        return bool(rows) and isinstance(rows[0], dict) and _is_langfuse(rows[0])
    return {"traceId", "name", "dataType"} <= first.keys() or {"id", "input", "output", "timestamp"} <= first.keys()


def _of_langfuse(objects: Iterable[Object], lost: Counter[str]) -> Iterator[Item]:
    by_key: dict[str, Item] = {}
    for page in objects:
        for row in page.get("data", [page]):
            key = str(row["traceId"] if "dataType" in row else row["id"])
            item = by_key.setdefault(key, Item(key, {}))
            if "dataType" in row:
                _score(row, item, lost)
            else:
                item.texts = _texts(row, "input", "output")
                for score in row.get("scores") or ():
                    if isinstance(score, dict):
                        _score(score, item, lost)
                    else:
                        lost["scores that are only named by their id"] += 1
    yield from by_key.values()


def _score(row: Object, item: Item, lost: Counter[str]) -> None:
    lost["comments"] += bool(row.get("comment"))
    is_number = row["dataType"] == "NUMERIC"
    value = row["value"] if is_number else row.get("stringValue") or row.get("value")
    if row["dataType"] == "BOOLEAN" and value in (0, 1):
        value = str(bool(value))
    if value in (None, ""):
        lost["scores without a value"] += 1
        return
    is_model = row.get("source") in MODELS
    by = person_of(row["name"] if is_model else row.get("authorUserId"))
    at = row.get("timestamp") or row.get("createdAt")
    said = Said(by, str(row["name"]), (_number(value),), is_grade=is_number and _is_grade(value), at=at)
    _add(item, said, str(row.get("source")))


LANGFUSE = Tool("Langfuse", _is_langfuse, _of_langfuse)
