"""Undo of recent answers, and later changes to answers until the task is closed.

If nobody else has acted on the unit yet, a changed answer replaces the first answer and keeps its number. Otherwise,
the first answer counts until an adjudicator, who sees both answers, decides. If an adjudicator has already decided the
unit or a manager has excluded it, this decision remains in force.

The annotator does not learn which of these cases applied. Changing the answer to a hidden gold answer runs the same
statements, so that the gold answer cannot be recognized. The outcome is then the same as if the annotator had answered
the unit of work that the gold answer replaced. For the gold answer itself, the first answer counts.
"""

from collections.abc import Iterable, Mapping
from copy import copy

from django.contrib.humanize.templatetags.humanize import intcomma
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotate.core import refusals, stages
from annotate.kinds import Answer
from annotate.kinds.interface_language import label_name
from annotate.models import Annotator, Change, Judgment, Lease, Task, Unit
from annotate.models.work import Judgments
from annotate.work.backlog import count_answers
from annotate.work.judgments import UNDO_MINUTES, check, may_be_taken_back
from annotate.work.moves import NO_ROW, move
from annotate.work.permit import Permit, acting, midnight
from annotate.work.queue import close_open, open_again
from annotate.work.routing import ask_again, is_settled
from corpora.database.statements import insert_one, update_one

# This limits the number of cases that one annotator's changes create for adjudicators.
CHANGES_A_DAY = 50


def last_judgment(annotator: Annotator, task: Task) -> Judgment | None:
    """Return the judgment that Undo takes back, which is the judgment with the newest lease.

    Judgments are ordered by lease and not by time, because a changed answer keeps its lease and because clocks may be
    wrong.
    """
    judgments = Judgment.objects.live().filter(annotator=annotator, unit__task=task, lease__isnull=False)
    return judgments.select_related("unit__item").order_by("-lease").first()


def _check_open(permit: Permit) -> None:
    """Raise a refusal if the annotator gets no units of the task now, or if it is closed."""
    if permit.stopped:
        raise permit.stopped
    if not permit.task.is_open:
        raise refusals.WrongStage(_("This task is closed, so your answer cannot be changed."))


def _check_queue(permit: Permit, lease: Lease) -> None:
    """Raise NotAllowed if the annotator can no longer work in the queue of a lease."""
    if lease.queue not in permit.queues:
        raise refusals.NotAllowed(
            _("You can no longer work in %(language)s, so your answer cannot be changed.")
            % {"language": label_name(lease.queue)}
        )


def undo(annotator: Annotator, task: Task, judgment_id: int | None = None) -> Lease:
    """Take back an answer, a skip or a flag, and reopen its unit.

    This is possible for UNDO_MINUTES, and only while the annotator is allowed to work in the unit's language. Answers
    that others have given in the meantime remain, and the unit is decided again with the new answer. Decisions by
    adjudicators and managers remain in force. If the annotator has another unit open, that unit returns to its queue.

    judgment_id: number of the judgment, None for the last one.
    """
    with acting(annotator.user, task.name) as permit:
        lease, _judgment = take_back(permit, judgment_id)
    return lease


def take_back(permit: Permit, judgment_id: int | None = None) -> tuple[Lease, Judgment]:
    """Take back a judgment within the annotator's transaction, see `undo`. Return the new lease and the judgment."""
    annotator, task, permit = permit.annotator, permit.task, permit.to_revise()
    if task.kind.sensitive:
        # The unit will be read again and must not count twice.
        permit = permit.after_reading(-1)
    _check_open(permit)
    if judgment_id is None:
        judgment = last_judgment(annotator, task)
    else:
        undoable = Judgment.objects.live().filter(annotator=annotator, unit__task=task, lease__isnull=False)
        judgment = undoable.numbered(annotator, judgment_id).first()
    if judgment is None:
        raise refusals.NothingToUndo(_("You have no answer to undo."))
    unit = Unit.objects.select_for_update(of=("self",)).select_related("item").get(pk=judgment.unit_id)
    unit.task = task
    judgment = Judgment.objects.select_related("lease").get(pk=judgment.pk)
    if judgment.voided_at:
        raise refusals.NothingToUndo(_("This answer has already been undone."))
    lease = judgment.lease
    assert lease is not None
    _check_queue(permit, lease)
    if not may_be_taken_back(judgment):
        raise refusals.TooLateToUndo(
            ngettext(
                "You gave this answer more than %(number)s minute ago, so it cannot be undone.",
                "You gave this answer more than %(number)s minutes ago, so it cannot be undone.",
                UNDO_MINUTES,
            )
            % {"number": intcomma(UNDO_MINUTES)}
        )
    for control in task.hooks["undo_refusal"]:
        if refusal := control.undo_refusal(judgment, unit):
            raise refusals.TooLateToUndo(refusal)
    judgment.voided_at = timezone.now()
    judgment.save(update_fields=["voided_at"])
    lease.place, lease.outcome = None, "undone"
    lease.save(update_fields=["place", "outcome"])
    # Decisions by adjudicators and managers remain in force. For a gold answer, the same checks and statements run, but
    # the unit does not move.
    is_decided = is_settled(unit)
    if judgment.kind == Judgment.FLAG:
        _update_disturbing(unit)
    _ask_back(unit, judgment, keep=not unit.honeypot and not is_decided)
    reopened = open_again(unit, permit, lease)
    close_open(annotator, task, [reopened])
    count_answers(permit, judgment, -1)
    return reopened, judgment


def _update_disturbing(unit: Unit) -> None:
    """Update whether a unit is disturbing after a flag was taken back. It still is if somebody else flagged it."""
    unit.disturbing = unit.judgments.live().filter(kind=Judgment.FLAG).exists()
    update_one(unit, "disturbing")


def _ask_back(unit: Unit, judgment: Judgment, *, keep: bool) -> None:
    """Return a unit to where it was before a judgment that was taken back.

    keep: whether to store the change. If not, the same statements run without effect.
    """
    unit = unit if keep else copy(unit)
    ask_again(unit, keep=keep)
    moved = unit.transitions.filter(judgment=judgment).first()
    # Return the unit to where it was when it was judged. Others may have moved it between the lease and the judgment.
    previous = unit.transitions.filter(pk__lt=moved.pk if moved else NO_ROW).last() or unit
    is_moved = moved is not None or unit.stage != stages.QUEUED
    # This language may be missing from `visited`, if the annotator who named it has taken that answer back.
    visited = unit.visited if previous.language in unit.visited else [*unit.visited, previous.language]
    move(
        unit,
        "undone",
        stages.QUEUED,
        by=judgment.annotator.user,
        judgment=judgment,
        keep=keep and is_moved,
        round=previous.round,
        language=previous.language,
        visited=visited[: visited.index(previous.language) + 1],
        # A judgment that is taken back needs no confirmation.
        redundancy=1 if moved and moved.event == "named" else unit.redundancy,
    )


# --- changes


def changeable(annotator: Annotator, task: Task) -> Judgments:
    """Return the answers that an annotator may change while the task is open, regardless of the unit's stage."""
    return Judgment.objects.live().answers().filter(annotator=annotator, unit__task=task, lease__isnull=False)


def change(annotator: Annotator, task: Task, judgment_id: int, answer: Answer) -> Change:
    """Change an answer.

    judgment_id: number of the answer.
    answer: the new answer.

    Returns the change, which is always stored.

    Raise WrongStage if the task is closed, EnoughToday if the annotator has made CHANGES_A_DAY changes today, NotFound
    if the annotator has no such answer in force, NotAllowed if they are no longer allowed to work in its language, and
    InvalidAnswer if the new answer does not fit the unit or equals the current one.
    """
    with acting(annotator.user, task.name) as acting_permit:
        permit = acting_permit.to_revise()
        _check_open(permit)
        if Change.objects.filter(judgment__annotator=annotator, at__gte=midnight()).count() >= CHANGES_A_DAY:
            raise refusals.EnoughToday(
                _(
                    "You have changed %(number)s answers today, so this answer was not changed. You can change more "
                    "tomorrow."
                )
                % {"number": CHANGES_A_DAY}
            )
        numbered = changeable(annotator, permit.task).numbered(annotator, judgment_id)
        units = list(numbered.values_list(Coalesce("lease__instead_of", "unit"), flat=True))
        if not units:
            raise refusals.NotFound(_("You do not have this answer."))
        # no_key: see judgments.py.
        work = Unit.objects.select_for_update(of=("self",), no_key=True).select_related("item").get(pk=units[0])
        first = numbered.select_related("lease", "unit__item").get()
        work.task = first.unit.task = permit.task
        assert first.lease is not None
        _check_queue(permit, first.lease)
        for control in permit.task.hooks["stored"]:
            answer = control.stored(answer, first.unit, annotator)
        check(permit.task.kind, answer, first.unit)
        current = latest([first]).get(first.unit_id, first)
        if current.label == answer.label:
            raise refusals.InvalidAnswer(_("This is your current answer. Choose another answer, or go back."))
        return _store_change(work, first, answer)


def _store_change(work: Unit, first: Judgment, answer: Answer) -> Change:
    # A unit with a known answer is hidden among the work and does not need a label, so it never goes to an adjudicator.
    is_work, gone_on = not first.unit.known_answer, _has_gone_on(work, first)
    is_decided = work.judgments.live().decisions().exists()
    is_left_out = work.transitions.filter(event="withdrawn").exists()
    changed = Change(
        judgment=first, label=answer.label, reason=answer.reason, comment=answer.comment.strip(), at=timezone.now()
    )
    insert_one(changed)
    _replace(first, answer, keep=not gone_on)
    waits = work.stage == stages.ADJUDICATION
    keep = is_work and gone_on and not is_decided and not is_left_out and not waits
    unit = work if keep else copy(work)
    if not keep:
        unit.stage = stages.LABELLED
    move(unit, "changed", stages.ADJUDICATION, by=first.annotator.user, judgment=first, keep=keep)
    return changed


def _has_gone_on(work: Unit, first: Judgment) -> bool:
    """Return whether it is too late for a changed answer to replace the first answer.

    It is too late if others have judged the unit, or if the unit has left the queue in which it was answered. A unit
    that needs only one answer leaves its queue with the first answer. For a unit that a gold answer replaced, the
    result is the same as if the unit itself had been answered.
    """
    is_judged_by_others = work.judgments.binding().exclude(annotator=first.annotator).exists()
    lease = first.lease
    assert lease is not None
    is_there = (work.stage, work.round, work.language) == (stages.QUEUED, lease.round, lease.queue)
    return is_judged_by_others or not is_there or work.redundancy == 1


def _replace(first: Judgment, answer: Answer, *, keep: bool) -> None:
    """Replace a judgment with a new one that has the same lease and the same time.

    Because of this, neither the annotator's daily counts nor the judgment that Undo would take back show whether the
    change took effect.

    keep: whether the change takes effect. If not, the same statements run without effect.
    """
    assert first.lease is not None
    judgment, lease = copy(first), copy(first.lease)
    lease.pk, lease.place, lease.outcome = None, None, "undone"
    insert_one(lease)
    current_time = timezone.now()
    first.voided_at, first.lease_id = current_time, lease.pk
    update_one(first, "voided_at", "lease", keep=keep)
    judgment.pk, judgment.voided_at = None, None if keep else current_time
    judgment.lease_id = judgment.lease_id if keep else lease.pk
    judgment.label, judgment.reason, judgment.comment = answer.label, answer.reason, answer.comment.strip()
    insert_one(judgment)
    for control in judgment.unit.task.hooks["parts"]:
        for part in control.parts(judgment, answer):
            insert_one(part, keep=keep)
    # If the change does not take effect, delete the new rows. They were inserted only so that the primary keys of later
    # rows do not reveal the difference.
    for model, pk in ((Judgment, judgment.pk), (Lease, lease.pk)):
        rows = model.objects.filter(pk=NO_ROW if keep else pk)
        rows._raw_delete(rows.db)


def numbers(annotator: Annotator, changes: Mapping[int, Change]) -> dict[int, int]:
    """Return the number by which an annotator finds each changed answer, by unit: the number of the first answer.

    changes: the changes, as returned by `latest`.
    """
    first = Judgment.objects.filter(annotator=annotator, unit__in=changes).order_by("-pk")
    answered_at_by_unit = {(change.judgment.unit_id, change.judgment.answered_at) for change in changes.values()}
    rows = first.values_list("unit_id", "answered_at", "pk") if changes else ()
    return {unit: pk for unit, at, pk in rows if (unit, at) in answered_at_by_unit}


def latest(judgments: Iterable[Judgment]) -> dict[int, Change]:
    """Return the latest change made after each judgment, by unit.

    judgments: judgments of one annotator.
    """
    answered = {(judgment.unit_id, judgment.annotator_id): judgment.answered_at for judgment in judgments}
    units, people = {unit for unit, _ in answered}, {person for _, person in answered}
    changes = Change.objects.filter(judgment__unit__in=units, judgment__annotator__in=people).order_by("pk")
    changes = changes.annotate(unit=F("judgment__unit"), person=F("judgment__annotator")).select_related("judgment")
    return {last.unit: last for last in changes if last.at > answered.get((last.unit, last.person), last.at)}


def of_unit(unit: Unit) -> QuerySet[Change]:
    """Return the changes to answers of a unit that are in force, as shown to an adjudicator."""
    return Change.objects.filter(Q(judgment__voided_at=None), judgment__unit=unit).select_related(
        "judgment__annotator__user"
    )
