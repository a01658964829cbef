"""Gold answers, which are items with a known answer: reading them from files, checking them and correcting them.

Each gold answer has a single purpose: practice, the test, or the queue, where honeypots.py hides it among the work. It
cannot have two, because practice explains the right answer, so the item would be useless in the queue afterwards.
Gold answers are never exported. Items with the same content as a gold answer are excluded from work.
"""

import math
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Count

from annotate.controls.honeypots import answers
from annotate.core.refusals import InvalidAnswer
from annotate.models import GoldAnswer, Task, Trial, TrialAnswer
from annotate.work.task_creation import GoldRow
from corpora.core.languages import code_of
from corpora.core.records import read_id
from corpora.core.values import is_missing, matching, tidy, whole
from corpora.models import Item, as_read
from corpora.sources.compression import check_file, format_of
from corpora.sources.readers import Columns, read_rows
from corpora.sources.text import Fault

FIELDS = ("id", "label", "purpose", "explanation")
PURPOSES = (GoldAnswer.PRACTICE, GoldAnswer.TEST, GoldAnswer.QUEUE)
# Maximum share of a single label among the hidden gold answers in a language. If a label had a larger share, a person
# could always give this label without being detected.
MOST_ALIKE = 0.7
LEAST_HIDDEN = 8


class GoldAnswerError(Exception):
    """Raised if gold answers cannot be used. The message states why and what to do. Nothing was changed."""


def read_gold(paths: Iterable[Path], columns: Mapping[str, str] | None = None) -> list[GoldRow]:
    """Read gold answers from files.

    Rows without a purpose are skipped. A file can therefore contain all items of a corpus even if only some of them are
    gold answers.

    paths: the files.
    columns: mapping from field (FIELDS) to column, for columns with a name other than that of the field.

    Raise GoldAnswerError, with the file and the line, if a row is not valid.
    """
    column_names = {field: field for field in FIELDS} | dict(columns or {})
    rows: dict[str, GoldRow] = {}
    for path in paths:
        check_file(path, None)
        file_columns = Columns(column_names, needed=("id", "label", "purpose"))
        for line, raw in read_rows(path, format_of(path) or "", file_columns):
            try:
                if isinstance(raw, Fault):
                    raise ValueError(raw.reason)
                if not is_missing(raw.get("purpose")):
                    row = _row(raw, rows)
                    rows[row.id] = row
            except ValueError as error:
                raise GoldAnswerError(f"{path}, line {line:,}: {error}") from error
    return list(rows.values())


def _row(raw: Mapping[str, object], earlier_ids: Container[str]) -> GoldRow:
    """Convert a row of a file to a gold answer. Raise ValueError if the row is not valid.

    earlier_ids: ids of the rows that were read before.
    """
    key, explanation = read_id(raw.get("id")), raw.get("explanation")
    explanation = "" if is_missing(explanation) else text_of(explanation)
    row = GoldRow(key, text_of(raw.get("label")), text_of(raw.get("purpose")), explanation)
    if row.purpose not in PURPOSES:
        raise ValueError(
            f"the purpose is {row.purpose!r}; it must be one of {', '.join(PURPOSES)}, or empty for a record that is "
            "not a gold answer."
        )
    if not row.label:
        raise ValueError("a gold answer needs an id and a label.")
    if row.purpose == GoldAnswer.PRACTICE and not row.explanation:
        raise ValueError(
            f"practice explains every item, but {row.id} has no explanation. Explain in one sentence why its label is "
            "right."
        )
    if row.id in earlier_ids:
        raise ValueError(f"{row.id} occurs twice, but a gold answer can have only one purpose. Remove one of the rows.")
    return row


def text_of(value: object) -> str:
    """Return the value of a field as text; "" if it is missing.

    If the value is a list of labels, they are joined by spaces. The number 0 is a label, not a missing value.
    """
    if isinstance(value, list | tuple):
        return " ".join(map(text_of, value))
    if value is None or (isinstance(value, float) and is_missing(value)):
        return ""
    return tidy(whole(str(value)) if isinstance(value, float) else str(value))


def store(task: Task, rows: list[GoldRow], items: list[Item]) -> dict[Item, str]:
    """Store gold answers for a task. Gold answers in languages that the task does not have are ignored.

    The caller has opened a transaction.

    rows: the gold answers.
    items: the items of the gold answers, in the same order.

    Return the items to hide among the work, with their correct labels. Raise GoldAnswerError if a label is not possible
    in the task, or if two gold answers have the same content.
    """
    rows_and_items: list[tuple[GoldRow, Item]] = []
    ids_by_content: dict[tuple[Any, ...], str] = {}
    for row, item in zip(rows, items, strict=True):
        if item.language not in task.languages:
            continue
        try:
            rows_and_items.append((replace(row, label=_canonical(task, row.label)), item))
        except ValueError as error:
            raise GoldAnswerError(f"The gold answer of {row.id}: {error}") from error
        if (other := ids_by_content.setdefault(as_read(item.language, item.text, item.fields), row.id)) != row.id:
            raise GoldAnswerError(
                f"The gold answers {other} and {row.id} have the same content, so a person who has seen one would "
                "know the other. Remove one."
            )
    GoldAnswer.objects.bulk_create(
        GoldAnswer(task=task, item=item, purpose=row.purpose, label=row.label, explanation=row.explanation)
        for row, item in rows_and_items
    )
    return {item: row.label for row, item in rows_and_items if row.purpose == GoldAnswer.QUEUE}


def _canonical(task: Task, label: str) -> str:
    """Return the canonical text of a label. Raise ValueError if it is not a possible answer in the task."""
    if task.kind.labels_are_languages and label not in task.labels:
        label = code_of(label) or label
    label = task.kind.form.read([matching(label, task.labels)])
    task.kind.rules.check_label(label, task)
    return label


def without_twins(task: Task, items: list[Item]) -> list[Item]:
    """Return the items, except those with the same content as a gold answer of the task."""
    gold = task.gold_answers.values_list("item__language", "item__text", "item__fields")
    contents = {as_read(*content) for content in gold}
    return [item for item in items if as_read(item.language, item.text, item.fields) not in contents]


def check_pool(task: Task) -> None:
    """Raise GoldAnswerError if a language has too few gold answers for the test or the queue.

    Also raise it if too many of the gold answers in the queue have the same label.
    """
    rows = Counter(task.gold_answers.order_by("pk").values_list("item__language", "purpose", "label"))
    for language in task.languages:
        tests, hidden = (
            Counter({label: n for (code, use, label), n in rows.items() if (code, use) == (language, purpose)})
            for purpose in (GoldAnswer.TEST, GoldAnswer.QUEUE)
        )
        minimum = task.test_items if task.tries == 1 else math.ceil(1.5 * task.test_items)
        if tests.total() < minimum:
            raise GoldAnswerError(
                f"The test in {language} asks {task.test_items} random questions. It needs at least {minimum} gold "
                f"answers with the purpose test, so that a second try is a new test, but there are {tests.total()}. "
                "Add some, or lower --test-items (0: no test)."
            )
        if task.gold_share and hidden.total() < LEAST_HIDDEN:
            raise GoldAnswerError(
                f"In {language}, only {hidden.total()} gold answers have the purpose queue, but at least "
                f"{LEAST_HIDDEN} are needed to measure people's accuracy. Add some, or set --gold-share 0."
            )
        # For each label, count how many gold answers a person would get right by always giving that label. If answers
        # are sets of labels, an answer can be right without being equal to the gold answer.
        right_counts = {
            label: sum(n for answer, n in hidden.items() if task.kind.rules.agrees(label, answer)) for label in hidden
        }
        label, count = max(right_counts.items(), key=lambda pair: pair[1], default=("", 0))
        if task.gold_share and count > MOST_ALIKE * hidden.total():
            raise GoldAnswerError(
                f"In {language}, {count} of the {hidden.total()} gold answers with the purpose queue are "
                f"{label}{', or similar enough to be right' if hidden[label] < count else ''}, so a person who always "
                "gives this answer would not be detected. Add some with other labels."
            )


def answered(task: Task) -> dict[int, tuple[int, int]]:
    """Return (right, total) by item key: how many answers to the gold answer are right, and how many there are.

    Answers in tests and in the queue are counted; answers in practice are not.
    """
    gold_labels = dict(task.gold_answers.values_list("item_id", "label"))
    tests = TrialAnswer.objects.filter(gold_answer__task=task, trial__kind=Trial.TEST, answered_at__isnull=False)
    counts, right = Counter[int](), Counter[int]()
    for rows, item in ((tests, "gold_answer__item"), (answers(task), "unit__item")):
        for key, label, number in rows.order_by().values_list(item, "label").annotate(Count("pk")):
            counts[key] += number
            right[key] += number * (key in gold_labels and task.kind.rules.agrees(label, gold_labels[key]))
    return {key: (right[key], number) for key, number in counts.items()}


def check_correction(task: Task, purpose: str, label: str, explanation: str) -> str:
    """Check the new label and explanation of a gold answer, and return the canonical text of the label.

    Raise InvalidAnswer if they are not valid for a gold answer with this purpose.
    """
    try:
        label = _canonical(task, label)
    except ValueError as error:
        raise InvalidAnswer(str(error)) from error
    if purpose == GoldAnswer.PRACTICE and not explanation.strip():
        raise InvalidAnswer("Practice explains every item. Explain in one sentence why this label is right.")
    return label


@transaction.atomic
def correct(gold: GoldAnswer, label: str, explanation: str) -> tuple[int, int]:
    """Correct the label and the explanation of a gold answer. Its unit in the queue also gets the new label.

    From then on, people's answers are compared with the new label. Finished tests and existing pauses do not change.

    Return the number of answers that agree with the new label, and the number that agree with the old one. Both are 0
    if the label is unchanged.
    """
    label = check_correction(gold.task, gold.purpose, label, explanation)
    gold = GoldAnswer.objects.select_for_update(of=("self",)).get(pk=gold.pk)
    old_label = gold.label
    gold.label, gold.explanation = label, explanation.strip()
    gold.save(update_fields=["label", "explanation"])
    # The unit must be locked before it is changed.
    for unit in gold.task.units.select_for_update(no_key=True).filter(item=gold.item_id, honeypot=True):
        unit.known_answer = label
        unit.save(update_fields=["known_answer"])
    if label == old_label:
        return 0, 0
    given_labels = list(gold.trial_answers.filter(trial__kind=Trial.TEST).order_by().values_list("label", flat=True))
    given_labels += answers(gold.task).filter(unit__item=gold.item_id).order_by().values_list("label", flat=True)
    agrees = gold.task.kind.rules.agrees
    return sum(agrees(given_label, label) for given_label in given_labels), sum(
        agrees(given_label, old_label) for given_label in given_labels
    )
