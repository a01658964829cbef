"""Where a unit goes next: after an answer or a skip, when answers were voided, when the readers of a queue are gone.

Callers hold the unit's row lock. The moves themselves are made by moves.py.
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
    """Who can still be asked about a unit. readers: queue -> people; not_asked: those who are not asked, whatever they
    read.
    """

    routes: Routes
    readers: dict[str, set[int]]
    not_asked: set[int]


def _reach(unit: Unit, *judged: int) -> Reach:
    """judged: people who have judged the unit, or a gold answer that stood for it."""
    routes = Routes.load(unit.task)
    return Reach(routes, routes.readers(), _not_asked(unit) | set(judged))


def after_judgment(unit: Unit, judgment: Judgment, said: Sequence[Judgment], *, keep: bool = True) -> None:
    """Route a unit on after an answer, a skip or a flag: to its label, its next round, an adjudicator, or nowhere yet.

    said: all standing judgments of the unit by annotators, with their leases; this judgment is among them. keep: unless
    it was a gold answer, which stood for the unit. Then all is decided as if it had been the unit, by the same
    statements, and nothing comes of it.
    """
    if unit.stage != stages.QUEUED:
        return  # it has gone on without an answer that was taken back, and now given anew
    task, how = unit.task, {"by": judgment.annotator.user, "judgment": judgment, "keep": keep}
    answers = [each for each in said if each.kind == Judgment.ANSWER]
    skipped = [each for each in said if each.kind == Judgment.SKIP]
    is_done = len(answers) >= unit.redundancy
    # Where the answer may name another queue's language, readers of it are looked for, whatever else decides about the
    # unit: no statement tells what that is.
    if is_done and not task.overlap_share and task.kind.routing.named(judgment.label) in ("", judgment.lease.queue):
        decide(unit, answers, **how)
        return
    # Those of the unit's round count towards the task's limit, since it was last asked again.
    skipped = [each for each in skipped if each.lease.round == unit.round]
    reopened = unit.transitions.filter(event="reopened").last() if skipped else None
    skips = sum(reopened is None or each.answered_at > reopened.at for each in skipped)
    # People who may label records come and go with the test: too few of them now is no reason to give up; but those who
    # take what others found disturbing may never come.
    waits = skips < task.skip_limit and task.kind.routing.waits and not unit.disturbing
    if waits and judgment.kind == Judgment.ANSWER:
        return
    # Where a lot has two people read a unit, this is asked after the last answer too, so that no statement tells it.
    # Whoever judged the gold answer that stood for it is taken for one of those who judged it.
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
        # Nobody can give the overlap's second opinion, so the first stands alone.
        unit.redundancy = len(answers)
        decide(unit, answers, **how, reach=reach)
    elif (queue := _next_queue(unit, reach, answers)) and unit.round < task.rounds:
        visited = [*unit.visited, queue]
        move(unit, "skipped", stages.QUEUED, round=unit.round + 1, language=queue, visited=visited, **how)
    else:
        move(unit, "exhausted", _when_exhausted(unit), **how)


def decide(unit: Unit, answers: Sequence[Judgment], *, reach: Reach | None = None, **how: Any) -> None:
    """Give a unit that has all its answers the label that they come to, or ask one person more, or send it on.

    answers: with their leases. reach: needed where a lone answer may name another queue's language. how: by, judgment
    and keep, as of moves.move.
    """
    came_to = _came_to(unit, [each.label for each in answers])
    # A doubted post goes there too, though an adjudicator decides it afterwards. If audited posts alone did not come to
    # the reader of the language named, two readers who compare notes would recognise them.
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
    """Have the language that one reader named in another queue confirmed: by a second person, who reads it."""
    if reach.readers.get(queue, set()) - reach.not_asked:
        visited = list(dict.fromkeys([*unit.visited, queue]))
        number = unit.round + 1
        move(unit, "named", stages.QUEUED, round=number, language=queue, visited=visited, redundancy=2, **how)
    else:
        move(unit, "named", _when_exhausted(unit), **how)


def is_unconfirmed(unit: Unit, answers: Sequence[Judgment]) -> bool:
    """Whether the only answer to a waiting unit named the language of another queue."""
    return len(answers) == 1 and _is_named(unit, answers)


def _is_named(unit: Unit, answers: Iterable[Judgment]) -> bool:
    """Whether one of the answers sent the unit to the queue of the language that it named."""
    return unit.transitions.filter(event="named", judgment__in=answers).exists()


def is_settled_by_most(unit: Unit, answers: Sequence[Judgment]) -> bool:
    """Whether the answers that a unit still lacks cannot change its label, since more than half of the people whom it
    asks have said the same.
    """
    asked = unit.task.redundancy if unit.task.stop_early else unit.redundancy
    return len(answers) > 1 and majority([each.label for each in answers], asked=asked) is not None


def decide_without_more(unit: Unit, answers: Sequence[Judgment], **how) -> None:
    """Give a unit the label that most of those whom it asks have given, although nobody else can be asked."""
    unit.redundancy = len(answers)
    decide(unit, answers, **how)


def decide_all(units: list[Unit], judgments: Mapping[int, list[Judgment]], by=None) -> None:
    """The same for many units at once; the caller has locked their rows. judgments: unit -> its answers, in order."""
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
    """What a unit's answers come to: event, stage and label; or how many answers it needs now."""
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
        # Nobody needs the label of a unit that was hidden among the work.
        return "conflicted", stages.DISCARDED if unit.known_answer else task.on_conflict, ""
    return "answered", stages.LABELLED, label


def ask_again(unit: Unit, *, keep: bool = True) -> None:
    """Set the redundancy of a unit that has lost answers: people who were asked only because these differed are not
    needed. keep: as of after_judgment.
    """
    if not unit.task.stop_early:
        return
    answers = unit.judgments.live().answers().count()
    asked = max(answers + 1, at_first(unit.task.redundancy, stop_early=unit.task.stop_early))
    unit.redundancy = min(asked, unit.redundancy)
    update_one(unit, "redundancy", keep=keep)


def left_decides(unit: Unit, answers: list[str]) -> bool:
    """Whether the answers left to a unit after others were voided decide it, so that nobody is asked again.

    If people are asked one by one, those who agree may suffice; nobody else can be asked about imported units.
    """
    task = unit.task
    if not task.kind.answered_here:
        return unit.stage != stages.QUEUED
    enough = len(answers) >= at_first(task.redundancy, stop_early=task.stop_early)
    return task.stop_early and enough and not isinstance(_came_to(unit, answers), int)


def is_settled(unit: Unit) -> bool:
    """Whether an adjudicator has decided it, or a manager left it out, which no answer changes."""
    decided = Q(judgment__in=unit.judgments.live().decisions().order_by())
    return unit.transitions.filter(decided | Q(event="withdrawn")).exists()


def reopen(unit: Unit, by=None) -> None:
    """Ask again after answers were voided: the unit goes back to the queue it was in last, unless it is there already.

    What an adjudicator or a manager decided stands, since it does not rest on the answers. The caller has locked the
    unit.
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
            # A second person was asked about what the first had named, who may be the one whose answer is void.
            unit.redundancy = min(unit.redundancy, len(answers) + 1)
            unit.save(update_fields=["redundancy"])
    if unit.stage != stages.QUEUED:
        move(unit, "reopened", stages.QUEUED, by=by)
    if decides:
        decide(unit, answers, by=by, reach=_reach(unit))


def is_audit(unit: Unit) -> bool:
    """Whether the unit is with people because it, or a copy of it, was chosen for the audit."""
    if not hasattr(unit, "is_audit"):
        unit.is_audit = unit.transitions.filter(event="audited").exists()
    return bool(unit.agreed_label) and unit.is_audit


def _when_exhausted(unit: Unit) -> str:
    """The stage of a unit about which nobody can be asked. One is not given up because a person found it disturbing."""
    if unit.disturbing and not unit.known_answer:
        return stages.ADJUDICATION
    return unit.task.kind.routing.when_exhausted(unit)


def _not_asked(unit: Unit) -> set[int]:
    """The people who are not asked about a unit, whatever they read: those who have judged it, and those who leave to
    others what somebody found disturbing.
    """
    judged = unit.judgments.binding().order_by().values_list("annotator_id", flat=True)
    if not unit.disturbing:
        # A hidden unit is not given to people who have seen its text as another unit. The statement is the same for
        # every unit.
        text = unit.item.text if unit.known_answer or unit.audited else ""
        begins = Func("text", 1, BEGINS, function="SUBSTR", output_field=TextField())
        same = Item.objects.alias(begins=begins).filter(begins=text[:BEGINS], text=text).order_by()
        seen = Lease.objects.filter(unit__item__in=same).exclude(unit=unit).order_by()
        return set(judged.union(seen.values_list("annotator_id", flat=True)))
    others = Annotator.objects.filter(Q(pk__in=judged.order_by()) | Q(takes_disturbing=False))
    return set(others.order_by().values_list("pk", flat=True))


def _enough_readers(unit: Unit, readers: dict[str, set[int]], not_asked: set[int], answers: int) -> bool:
    """Whether the unit's queue has at least as many readers who may still judge it as answers are missing."""
    return len(readers.get(unit.language, set()) - not_asked) >= unit.redundancy - answers


def _next_queue(unit: Unit, reach: Reach, answers: Iterable[Judgment]) -> str | None:
    """The next candidate's queue that the unit has not been in and that has a reader who may still judge it; none where
    it waits to be confirmed, which only readers of the language named can do.
    """
    if _is_named(unit, answers):
        return None
    for code in unit.candidates:
        queue = reach.routes.queue_in(code)
        if queue not in unit.visited and reach.readers.get(queue, set()) - reach.not_asked:
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
    """Send on the units whose queue has too few readers left; this does not use up their round.

    Returns how many went to "queues" and to "adjudication", and how many were "decided" by the answers that they have;
    decoys that nobody can be asked about are dropped. A manager runs it, since a queue may lack readers only until the
    next person is invited. Records that are not decided are refused: they have one language, and the lack of people who
    have passed its test yet is no reason to give them up.
    """
    routes = Routes.load(task)
    readers = routes.readers()
    counts = {"queues": 0, "adjudication": 0, "decided": 0}
    for pk in lacking_readers(task, readers):
        # no_key: as in judgments.py.
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
