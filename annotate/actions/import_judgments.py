"""Judgments that were made elsewhere, read from a file of task, worker and label, and put with a task's own.

Their workers become annotators who cannot log in. What is made of the judgments is routing.py's matter, as of any, and
agreeing.py's. A file is taken as a whole or not at all; run again, it adds nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.validators import slug_re
from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone

from annotate.actions.judgment_files import (
    LONGEST,
    JudgmentFileError,
    Progress,
    Rejects,
    Row,
    in_order,
    list_rejects,
    nothing_accepted,
    of_labels,
    read_judgments,
)
from annotate.core import stages
from annotate.kinds import TASK_TYPES
from annotate.models import Annotator, Judgment, Lease, Task, Unit
from annotate.quality.agreement import labels_of
from annotate.quality.audits import check_limit
from annotate.work.routing import BATCH, add_units, decide_all
from corpora.core.languages import UND
from corpora.ingest import check_file
from corpora.models import Corpus, Draw, Item
from corpora.readers import format_of
from corpora.store import digest_of, read_manifest

# Some thousand keys a query, as databases take only so many.
KEYS = 5000
# Why no more judgments can be taken of a unit that does not wait for any.
CLOSED = {
    stages.COPIED: "has the text of another one, and takes its label; give the judgments of that one",
    stages.AGREED: "is labelled by the detectors, and asked of nobody",
    stages.ADJUDICATION: "waits for an adjudicator, who is not to see more answers",
    stages.LABELLED: "has its label already; give all judgments of an item in one file",
    stages.DISCARDED: "has been left out already; give all judgments of an item in one file",
}


@dataclass
class Imported:
    """What came of a file. stages: of the units that it decided; already: rows that an earlier import has taken."""

    task: Task
    is_new: bool
    judgments: int = 0
    repeats: int = 0
    already: int = 0
    annotators: int = 0
    units: int = 0
    stages: Counter[str] = field(default_factory=Counter)
    rejects: Rejects = field(default_factory=dict)
    rejects_file: Path | None = None


Said = tuple[Row, Unit, Annotator]


def import_judgments(
    name: str,
    path: Path,
    *,
    labels: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    keep_repeats: bool = False,
    format: str | None = None,
    progress: Progress = lambda count: None,
) -> Imported:
    """Put the judgments of a file with the units of a task; make a closed task of them where there is none.

    labels: of a new task, grades best first; those in the file where none are given. keep_repeats: keep a worker's
    further answers on an item, for analysis only; otherwise they are rejected. JudgmentFileError, or CorpusError of a
    file that cannot be read.
    """
    check_file(path, format)
    task = Task.objects.filter(name=name).first()
    _check(name, task, labels)
    rejects: Rejects = {}
    rows = list(read_judgments(path, columns or {}, format or format_of(path) or "", rejects, progress))
    known = list(labels) or (labels_of(task) if task else in_order({row.label for row in rows}))
    rows = of_labels(rows, known, rejects)
    listed = settings.DATA_DIR / "judgments" / name / f"{digest_of(path)[:16]}.rejects.jsonl"
    with transaction.atomic():
        is_new = task is None
        if rows and task is None:
            task = _new_task(name, path, rows, known, rejects)
        imported = Imported(task, is_new, rejects=rejects)
        if rows:
            _add(imported, rows, keep_repeats)
        list_rejects(rejects, path, listed)
        if not (imported.judgments or imported.repeats or imported.already):
            raise JudgmentFileError(nothing_accepted(path, rejects, listed))
    imported.rejects_file = listed if rejects else None
    return imported


def _check(name: str, task: Task | None, labels: Sequence[str]) -> None:
    if not slug_re.fullmatch(name):
        raise JudgmentFileError(f"{name!r} cannot be a task's name; use letters, digits, hyphens and underscores.")
    if task and task.task_type == "verify":
        raise JudgmentFileError(
            f"{task.name} asks about one language at a time, and a file of judgments does not say about which; import "
            "them as a task of their own."
        )
    if task and labels and list(labels) != labels_of(task):
        raise JudgmentFileError(
            f"{task.name} has the labels {' '.join(labels_of(task))}; leave --labels out, or choose another name."
        )
    if len(set(labels)) < len(labels):
        raise JudgmentFileError("A label stands twice in --labels; name each once.")
    if long := [label for label in labels if len(label) > LONGEST["label"]]:
        raise JudgmentFileError(f"The label {long[0][:20]}… has more than {LONGEST['label']} characters; shorten it.")


# --- the task


def _new_task(name: str, path: Path, rows: list[Row], labels: list[str], rejects: Rejects) -> Task:
    """A closed task of the items in the file; each has its id for a text, as nothing else is known of it."""
    languages: dict[str, str] = {}
    for row in rows:
        if languages.setdefault(row.task, row.language) != row.language:
            rejects[row.line] = f"{row.task} was in {languages[row.task] or 'no language'} in a row before."
    kind = TASK_TYPES["imported"]
    # Nobody is asked, so nobody is tested.
    knobs = {**kind.knobs, "test_items": 0, "gold_share": 0, "is_open": False}
    declared = sorted(set(languages.values()) - {""})
    task = Task(name=name, task_type=kind.slug, title=kind.title, labels=labels, languages=declared, **knobs)
    try:
        task.full_clean()
    except ValidationError as error:
        raise JudgmentFileError(
            " ".join(f"{field}: {' '.join(said)}" for field, said in error.message_dict.items())
        ) from error
    if Corpus.objects.filter(name=name).exists() or read_manifest(name):
        raise JudgmentFileError(
            f"There is a corpus {name!r}, and a task of imported judgments makes one of its own name. Choose another."
        )
    try:
        with transaction.atomic():
            task.save()
            corpus = Corpus.objects.create(name=name)
    except IntegrityError as error:
        raise JudgmentFileError(f"Somebody else has just made a task {name!r}. Run the command again.") from error
    items = Item.objects.bulk_create(
        [
            Item(corpus=corpus, key=key, text=key, language=code or UND, votes={}, letters=0)
            for key, code in languages.items()
        ],
        batch_size=BATCH,
    )
    size = len(items)
    draw = Draw.objects.create(
        corpus=corpus,
        design="records",
        parameters={"imported": path.name},
        seed="imported",
        asked=size,
        size=size,
        parts=0,
        frame_size=size,
        frame_digest=digest_of(path),
    )
    task.draws.add(draw)
    add_units(task, items)
    return task


def _units(task: Task, keys: Iterable[str]) -> dict[str, Unit]:
    """Item -> unit, of those items that the task has, their rows locked."""
    wanted = sorted(set(keys))
    found: dict[str, Unit] = {}
    for start in range(0, len(wanted), KEYS):
        units = task.units.filter(item__key__in=wanted[start : start + KEYS]).select_related("item", "task")
        found |= {unit.item.key: unit for unit in units.order_by("pk").select_for_update(of=("self",), no_key=True)}
    return found


def _annotators(task: Task, workers: Iterable[str]) -> dict[str, Annotator]:
    """Worker -> annotator. A colon can be in no name that somebody types, so these names clash with nobody's."""
    names = {f"imported:{task.name}:{worker}": worker for worker in workers}
    ordered = sorted(names)
    there: set[str] = set()
    for start in range(0, len(ordered), KEYS):
        there |= set(User.objects.filter(username__in=ordered[start : start + KEYS]).values_list("username", flat=True))
    users = User.objects.bulk_create(
        [User(username=name, password=make_password(None), is_active=False) for name in ordered if name not in there],
        batch_size=BATCH,
    )
    Annotator.objects.bulk_create([Annotator(user=user) for user in users], batch_size=BATCH)
    found = Annotator.objects.filter(user__username__startswith=f"imported:{task.name}:").select_related("user")
    return {names[one.user.username]: one for one in found if one.user.username in names}


# --- the judgments


def _add(imported: Imported, rows: list[Row], keep_repeats: bool) -> None:
    """Put the rows with the units, and decide those that have all their answers."""
    task, rejects = imported.task, imported.rejects
    rows = [row for row in rows if row.line not in rejects]
    units = _units(task, (row.task for row in rows))
    for row in rows:
        if row.task not in units:
            rejects[row.line] = f"{row.task} is no item of the task {task.name}."
        elif units[row.task].honeypot:
            rejects[row.line] = f"{row.task} is a gold answer of the task {task.name}, and gets no label."
    rows = [row for row in rows if row.line not in rejects]
    annotators = _annotators(task, dict.fromkeys(row.worker for row in rows))
    before = _before(units[key] for key in dict.fromkeys(row.task for row in rows))
    taken: Counter[tuple[int, int]] = Counter()
    answers: list[Said] = []
    repeats: list[Said] = []
    for row in rows:
        unit, annotator = units[row.task], annotators[row.worker]
        pair = unit.pk, annotator.pk
        earlier = before[pair]
        if earlier[taken[pair] : taken[pair] + 1] == [row.label]:
            taken[pair] += 1
            imported.already += 1
        elif earlier and keep_repeats:
            repeats.append((row, unit, annotator))
        elif earlier:
            rejects[row.line] = (
                f"{row.worker} has answered {row.task} before, with {earlier[0]}; the first answer counts."
            )
        elif unit.stage != stages.QUEUED:
            rejects[row.line] = f"{row.task} {CLOSED[unit.stage]}."
        else:
            answers.append((row, unit, annotator))
            # What follows of this pair is a repeat.
            earlier.append(row.label)
            taken[pair] = 1
    _store(answers, repeats)
    imported.judgments, imported.repeats = len(answers), len(repeats)
    imported.annotators = len({annotator.pk for _, _, annotator in [*answers, *repeats]})
    touched = {unit.pk: unit for _, unit, _ in answers}
    imported.units = len(touched)
    imported.stages = _decide(list(touched.values()), is_new=imported.is_new)


def _before(units: Iterable[Unit]) -> defaultdict[tuple[int, int], list[str]]:
    """(unit, annotator) -> what they have answered there, the answer before its repeats; what was voided stays said."""
    found: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    keys = [unit.pk for unit in units]
    for start in range(0, len(keys), KEYS):
        said = Judgment.objects.filter(
            unit__in=keys[start : start + KEYS], kind__in=[Judgment.ANSWER, Judgment.REPEAT]
        ).order_by("pk")
        for unit, annotator, label in said.values_list("unit_id", "annotator_id", "label"):
            found[unit, annotator].append(label)
    return found


def _store(answers: list[Said], repeats: list[Said]) -> None:
    now = timezone.now()
    places: Counter[int] = Counter()
    keys = sorted({unit.pk for _, unit, _ in answers})
    for start in range(0, len(keys), KEYS):
        held = Lease.objects.filter(unit__in=keys[start : start + KEYS], place__isnull=False).order_by()
        places.update(dict(held.values_list("unit_id").annotate(Max("place"))))
    leases = []
    for _, unit, annotator in answers:
        places[unit.pk] += 1
        leases.append(
            Lease(
                unit=unit,
                annotator=annotator,
                place=places[unit.pk],
                round=unit.round,
                queue=unit.language,
                opened_at=now,
                expires_at=now,
                closed_at=now,
                outcome="answered",
            )
        )
    Lease.objects.bulk_create(leases, batch_size=BATCH)

    def judgments(kind: str, said: list[Said], leases: Sequence[Lease | None]) -> list[Judgment]:
        return [
            Judgment(unit=unit, annotator=annotator, lease=lease, kind=kind, label=row.label, answered_at=now)
            for (row, unit, annotator), lease in zip(said, leases, strict=True)
        ]

    Judgment.objects.bulk_create(judgments(Judgment.ANSWER, answers, leases), batch_size=BATCH)
    Judgment.objects.bulk_create(judgments(Judgment.REPEAT, repeats, [None] * len(repeats)), batch_size=BATCH)


def _decide(units: list[Unit], *, is_new: bool) -> Counter[str]:
    """Route on the units that have as many answers as are asked for; in a new task those are all that there are."""
    answers: defaultdict[int, list[Judgment]] = defaultdict(list)
    keys = [unit.pk for unit in units]
    for start in range(0, len(keys), KEYS):
        live = Judgment.objects.filter(unit__in=keys[start : start + KEYS], kind=Judgment.ANSWER, voided_at=None)
        for judgment in live.order_by("pk"):
            answers[judgment.unit_id].append(judgment)
    full = []
    for unit in units:
        given = len(answers[unit.pk])
        if is_new or given >= unit.redundancy:
            unit.redundancy = given
            full.append(unit)
    decide_all(full, answers)
    for unit in {unit.agreed_label: unit for unit in full if unit.agreed_label}.values():
        check_limit(unit)
    return Counter(unit.stage for unit in full)
