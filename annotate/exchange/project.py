"""An annotation project of another tool, ready to be written as Assay's files.

The module of a tool turns each object of an export into an Item (`items.py`), and `project_of` chooses the question to
import and the form of its answers. What cannot be kept is counted in Project.lost, one sentence for each kind of loss.
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

MILLISECONDS = 10**11  # Larger numbers would be seconds after the year 5000.
LONGEST_CODE = 64
LONGEST_FIELD = 30


@dataclass(frozen=True)
class LabelConfig:
    """The configuration of a question.

    question: its name; "" if the tool has only one
    labels: mapping from each label, as used in answers, to its name
    title: the question in words; "" if the tool has none
    is_multiple: whether an answer may have several labels
    guidelines: in Markdown
    """

    question: str
    labels: dict[str, str]
    title: str = ""
    is_multiple: bool = False
    guidelines: str = ""


@dataclass
class Project:
    """A project that is ready to be written as Assay's files.

    form: slug of the answer form: choice, grades, labels or spans
    fields: field of the records -> name in the export
    shown: the fields that people see
    title: the question in words; "" if it is unknown
    guidelines: in Markdown; "" if there are none
    marked: the field that spans mark; "" for other forms
    answers: code of each answer -> its name in the export
    records: the records, with id, language and fields
    judgments: (id, worker, label, time of the answer in ISO 8601 or "")
    predictions: model -> id -> label
    lost: what was not kept, by sentence
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
    lost: Counter[str] = field(default_factory=Counter)

    @property
    def redundancy(self) -> int:
        """The largest number of people who answered the same item."""
        return max(Counter(key for key, *_ in self.judgments).values(), default=1)


def project_of(
    tool: Tool, objects: Iterable[Object], *, question: str, language: str, configs: Sequence[LabelConfig] = ()
) -> Project:
    """Return the project in an export.

    question: name of the question to import; "" if there is only one
    configs: the configuration of the project's questions, if it is known
    language: code of the language of items that do not state it

    Raise ProjectError if the question or the language must be stated, or if the export contains no texts.
    """
    lost: Counter[str] = Counter()
    items = _items(tool, objects, lost, [question] if question else [config.question for config in configs])
    if not items:
        raise ProjectError(f"The export from {tool.name} contains no items.")
    question = _question(items, question, lost)
    empty = [(item, answer) for item in items for answer in item.answers if answer.question is None]
    answers = [(item, answer) for item in items for answer in item.answers if answer.question == question]
    predicted = [(item, answer) for item in items for answer in item.predictions if answer.question == question]
    config = next((config for config in configs if config.question in ("", question)), LabelConfig(question, {}))
    form = _form([*answers, *predicted], is_multiple=config.is_multiple)
    if form == "spans":  # The person has found nothing to mark.
        answers += empty
    else:
        lost["answers without a result"] += len(empty)
    _check_labels(form, answers)
    project = Project(tool.name, question, form, _fields(items), [], config.title, config.guidelines, lost=lost)
    _leave_gaps_out(project, items)
    project.shown = _shown(items, project.fields)
    if not project.shown:
        raise ProjectError(
            f"The export from {tool.name} contains no texts. Assay labels texts, not images or sound. If the texts are "
            "in another file of the project, add this file."
        )
    if form == "spans":
        project.marked = _marked(project, [*answers, *predicted])
    _read_records(project, items, language)
    names = dict.fromkeys(label for item in items for label in item.offered) if form != "spans" else {}
    _read_labels(project, answers, predicted, {name: name for name in names} | config.labels)
    return project


def _items(tool: Tool, objects: Iterable[Object], lost: Counter[str], questions: Sequence[str]) -> list[Item]:
    """Read the items of an export.

    questions: the names of questions that the user stated

    Raise ProjectError if an object does not have the structure of the tool's exports.
    """
    read = 0

    def counted() -> Iterator[Object]:
        nonlocal read
        for read, record in enumerate(objects, 1):  # noqa: B007 - the number is for the message
            yield record

    try:
        items = list(tool.items(counted(), lost, *([questions] if tool.takes_questions else [])))
        for item in items:
            _check(item)
        if twice := [key for key, number in Counter(item.key for item in items).items() if number > 1]:
            raise ProjectError(f"Several items of the export have the id {twice[0]}. Give each its own.")
    except (ArithmeticError, AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise ProjectError(
            f"Object {read:,} of the export is not structured like an export of {tool.name} "
            f"({type(error).__name__}: {error}). Correct or remove it."
        ) from error
    return items


def _check(item: Item) -> None:
    """Raise TypeError or ProjectError if the values of an item have the wrong type or no meaning."""
    if not isinstance(item.texts, Mapping):
        raise TypeError(f"the data of item {item.key} is not an object")
    for answer in [*item.answers, *item.predictions]:
        for label in answer.labels:
            if isinstance(label, Span) and not 0 <= label.start < label.end:
                raise ProjectError(f"Item {item.key} has a span from {label.start} to {label.end}. Correct it.")
            if not isinstance(label.label if isinstance(label, Span) else label, str):
                raise TypeError(f"a label of item {item.key} is not text")
            checked("label", _named(label))


def _question(items: Sequence[Item], wanted: str, lost: Counter[str]) -> str:
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
        lost[f"answers to the question {other!r}"] += sum(
            answer.question == other for item in items for answer in item.answers
        )
    return chosen


def _form(answers: Sequence[tuple[Item, Answer]], *, is_multiple: bool) -> str:
    if any(answer.has_spans for _, answer in answers):
        return "spans"
    if answers and all(answer.is_grade for _, answer in answers):
        return "grades"
    return "labels" if is_multiple or any(len(answer.labels) > 1 for _, answer in answers) else "choice"


def _check_labels(form: str, answers: Sequence[tuple[Item, Answer]]) -> None:
    """Raise ProjectError if the labels seem to be free texts: sentences that all differ."""
    labels = [str(label) for _, answer in answers for label in answer.labels] if form == "choice" else []
    if len(labels) > 2 and len(set(labels)) == len(labels) and all(len(label.split()) >= SENTENCE for label in labels):
        raise ProjectError(
            f"The answers seem to be free texts, such as {labels[0][:40]!r}, which `import` does not read. Import them "
            "as fields of records, with import_corpus."
        )


def _fields(items: Iterable[Item]) -> dict[str, str]:
    """Return a mapping from a valid field name to each name in the export."""
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


def _leave_gaps_out(project: Project, items: Sequence[Item]) -> None:
    """Remove the fields that are empty in some items, because every record of a corpus has all of its fields.

    If no field is complete, keep the one with the fewest gaps. Its items without a text will be rejected.
    """
    gaps = {
        field: sum(not as_text(item.texts.get(name)).strip() for item in items)
        for field, name in project.fields.items()
    }
    most = min(gaps.values(), default=0)
    for incomplete in [name for name, number in gaps.items() if number > most]:
        written = project.fields.pop(incomplete)
        project.lost[f"values of {written!r}, which some items lack"] += len(items) - gaps[incomplete]


def _shown(items: Sequence[Item], fields: Mapping[str, str]) -> list[str]:
    """Return the fields that people should see: those in which some value is a text of several words.

    If there is none, they are lists with several words, such as the turns of a chat, or fields that are named as texts.
    """
    texts, lists = [], []
    for name, written in fields.items():
        values = [value for item in items if (value := item.texts.get(written))]
        texts += [name] * any(isinstance(value, str) and word_count(value) > 1 for value in values)
        lists += [name] * any(isinstance(value, list | dict) and word_count(as_text(value)) > 1 for value in values)
    return texts or lists or [name for name, written in fields.items() if written in ("text", *ALSO["text"])]


def _marked(project: Project, answers: Iterable[tuple[Item, Answer]]) -> str:
    name = next((answer.field for _, answer in answers if answer.field), "")
    return next((field for field, written in project.fields.items() if written == name), project.shown[0])


def _read_records(project: Project, items: Sequence[Item], language: str) -> None:
    for item in list(items):
        if not any(as_text(item.texts.get(project.fields[field])).strip() for field in project.shown):
            project.lost["items without a text"] += 1
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
    offered: Mapping[str, str],
) -> None:
    """Read the labels, the judgments and the predictions of a project.

    offered: known labels in order, each with its name; further labels of answers follow
    """
    offered = {_named(label): name for label, name in offered.items()}
    codes: dict[str, str] = {}
    for name in [*offered, *(_named(label) for _, answer in [*answers, *predicted] for label in answer.labels)]:
        if name not in codes:
            codes[name] = _code(name, codes.values())
    further = sorted(codes.keys() - offered.keys(), key=_in_order, reverse=project.form == "grades")
    project.answers = {codes[name]: _named(offered.get(name, name)) for name in [*offered, *further]}
    if long := next((name for name in project.answers.values() if len(name) > MOST_NAME), ""):
        raise ProjectError(
            f"The label {long[:40]!r}… has {len(long):,} characters. The limit is {MOST_NAME}. Import free texts "
            "as fields of records, with import_corpus."
        )
    if len(codes) < 2 and project.form in ("choice", "grades"):
        problem = f"The export has only the label {next(iter(codes))!r}" if codes else "Nobody has answered"
        lost = f" {in_words(project.lost)}" if any(project.lost.values()) else ""
        raise ProjectError(
            f"{problem}, but a question needs two labels. Add the project's labels with --config FILE: the labeling "
            f"interface of Label Studio as XML, label_config.json of doccano, or settings.json of Argilla.{lost}"
        )
    keys, done = {record["id"] for record in project.records}, set[tuple[str, str]]()
    for item, answer in answers:
        if (item.key, answer.by) in done:
            project.lost["further answers of a person to the same item"] += 1
        elif label := _label(project, answer, codes):
            done.add((item.key, answer.by))
            if item.key in keys:
                project.judgments.append((item.key, answer.by, label, _time(answer.at, project.lost)))
        else:
            project.lost["answers without a label"] += 1
    for item, answer in predicted:
        if (label := _label(project, answer, codes)) and item.key in keys:
            project.predictions.setdefault(answer.by, {})[item.key] = label
    for model, labels in list(project.predictions.items()):
        if project.form == "spans" or len(labels) < len(project.records):
            reason = "of spans" if project.form == "spans" else f"without a label for {_without(project, labels)}"
            project.lost[f"predictions of {model} {reason}"] += len(project.predictions.pop(model))


def _time(written: Any, lost: Counter[str]) -> str:
    """Return the time of an answer in ISO 8601; "" if it is missing or not a past time, which is counted."""
    is_in_milliseconds = isinstance(written, int | float) and written > MILLISECONDS
    try:
        moment = read_time(written / 1000 if is_in_milliseconds else written)
    except (RecordError, OverflowError):
        moment = None
    if moment and moment < datetime.now(UTC):
        return moment.isoformat()
    lost["times of answers that are invalid or in the future"] += written not in (None, "")
    return ""


def _without(project: Project, labels: Mapping[str, str]) -> str:
    missing = [record["id"] for record in project.records if record["id"] not in labels]
    return listed(missing, len(missing), "item")


def _in_order(name: str) -> tuple[int, int, str]:
    return (0, int(name), name) if name.lstrip("-").isdecimal() else (1, 0, name)


def _code(name: str, taken: Iterable[str]) -> str:
    """Return a code without spaces for a label."""
    code = "-".join(name.split())[: LONGEST_CODE - 3] or "empty"
    number, numbered, used = 1, code, set(taken)
    while numbered in used:
        number += 1
        numbered = f"{code}-{number}"
    return numbered


def _label(project: Project, answer: Answer, codes: Mapping[str, str]) -> str:
    """Return the label of an answer in the form of a file of judgments; "" if it is empty."""
    if project.form == "spans":
        return text_of(span._replace(label=codes[_named(span)]) for span in answer.labels if isinstance(span, Span))
    return " ".join(sorted({codes[_named(label)] for label in answer.labels if isinstance(label, str)}))


def _named(label: str | Span) -> str:
    """Return the name of a label in NFC, in one line and without surplus spaces."""
    return " ".join(tidy(label.label if isinstance(label, Span) else label).split())


def in_words(lost: Mapping[str, int]) -> str:
    """Return a sentence about what was not kept."""
    return f"Not kept: {'; '.join(f'{what} ({count:,})' for what, count in lost.items() if count)}."
