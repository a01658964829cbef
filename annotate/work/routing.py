"""Where units go. The only writer of Unit.stage; each move's Transition is written in the same transaction.

Callers hold the unit's row lock (or, when a task is opened, are the only ones to know the units).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from annotate.core import lottery, stages
from annotate.core.aggregation import at_first, outcome
from annotate.core.refusals import WrongStage
from annotate.kinds import TASK_TYPES
from annotate.models import Annotator, Judgment, LanguageRoute, Qualification, Task, Transition, Unit
from annotate.quality.guidelines import majors
from corpora.core.languages import LANGUAGES, UND
from corpora.models import Item

BATCH = 2000


@dataclass(frozen=True)
class Routes:
    """The LanguageRoute table, read once: which queue serves which language."""

    rows: dict[str, LanguageRoute]

    @classmethod
    def load(cls) -> "Routes":
        return cls({route.language: route for route in LanguageRoute.objects.all()})

    def queue_of(self, language: str) -> str:
        """A code without a route that stands for finer labels goes where the first of them goes."""
        if route := self.rows.get(language):
            return route.queue
        finer = _finer(language)
        return self.queue_of(finer[0]) if finer else language

    def queue_in(self, task: Task, language: str) -> str:
        """Where what is in a language waits. Records say exactly which it is, so each has a queue of its own."""
        return language if TASK_TYPES[task.task_type].records else self.queue_of(language)

    def read_by(self, task: Task, language: str) -> list[str]:
        """The queues of a task for which readers of a language are asked."""
        if not TASK_TYPES[task.task_type].records:
            return [self.queue_of(language)]
        # Those in no language go to whom posts in none go.
        none = [self.queue_of(UND)]
        return [code for code in task.read_in if language in (code, *_finer(code), *(none if code == UND else ()))]

    def labels_of(self, queue: str, task: Task) -> list[str]:
        """The languages that a queue stands for: its readers are the people who read one of them."""
        return [language for language in task.read_in if self.queue_in(task, language) == queue]

    def with_extras(self, candidates: Iterable[str]) -> list[str]:
        """Each candidate followed by those that are to be tried after it, each once."""
        widened: dict[str, None] = {}
        for code in candidates:
            route = self.rows.get(code)
            widened.update(dict.fromkeys([code, *(route.extra_candidates if route else ())]))
        return list(widened)

    def readers(self, task: Task, *, may_work: bool = True) -> dict[str, set[int]]:
        """Queue -> ids of the active annotators who read one of its languages well enough for the task.

        may_work: only those who are qualified for it, where a test is asked for, and are not paused.
        """
        by_queue: dict[str, set[int]] = {}
        rows = Annotator.objects.filter(
            user__is_active=True, languages__level__gte=task.least_level, languages__language__in=read_in(task)
        ).values_list("languages__language", "pk")
        for language, annotator in rows:
            for queue in self.read_by(task, language):
                by_queue.setdefault(queue, set()).add(annotator)
        if may_work:
            paused = set(task.pauses.filter(lifted_at=None).values_list("annotator_id", flat=True))
            by_queue = {queue: people - paused for queue, people in by_queue.items()}
            if task.test_items:
                able: dict[str, set[int]] = {}
                for language, person in qualified(task).values_list("language", "annotator_id"):
                    able.setdefault(self.queue_in(task, language), set()).add(person)
                by_queue = {queue: people & able.get(queue, set()) for queue, people in by_queue.items()}
        return by_queue


def qualified(task: Task) -> QuerySet[Qualification]:
    """The qualifications that hold: those under the major version of the guidelines that holds in their language."""
    holding = Q(pk=None)
    for language, major in majors(task).items():
        holding |= Q(language=language, major=major)
    return task.qualifications.filter(holding).order_by()


def read_in(task: Task) -> list[str]:
    """The languages whose readers a task needs, and what a coarse one stands for."""
    return [code for each in task.read_in for code in (each, *_finer(each))]


def _finer(language: str) -> Sequence[str]:
    """The labels for which a coarse code stands, as zh does for zh-CN and zh-TW."""
    return LANGUAGES[language].labels if language in LANGUAGES else ()


def queues_read_by(annotator: Annotator, task: Task, routes: Routes) -> dict[str, list[str]]:
    """The queues whose languages the annotator reads, each with the languages it stands for; best-read first."""
    own = annotator.languages.filter(level__gte=task.least_level, language__in=read_in(task))
    read = (routes.read_by(task, row.language) for row in own.order_by("-level", "language"))
    queues = dict.fromkeys(queue for each in read for queue in each)
    return {queue: routes.labels_of(queue, task) for queue in queues}


def queues_of(annotator: Annotator, task: Task, routes: Routes) -> dict[str, list[str]]:
    """Those of them in which the annotator may work: qualified, where a test is asked for, and not paused."""
    queues = queues_read_by(annotator, task, routes)
    if not queues or annotator.pauses.filter(task=task, lifted_at=None).exists():
        return {}
    if not task.test_items:
        return queues
    passed = qualified(task).filter(annotator=annotator).values_list("language", flat=True)
    able = {routes.queue_in(task, language) for language in passed}
    return {queue: languages for queue, languages in queues.items() if queue in able}


def move(unit: Unit, event: str, to_stage: str, *, by=None, judgment: Judgment | None = None, **changes) -> None:
    """Move a unit whose row the caller has locked, and write down that it moved.

    changes: label, round, language, visited; a unit's label goes unless one is given.
    """
    transition = _apply(unit, event, to_stage, by=by, judgment=judgment, **changes)
    unit.save(update_fields=["stage", "label", "round", "language", "visited"])
    transition.save()


def _apply(unit, event, to_stage, *, by=None, judgment=None, label="", **changes) -> Transition:
    stages.check_move(unit.stage, event, to_stage)
    from_stage, unit.stage, unit.label = unit.stage, to_stage, label
    for field, value in changes.items():
        setattr(unit, field, value)
    return Transition(
        unit=unit,
        event=event,
        from_stage=from_stage,
        to_stage=to_stage,
        round=unit.round,
        language=unit.language,
        label=label,
        judgment=judgment,
        by=by,
        at=timezone.now(),
    )


@transaction.atomic
def add_units(
    task: Task,
    items: list[Item],
    *,
    asked: str = "",
    gold_answers: Mapping[int, str] = MappingProxyType({}),
    honeypots: bool = False,
    reuse: Mapping[int, tuple[Unit, str]] = MappingProxyType({}),
) -> Counter[str]:
    """Make a unit of each item, in order, and route it. Returns how many units are at each stage.

    asked: the language that all of them are asked about, empty where any may be said. gold_answers: item -> the answer
    that is known, of those hidden among the work. reuse: item -> the unit of another task that people have labelled,
    and what its label means here.

    Items whose text the task already has become copies: people judge a text once. A disputed unit goes to the queue
    of its most likely language even while nobody reads it; the manager is warned, and can reroute it.
    """
    task_type, routes = TASK_TYPES[task.task_type], Routes.load()
    originals = {
        same(unit.item): unit
        for unit in task.units.filter(copy_of=None, asked=asked, gold_answer="").select_related("item")
    }
    seed = task.draw.seed
    transitions: list[Transition] = []
    units: list[Unit] = []
    for position, item in enumerate(items, task.units.count() + 1):
        unit = Unit(task=task, item=item, asked=asked, position=position, redundancy=_redundancy(task, item, seed))
        units.append(unit)
        unit.gold_answer = gold_answers.get(item.pk, "")
        if honeypots:
            unit.honeypot, unit.redundancy = True, EVERYBODY
        if not unit.gold_answer and (original := originals.setdefault(same(item), unit)) is not unit:
            unit.copy_of, unit.agreed_label = original, original.agreed_label
            transitions.append(_apply(unit, "copied", stages.COPIED))
        elif item.pk in reuse:
            unit.reused_from, label = reuse[item.pk]
            transitions.append(_apply(unit, "reused", stages.LABELLED, label=label))
        elif label := task_type.agreed(item, task):
            unit.agreed_label = label
            transitions.append(_apply(unit, "agreed", stages.AGREED, label=label))
        else:
            transitions.append(_to_people(unit, "asked" if task_type.records else "disputed", routes))
    earlier: list[int] = []
    for unit in _choose_audits(task, units, seed):
        judged = unit.copy_of or unit
        if judged.stage == stages.AGREED and judged.pk is None:
            judged.recheck = _rechecked(judged, seed)
            transitions.append(_to_people(judged, "audited", routes))
        elif judged.stage == stages.AGREED:
            earlier.append(judged.pk)
    for copies in (False, True):  # a copy needs the key of its original
        Unit.objects.bulk_create([unit for unit in units if bool(unit.copy_of) is copies], batch_size=BATCH)
    Transition.objects.bulk_create(transitions, batch_size=BATCH)
    _send_to_people(task.units.filter(pk__in=earlier), "audited", routes)
    return Counter(unit.stage for unit in units)


# Places of a unit that everybody is asked for: the most that the column holds.
EVERYBODY = 32767


def same(item: Item) -> tuple:
    """What two items have alike that are the same to a reader."""
    return item.language, item.text, *sorted(item.fields.items())


def _redundancy(task: Task, item: Item, seed: str) -> int:
    """How many answers a new unit asks for: the task's number, or a second one for the overlap, chosen by lot."""
    if task.redundancy == 1 and lottery.hit(task.overlap_share, seed=seed, purpose="overlap", key=item.key):
        return 2
    return at_first(task.redundancy, stop_early=task.stop_early)


def audit_counts(task: Task) -> dict[str, tuple[int, int]]:
    """Label -> how many posts the detectors agree on with it, and how many of those were chosen for the audit."""
    counts = task.units.exclude(agreed_label="").order_by().values_list("agreed_label")
    counts = counts.annotate(posts=Count("pk"), chosen=Count("pk", filter=Q(audited=True)))
    return {label: (posts, chosen) for label, posts, chosen in counts}


def contested_labels(task: Task) -> set[str]:
    """The labels on which the detectors agreed and which people give all of, as the audit failed."""
    contested = task.units.filter(transitions__event="contested")
    return set(contested.order_by().values_list("agreed_label", flat=True).distinct())


def _choose_audits(task: Task, units: list[Unit], seed: str) -> list[Unit]:
    """Choose the posts by which the detectors' agreement is audited, and mark them.

    By lot among the posts of each language on which they agree, copies too, since it is posts that are counted. Where
    a task is extended, the lots are drawn among what is added: its earlier choice stays.
    """
    added: dict[str, list[Unit]] = {}
    for unit in units:
        if unit.agreed_label:
            added.setdefault(unit.agreed_label, []).append(unit)
    before = audit_counts(task)
    chosen = []
    for label, posts in added.items():
        posts_before, audited_before = before.get(label, (0, 0))
        total = posts_before + len(posts)
        wanted = max(lottery.part_of(task.audit_share, total), min(task.audit_least, total)) - audited_before
        by_key = {unit.item.key: unit for unit in posts}
        keys = lottery.drawn(by_key, max(0, wanted), seed=seed, purpose="audit")
        chosen += [by_key[key] for key in keys]
    for unit in chosen:
        unit.audited = True
    return chosen


def _rechecked(unit: Unit, seed: str) -> bool:
    return lottery.hit(unit.task.audit_recheck, seed=seed, purpose="recheck", key=unit.item.key)


def _to_people(unit: Unit, event: str, routes: Routes, by=None) -> Transition:
    """Put a unit into the queue of its most likely language; the caller saves both."""
    task_type = TASK_TYPES[unit.task.task_type]
    candidates = task_type.candidates(unit)
    unit.candidates = candidates if task_type.records else routes.with_extras(candidates)
    queue = routes.queue_in(unit.task, unit.candidates[0])
    return _apply(unit, event, stages.QUEUED, by=by, round=1, language=queue, visited=[queue])


def _send_to_people(units: QuerySet[Unit], event: str, routes: Routes, by=None) -> int:
    """Take AGREED units out of their stage. Returns how many."""
    units = units.filter(stage=stages.AGREED).select_related("item", "task")
    # no_key: or else they would wait for an extension that is about to add copies of them, and it for them.
    found = list(units.select_for_update(of=("self",), no_key=True))
    transitions = [_to_people(unit, event, routes, by) for unit in found]
    for unit in found:
        unit.recheck = event == "audited" and _rechecked(unit, unit.task.draw.seed)
    fields = ["stage", "label", "round", "language", "visited", "candidates", "recheck"]
    # As insertions that meet their row, since bulk_update takes many times as long, and a reader waits for this.
    Unit.objects.bulk_create(found, batch_size=BATCH, update_conflicts=True, unique_fields=["pk"], update_fields=fields)
    Transition.objects.bulk_create(transitions, batch_size=BATCH)
    return len(found)


@transaction.atomic
def contest(task: Task, label: str, by=None) -> int:
    """Have people label every unit on which the detectors agreed on a label. Returns how many.

    by: the manager who wants it; nobody where the audit itself does.
    """
    return _send_to_people(task.units.filter(agreed_label=label), "contested", Routes.load(), by)


def after_judgment(unit: Unit, judgment: Judgment) -> None:
    """Route a unit on after an answer or a skip: to its label, its next round, an adjudicator, or nowhere yet."""
    if unit.honeypot:
        return  # the next person is asked for it too
    task, by = unit.task, judgment.annotator.user
    live = unit.judgments.filter(voided_at=None)
    answers = list(live.filter(kind=Judgment.ANSWER).values_list("label", flat=True))
    if len(answers) >= unit.redundancy:
        decide(unit, answers, by=by, judgment=judgment)
        return
    routes = Routes.load()
    records = TASK_TYPES[task.task_type].records
    skips = skips_of_round(unit).count()
    # Those who may label records come and go with the test: too few of them now is no reason to give up.
    if skips < task.skip_limit and (records or _enough_readers(unit, routes.readers(task), len(answers))):
        return
    if len(answers) >= task.redundancy and not records and not task.stop_early:
        # The second opinion of the overlap is not to be had: the first stands alone.
        unit.redundancy = len(answers)
        unit.save(update_fields=["redundancy"])
        decide(unit, answers, by=by, judgment=judgment)
    elif (queue := _next_queue(unit, routes, routes.readers(task))) and unit.round < task.rounds:
        move(
            unit,
            "skipped",
            stages.QUEUED,
            by=by,
            judgment=judgment,
            round=unit.round + 1,
            language=queue,
            visited=[*unit.visited, queue],
        )
    else:
        move(unit, "exhausted", _when_exhausted(unit), by=by, judgment=judgment)


def decide(unit: Unit, answers: list[str], *, by=None, judgment: Judgment | None = None) -> None:
    """Give a unit that has all its answers the label that they come to, or ask one person more, or send it on."""
    came_to = _came_to(unit, answers)
    if isinstance(came_to, int):
        unit.redundancy = came_to
        unit.save(update_fields=["redundancy"])
    else:
        event, to_stage, label = came_to
        move(unit, event, to_stage, by=by, judgment=judgment, label=label)


def decide_all(units: list[Unit], judgments: Mapping[int, list[Judgment]], by=None) -> None:
    """The same of many units at once, whose rows the caller has locked. judgments: unit -> its answers, in order."""
    transitions = []
    for unit in units:
        answers = judgments[unit.pk]
        came_to = _came_to(unit, [judgment.label for judgment in answers])
        if isinstance(came_to, int):
            unit.redundancy = came_to
        else:
            event, to_stage, label = came_to
            transitions.append(_apply(unit, event, to_stage, by=by, judgment=answers[-1], label=label))
    fields = ["stage", "label", "redundancy"]
    Unit.objects.bulk_create(units, batch_size=BATCH, update_conflicts=True, unique_fields=["pk"], update_fields=fields)
    Transition.objects.bulk_create(transitions, batch_size=BATCH)


def _came_to(unit: Unit, answers: list[str]) -> tuple[str, str, str] | int:
    """What a unit's answers come to: event, stage and label; or how many are to be asked for now."""
    task = unit.task
    adaptive = task.stop_early or task.extra_answers
    label = outcome(
        answers,
        aggregation=task.aggregation,
        order=task.labels,
        asked=task.redundancy if adaptive else len(answers),
        extra=task.extra_answers,
    )
    if isinstance(label, int):
        return label
    if is_audit(unit) and (unit.recheck or label != unit.agreed_label):
        return "doubted", stages.ADJUDICATION, ""
    if label is None:
        return "conflicted", stages.DISCARDED if unit.gold_answer else task.on_conflict, ""
    return "answered", stages.LABELLED, label


def ask_again(unit: Unit) -> None:
    """Set the redundancy of a unit that has lost answers: those who were asked since these differed are not needed."""
    answers = unit.judgments.filter(voided_at=None, kind=Judgment.ANSWER).count()
    asked = max(answers + 1, at_first(unit.task.redundancy, stop_early=unit.task.stop_early))
    if asked < unit.redundancy and (unit.task.stop_early or unit.task.extra_answers) and not unit.honeypot:
        unit.redundancy = asked
        unit.save(update_fields=["redundancy"])


def left_decides(unit: Unit, answers: list[str]) -> bool:
    """Whether the answers that are left to a unit when others were voided decide it, so that nobody is asked anew.

    Where people are asked one by one, those who agree may suffice; of what was imported nobody else can be asked.
    """
    task = unit.task
    if not TASK_TYPES[task.task_type].has_pages:
        return unit.stage != stages.QUEUED
    adaptive = task.stop_early or task.extra_answers
    enough = len(answers) >= at_first(task.redundancy, stop_early=task.stop_early)
    return bool(adaptive and enough) and not isinstance(_came_to(unit, answers), int)


def reopen(unit: Unit, by=None) -> None:
    """Ask anew after answers were voided: the unit goes back to the queue it was in last, if it is not there.

    What an adjudicator decided stands, since it does not rest on the answers. The caller has the unit locked.
    """
    live = unit.judgments.filter(voided_at=None)
    if unit.honeypot or live.filter(kind__in=[Judgment.SETTLE, Judgment.DISCARD]).exists():
        return
    answers = list(live.filter(kind=Judgment.ANSWER).order_by("pk").values_list("label", flat=True))
    decides = left_decides(unit, answers)
    if decides:
        unit.redundancy = max(1, len(answers))
        unit.save(update_fields=["redundancy"])
    else:
        ask_again(unit)
    if unit.stage != stages.QUEUED:
        move(unit, "reopened", stages.QUEUED, by=by)
    if decides:
        decide(unit, answers, by=by)


def skips_of_round(unit: Unit) -> QuerySet[Judgment]:
    """The skips that count towards the task's limit: of the round the unit is in, since it was last asked anew."""
    skips = unit.judgments.filter(voided_at=None, kind=Judgment.SKIP, lease__round=unit.round)
    reopened = unit.transitions.filter(event="reopened").last()
    return skips.filter(answered_at__gt=reopened.at) if reopened else skips


def is_audit(unit: Unit) -> bool:
    """Whether the unit is with people because it, or a copy of it, was chosen for the audit."""
    return bool(unit.agreed_label) and unit.transitions.filter(event="audited").exists()


def _when_exhausted(unit: Unit) -> str:
    if TASK_TYPES[unit.task.task_type].records:
        return unit.task.on_conflict
    return stages.DISCARDED if unit.gold_answer else stages.ADJUDICATION


def binding() -> Q:
    """Judgments after which a person is not asked again: those that stand, and those that a manager voided."""
    return Q(voided_at=None) | Q(voided_by__isnull=False)


def _judged_by(unit: Unit) -> set[int]:
    return set(unit.judgments.filter(binding()).values_list("annotator_id", flat=True))


def _enough_readers(unit: Unit, readers: dict[str, set[int]], answers: int) -> bool:
    """Whether the unit's queue has readers who may still judge it, as many as answers are missing."""
    return len(readers.get(unit.language, set()) - _judged_by(unit)) >= unit.redundancy - answers


def _next_queue(unit: Unit, routes: Routes, readers: dict[str, set[int]]) -> str | None:
    """The next candidate's queue that the unit has not been in and that has a reader who has not judged it."""
    judged = _judged_by(unit)
    for code in unit.candidates:
        queue = routes.queue_in(unit.task, code)
        if queue not in unit.visited and readers.get(queue, set()) - judged:
            return queue
    return None


def lacking_readers(task: Task, readers: dict[str, set[int]]) -> dict[int, str]:
    """Queued units that fewer people may still judge than answers are missing: id -> queue, in order of id."""
    judged: dict[int, set[int]] = {}
    answers: Counter[int] = Counter()
    live = Judgment.objects.filter(binding(), unit__task=task, unit__stage=stages.QUEUED).order_by()
    for unit, annotator, kind, voided in live.values_list("unit_id", "annotator_id", "kind", "voided_at"):
        judged.setdefault(unit, set()).add(annotator)
        answers[unit] += kind == Judgment.ANSWER and voided is None
    queued = (
        task.units.filter(stage=stages.QUEUED, honeypot=False)
        .order_by("pk")
        .values_list("pk", "language", "redundancy")
    )
    return {
        unit: queue
        for unit, queue, redundancy in queued
        if len(readers.get(queue, set()) - judged.get(unit, set())) < redundancy - answers[unit]
    }


@transaction.atomic
def reroute(task: Task, by=None) -> dict[str, int]:
    """Send units on whose queue has too few readers left; their round is not used up by it.

    Returns how many went to "queues" and to "adjudication"; decoys of which nobody can be asked are dropped. Run by a
    manager, since a queue may be without readers only until the next person is invited. Records are refused: they
    have one language, and too few people who have passed its test yet are no reason to give them up.
    """
    if TASK_TYPES[task.task_type].records:
        raise WrongStage(
            "Records are not sent on: they wait for people who read their language and pass the test. Invite some, or "
            "let readers in without it."
        )
    routes = Routes.load()
    readers = routes.readers(task)
    counts = {"queues": 0, "adjudication": 0}
    for pk in lacking_readers(task, readers):
        # no_key: as in judging.py.
        unit = task.units.select_for_update(no_key=True).get(pk=pk)
        answers = unit.judgments.filter(voided_at=None, kind=Judgment.ANSWER).count()
        # It may have been judged since.
        if unit.stage != stages.QUEUED or _enough_readers(unit, readers, answers):
            continue
        if queue := _next_queue(unit, routes, readers):
            move(unit, "rerouted", stages.QUEUED, by=by, language=queue, visited=[*unit.visited, queue])
            counts["queues"] += 1
        else:
            move(unit, "exhausted", _when_exhausted(unit), by=by)
            counts["adjudication"] += unit.stage == stages.ADJUDICATION
    return counts
