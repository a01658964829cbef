"""Opening a task: draw, make its units, route them; and extending it by a larger draw. All of it or nothing."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.core.exceptions import ValidationError
from django.db import transaction

from annotate.core.intervals import jeffreys
from annotate.core.labels import negative
from annotate.core.lottery import lot
from annotate.kinds import TASK_TYPES
from annotate.models import LanguageRoute, Task
from annotate.quality.audits import contest_all, locked
from annotate.quality.decoys import decoys, known_units, mixed, reusable
from annotate.quality.gold_answers import GoldRow, add_gold_answers, check_pool, without_twins
from annotate.quality.guidelines import add_first
from annotate.reports.numbers import percent
from annotate.work.routing import add_units
from corpora.core.languages import LANGUAGES
from corpora.drawing import Sample, items_of, record, sample_precision, sample_recall, sample_records, sample_uniform
from corpora.models import Corpus, Item
from corpora.store import manifest_of

# The designs that ask about one language at a time, each with a draw for each language.
DESIGNS = {"recall": sample_recall, "precision": sample_precision}
FEW = 3  # languages that a task's title names, if it is given none


class TaskError(Exception):
    """A task cannot be opened or extended; says why and what to do. Nothing was changed."""


@dataclass
class Opened:
    """What came of opening a task, or of extending it.

    By language: posts drawn and in the frame, decoys, labels that were reused, and of a language that had failed its
    audit the posts that the detectors agree on and people label.
    """

    task: Task
    stages: Counter[str]
    samples: list[Sample] = field(default_factory=list)
    decoys: Counter[str] = field(default_factory=Counter)
    reused: Counter[str] = field(default_factory=Counter)
    contested: dict[str, int] = field(default_factory=dict)


def check_codes(codes) -> None:
    if unknown := [code for code in codes if code not in LANGUAGES]:
        raise TaskError(
            f"{', '.join(map(repr, unknown))}: not a language code known here, such as de, zh-CN or hi-Latn."
        )


def open_task(name: str, corpus: Corpus, size: int, seed: str, **fields) -> Opened:
    """Draw size posts uniformly and ask which language each is in, where the detectors dispute it.

    fields: those of Task that are to differ from the task type's and the model's defaults.
    """
    task, guidelines = _new_task(name, "language", fields)
    # The files are read before the transaction, during which nobody else may write.
    sample = sample_uniform(corpus, size=size, seed=seed)
    with transaction.atomic():
        draw, items = record(sample)
        task.save()
        add_first(task, guidelines)
        task.draws.add(draw)
        return Opened(task, add_units(task, items), [sample])


def open_records(
    name: str,
    corpus: Corpus,
    task_type: str,
    languages: list[str] | None,
    *,
    size: int | None,
    seed: str,
    gold: list[GoldRow],
    **fields,
) -> Opened:
    """Draw records of each language and have several people label each; hide gold answers among them.

    languages: None for all of the corpus. size: records a language, or groups of them where the task type keeps
    records together; None for all. gold: records whose answer is known, which are never work.
    """
    kind = TASK_TYPES[task_type]
    task, guidelines = _new_task(name, task_type, fields)
    there = manifest_of(corpus.name).fields
    if there and (missing := [field for field in kind.fields if field not in there]):
        raise TaskError(
            f"A {kind.slug} task asks about {', '.join(kind.fields)}; the records of corpus {corpus.name} have "
            f"{', '.join(there)}, and no {', '.join(missing)}. Choose another type, or import them with --column."
        )
    samples = sample_records(
        corpus, languages, size=size, seed=seed, together=kind.together, leave_out=frozenset(row.id for row in gold)
    )
    task.languages = [sample.language for sample in samples]
    with transaction.atomic():
        opened = Opened(task, Counter(), samples)
        task.save()
        add_first(task, guidelines)
        drawn = []
        for sample in samples:
            draw, items = record(sample)
            task.draws.add(draw)
            drawn += items
        add_gold_answers(task, gold, items_of(corpus, [row.id for row in gold]))
        check_pool(task)
        opened.stages = add_units(task, without_twins(task, _shuffled(drawn, seed)))
        return opened


def open_verification(
    name: str,
    corpus: Corpus,
    design: str,
    languages: list[str] | None,
    *,
    size: int,
    seed: str,
    options: dict,
    reuse: bool = False,
    **fields,
) -> Opened:
    """Draw size posts for each language by a design of DESIGNS, and ask of each whether it is in that language.

    languages: None for all of the corpus. options: those of the design. reuse: take the labels that posts have from
    other tasks of the corpus, instead of asking again.
    """
    task, guidelines = _new_task(name, "verify", fields | ({"labels": languages} if languages else {}))
    samples = DESIGNS[design](corpus, languages, size=size, seed=seed, **options)
    opened = Opened(task, Counter(), samples)
    if not any(sample.rows for sample in samples):
        raise TaskError(
            f"No post of corpus {corpus.name} fits the {design}-oriented design for any of the languages; "
            "choose another predictor, other languages, or wider windows."
        )
    task.labels = [sample.language for sample in samples if sample.rows]
    if "title" not in fields and len(task.labels) <= FEW:
        task.title = _title(task.labels)
    with transaction.atomic():
        task.save()
        add_first(task, guidelines)
        known = known_units(corpus)
        for sample in samples:
            _add(opened, sample, known, reuse)
    return opened


def _title(languages: list[str]) -> str:
    *others, last = (LANGUAGES[code].name for code in languages)
    return f"Is this post in {', '.join(others)} or {last}?" if others else f"Is this post in {last}?"


def _add(opened: Opened, sample: Sample, known, reuse: bool) -> None:
    draw, items = record(sample)
    task, asked = opened.task, sample.language
    task.draws.add(draw)
    labels = reusable(items, asked, known) if reuse else {}
    hidden = decoys(task, asked, items, known, sample.seed, labels)
    everything = mixed(items, hidden, asked, sample.seed)
    answers = dict.fromkeys((item.pk for item in hidden), negative(asked))
    opened.stages += add_units(task, everything, asked=asked, gold_answers=answers, reuse=labels)
    opened.decoys[asked], opened.reused[asked] = len(hidden), len(labels)


def _shuffled(items: list[Item], seed: str) -> list[Item]:
    """In an order that tells nothing. What was drawn together comes apart: among the pages of one query, one of another
    query would be known for a hidden gold answer.
    """
    return sorted(items, key=lambda item: lot(seed, "place", item.key))


def _new_task(name: str, task_type: str, fields: dict) -> tuple[Task, Mapping[str, str]]:
    """A task that is not saved yet, its fields checked, and its guidelines by language."""
    if Task.objects.filter(name=name).exists():
        raise TaskError(f"There is already a task {name!r}. Choose another name, or enlarge it with --extend.")
    kind = TASK_TYPES[task_type]
    fields = {"title": kind.title, "labels": list(kind.labels), **kind.knobs, **fields}
    guidelines = fields.pop("guidelines", None) or kind.guidelines
    task = Task(name=name, task_type=kind.slug, **fields)
    if not kind.records:
        check_codes([*task.labels, *task.never_agree])
        listed = LanguageRoute.objects.filter(never_agree=True).values_list("language", flat=True)
        task.labels, task.never_agree = sorted(set(task.labels)), sorted({*listed, *task.never_agree})
    if task.aggregation == "median" and not kind.ordered:
        raise TaskError(f"The labels of {kind.slug} are no grades, so they have no median. Leave --aggregation out.")
    if kind.records and task.redundancy == 2:
        raise TaskError(
            "Of two answers that differ neither is a majority, so a redundancy of 2 loses every such unit. Ask 3 with "
            "--redundancy 3; with --stop-early the third is asked only where the first two differ."
        )
    _check_audit(task)
    try:
        task.full_clean()
    except ValidationError as error:
        faults = (f"{field.replace('_', '-')}: {' '.join(said)}" for field, said in error.message_dict.items())
        raise TaskError(" ".join(faults)) from error
    return task, guidelines


def _check_audit(task: Task) -> None:
    """TaskError where the limit would be passed by languages in whose audit no error was found."""
    if not (task.audit_share or task.audit_least):
        return
    possible = jeffreys(0, task.audit_least)[1]
    if possible > task.audit_limit:
        raise TaskError(
            f"An audit of {task.audit_least} posts in which nothing is wrong still leaves up to {percent(possible)} "
            f"possible, more than the limit of {percent(task.audit_limit)}: all such languages would go to people. "
            "Raise --audit-least or --audit-limit; or set both --audit-share and --audit-least to 0, for no audit."
        )


def extend_task(task: Task, size: int) -> Opened:
    """Enlarge a uniform task's draw to size posts of the same frame and seed.

    What is added of a language that had failed its audit goes to people too, unless it is audited itself.
    """
    draw = task.draw
    if draw.design == "records":
        raise TaskError(
            f"{task.name} is a task about records, and its draws are not enlarged; open another task for further ones."
        )
    if draw.design != "uniform":
        raise TaskError(
            f"{task.name} is a {draw.design}-oriented task, and its draws are not enlarged; open another task with a "
            "larger --size and --reuse, which keeps what people have labelled."
        )
    if size <= draw.size:
        raise TaskError(f"The task has {draw.size:,} posts already; --size must be larger than that.")
    sample = sample_uniform(draw.corpus, size=size, seed=draw.seed, extends=draw)
    with transaction.atomic():
        # First, for who has an audited post locked asks for the task after it.
        locked(task)
        larger, items = record(sample)
        task.draws.set([larger])
        return Opened(task, add_units(task, items), [sample], contested=contest_all(task))
