"""Creates tasks from a draw, and extends tasks by a larger draw.

To create a task, its fields are checked, items are drawn, and a unit is created and routed for each item. Creation and
extension either succeed completely or change nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Model

from annotate.core import stages
from annotate.core.option import OptionError
from annotate.kinds import Kind
from annotate.kinds.balanced_draw import ORDER
from annotate.kinds.compared_draw import REPLIES, systems_of
from annotate.kinds.designs import CLASSES, DESIGNS, STREAM, SYSTEMS, Design, DrawRequest
from annotate.kinds.options import BLIND_SHARE, OPTIONS
from annotate.kinds.preference_kind import labels_of
from annotate.models import LanguageRoute, Suggestion, Task, Unit
from annotate.quality.agreement_strata import unread
from annotate.quality.guideline_versions import add_first
from annotate.work.closure import hide_until_complete
from annotate.work.moves import lock_task
from annotate.work.unit_entry import CHUNK, add_units, store_orders
from corpora.core.languages import UND
from corpora.core.values import matching
from corpora.core.voters import Panel
from corpora.database.bulk_rows import batched, insert
from corpora.draws.samples import (
    Sample,
    get_or_create_items,
    item_store,
    record,
    record_draw,
    sample_uniform,
    unsaved_items,
)
from corpora.models import Corpus, Item
from corpora.predictions.panels import supported_labels
from corpora.predictions.predictor_labels import find_imported, find_predictor, predicted_labels
from corpora.predictions.rankings import load_rankings
from corpora.storage.layout import manifest_of

Rankings = Mapping[str, Mapping[str, Sequence[str]]]  # system -> document -> labels, best first
Progress = Callable[[int], object]  # called with the number of units created; an exception from it rolls them back

FEW = 3  # maximum number of languages in a generated title
DEPTH = 20  # maximum number of labels per system that are stored with a unit


class TaskError(Exception):
    """Raised if a task cannot be opened or extended, before anything is changed. The message states what to do.

    option: name of the option to change; "" if unknown.
    """

    def __init__(self, message: str, option: str = "") -> None:
        super().__init__(message)
        self.option = option


@dataclass(frozen=True)
class GoldRow:
    id: str
    label: str
    purpose: str
    explanation: str = ""


@dataclass
class Opened:
    """The result of opening or extending a task.

    stages: number of units by stage.
    samples: the samples that were drawn; one per language if languages are drawn separately.
    decoys: number of decoys by language.
    wanted: number of decoys that were requested, by language.
    reused: number of reused labels by language.
    contested: for each language that had already failed its audit, the number of posts that annotators label although
        the detectors agree on them.
    """

    task: Task
    stages: Counter[str] = field(default_factory=Counter)
    samples: list[Sample] = field(default_factory=list)
    decoys: Counter[str] = field(default_factory=Counter)
    wanted: Counter[str] = field(default_factory=Counter)
    reused: Counter[str] = field(default_factory=Counter)
    contested: dict[str, int] = field(default_factory=dict)


@dataclass
class Entry:
    """Items that are about to enter a task. The task's quality controls may change them.

    gold: records with a known answer.
    reuses: whether labels of other tasks are reused.
    items: the items that were drawn.
    asked: the language that the question names ("Is this …?"); "" if any language is a possible answer.
    suggested: each system's replies, by item id and system.
    shared: data that controls pass from one entry to the next.
    known_answers: known answers of items that are hidden among the others, by the item's primary key.
    reused: for each label to reuse, the unit of another task and the label, by the item's primary key.
    """

    task: Task
    opened: Opened
    corpus: Corpus
    seed: str
    gold: Sequence[GoldRow]
    reuses: bool
    items: Iterable[Item] = ()
    asked: str = ""
    suggested: dict[str, Mapping[str, list[str]]] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)
    known_answers: Mapping[int, str] = field(default_factory=dict)
    reused: Mapping[int, tuple[Unit, str]] = field(default_factory=dict)


# --- new tasks


def open_task(
    name: str,
    corpus: Corpus,
    kind: Kind,
    *,
    seed: str,
    design: str = "",
    size: int | None = None,
    languages: list[str] | None = None,
    chosen: Mapping[str, Any] = MappingProxyType({}),
    gold: Sequence[GoldRow] = (),
    reuse: bool = False,
    panel: Panel | None = None,
    guidelines: Mapping[str, str] | None = None,
    progress: Progress = lambda units: None,
    then: Callable[[Opened], object] = lambda opened: None,
    **fields: Any,
) -> Opened:
    """Draw a sample from a corpus, and create a task that asks the kind's question about each item in the sample.

    name: the task's name.
    corpus: the corpus to draw from.
    kind: the task's kind.
    seed: the seed of the draw.
    design: name of the design; "" for the kind's first design.
    size: number of units (in total or per language), or number of groups if the kind keeps records together. If None,
        the design's default is used, which may be all units.
    languages: languages to draw for; None for all.
    chosen: the draw's options.
    gold: records with a known answer.
    reuse: whether to reuse labels of other tasks, or labels that documents were imported with.
    panel: voters whose agreement settles labels. None is the default panel for posts, and no panel for records.
    guidelines: text of the guidelines by language; None for the kind's own guidelines.
    progress: called while units are created.
    then: called with the result before anyone can see the task. An exception from it rolls everything back.
    fields: other arguments of `unsaved_task`.

    Raise TaskError, GoldAnswerError or CorpusError if the task is refused; nothing is changed then.
    """
    how = DESIGNS[design or kind.designs[0]]
    size = how.size if size is None else size
    left_out = frozenset(row.id for row in gold)
    wanted = DrawRequest(corpus, kind, size, seed, languages, chosen, leave_out=left_out, panel=panel)
    # Read files before the transaction begins, because no one else can write to an SQLite database during it.
    opened = _draw_samples(unsaved_task(name, how, wanted, reuse=reuse, **fields), how, wanted)
    task, keys = opened.task, (key for sample in opened.samples for key in sample.keys)
    rankings = _load_rankings(task, corpus.name, [*keys, *wanted.leave_out]) if task.suggest else {}
    progress(0)
    with hide_until_complete(task):
        save_new(task)
        add_first(task, guidelines or kind.guidelines)
        entry = Entry(task, opened, corpus, seed, gold, reuse)
        for samples in [[sample] for sample in opened.samples] if how.asks_each else [opened.samples]:
            _add_units(replace(entry, asked=samples[0].language if how.asks_each else ""), samples, how, progress)
        if rankings:
            _store_suggestions(task, rankings)
        then(opened)
    return opened


def unsaved_task(
    name: str,
    design: Design,
    wanted: DrawRequest,
    *,
    reuse: bool = False,
    title: str = "",
    labels: Sequence[str] = (),
    options: Mapping[str, Any] = MappingProxyType({}),
    members_only: bool = False,
    suggest: Sequence[str] = (),
    blind_share: float | None = None,
) -> Task:
    """Build and check a new task without saving it or drawing items.

    options: options that differ from the kind's defaults.
    suggest: predictors whose labels are suggested to annotators.
    blind_share: share of (annotator, unit) pairs with hidden suggestions; None for the default.

    Raise TaskError if the task is refused.
    """
    kind = wanted.kind
    if Task.objects.filter(name=name).exists():
        raise TaskError(
            f"The task {name!r} already exists. Choose another name, or extend the existing task.",
            "name",
        )
    if design.answers_from == SYSTEMS:
        labels = labels_of([*systems_of(wanted.chosen["systems"])])
    elif design.answers_from == CLASSES:
        labels = _classes_and_answers(kind, labels)
    elif design.asks_each:
        labels = wanted.languages or labels
    task = provisional_task(kind, labels, options, reuse=reuse)
    if wanted.panel:
        choose_panel(task, wanted.corpus.name, wanted.panel)
    task.name, task.title, task.members_only = name, title or kind.title, members_only
    if suggest:
        task.suggest = _check_predictors(task, wanted.corpus.name, suggest)
        task.blind_share = BLIND_SHARE if blind_share is None else blind_share
    check_task(task)
    if kind.fields:
        _check_fields(kind, wanted.corpus)
    if design.answers_from == CLASSES and "predictor" in wanted.chosen and (task.audit_share or task.audit_least):
        raise TaskError(
            "With --predictor, annotators label all documents, so there is nothing to audit. Remove --audit-share and "
            "--audit-least."
        )
    return task


def choose_panel(task: Task, corpus: str, panel: Panel) -> None:
    """Set a task's panel. Labels that one of its imported voters never predicts are always left to annotators.

    Raise TaskError if the panel's agreement cannot be an answer, and CorpusError if a voter has no votes on the corpus.
    """
    if task.keep_declared:
        raise TaskError(
            "Documents that keep their declared labels need no voters. Remove --reuse or --voters.", "voters"
        )
    ranked = [name for name in panel.imported if find_imported(corpus, name).ranked]
    if ranked and task.kind.form.several:
        raise TaskError(
            f"{ranked[0]} ranks labels, but answers are sets of labels, and a ranking does not state where a set ends. "
            "Import sets with import_predictions without --ranked.",
            "voters",
        )
    supported = supported_labels(corpus, panel)
    if supported is not None:
        matches = {matching(label, task.labels) for label in supported}
        task.never_agree = sorted({*task.never_agree, *(label for label in task.labels if label not in matches)})
    task.voters, task.agree = list(panel.voters), panel.agree


def _draw_samples(task: Task, design: Design, wanted: DrawRequest) -> Opened:
    """Draw the samples of an unsaved task.

    The task's labels or languages are set to the languages drawn, if the design or kind requires it.
    """
    kind, corpus = wanted.kind, wanted.corpus
    wanted = replace(wanted, labels=task.labels)
    if "of" in design.needs:
        source = _uniform_task(wanted.chosen["of"], corpus)
        agreed = dict(unread(source).order_by().values_list("item__key", "agreed_label"))
        wanted = replace(wanted, unread=agreed, panel=source.panel)
    samples = design.draw(wanted)
    if design.asks_each:
        task.labels = [sample.language for sample in samples if sample.rows]
        if not task.labels:
            raise TaskError(
                f"No post of corpus {corpus.name} fits the {design.spelled} design for any of the languages. "
                f"{design.none_found}"
            )
        if task.title == kind.title and len(task.labels) <= FEW:
            task.title = kind.title_about(task.labels)
    elif not kind.routing.is_routed:
        task.languages = [sample.language for sample in samples]
        check_codes(kind, [code for code in task.languages if code != UND], "languages")
    return Opened(task, samples=samples)


def _check_fields(kind: Kind, corpus: Corpus) -> None:
    corpus_fields = manifest_of(corpus.name).fields
    needed = [*kind.exported_fields, *([kind.records.split] if kind.records.split else [])]
    if corpus_fields and (missing := [field for field in needed if field not in corpus_fields]):
        raise TaskError(
            f"A {kind.slug} task needs the fields {', '.join(needed)}, but the records of corpus {corpus.name} have "
            f"only {', '.join(corpus_fields)}. Choose another kind, or import the records again with --column for "
            f"{', '.join(missing)}."
        )


def _classes_and_answers(kind: Kind, classes: Sequence[str]) -> list[str]:
    """Return the possible answers of a draw that defines classes: the classes and the kind's own answers."""
    if conflicts := [label for label in classes if label in kind.answers]:
        raise TaskError(
            f"The class {conflicts[0]} has the same name as a different answer of {kind.slug}. Give the class another "
            "name."
        )
    return [*classes, *kind.answers]


def _uniform_task(name: str, corpus: Corpus) -> Task:
    """Return the uniform task with this name; a sample is drawn from its unlabelled posts.

    Raise TaskError if it does not exist, has another design, or was drawn from another corpus.
    """
    task = Task.objects.filter(name=name).first()
    if task is None:
        raise TaskError(f"There is no task {name!r}. Specify a uniform task from {corpus}.")
    draw = task.draw
    if DESIGNS[draw.design].population != STREAM:
        raise TaskError(
            f"Annotators label all posts of {name}, because it is drawn by the {DESIGNS[draw.design].spelled} design. "
            "Specify a uniform task."
        )
    if draw.corpus_id != corpus.pk:
        raise TaskError(f"{name} is drawn from corpus {draw.corpus}, not {corpus}. Specify a uniform task from it.")
    return task


def _add_units(entry: Entry, samples: Sequence[Sample], design: Design, progress: Progress) -> None:
    """Record samples, and create the units of one question.

    entry: the question's entry, without items.
    samples: the samples that contain the question's items.
    """
    task, kind = entry.task, entry.task.kind
    in_memory = design.asks_each or design.answers_from == SYSTEMS
    in_memory |= any(control.hides for control in kind.quality_controls)
    drawn, orders = [], {}
    for sample in samples:
        orders[sample.language] = sample.parameters.pop(ORDER, {})
        entry.suggested |= sample.parameters.pop(REPLIES, {})
        task.draws.add(record_draw(sample))
        drawn.append(get_or_create_items(entry.corpus, sample.rows) if in_memory else unsaved_items(sample))
    entry.items, predicted = chain.from_iterable(drawn), {}
    if any(orders.values()):
        predicted = store_orders(task, orders, {key for sample in samples for key in sample.keys})
    for control in kind.hooks["enter"]:
        control.enter(entry)
    counts = add_units(
        task,
        entry.items,
        asked=entry.asked,
        known_answers=entry.known_answers,
        reuse=entry.reused,
        suggested=entry.suggested,
        predicted=predicted,
        asks_all=design.asks_all,
        store=list if in_memory else item_store(entry.corpus),
    )
    entry.opened.stages += counts
    progress(counts.total())
    if design.not_extended and not (design.asks_each or counts[stages.QUEUED] + counts[stages.ADJUDICATION]):
        # The task has no open questions, so it is closed and hidden from annotators.
        task.is_open = False
        task.save(update_fields=["is_open"])


# --- checks of a task's fields and options before it has units


def provisional_task(kind: Kind, labels: Sequence[str], overrides: Mapping[str, Any], *, reuse: bool = False) -> Task:
    """Return an unsaved task with these options, e.g. to preview their effect on posts.

    Raise TaskError if the options are invalid.
    """
    options = with_defaults(kind, overrides)
    if kind.routing.is_routed:
        if labels:
            # In designs that ask about each language, the labels are the draw's languages.
            asks_each = all(DESIGNS[design].asks_each for design in kind.designs)
            check_codes(kind, labels, "languages" if asks_each else "labels")
        labels = sorted(set(labels or kind.labels))
    if "audit_recheck" in options:
        listed = LanguageRoute.objects.filter(never_agree=True).values_list("language", flat=True)
        options["never_agree"] = sorted(listed) if kind.routing.is_routed else []
    task = Task(kind_slug=kind.slug, kind_file=kind.source, labels=[*(labels or kind.labels)], options=options)
    try:
        for control in kind.hooks["prepare"]:
            control.prepare(task, reuse)
    except ValueError as error:
        raise TaskError(str(error)) from error
    return task


def with_defaults(kind: Kind, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of all options of a kind: the overrides and, for all other options, the kind's defaults.

    Raise TaskError for an option that the kind does not have, and for an invalid value.
    """
    if inapplicable := [OPTIONS[name].spelled for name in overrides if name not in kind.options]:
        raise TaskError(f"{', '.join(inapplicable)} is not an option of {kind.slug} tasks. Remove it.")
    values = {name: OPTIONS[name].default for name in kind.options} | dict(kind.defaults) | dict(overrides)
    try:
        checked = {name: OPTIONS[name].check(value) for name, value in values.items()}
    except OptionError as error:
        raise TaskError(str(error)) from error
    if checked.get("aggregation", "") not in ("", *kind.form.aggregations):
        raise TaskError(
            f"The labels of {kind.slug} are not grades, so they have no {checked['aggregation']}. Remove --aggregation."
        )
    if fault := kind.rules.faults(checked):
        raise TaskError(fault)
    return checked


def check_task(task: Task) -> None:
    """Validate a task's fields. Raise TaskError, listing all errors, if they are invalid."""
    try:
        task.full_clean()
    except ValidationError as error:
        faults = (
            _fault(field, fault) for field, faults_of_field in error.error_dict.items() for fault in faults_of_field
        )
        raise TaskError(" ".join(faults), next(iter(error.error_dict))) from error


# Messages by the code of Django's validation errors.
FAULTS = {
    "blank": "is empty. Enter a value.",
    "null": "is missing. Enter a value.",
    "invalid": "contains invalid characters. Use only letters, digits, hyphens and underscores.",
    "null_characters_not_allowed": "contains a NUL character. Remove it.",
    "unique": "is already in use. Choose another one.",
}


def _fault(field: str, fault: ValidationError) -> str:
    subject = f"The task's {field.replace('_', ' ')}"
    if fault.code == "max_length":
        assert fault.params  # Django sets this for maximum lengths
        length, limit = fault.params["show_value"], fault.params["limit_value"]
        return f"{subject} has {length:,} characters. The limit is {limit:,}."
    return f"{subject} {FAULTS[fault.code]}" if fault.code in FAULTS else f"{subject}: {' '.join(fault.messages)}"


def save_new(task: Task, *others: Model) -> None:
    """Save a validated task, and other rows with the same name.

    Raise TaskError if another task with this name has been created in the meantime.
    """
    try:
        with transaction.atomic():
            for row in (task, *others):
                row.save()
    except IntegrityError as error:
        raise TaskError(f"Somebody else has just created the task {task.name!r}. Choose another name.") from error


def check_codes(kind: Kind, codes: Sequence[str], option: str) -> None:
    """Raise TaskError if the kind does not know one of the language codes.

    option: name of the option that contains the codes
    """
    if unknown := [code for code in codes if not kind.knows(code)]:
        raise TaskError(
            f"{', '.join(map(repr, unknown))}: unknown language code. Use codes such as de, zh-CN or hi-Latn. To add "
            "a language, define it in the file of your own question.",
            option,
        )


# --- extension by a larger draw


def extend_task(
    task: Task,
    size: int,
    progress: Progress = lambda units: None,
    then: Callable[[Opened], object] = lambda opened: None,
) -> Opened:
    """Enlarge a task's draw to `size` posts, from the same frame and with the same seed.

    If a language has failed its audit, annotators also label the new posts that the detectors assign to it unanimously.

    size: number of posts in the enlarged draw.
    progress: called with the number of units created.
    then: called with the result before the transaction commits. An exception from it rolls everything back.

    Raise TaskError if the task's design does not allow extension, or if `size` is not larger than the draw.
    """
    check_extension(task, size)
    draw = task.draw
    sample = sample_uniform(draw.corpus, size=size, seed=draw.seed, extends=draw, panel=task.panel)
    with transaction.atomic():
        # Lock the task first. Answers to audited posts lock the post first, but can't deadlock: see judgments.py.
        lock_task(task)
        larger, items = record(sample)
        task.draws.set([larger])
        added = add_units(task, items)
        progress(len(items))
        opened = Opened(task, added, [sample])
        for control in task.hooks["enlarged"]:
            opened.contested |= control.enlarged(task)
        then(opened)
    return opened


def check_extension(task: Task, size: int) -> None:
    """Raise TaskError if a task's design does not allow extension, or if `size` is not larger than the draw."""
    design = DESIGNS[task.draw.design]
    if design.not_extended:
        raise TaskError(
            f"{task.name} cannot be enlarged, because it is drawn by the {design.spelled} design. {design.not_extended}"
        )
    if size <= task.draw.size:
        raise TaskError(f"The task already has {task.draw.size:,} posts. Set --size to a larger number.")


# --- predictors' suggestions for a task's items
#
# Suggestions are stored when the task is opened, so that it keeps them if the predictors are removed.
# controls/suggestions.py decides who sees them.


def _check_predictors(task: Task, corpus: str, predictors: Sequence[str]) -> list[str]:
    """Check the predictors whose labels a task suggests, and return them as NAME@VERSION.

    Raise TaskError if the task cannot show suggestions, and CorpusError if a predictor does not exist.
    """
    if duplicates := [predictor for number, predictor in enumerate(predictors) if predictor in predictors[:number]]:
        raise TaskError(f"--suggest contains {duplicates[0]} twice. List each predictor once.", "suggest")
    if not task.kind.thesaurus and len(predictors) > 1:
        raise TaskError("Only tasks about concepts combine several predictors. Set --suggest once.", "suggest")
    if task.voters:
        raise TaskError(
            "Machines vote in this task, and annotators must label disputed items without suggestions. Remove "
            "--suggest or --voters.",
            "suggest",
        )
    if task.audit_share or task.audit_least or task.kind.filtered:
        raise TaskError(
            "Annotators audit machine labels in this task, and suggestions would bias the audit. Set --audit-share and "
            "--audit-least to 0, or remove --suggest.",
            "suggest",
        )
    if task.kind.form.imports == "pairs" and len(task.labels) > len(labels_of("ab")):
        raise TaskError(
            "A predictor has one label for each message, but the task compares more than two systems. Remove "
            "--suggest, or compare two systems.",
            "suggest",
        )
    return [str(find_imported(corpus, predictor)) for predictor in predictors]


def _load_rankings(task: Task, corpus: str, ids: Iterable[str]) -> Rankings:
    """Return the labels that each predictor suggests for each item, best first.

    Deprecated concepts are left out. If answers aren't concepts, only the best label is suggested.

    Raise CorpusError if an item has no prediction, and TaskError if a label is not a possible answer in the task.
    """
    keys, depth = list(ids), DEPTH if task.kind.thesaurus else 1
    if task.vocabulary:
        is_deprecated = dict(task.vocabulary.concepts.values_list("key", "is_deprecated"))
        where, name = f"{task.vocabulary} does not contain this concept", "run"
    else:
        is_deprecated = dict.fromkeys(task.labels, False)
        where, name = "the task has no such answer", "file"
    by_system = {}
    for system in task.suggest:
        rankings = {key: labels[:depth] for key, labels in _load_predictions(corpus, system, keys, task).items()}
        for key, labels in rankings.items():
            if unknown := [label for label in labels if label not in is_deprecated]:
                raise TaskError(
                    f"{system} suggests {unknown[0]!r} for document {key}, but {where}. Remove such labels from the "
                    f"{name} and import it as another --version."
                )
        by_system[system] = {
            key: [label for label in labels if not is_deprecated[label]] for key, labels in rankings.items()
        }
    return by_system


def _load_predictions(corpus: str, system: str, keys: Sequence[str], task: Task) -> Mapping[str, Sequence[str]]:
    """Return a predictor's labels for each item, best first; an empty list for a prediction without a label."""
    if task.kind.thesaurus or find_imported(corpus, system).ranked:
        return load_rankings(corpus, system, keys)
    labels = predicted_labels(corpus, find_predictor(corpus, system), keys)
    return {key: [label] if label != UND else [] for key, label in labels.items()}


def _store_suggestions(task: Task, rankings: Rankings) -> None:
    """Save the suggestions for all units that may be assigned to annotators, including hidden gold answers."""
    suggestions = (
        Suggestion(unit_id=unit, system=system, ranked=ranked)
        for unit, key in list(task.units.filter(copy_of=None).values_list("pk", "item__key"))
        for system, rankings_of_system in rankings.items()
        if (ranked := rankings_of_system.get(key))
    )
    for batch in batched(suggestions, CHUNK):
        insert(batch)
