"""Results of platforms as one row for each answer: batch results of Amazon Mechanical Turk, full reports of Appen
(Figure Eight), feedback of LangSmith and scores of Langfuse.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from annotate.exchange.items import SPOILED, Answer, Item, Object, ProjectError, Tool, item_in, person_of
from corpora.core.values import is_missing

INPUT, ANSWER = "Input.", "Answer."


# --- Amazon Mechanical Turk


def _is_batch(first: Object) -> bool:
    return {"HITId", "WorkerId"} <= first.keys()


def _of_batch(objects: Iterable[Object], lost: Counter[str]) -> Iterator[Item]:
    by_key: dict[str, Item] = {}
    for row in objects:
        texts = {name.removeprefix(INPUT): value for name, value in row.items() if name.startswith(INPUT)}
        item = item_in(by_key, str(row["HITId"]), texts)
        if str(row.get("AssignmentStatus") or "").lower() == "rejected":
            lost["rejected assignments"] += 1
            continue
        answers: dict[str, list[str]] = {}
        for name, value in row.items():
            if name.startswith(ANSWER) and not is_missing(value):
                _answer(name.removeprefix(ANSWER), value, answers)
            elif name.startswith(ANSWER):
                lost[SPOILED] += bool(value)
        worker, at = str(row["WorkerId"]), _submitted(row.get("SubmitTime"))
        item.answers += [Answer(worker, name, tuple(labels), at=at) for name, labels in answers.items()]
    yield from by_key.values()


def _submitted(written: Any) -> Any:
    """Return a time such as "Mon Jan 22 12:01:28 PST 2018" in ISO 8601. The platform writes Pacific Time."""
    try:
        day, zone, year = re.fullmatch(r"\w{3} (.*) (PST|PDT) (\d{4})", str(written)).groups()  # type: ignore[union-attr]
    except AttributeError:
        return written
    moment = datetime.strptime(f"{day} {year}", "%b %d %H:%M:%S %Y")
    return f"{moment.isoformat()}{'-08:00' if zone == 'PST' else '-07:00'}"


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
    elif not is_missing(value):
        answers.setdefault(name.removesuffix(".label"), []).append(str(value))


MECHANICAL_TURK = Tool("Mechanical Turk", _is_batch, _of_batch)


# --- Appen


_OF_UNITS = ("orig__golden", "_gold", "_gold_reason")


def _is_report(first: Object) -> bool:
    return {"_unit_id", "_worker_id"} <= first.keys()


def _of_report(objects: Iterable[Object], lost: Counter[str], stated: Collection[str]) -> Iterator[Item]:
    """Yield the units of a full report. Columns whose values differ within some unit are questions.

    stated: the names of questions that the user stated
    """
    rows = list(objects)
    units: dict[str, list[Object]] = {}
    for row in rows:
        units.setdefault(str(row["_unit_id"]), []).append(row)
    names = [name for name in rows[0] if not name.startswith("_") and not name.endswith(_OF_UNITS)]
    questions = [name for name in names if f"{name}_gold" in rows[0]]
    if not questions:
        questions = [name for name in names if name in stated or any(_differs(name, unit) for unit in units.values())]
    if not questions:
        raise ProjectError(
            f"The report does not show which of its columns contains the answers: {', '.join(names)}. Add --question "
            "with one of them."
        )
    for key, unit in units.items():
        item = Item(key, {name: unit[0].get(name) for name in names if name not in questions})
        for row in unit:
            if str(row.get("_tainted")).lower() == "true":
                lost["answers of workers whom the platform excluded"] += 1
                continue
            for name in questions:
                if is_missing(row.get(name)):
                    lost[SPOILED] += bool(row.get(name))
                else:
                    labels = tuple(str(row[name]).split("\n"))
                    at = _created(row.get("_created_at"))
                    item.answers.append(Answer(str(row["_worker_id"]), name, labels, at=at))
        yield item


def _created(written: Any) -> Any:
    """Return a time such as "1/31/2020 10:00:00" in ISO 8601. The platform writes UTC, with the month first."""
    month, day, rest = [*str(written).split("/", 2), "", ""][:3]
    year, _, time = rest.partition(" ")
    return f"{year}-{month:0>2}-{day:0>2}T{time}" if time else written


def _differs(name: str, unit: Iterable[Object]) -> bool:
    return len({str(row.get(name)) for row in unit}) > 1


APPEN = Tool("Appen", _is_report, _of_report, takes_questions=True)


# --- LangSmith and Langfuse: what people and models said about the inputs and outputs of a program. The texts are in
# the runs (LangSmith) or traces (Langfuse), which may be in a file of their own. The fields are those of LangSmith's
# "Feedback data format" and "Run data format", and of the public API of Langfuse (`ScoreV1`, `Trace`).


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


def _add(item: Item, answer: Answer, source: str) -> None:
    (item.predictions if source in MODELS else item.answers).append(answer)


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
        at, is_grade = row.get("created_at"), _is_grade(value)
        answer = Answer(str(by), str(row["key"]), (_number(value),), is_grade=is_grade, at=at)
        _add(item, answer, str(source.get("type")))
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
    answer = Answer(by, str(row["name"]), (_number(value),), is_grade=is_number and _is_grade(value), at=at)
    _add(item, answer, str(row.get("source")))


LANGFUSE = Tool("Langfuse", _is_langfuse, _of_langfuse)
