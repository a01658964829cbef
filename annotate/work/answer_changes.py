"""Undo of recent answers, and later changes to answers until the task is closed.

If no one else has acted on the unit, a changed answer replaces the first answer and keeps its number. Otherwise, the
first answer counts until an adjudicator, who sees both, decides. If an adjudicator has already decided the unit or a
manager has excluded it, that decision remains in force.

Annotators can't tell which of these cases applied, and can't recognize a hidden gold item either: changing the answer
to one runs the same statements, and has the same visible outcome as changing the answer to the unit of work that the
gold item replaced. Only the first answer to a gold item counts.
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
from annotate.work.judgments import UNDO_MINUTES, check, is_undoable
from annotate.work.moves import NO_ROW, move
from annotate.work.permit import Permit, acting, midnight
from annotate.work.queue import close_open, lease_again
from annotate.work.routing import is_settled, reset_redundancy
from corpora.database.statements import insert_one, update_one

# Limits the adjudication cases that one annotator can create by changing answers.
CHANGES_A_DAY = 50


def last_judgment(annotator: Annotator, task: Task) -> Judgment | None:
    """Return the judgment that Undo applies to: the one with the newest lease, or None.

    Judgments are ordered by lease rather than time, because changed answers keep their leases and clocks may be wrong.
    """
    judgments = Judgment.objects.live().filter(annotator=annotator, unit__task=task, lease__isnull=False)
    return judgments.select_related("unit__item").order_by("-lease").first()


def _check_open(permit: Permit) -> None:
    """Raise a Refusal if the annotator isn't allowed to work in the task now, or if the task is closed."""
    if permit.stopped:
        raise permit.stopped
    if not permit.task.is_open:
        raise refusals.WrongStage(_("This task is closed, so your answer cannot be changed."))


def _check_queue(permit: Permit, lease: Lease) -> None:
    """Raise NotAllowed if the annotator is no longer allowed to work in a lease's queue."""
    if lease.queue not in permit.queues:
        raise refusals.NotAllowed(
            _("You can no longer work in %(language)s, so your answer cannot be changed.")
            % {"language": label_name(lease.queue)}
        )


def undo(annotator: Annotator, task: Task, judgment_id: int | None = None) -> Lease:
    """Undo an answer, a skip or a flag, and lease its unit to the annotator again. Returns the new lease.

    Undo is possible for UNDO_MINUTES minutes, unless the annotator loses access to the unit's language. Answers that
    others gave in the meantime remain, and the unit is decided again with the new answer. Decisions by adjudicators and
    managers remain in force. Any other unit that the annotator has open returns to its queue.

    judgment_id: number of the judgment; None for the last one.
    """
    with acting(annotator.user, task.name) as permit:
        lease, _judgment = undo_locked(permit, judgment_id)
    return lease


def undo_locked(permit: Permit, judgment_id: int | None = None) -> tuple[Lease, Judgment]:
    """Like `undo`, within the annotator's transaction. Returns the new lease and the judgment that was undone."""
    annotator, task, permit = permit.annotator, permit.task, permit.to_revise()
    if task.kind.sensitive:
        # The unit will be shown again, and must not count twice towards the daily limit.
        permit = permit.after_reading(-1)
    _check_open(permit)
    if judgment_id is None:
        judgment = last_judgment(annotator, task)
    else:
        candidates = Judgment.objects.live().filter(annotator=annotator, unit__task=task, lease__isnull=False)
        judgment = candidates.numbered(annotator, judgment_id).first()
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
    if not is_undoable(judgment):
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
    # Decisions by adjudicators and managers remain in force. For a gold answer, the same checks and statements run
    # without moving the unit.
    is_decided = is_settled(unit)
    if judgment.kind == Judgment.FLAG:
        _update_disturbing(unit)
    _restore_position(unit, judgment, keep=not unit.honeypot and not is_decided)
    reopened = lease_again(unit, permit, lease)
    close_open(annotator, task, [reopened])
    count_answers(permit, judgment, -1)
    return reopened, judgment


def _update_disturbing(unit: Unit) -> None:
    """Update a unit's `disturbing` mark after a flag was undone. It remains if another annotator flagged the unit."""
    unit.disturbing = unit.judgments.live().filter(kind=Judgment.FLAG).exists()
    update_one(unit, "disturbing")


def _restore_position(unit: Unit, judgment: Judgment, *, keep: bool) -> None:
    """Return a unit to its queue and round before an undone judgment.

    keep: whether to store the change. If False, the same statements run without effect.
    """
    unit = unit if keep else copy(unit)
    reset_redundancy(unit, keep=keep)
    moved = unit.transitions.filter(judgment=judgment).first()
    # Others may have moved the unit between the lease and the judgment, so use its state at the time of the judgment.
    previous = unit.transitions.filter(pk__lt=moved.pk if moved else NO_ROW).last() or unit
    is_moved = moved is not None or unit.stage != stages.QUEUED
    # If an annotator named this language and then undid the answer, it may be missing from `visited`.
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
        # An undone judgment needs no confirmation.
        redundancy=1 if moved and moved.event == "named" else unit.redundancy,
    )


# --- changes


def changeable(annotator: Annotator, task: Task) -> Judgments:
    """Return the answers that an annotator can change as long as the task is open. The units' stages don't matter."""
    return Judgment.objects.live().answers().filter(annotator=annotator, unit__task=task, lease__isnull=False)


def change(annotator: Annotator, task: Task, judgment_id: int, answer: Answer) -> Change:
    """Change an answer. Returns the change, which is stored even if it does not take effect.

    judgment_id: number of the answer.
    answer: the new answer.

    Raise WrongStage if the task is closed, EnoughToday if the annotator has made CHANGES_A_DAY changes today, NotFound
    if the annotator has no such answer in force, NotAllowed if they can't work in its language any more, and
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
        current = latest_changes([first]).get(first.unit_id, first)
        if current.label == answer.label:
            raise refusals.InvalidAnswer(_("This is your current answer. Choose another answer, or go back."))
        return _store_change(work, first, answer)


def _store_change(work: Unit, first: Judgment, answer: Answer) -> Change:
    # A unit with a known answer is hidden among the work. It needs no label, so it never goes to an adjudicator.
    is_work, is_too_late = not first.unit.known_answer, _is_too_late(work, first)
    is_decided = work.judgments.live().decisions().exists()
    is_excluded = work.transitions.filter(event="withdrawn").exists()
    changed = Change(
        judgment=first, label=answer.label, reason=answer.reason, comment=answer.comment.strip(), at=timezone.now()
    )
    insert_one(changed)
    _replace(first, answer, keep=not is_too_late)
    waits = work.stage == stages.ADJUDICATION
    keep = is_work and is_too_late and not is_decided and not is_excluded and not waits
    unit = work if keep else copy(work)
    if not keep:
        unit.stage = stages.LABELLED
    move(unit, "changed", stages.ADJUDICATION, by=first.annotator.user, judgment=first, keep=keep)
    return changed


def _is_too_late(work: Unit, first: Judgment) -> bool:
    """Return whether it is too late for a changed answer to replace the first one.

    It is too late if others have judged the unit, or if the unit has left the queue where it was answered. A unit
    that needs only one answer leaves its queue with the first answer. For a unit replaced by a gold answer, the result
    is the same as if the unit itself had been answered.
    """
    is_judged_by_others = work.judgments.binding().exclude(annotator=first.annotator).exists()
    lease = first.lease
    assert lease is not None
    is_in_queue = (work.stage, work.round, work.language) == (stages.QUEUED, lease.round, lease.queue)
    return is_judged_by_others or not is_in_queue or work.redundancy == 1


def _replace(first: Judgment, answer: Answer, *, keep: bool) -> None:
    """Replace a judgment with a new one that has the same lease and the same time.

    Keeping both ensures that neither the annotator's daily counts nor Undo shows whether the change took effect.

    keep: whether the change takes effect. If False, the same statements run without effect.
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
    # If the change doesn't take effect, delete the new rows. They were inserted only so that the primary keys of later
    # rows don't reveal the difference.
    for model, pk in ((Judgment, judgment.pk), (Lease, lease.pk)):
        rows = model.objects.filter(pk=NO_ROW if keep else pk)
        rows._raw_delete(rows.db)


def answer_numbers(annotator: Annotator, changes: Mapping[int, Change]) -> dict[int, int]:
    """Return a dict from unit to the number that an annotator sees for the changed answer: the first answer's number.

    changes: the changes, as returned by `latest_changes`.
    """
    first = Judgment.objects.filter(annotator=annotator, unit__in=changes).order_by("-pk")
    answered_at_by_unit = {(change.judgment.unit_id, change.judgment.answered_at) for change in changes.values()}
    rows = first.values_list("unit_id", "answered_at", "pk") if changes else ()
    return {unit: pk for unit, at, pk in rows if (unit, at) in answered_at_by_unit}


def latest_changes(judgments: Iterable[Judgment]) -> dict[int, Change]:
    """Return a dict from unit to the latest change that was made after the unit's judgment.

    judgments: one annotator's judgments.
    """
    answered = {(judgment.unit_id, judgment.annotator_id): judgment.answered_at for judgment in judgments}
    units, people = {unit for unit, _ in answered}, {person for _, person in answered}
    changes = Change.objects.filter(judgment__unit__in=units, judgment__annotator__in=people).order_by("pk")
    changes = changes.annotate(unit=F("judgment__unit"), person=F("judgment__annotator")).select_related("judgment")
    return {last.unit: last for last in changes if last.at > answered.get((last.unit, last.person), last.at)}


def changes_of(unit: Unit) -> QuerySet[Change]:
    """Return the changes that are in force for a unit's answers. Adjudicators see these changes."""
    return Change.objects.filter(Q(judgment__voided_at=None), judgment__unit=unit).select_related(
        "judgment__annotator__user"
    )
