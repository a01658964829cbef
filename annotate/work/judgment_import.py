"""Imports judgments that were made with another tool, and adds them to a task's units.

actions/judgment_files.py parses the file. The workers in it become annotators who cannot log in. routing.py treats
imported judgments like any other judgments.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.db.models import Max
from django.utils import timezone

from annotate.core import stages
from annotate.kinds import IMPORTED, IMPORTED_PAIRS, KINDS
from annotate.kinds.forms.choice import check_system
from annotate.kinds.preference_kind import BETWEEN
from annotate.models import Annotator, Comparison, Judgment, Lease, Task, Unit
from annotate.work.moves import BATCH
from annotate.work.routing import decide_all
from annotate.work.task_creation import TaskError, check_task, save_new, with_defaults
from annotate.work.unit_entry import add_units
from corpora.core.languages import UND
from corpora.database.bulk_rows import batched, insert, insert_columns, listed, plain
from corpora.models import Corpus, Item
from corpora.storage.layout import read_manifest

_PlainItem = plain(Item)

# --- the closed task that is created for a file's items
#
# Only the ids of these items are known. They also serve as the items' texts.


def systems_of(key: str) -> tuple[str, str]:
    """Parse the two systems that an item compares from its id. Returns them in the id's order.

    key: item id, in the form MESSAGE|SYSTEM|SYSTEM.

    Raise ValueError if the id does not have this form, or names the same system twice.
    """
    _, *systems = key.rsplit(BETWEEN, 2)
    if len(systems) < 2:
        raise ValueError(f"The task {key[:40]!r} must have the form MESSAGE|SYSTEM|SYSTEM.")
    first, second = systems
    for system in systems:
        check_system(system)
    if first == second:
        raise ValueError(f"The task {key[:40]!r} compares {first} with itself.")
    return first, second


def create_imported_task(
    name: str,
    items: Mapping[str, str],
    labels: Sequence[str],
    *,
    in_order: bool,
    source: str,
    digest: str,
    pairs: bool = False,
) -> Task:
    """Create a closed task for imported judgments and its corpus, within the caller's transaction.

    name: the task's name.
    items: each item's language, by item id; "" if unknown.
    labels: the task's labels.
    in_order: whether the user chose the order of the labels.
    source: the file's name.
    digest: the file's digest.
    pairs: whether each item compares two systems.

    Raise TaskError if the name is taken or invalid.
    """
    kind = KINDS[IMPORTED_PAIRS if pairs else IMPORTED]
    languages = sorted(set(items.values()) - {""})
    values = {"labels": list(labels), "languages": languages, "options": with_defaults(kind, {})}
    task = Task(name=name, kind_slug=kind.slug, kind_file=kind.source, title=kind.title, is_open=False, **values)
    check_task(task)
    if Corpus.objects.filter(name=name).exists() or read_manifest(name):
        raise TaskError(
            f"The corpus {name!r} already exists, but a new task of imported judgments creates a corpus with the same "
            "name. Choose another task name."
        )
    corpus = Corpus(name=name)
    save_new(task, corpus)
    # A task needs a draw, so record one that contains all items.
    parameters = {"imported": source, "labels_in_order": in_order}
    sizes: dict[str, Any] = dict.fromkeys(("asked", "size", "frame_size"), len(items))
    task.draws.create(
        corpus=corpus, design="records", parameters=parameters, seed="imported", parts=0, frame_digest=digest, **sizes
    )
    fields: dict[str, Any] = {"corpus": corpus, "votes": {}, "letters": 0}
    rows = (_PlainItem(key=key, text=key, language=code or UND, **fields) for key, code in items.items())
    add_units(task, rows, store=insert)
    if pairs:
        # The file does not contain the systems' replies.
        units = task.units.select_related("item").order_by("pk")
        systems = ((unit, *systems_of(unit.item.key)) for unit in units)
        insert(Comparison(unit=unit, system_a=a, system_b=b) for unit, a, b in systems)
    return task


# Stage in which a unit accepts no more judgments -> reason to report.
CLOSED = {
    stages.COPIED: "has the same text as another item and gets its label; import the judgments of that item",
    stages.AGREED: "was labelled by the detectors and accepts no answers",
    stages.ADJUDICATION: "is waiting for an adjudicator and accepts no more answers",
    stages.LABELLED: "already has a label; import all judgments of an item in one file",
    stages.DISCARDED: "has already been excluded; import all judgments of an item in one file",
}

Progress = Callable[[int], object]  # called with the number of rows stored; an exception from it rolls them back
Rejects = dict[int, str]  # the reason for rejecting each line, by line number


class Row(NamedTuple):
    """A judgment in a file.

    line: line number, for messages.
    task: the item's id.
    language: the item's language; "" if the file does not state it.
    answered_at: time of the judgment; None if the file does not state it.
    """

    line: int
    task: str
    worker: str
    label: str
    language: str
    answered_at: datetime | None = None


@dataclass
class ImportResult:
    """Result of an import.

    is_new: whether the import created the task.
    judgments: number of answers stored.
    repeats: number of repeated answers (a worker's second or later answer to an item) that were kept.
    already: number of rows that an earlier import had already stored.
    annotators: number of annotators with new judgments.
    units: number of units with new answers.
    stages: number of units in each stage after the import. Only units that now have all their answers are counted.
    rejects: the reason for rejecting each rejected line, by line number.
    further: line numbers of rejected repeated answers.
    rejects_file: file that lists the rejected lines; None if there are none.
    notes: sentences about labels that were converted.
    """

    task: Task
    is_new: bool
    judgments: int = 0
    repeats: int = 0
    already: int = 0
    annotators: int = 0
    units: int = 0
    stages: Counter[str] = field(default_factory=Counter)
    rejects: Rejects = field(default_factory=dict)
    further: set[int] = field(default_factory=set)
    rejects_file: Path | None = None
    notes: list[str] = field(default_factory=list)


class _Unit(NamedTuple):
    pk: int
    stage: str
    honeypot: bool
    round: int
    language: str


class _Lookup(NamedTuple):
    """The units and annotators in a file, and the units' answers so far. Voided answers are left out.

    units: units by item id.
    annotators: primary keys of annotators by worker.
    labels: mapping from a unit's primary key to the labels of its answers, oldest first.
    last: mapping from a unit's primary key to its last answer's primary key.
    """

    units: dict[str, _Unit]
    annotators: dict[str, int]
    labels: defaultdict[int, list[str]]
    last: dict[int, int]


def add_judgments(
    imported: ImportResult, rows: list[Row], *, keep_repeats: bool, progress: Progress = lambda rows: None
) -> None:
    """Add judgments to the units, and decide the units that have all their answers, within the caller's transaction.

    imported: the result to update.
    rows: the judgments.
    keep_repeats: whether to store repeated answers for analysis instead of rejecting them.
    progress: called as rows are stored.
    """
    if not rows:
        return
    task, rejects = imported.task, imported.rejects
    units = _lock_units(task, {row.task for row in rows})
    for row in rows:
        if row.task not in units:
            rejects[row.line] = f"{row.task} is not an item of the task {task.name}."
        elif units[row.task].honeypot:
            rejects[row.line] = f"{row.task} is a gold answer of the task {task.name} and cannot get judgments."
    rows = [row for row in rows if row.line not in rejects]
    lookup = _Lookup(units, _ensure_annotators(task, {row.worker for row in rows}), defaultdict(list), {})
    answers, repeats = _classify_rows(imported, rows, keep_repeats, lookup)
    _store(Judgment.ANSWER, answers, lookup, progress)
    _store(Judgment.REPEAT, repeats, lookup, progress)
    imported.judgments, imported.repeats = len(answers), len(repeats)
    imported.annotators = len({row.worker for row in chain(answers, repeats)})
    answered_units = dict.fromkeys(units[row.task].pk for row in answers)
    imported.units = len(answered_units)
    for keys in batched(answered_units, BATCH):
        imported.stages += _decide(task, keys, lookup, is_new=imported.is_new)


def _lock_units(task: Task, keys: Iterable[str]) -> dict[str, _Unit]:
    """Lock and return the task's units for these items, by item id. Items without a unit are left out."""
    ids = dict(task.units.filter(item__key__in=listed(keys)).order_by().values_list("pk", "item__key"))
    units = task.units.filter(pk__in=listed(ids)).order_by("pk").select_for_update(no_key=True)
    return {ids[row[0]]: _Unit(*row) for row in units.values_list(*_Unit._fields)}


def _ensure_annotators(task: Task, workers: Iterable[str]) -> dict[str, int]:
    """Get or create an annotator for each worker. Returns the annotators' primary keys by worker.

    Their user names contain a colon, which other user names can't contain, so the two never conflict.
    """
    prefix = f"imported:{task.name}:"
    names = {f"{prefix}{worker}": worker for worker in workers}
    existing = set(User.objects.filter(username__startswith=prefix).values_list("username", flat=True))
    new = sorted(names.keys() - existing)
    users = insert(User(username=name, password=make_password(None), is_active=False) for name in new)
    insert(Annotator(user=user) for user in users)
    annotators = Annotator.objects.filter(user__username__startswith=prefix).values_list("user__username", "pk")
    return {names[name]: annotator for name, annotator in annotators if name in names}


def _classify_rows(
    imported: ImportResult, rows: list[Row], keep_repeats: bool, lookup: _Lookup
) -> tuple[list[Row], list[Row]]:
    """Return the rows to store: answers that count, and repeated answers to keep.

    The remaining rows are recorded in `imported`: they were either stored by an earlier import or are rejected. Earlier
    answers are added to `lookup`, except voided answers.
    """
    earlier_answers = _earlier_answers({lookup.units[row.task].pk for row in rows}, lookup)
    matched: Counter[tuple[int, int]] = Counter()
    new_labels: dict[tuple[int, int], str] = {}
    answers, repeats = [], []
    for row in rows:
        unit = lookup.units[row.task]
        pair = unit.pk, lookup.annotators[row.worker]
        earlier = earlier_answers.get(pair)
        if earlier and earlier[matched[pair] : matched[pair] + 1] == [row.label]:
            matched[pair] += 1
            imported.already += 1
        elif (earlier or pair in new_labels) and keep_repeats:
            repeats.append(row)
        elif first := earlier[0] if earlier else new_labels.get(pair):
            imported.further.add(row.line)
            imported.rejects[row.line] = (
                f"{row.worker} has already answered {row.task} with {first}. The first answer counts."
            )
        elif unit.stage != stages.QUEUED:
            imported.rejects[row.line] = f"{row.task} {CLOSED[unit.stage]}."
        else:
            answers.append(row)
            new_labels[pair] = row.label
    return answers, repeats


def _earlier_answers(units: Iterable[int], lookup: _Lookup) -> defaultdict[tuple[int, int], list[str]]:
    """Return a dict from (unit, annotator) to the labels of earlier answers, oldest first. It includes voided answers.

    Answers that were not voided are added to `lookup`.
    """
    earlier: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    judgments = Judgment.objects.filter(unit__in=listed(units), kind__in=[Judgment.ANSWER, Judgment.REPEAT])
    rows = judgments.order_by("pk").values_list("pk", "unit_id", "annotator_id", "label", "kind", "voided_at")
    for key, unit, annotator, label, kind, voided_at in rows:
        earlier[unit, annotator].append(label)
        if kind == Judgment.ANSWER and voided_at is None:
            lookup.labels[unit].append(label)
            lookup.last[unit] = key
    return earlier


def _store(kind: str, rows: list[Row], lookup: _Lookup, progress: Progress) -> None:
    """Save new judgments.

    Each answer also gets a closed lease on its unit's next free place, and is added to `lookup`.
    """
    held = Lease.objects.filter(unit__in=listed({lookup.units[row.task].pk for row in rows}), place__isnull=False)
    most = held.order_by().values_list("unit_id").annotate(Max("place"))
    free_places = defaultdict(partial(count, 1), {unit: count(place + 1) for unit, place in most})
    now = timezone.now()
    times = dict.fromkeys(("opened_at", "expires_at", "closed_at"), now)
    for batch in batched(rows, BATCH):
        units = [lookup.units[row.task] for row in batch]
        annotators = [lookup.annotators[row.worker] for row in batch]
        columns: dict[str, Any] = {"unit_id": [unit.pk for unit in units], "annotator_id": annotators}
        judgments = columns | {
            "label": [row.label for row in batch],
            "answered_at": [row.answered_at or now for row in batch],
        }
        if kind == Judgment.ANSWER:
            queues = columns | {"round": [unit.round for unit in units], "queue": [unit.language for unit in units]}
            queues["place"] = [next(free_places[unit.pk]) for unit in units]
            judgments["lease_id"] = insert_columns(Lease, queues, outcome="answered", **times)
        keys = insert_columns(Judgment, judgments, kind=kind)
        if kind == Judgment.ANSWER:
            for key, row, unit in zip(keys, batch, units, strict=True):
                lookup.labels[unit.pk].append(row.label)
                lookup.last[unit.pk] = key
        progress(len(batch))


def _decide(task: Task, keys: Sequence[int], lookup: _Lookup, *, is_new: bool) -> Counter[str]:
    """Decide the units that have all their answers, and return their number by stage.

    keys: primary keys of the units.
    is_new: whether the task is new; all its units are then complete, regardless of redundancy.
    """
    # Load only the fields needed for decisions. If a control needs others, they are loaded on access.
    fields = (*_Unit._fields, "item", "task", "label", "agreed_label", "redundancy", "known_answer", "recheck")
    units = Unit.objects.filter(pk__in=listed(keys)).order_by().only(*fields).in_bulk()
    complete = []
    for unit in map(units.__getitem__, keys):
        unit.task = task
        number = len(lookup.labels[unit.pk])
        if is_new or number >= unit.redundancy:
            unit.redundancy = number
            complete.append(unit)
    decide_all(task, complete, lookup.labels, lookup.last)
    for unit in {unit.agreed_label: unit for unit in complete if unit.agreed_label}.values():
        for control in task.hooks["moved"]:
            control.moved(unit)
    return Counter(unit.stage for unit in complete)
