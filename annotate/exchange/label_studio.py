"""Exports of Label Studio: JSON with tasks (also with the older `completions`), JSON_MIN and CSV.

In JSON, the `result` of an annotation contains the answers to each question (`from_name`). JSON_MIN and CSV have one
row per annotation, with a column for each question.
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
    get_item,
    person_name,
)
from annotate.kinds.file_sections import MOST_NAME
from annotate.kinds.forms.spans import Span
from corpora.core.values import is_missing
from corpora.sources.recognition import ALSO

# Columns of JSON_MIN and CSV that are neither data nor questions.
_ROW_COLUMNS = (
    "annotation_id",
    "annotator",
    "created_at",
    "updated_at",
    "lead_time",
    "id",
    "agreement",
    "ground_truth",
)
# Type of a result with labels, for a span or a whole item -> the key of its labels.
_KINDS = {"choices": "choices", "labels": "labels", "hypertextlabels": "hypertextlabels", "rating": "rating"}
_FEW_ROWS = 10  # with fewer rows, values can be labels even if none is repeated
MISPLACED = "spans whose text is not at their position"
_PAIRWISE = {"left": "first", "right": "second", "none": "tie"}


def _is_export(first: Object) -> bool:
    has_results = any(isinstance(first.get(name), list) for name in ("annotations", "completions"))
    is_task = isinstance(first.get("data"), dict) and has_results
    return is_task or _is_stored(first) or {"annotation_id", "annotator"} <= first.keys()


def _is_stored(row: Object) -> bool:
    """Return whether an object is an annotation with its task. Label Studio writes such objects to cloud storage."""
    task = row.get("task")
    return isinstance(row.get("result"), list) and isinstance(task, dict) and isinstance(task.get("data"), dict)


def _items(objects: Iterable[Object], not_kept: Counter[str], requested: Collection[str]) -> Iterator[Item]:
    objects = iter(objects)
    first = next(objects)
    all_objects = chain([first], objects)
    if _is_stored(first):
        yield from _storage_items(all_objects, not_kept)
        return
    if not isinstance(first.get("data"), dict):
        yield from _row_items(list(all_objects), requested, not_kept)
        return
    keys = set[str]()
    for number, task in enumerate(all_objects, 1):
        key, data = _identify(task, number, keys)
        keys.add(key)
        item = Item(key, data)
        for annotation in task.get("annotations") or task.get("completions") or ():
            _annotate(item, annotation, not_kept)
        for prediction in task.get("predictions") or ():
            item.predictions += _results(prediction, str(prediction.get("model_version") or "model"), data, not_kept)
        not_kept["drafts"] += len(task.get("drafts") or ())
        yield item


def _identify(task: Object, number: int, taken: Collection[str]) -> tuple[str, Object]:
    """Return a task's id, and its data without the id.

    The id in the data is preferred, because other files use it too, whereas Label Studio renumbers tasks in each
    project.

    number: number of the task in the export, used as the id if there is no other
    taken: ids in the data of earlier tasks; a task that repeats one of them gets Label Studio's own id
    """
    data = task["data"]
    key = "" if is_missing(data.get("id")) else str(data["id"])
    if not key or key in taken:
        return str(task.get("id", number)), data
    return key, {name: value for name, value in data.items() if name != "id"}


def _storage_items(annotations: Iterable[Object], not_kept: Counter[str]) -> Iterator[Item]:
    by_key: dict[str, Item] = {}
    for number, annotation in enumerate(annotations, 1):
        _annotate(get_item(by_key, *_identify(annotation["task"], number, ())), annotation, not_kept)
    yield from by_key.values()


def _annotate(item: Item, annotation: Object, not_kept: Counter[str]) -> None:
    if annotation.get("was_cancelled"):
        not_kept["skipped answers"] += 1
        return
    by = _person(annotation)
    not_kept["marks of answers as ground truth"] += bool(annotation.get("ground_truth")) and by != GOLD
    if not annotation.get("result") and by != GOLD:
        item.answers.append(Answer(by, None, (), at=annotation.get("created_at")))
    (item.predictions if by == GOLD else item.answers).extend(_results(annotation, by, item.texts, not_kept))


def _assay_value(annotation: Mapping[str, Any], name: str) -> Any:
    """Return a value that Assay stored in the results' metadata, because Label Studio has no field for it.

    Return None if no such value is stored.
    """
    metas = ((result.get("meta") or {}).get(name) for result in annotation.get("result") or ())
    return next((values[0] for values in metas if values), None)


def _person(annotation: Mapping[str, Any]) -> str:
    return person_name(_assay_value(annotation, "annotator") or annotation.get("completed_by"))


def _results(
    annotation: Mapping[str, Any], by: str, texts: Mapping[str, Any], not_kept: Counter[str]
) -> Iterator[Answer]:
    """Yield the answers of an annotation or a prediction: one per question, with all its labels or spans."""
    labels: dict[tuple[str, str], list[Any]] = {}
    grade_questions: set[str] = set()
    for result in annotation.get("result") or ():
        kind, value = str(result.get("type", "")).lower(), result.get("value") or {}
        place = (str(result.get("from_name") or ""), str(result.get("to_name") or ""))
        if kind in _KINDS and "start" in value and not str(value["start"]).isdecimal():
            not_kept["marks in HTML, which count the characters of the page"] += 1
        elif kind in _KINDS and "start" in value:
            marks = [Span(*range_, name) for range_ in _ranges(value, texts) for name in value.get(_KINDS[kind]) or ()]
            not_kept[MISPLACED] += not marks
            labels.setdefault(place, []).extend(marks)
        elif kind in _KINDS:
            chosen = value.get(_KINDS[kind])
            chosen = chosen if isinstance(chosen, list) else [] if chosen is None else [chosen]
            grade_questions |= {place[0]} if kind == "rating" else set()
            not_kept["answers without a result"] += not chosen
            labels.setdefault(place, []).extend(map(str, chosen))
        elif kind == "pairwise":
            labels.setdefault(place, []).append(_PAIRWISE.get(str(value.get("selected")), str(value.get("selected"))))
        else:
            not_kept[f"answers of the type {kind or 'unknown'}"] += 1
    at = _assay_value(annotation, "answered_at") or annotation.get("created_at")
    for (question, _), chosen in labels.items():
        yield Answer(by, question, tuple(chosen), is_grade=question in grade_questions, at=at)


def _ranges(mark: Mapping[str, Any], texts: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return the range of a mark, in code points; empty if the text in that range differs from the mark's text.

    Label Studio's offsets usually count UTF-16 code units, as in JavaScript, where an emoji has the length 2.
    """
    start, end, words = int(mark["start"]), int(mark["end"]), _without_spaces(mark.get("text"))
    if not words:
        return [(start, end)]
    for text in (text for text in texts.values() if isinstance(text, str)):
        if _without_spaces(text[start:end]) == words:
            return [(start, end)]
        units = text.encode("utf-16-le", "surrogatepass")
        before, inside = (units[2 * a : 2 * b].decode("utf-16-le", "replace") for a, b in ((0, start), (start, end)))
        if _without_spaces(inside) == words:
            return [(len(before), len(before) + len(inside))]
    return []


def _without_spaces(text: Any) -> str:
    """Remove all white space, because Label Studio does not write it consistently."""
    return "".join(text.replace("\\n", "").split()) if isinstance(text, str) else ""


def _row_items(rows: Sequence[Object], requested: Collection[str], not_kept: Counter[str]) -> Iterator[Item]:
    """Yield the items of JSON_MIN or CSV, which have one row per annotation.

    requested: the names of the questions that the user wants to import
    """
    columns = dict.fromkeys(name for row in rows for name in row if name not in _ROW_COLUMNS and name != FILE_NAME)
    questions = _questions(rows, list(columns), requested)
    by_key: dict[str, Item] = {}
    for number, row in enumerate(rows, 1):
        values = {name: _cell(row.get(name)) for name in columns}
        key = str(row.get("id") or number)
        texts = {name: value for name, value in values.items() if name not in questions}
        item, by = get_item(by_key, key, texts), person_name(_cell(row.get("annotator")))
        answers = [(name, _labels(values.get(name), texts, not_kept)) for name in questions]
        item.answers += [Answer(by, name, labels, at=row.get("created_at")) for name, labels in answers if labels]
    yield from by_key.values()


def _questions(rows: Sequence[Object], columns: Sequence[str], requested: Collection[str]) -> list[str]:
    """Return the columns that contain answers.

    In JSON_MIN, answers are between `id` and `annotator`. In CSV, or if the data begins with an `id`, the order of the
    columns has no meaning. In that case, a question is a column with answers in JSON, a column with different values
    for the same item, or the only column that could contain labels.

    Raise ProjectError if the user requested no question, and no column or several columns could contain the answers.
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
        if name in requested
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
    """Return whether values are as short as labels. Unless there are few rows, some values must also be repeated."""
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


def _labels(value: Any, texts: Mapping[str, Any], not_kept: Counter[str]) -> tuple[Any, ...]:
    """Return the labels in an answer's cell."""
    if isinstance(value, dict) and isinstance(value.get("choices"), list):
        return tuple(map(str, value["choices"]))
    if isinstance(value, list) and value and all(isinstance(mark, dict) and "start" in mark for mark in value):
        placed = [(range_, mark["labels"]) for mark in value for range_ in _ranges(mark, texts)]
        not_kept[MISPLACED] += len(value) - len(placed)
        return tuple(Span(*range_, name) for range_, names in placed for name in names)
    if isinstance(value, list) and value and all(isinstance(mark, dict) and "rating" in mark for mark in value):
        return tuple(str(mark["rating"]) for mark in value)
    if value in (None, "", []):
        return ()
    # `None` and `N/A` can be labels that somebody chose. Programs write the other words if there is no answer.
    is_empty = is_missing(value) and str(value).strip().casefold() not in ("none", "n/a", "na")
    not_kept["empty answers, such as nan"] += is_empty
    return () if is_empty else (str(value),)


LABEL_STUDIO = Tool("Label Studio", _is_export, _items, takes_questions=True)
