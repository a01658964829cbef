"""Routing: selects a unit's next stage or queue if its answers don't decide it, were voided, or lack readers.

Callers must have locked the unit's row. moves.py performs the moves.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import cache, partial
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Func, Q, TextField
from django.utils import timezone

from annotate.core import stages
from annotate.core.aggregation.answer_table import at_first, majority
from annotate.core.refusals import WrongStage
from annotate.models import Annotator, Judgment, Lease, Task, Unit
from annotate.work.eligible import BEGINS, shown_before
from annotate.work.moves import PLAIN, aggregate, apply_move, apply_resolution, decide_now, move, resolve, save_all
from annotate.work.routes import Routes
from corpora.database.statements import update_one
from corpora.models import Item


class Reach(NamedTuple):
    """The annotators who can still be asked about a unit: the readers of a queue who are not excluded.

    routes: routes of the unit's task.
    readers: ids of the annotators who read each queue.
    excluded: ids of annotators who must not be asked, regardless of their languages.
    """

    routes: Routes
    readers: dict[str, set[int]]
    excluded: set[int]


def _load_reach(unit: Unit, *judged: int) -> Reach:
    """Query the annotators who can still be asked about a unit.

    judged: ids of annotators who have just judged the unit or a gold answer that replaced it.
    """
    routes = Routes.load(unit.task)
    return Reach(routes, routes.readers(), _excluded_annotators(unit) | set(judged))


def route(unit: Unit, judgments: Sequence[Judgment], **how: Any) -> None:
    """Route a unit after a judgment that doesn't decide it, or that may name the language of a different queue.

    The unit is labelled, enters its next round, goes to an adjudicator, or stays in its queue.

    judgments: all judgments in force for the unit (the new judgment is among them), with their leases.
    how: `by`, `judgment` (the new one) and `keep`, see `moves.move`.
    """
    task, judgment = unit.task, how["judgment"]
    answers = [other for other in judgments if other.kind == Judgment.ANSWER]
    is_done = len(answers) >= unit.redundancy
    # Only skips in the current round and after the last reopening count towards the task's limit.
    skipped = [other for other in judgments if other.kind == Judgment.SKIP]
    skipped = [other for other in skipped if other.lease and other.lease.round == unit.round]
    reopened = unit.transitions.filter(event="reopened").last() if skipped else None
    skips = sum(reopened is None or other.answered_at > reopened.at for other in skipped)
    # Records stay in their queue even if it has too few readers now, because more annotators may pass the test later.
    # Disturbing units don't, because it may be that no one else ever opts in to them.
    stays_queued = skips < task.skip_limit and task.kind.routing.waits and not unit.disturbing
    if stays_queued and judgment.kind == Judgment.ANSWER:
        return
    # Run this query even after a unit's last answer. Skipping it would reveal which units were drawn for an overlap.
    # An annotator who judged a gold answer counts as having judged the unit that it replaced.
    reach = _load_reach(unit, judgment.annotator_id)
    has_enough = _enough_readers(unit, reach.readers, reach.excluded, len(answers))
    if is_done:
        _decide_or_confirm(unit, answers, reach, **how)
        return
    if not has_enough and has_majority(unit, answers):
        decide_now(unit, answers, **how)
        return
    if stays_queued:
        return
    if skips < task.skip_limit and has_enough:
        if task.overlap_share:
            # The unit stays in its queue. Run the statements of a move anyway, without effect.
            move(copy(unit), "skipped", stages.QUEUED, **how | {"keep": False})
        return
    if task.overlap_share and len(answers) >= task.redundancy:
        # No annotator is left for the overlap's second answer, so the first answer decides.
        unit.redundancy = len(answers)
        _decide_or_confirm(unit, answers, reach, **how)
    elif (queue := _next_queue(unit, reach, answers)) and unit.round < task.rounds:
        visited = [*unit.visited, queue]
        move(unit, "skipped", stages.QUEUED, round=unit.round + 1, language=queue, visited=visited, **how)
    else:
        move(unit, "exhausted", _exhausted_stage(unit), **how)


def _decide_or_confirm(unit: Unit, answers: Sequence[Judgment], reach: Reach, **how: Any) -> None:
    """Decide a unit. If its only answer names the language of a different queue, ask a reader of that queue first.

    This includes doubted posts of the audit, although an adjudicator decides them later. If only audited posts never
    reached the second queue, two readers who compare notes could recognize them.

    answers: the unit's answers, with their leases.
    how: see `route`.
    """
    result = resolve(unit, [answer.label for answer in answers])
    if len(answers) == 1 and not isinstance(result, int) and result[0] in ("answered", "checked", "doubted"):
        language, lease = unit.task.kind.routing.named(answers[0].label), answers[0].lease
        queue = reach.routes.queue_in(language) if language else ""
        if queue not in ("", lease and lease.queue):
            _send_to_named_queue(unit, queue, reach, **how)
            return
    apply_resolution(unit, result, **how)


def _send_to_named_queue(unit: Unit, queue: str, reach: Reach, **how: Any) -> None:
    """Ask a reader of the queue to confirm the language that the first annotator named."""
    if reach.readers.get(queue, set()) - reach.excluded:
        visited = list(dict.fromkeys([*unit.visited, queue]))
        number = unit.round + 1
        move(unit, "named", stages.QUEUED, round=number, language=queue, visited=visited, redundancy=2, **how)
    else:
        move(unit, "named", _exhausted_stage(unit), **how)


def is_unconfirmed(unit: Unit, answers: Sequence[Judgment]) -> bool:
    """Return whether a unit's only answer named the language of a different queue and is not confirmed."""
    return len(answers) == 1 and _is_named(unit, answers)


def _is_named(unit: Unit, answers: Iterable[Judgment]) -> bool:
    """Return whether one of the answers moved the unit to the queue of the language that it named."""
    return unit.transitions.filter(event="named", judgment__in=answers).exists()


def has_majority(unit: Unit, answers: Sequence[Judgment]) -> bool:
    """Return whether more than half of the required answers agree, so that missing answers cannot change the label."""
    people = unit.task.redundancy if unit.task.stop_early else unit.redundancy
    return len(answers) > 1 and majority([answer.label for answer in answers], people=people) is not None


def decide_all(task: Task, units: list[Unit], answers: Mapping[int, list[str]], last: Mapping[int, int]) -> None:
    """Decide many units of a task at once. The caller has locked their rows.

    answers: mapping from a unit's primary key to the labels of its answers, oldest first.
    last: mapping from a unit's primary key to its last answer's primary key.
    """
    transitions, now = [], timezone.now()
    aggregated = cache(partial(aggregate, task))  # many units have the same answers
    for unit in units:
        labels = answers[unit.pk]
        result = resolve(unit, labels, aggregated(tuple(labels)))
        if isinstance(result, int):
            unit.redundancy = result
        else:
            event, to_stage, label = result
            transitions.append(apply_move(unit, event, to_stage, label=label, of=PLAIN))
            # A value that is the same in all rows is sent to the database only once.
            transitions[-1].judgment_id, transitions[-1].at = last[unit.pk], now
    save_all(units, transitions, ["stage", "label", "redundancy"])


def reset_redundancy(unit: Unit, *, keep: bool = True) -> None:
    """Reset a unit's redundancy after some of its answers were voided or undone.

    If annotators are asked one by one, the redundancy may have grown only because of the answers that were removed.

    keep: whether to store the change. If False, the same statement runs without effect.
    """
    if not unit.task.stop_early:
        return
    answers = unit.judgments.live().answers().count()
    needed = max(answers + 1, at_first(unit.task.redundancy, stop_early=unit.task.stop_early))
    unit.redundancy = min(needed, unit.redundancy)
    update_one(unit, "redundancy", keep=keep)


def is_decided_by_remaining(unit: Unit, answers: list[str]) -> bool:
    """Return whether a unit's remaining answers decide it after some were voided. Then no one needs to be asked.

    If annotators are asked one by one, the remaining answers may agree. An imported unit that has left its queue is
    always decided by its remaining answers, because no one else can be asked about it.

    answers: the labels of the remaining answers.
    """
    task = unit.task
    if not task.kind.answered_here:
        return unit.stage != stages.QUEUED
    has_enough = len(answers) >= at_first(task.redundancy, stop_early=task.stop_early)
    return task.stop_early and has_enough and not isinstance(resolve(unit, answers), int)


def is_settled(unit: Unit) -> bool:
    """Return whether an adjudicator has decided the unit or a manager has excluded it. Answers can't change it then."""
    decided = Q(judgment__in=unit.judgments.live().decisions().order_by())
    return unit.transitions.filter(decided | Q(event="withdrawn")).exists()


def reopen(unit: Unit, by: User | None = None) -> None:
    """Return a unit to its last queue after answers were voided, so that other annotators are asked about it.

    If the remaining answers decide the unit, it is decided immediately. Decisions by adjudicators and managers remain
    in force, because they don't depend on the answers.
    """
    live = unit.judgments.live()
    if unit.honeypot or is_settled(unit):
        return
    answers = list(live.answers().order_by("pk").select_related("lease"))
    decides = is_decided_by_remaining(unit, [answer.label for answer in answers])
    if decides:
        unit.redundancy = max(1, len(answers))
        unit.save(update_fields=["redundancy"])
    else:
        reset_redundancy(unit)
        if unit.transitions.filter(event="named").exists():
            # A second annotator was asked to confirm a language that the first had named. If the first answer was
            # voided, there is nothing to confirm.
            unit.redundancy = min(unit.redundancy, len(answers) + 1)
            unit.save(update_fields=["redundancy"])
    if unit.stage != stages.QUEUED:
        move(unit, "reopened", stages.QUEUED, by=by)
    if decides:
        _decide_or_confirm(unit, answers, _load_reach(unit), by=by)


def _exhausted_stage(unit: Unit) -> str:
    """Return the next stage of a unit about which no one else can be asked.

    A disturbing unit always goes to an adjudicator, because it must not be discarded just for being disturbing.
    """
    if unit.disturbing and not unit.known_answer:
        return stages.ADJUDICATION
    return unit.task.kind.routing.when_exhausted(unit)


def _excluded_annotators(unit: Unit) -> set[int]:
    """Return the ids of the annotators who must not be asked about a unit, regardless of their languages.

    These are the annotators who have judged the unit. For a disturbing unit, they include all who have not opted in to
    disturbing units; for any other hidden unit, all who have seen its text in another unit.
    """
    judged = unit.judgments.binding().order_by().values_list("annotator_id", flat=True)
    if not unit.disturbing:
        # Run the same statement for units that aren't hidden, so that it does not reveal the hidden ones.
        text = unit.item.text if unit.known_answer or unit.audited else ""
        begins = Func("text", 1, BEGINS, function="SUBSTR", output_field=TextField())
        same = Item.objects.alias(begins=begins).filter(begins=text[:BEGINS], text=text).order_by()
        seen = Lease.objects.filter(unit__item__in=same).exclude(unit=unit).order_by()
        return set(judged.union(seen.values_list("annotator_id", flat=True)))
    excluded = Annotator.objects.filter(Q(pk__in=judged.order_by()) | Q(takes_disturbing=False))
    return set(excluded.order_by().values_list("pk", flat=True))


def _enough_readers(unit: Unit, readers: dict[str, set[int]], excluded: set[int], answers: int) -> bool:
    """Return whether the unit's queue has at least as many eligible readers as the unit has missing answers.

    answers: the number of answers that the unit has.
    """
    return len(readers.get(unit.language, set()) - excluded) >= unit.redundancy - answers


def _next_queue(unit: Unit, reach: Reach, answers: Iterable[Judgment]) -> str | None:
    """Return the queue of the first candidate language that the unit hasn't visited and that has an eligible reader.

    Returns None if there is no such queue, or if the unit waits for a reader to confirm the language that was named.
    """
    if _is_named(unit, answers):
        return None
    for code in unit.candidates:
        queue = reach.routes.queue_in(code)
        if queue not in unit.visited and reach.readers.get(queue, set()) - reach.excluded:
            return queue
    return None


def lacking_readers(task: Task, readers: dict[str, set[int]]) -> dict[int, str]:
    """Return the queued units that have fewer eligible readers than missing answers.

    readers: ids of the annotators who read each queue.

    Returns a mapping from each unit's primary key to its queue, ordered by primary key.
    """
    judged: dict[int, set[int]] = {}
    answers: Counter[int] = Counter()
    live = Judgment.objects.binding().filter(unit__task=task, unit__stage=stages.QUEUED).order_by()
    for unit, annotator, kind, voided in live.values_list("unit_id", "annotator_id", "kind", "voided_at"):
        judged.setdefault(unit, set()).add(annotator)
        answers[unit] += kind == Judgment.ANSWER and voided is None
    for unit, annotator in shown_before(task.units.work().queued()):
        judged.setdefault(unit, set()).add(annotator)
    readers_by_queue = defaultdict(set, readers)
    opted_in = set(Annotator.objects.filter(takes_disturbing=True).order_by().values_list("pk", flat=True))
    queued = task.units.work().queued().order_by("pk").values_list("pk", "language", "redundancy", "disturbing")
    lacking = {}
    for unit, queue, redundancy, disturbing in queued:
        eligible = readers_by_queue[queue] & opted_in if disturbing else readers_by_queue[queue]
        if len(eligible) - len(eligible & judged.get(unit, set())) < redundancy - answers[unit]:
            lacking[unit] = queue
    return lacking


@transaction.atomic
def reroute(task: Task) -> dict[str, int]:
    """Move units out of queues with too few eligible readers. This does not use up a round.

    Only managers start this, because a queue may lack readers only until the next annotator is invited. Decoys are
    discarded if no one can be asked about them.

    Returns the number of units that were moved to other queues ("queues"), sent to adjudicators ("adjudication"), and
    decided based on their current answers ("decided").

    Raise WrongStage in a task of records if no unit could be decided. Records are never moved to another queue: each
    has one language, and more annotators may pass the test in it later.
    """
    routes = Routes.load(task)
    readers = routes.readers()
    counts = {"queues": 0, "adjudication": 0, "decided": 0}
    for pk in lacking_readers(task, readers):
        # no_key: see judgments.py.
        unit = task.units.select_for_update(no_key=True).get(pk=pk)
        answers = list(unit.judgments.live().answers().select_related("lease"))
        # The unit may have been judged in the meantime.
        excluded = _excluded_annotators(unit)
        if unit.stage != stages.QUEUED or _enough_readers(unit, readers, excluded, len(answers)):
            continue
        unit.task = task
        if has_majority(unit, answers):
            decide_now(unit, answers)
            counts["decided"] += 1
        elif task.kind.routing.waits:
            continue
        elif queue := _next_queue(unit, Reach(routes, readers, excluded), answers):
            move(unit, "rerouted", stages.QUEUED, language=queue, visited=[*unit.visited, queue])
            counts["queues"] += 1
        else:
            move(unit, "exhausted", _exhausted_stage(unit))
            counts["adjudication"] += unit.stage == stages.ADJUDICATION
    if task.kind.routing.waits and not counts["decided"]:
        raise WrongStage(
            "Records cannot be rerouted: they wait for annotators who read their language and pass the test. Invite "
            f"readers, exempt some from the test, or close the task without these records: `assay close {task.name} "
            "--leave-out`."
        )
    return counts
