"""Opening a task (draw, make its units, route them) and extending it by a larger draw; each as a whole or not at all.

What a task is before it has units is checked in new_task.py.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from django.db import transaction

from annotate.core import stages
from annotate.kinds import Kind
from annotate.kinds.compared_draw import REPLIES, Replies, systems_of
from annotate.kinds.designs import DESIGNS, Design, Wanted
from annotate.kinds.language_labels import question_about
from annotate.kinds.predicted_draw import ORDER
from annotate.kinds.preference_kind import labels_of
from annotate.models import Suggestion, Task, Unit
from annotate.quality.guideline_versions import add_first
from annotate.work.moves import locked, unread
from annotate.work.new_task import TaskError, check_codes, classes_and_answers, made_once, new_task
from annotate.work.unit_entry import add_units, store_orders
from corpora.core import CorpusError
from corpora.database.bulk_rows import insert
from corpora.draws.items import record, record_on_the_way
from corpora.draws.samples import Sample, sample_uniform
from corpora.models import Corpus, Item
from corpora.predictions.predictor_labels import find_imported
from corpora.predictions.rankings import ranked_for
from corpora.storage.layout import manifest_of

Progress = Callable[[int], object]  # is told of units as they are made; an exception from it undoes them

FEW = 3  # languages that a generated title names


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
    stages: Counter[str]
    samples: list[Sample] = field(default_factory=list)
    decoys: Counter[str] = field(default_factory=Counter)
    wanted: Counter[str] = field(default_factory=Counter)
    reused: Counter[str] = field(default_factory=Counter)
    contested: dict[str, int] = field(default_factory=dict)


@dataclass
class Entry:
    """What is about to enter a task; its quality controls may change it.

    items: what was drawn. asked: the language that all of it asks about, empty if any may be answered. gold: records
    whose answer is known. reuses: whether labels of other tasks are taken. suggested: id -> system -> replies. shared:
    what controls keep from one entry for the next. known_answers: item -> its answer, if it is hidden among the others;
    reused: item -> the unit of another task whose label it takes, and that label.
    """

    opened: Opened
    corpus: Corpus
    items: Iterable[Item]
    asked: str = ""
    seed: str = ""
    gold: Sequence[GoldRow] = ()
    reuses: bool = False
    suggested: Replies = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)
    known_answers: Mapping[int, str] = field(default_factory=dict)
    reused: Mapping[int, tuple[Unit, str]] = field(default_factory=dict)

    @property
    def task(self) -> Task:
        return self.opened.task

    def made(self, **how: Any) -> Counter[str]:
        """Make the units, after the controls had their turn. Returns how many units are at each stage."""
        for control in self.task.kind.quality_controls:
            control.enter(self)
        return add_units(
            self.task,
            self.items,
            asked=self.asked,
            known_answers=self.known_answers,
            reuse=self.reused,
            suggested=self.suggested,
            **how,
        )


Then = Callable[[Opened], object]  # hears what came of it, before it is kept: it may undo all of it
ThenAll = Callable[[list[Opened]], object]  # the same of several


def open_task(
    name: str, corpus: Corpus, kind: Kind, *, seed: str, then: Then = lambda opened: None, **how: Any
) -> Opened:
    """One task; how: as open_tasks has it."""
    [opened] = open_tasks({name: seed}, corpus, kind, then=lambda made: then(made[0]), **how)
    return opened


def open_tasks(
    seeds: Mapping[str, str],
    corpus: Corpus,
    kind: Kind,
    *,
    design: str = "",
    size: int | None = None,
    languages: list[str] | None = None,
    chosen: Mapping[str, Any] | None = None,
    title: str = "",
    labels: Sequence[str] = (),
    guidelines: Mapping[str, str] | None = None,
    gold: Sequence[GoldRow] = (),
    reuse: bool = False,
    suggest_from: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    progress: Progress = lambda units: None,
    then: ThenAll = lambda opened: None,
) -> list[Opened]:
    """For each seed draw from a corpus by a design of the kind, and ask the kind's question of what was drawn: all of
    these tasks, or none.

    seeds: name of the task -> seed. size: units in all or for each language, or groups of them if the kind keeps
    records together; None for the design's default, or all. languages: those to draw for; None for all. chosen: options
    of the draw; options: the task's options that differ from the kind's defaults. labels: what may be answered, if that
    is languages. gold: records whose answer is known, which are never work. reuse: take the labels that there are: of
    posts those from other tasks of the corpus, of documents the declared concepts. suggest_from: ranked predictors
    whose labels are suggested. TaskError, GoldAnswerError or CorpusError if it is refused;
    then nothing was changed.
    """
    how, chosen = DESIGNS[design or kind.designs[0]], chosen or {}
    named = _named_labels(kind, how, chosen) or labels
    listed = languages if how.asks_each and languages else named
    made, rankings = [], []
    # The files are read before the transaction, during which nobody else may write.
    for name, seed in seeds.items():
        with _named(name, seed, len(seeds)):
            task = new_task(name, kind, title, listed, options or {})
            for control in kind.quality_controls:
                control.reuse(task, reuse)
            _check_fields(kind, corpus)
            wanted = Wanted(
                corpus=corpus,
                size=how.size if size is None else size,
                seed=seed,
                languages=languages,
                chosen=chosen,
                together=kind.records.together,
                fields=kind.fields,
                kept=kind.records.kept,
                labels=task.labels,
                leave_out=frozenset(row.id for row in gold),
                unread=_unread(chosen["of"], corpus) if how.of_uniform else {},
            )
            if "predictor" in chosen and how.names_answers and (task.audit_share or task.audit_least):
                raise TaskError(
                    "People label every document that a --predictor finds, so there is nothing to audit; leave "
                    "--audit-share and --audit-least out."
                )
            opened = Opened(task, Counter(), how.draw(wanted))
            keys = (key for sample in opened.samples for key in sample.keys)
            ids = [*keys, *wanted.leave_out] if suggest_from else ()
            rankings.append(rankings_of(task, corpus.name, suggest_from, ids))
            progress(0)
            _take_languages(task, how, opened.samples, titled=bool(title) or not kind.wording.titled_by_languages)
            made.append(opened)
    with transaction.atomic():
        for opened, (name, seed), suggested in zip(made, seeds.items(), rankings, strict=True):
            with _named(name, seed, len(seeds)):
                with made_once(name):
                    opened.task.save()
                add_first(opened.task, guidelines or kind.guidelines)
                if how.asks_each:
                    shared: dict[str, Any] = {}
                    for sample in opened.samples:
                        draw, items = record(sample)
                        opened.task.draws.add(draw)
                        entry = Entry(opened, corpus, items, asked=sample.language, reuses=reuse, shared=shared)
                        made_of = entry.made()
                        opened.stages += made_of
                        progress(made_of.total())
                else:
                    progress(_add(opened, corpus, gold, seed))
                store_suggestions(opened.task, suggested)
        then(made)
    return made


def _named_labels(kind: Kind, how: Design, chosen: Mapping[str, Any]) -> list[str]:
    """What may be answered, where the options of the draw name it."""
    if how.compares:
        return labels_of([*systems_of(chosen["systems"])])
    return classes_and_answers(kind, chosen["classes"]) if how.names_answers else []


@contextmanager
def _named(name: str, seed: str, of: int) -> Iterator[None]:
    """Where one of several tasks is refused: TaskError that says which."""
    try:
        yield
    except (TaskError, CorpusError) as error:
        if of == 1:
            raise
        raise TaskError(f"{name}, by the seed {seed}: {error} So none of the {of} tasks was made.") from error


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


def _take_languages(task: Task, how: Design, samples: list[Sample], *, titled: bool) -> None:
    """Give the task the languages for which something was found."""
    found = [sample.language for sample in samples if sample.rows]
    if how.asks_each:
        if not found:
            raise TaskError(
                f"No post of corpus {samples[0].corpus.name} fits the {how.spelled} design for any of the languages; "
                f"{how.none_found}"
            )
        task.labels = found
        if not titled and len(found) <= FEW:
            task.title = question_about(found)
    elif not task.kind.routing.is_routed:
        task.languages = [sample.language for sample in samples]
        check_codes(task.kind, task.languages)


def _add(opened: Opened, corpus: Corpus, gold: Sequence[GoldRow], seed: str) -> int:
    """Make the units of a question that is the same for all that was drawn. Returns how many."""
    task, controls = opened.task, opened.task.kind.quality_controls
    hides = any(control.hides for control in controls)
    drawn, orders, replies = [], {}, {}
    for sample in opened.samples:
        orders[sample.language] = sample.parameters.pop(ORDER, {})
        replies |= sample.parameters.pop(REPLIES, {})
        draw, items = record(sample) if hides else record_on_the_way(sample)
        task.draws.add(draw)
        drawn.append(items)
    predicted: dict[str, str] = {}
    if any(orders.values()):
        predicted = store_orders(task, orders, {key for sample in opened.samples for key in sample.keys})
    entry = Entry(opened, corpus, chain.from_iterable(drawn), seed=seed, gold=gold, suggested=replies)
    design = DESIGNS[task.draw.design]
    opened.stages = entry.made(predicted=predicted, asks_all=design.asks_all)
    waits = opened.stages[stages.QUEUED] + opened.stages[stages.ADJUDICATION]
    if design.not_extended and not waits:
        # Nobody is asked anything, nor will be, so nobody finds it among their tasks.
        task.is_open = False
        task.save(update_fields=["is_open"])
    return opened.stages.total()


def _check_fields(kind: Kind, corpus: Corpus) -> None:
    there = manifest_of(corpus.name).fields if kind.fields else ()
    needed = [*kind.exported_fields, *([kind.records.split] if kind.records.split else [])]
    if there and (missing := [field for field in needed if field not in there]):
        raise TaskError(
            f"A {kind.slug} task needs the fields {', '.join(needed)}; the records of corpus {corpus.name} have "
            f"{', '.join(there)}, and no {', '.join(missing)}. Choose another kind, or import them with --column."
        )


def extend_task(
    task: Task, size: int, progress: Progress = lambda units: None, then: Then = lambda opened: None
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


DEPTH = 20  # labels of a system that are stored with a unit
Rankings = Mapping[str, Mapping[str, Sequence[str]]]  # system -> id of a document -> its labels, the best first


def rankings_of(task: Task, corpus: str, predictors: Sequence[str], ids: Iterable[str]) -> Rankings:
    """What each of these predictors of a corpus ranks for the documents; task: one whose answers are concepts, if any
    predictor is given. Deprecated concepts are left out. CorpusError if there is no such predictor, or if it ranks
    nothing; TaskError for a label that the task's vocabulary has not.
    """
    keys = list(ids)
    if twice := [each for number, each in enumerate(predictors) if each in predictors[:number]]:
        raise TaskError(f"--suggest-from {twice[0]} is given twice; name each once.")
    found = {str(find_imported(corpus, each)): ranked_for(corpus, each, keys) for each in predictors}
    known = dict(task.vocabulary.concepts.values_list("key", "is_deprecated")) if found else {}
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


def store_suggestions(task: Task, rankings: Rankings) -> None:
    """With each unit that people may be asked about, hidden gold answers too."""
    if not rankings:
        return
    units = task.units.filter(copy_of=None).values_list("pk", "item__key")
    insert(
        Suggestion(unit_id=unit, system=system, ranked=of[key][:DEPTH])
        for unit, key in units
        for system, of in rankings.items()
        if of[key]
    )
