"""How a task is opened (checked, drawn, its units made and routed) and enlarged by a larger draw: as a whole or not at
all.
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
from annotate.kinds.designs import DESIGNS, SYSTEMS, Design, Wanted
from annotate.kinds.interface_language import question_about
from annotate.kinds.options import OPTIONS
from annotate.kinds.preference_kind import labels_of
from annotate.models import LanguageRoute, Suggestion, Task, Unit
from annotate.quality.guideline_versions import add_first
from annotate.work.moves import locked, unread
from annotate.work.unit_entry import add_units, store_orders
from corpora.database.bulk_rows import insert
from corpora.draws.samples import Sample, record, record_on_the_way, sample_uniform
from corpora.models import Corpus, Item
from corpora.predictions.predictor_labels import find_imported
from corpora.predictions.rankings import ranked_for
from corpora.storage.layout import manifest_of

Rankings = Mapping[str, Mapping[str, Sequence[str]]]  # system -> id of a document -> its labels, the best first
Progress = Callable[[int], object]  # is told of units as they are made; an exception from it undoes them

FEW = 3  # languages that a generated title names
DEPTH = 20  # labels of a system that are stored with a unit


class TaskError(Exception):
    """A task cannot be opened or extended; says why and what to do. Nothing was changed."""


@dataclass(frozen=True)
class GoldRow:
    id: str
    label: str
    purpose: str
    explanation: str = ""


@dataclass
class Opened:
    """What came of opening a task, or of extending it.

    By language: posts drawn and in the frame; decoys, and how many are wanted; labels that were reused; and for a
    language that had failed its audit the posts on which the detectors agree and which people label.
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
    """Items that are about to enter a task; its quality controls may change the entry.

    items: what was drawn. asked: the language that all of it asks about, empty if any may be answered. gold: records
    whose answer is known. reuses: whether labels of other tasks are taken. suggested: id -> system -> replies. shared:
    what controls keep from one entry for the next. known_answers: item -> its answer, if it is hidden among the others;
    reused: item -> the unit of another task whose label it takes, and that label.
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

    def add_units(self, **how: Any) -> int:
        """Make the units, after the controls had their turn. Returns their number."""
        for control in self.task.kind.quality_controls:
            control.enter(self)
        made = add_units(
            self.task,
            self.items,
            asked=self.asked,
            known_answers=self.known_answers,
            reuse=self.reused,
            suggested=self.suggested,
            **how,
        )
        self.opened.stages += made
        return made.total()


# --- A new task


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
    suggest_from: Sequence[str] = (),
    guidelines: Mapping[str, str] | None = None,
    progress: Progress = lambda units: None,
    then: Callable[[Opened], object] = lambda opened: None,
    **fields: Any,
) -> Opened:
    """Draw from a corpus by a design, and ask the kind's question about it. TaskError, GoldAnswerError or CorpusError
    if it is refused; then nothing was changed.
    size: units in all or for each language, or groups of them if the kind keeps records together; None for the design's
    default, or all. languages: those to draw for; None for all. chosen: options of the draw. gold: records whose answer
    is known. reuse: take labels of other tasks, or those that came with documents. suggest_from: ranked predictors
    whose labels are suggested. then: hears what came of it before it is kept. fields: title, labels, options.
    """
    how = DESIGNS[design or kind.designs[0]]
    size = how.size if size is None else size
    wanted = Wanted(corpus, kind, size, seed, languages, chosen, leave_out=frozenset(row.id for row in gold))
    # The files are read before the transaction, during which nobody else may write.
    opened = _drawn(name, how, wanted, reuse=reuse, **fields)
    task, keys = opened.task, (key for sample in opened.samples for key in sample.keys)
    rankings = _rankings(task, corpus.name, suggest_from, [*keys, *wanted.leave_out]) if suggest_from else {}
    progress(0)
    with transaction.atomic():
        save_new(task)
        add_first(task, guidelines or kind.guidelines)
        (_add_each if how.asks_each else _add_all)(Entry(task, opened, corpus, seed, gold, reuse), how, progress)
        _store_suggestions(task, rankings)
        then(opened)
    return opened


def _drawn(
    name: str,
    how: Design,
    wanted: Wanted,
    *,
    reuse: bool,
    title: str = "",
    labels: Sequence[str] = (),
    options: Mapping[str, Any] = MappingProxyType({}),
) -> Opened:
    """The task, which is not saved yet, and what was drawn for it."""
    kind, corpus = wanted.kind, wanted.corpus
    if how.answers_from == SYSTEMS:
        labels = labels_of([*systems_of(wanted.chosen["systems"])])
    elif how.names_answers:
        labels = _classes_and_answers(kind, labels)
    elif how.asks_each:
        labels = wanted.languages or labels
    task = new_task(name, kind, title, labels, options, reuse=reuse)
    _check_inputs(task, how, wanted)
    unread_posts = _unread(wanted.chosen["of"], corpus) if how.of_uniform else {}
    samples = how.draw(replace(wanted, labels=task.labels, unread=unread_posts))
    with_posts = [sample.language for sample in samples if sample.rows]
    if how.asks_each and not with_posts:
        raise TaskError(
            f"No post of corpus {corpus.name} fits the {how.spelled} design for any of the languages; {how.none_found}"
        )
    if how.asks_each:
        task.labels = with_posts
        if kind.wording.titled_by_languages and not title and len(with_posts) <= FEW:
            task.title = question_about(with_posts)
    elif not kind.routing.is_routed:
        task.languages = [sample.language for sample in samples]
        check_codes(kind, task.languages)
    return Opened(task, samples=samples)


def _check_inputs(task: Task, how: Design, wanted: Wanted) -> None:
    kind, corpus = wanted.kind, wanted.corpus
    there = manifest_of(corpus.name).fields if kind.fields else ()
    needed = [*kind.exported_fields, *([kind.records.split] if kind.records.split else [])]
    if there and (missing := [field for field in needed if field not in there]):
        raise TaskError(
            f"A {kind.slug} task needs the fields {', '.join(needed)}; the records of corpus {corpus.name} have "
            f"{', '.join(there)}, and no {', '.join(missing)}. Choose another kind, or import them with --column."
        )
    if how.names_answers and "predictor" in wanted.chosen and (task.audit_share or task.audit_least):
        raise TaskError(
            "People label every document that a --predictor finds, so there is nothing to audit; leave --audit-share "
            "and --audit-least out."
        )


def _classes_and_answers(kind: Kind, classes: Sequence[str]) -> list[str]:
    """What may be answered where the draw names the classes: these, then the kind's own answers."""
    if taken := [label for label in classes if label in kind.answers]:
        raise TaskError(
            f"The class {taken[0]} is called as an answer of {kind.slug} that means something else; give the class "
            "another label."
        )
    return [*classes, *kind.answers]


def _unread(name: str, corpus: Corpus) -> dict[str, str]:
    """Id -> the label on which the detectors agree, of the posts of a uniform task that nobody has read."""
    task = Task.objects.filter(name=name).first()
    if task is None:
        raise TaskError(f"There is no task {name!r} whose posts could be drawn; name a uniform task of {corpus}.")
    drawn = task.draw
    if not DESIGNS[drawn.design].of_stream:
        raise TaskError(
            f"{name} is drawn by the {DESIGNS[drawn.design].spelled} design, and people read all of its posts; name a "
            "uniform task."
        )
    if drawn.corpus_id != corpus.pk:
        raise TaskError(f"{name} is drawn from corpus {drawn.corpus}, not {corpus}; name a uniform task of {corpus}.")
    return dict(unread(task).order_by().values_list("item__key", "agreed_label"))


def _add_each(entry: Entry, how: Design, progress: Progress) -> None:
    """Make the units of a task that asks about each language by itself."""
    for sample in entry.opened.samples:
        draw, items = record(sample)
        entry.task.draws.add(draw)
        progress(replace(entry, items=items, asked=sample.language).add_units())


def _add_all(entry: Entry, how: Design, progress: Progress) -> None:
    """Make the units of a question that is the same for all that was drawn."""
    task, samples = entry.task, entry.opened.samples
    hides = any(control.hides for control in task.kind.quality_controls)
    drawn, orders = [], {}
    for sample in samples:
        orders[sample.language] = sample.parameters.pop(ORDER, {})
        entry.suggested |= sample.parameters.pop(REPLIES, {})
        draw, items = record(sample) if hides else record_on_the_way(sample)
        task.draws.add(draw)
        drawn.append(items)
    entry.items = chain.from_iterable(drawn)
    predicted = {}
    if any(orders.values()):
        predicted = store_orders(task, orders, {key for sample in samples for key in sample.keys})
    progress(entry.add_units(predicted=predicted, asks_all=how.asks_all))
    counts = entry.opened.stages
    if how.not_extended and not counts[stages.QUEUED] + counts[stages.ADJUDICATION]:
        # The task has no open questions, so it is closed and hidden from annotators.
        task.is_open = False
        task.save(update_fields=["is_open"])


# --- A task before it has units: its fields and options, checked


def new_task(
    name: str, kind: Kind, title: str, labels: Sequence[str], options: Mapping[str, Any], *, reuse: bool = False
) -> Task:
    """A task that is not saved yet. options: those that differ from the kind's. TaskError if refused."""
    if Task.objects.filter(name=name).exists():
        raise TaskError(f"There is already a task {name!r}. Choose another name, or enlarge it with --extend.")
    task = imagined_task(kind, labels, options, reuse=reuse)
    task.name, task.title = name, title or kind.title
    check_task(task)
    return task


def imagined_task(kind: Kind, labels: Sequence[str], given: Mapping[str, Any], *, reuse: bool = False) -> Task:
    """A task without a name, to ask what its options would make of posts. TaskError if they are refused."""
    options = with_defaults(kind, given)
    codes = list(labels or kind.labels)
    if kind.routing.is_routed:
        check_codes(kind, codes)
        codes = sorted(set(codes))
    if "audit_recheck" in options:
        listed = LanguageRoute.objects.filter(never_agree=True).values_list("language", flat=True)
        options["never_agree"] = sorted(listed)
    task = Task(kind_slug=kind.slug, kind_file=kind.source, labels=codes)
    task.options = options
    try:
        for control in kind.quality_controls:
            control.prepare(task, reuse)
    except ValueError as error:
        raise TaskError(str(error)) from error
    return task


def with_defaults(kind: Kind, given: Mapping[str, Any]) -> dict[str, Any]:
    """All options of a kind with their values. TaskError for an option that the kind does not have, or an impossible
    value.
    """
    if strange := [OPTIONS[name].spelled for name in given if name not in kind.options]:
        raise TaskError(f"{', '.join(strange)}: not an option of {kind.slug} tasks. Leave it out.")
    values = {name: OPTIONS[name].default for name in kind.options} | dict(kind.defaults) | dict(given)
    try:
        checked = {name: OPTIONS[name].check(value) for name, value in values.items()}
    except OptionError as error:
        raise TaskError(str(error)) from error
    if checked.get("aggregation", "") not in ("", *kind.form.aggregations):
        raise TaskError(
            f"The labels of {kind.slug} are not grades, so they have no {checked['aggregation']}. Leave --aggregation "
            "out."
        )
    if fault := kind.rules.faults(checked):
        raise TaskError(fault)
    return checked


def check_task(task: Task) -> None:
    """TaskError with what is wrong with its fields."""
    try:
        task.full_clean()
    except ValidationError as error:
        faults = (_fault(field, fault) for field, found in error.error_dict.items() for fault in found)
        raise TaskError(" ".join(faults)) from error


# The code of what Django finds wrong with a field -> what we say of it.
FAULTS = {
    "blank": "is empty; give it one.",
    "null": "is missing; give it one.",
    "invalid": "has characters that it cannot have; use letters, digits, hyphens and underscores.",
    "null_characters_not_allowed": "holds a NUL character, which databases refuse.",
    "unique": "is taken; choose another.",
}


def _fault(field: str, fault: ValidationError) -> str:
    what = f"The task's {field.replace('_', ' ')}"
    if fault.code == "max_length":
        return f"{what} has {fault.params['show_value']:,} characters; {fault.params['limit_value']:,} are the most."
    return f"{what} {FAULTS[fault.code]}" if fault.code in FAULTS else f"{what}: {' '.join(fault.messages)}"


def save_new(task: Task, *others: Model) -> None:
    """Save a task that was checked, and rows of its name. TaskError if somebody else has made one since then."""
    try:
        with transaction.atomic():
            for row in (task, *others):
                row.save()
    except IntegrityError as error:
        raise TaskError(f"Somebody else has just made a task {task.name!r}. Run the command again.") from error


def check_codes(kind: Kind, codes: Sequence[str]) -> None:
    if unknown := [code for code in codes if not kind.known(code)]:
        raise TaskError(
            f"{', '.join(map(repr, unknown))}: not a language code known here, such as de, zh-CN or hi-Latn. A file "
            "given with --kind can add languages, each in a table [languages.CODE]."
        )


# --- A larger draw


def extend_task(
    task: Task,
    size: int,
    progress: Progress = lambda units: None,
    then: Callable[[Opened], object] = lambda opened: None,
) -> Opened:
    """Enlarge a task's draw to size posts of the same frame and seed, if its design allows that.

    Posts added in a language that had failed its audit go to people too, unless they are audited themselves.
    """
    draw = task.draw
    how = DESIGNS[draw.design]
    if how.not_extended:
        raise TaskError(
            f"{task.name} is a task drawn by the {how.spelled} design, whose draws cannot be enlarged; "
            f"{how.not_extended}"
        )
    if size <= draw.size:
        raise TaskError(f"The task has {draw.size:,} posts already; --size must be larger than that.")
    sample = sample_uniform(draw.corpus, size=size, seed=draw.seed, extends=draw)
    with transaction.atomic():
        # The task's lock comes first here. An answer that has an audited post locked asks for the task's lock
        # afterwards.
        locked(task)
        larger, items = record(sample)
        task.draws.set([larger])
        added = add_units(task, items)
        progress(len(items))
        contested = {label: sent for control in task.controls for label, sent in control.enlarged(task).items()}
        opened = Opened(task, added, [sample], contested=contested)
        then(opened)
    return opened


# --- What ranked predictors suggest for the documents of a task, stored with its units when it is opened.
#
# So a task keeps its suggestions, whatever becomes of the predictors. controls/concept_suggestions.py decides who is
# shown them.


def _rankings(task: Task, corpus: str, predictors: Sequence[str], ids: Iterable[str]) -> Rankings:
    """System -> id of a document -> the labels that it ranks there, the best first, without deprecated concepts.

    CorpusError if there is no such predictor, or if it ranks nothing; TaskError for a label that the task's vocabulary
    does not have.
    """
    keys = list(ids)
    if twice := [each for number, each in enumerate(predictors) if each in predictors[:number]]:
        raise TaskError(f"--suggest-from {twice[0]} is given twice; name each once.")
    found = {str(find_imported(corpus, each)): ranked_for(corpus, each, keys) for each in predictors}
    known = dict(task.vocabulary.concepts.values_list("key", "is_deprecated"))
    for system, rankings in found.items():
        for key, labels in rankings.items():
            if unknown := [label for label in labels[:DEPTH] if label not in known]:
                raise TaskError(
                    f"{system} suggests {unknown[0]!r} for document {key}, and {task.vocabulary} has no such concept; "
                    "make its run without such labels and import it as another --version."
                )
    return {
        system: {key: [label for label in labels if not known.get(label)] for key, labels in rankings.items()}
        for system, rankings in found.items()
    }


def _store_suggestions(task: Task, rankings: Rankings) -> None:
    """With each unit that people may be asked about, hidden gold answers too."""
    units = task.units.filter(copy_of=None).values_list("pk", "item__key") if rankings else ()
    insert(
        Suggestion(unit_id=unit, system=system, ranked=of[key][:DEPTH])
        for unit, key in units
        for system, of in rankings.items()
        if of[key]
    )
