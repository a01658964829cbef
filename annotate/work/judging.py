"""An annotator's answers: judge, skip, and take back."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from annotate.core import stages
from annotate.core.refusals import (
    AlreadyAnswered,
    InvalidAnswer,
    LeaseExpired,
    NotAllowed,
    NotFound,
    NothingToUndo,
    Refusal,
    TooLateToUndo,
    WrongStage,
)
from annotate.kinds import Answer, Kind
from annotate.kinds.labels import label_name
from annotate.models import Annotator, Judgment, Lease, Task, Transition, Unit
from annotate.quality import sides
from annotate.work.choosing import keep_concepts
from annotate.work.contesting import check_limit
from annotate.work.drawing_on import draw_on
from annotate.work.moving import move
from annotate.work.pausing import pause_if_failing
from annotate.work.permit import Permit, acting
from annotate.work.queue import close_others, free_place, lease_locked
from annotate.work.routing import after_judgment, ask_again
from annotate.work.tally import Tally, tally_of

COMMENT = 2000  # characters
LONGEST = 10_000  # characters of an answer, which may be the ids of many labels


def judge(annotator: Annotator, lease_id: int, answer: Answer, active_seconds: float | None = None) -> Judgment:
    """Answer the unit of a lease. A retry with the same answer changes nothing and returns the first judgment.

    active_seconds: time at work as the client measured it; cut to the time since the unit was shown.
    """
    with acting(annotator, task_of(annotator, lease_id).name) as permit:
        return close(permit, lease_id, answer, active_seconds).judgment


def skip(annotator: Annotator, lease_id: int, active_seconds: float | None = None) -> Judgment:
    """Skip the unit of a lease; this annotator will not see it again."""
    with acting(annotator, task_of(annotator, lease_id).name) as permit:
        return close(permit, lease_id, None, active_seconds).judgment


def task_of(annotator: Annotator, lease_id: int) -> Task:
    """The task of a lease. NotFound if the annotator was given no such unit."""
    task = Task.objects.filter(units__leases__in=Lease.objects.filter(pk=lease_id, annotator=annotator)).first()
    if task is None:
        raise NotFound("You have not been given such a unit.")
    return task


def judge_sheet(
    annotator: Annotator, task: Task, answers: dict[int, Answer | None], active_seconds: float | None = None
) -> list[Refusal]:
    """Answer each unit of a sheet by its lease, or skip it if its answer is None. Returns the refusals; the rest is
    saved.

    Each is a separate judgment, so one post that came too late does not cost the others. active_seconds is that of the
    whole sheet.
    """
    each = None if active_seconds is None else active_seconds / len(answers)
    refused = []
    for lease_id, answer in answers.items():
        try:
            with acting(annotator, task.name) as permit:
                close(permit, lease_id, answer, each)
        except Refusal as refusal:
            refused.append(refusal)
    return refused


@dataclass(frozen=True)
class Closed:
    """What came of an answer or a skip.

    is_new: the answer was not a retry. lease: the one that it was sent for; held: the annotator's other open leases in
    the task. tally: what they have done in it so far, if it has gold answers. paused: whether they are paused now.
    """

    judgment: Judgment
    is_new: bool
    lease: Lease
    held: list[Lease]
    tally: Tally | None
    paused: bool


def close(permit: Permit, lease_id: int, answer: Answer | None, active_seconds: float | None = None) -> Closed:
    """Answer the unit of a lease, or skip it if answer is None, in the transaction in which the annotator acts."""
    annotator, task = permit.annotator, permit.task
    # Everything that changes a unit or its leases happens under this lock. no_key: otherwise an extension that adds
    # copies of the unit would wait for it, and check_limit for the extension.
    given = Lease.objects.filter(pk=lease_id, annotator=annotator, unit__task=task).select_related("unit")
    audited = Transition.objects.filter(unit=OuterRef("unit"), event="audited")
    given = given.annotate(is_audit=Exists(audited)).select_for_update(of=("unit",), no_key=True).first()
    if given is None:
        raise NotFound("You have not been given such a unit.")
    unit = given.unit
    unit.task, unit.is_audit = task, given.is_audit
    # Read in a separate statement after the lock: the transaction that held it may have changed them.
    open_by_me = Q(annotator=annotator, closed_at=None, unit__task=task)
    leases = list(Lease.objects.filter(Q(unit=unit) | open_by_me).select_related("judgment", "unit__item"))
    held = [each for each in leases if each.unit_id != unit.pk]
    leases = [each for each in leases if each.unit_id == unit.pk]
    lease = next(each for each in leases if each.pk == lease_id)
    unit.item = lease.unit.item
    answer = answer and sides.stored(answer, unit, annotator)
    if first := _judgment_of(lease):
        return Closed(_retried(first, answer, unit), False, lease, held, None, permit.is_paused)
    permit.check_not_stopped()
    own = [each for each in leases if each.annotator_id == annotator.pk]
    # The lease may have run out and been given to the same person again, in another tab.
    lease = next((each for each in own if each.closed_at is None), lease)
    binding = (_judgment_of(each) for each in own)
    if before := next((each for each in binding if each and (each.voided_at is None or each.voided_by_id)), None):
        return Closed(_retried(before, answer, unit), False, lease, held, None, permit.is_paused)
    if unit.stage != stages.QUEUED:
        raise WrongStage("This one has gone on without your answer, so it was not counted. Please take the next.")
    if answer:
        check(task.kind, answer, unit)
        if lease.place is None:
            lease.place = free_place(unit, leases)
            if lease.place is None:
                raise LeaseExpired(
                    "You had this one open for too long, and somebody else has it now. Please take the next."
                )
    else:
        lease.place = None
    now = timezone.now()
    if active_seconds is not None:
        # In this order a NaN becomes 0.
        active_seconds = round(min(max(0.0, active_seconds), (now - lease.opened_at).total_seconds()), 3)
    lease.closed_at, lease.outcome = now, "answered" if answer else "skipped"
    lease.save(update_fields=["place", "closed_at", "outcome"])
    judgment = Judgment.objects.create(
        unit=unit,
        annotator=annotator,
        lease=lease,
        kind=Judgment.ANSWER if answer else Judgment.SKIP,
        label=answer.label if answer else "",
        reason=answer.reason if answer else "",
        comment=answer.comment.strip() if answer else "",
        shown_at=lease.opened_at,
        answered_at=now,
        active_seconds=active_seconds,
    )
    if answer:
        keep_concepts(judgment, answer)
    after_judgment(unit, judgment, [*_standing(leases, judgment), judgment])
    check_limit(unit)
    draw_on(unit)
    if not task.gold_share:
        return Closed(judgment, True, lease, held, None, permit.is_paused)
    tally = tally_of(permit)
    # This is done after every answer, to a gold answer or to work, so that nothing tells them apart.
    return Closed(judgment, True, lease, held, tally, pause_if_failing(permit, tally))


def _judgment_of(lease: Lease) -> Judgment | None:
    return getattr(lease, "judgment", None)


def _standing(leases: Iterable[Lease], last: Judgment) -> list[Judgment]:
    """The annotators' standing judgments of a unit in the order in which they were given, without the last."""
    said = [each for lease in leases if (each := _judgment_of(lease)) and each.voided_at is None and each != last]
    return sorted(said, key=lambda each: each.pk)


def _retried(first: Judgment, answer: Answer | None, unit: Unit) -> Judgment:
    """What a second submission for one lease gets: the first judgment, or a refusal that names it."""
    [label] = sides.seen(first.annotator, [(unit, first.label)])
    said = f"answered {unit.task.kind.name(label)}" if label else "skipped"
    if first.voided_by_id:
        raise AlreadyAnswered("Your answers in this task were set aside by the manager, who can tell you why.")
    if first.voided_at:
        raise AlreadyAnswered(f"You {said} here and took that back since. Please answer what is open now.")
    if answer is None and first.kind == Judgment.SKIP:
        return first
    if answer and (first.label, first.reason, first.comment) == (answer.label, answer.reason, answer.comment.strip()):
        return first
    raise AlreadyAnswered(f"You have already {said} here, and that stands. To answer otherwise, go on and press Undo.")


def last_judgment(annotator: Annotator, task: Task) -> Judgment | None:
    """The one that Undo takes back."""
    own = Judgment.objects.live().filter(annotator=annotator, unit__task=task, lease__isnull=False)
    return own.select_related("unit__item").order_by("-answered_at", "-pk").first()


def undo(annotator: Annotator, task: Task, judgment_id: int | None = None) -> Lease:
    """Take back an answer or a skip, the last one if none is named, and open its unit again.

    This is possible until somebody else has been given the unit or has judged it, and only while the annotator may
    still be given it. The unit that they had open goes back to its queue.
    """
    with acting(annotator, task.name) as permit:
        return take_back(permit, judgment_id)


def take_back(permit: Permit, judgment_id: int | None = None) -> Lease:
    """The same in the transaction in which the annotator acts."""
    annotator, task = permit.annotator, permit.task
    # What is taken back is read again, and no more than it was.
    permit = permit.now(permit.is_paused, read=-1)
    permit.check_not_stopped()
    if not task.is_open:
        raise WrongStage("This task is closed, so your answer stands.")
    if judgment_id is None:
        judgment = last_judgment(annotator, task)
    else:
        own = Judgment.objects.live().filter(annotator=annotator, unit__task=task, lease__isnull=False)
        judgment = own.filter(pk=judgment_id).first()
    if judgment is None:
        raise NothingToUndo("There is no answer of yours to take back.")
    unit = Unit.objects.select_for_update(of=("self",)).select_related("item").get(pk=judgment.unit_id)
    unit.task = task
    judgment = Judgment.objects.select_related("lease").get(pk=judgment.pk)
    if judgment.voided_at:
        raise NothingToUndo("That answer has already been taken back.")
    if judgment.lease.queue not in permit.queues:
        raise NotAllowed(f"You may not work in {label_name(judgment.lease.queue)} any more, so your answer stands.")
    others_leases = unit.leases.exclude(annotator=annotator).filter(opened_at__gte=judgment.answered_at)
    others_judgments = unit.judgments.exclude(annotator=annotator).filter(answered_at__gte=judgment.answered_at)
    if others_leases.exists() or others_judgments.exists():
        raise TooLateToUndo("Somebody else has this one by now, so your answer stands.")
    now = timezone.now()
    judgment.voided_at = now
    judgment.save(update_fields=["voided_at"])
    lease = judgment.lease
    lease.place, lease.outcome = None, "undone"
    lease.save(update_fields=["place", "outcome"])
    ask_again(unit)
    moved = unit.transitions.filter(judgment=judgment).first()
    if moved or unit.stage != stages.QUEUED:
        # Back to the stage where it was judged, which may not be where it was leased: others may have moved it
        # meanwhile.
        before = unit.transitions.filter(pk__lt=moved.pk).last() if moved else unit
        move(
            unit,
            "undone",
            stages.QUEUED,
            by=annotator.user,
            judgment=judgment,
            round=before.round,
            language=before.language,
            visited=unit.visited[: unit.visited.index(before.language) + 1],
        )
    reopened = lease_locked(unit, permit)
    if reopened is None:
        raise TooLateToUndo("Somebody else has this one by now, so your answer stands.")
    close_others([reopened], annotator, task, "released")
    return reopened


def read_answer(
    kind: Kind,
    sent: list[str],
    reason: str = "",
    comment: str = "",
    *,
    ways: Mapping[str, str] = MappingProxyType({}),
    is_sure: bool = False,
) -> Answer:
    """The answer that a page or a client sent; a reason alone means the answer that has reasons.

    InvalidAnswer if it cannot be read or stored; `check` decides whether it suits a unit.
    """
    if reason and not any(sent):
        sent = [kind.undefined]
    if sum(map(len, sent)) > LONGEST:
        raise InvalidAnswer(f"The answer is longer than {LONGEST:,} characters. Choose fewer labels.")
    check_words(*sent, reason, comment)
    try:
        label = kind.form.read(sent)
    except ValueError as error:
        raise InvalidAnswer(str(error)) from error
    return Answer(label=label, reason=reason, comment=comment, ways=ways, is_sure=is_sure)


def check_words(*words: str) -> None:
    """InvalidAnswer where words cannot be stored; the last of them are the comment."""
    if len(words[-1]) > COMMENT:
        raise InvalidAnswer(f"The comment is longer than {COMMENT:,} characters. Please shorten it.")
    if any("\x00" in word for word in words):
        raise InvalidAnswer("The answer has a NUL character in it. Please remove it.")


def check(kind: Kind, answer: Answer, unit: Unit) -> None:
    """InvalidAnswer if an answer does not suit a unit."""
    try:
        kind.check(answer, unit)
    except ValueError as error:
        raise InvalidAnswer(str(error)) from error
