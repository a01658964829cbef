"""An annotator's answers: judge, skip, and take back."""

from django.db import transaction
from django.utils import timezone

from annotate.core import stages
from annotate.core.labels import label_name
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
from annotate.kinds import TASK_TYPES, name_of
from annotate.kinds.kind import Answer
from annotate.models import Annotator, Judgment, Lease, Task, Unit
from annotate.quality.audits import check_limit
from annotate.quality.pauses import after_answer, check_not_paused
from annotate.work.queue import close_others, free_place, lease_locked, one_at_a_time
from annotate.work.routing import Routes, after_judgment, ask_again, binding, move, queues_of


def judge(annotator: Annotator, lease_id: int, answer: Answer, active_seconds: float | None = None) -> Judgment:
    """Answer the unit of a lease. A retry with the same answer changes nothing and returns the first judgment.

    active_seconds: time at work as the client measured it; cut to the time since the unit was shown.
    """
    return _close(annotator, lease_id, answer, active_seconds)


def skip(annotator: Annotator, lease_id: int, active_seconds: float | None = None) -> Judgment:
    """Pass on the unit of a lease: this annotator will not see it again."""
    return _close(annotator, lease_id, None, active_seconds)


def judge_sheet(
    annotator: Annotator, answers: dict[int, Answer | None], active_seconds: float | None = None
) -> list[Refusal]:
    """Answer, or with None skip, each unit of a sheet by its lease. Returns what was refused: the rest is saved.

    Each is a judgment of its own, so that one post that came too late costs none of the others. active_seconds is
    that of the whole sheet.
    """
    each = None if active_seconds is None else active_seconds / len(answers)
    refused = []
    for lease_id, answer in answers.items():
        try:
            _close(annotator, lease_id, answer, each)
        except Refusal as refusal:
            refused.append(refusal)
    return refused


@transaction.atomic
def _close(annotator: Annotator, lease_id: int, answer: Answer | None, active_seconds: float | None) -> Judgment:
    unit_id = Lease.objects.filter(pk=lease_id, annotator=annotator).values_list("unit_id", flat=True).first()
    if unit_id is None:
        raise NotFound("You have not been given such a unit.")
    # A person's answers one after another, so that none slips past a pause or a voiding.
    one_at_a_time(annotator)
    # Everything that changes a unit or its leases happens under this lock. no_key: or else an extension that adds
    # copies of the unit would wait for it, and check_limit for the extension.
    unit = Unit.objects.select_for_update(of=("self",), no_key=True).select_related("task").get(pk=unit_id)
    lease = Lease.objects.get(pk=lease_id)
    if first := Judgment.objects.filter(lease=lease).first():
        return _retried(first, answer)
    check_not_paused(annotator, unit.task)
    # The lease may have run out and been given to the same person again, in another tab.
    lease = unit.leases.filter(annotator=annotator, closed_at=None).first() or lease
    if before := unit.judgments.filter(binding(), annotator=annotator).first():
        return _retried(before, answer)
    if unit.stage != stages.QUEUED:
        raise WrongStage("This one has gone on without your answer, so it was not counted. Please take the next.")
    if answer:
        TASK_TYPES[unit.task.task_type].check(answer, unit)
        if lease.place is None:
            lease.place = free_place(unit)
            if lease.place is None:
                raise LeaseExpired(
                    "You had this one open for longer than it is kept for one reader, and somebody else has it "
                    "now. Please take the next."
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
    after_judgment(unit, judgment)
    check_limit(unit)
    if unit.honeypot:
        after_answer(judgment)
    return judgment


def _retried(first: Judgment, answer: Answer | None) -> Judgment:
    """What a second submission for one lease gets: the first judgment, or a refusal that names it."""
    said = f"answered {name_of(first.label, first.unit.task)}" if first.label else "skipped"
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
    return (
        Judgment.objects.filter(annotator=annotator, unit__task=task, voided_at=None, lease__isnull=False)
        .order_by("-answered_at", "-pk")
        .first()
    )


@transaction.atomic
def undo(annotator: Annotator, task: Task, judgment_id: int | None = None) -> Lease:
    """Take back an answer or a skip, the last one if none is named, and open its unit again.

    Possible until somebody else has been given the unit, or has judged it, since, and as long as they may be given it
    themselves. The unit that was open goes back.
    """
    one_at_a_time(annotator)
    check_not_paused(annotator, task)
    if not task.is_open:
        raise WrongStage("This task is closed, so your answer stands.")
    if judgment_id is None:
        judgment = last_judgment(annotator, task)
    else:
        judgment = Judgment.objects.filter(
            pk=judgment_id, annotator=annotator, unit__task=task, lease__isnull=False, voided_at=None
        ).first()
    if judgment is None:
        raise NothingToUndo("There is no answer of yours to take back.")
    unit = Unit.objects.select_for_update(of=("self",)).select_related("task").get(pk=judgment.unit_id)
    judgment = Judgment.objects.select_related("lease").get(pk=judgment.pk)
    if judgment.voided_at:
        raise NothingToUndo("That answer has already been taken back.")
    if judgment.lease.queue not in queues_of(annotator, task, Routes.load()):
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
        # Back to where the judgment found it, which may not be where it was leased: others may have moved it between.
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
    reopened = lease_locked(unit, annotator)
    if reopened is None:
        raise TooLateToUndo("Somebody else has this one by now, so your answer stands.")
    close_others([reopened], annotator, task, "released")
    return reopened


def read_answer(label: str, reason: str = "", comment: str = "", *, discard: bool = False) -> Answer:
    """An answer from what a page or a client sent; which labels a task takes is its task type's to say.

    discard: no label is wanted, since an adjudicator leaves the unit out.
    """
    if not label and not discard:
        raise InvalidAnswer("No language was chosen. Choose one, or Undefined.")
    if len(comment) > 2000:
        raise InvalidAnswer("The comment is longer than 2,000 characters. Please shorten it.")
    if "\x00" in label + reason + comment:
        raise InvalidAnswer("The answer has a NUL character in it. Please remove it.")
    return Answer(label=label, reason=reason, comment=comment)
