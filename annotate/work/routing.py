"""Routing: where a unit goes that its answers do not decide, after answers were voided, or if it has too few readers.

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
from annotate.work.moves import PLAIN, aggregate, came_to, decide_without_more, follow, move, moved, save_all
from annotate.work.routes import Routes
from corpora.database.statements import update_one
from corpora.models import Item


class Reach(NamedTuple):
    """The people who can still be asked about a unit.

    routes: routes of the unit's task.
    readers: ids of the readers of each queue.
    not_asked: ids of people who must not be asked, regardless of the languages that they read.
    """

    routes: Routes
    readers: dict[str, set[int]]
    not_asked: set[int]


def _reach(unit: Unit, *judged: int) -> Reach:
    """Return the people who can still be asked about a unit.

    judged: ids of people who have just judged the unit or a gold answer that replaced it.
    """
    routes = Routes.load(unit.task)
    return Reach(routes, routes.readers(), _not_asked(unit) | set(judged))


def send_on(unit: Unit, judgments: Sequence[Judgment], **how: Any) -> None:
    """Route a unit after a judgment that does not decide it, or that may name the language of a different queue.

    The unit gets its label, goes to its next round or to an adjudicator, or stays where it is.

    judgments: all judgments of the unit that are in force, with their leases, including the new one.
    how: `by`, `judgment` (the new one) and `keep`, see `moves.move`.
    """
    task, judgment = unit.task, how["judgment"]
    answers = [other for other in judgments if other.kind == Judgment.ANSWER]
    is_done = len(answers) >= unit.redundancy
    # Skips count towards the task's limit if they were made in the current round and after the last reopening.
    skipped = [other for other in judgments if other.kind == Judgment.SKIP]
    skipped = [other for other in skipped if other.lease and other.lease.round == unit.round]
    reopened = unit.transitions.filter(event="reopened").last() if skipped else None
    skips = sum(reopened is None or other.answered_at > reopened.at for other in skipped)
    # In a task of records, units wait even if there are too few readers now, because more people may pass the test
    # later. Disturbing units do not wait, because there may never be more people who accept them.
    waits = skips < task.skip_limit and task.kind.routing.waits and not unit.disturbing
    if waits and judgment.kind == Judgment.ANSWER:
        return
    # If a random draw assigns some units to two people, this query also runs after the last answer, so that it does not
    # reveal these units. A person who judged a gold answer counts as having judged the unit that it replaced.
    reach = _reach(unit, judgment.annotator_id)
    is_enough = _enough_readers(unit, reach.readers, reach.not_asked, len(answers))
    if is_done:
        _decide_or_confirm(unit, answers, reach, **how)
        return
    if not is_enough and is_settled_by_most(unit, answers):
        decide_without_more(unit, answers, **how)
        return
    if waits:
        return
    if skips < task.skip_limit and is_enough:
        if task.overlap_share:
            # The unit stays in its queue. Run the statements of a move all the same, but without effect.
            move(copy(unit), "skipped", stages.QUEUED, **how | {"keep": False})
        return
    if task.overlap_share and len(answers) >= task.redundancy:
        # Nobody can give the second answer of the overlap, so the first answer decides.
        unit.redundancy = len(answers)
        _decide_or_confirm(unit, answers, reach, **how)
    elif (queue := _next_queue(unit, reach, answers)) and unit.round < task.rounds:
        visited = [*unit.visited, queue]
        move(unit, "skipped", stages.QUEUED, round=unit.round + 1, language=queue, visited=visited, **how)
    else:
        move(unit, "exhausted", _when_exhausted(unit), **how)


def _decide_or_confirm(unit: Unit, answers: Sequence[Judgment], reach: Reach, **how: Any) -> None:
    """Decide a unit, unless its single answer names the language of a different queue: then ask that queue's readers.

    These readers are asked even about a doubted post, which an adjudicator decides later. If only audited posts did not
    reach these readers, two readers could recognize audited posts by comparing notes.

    answers: the unit's answers, with their leases.
    how: see `send_on`.
    """
    result = came_to(unit, [answer.label for answer in answers])
    if len(answers) == 1 and not isinstance(result, int) and result[0] in ("answered", "checked", "doubted"):
        language, lease = unit.task.kind.routing.named(answers[0].label), answers[0].lease
        queue = reach.routes.queue_in(language) if language else ""
        if queue not in ("", lease and lease.queue):
            _send_to_named(unit, queue, reach, **how)
            return
    follow(unit, result, **how)


def _send_to_named(unit: Unit, queue: str, reach: Reach, **how: Any) -> None:
    """Ask a second person, who reads the language named by the first reader, to confirm this language."""
    if reach.readers.get(queue, set()) - reach.not_asked:
        visited = list(dict.fromkeys([*unit.visited, queue]))
        number = unit.round + 1
        move(unit, "named", stages.QUEUED, round=number, language=queue, visited=visited, redundancy=2, **how)
    else:
        move(unit, "named", _when_exhausted(unit), **how)


def is_unconfirmed(unit: Unit, answers: Sequence[Judgment]) -> bool:
    """Return whether a unit's only answer named the language of a different queue and nobody has confirmed it."""
    return len(answers) == 1 and _is_named(unit, answers)


def _is_named(unit: Unit, answers: Iterable[Judgment]) -> bool:
    """Return whether one of the answers sent the unit to the queue of the language that the answer named."""
    return unit.transitions.filter(event="named", judgment__in=answers).exists()


def is_settled_by_most(unit: Unit, answers: Sequence[Judgment]) -> bool:
    """Return whether a unit's label no longer depends on the missing answers.

    This is the case if more than half of the people who should be asked have given the same answer.
    """
    people = unit.task.redundancy if unit.task.stop_early else unit.redundancy
    return len(answers) > 1 and majority([answer.label for answer in answers], people=people) is not None


def decide_all(task: Task, units: list[Unit], answers: Mapping[int, list[str]], last: Mapping[int, int]) -> None:
    """Decide many units of a task at once. The caller has locked their rows.

    answers: the labels of the answers to each unit, in order, by the unit's primary key.
    last: the primary key of the last answer to each unit.
    """
    transitions, now = [], timezone.now()
    aggregated = cache(partial(aggregate, task))  # many units have the same answers
    for unit in units:
        labels = answers[unit.pk]
        result = came_to(unit, labels, aggregated(tuple(labels)))
        if isinstance(result, int):
            unit.redundancy = result
        else:
            event, to_stage, label = result
            transitions.append(moved(unit, event, to_stage, label=label, of=PLAIN))
            # A time that is the same in all rows is sent to the database once.
            transitions[-1].judgment_id, transitions[-1].at = last[unit.pk], now
    save_all(units, transitions, ["stage", "label", "redundancy"])


def ask_again(unit: Unit, *, keep: bool = True) -> None:
    """Reset the number of answers that a unit needs after it has lost answers.

    If people are asked one by one, some may have been asked only because the lost answers differed from the others. The
    answers of these people are no longer needed.

    keep: whether to store the change. If not, the same statement runs without effect.
    """
    if not unit.task.stop_early:
        return
    answers = unit.judgments.live().answers().count()
    needed = max(answers + 1, at_first(unit.task.redundancy, stop_early=unit.task.stop_early))
    unit.redundancy = min(needed, unit.redundancy)
    update_one(unit, "redundancy", keep=keep)


def left_decides(unit: Unit, answers: list[str]) -> bool:
    """Return whether the answers that remain after voiding decide a unit, so that nobody needs to be asked again.

    This is possible if people are asked one by one, because the remaining answers may agree. An imported unit that has
    left its queue is always decided by its remaining answers, because nobody else can be asked about it.
    """
    task = unit.task
    if not task.kind.answered_here:
        return unit.stage != stages.QUEUED
    is_enough = len(answers) >= at_first(task.redundancy, stop_early=task.stop_early)
    return task.stop_early and is_enough and not isinstance(came_to(unit, answers), int)


def is_settled(unit: Unit) -> bool:
    """Return whether an adjudicator decided the unit or a manager excluded it, so that answers cannot change it."""
    decided = Q(judgment__in=unit.judgments.live().decisions().order_by())
    return unit.transitions.filter(decided | Q(event="withdrawn")).exists()


def reopen(unit: Unit, by: User | None = None) -> None:
    """Return a unit to its last queue after answers were voided, so that people are asked about it again.

    If the remaining answers decide the unit, it is decided immediately. Decisions by adjudicators and managers remain
    in force, because they do not depend on the answers. The caller has locked the unit.
    """
    live = unit.judgments.live()
    if unit.honeypot or is_settled(unit):
        return
    answers = list(live.answers().order_by("pk").select_related("lease"))
    decides = left_decides(unit, [answer.label for answer in answers])
    if decides:
        unit.redundancy = max(1, len(answers))
        unit.save(update_fields=["redundancy"])
    else:
        ask_again(unit)
        if unit.transitions.filter(event="named").exists():
            # One annotator named a language, and a second person was asked to confirm it. If the annotator's answer was
            # voided, there is nothing to confirm.
            unit.redundancy = min(unit.redundancy, len(answers) + 1)
            unit.save(update_fields=["redundancy"])
    if unit.stage != stages.QUEUED:
        move(unit, "reopened", stages.QUEUED, by=by)
    if decides:
        _decide_or_confirm(unit, answers, _reach(unit), by=by)


def _when_exhausted(unit: Unit) -> str:
    """Return the stage to which a unit moves if nobody else can be asked about it.

    A disturbing unit goes to an adjudicator, because it must not be discarded only for being disturbing.
    """
    if unit.disturbing and not unit.known_answer:
        return stages.ADJUDICATION
    return unit.task.kind.routing.when_exhausted(unit)


def _not_asked(unit: Unit) -> set[int]:
    """Return the ids of the people who must not be asked about a unit, regardless of the languages that they read.

    These are people who have judged the unit. For a disturbing unit, they also include people who do not accept
    disturbing units. For other hidden units, they also include people who have seen the text in another unit.
    """
    judged = unit.judgments.binding().order_by().values_list("annotator_id", flat=True)
    if not unit.disturbing:
        # The same statement runs for units that are not hidden, so that it does not reveal the hidden ones.
        text = unit.item.text if unit.known_answer or unit.audited else ""
        begins = Func("text", 1, BEGINS, function="SUBSTR", output_field=TextField())
        same = Item.objects.alias(begins=begins).filter(begins=text[:BEGINS], text=text).order_by()
        seen = Lease.objects.filter(unit__item__in=same).exclude(unit=unit).order_by()
        return set(judged.union(seen.values_list("annotator_id", flat=True)))
    unwilling = Annotator.objects.filter(Q(pk__in=judged.order_by()) | Q(takes_disturbing=False))
    return set(unwilling.order_by().values_list("pk", flat=True))


def _enough_readers(unit: Unit, readers: dict[str, set[int]], not_asked: set[int], answers: int) -> bool:
    """Return whether the unit's queue has enough readers who may still judge it for the missing answers."""
    return len(readers.get(unit.language, set()) - not_asked) >= unit.redundancy - answers


def _next_queue(unit: Unit, reach: Reach, answers: Iterable[Judgment]) -> str | None:
    """Return the queue to try next, which is that of the first suitable candidate, or None if there is none.

    A queue is suitable if the unit has not visited it and one of its readers may still judge the unit. A unit that
    waits for confirmation of a language has no next queue, because only readers of that language can confirm it.
    """
    if _is_named(unit, answers):
        return None
    for code in unit.candidates:
        queue = reach.routes.queue_in(code)
        if queue not in unit.visited and reach.readers.get(queue, set()) - reach.not_asked:
            return queue
    return None


def lacking_readers(task: Task, readers: dict[str, set[int]]) -> dict[int, str]:
    """Return the queued units that have fewer possible readers than missing answers, in the order of ids.

    The result is a mapping from the primary key of the unit to its queue.

    readers: ids of the readers of each queue.
    """
    judged: dict[int, set[int]] = {}
    answers: Counter[int] = Counter()
    live = Judgment.objects.binding().filter(unit__task=task, unit__stage=stages.QUEUED).order_by()
    for unit, annotator, kind, voided in live.values_list("unit_id", "annotator_id", "kind", "voided_at"):
        judged.setdefault(unit, set()).add(annotator)
        answers[unit] += kind == Judgment.ANSWER and voided is None
    for unit, annotator in shown_before(task.units.work().queued()):
        judged.setdefault(unit, set()).add(annotator)
    able = defaultdict(set, readers)
    takers = set(Annotator.objects.filter(takes_disturbing=True).order_by().values_list("pk", flat=True))
    queued = task.units.work().queued().order_by("pk").values_list("pk", "language", "redundancy", "disturbing")
    lacking = {}
    for unit, queue, redundancy, disturbing in queued:
        may = able[queue] & takers if disturbing else able[queue]
        if len(may) - len(may & judged.get(unit, set())) < redundancy - answers[unit]:
            lacking[unit] = queue
    return lacking


@transaction.atomic
def reroute(task: Task) -> dict[str, int]:
    """Move units from queues with too few readers left. This does not use up a round.

    Only managers start this, because a queue may lack readers only until the next person is invited. Decoys are
    discarded if nobody can be asked about them.

    Returns the number of units that were moved to other queues ("queues"), that were sent to adjudicators
    ("adjudication"), and that were decided based on the answers that they have ("decided").

    Raise WrongStage in a task of records if no unit could be decided. Records are not sent on, because each has one
    language, and more people may pass the test in this language later.
    """
    routes = Routes.load(task)
    readers = routes.readers()
    counts = {"queues": 0, "adjudication": 0, "decided": 0}
    for pk in lacking_readers(task, readers):
        # no_key: see judgments.py.
        unit = task.units.select_for_update(no_key=True).get(pk=pk)
        answers = list(unit.judgments.live().answers().select_related("lease"))
        # The unit may have been judged in the meantime.
        not_asked = _not_asked(unit)
        if unit.stage != stages.QUEUED or _enough_readers(unit, readers, not_asked, len(answers)):
            continue
        unit.task = task
        if is_settled_by_most(unit, answers):
            decide_without_more(unit, answers)
            counts["decided"] += 1
        elif task.kind.routing.waits:
            continue
        elif queue := _next_queue(unit, Reach(routes, readers, not_asked), answers):
            move(unit, "rerouted", stages.QUEUED, language=queue, visited=[*unit.visited, queue])
            counts["queues"] += 1
        else:
            move(unit, "exhausted", _when_exhausted(unit))
            counts["adjudication"] += unit.stage == stages.ADJUDICATION
    if task.kind.routing.waits and not counts["decided"]:
        raise WrongStage(
            "Records cannot be rerouted: they wait for people who read their language and pass the test. Invite "
            f"readers, exempt some from the test, or close the task without these records: `assay close {task.name} "
            "--leave-out`."
        )
    return counts
