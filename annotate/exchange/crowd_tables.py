"""Results of crowdsourcing platforms as one row for each answer: batch results of Amazon Mechanical Turk, and full
reports of Appen (Figure Eight).
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import Any

from annotate.exchange.items import SPOILED, Item, Object, ProjectError, Said, Tool, item_in
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
        item.answers += [Said(worker, name, tuple(labels), at=at) for name, labels in answers.items()]
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
    asked = [name for name in names if f"{name}_gold" in rows[0]]
    asked = asked or [name for name in names if name in stated or any(_differs(name, unit) for unit in units.values())]
    if not asked:
        raise ProjectError(
            f"The report does not show which of its columns contains the answers: {', '.join(names)}. Add --question "
            "with one of them."
        )
    for key, unit in units.items():
        item = Item(key, {name: unit[0].get(name) for name in names if name not in asked})
        for row in unit:
            if str(row.get("_tainted")).lower() == "true":
                lost["answers of workers whom the platform excluded"] += 1
                continue
            for name in asked:
                if is_missing(row.get(name)):
                    lost[SPOILED] += bool(row.get(name))
                else:
                    labels = tuple(str(row[name]).split("\n"))
                    item.answers.append(Said(str(row["_worker_id"]), name, labels, at=_created(row.get("_created_at"))))
        yield item


def _created(written: Any) -> Any:
    """Return a time such as "1/31/2020 10:00:00" in ISO 8601. The platform writes UTC, with the month first."""
    month, day, rest = [*str(written).split("/", 2), "", ""][:3]
    year, _, time = rest.partition(" ")
    return f"{year}-{month:0>2}-{day:0>2}T{time}" if time else written


def _differs(name: str, unit: Iterable[Object]) -> bool:
    return len({str(row.get(name)) for row in unit}) > 1


APPEN = Tool("Appen", _is_report, _of_report, takes_questions=True)
