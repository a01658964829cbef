"""Where a unit goes next: after an answer or a skip, when answers were voided, when the readers of a queue are gone.

Callers hold the unit's row lock. The moves themselves are made by moving.py.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from django.db import transaction

from annotate.core import stages
from annotate.core.aggregation import at_first, outcome
from annotate.core.refusals import WrongStage
from annotate.models import Judgment, Task, Unit
from annotate.work.moving import move, moved, save_all
from annotate.work.routes import Routes


def after_judgment(unit: Unit, judgment: Judgment, said: Sequence[Judgment]) -> None:
    """Route a unit on after an answer or a skip: to its label, its next round, an adjudicator, or nowhere yet.

    said: all that stands of what annotators said of it, with their leases, this judgment among it.
    """
    if unit.honeypot:
        return  # the next person is asked for it too
    task, by = unit.task, judgment.annotator.user
    answers = [each.label for each in said if each.kind == Judgment.ANSWER]
    if len(answers) >= unit.redundancy:
        decide(unit, answers, by=by, judgment=judgment)
        return
    skips = _skips_of_round(unit, said)
    # People who may label records come and go with the test: too few of them now is no reason to give up.
    if skips < task.skip_limit and task.kind.waits:
        return
    routes = Routes.load(task)
    readers = routes.readers()
    if skips < task.skip_limit and _enough_readers(unit, readers, len(answers)):
        return
    if task.overlap_share and len(answers) >= task.redundancy:
        # The second opinion of the overlap is not to be had: the first stands alone.
        unit.redundancy = len(answers)
        decide(unit, answers, by=by, judgment=judgment)
    elif (queue := _next_queue(unit, routes, readers)) and unit.round < task.rounds:
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
        move(unit, "exhausted", task.kind.when_exhausted(unit), by=by, judgment=judgment)


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
            transitions.append(moved(unit, event, to_stage, by=by, judgment=answers[-1], label=label))
    save_all(units, transitions, ["stage", "label", "redundancy"])


def _came_to(unit: Unit, answers: list[str]) -> tuple[str, str, str] | int:
    """What a unit's answers come to: event, stage and label; or how many are to be asked for now."""
    task = unit.task
    label = outcome(
        answers,
        aggregate=task.kind.form.AGGREGATIONS[task.aggregation],
        order=task.labels,
        asked=task.redundancy if adaptive(task) else len(answers),
        extra=task.extra_answers,
    )
    if isinstance(label, int):
        return label
    if is_audit(unit) and (unit.recheck or label != unit.agreed_label):
        return "doubted", stages.ADJUDICATION, ""
    if label is None:
        # Of what was hidden among the work nobody needs the label.
        return "conflicted", stages.DISCARDED if unit.known_answer else task.on_conflict, ""
    return "answered", stages.LABELLED, label


def adaptive(task: Task) -> bool:
    """Whether how many people are asked of a unit depends on what the first ones say."""
    return bool(task.stop_early or task.extra_answers)


def ask_again(unit: Unit) -> None:
    """Set the redundancy of a unit that has lost answers: those who were asked since these differed are not needed."""
    if unit.honeypot or not adaptive(unit.task):
        return
    answers = unit.judgments.live().answers().count()
    asked = max(answers + 1, at_first(unit.task.redundancy, stop_early=unit.task.stop_early))
    if asked < unit.redundancy:
        unit.redundancy = asked
        unit.save(update_fields=["redundancy"])


def left_decides(unit: Unit, answers: list[str]) -> bool:
    """Whether the answers that are left to a unit when others were voided decide it, so that nobody is asked anew.

    Where people are asked one by one, those who agree may suffice; of what was imported nobody else can be asked.
    """
    task = unit.task
    if not task.kind.answered_here:
        return unit.stage != stages.QUEUED
    enough = len(answers) >= at_first(task.redundancy, stop_early=task.stop_early)
    return adaptive(task) and enough and not isinstance(_came_to(unit, answers), int)


def reopen(unit: Unit, by=None) -> None:
    """Ask anew after answers were voided: the unit goes back to the queue it was in last, if it is not there.

    What an adjudicator decided stands, since it does not rest on the answers. The caller has the unit locked.
    """
    live = unit.judgments.live()
    if unit.honeypot or live.decisions().exists():
        return
    answers = list(live.answers().order_by("pk").values_list("label", flat=True))
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


def _skips_of_round(unit: Unit, said: Iterable[Judgment]) -> int:
    """The skips that count towards the task's limit: of the round the unit is in, since it was last asked anew."""
    skips = [each for each in said if each.kind == Judgment.SKIP and each.lease.round == unit.round]
    reopened = unit.transitions.filter(event="reopened").last() if skips else None
    return sum(reopened is None or each.answered_at > reopened.at for each in skips)


def is_audit(unit: Unit) -> bool:
    """Whether the unit is with people because it, or a copy of it, was chosen for the audit."""
    if not hasattr(unit, "is_audit"):
        unit.is_audit = unit.transitions.filter(event="audited").exists()
    return bool(unit.agreed_label) and unit.is_audit


def _judged_by(unit: Unit) -> set[int]:
    return set(unit.judgments.binding().values_list("annotator_id", flat=True))


def _enough_readers(unit: Unit, readers: dict[str, set[int]], answers: int) -> bool:
    """Whether the unit's queue has readers who may still judge it, as many as answers are missing."""
    return len(readers.get(unit.language, set()) - _judged_by(unit)) >= unit.redundancy - answers


def _next_queue(unit: Unit, routes: Routes, readers: dict[str, set[int]]) -> str | None:
    """The next candidate's queue that the unit has not been in and that has a reader who has not judged it."""
    judged = _judged_by(unit)
    for code in unit.candidates:
        queue = routes.queue_in(code)
        if queue not in unit.visited and readers.get(queue, set()) - judged:
            return queue
    return None


def lacking_readers(task: Task, readers: dict[str, set[int]]) -> dict[int, str]:
    """Queued units that fewer people may still judge than answers are missing: id -> queue, in order of id."""
    judged: dict[int, set[int]] = {}
    answers: Counter[int] = Counter()
    live = Judgment.objects.binding().filter(unit__task=task, unit__stage=stages.QUEUED).order_by()
    for unit, annotator, kind, voided in live.values_list("unit_id", "annotator_id", "kind", "voided_at"):
        judged.setdefault(unit, set()).add(annotator)
        answers[unit] += kind == Judgment.ANSWER and voided is None
    queued = task.units.work().queued().order_by("pk").values_list("pk", "language", "redundancy")
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
    if task.kind.waits:
        raise WrongStage(
            "Records are not sent on: they wait for people who read their language and pass the test. Invite some, or "
            "let readers in without it."
        )
    routes = Routes.load(task)
    readers = routes.readers()
    counts = {"queues": 0, "adjudication": 0}
    for pk in lacking_readers(task, readers):
        # no_key: as in judging.py.
        unit = task.units.select_for_update(no_key=True).get(pk=pk)
        answers = unit.judgments.live().answers().count()
        # It may have been judged since.
        if unit.stage != stages.QUEUED or _enough_readers(unit, readers, answers):
            continue
        if queue := _next_queue(unit, routes, readers):
            move(unit, "rerouted", stages.QUEUED, by=by, language=queue, visited=[*unit.visited, queue])
            counts["queues"] += 1
        else:
            move(unit, "exhausted", task.kind.when_exhausted(unit), by=by)
            counts["adjudication"] += unit.stage == stages.ADJUDICATION
    return counts
