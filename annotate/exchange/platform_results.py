"""Results of platforms with one row per answer: batch results of Amazon Mechanical Turk, full reports of Appen (Figure
Eight), feedback of LangSmith and scores of Langfuse.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from annotate.exchange.items import SPOILED, Answer, Item, Object, ProjectError, Tool, get_item, person_name
from corpora.core.values import is_missing

INPUT, ANSWER = "Input.", "Answer."


# --- Amazon Mechanical Turk


def _is_batch(first: Object) -> bool:
    return {"HITId", "WorkerId"} <= first.keys()


def _batch_items(objects: Iterable[Object], not_kept: Counter[str]) -> Iterator[Item]:
    by_key: dict[str, Item] = {}
    for row in objects:
        texts = {name.removeprefix(INPUT): value for name, value in row.items() if name.startswith(INPUT)}
        item = get_item(by_key, str(row["HITId"]), texts)
        if str(row.get("AssignmentStatus") or "").lower() == "rejected":
            not_kept["rejected assignments"] += 1
            continue
        answers: dict[str, list[str]] = {}
        for name, value in row.items():
            if name.startswith(ANSWER) and not is_missing(value):
                _add_labels(name.removeprefix(ANSWER), value, answers)
            elif name.startswith(ANSWER):
                not_kept[SPOILED] += bool(value)
        worker, at = str(row["WorkerId"]), _parse_submit_time(row.get("SubmitTime"))
        item.answers += [Answer(worker, name, tuple(labels), at=at) for name, labels in answers.items()]
    yield from by_key.values()


def _parse_submit_time(written: Any) -> Any:
    """Convert a time such as "Mon Jan 22 12:01:28 PST 2018" to ISO 8601. Mechanical Turk writes Pacific Time."""
    try:
        day, zone, year = re.fullmatch(r"\w{3} (.*) (PST|PDT) (\d{4})", str(written)).groups()  # type: ignore[union-attr]
    except AttributeError:
        return written
    moment = datetime.strptime(f"{day} {year}", "%b %d %H:%M:%S %Y")
    return f"{moment.isoformat()}{'-08:00' if zone == 'PST' else '-07:00'}"


def _add_labels(name: str, value: Any, answers: dict[str, list[str]]) -> None:
    """Add a column's labels to the answers. A column such as `Answer.mood.happy` is true if `happy` was chosen."""
    if isinstance(value, str) and value[:1] == "[" and name == "taskAnswers":
        contents = {key: content for part in json.loads(value) for key, content in part.items()}
        for question, content in contents.items():
            _add_labels(question, content, answers)
    elif isinstance(value, dict) and "label" in value:
        answers.setdefault(name, []).append(str(value["label"]))
    elif isinstance(value, dict):
        for label, chosen in value.items():
            _add_labels(f"{name}.{label}", chosen, answers)
    elif str(value).lower() in ("true", "false") and "." in name:
        question, _, label = name.rpartition(".")
        answers.setdefault(question, []).extend([label] if str(value).lower() == "true" else [])
    elif not is_missing(value):
        answers.setdefault(name.removesuffix(".label"), []).append(str(value))


MECHANICAL_TURK = Tool("Mechanical Turk", _is_batch, _batch_items)


# --- Appen


_UNIT_SUFFIXES = ("orig__golden", "_gold", "_gold_reason")


def _is_report(first: Object) -> bool:
    return {"_unit_id", "_worker_id"} <= first.keys()


def _report_items(objects: Iterable[Object], not_kept: Counter[str], requested: Collection[str]) -> Iterator[Item]:
    """Yield the units of a full report.

    A column is a question if there is a matching `_gold` column. If there are no `_gold` columns, the questions are
    the requested columns and the columns with different values in the same unit.

    requested: the names of the questions that the user wants to import
    """
    rows = list(objects)
    units: dict[str, list[Object]] = {}
    for row in rows:
        units.setdefault(str(row["_unit_id"]), []).append(row)
    names = [name for name in rows[0] if not name.startswith("_") and not name.endswith(_UNIT_SUFFIXES)]
    questions = [name for name in names if f"{name}_gold" in rows[0]]
    if not questions:
        questions = [
            name for name in names if name in requested or any(_differs(name, unit) for unit in units.values())
        ]
    if not questions:
        raise ProjectError(
            f"The report does not show which of its columns contains the answers: {', '.join(names)}. Add --question "
            "with one of them."
        )
    for key, unit in units.items():
        item = Item(key, {name: unit[0].get(name) for name in names if name not in questions})
        for row in unit:
            if str(row.get("_tainted")).lower() == "true":
                not_kept["answers of workers whom the platform excluded"] += 1
                continue
            for name in questions:
                if is_missing(row.get(name)):
                    not_kept[SPOILED] += bool(row.get(name))
                else:
                    labels = tuple(str(row[name]).split("\n"))
                    at = _parse_created_at(row.get("_created_at"))
                    item.answers.append(Answer(str(row["_worker_id"]), name, labels, at=at))
        yield item


def _parse_created_at(written: Any) -> Any:
    """Convert a time such as "1/31/2020 10:00:00" to ISO 8601. Appen writes UTC, with the month first."""
    month, day, rest = [*str(written).split("/", 2), "", ""][:3]
    year, _, time = rest.partition(" ")
    return f"{year}-{month:0>2}-{day:0>2}T{time}" if time else written


def _differs(name: str, unit: Iterable[Object]) -> bool:
    return len({str(row.get(name)) for row in unit}) > 1


APPEN = Tool("Appen", _is_report, _report_items, takes_questions=True)


# --- LangSmith and Langfuse: feedback by annotators and models on a program's inputs and outputs. The texts are in runs
# (LangSmith) or traces (Langfuse), which may be in a separate file. The fields are documented in LangSmith's "Feedback
# data format" and "Run data format", and in Langfuse's public API (`ScoreV1`, `Trace`).


MODELS = ("model", "auto_eval", "EVAL")


def _texts(row: Object, input_key: str, output_key: str) -> Mapping[str, Any]:
    """Return the texts of a run or trace. An object has one text for each of its keys.

    input_key, output_key: keys of the inputs and outputs in the row
    """
    texts: dict[str, Any] = {}
    for name, value in ((input_key, row.get(input_key)), (output_key, row.get(output_key))):
        values = value if isinstance(value, dict) else {"": value}
        texts |= {f"{name} {key}".strip(): content for key, content in values.items() if content is not None}
    return texts


def _add(item: Item, answer: Answer, source: str) -> None:
    (item.predictions if source in MODELS else item.answers).append(answer)


# --- LangSmith


def _is_langsmith(first: Object) -> bool:
    return {"run_id", "key", "feedback_source"} <= first.keys() or {"run_type", "inputs"} <= first.keys()


def _langsmith_items(objects: Iterable[Object], not_kept: Counter[str]) -> Iterator[Item]:
    by_key: dict[str, Item] = {}
    for row in objects:
        key = str(row["run_id"] if "key" in row else row["id"])
        item = by_key.setdefault(key, Item(key, {}))
        if "key" not in row:
            item.texts = _texts(row, "inputs", "outputs")
            continue
        not_kept["comments"] += bool(row.get("comment"))
        not_kept["corrections"] += bool(row.get("correction"))
        value = row["score"] if row.get("value") is None else row["value"]
        if value is None:
            not_kept["feedback without a score or value"] += 1
            continue
        source = row.get("feedback_source") or {}
        by = source.get("user_name") or source.get("user_id") or source.get("type") or "unknown"
        at, is_grade = row.get("created_at"), _is_grade(value)
        answer = Answer(str(by), str(row["key"]), (_format_number(value),), is_grade=is_grade, at=at)
        _add(item, answer, str(source.get("type")))
    yield from by_key.values()


def _is_grade(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and float(value).is_integer()


def _format_number(value: Any) -> str:
    return str(int(value)) if _is_grade(value) else str(value)


LANGSMITH = Tool("LangSmith", _is_langsmith, _langsmith_items)


# --- Langfuse


def _is_langfuse(first: Object) -> bool:
    rows = first.get("data")
    if isinstance(rows, list) and "meta" in first:
        return bool(rows) and isinstance(rows[0], dict) and _is_langfuse(rows[0])
    return {"traceId", "name", "dataType"} <= first.keys() or {"id", "input", "output", "timestamp"} <= first.keys()


def _langfuse_items(objects: Iterable[Object], not_kept: Counter[str]) -> Iterator[Item]:
    by_key: dict[str, Item] = {}
    for page in objects:
        for row in page.get("data", [page]):
            key = str(row["traceId"] if "dataType" in row else row["id"])
            item = by_key.setdefault(key, Item(key, {}))
            if "dataType" in row:
                _add_score(row, item, not_kept)
            else:
                item.texts = _texts(row, "input", "output")
                for score in row.get("scores") or ():
                    if isinstance(score, dict):
                        _add_score(score, item, not_kept)
                    else:
                        not_kept["scores that are only named by their id"] += 1
    yield from by_key.values()


def _add_score(row: Object, item: Item, not_kept: Counter[str]) -> None:
    not_kept["comments"] += bool(row.get("comment"))
    is_number = row["dataType"] == "NUMERIC"
    value = row["value"] if is_number else row.get("stringValue") or row.get("value")
    if row["dataType"] == "BOOLEAN" and value in (0, 1):
        value = str(bool(value))
    if value in (None, ""):
        not_kept["scores without a value"] += 1
        return
    is_model = row.get("source") in MODELS
    by = person_name(row["name"] if is_model else row.get("authorUserId"))
    at = row.get("timestamp") or row.get("createdAt")
    answer = Answer(by, str(row["name"]), (_format_number(value),), is_grade=is_number and _is_grade(value), at=at)
    _add(item, answer, str(row.get("source")))


LANGFUSE = Tool("Langfuse", _is_langfuse, _langfuse_items)
