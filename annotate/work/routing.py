"""Routing: where a unit goes after a judgment, after answers were voided, or when its queue has too few readers.

Callers hold the unit's row lock. moves.py makes the moves.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Func, Q, TextField

from annotate.core import stages
from annotate.core.aggregation.answer_table import at_first, majority, outcome
from annotate.core.refusals import WrongStage
from annotate.models import Annotator, Judgment, Lease, Task, Unit
from annotate.work.eligible import BEGINS, Seen
from annotate.work.moves import move, moved, save_all
from annotate.work.routes import Routes
from corpora.database.bulk_rows import listed
from corpora.database.statements import update_one
from corpora.models import Item


class Reach(NamedTuple):
    """People who can still be asked about a unit.

    routes: routes of the unit's task.
    readers: queue -> ids of its readers.
    not_asked: ids of people who are not asked, whatever they read.
    """

    routes: Routes
    readers: dict[str, set[int]]
    not_asked: set[int]


def _reach(unit: Unit, *judged: int) -> Reach:
    """Return the people who can still be asked.

    judged: ids of people who have judged the unit, or a gold answer that replaced it.
    """
    routes = Routes.load(unit.task)
    return Reach(routes, routes.readers(), _not_asked(unit) | set(judged))


def after_judgment(unit: Unit, judgment: Judgment, said: Sequence[Judgment], *, keep: bool = True) -> None:
    """Route a unit after an answer, a skip or a flag: to its label, its next round, an adjudicator, or nowhere yet.

    unit: the unit.
    judgment: the new judgment.
    said: all annotators' judgments of the unit in force, with their leases, including this one.
    keep: False for a gold answer that replaced the unit. Then everything is decided as if the unit had been answered,
        by the same statements, without effect.
    """
    if unit.stage != stages.QUEUED:
        return  # it moved on without an answer that was taken back and is now given again
    task, how = unit.task, {"by": judgment.annotator.user, "judgment": judgment, "keep": keep}
    answers = [each for each in said if each.kind == Judgment.ANSWER]
    skipped = [each for each in said if each.kind == Judgment.SKIP]
    is_done = len(answers) >= unit.redundancy
    # If the answer may name another queue's language, its readers are looked up whatever else decides about the unit,
    # so that the statements do not reveal what it is.
    if is_done and not task.overlap_share and task.kind.routing.named(judgment.label) in ("", judgment.lease.queue):
        decide(unit, answers, **how)
        return
    # Skips count towards the task's limit if they were made in the current round, and since the unit was last reopened.
    skipped = [each for each in skipped if each.lease.round == unit.round]
    reopened = unit.transitions.filter(event="reopened").last() if skipped else None
    skips = sum(reopened is None or each.answered_at > reopened.at for each in skipped)
    # Readers of records come and go with the test, so too few of them now is no reason to give a unit up. People who
    # accept disturbing units may never come.
    waits = skips < task.skip_limit and task.kind.routing.waits and not unit.disturbing
    if waits and judgment.kind == Judgment.ANSWER:
        return
    # If a random draw has some units read by two people, this query also runs after the last answer, so that it does
    # not reveal them. A person who judged the gold answer counts as having judged the unit.
    reach = _reach(unit, judgment.annotator_id)
    is_enough = _enough_readers(unit, reach.readers, reach.not_asked, len(answers))
    if is_done:
        decide(unit, answers, **how, reach=reach)
        return
    if not is_enough and is_settled_by_most(unit, answers):
        decide_without_more(unit, answers, **how)
        return
    if waits:
        return
    if skips < task.skip_limit and is_enough:
        if task.overlap_share:
            # It stays in its queue, by the statements of a move.
            move(copy(unit), "skipped", stages.QUEUED, **how | {"keep": False})
        return
    if task.overlap_share and len(answers) >= task.redundancy:
        # Nobody can give the second answer of the overlap, so the first one decides.
        unit.redundancy = len(answers)
        decide(unit, answers, **how, reach=reach)
    elif (queue := _next_queue(unit, reach, answers)) and unit.round < task.rounds:
        visited = [*unit.visited, queue]
        move(unit, "skipped", stages.QUEUED, round=unit.round + 1, language=queue, visited=visited, **how)
    else:
        move(unit, "exhausted", _when_exhausted(unit), **how)


def decide(unit: Unit, answers: Sequence[Judgment], *, reach: Reach | None = None, **how: Any) -> None:
    """Label a unit that has all its answers, ask one more person, or send it on.

    answers: its answers, with their leases.
    reach: required if a single answer may name another queue's language.
    how: `by`, `judgment` and `keep`, see `moves.move`.
    """
    came_to = _came_to(unit, [each.label for each in answers])
    # A doubted post goes there too, although an adjudicator decides it later. If only audited posts did not reach the
    # readers of the language named, two readers who compare notes could recognize them.
    event = "" if isinstance(came_to, int) else came_to[0]
    if reach and len(answers) == 1 and event in ("answered", "checked", "doubted"):
        language = unit.task.kind.routing.named(answers[0].label)
        queue = reach.routes.queue_in(language) if language else ""
        if queue not in ("", answers[0].lease.queue):
            _send_to_named(unit, queue, reach, **how)
            return
    if isinstance(came_to, int):
        unit.redundancy = came_to
        update_one(unit, "redundancy", keep=how.get("keep", True))
    else:
        event, to_stage, label = came_to
        move(unit, event, to_stage, **how, label=label)


def _send_to_named(unit: Unit, queue: str, reach: Reach, **how) -> None:
    """Have a language that one reader named confirmed by a second person who reads it."""
    if reach.readers.get(queue, set()) - reach.not_asked:
        visited = list(dict.fromkeys([*unit.visited, queue]))
        number = unit.round + 1
        move(unit, "named", stages.QUEUED, round=number, language=queue, visited=visited, redundancy=2, **how)
    else:
        move(unit, "named", _when_exhausted(unit), **how)


def is_unconfirmed(unit: Unit, answers: Sequence[Judgment]) -> bool:
    """Return whether the only answer to a waiting unit named another queue's language."""
    return len(answers) == 1 and _is_named(unit, answers)


def _is_named(unit: Unit, answers: Iterable[Judgment]) -> bool:
    """Return whether one of the answers sent the unit to the queue of the language it named."""
    return unit.transitions.filter(event="named", judgment__in=answers).exists()


def is_settled_by_most(unit: Unit, answers: Sequence[Judgment]) -> bool:
    """Return whether missing answers cannot change a unit's label.

    That is so if more than half of the people to be asked gave the same answer.
    """
    asked = unit.task.redundancy if unit.task.stop_early else unit.redundancy
    return len(answers) > 1 and majority([each.label for each in answers], asked=asked) is not None


def decide_without_more(unit: Unit, answers: Sequence[Judgment], **how) -> None:
    """Give a unit the label of its majority, although nobody else can be asked."""
    unit.redundancy = len(answers)
    decide(unit, answers, **how)


def decide_all(units: list[Unit], judgments: Mapping[int, list[Judgment]], by=None) -> None:
    """Decide many units at once. The caller has locked their rows.

    judgments: unit -> its answers, in order.
    """
    transitions = []
    for unit in units:
        answers = judgments[unit.pk]
        came_to = _came_to(unit, [judgment.label for judgment in answers])
        if isinstance(came_to, int):
            unit.redundancy = came_to
        else:
            event, to_stage, label = came_to
            transitions.append(moved(unit, event, to_stage, by=by, judgment=answers[-1], label=label))
    save_all(units, transitions, ["stage", "label", "redundancy"])


def _came_to(unit: Unit, answers: list[str]) -> tuple[str, str, str] | int:
    """Return the result of a unit's answers as event, stage and label, or the number of answers it needs now."""
    task = unit.task
    label = outcome(
        answers,
        aggregate=task.kind.form.aggregations[task.aggregation],
        order=task.labels,
        asked=task.redundancy if task.stop_early else len(answers),
    )
    if isinstance(label, int):
        return label
    for control in task.controls:
        if decided := control.decided(unit, answers, label):
            return decided
    if label is None:
        # A unit that was hidden among the work needs no label.
        return "conflicted", stages.DISCARDED if unit.known_answer else task.on_conflict, ""
    return "answered", stages.LABELLED, label


def ask_again(unit: Unit, *, keep: bool = True) -> None:
    """Set the redundancy of a unit that has lost answers.

    People who were asked only because these answers differed are no longer needed.

    keep: see `after_judgment`.
    """
    if not unit.task.stop_early:
        return
    answers = unit.judgments.live().answers().count()
    asked = max(answers + 1, at_first(unit.task.redundancy, stop_early=unit.task.stop_early))
    unit.redundancy = min(asked, unit.redundancy)
    update_one(unit, "redundancy", keep=keep)


def left_decides(unit: Unit, answers: list[str]) -> bool:
    """Return whether a unit's remaining answers decide it after others were voided, so that nobody is asked again.

    If people are asked one by one, those who agree may suffice. Nobody else can be asked about imported units.
    """
    task = unit.task
    if not task.kind.answered_here:
        return unit.stage != stages.QUEUED
    enough = len(answers) >= at_first(task.redundancy, stop_early=task.stop_early)
    return task.stop_early and enough and not isinstance(_came_to(unit, answers), int)


def is_settled(unit: Unit) -> bool:
    """Return whether an adjudicator decided the unit or a manager excluded it, which no answer changes."""
    decided = Q(judgment__in=unit.judgments.live().decisions().order_by())
    return unit.transitions.filter(decided | Q(event="withdrawn")).exists()


def reopen(unit: Unit, by=None) -> None:
    """Ask again after answers were voided: return the unit to its last queue, unless it is there already.

    Decisions of adjudicators and managers remain in force, since they do not depend on the answers. The caller has
    locked the unit.
    """
    live = unit.judgments.live()
    if unit.honeypot or is_settled(unit):
        return
    answers = list(live.answers().order_by("pk").select_related("lease"))
    decides = left_decides(unit, [each.label for each in answers])
    if decides:
        unit.redundancy = max(1, len(answers))
        unit.save(update_fields=["redundancy"])
    else:
        ask_again(unit)
        if unit.transitions.filter(event="named").exists():
            # The annotator who named the language, which a second person was asked to confirm, may be the one whose
            # answer is void.
            unit.redundancy = min(unit.redundancy, len(answers) + 1)
            unit.save(update_fields=["redundancy"])
    if unit.stage != stages.QUEUED:
        move(unit, "reopened", stages.QUEUED, by=by)
    if decides:
        decide(unit, answers, by=by, reach=_reach(unit))


def is_audit(unit: Unit) -> bool:
    """Return whether the unit is with people because it, or a copy of it, was chosen for the audit."""
    if not hasattr(unit, "is_audit"):
        unit.is_audit = unit.transitions.filter(event="audited").exists()
    return bool(unit.agreed_label) and unit.is_audit


def _when_exhausted(unit: Unit) -> str:
    """Return the stage of a unit about which nobody can be asked. A unit is not given up because it is disturbing."""
    if unit.disturbing and not unit.known_answer:
        return stages.ADJUDICATION
    return unit.task.kind.routing.when_exhausted(unit)


def _not_asked(unit: Unit) -> set[int]:
    """Return people who are not asked about a unit, whatever they read.

    They have judged it, have seen the text of a hidden unit elsewhere, or do not accept a disturbing unit.
    """
    judged = unit.judgments.binding().order_by().values_list("annotator_id", flat=True)
    if not unit.disturbing:
        # A hidden unit is not given to people who saw its text as another unit. The statement is the same for every
        # unit.
        text = unit.item.text if unit.known_answer or unit.audited else ""
        begins = Func("text", 1, BEGINS, function="SUBSTR", output_field=TextField())
        same = Item.objects.alias(begins=begins).filter(begins=text[:BEGINS], text=text).order_by()
        seen = Lease.objects.filter(unit__item__in=same).exclude(unit=unit).order_by()
        return set(judged.union(seen.values_list("annotator_id", flat=True)))
    others = Annotator.objects.filter(Q(pk__in=judged.order_by()) | Q(takes_disturbing=False))
    return set(others.order_by().values_list("pk", flat=True))


def _enough_readers(unit: Unit, readers: dict[str, set[int]], not_asked: set[int], answers: int) -> bool:
    """Return whether the unit's queue has enough readers who may still judge it for the missing answers."""
    return len(readers.get(unit.language, set()) - not_asked) >= unit.redundancy - answers


def _next_queue(unit: Unit, reach: Reach, answers: Iterable[Judgment]) -> str | None:
    """Return the first candidate's queue that the unit has not visited and that has a reader who may still judge it.

    Returns None for a unit that awaits confirmation, which only readers of the language named can give.
    """
    if _is_named(unit, answers):
        return None
    for code in unit.candidates:
        queue = reach.routes.queue_in(code)
        if queue not in unit.visited and reach.readers.get(queue, set()) - reach.not_asked:
            return queue
    return None


def lacking_readers(task: Task, readers: dict[str, set[int]]) -> dict[int, str]:
    """Return queued units with fewer possible readers than missing answers, as id -> queue, in order of id."""
    judged: dict[int, set[int]] = {}
    answers: Counter[int] = Counter()
    live = Judgment.objects.binding().filter(unit__task=task, unit__stage=stages.QUEUED).order_by()
    for unit, annotator, kind, voided in live.values_list("unit_id", "annotator_id", "kind", "voided_at"):
        judged.setdefault(unit, set()).add(annotator)
        answers[unit] += kind == Judgment.ANSWER and voided is None
    hidden = task.units.work().queued().exclude(known_answer="", audited=False).order_by()
    keys = list(hidden.values_list("pk", flat=True))
    for annotator in set().union(*readers.values()) if keys else ():
        seen = Unit.objects.filter(Seen("pk", annotator), pk__in=listed(keys))
        for unit in seen.order_by().values_list("pk", flat=True):
            judged.setdefault(unit, set()).add(annotator)
    able = defaultdict(set, readers)
    takers = set(Annotator.objects.filter(takes_disturbing=True).order_by().values_list("pk", flat=True))
    queued = task.units.work().queued().order_by("pk").values_list("pk", "language", "redundancy", "disturbing")
    return {
        unit: queue
        for unit, queue, redundancy, disturbing in queued
        if len((able[queue] & takers if disturbing else able[queue]) - judged.get(unit, set()))
        < redundancy - answers[unit]
    }


@transaction.atomic
def reroute(task: Task) -> dict[str, int]:
    """Send on the units whose queues have too few readers left. This does not use up a round.

    A manager starts this, since a queue may lack readers only until the next person is invited. Decoys that nobody can
    be asked about are dropped.

    Returns the number of units sent to "queues" and to "adjudication", and of those "decided" by their answers.

    Raises WrongStage for records that are not decided: each has one language, and a lack of people who have passed its
    test yet is no reason to give it up.
    """
    routes = Routes.load(task)
    readers = routes.readers()
    counts = {"queues": 0, "adjudication": 0, "decided": 0}
    for pk in lacking_readers(task, readers):
        # no_key: see judgments.py.
        unit = task.units.select_for_update(no_key=True).get(pk=pk)
        answers = list(unit.judgments.live().answers().select_related("lease"))
        # It may have been judged since.
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
            "Records are not sent on: they wait for people who read their language and pass the test. Invite readers, "
            f"let some in without the test, or end the task without these: `assay close {task.name} --leave-out`."
        )
    return counts
