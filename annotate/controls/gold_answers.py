"""Gold answers, which are items with a known answer: read them from files, check them and correct them.

Each gold answer has a single purpose: practice, the test, or the queue, where honeypots.py hides it among the work. It
can't have two purposes. For example, practice reveals the right answer, so the same item would measure nothing in the
queue. Gold answers are never exported. Items with the same content as a gold answer are excluded from the work.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, product
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from annotate.controls.honeypots import (
    DrawState,
    answers,
    count_coming,
    is_due,
    load_draw_states,
    order_honeypots,
    read_draw_state,
    rule,
    score,
)
from annotate.core.draws.committed_draws import GOLD_PLACE, Line, gold_order
from annotate.core.pause_rule import pauses
from annotate.core.refusals import InvalidAnswer
from annotate.kinds.control import Place, QualityControl, register
from annotate.models import Annotator, GoldAnswer, Judgment, Lease, Task, Trial, TrialAnswer, Unit
from annotate.quality.commitments import READ, draw_line
from annotate.work.assignment import PlaceOf, free_place
from annotate.work.eligible import Seen, unjudged_by
from annotate.work.interventions import stop
from annotate.work.permit import Permit
from annotate.work.task_creation import Entry, GoldRow
from annotate.work.unit_entry import add_units, shuffle
from corpora.core.graphemes import UNSPACED
from corpora.core.languages import code_of
from corpora.core.records import read_id
from corpora.core.values import is_missing, matching, tidy, whole
from corpora.database.statements import prepared
from corpora.draws.samples import items_of
from corpora.models import Item, as_read
from corpora.sources.compression import check_file, format_of
from corpora.sources.readers import Columns, read_rows
from corpora.sources.text import Fault

FIELDS = ("id", "label", "purpose", "explanation")
PURPOSES = (GoldAnswer.PRACTICE, GoldAnswer.TEST, GoldAnswer.QUEUE)
# The largest share that one label can have among a language's hidden gold answers. With a larger share, annotators
# could always choose that label without being caught.
MOST_ALIKE = 0.7
LEAST_HIDDEN = 8


class GoldAnswerError(Exception):
    """Raised if gold answers can't be used. The message states why and what to do. Nothing has been changed."""


def read_gold(paths: Iterable[Path], columns: Mapping[str, str] | None = None) -> list[GoldRow]:
    """Read gold answers from files.

    Rows without a purpose are skipped, so a file can contain all items of a corpus even if only some are gold answers.

    paths: the files.
    columns: mapping from field (FIELDS) to column name, for columns that aren't named like their field.

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

    earlier_ids: ids of the earlier rows.
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
    """Return a field's value as text; "" if the value is missing.

    Lists of labels are joined with spaces. The number 0 is a label, not a missing value.
    """
    if isinstance(value, list | tuple):
        return " ".join(map(text_of, value))
    if value is None or (isinstance(value, float) and is_missing(value)):
        return ""
    return tidy(whole(str(value)) if isinstance(value, float) else str(value))


def store(task: Task, rows: list[GoldRow], items: list[Item]) -> dict[Item, str]:
    """Store a task's gold answers. Gold answers in languages that the task doesn't have are skipped.

    The caller must have opened a transaction.

    rows: the gold answers.
    items: the gold answers' items, in the same order.

    Return the items to hide among the work, with their correct labels. Raise GoldAnswerError if a label is not valid in
    the task, or if two gold answers have the same content.
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
    """Return a label's canonical form. Raise ValueError if the label is not a valid answer in the task."""
    if task.kind.labels_are_languages and label not in task.labels:
        label = code_of(label) or label
    label = task.kind.form.read([matching(label, task.labels)])
    task.kind.rules.check_label(label, task)
    return label


def exclude_gold_content(task: Task, items: list[Item]) -> list[Item]:
    """Remove items with the same content as one of the task's gold answers."""
    gold = task.gold_answers.values_list("item__language", "item__text", "item__fields")
    contents = {as_read(*content) for content in gold}
    return [item for item in items if as_read(item.language, item.text, item.fields) not in contents]


def check_pool(task: Task) -> None:
    """Check that each language has enough gold answers for the test and the queue.

    Raise GoldAnswerError if there are too few, or if too many gold answers in the queue have the same label.
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
        # Suppose that an annotator always chooses the same label, and count how many gold answers they'd get right. If
        # answers are sets of labels, an answer can be right without being equal to the gold answer.
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


def answer_counts(task: Task) -> dict[int, tuple[int, int]]:
    """Return how many answers each gold answer got, as a mapping from item key to (right answers, all answers).

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
    """Check a gold answer's new label and explanation. Return the canonical form of the label.

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
    """Correct a gold answer's label and explanation. Its unit in the queue also gets the new label.

    Answers, including earlier ones, are then compared with the new label. Finished tests and existing pauses don't
    change.

    Return how many answers agree with the new label, and how many with the old one. Both are 0 if the label is
    unchanged.
    """
    label = check_correction(gold.task, gold.purpose, label, explanation)
    gold = GoldAnswer.objects.select_for_update(of=("self",)).get(pk=gold.pk)
    old_label = gold.label
    gold.label, gold.explanation = label, explanation.strip()
    gold.save(update_fields=["label", "explanation"])

    for unit in gold.task.units.select_for_update(no_key=True).filter(item=gold.item_id, honeypot=True):
        unit.known_answer = label
        unit.save(update_fields=["known_answer"])
    if label == old_label:
        return 0, 0
    submitted = list(gold.trial_answers.filter(trial__kind=Trial.TEST).order_by().values_list("label", flat=True))
    submitted += answers(gold.task).filter(unit__item=gold.item_id).order_by().values_list("label", flat=True)
    agrees = gold.task.kind.rules.agrees
    return sum(agrees(answer, label) for answer in submitted), sum(agrees(answer, old_label) for answer in submitted)


# --- The `gold answers` quality control, which hides gold answers in the queue and pauses annotators who fail too many.
# It also records which gold answers annotators received, so that the draws can be verified, and finds units whose
# answer is already known because they repeat a gold answer or an example from the guidelines.


class GoldAnswers(QualityControl):
    """Hide gold answers among each annotator's units, and pause annotators who fail too many of them."""

    name = "gold answers"
    switches = ("gold_share",)
    inputs = ("gold", "gold_column")
    hides = True

    def enter(self, entry: Entry) -> None:
        task = entry.task
        hidden = store(task, list(entry.gold), items_of(entry.corpus, [row.id for row in entry.gold]))
        for control in task.kind.hooks["gold_stored"]:
            control.gold_stored(task, entry.suggested)
        answers = {item.pk: label for item, label in hidden.items()}
        add_units(task, list(hidden), known_answers=answers, honeypots=True, suggested=entry.suggested)
        check_pool(task)
        entry.items = exclude_gold_content(task, shuffle(entry.items, entry.seed))

    def place(self, unit: Unit, permit: Permit) -> PlaceOf:
        annotator = permit.annotator
        query_pool = _POOL_QUERIES[annotator.has_seen_answers, annotator.takes_disturbing]
        pool = query_pool(permit.task.pk, annotator.pk, unit.language, unit.pk)
        seen_by_others = {pk: bool(number) for pk, *_, number in pool}
        hidden = order_honeypots(permit, [row for *row, is_returned, _ in pool if not is_returned])
        # Prefer a gold answer that nobody has seen except annotators who have already answered this unit. If this
        # annotator returns it, the unit's next annotator can still get it here.
        hidden.sort(key=seen_by_others.__getitem__)
        state = read_draw_state(permit, unit.language)
        due = hidden if is_due(permit, unit.language, state) else []
        return partial(_choose_place, unit=unit, due=due, pool=[pk for pk, *_ in pool], state=state)

    def excluded(self, task: Task, units: Iterable[Any]) -> Mapping[int, str]:
        """Find units that repeat one of the task's gold answers or an example from its guidelines.

        Items with the content of a gold answer are excluded when the task is opened. However, gold answers can be added
        later, and guidelines can change.

        Return GOLD_ANSWER or EXAMPLE by unit key.
        """
        gold = task.gold_answers.values_list("item__language", "item__text", "item__fields")
        answers = {as_read(*content) for content in gold}
        texts = [f" {_words(text)} " for text in task.guidelines.order_by("pk").values_list("text", flat=True)]
        reasons = {}
        for batch in units:
            columns = (batch.unit[name].to_pylist() for name in ("pk", "item__language", "item__text", "item__fields"))
            for pk, language, text, fields_json in zip(*columns, strict=True):
                fields = json.loads(fields_json)
                if as_read(language, text, fields) in answers:
                    reasons[pk] = GOLD_ANSWER
                elif _is_quoted(list(filter(None, map(_words, fields.values() or [text]))), texts):
                    reasons[pk] = EXAMPLE
        return reasons

    def draws(self, task: Task) -> Iterator[Line]:
        return _gold_places(task) if task.gold_share else iter(())

    def coming(self, permits: Sequence[Permit]) -> Callable[[Permit, Counter[str], Counter[str]], int]:
        return partial(count_coming, load_draw_states(permits))

    def score(self, permit: Permit) -> tuple[int, int]:
        return score(permit)

    def pauses(self, permit: Permit) -> bool:
        """Pause an annotator who has failed too many gold answers. Return whether the annotator is now paused.

        After a pause has been lifted, only newer answers count.
        """
        right, answered = score(permit)
        if not permit.is_paused and pauses(right, answered, rule(permit.task)):
            stop(permit, right, answered)
            return True
        return permit.is_paused


def _prepare_pool_query(may_have_seen: bool, takes_disturbing: bool) -> Callable[..., list[Any]]:
    @prepared
    def pool(task: int, annotator: int, language: str, work: int) -> QuerySet[Unit, Any]:
        """Select a language's gold answers that can replace a unit of work for an annotator.

        Each row has a gold answer's unit key and item id, whether the annotator has it open or has returned it, and how
        many other annotators have received it but not answered the unit of work.
        """
        answered = Judgment.objects.filter(unit=work).order_by().values("annotator")
        other_leases = (
            Lease.objects.filter(unit=OuterRef("pk")).exclude(annotator=annotator).exclude(annotator__in=answered)
        )
        own_leases = Lease.objects.filter(unit=OuterRef("pk"), annotator=annotator, instead_of__isnull=False)
        own_leases = own_leases.filter(Q(closed_at=None) | Q(outcome__in=Lease.RETURNED))
        hidden = Unit.objects.filter(task=task, honeypot=True, language=language).order_by()
        available = unjudged_by(hidden, annotator, may_have_seen=may_have_seen, takes_disturbing=takes_disturbing)
        # Count these annotators instead of using EXISTS, because PostgreSQL would turn EXISTS into a join.
        number = other_leases.order_by().values("unit").annotate(number=Count("pk")).values("number")
        rows = available.annotate(given=Exists(own_leases), met=Coalesce(Subquery(number), 0))
        return rows.values_list("pk", "item__key", "given", "met")

    return pool


_POOL_QUERIES = {flags: _prepare_pool_query(*flags) for flags in product((False, True), repeat=2)}


def _choose_place(
    leases: list[Lease],
    own_leases: list[Lease],
    *,
    unit: Unit,
    due: Sequence[int],
    pool: Collection[int],
    state: DrawState,
) -> Place:
    """Decide what an annotator gets when a unit of work is next in the queue. The first possible choice applies:

    1. the unit or gold answer that the annotator returned here earlier, without a new draw
    2. a gold answer, if one is due
    3. a gold answer that another annotator returned here. It replaces the unit, and the draw counts it as work.
    4. the unit of work itself

    leases: all leases of the unit, including those of gold answers that replaced it.
    own_leases: the leases of the annotator.
    unit: the unit of work.
    due: keys of gold answers in the annotator's order; empty if no gold answer is due.
    pool: keys of all gold answers that the annotator can get.
    state: state of the annotator's draw.
    """
    stand_ins = {lease.unit_id for lease in leases}.intersection(pool)
    free = {pk for pk in stand_ins if free_place(unit, leases, stand_in=pk) is not None}
    returned = _last_returned(own_leases)
    if returned and (returned.unit_id == unit.pk or returned.unit_id in free):
        return Place(returned.unit_id, {"turn": None, "in_place": returned.in_place})
    if due:
        # Prefer a gold answer that hasn't replaced this unit for another annotator, because those answers count.
        return Place(min(due, key=lambda pk: pk in stand_ins), {"turn": state})
    if other_returned := _last_returned(lease for lease in leases if lease.unit_id in free):
        return Place(other_returned.unit_id, {"turn": state, "in_place": True})
    return Place(unit.pk, {"turn": state})


def _last_returned(leases: Iterable[Lease]) -> Lease | None:
    """Return the most recent lease that was returned; None if there is none."""
    return max((lease for lease in leases if lease.outcome in Lease.RETURNED), key=lambda lease: lease.pk, default=None)


# --- Records of the units that each annotator has received, so that the draws can be verified


def _gold_places(task: Task) -> Iterator[Line]:
    """Yield a record for each annotator and language. It lists the units that the annotator received, in order."""
    pools: dict[str, list[str]] = {}
    for language, key in task.units.filter(honeypot=True).order_by("pk").values_list("language", "item__key"):
        pools.setdefault(language, []).append(key)
    flagged = Judgment.objects.filter(unit__task=task, unit__honeypot=True, kind=Judgment.FLAG).order_by("unit")
    disturbing = list(flagged.values_list("unit__item__key", flat=True).distinct())
    by_person = ("annotator__pseudonym", "queue")
    leases = Lease.objects.filter(unit__task=task).order_by(*by_person, "pk")
    rows = leases.values_list(*by_person, "turn", "in_place", "unit__honeypot", "unit__item__key")
    for (person, language), lease_rows in groupby(rows.iterator(READ), key=lambda row: row[:2]):
        entries = _entries(
            (turn, in_place, key if honeypot else "") for *_, turn, in_place, honeypot, key in lease_rows
        )
        if entries and language in pools:
            disturbing_keys = [key for key in disturbing if key in pools[language]]
            parameters = {"disturbing": disturbing_keys} if disturbing_keys else {}
            annotator = Annotator.objects.values_list("pk", flat=True).get(pseudonym=person)
            seen_units = task.units.hidden().filter(Seen("pk", annotator)).order_by("pk")
            if seen := [key for key in seen_units.values_list("item__key", flat=True) if key in pools[language]]:
                parameters["seen_elsewhere"] = seen
            if passed_over := _passed_over(
                gold_order(task.lots, person, pools[language]), entries, [*disturbing_keys, *seen]
            ):
                parameters["passed_over"] = passed_over
            yield draw_line(GOLD_PLACE, [person, language], parameters, pools[language], entries)


def _passed_over(order: list[str], entries: list[Any], never: list[str]) -> list[str]:
    """Return the gold answers that were due, but were skipped because other annotators had seen them.

    order: ids of gold answers in the order of the annotator's draw.
    entries: result of `_entries` for the annotator.
    never: ids of gold answers that this annotator must not get.
    """
    handled, passed = set(never), dict[str, None]()
    for entry in entries:
        key = entry if isinstance(entry, str) else entry[3]
        if isinstance(key, str):
            passed |= dict.fromkeys(
                candidate for candidate in order[: order.index(key)] if candidate not in handled and key is not entry
            )
            handled.add(key)
    return list(passed)


def _entries(units: Iterable[tuple[list[int] | None, bool, str]]) -> list[Any]:
    """Convert the units that an annotator has received to entries of the draw's record.

    - Consecutive drawn units of work form one entry, with the state of the draw and the number of units.
    - A drawn gold answer is an entry with the state of the draw and the gold answer's id.
    - A gold answer that had been returned comes back without a draw, so its entry has only its id. It is listed only
      the first time the annotator receives it. If it replaced a unit of work, it also counts as work.

    units: (state, is_replacement, id) for each unit: the state of the draw, None if nothing was drawn; whether a
        returned gold answer replaced a unit of work; and the id of the gold answer, "" for work
    """
    entries: list[Any] = []
    received: set[str] = set()
    for turn, in_place, key in units:
        if turn is None or in_place:
            entries += [key] if key and key not in received else []
        if turn is None:
            pass
        elif key and not in_place:
            entries.append([*turn, key])
        elif entries and _continues(entries[-1], turn):
            entries[-1][3] += 1
        else:
            entries.append([*turn, 1])
        received.add(key)
    return entries


def _continues(entry: Any, turn: list[int]) -> bool:
    """Return whether a unit of work drawn in this state directly follows the units of an entry."""
    if isinstance(entry, str) or isinstance(entry[3], str):
        return False
    place, honeypots, size, number = entry
    return [place + number, honeypots, size] == turn


# --- Items quoted in guidelines


EXAMPLE, GOLD_ANSWER = "guidelines", "gold_answer"
# We only search guidelines for items with at least this many letters and digits. A short item such as "cheap flights"
# can occur there by chance.
LEAST_LETTERS = 20


def _is_quoted(values: list[str], texts: list[str]) -> bool:
    """Return whether one of the texts contains all of an item's values.

    Short items never count as quoted, because their values can occur in any text by chance.

    values: the item's values, reduced to words by `_words`.
    texts: guidelines, reduced to words and enclosed in spaces.
    """
    letters = sum(len(value) - value.count(" ") for value in values)
    return letters >= LEAST_LETTERS and any(all(f" {value} " in text for value in values) for text in texts)


def _words(text: str) -> str:
    """Reduce the text to its words, separated by single spaces, so that Markdown, quotes and line breaks don't matter.

    In scripts without spaces between words, each character counts as a word.
    """
    return " ".join(re.sub(r"[\W_]+", " ", re.sub(f"[{UNSPACED}]", r" \g<0> ", text.casefold())).split())


register(GoldAnswers())
