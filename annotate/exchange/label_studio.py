"""Exports of Label Studio: JSON with its tasks (also with the older `completions`), JSON_MIN and CSV.

In JSON, an annotation has a `result` for each question (`from_name`). JSON_MIN and CSV have one row for each
annotation, with a column for each question.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from annotate.exchange.items import (
    FILE_NAME,
    GOLD,
    LANGUAGE_NAMES,
    SENTENCE,
    Answer,
    Item,
    Object,
    ProjectError,
    Tool,
    item_in,
    person_of,
)
from annotate.kinds.file_sections import MOST_NAME
from annotate.kinds.forms.spans import Span
from corpora.core.values import is_missing
from corpora.sources.recognition import ALSO

# Columns of JSON_MIN and CSV that are neither data nor questions.
_OF_ROWS = ("annotation_id", "annotator", "created_at", "updated_at", "lead_time", "id", "agreement", "ground_truth")
# Types of results that are ranges or one of some labels -> the key of their labels.
_KINDS = {"choices": "choices", "labels": "labels", "hypertextlabels": "hypertextlabels", "rating": "rating"}
_FEW_ROWS = 10  # In fewer rows, no label may be repeated.
MISPLACED = "marks whose words do not stand at their place"
_PAIRWISE = {"left": "first", "right": "second", "none": "tie"}


def _is_export(first: Object) -> bool:
    has_results = any(isinstance(first.get(name), list) for name in ("annotations", "completions"))
    is_task = isinstance(first.get("data"), dict) and has_results
    return is_task or _is_stored(first) or {"annotation_id", "annotator"} <= first.keys()


def _is_stored(row: Object) -> bool:
    """Return whether an object is an annotation with its task, as Label Studio writes it to a storage."""
    task = row.get("task")
    return isinstance(row.get("result"), list) and isinstance(task, dict) and isinstance(task.get("data"), dict)


def _items(objects: Iterable[Object], lost: Counter[str], stated: Collection[str]) -> Iterator[Item]:
    objects = iter(objects)
    first = next(objects)
    everything = chain([first], objects)
    if _is_stored(first):
        yield from _of_storage(everything, lost)
        return
    if not isinstance(first.get("data"), dict):
        yield from _of_rows(list(everything), stated, lost)
        return
    keys = set[str]()
    for number, task in enumerate(everything, 1):
        key, data = _identified(task, number, keys)
        keys.add(key)
        item = Item(key, data)
        for annotation in task.get("annotations") or task.get("completions") or ():
            _annotate(item, annotation, lost)
        for prediction in task.get("predictions") or ():
            item.predictions += _results(prediction, str(prediction.get("model_version") or "model"), data, lost)
        lost["drafts"] += len(task.get("drafts") or ())
        yield item


def _identified(task: Object, number: int, taken: Collection[str]) -> tuple[str, Object]:
    """Return the id of a task, and its data without the id.

    The id in the data is preferred. Other files use it too, whereas Label Studio renumbers tasks in each project.

    taken: ids in the data of earlier tasks. A task that repeats one of them is identified by its number.
    """
    data = task["data"]
    key = "" if is_missing(data.get("id")) else str(data["id"])
    if not key or key in taken:
        return str(task.get("id", number)), data
    return key, {name: value for name, value in data.items() if name != "id"}


def _of_storage(annotations: Iterable[Object], lost: Counter[str]) -> Iterator[Item]:
    by_key: dict[str, Item] = {}
    for number, annotation in enumerate(annotations, 1):
        _annotate(item_in(by_key, *_identified(annotation["task"], number, ())), annotation, lost)
    yield from by_key.values()


def _annotate(item: Item, annotation: Object, lost: Counter[str]) -> None:
    if annotation.get("was_cancelled"):
        lost["skipped answers"] += 1
        return
    by = _person(annotation)
    lost["marks of answers as ground truth"] += bool(annotation.get("ground_truth")) and by != GOLD
    if not annotation.get("result") and by != GOLD:
        item.answers.append(Answer(by, None, (), at=annotation.get("created_at")))
    (item.predictions if by == GOLD else item.answers).extend(_results(annotation, by, item.texts, lost))


def _written_by_assay(annotation: Mapping[str, Any], name: str) -> Any:
    """Return what Assay wrote into a result for want of a field that survives in Label Studio; None if nothing."""
    metas = ((result.get("meta") or {}).get(name) for result in annotation.get("result") or ())
    return next((values[0] for values in metas if values), None)


def _person(annotation: Mapping[str, Any]) -> str:
    return person_of(_written_by_assay(annotation, "annotator") or annotation.get("completed_by"))


def _results(annotation: Mapping[str, Any], by: str, texts: Mapping[str, Any], lost: Counter[str]) -> Iterator[Answer]:
    """Yield what an annotation or a prediction says about each question. Ranges of one question become one answer."""
    labels: dict[tuple[str, str], list[Any]] = {}
    graded: set[str] = set()
    for result in annotation.get("result") or ():
        kind, value = str(result.get("type", "")).lower(), result.get("value") or {}
        place = (str(result.get("from_name") or ""), str(result.get("to_name") or ""))
        if kind in _KINDS and "start" in value and not str(value["start"]).isdecimal():
            lost["marks in HTML, which count the characters of the page"] += 1
        elif kind in _KINDS and "start" in value:
            marks = [Span(*range_, name) for range_ in _ranges(value, texts) for name in value.get(_KINDS[kind]) or ()]
            lost[MISPLACED] += not marks
            labels.setdefault(place, []).extend(marks)
        elif kind in _KINDS:
            chosen = value.get(_KINDS[kind])
            chosen = chosen if isinstance(chosen, list) else [] if chosen is None else [chosen]
            graded |= {place[0]} if kind == "rating" else set()
            lost["answers without a result"] += not chosen
            labels.setdefault(place, []).extend(map(str, chosen))
        elif kind == "pairwise":
            labels.setdefault(place, []).append(_PAIRWISE.get(str(value.get("selected")), str(value.get("selected"))))
        else:
            lost[f"answers of the type {kind or 'unknown'}"] += 1
    at = _written_by_assay(annotation, "answered_at") or annotation.get("created_at")
    for (question, _), chosen in labels.items():
        yield Answer(by, question, tuple(chosen), is_grade=question in graded, at=at)


def _ranges(mark: Mapping[str, Any], texts: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return the range of characters of a mark, or nothing if it contains other words than the mark says.

    Label Studio counts as JavaScript does, where an emoji has the length 2.
    """
    start, end, words = int(mark["start"]), int(mark["end"]), _plain(mark.get("text"))
    if not words:
        return [(start, end)]
    for text in (text for text in texts.values() if isinstance(text, str)):
        if _plain(text[start:end]) == words:
            return [(start, end)]
        units = text.encode("utf-16-le", "surrogatepass")
        before, inside = (units[2 * a : 2 * b].decode("utf-16-le", "replace") for a, b in ((0, start), (start, end)))
        if _plain(inside) == words:
            return [(len(before), len(before) + len(inside))]
    return []


def _plain(text: Any) -> str:
    """Return a text without white space, which Label Studio writes in several ways."""
    return "".join(text.replace("\\n", "").split()) if isinstance(text, str) else ""


def _of_rows(rows: Sequence[Object], stated: Collection[str], lost: Counter[str]) -> Iterator[Item]:
    """Yield the items of JSON_MIN or CSV, which have one row for each annotation.

    stated: the names of questions that the user stated
    """
    columns = dict.fromkeys(name for row in rows for name in row if name not in _OF_ROWS and name != FILE_NAME)
    questions = _questions(rows, list(columns), stated)
    by_key: dict[str, Item] = {}
    for number, row in enumerate(rows, 1):
        values = {name: _cell(row.get(name)) for name in columns}
        key = str(row.get("id") or number)
        texts = {name: value for name, value in values.items() if name not in questions}
        item, by = item_in(by_key, key, texts), person_of(_cell(row.get("annotator")))
        answers = [(name, _labels(values.get(name), texts, lost)) for name in questions]
        item.answers += [Answer(by, name, labels, at=row.get("created_at")) for name, labels in answers if labels]
    yield from by_key.values()


def _questions(rows: Sequence[Object], columns: Sequence[str], stated: Collection[str]) -> list[str]:
    """Return the columns that contain answers.

    In JSON_MIN, they are between `id` and `annotator`. In CSV, and if the data begin with an `id`, the order of the
    columns means nothing. There, a question is a column with answers in JSON, with different values in rows of the same
    item, or the only column that could contain labels.

    Raise ProjectError if the user stated no question and several columns or none could contain the answers.
    """
    ordered = list(map(list, rows))
    if all("id" in names[1:] and "annotator" in names for names in ordered):
        between = {name for names in ordered for name in names[names.index("id") + 1 : names.index("annotator")]}
        if questions := [name for name in columns if name in between and name.casefold() not in LANGUAGE_NAMES]:
            return questions
    by_key: dict[str, list[Object]] = {}
    for row in rows:
        by_key.setdefault(str(row.get("id")), []).append(row)
    questions = [
        name
        for name in columns
        if name in stated
        or any(_is_structured(_cell(row.get(name))) for row in rows)
        or any(len({str(row.get(name)) for row in same}) > 1 for same in by_key.values())
    ]
    if questions:
        return questions
    possible = [name for name in columns if name.casefold() not in (*LANGUAGE_NAMES, "text", *ALSO["text"])]
    possible = [name for name in possible if _could_be_labels([row.get(name) for row in rows])]
    if len(possible) != 1:
        raise ProjectError(
            f"The export does not show which of its columns contains the answers: {', '.join(possible or columns)}. "
            "Add --question with one of them, or --config with the project's labeling interface."
        )
    return possible


def _is_structured(value: Any) -> bool:
    """Return whether a cell contains an answer in JSON."""
    marks = value if isinstance(value, list) else [value]
    return any(isinstance(mark, dict) and mark.keys() & {"choices", "start", "rating", "taxonomy"} for mark in marks)


def _could_be_labels(values: Sequence[Any]) -> bool:
    """Return whether values are as short as labels and, in a longer export, some of them repeated."""
    texts = {str(value) for value in values if value not in (None, "")}
    is_short = all(len(text) <= MOST_NAME and len(text.split()) < SENTENCE for text in texts)
    return bool(texts) and is_short and (len(values) < _FEW_ROWS or 2 * len(texts) <= len(values))


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in "[{":
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _labels(value: Any, texts: Mapping[str, Any], lost: Counter[str]) -> tuple[Any, ...]:
    """Return the labels in a cell of an answer."""
    if isinstance(value, dict) and isinstance(value.get("choices"), list):
        return tuple(map(str, value["choices"]))
    if isinstance(value, list) and value and all(isinstance(mark, dict) and "start" in mark for mark in value):
        placed = [(range_, mark["labels"]) for mark in value for range_ in _ranges(mark, texts)]
        lost[MISPLACED] += len(value) - len(placed)
        return tuple(Span(*range_, name) for range_, names in placed for name in names)
    if isinstance(value, list) and value and all(isinstance(mark, dict) and "rating" in mark for mark in value):
        return tuple(str(mark["rating"]) for mark in value)
    if value in (None, "", []):
        return ()
    # People choose None or N/A. The other words are what other programs write where nobody has answered.
    is_lost = is_missing(value) and str(value).strip().casefold() not in ("none", "n/a", "na")
    lost["answers that say nothing, such as nan"] += is_lost
    return () if is_lost else (str(value),)


LABEL_STUDIO = Tool("Label Studio", _is_export, _items, takes_questions=True)
