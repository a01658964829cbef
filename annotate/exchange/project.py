"""Converts another tool's annotation project to the contents of Assay's files.

A tool's module converts the objects of an export to items (`items.py`). `project_of` chooses the question to import and
the form of its answers, and counts what cannot be kept in Project.not_kept.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from annotate.exchange.items import LANGUAGE_NAMES, SENTENCE, Answer, Item, Object, ProjectError, Tool, as_text
from annotate.kinds.file_sections import MOST_NAME
from annotate.kinds.files import EXPORT_COLUMNS
from annotate.kinds.forms.spans import Span, text_of
from corpora.core import listed
from corpora.core.languages import code_of
from corpora.core.records import FIELD_NAME, RecordError, checked, read_time
from corpora.core.values import tidy, word_count
from corpora.sources.recognition import ALSO

MILLISECONDS = 10**11  # Larger timestamps are in milliseconds. In seconds, they would be after the year 5000.
LONGEST_CODE = 64
LONGEST_FIELD = 30


@dataclass(frozen=True)
class LabelConfig:
    """The configuration of a question.

    question: name of the question; "" if the tool has only one
    labels: label, as used in answers -> display name
    title: the question as a sentence; "" if the tool has none
    is_multiple: whether an answer can have several labels
    guidelines: guidelines (Markdown)
    """

    question: str
    labels: dict[str, str]
    title: str = ""
    is_multiple: bool = False
    guidelines: str = ""


@dataclass
class Project:
    """A project with the contents of Assay's files.

    tool: name of the tool
    question: name of the question in the tool
    form: slug of the answer form: choice, grades, labels or spans
    fields: field of the records -> name in the export
    shown: the fields that annotators see
    title: the question as a sentence; "" if unknown
    guidelines: guidelines (Markdown); "" if there are none
    marked: the field that spans mark; "" for other forms
    answers: code of each answer -> name in the export
    records: the records, with id, language and fields
    judgments: (id, worker, label, time) tuples; the time is in ISO 8601, or "" if unknown
    predictions: model -> id -> label
    not_kept: how many things could not be kept, by description
    """

    tool: str
    question: str
    form: str
    fields: dict[str, str]
    shown: list[str]
    title: str = ""
    guidelines: str = ""
    marked: str = ""
    answers: dict[str, str] = field(default_factory=dict)
    records: list[dict[str, str]] = field(default_factory=list)
    judgments: list[tuple[str, str, str, str]] = field(default_factory=list)
    predictions: dict[str, dict[str, str]] = field(default_factory=dict)
    not_kept: Counter[str] = field(default_factory=Counter)

    @property
    def redundancy(self) -> int:
        """The largest number of answers to the same item."""
        return max(Counter(key for key, *_ in self.judgments).values(), default=1)


def project_of(
    tool: Tool, objects: Iterable[Object], *, question: str, language: str, configs: Sequence[LabelConfig] = ()
) -> Project:
    """Return the project in an export.

    question: name of the question to import; "" if there is only one
    language: language code for items that do not state their language
    configs: configurations of the project's questions, if known

    Raise ProjectError if the question or the language must be stated, or if the export contains no texts.
    """
    not_kept: Counter[str] = Counter()
    items = _items(tool, objects, not_kept, [question] if question else [config.question for config in configs])
    if not items:
        raise ProjectError(f"The export from {tool.name} contains no items.")
    question = _choose_question(items, question, not_kept)
    empty = [(item, answer) for item in items for answer in item.answers if answer.question is None]
    answers = [(item, answer) for item in items for answer in item.answers if answer.question == question]
    predicted = [(item, answer) for item in items for answer in item.predictions if answer.question == question]
    config = next((config for config in configs if config.question in ("", question)), LabelConfig(question, {}))
    form = _detect_form([*answers, *predicted], is_multiple=config.is_multiple)
    if form == "spans":  # an empty answer means that there is nothing to mark
        answers += empty
    else:
        not_kept["answers without a result"] += len(empty)
    _check_labels(form, answers)
    project = Project(
        tool.name, question, form, _map_fields(items), [], config.title, config.guidelines, not_kept=not_kept
    )
    _drop_incomplete_fields(project, items)
    project.shown = _shown_fields(items, project.fields)
    if not project.shown:
        raise ProjectError(
            f"The export from {tool.name} contains no texts. Assay labels texts, not images or sound. If the texts are "
            "in another file of the project, add this file."
        )
    if form == "spans":
        project.marked = _marked_field(project, [*answers, *predicted])
    _read_records(project, items, language)
    names = dict.fromkeys(label for item in items for label in item.possible_labels) if form != "spans" else {}
    _read_labels(project, answers, predicted, {name: name for name in names} | config.labels)
    return project


def _items(tool: Tool, objects: Iterable[Object], not_kept: Counter[str], questions: Sequence[str]) -> list[Item]:
    """Read the items of an export.

    questions: the names of the questions that the user wants to import

    Raise ProjectError if an object does not have the structure of the tool's exports.
    """
    number = 0

    def numbered_objects() -> Iterator[Object]:
        nonlocal number
        for number, record in enumerate(objects, 1):  # noqa: B007 - the error message needs the number
            yield record

    try:
        items = list(tool.items(numbered_objects(), not_kept, *([questions] if tool.takes_questions else [])))
        for item in items:
            _check_item(item)
        if duplicates := [key for key, count in Counter(item.key for item in items).items() if count > 1]:
            raise ProjectError(f"Several items of the export have the id {duplicates[0]}. Give each its own.")
    except (ArithmeticError, AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise ProjectError(
            f"Object {number:,} of the export is not structured like an export of {tool.name} "
            f"({type(error).__name__}: {error}). Correct or remove it."
        ) from error
    return items


def _check_item(item: Item) -> None:
    """Raise TypeError or ProjectError if an item has values of the wrong type or impossible spans."""
    if not isinstance(item.texts, Mapping):
        raise TypeError(f"the data of item {item.key} is not an object")
    for answer in [*item.answers, *item.predictions]:
        for label in answer.labels:
            if isinstance(label, Span) and not 0 <= label.start < label.end:
                raise ProjectError(f"Item {item.key} has a span from {label.start} to {label.end}. Correct it.")
            if not isinstance(label.label if isinstance(label, Span) else label, str):
                raise TypeError(f"a label of item {item.key} is not text")
            checked("label", _label_name(label))


def _choose_question(items: Sequence[Item], wanted: str, not_kept: Counter[str]) -> str:
    answers = (answer for item in items for answer in [*item.answers, *item.predictions])
    questions = dict.fromkeys(answer.question for answer in answers if answer.question is not None)
    names = ", ".join(questions) or "none"
    if wanted and wanted not in questions:
        raise ProjectError(f"The export has no question {wanted!r}. Its questions are: {names}.")
    if len(questions) > 1 and not wanted:
        raise ProjectError(
            f"The export has the questions {names}, and a task of Assay has one. Choose one with --question "
            f"{next(iter(questions))}, and import the others under other names."
        )
    chosen = wanted or next(iter(questions), "")
    for other in questions.keys() - {chosen}:
        not_kept[f"answers to the question {other!r}"] += sum(
            answer.question == other for item in items for answer in item.answers
        )
    return chosen


def _detect_form(answers: Sequence[tuple[Item, Answer]], *, is_multiple: bool) -> str:
    if any(answer.has_spans for _, answer in answers):
        return "spans"
    if answers and all(answer.is_grade for _, answer in answers):
        return "grades"
    return "labels" if is_multiple or any(len(answer.labels) > 1 for _, answer in answers) else "choice"


def _check_labels(form: str, answers: Sequence[tuple[Item, Answer]]) -> None:
    """Raise ProjectError if the labels seem to be free texts, because they are sentences that all differ."""
    labels = [str(label) for _, answer in answers for label in answer.labels] if form == "choice" else []
    if len(labels) > 2 and len(set(labels)) == len(labels) and all(len(label.split()) >= SENTENCE for label in labels):
        raise ProjectError(
            f"The answers seem to be free texts, such as {labels[0][:40]!r}, which `import` does not read. Import them "
            "as fields of records, with import_corpus."
        )


def _map_fields(items: Iterable[Item]) -> dict[str, str]:
    """Return a mapping from valid field names to the names in the export."""
    fields: dict[str, str] = {}
    for name in dict.fromkeys(name for item in items for name in item.texts):
        if name.casefold() not in LANGUAGE_NAMES:
            fields[_field_name(name, fields)] = name
    return fields


def _field_name(name: str, taken: Mapping[str, str]) -> str:
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[: LONGEST_FIELD - 3] or "field"
    plain = plain if FIELD_NAME.fullmatch(plain) else f"f_{plain}"[:LONGEST_FIELD]
    plain = {"text": "body"}.get(plain, plain)
    number, numbered = 1, plain
    while numbered in EXPORT_COLUMNS or numbered in taken:
        number += 1
        numbered = f"{plain}_{number}"
    return numbered


def _drop_incomplete_fields(project: Project, items: Sequence[Item]) -> None:
    """Remove fields that are empty in some items, because every record of a corpus has all fields.

    If no field is complete, keep the fields with the fewest gaps. Items without text are then left out.
    """
    gaps = {
        field: sum(not as_text(item.texts.get(name)).strip() for item in items)
        for field, name in project.fields.items()
    }
    most = min(gaps.values(), default=0)
    for incomplete in [name for name, number in gaps.items() if number > most]:
        written = project.fields.pop(incomplete)
        project.not_kept[f"values of {written!r}, which some items lack"] += len(items) - gaps[incomplete]


def _shown_fields(items: Sequence[Item], fields: Mapping[str, str]) -> list[str]:
    """Return the fields to show to annotators: the fields in which some value has several words.

    If there are none, return fields with lists that have several words, such as the turns of a chat. If there are no
    such lists either, return fields with the usual names of texts.
    """
    texts, lists = [], []
    for name, written in fields.items():
        values = [value for item in items if (value := item.texts.get(written))]
        texts += [name] * any(isinstance(value, str) and word_count(value) > 1 for value in values)
        lists += [name] * any(isinstance(value, list | dict) and word_count(as_text(value)) > 1 for value in values)
    return texts or lists or [name for name, written in fields.items() if written in ("text", *ALSO["text"])]


def _marked_field(project: Project, answers: Iterable[tuple[Item, Answer]]) -> str:
    name = next((answer.field for _, answer in answers if answer.field), "")
    return next((field for field, written in project.fields.items() if written == name), project.shown[0])


def _read_records(project: Project, items: Sequence[Item], language: str) -> None:
    for item in list(items):
        if not any(as_text(item.texts.get(project.fields[field])).strip() for field in project.shown):
            project.not_kept["items without a text"] += 1
            continue
        stated = {name.casefold(): value for name, value in item.texts.items()}
        written = next((stated[name] for name in LANGUAGE_NAMES if stated.get(name)), language)
        if not written:
            raise ProjectError(
                f"The export does not state the language of item {item.key}. Add --language with its code, such as "
                "--language en."
            )
        texts = {field: as_text(item.texts.get(name)) for field, name in project.fields.items()}
        project.records.append({"id": item.key, "language": code_of(str(written)) or str(written), **texts})


def _read_labels(
    project: Project,
    answers: Sequence[tuple[Item, Answer]],
    predicted: Sequence[tuple[Item, Answer]],
    possible_labels: Mapping[str, str],
) -> None:
    """Set the answers, judgments and predictions of a project.

    possible_labels: known label -> display name, in order. Labels that only occur in answers come after them.
    """
    possible_labels = {_label_name(label): name for label, name in possible_labels.items()}
    codes: dict[str, str] = {}
    for name in [
        *possible_labels,
        *(_label_name(label) for _, answer in [*answers, *predicted] for label in answer.labels),
    ]:
        if name not in codes:
            codes[name] = _code(name, codes.values())
    other_labels = sorted(codes.keys() - possible_labels.keys(), key=_sort_key, reverse=project.form == "grades")
    names = [*possible_labels, *other_labels]
    project.answers = {codes[name]: _label_name(possible_labels.get(name, name)) for name in names}
    if long := next((name for name in project.answers.values() if len(name) > MOST_NAME), ""):
        raise ProjectError(
            f"The label {long[:40]!r}… has {len(long):,} characters. The limit is {MOST_NAME}. Import free texts "
            "as fields of records, with import_corpus."
        )
    if len(codes) < 2 and project.form in ("choice", "grades"):
        problem = f"The export has only the label {next(iter(codes))!r}" if codes else "Nobody has answered"
        losses = f" {describe_losses(project.not_kept)}" if any(project.not_kept.values()) else ""
        raise ProjectError(
            f"{problem}, but a question needs two labels. Add the project's labels with --config FILE: the labeling "
            f"interface of Label Studio as XML, label_config.json of doccano, or settings.json of Argilla.{losses}"
        )
    keys, done = {record["id"] for record in project.records}, set[tuple[str, str]]()
    for item, answer in answers:
        if (item.key, answer.by) in done:
            project.not_kept["further answers of a person to the same item"] += 1
        elif label := _label(project, answer, codes):
            done.add((item.key, answer.by))
            if item.key in keys:
                project.judgments.append((item.key, answer.by, label, _time(answer.at, project.not_kept)))
        else:
            project.not_kept["answers without a label"] += 1
    for item, answer in predicted:
        if (label := _label(project, answer, codes)) and item.key in keys:
            project.predictions.setdefault(answer.by, {})[item.key] = label
    for model, labels in list(project.predictions.items()):
        if project.form == "spans" or len(labels) < len(project.records):
            is_spans = project.form == "spans"
            reason = "of spans" if is_spans else f"without a label for {_unlabelled_items(project, labels)}"
            project.not_kept[f"predictions of {model} {reason}"] += len(project.predictions.pop(model))


def _time(written: Any, not_kept: Counter[str]) -> str:
    """Return the time of an answer in ISO 8601; "" if it is missing, invalid or in the future.

    Invalid and future times are counted in `not_kept`.
    """
    is_in_milliseconds = isinstance(written, int | float) and written > MILLISECONDS
    try:
        moment = read_time(written / 1000 if is_in_milliseconds else written)
    except (RecordError, OverflowError):
        moment = None
    if moment and moment < datetime.now(UTC):
        return moment.isoformat()
    not_kept["times of answers that are invalid or in the future"] += written not in (None, "")
    return ""


def _unlabelled_items(project: Project, labels: Mapping[str, str]) -> str:
    missing = [record["id"] for record in project.records if record["id"] not in labels]
    return listed(missing, len(missing), "item")


def _sort_key(name: str) -> tuple[int, int, str]:
    return (0, int(name), name) if name.lstrip("-").isdecimal() else (1, 0, name)


def _code(name: str, taken: Iterable[str]) -> str:
    """Return a unique code without spaces for a label."""
    code = "-".join(name.split())[: LONGEST_CODE - 3] or "empty"
    number, numbered, used = 1, code, set(taken)
    while numbered in used:
        number += 1
        numbered = f"{code}-{number}"
    return numbered


def _label(project: Project, answer: Answer, codes: Mapping[str, str]) -> str:
    """Return an answer's label in the form that files of judgments use; "" if the answer is empty."""
    if project.form == "spans":
        return text_of(
            span._replace(label=codes[_label_name(span)]) for span in answer.labels if isinstance(span, Span)
        )
    return " ".join(sorted({codes[_label_name(label)] for label in answer.labels if isinstance(label, str)}))


def _label_name(label: str | Span) -> str:
    """Return a label's name in NFC, on one line and without surplus spaces."""
    return " ".join(tidy(label.label if isinstance(label, Span) else label).split())


def describe_losses(not_kept: Mapping[str, int]) -> str:
    """Return a sentence that lists what was not kept."""
    return f"Not kept: {'; '.join(f'{what} ({count:,})' for what, count in not_kept.items() if count)}."
