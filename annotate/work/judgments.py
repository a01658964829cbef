"""Annotators' judgments: answering a unit, skipping it, or flagging it as disturbing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from operator import attrgetter
from typing import Any

from django.contrib.humanize.templatetags.humanize import intcomma
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotate.core import refusals, stages
from annotate.kinds import Answer, Kind
from annotate.kinds.interface_language import label_name, translated
from annotate.models import Annotator, Judgment, Lease, Task, Transition, Unit
from annotate.work.assignment import free_place
from annotate.work.backlog import count_answers
from annotate.work.eligible import in_own_queues, is_gold_complete
from annotate.work.moves import decide, labels_as_seen
from annotate.work.permit import Permit, acting
from annotate.work.routing import route
from corpora.database import bulk_rows
from corpora.database.statements import insert_one, new_row, prepared, update_one

_answers = count(1)  # number of judgments stored by this process
COMMENT = 2000  # maximum length of a comment, in characters
LONGEST = 10_000  # maximum length of an answer in characters; an answer may list many label ids
NOT_NEEDED = gettext_noop("This item no longer needs your answer, so it was not counted. Please take the next one.")

# Undo is possible for this long. Later, annotators can still change their answers.
UNDO_MINUTES = 10
# A late answer still counts for this long after the lease has expired, unless the place has been taken.
GRACE_MINUTES = 120


def judge(annotator: Annotator, lease_id: int, answer: Answer | None, active_seconds: float | None = None) -> Judgment:
    """Answer or skip a leased unit. Idempotent: a retry with the same answer returns the first judgment.

    answer: the answer, or None to skip the unit.
    active_seconds: working time measured by the client; capped at the time since the unit was shown.
    """
    with acting(annotator.user, task_of(annotator, lease_id).name) as permit:
        return close(permit, lease_id, answer, active_seconds).judgment


def skip(annotator: Annotator, lease_id: int, active_seconds: float | None = None) -> Judgment:
    """Skip a leased unit. It will not be assigned to the annotator again."""
    return judge(annotator, lease_id, None, active_seconds)


def task_of(annotator: Annotator, lease_id: int) -> Task:
    """Return the task that an annotator's lease belongs to.

    Raise NotFound if the annotator has no such lease.
    """
    tasks: list[Task] = _task_of(lease_id, annotator.pk)
    if not tasks:
        raise refusals.NotFound(_("You do not have this item."))
    return tasks[0]


@prepared
def _task_of(lease: int, annotator: int) -> QuerySet[Task]:
    return Task.objects.filter(pk__in=Lease.objects.filter(pk=lease, annotator=annotator).values("unit__task"))


@dataclass(frozen=True)
class Closed:
    """Result of an answer, a skip or a flag.

    permit: the annotator's permit after the judgment. If the judgment caused a pause, the permit shows it.
    judgment: the stored judgment.
    is_new: whether the judgment is new; False for a retry.
    lease: the lease of the judged unit.
    held: the annotator's other open leases in the task.
    """

    permit: Permit
    judgment: Judgment
    is_new: bool
    lease: Lease
    held: list[Lease]


# The outcome of a lease for each kind of judgment.
OUTCOME = {Judgment.ANSWER: "answered", Judgment.SKIP: "skipped", Judgment.FLAG: "flagged"}
# Messages that refuse a second, different judgment for a lease, by the kind of the first judgment. UNDONE applies if
# the first judgment was undone, and IN_FORCE if it still counts.
UNDONE = {
    Judgment.ANSWER: gettext_noop(
        "You answered %(answer)s and then undid it. Please answer the item that is open now."
    ),
    Judgment.SKIP: gettext_noop("You skipped this item and then undid it. Please answer the item that is open now."),
    Judgment.FLAG: gettext_noop("You flagged this item and then undid it. Please answer the item that is open now."),
}
IN_FORCE = {
    Judgment.ANSWER: gettext_noop(
        "You have already answered %(answer)s. To change your answer, continue and press Undo."
    ),
    Judgment.SKIP: gettext_noop("You have already skipped this item. To answer it, continue and press Undo."),
    Judgment.FLAG: gettext_noop("You have already flagged this item. To answer it, continue and press Undo."),
}


def close(
    permit: Permit,
    lease_id: int,
    answer: Answer | None,
    active_seconds: float | None = None,
    *,
    is_disturbing: bool = False,
) -> Closed:
    """Judge a leased unit, within the annotator's transaction.

    permit: the annotator's permit.
    lease_id: primary key of the lease.
    answer: the answer, or None to skip the unit or flag it as disturbing.
    active_seconds: see `judge`.
    is_disturbing: whether to flag the unit as disturbing.
    """
    kind = Judgment.ANSWER if answer else Judgment.FLAG if is_disturbing else Judgment.SKIP
    task = permit.task
    unit, leases = _lock_with_leases(permit, lease_id)
    lease = next(lease for lease in leases if lease.pk == lease_id)
    shown = lease.unit
    shown.task = task
    person, judgments = permit.annotator.pk, [lease.judgment for lease in leases if hasattr(lease, "judgment")]
    own_leases = [lease for lease in leases if lease.annotator_id == person and lease.closed_at is None]
    held = [lease for lease in own_leases if lease.unit_id != shown.pk]
    for control in task.hooks["stored"] if answer else ():
        answer = control.stored(answer, shown, permit.annotator)
    if first := next((judgment for judgment in judgments if judgment.lease_id == lease_id), None):
        return Closed(permit, _match_retry(first, kind, answer, shown), False, lease, held)
    if permit.stopped:
        raise permit.stopped
    # If the lease has expired, the annotator may hold a new lease of the unit from another tab. Use that lease then.
    lease = next((lease for lease in own_leases if lease.unit_id == shown.pk), lease)
    own_judgments = (other for other in judgments if (other.annotator_id, other.unit_id) == (person, shown.pk))
    if earlier := next((other for other in own_judgments if other.voided_at is None or other.voided_by_id), None):
        return Closed(permit, _match_retry(earlier, kind, answer, shown), False, lease, held)
    # The answer must not precede the question, even if the clock was set back.
    now = max(timezone.now(), lease.opened_at)
    lease.place = _place_of(permit, lease, unit, shown, leases, answer, now)
    judgment = _store(permit, lease, shown, kind, answer, now, active_seconds)
    for control in task.hooks["judged"]:
        control.judged(judgment, answer)
    if is_disturbing:
        _mark_disturbing(shown, unit)
    # For a gold answer, the effect on the unit that it replaced is computed but not stored, so that neither statements
    # nor response times distinguish gold answers from work.
    of_unit = [other for other in judgments if other.voided_at is None and other.unit_id in (unit.pk, shown.pk)]
    in_force = sorted([*of_unit, judgment], key=attrgetter("pk"))
    decide_or_route(unit, judgment, in_force, keep=lease.instead_of_id is None)
    for control in task.hooks["moved"]:
        control.moved(unit)
    count_answers(permit, judgment)
    # Evaluate the pause rules after every answer, to avoid distinguishing gold answers from work.
    pauses = [control.pauses(permit) for control in task.hooks["pauses"]]
    if (is_paused := any(pauses)) or task.kind.sensitive or permit.quota is not None:
        permit = permit.after_reading(1, answers=int(kind == Judgment.ANSWER), is_paused=is_paused)
    return Closed(permit, judgment, True, lease, held)


def _lock_with_leases(permit: Permit, lease_id: int) -> tuple[Unit, list[Lease]]:
    """Lock the unit of work behind a lease. Returns the unit and the result of `_query_leases`, limited to the task.

    All changes to a unit and its leases happen under this lock. For a gold answer, the lock is on the unit of work that
    it replaces. `no_key` prevents a deadlock. Without it, an extension that adds copies of the unit would hold the
    task's lock and wait for this transaction, while a control may make this transaction wait for the task's lock.

    Raise NotFound if the annotator has no such lease.
    """
    person, task = permit.annotator.pk, permit.task
    work = _lock_work(lease_id, person, task.pk)
    if not work:
        raise refusals.NotFound(_("You do not have this item."))
    [unit] = work
    unit.task = task
    # Query the leases in a separate statement after locking the unit, because the lock's previous holder may have
    # changed them.
    return unit, [other for other in _query_leases(person, unit.pk, unit.shown) if other.unit.task_id == task.pk]


def _place_of(
    permit: Permit, lease: Lease, unit: Unit, shown: Unit, leases: list[Lease], answer: Answer | None, now: datetime
) -> int | None:
    """Return the place that a judgment takes on the unit of work. Skips, flags and answers to gold answers take none.

    leases: the result of `_query_leases`.

    Raise a Refusal if the judgment does not count or the answer does not fit the unit.
    """
    is_late = lease.closed_at is not None or lease.expires_at <= now
    _check_rights(permit, lease, unit, now, is_late=is_late)
    others = [other for other in leases if other.pk != lease.pk and unit.pk in (other.unit_id, other.instead_of_id)]
    # Like a unit of work, a gold answer may have got all its answers from others after the annotator's lease expired.
    is_done = unit.stage != stages.QUEUED or (
        is_late and lease.instead_of_id and is_gold_complete(unit, shown.pk, others)
    )
    if is_done and not lease.again:
        raise refusals.WrongStage(_(NOT_NEEDED))
    if answer is None:
        return None
    check(permit.task.kind, answer, shown)
    # An answer to a gold item is too late if an answer to the unit that it replaces would be too late. Both cases run
    # the same statements, because the lease is updated only after this check.
    place = lease.place
    if is_late:
        free = free_place(unit, others, stand_in=lease.instead_of_id and shown.pk)
        place = place or free
        if place is None:
            raise refusals.LeaseExpired(
                _("You had this item open for too long, and somebody else has it now. Please take the next one.")
            )
    return None if lease.instead_of_id else place


def _store(
    permit: Permit, lease: Lease, shown: Unit, kind: str, answer: Answer | None, now: datetime, seconds: float | None
) -> Judgment:
    """Close a lease and save the judgment."""
    lease.closed_at, lease.outcome = now, OUTCOME[kind]
    update_one(lease, "place", "closed_at", "outcome")
    judgment = new_row(
        Judgment,
        unit=shown,
        annotator=permit.annotator,
        lease=lease,
        kind=kind,
        label=answer.label if answer else "",
        reason=answer.reason if answer else "",
        comment=answer.comment.strip() if answer else "",
        shown_at=lease.opened_at,
        answered_at=now,
        # With the arguments in this order, max and min turn NaN into 0.
        active_seconds=seconds and round(min(max(0.0, seconds), (now - lease.opened_at).total_seconds()), 3),
    )
    insert_one(judgment)
    if next(_answers) % bulk_rows.ANSWERS == 0:
        bulk_rows.update_statistics()
    return judgment


def decide_or_route(unit: Unit, judgment: Judgment, judgments: Sequence[Judgment], *, keep: bool) -> None:
    """Decide a unit that has all its answers; route any other unit.

    judgment: the new judgment.
    judgments: all judgments in force for the unit (the new judgment is among them), with their leases.
    keep: whether to store the changes. False if the new judgment is on a gold answer that replaced the unit; then the
        same statements run without effect.
    """
    if unit.stage != stages.QUEUED:
        return  # the annotator undid an answer and gave it again, but the unit has left its queue in the meantime
    task, lease = unit.task, judgment.lease
    how: dict[str, Any] = {"by": judgment.annotator.user, "judgment": judgment, "keep": keep}
    answers = [other for other in judgments if other.kind == Judgment.ANSWER]
    # If the answer may name the language of a different queue, always query the readers, even if the result doesn't
    # depend on them. Otherwise, the statements would reveal the kind of unit.
    same_queue = task.kind.routing.named(judgment.label) in ("", lease and lease.queue)
    if same_queue and len(answers) >= unit.redundancy and not task.overlap_share:
        decide(unit, answers, **how)
    else:
        route(unit, judgments, **how)


def _mark_disturbing(shown: Unit, work: Unit) -> None:
    """Mark the unit that was shown as disturbing, so that only annotators who have opted in get it.

    If it is a gold answer, the unit of work that it replaced is also marked, but not saved. It is then routed as if it
    had been flagged itself.
    """
    shown.disturbing = work.disturbing = True
    update_one(shown, "disturbing")


@prepared
def _lock_work(lease: int, annotator: int, task: int) -> QuerySet[Unit]:
    """Lock the unit of work behind a lease. Its annotation `shown` is the primary key of the unit that was shown."""
    leases = Lease.objects.filter(pk=lease, annotator=annotator, unit__task=task)
    units = Unit.objects.filter(pk__in=leases.values(of=Coalesce("instead_of_id", "unit_id")))
    is_audit = Exists(Transition.objects.filter(unit=OuterRef("pk"), event="audited"))
    shown_unit = Subquery(leases.values("unit_id"))
    work = units.order_by().select_related("item").annotate(is_audit=is_audit, shown=shown_unit)
    return work.select_for_update(of=("self",), no_key=True)


@prepared
def _query_leases(annotator: int, unit: int, shown: int) -> QuerySet[Lease]:
    """Return the unit of work's leases, the annotator's open leases, and the annotator's leases of the unit shown.

    The leases of gold answers that replaced the unit are included. Each of the four conditions uses an index.
    """
    own_leases = Q(annotator=annotator, closed_at=None) | Q(unit=shown, annotator=annotator)
    leases = Lease.objects.filter(Q(unit=unit) | Q(instead_of=unit) | own_leases)
    return leases.select_related("judgment", "unit__item", "instead_of")


def _check_rights(permit: Permit, lease: Lease, unit: Unit, now: datetime, *, is_late: bool) -> None:
    """Check that the annotator may still work in the queue that a unit was assigned from.

    Raise NotAllowed or NotQualified if they can't work in its language any more, and WrongStage or LeaseExpired if a
    late answer does not count.
    """
    queue = unit.language if is_late else lease.queue
    if queue not in permit.queues:
        if queue != lease.queue:
            raise refusals.WrongStage(_(NOT_NEEDED))
        if queue in permit.read_queues:
            raise refusals.NotQualified(
                _(
                    "You must pass the test in %(language)s again before you continue, so this answer was not "
                    "counted. See the task's guidelines."
                )
                % {"language": label_name(queue)}
            )
        raise refusals.NotAllowed(
            _("You can no longer work in %(language)s, so this answer was not counted. The manager can tell you why.")
            % {"language": label_name(queue)}
        )
    if is_late:
        _check_late(permit, lease, unit, now)


def _check_late(permit: Permit, lease: Lease, unit: Unit, now: datetime) -> None:
    """Check that a late answer still counts.

    Raise WrongStage if the task is closed or the annotator can no longer judge the unit, and LeaseExpired if
    GRACE_MINUTES have passed.
    """
    if not permit.task.is_open:
        raise refusals.WrongStage(
            _("The task was closed before you answered, and your time was over, so your answer was not counted.")
        )
    if now > lease.expires_at + timedelta(minutes=GRACE_MINUTES):
        opened = timezone.localtime(lease.opened_at)
        raise refusals.LeaseExpired(
            _(
                "You received this item at %(time)s on %(day)s, which is too long ago, so your answer was not "
                "counted. Please take the next one."
            )
            % {"time": f"{opened:%H:%M}", "day": f"{opened:%Y-%m-%d}"}
        )
    may_have_seen = permit.annotator.has_seen_answers and not lease.again
    if may_have_seen and not in_own_queues(permit).filter(pk=unit.pk).exists():
        raise refusals.WrongStage(
            _("As an adjudicator or manager, you could have seen other answers, so yours was not counted.")
        )


def _match_retry(first: Judgment, kind: str, answer: Answer | None, unit: Unit) -> Judgment:
    """Return the first judgment if the new one repeats it. Otherwise, raise AlreadyAnswered, which states it."""
    [label] = labels_as_seen(first.annotator, [(unit, first.label)])
    answered = {"answer": unit.task.kind.in_words(label, unit) if label else ""}
    if first.voided_by_id:
        raise refusals.AlreadyAnswered(_("The manager has voided your answers in this task, and can tell you why."))
    if first.voided_at:
        raise refusals.AlreadyAnswered(_(UNDONE[first.kind]) % answered)
    if answer is None and first.kind == kind:
        return first
    if answer and (first.label, first.reason, first.comment) == (answer.label, answer.reason, answer.comment.strip()):
        return first
    raise refusals.AlreadyAnswered(_(IN_FORCE[first.kind]) % answered)


def is_undoable(judgment: Judgment) -> bool:
    """Return whether a judgment is recent enough to be undone.

    The result doesn't depend on the unit's stage, because it would then reveal the stage.
    """
    return timezone.now() <= judgment.answered_at + timedelta(minutes=UNDO_MINUTES)


def read_answer(
    kind: Kind,
    sent: list[str],
    reason: str = "",
    comment: str = "",
    **details: Any,
) -> Answer:
    """Parse an answer sent by a page or client.

    If only a reason was sent, the answer is the label that takes a reason.

    sent: the submitted values of the answer's field.
    details: other fields of Answer.

    Raise InvalidAnswer if the answer cannot be parsed or stored. Use `check` to check that it fits a unit.
    """
    if reason and not any(sent):
        sent = [kind.undefined.label]
    if sum(map(len, sent)) > LONGEST:
        raise refusals.InvalidAnswer(
            _("The answer is longer than %(most)s characters. Choose fewer labels.") % {"most": intcomma(LONGEST)}
        )
    check_texts(*sent, reason, comment)
    try:
        label = kind.form.read(sent)
    except ValueError as error:
        raise refusals.InvalidAnswer(translated(error)) from error
    return Answer(label=label, reason=reason, comment=comment, **details)


def posted_answer(kind: Kind, posted: Any) -> Answer:
    """Parse the answer to a unit from a page's form.

    posted: the form's data, a QueryDict.

    Raise InvalidAnswer if the answer cannot be parsed.
    """
    # Browsers count a line break as one character towards maxlength but send two.
    comment = posted.get("comment", "").replace("\r\n", "\n")
    return read_answer(kind, posted.getlist("answer"), posted.get("reason", ""), comment, **kind.form.details(posted))


def check_texts(*texts: str) -> None:
    """Check that texts can be stored.

    texts: any texts; the last one is the comment.

    Raise InvalidAnswer if the comment is too long or a text contains a NUL character.
    """
    if len(texts[-1]) > COMMENT:
        raise refusals.InvalidAnswer(
            _("The comment is longer than %(most)s characters. Please shorten it.") % {"most": intcomma(COMMENT)}
        )
    if any("\x00" in text for text in texts):
        raise refusals.InvalidAnswer(_("The answer contains a NUL character. Please remove it."))


def check(kind: Kind, answer: Answer, unit: Unit) -> None:
    """Raise InvalidAnswer if an answer does not fit a unit."""
    try:
        kind.rules.check(answer, unit)
    except ValueError as error:
        raise refusals.InvalidAnswer(translated(error)) from error
