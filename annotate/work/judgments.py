"""An annotator's answers: judge, skip, hand on as disturbing, and take back."""

from copy import copy
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from django.contrib.humanize.templatetags.humanize import intcomma
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from annotate.core import refusals, stages
from annotate.kinds import Answer, Kind
from annotate.kinds.interface_language import label_name, translated
from annotate.models import Annotator, Judgment, Lease, Task, Transition, Unit
from annotate.work.eligible import is_over, may_be_given
from annotate.work.moves import NO_ROW, move, seen
from annotate.work.permit import Permit, acting
from annotate.work.queue import close_others, free_place, open_again
from annotate.work.routing import after_judgment, ask_again, is_settled
from annotate.work.sql import sql
from corpora.database import bulk_rows
from corpora.database.statements import insert_one, prepared, tell, update_one

_COUNT = sql("said")
_answers = count(1)  # of this process
COMMENT = 2000  # characters
LONGEST = 10_000  # characters of an answer, which may be the ids of many labels
GONE_ON = gettext_noop("This one has gone on without your answer, so it was not counted. Please take the next.")

# For how long an answer still counts after its time has run out, if nobody else has the unit by then: it is work done.
GRACE_MINUTES = 120
# For how long people can take an answer or a skip back: as long as they remember it. Later they can change it.
UNDO_MINUTES = 10


def judge(annotator: Annotator, lease_id: int, answer: Answer | None, active_seconds: float | None = None) -> Judgment:
    """Answer the unit of a lease. A retry with the same answer changes nothing and returns the first judgment.

    answer: None to skip the unit. active_seconds: time at work as the client measured it; cut to the time since the
    unit was shown.
    """
    with acting(annotator.user, task_of(annotator, lease_id).name) as permit:
        return close(permit, lease_id, answer, active_seconds).judgment


def skip(annotator: Annotator, lease_id: int, active_seconds: float | None = None) -> Judgment:
    """Skip the unit of a lease; this annotator will not see it again."""
    return judge(annotator, lease_id, None, active_seconds)


def task_of(annotator: Annotator, lease_id: int) -> Task:
    """The task of a lease. NotFound if the annotator was given no such unit."""
    found = _task_of(lease_id, annotator.pk)
    if not found:
        raise refusals.NotFound(_("You have not been given such a unit."))
    return found[0]


@prepared
def _task_of(lease, annotator) -> QuerySet[Task]:
    return Task.objects.filter(pk__in=Lease.objects.filter(pk=lease, annotator=annotator).values("unit__task"))


def judge_sheet(
    annotator: Annotator, task: Task, answers: dict[int, Answer | None], active_seconds: float | None = None
) -> list[refusals.Refusal]:
    """Answer each unit of a sheet by its lease, or skip it if its answer is None. Returns the refusals; the rest is
    saved.

    Each is a separate judgment, so one post that came too late does not cost the others. active_seconds is that of the
    whole sheet.
    """
    each = None if active_seconds is None else active_seconds / len(answers)
    refused = []
    for lease_id, answer in answers.items():
        try:
            with acting(annotator.user, task.name) as permit:
                close(permit, lease_id, answer, each)
        except refusals.Refusal as refusal:
            refused.append(refusal)
    return refused


@dataclass(frozen=True)
class Closed:
    """What came of an answer, a skip or a flag.

    permit: what the annotator may do from now on, since they may have been paused. is_new: the answer was not a retry.
    lease: the one that it was sent for; held: the annotator's other open leases in the task.
    """

    permit: Permit
    judgment: Judgment
    is_new: bool
    lease: Lease
    held: list[Lease]


# What becomes of a lease by the judgment that is made under it.
OUTCOME = {Judgment.ANSWER: "answered", Judgment.SKIP: "skipped", Judgment.FLAG: "flagged"}
# What whoever sends another answer is told of the first.
TAKEN_BACK = {
    Judgment.ANSWER: gettext_noop(
        "You answered %(answer)s here and took that back since. Please answer what is open now."
    ),
    Judgment.SKIP: gettext_noop("You skipped here and took that back since. Please answer what is open now."),
    Judgment.FLAG: gettext_noop("You flagged this and took that back since. Please answer what is open now."),
}
STANDS = {
    Judgment.ANSWER: gettext_noop(
        "You have already answered %(answer)s here, and that stands. To answer otherwise, go on and press Undo."
    ),
    Judgment.SKIP: gettext_noop(
        "You have already skipped here, and that stands. To answer otherwise, go on and press Undo."
    ),
    Judgment.FLAG: gettext_noop(
        "You have already flagged this, and that stands. To answer otherwise, go on and press Undo."
    ),
}


def close(
    permit: Permit,
    lease_id: int,
    answer: Answer | None,
    active_seconds: float | None = None,
    *,
    is_disturbing: bool = False,
) -> Closed:
    """Answer the unit of a lease in the transaction in which the annotator acts; if answer is None, skip it, or hand it
    on to people who take what others found disturbing.
    """
    kind = Judgment.ANSWER if answer else Judgment.FLAG if is_disturbing else Judgment.SKIP
    annotator, task = permit.annotator, permit.task
    # Everything that changes a unit or its leases happens under this lock; that of a gold answer under the lock of the
    # unit of work for which it stands. no_key: otherwise an extension that adds copies of the unit would wait for it,
    # and a control that locks the task for the extension.
    work = _work(lease_id, annotator.pk, task.pk)
    if not work:
        raise refusals.NotFound(_("You have not been given such a unit."))
    [unit] = work
    unit.task = task
    # Read in a separate statement after the lock: the transaction that held it may have changed them.
    found = [each for each in _around(annotator.pk, unit.pk, unit.shown) if each.unit.task_id == task.pk]
    leases = [each for each in found if unit.pk in (each.unit_id, each.instead_of_id)]
    lease = next(each for each in found if each.pk == lease_id)
    shown = lease.unit
    shown.task = task
    own = [each for each in found if each.annotator_id == annotator.pk]
    held = [each for each in own if each.closed_at is None and each.unit_id != shown.pk]
    own = [each for each in own if each.unit_id == shown.pk]
    for control in task.controls if answer else ():
        answer = control.stored(answer, shown, annotator)
    if first := getattr(lease, "judgment", None):
        return Closed(permit, _retried(first, kind, answer, shown), False, lease, held)
    if permit.stopped:
        raise permit.stopped
    # The lease may have run out and been given to the same person again, in another tab.
    lease = next((each for each in own if each.closed_at is None), lease)
    binding = (getattr(each, "judgment", None) for each in own)
    if before := next((each for each in binding if each and (each.voided_at is None or each.voided_by_id)), None):
        return Closed(permit, _retried(before, kind, answer, shown), False, lease, held)
    # A clock that was set back has nobody answer before they were asked.
    now = max(timezone.now(), lease.opened_at)
    is_late = lease.closed_at is not None or lease.expires_at <= now
    _check_rights(permit, lease, unit, now, is_late=is_late)
    others = [each for each in leases if each.pk != lease.pk]
    # A gold answer whose time has run out may have got its answers from others, like work.
    is_late_gold = lease.instead_of_id and is_late
    is_gone = unit.stage != stages.QUEUED or (is_late_gold and is_over(unit, shown.pk, others))
    if is_gone and not lease.again:
        raise refusals.WrongStage(_(GONE_ON))
    if answer:
        check(task.kind, answer, shown)
        # A gold answer holds no place, and is late for everybody when the unit for which it stands is. The lease itself
        # stays as it is meanwhile, so that a late gold answer runs no statement more than late work.
        place = lease.place
        if is_late:
            free = free_place(unit, others, stand_in=lease.instead_of_id and shown.pk)
            place = place or free
            if place is None:
                raise refusals.LeaseExpired(
                    _("You had this one open for too long, and somebody else has it now. Please take the next.")
                )
        lease.place = None if lease.instead_of_id else place
    else:
        lease.place = None
    if active_seconds is not None:
        # In this order a NaN becomes 0.
        active_seconds = round(min(max(0.0, active_seconds), (now - lease.opened_at).total_seconds()), 3)
    lease.closed_at, lease.outcome = now, OUTCOME[kind]
    update_one(lease, "place", "closed_at", "outcome")
    judgment = Judgment(
        unit=shown,
        annotator=annotator,
        lease=lease,
        kind=kind,
        label=answer.label if answer else "",
        reason=answer.reason if answer else "",
        comment=answer.comment.strip() if answer else "",
        shown_at=lease.opened_at,
        answered_at=now,
        active_seconds=active_seconds,
    )
    insert_one(judgment)
    if next(_answers) % bulk_rows.ANSWERS == 0:
        bulk_rows.gather()
    for control in task.controls:
        control.judged(judgment, answer)
    if is_disturbing:
        _found_disturbing(shown, unit)
    # What an answer to a gold answer would have done to the unit for which it stood is run through, and nothing of it
    # kept: so neither the statements nor the time of an answer tell a gold answer from work.
    of_unit = (getattr(each, "judgment", None) for each in leases if each.unit_id in (unit.pk, shown.pk))
    standing = sorted((each for each in of_unit if each and each.voided_at is None), key=lambda each: each.pk)
    after_judgment(unit, judgment, standing, keep=lease.instead_of_id is None)
    for control in task.controls:
        control.moved(unit)
    _count(permit, judgment)
    # This is done after every answer, to a gold answer or to work, so that nothing tells them apart.
    pauses = [control.pauses(permit) for control in task.controls]
    if (is_paused := any(pauses)) or task.kind.sensitive:
        permit = permit.after_reading(1, is_paused=is_paused)
    return Closed(permit, judgment, True, lease, held)


def _count(permit: Permit, judgment: Judgment, number: int = 1) -> None:
    """Change what is kept in Backlog by an answer, a skip or a flag, which counts as neither; -1 for one that is taken
    back.
    """
    zone = timezone.get_default_timezone()
    today = timezone.localdate(timezone=zone)
    of_today = number if timezone.localdate(judgment.answered_at, zone) == today else 0
    answered, skipped = (of_today * (judgment.kind == kind) for kind in (Judgment.ANSWER, Judgment.SKIP))
    own = [permit.annotator.pk, permit.task.pk, max(number, 0)]
    tell(_COUNT, [number, today, answered, today, skipped, today, *own])


def _found_disturbing(shown: Unit, work: Unit) -> None:
    """From now on only people who take such units are given it, a gold answer too. What comes of that for the unit of
    work is run through for a gold answer as well.
    """
    shown.disturbing = work.disturbing = True
    update_one(shown, "disturbing")


@prepared
def _work(lease, annotator, task) -> QuerySet[Unit]:
    """Lock the unit of work that a lease is of; `shown` is the unit that the annotator was shown."""
    given = Lease.objects.filter(pk=lease, annotator=annotator, unit__task=task)
    units = Unit.objects.filter(pk__in=given.values(of=Coalesce("instead_of_id", "unit_id")))
    is_audit = Exists(Transition.objects.filter(unit=OuterRef("pk"), event="audited"))
    shown = Subquery(given.values("unit_id"))
    found = units.order_by().select_related("item").annotate(is_audit=is_audit, shown=shown)
    return found.select_for_update(of=("self",), no_key=True)


@prepared
def _around(annotator, unit, shown) -> QuerySet[Lease]:
    """All leases of a unit of work, and those of the annotator that are open or of what they were shown. Each of the
    four conditions has an index.
    """
    of_me = Q(annotator=annotator, closed_at=None) | Q(unit=shown, annotator=annotator)
    found = Lease.objects.filter(Q(unit=unit) | Q(instead_of=unit) | of_me)
    return found.select_related("judgment", "unit__item", "instead_of")


def _check_rights(permit: Permit, lease: Lease, unit: Unit, now: datetime, *, is_late: bool) -> None:
    """NotAllowed or NotQualified if the annotator may not work any more in the language in which they were given a
    unit. A late answer counts only from somebody who could still be given the unit, and for a while: else WrongStage
    or LeaseExpired.
    """
    queue = unit.language if is_late else lease.queue
    if queue not in permit.queues:
        if queue != lease.queue:
            raise refusals.WrongStage(_(GONE_ON))
        if queue in permit.read_queues:
            raise refusals.NotQualified(
                _(
                    "You have to pass the test in %(language)s again before you go on there, so this was not counted. "
                    "Look at the task's guidelines."
                )
                % {"language": label_name(queue)}
            )
        raise refusals.NotAllowed(
            _("You may not work in %(language)s any more, so this was not counted. The manager can tell you why.")
            % {"language": label_name(queue)}
        )
    if not is_late:
        return
    if not permit.task.is_open:
        raise refusals.WrongStage(
            _("This task was closed before you answered, and your time had run out. It was not counted.")
        )
    if now > lease.expires_at + timedelta(minutes=GRACE_MINUTES):
        opened = timezone.localtime(lease.opened_at)
        raise refusals.LeaseExpired(
            _(
                "You were given this one at %(time)s on %(day)s, which is too long ago, so it was not counted. Please "
                "take the next."
            )
            % {"time": f"{opened:%H:%M}", "day": f"{opened:%Y-%m-%d}"}
        )
    if permit.annotator.adjudicates and not lease.again and not may_be_given(permit, unit):
        raise refusals.WrongStage(
            _("As an adjudicator you could read meanwhile what others said here, so it was not counted.")
        )


def _retried(first: Judgment, kind: str, answer: Answer | None, unit: Unit) -> Judgment:
    """What a second submission for one lease gets: the first judgment, or a refusal that names it."""
    [label] = seen(first.annotator, [(unit, first.label)])
    answered = {"answer": unit.task.kind.name(label) if label else ""}
    if first.voided_by_id:
        raise refusals.AlreadyAnswered(
            _("Your answers in this task were set aside by the manager, who can tell you why.")
        )
    if first.voided_at:
        raise refusals.AlreadyAnswered(_(TAKEN_BACK[first.kind]) % answered)
    if answer is None and first.kind == kind:
        return first
    if answer and (first.label, first.reason, first.comment) == (answer.label, answer.reason, answer.comment.strip()):
        return first
    raise refusals.AlreadyAnswered(_(STANDS[first.kind]) % answered)


def last_judgment(annotator: Annotator, task: Task) -> Judgment | None:
    """The one that Undo takes back, by its lease: what stands in place of another has the other's, and clocks err."""
    own = Judgment.objects.live().filter(annotator=annotator, unit__task=task, lease__isnull=False)
    return own.select_related("unit__item").order_by("-lease").first()


def may_be_taken_back(judgment: Judgment, task: Task) -> bool:
    """Whether it is as new as the task asks. What has become of its unit decides nothing here, so that nobody learns
    from it what that was.
    """
    return timezone.now() <= judgment.answered_at + timedelta(minutes=UNDO_MINUTES)


def undo(annotator: Annotator, task: Task, judgment_id: int | None = None) -> Lease:
    """Take back an answer or a skip, the last one if none is named, and open its unit again.

    This is possible for UNDO_MINUTES, and while the annotator may work in the language of the unit. If
    others have judged it meanwhile, what they said stays, and it is decided anew with the new answer; what an
    adjudicator or a manager decided stands. The unit that they had open goes back to its queue.
    """
    with acting(annotator.user, task.name) as permit:
        return take_back(permit, judgment_id)


def take_back(permit: Permit, judgment_id: int | None = None) -> Lease:
    """The same in the transaction in which the annotator acts."""
    annotator, task = permit.annotator, permit.task
    if task.kind.sensitive:
        # What is taken back is read again, and no more than it was.
        permit = permit.after_reading(-1)
    if permit.stopped:
        raise permit.stopped
    if not task.is_open:
        raise refusals.WrongStage(_("This task is closed, so your answer stands."))
    if judgment_id is None:
        judgment = last_judgment(annotator, task)
    else:
        own = Judgment.objects.live().filter(annotator=annotator, unit__task=task, lease__isnull=False)
        judgment = own.numbered(annotator, judgment_id).first()
    if judgment is None:
        raise refusals.NothingToUndo(_("There is no answer of yours to take back."))
    unit = Unit.objects.select_for_update(of=("self",)).select_related("item").get(pk=judgment.unit_id)
    unit.task = task
    judgment = Judgment.objects.select_related("lease").get(pk=judgment.pk)
    if judgment.voided_at:
        raise refusals.NothingToUndo(_("That answer has already been taken back."))
    if judgment.lease.queue not in permit.queues:
        raise refusals.NotAllowed(
            _("You may not work in %(language)s any more, so your answer stands.")
            % {"language": label_name(judgment.lease.queue)}
        )
    if not may_be_taken_back(judgment, task):
        raise refusals.TooLateToUndo(
            ngettext(
                "You said that more than %(number)s minute ago, so it stands.",
                "You said that more than %(number)s minutes ago, so it stands.",
                UNDO_MINUTES,
            )
            % {"number": intcomma(UNDO_MINUTES)}
        )
    judgment.voided_at = timezone.now()
    judgment.save(update_fields=["voided_at"])
    lease = judgment.lease
    lease.place, lease.outcome = None, "undone"
    lease.save(update_fields=["place", "outcome"])
    # What an adjudicator or a manager decided stands. The same is asked, and the same statements are run, for a gold
    # answer, of which nothing moves.
    is_decided = is_settled(unit)
    if judgment.kind == Judgment.FLAG:
        _found_so_no_more(unit)
    _ask_back(unit, judgment, keep=not unit.honeypot and not is_decided)
    reopened = open_again(unit, permit, lease)
    close_others([reopened], annotator, task, "released")
    _count(permit, judgment, -1)
    return reopened


def _found_so_no_more(unit: Unit) -> None:
    """A flag was taken back; others may have flagged it too."""
    unit.disturbing = unit.judgments.live().filter(kind=Judgment.FLAG).exists()
    update_one(unit, "disturbing")


def _ask_back(unit: Unit, judgment: Judgment, *, keep: bool) -> None:
    """Put a unit back to where it was before an answer or a skip that was taken back; unless that is to be kept, by
    statements that change nothing.
    """
    unit = unit if keep else copy(unit)
    ask_again(unit, keep=keep)
    moved = unit.transitions.filter(judgment=judgment).first()
    # Back to the stage where it was judged, which may not be where it was leased: others may have moved it meanwhile.
    before = unit.transitions.filter(pk__lt=moved.pk if moved else NO_ROW).last() or unit
    is_moved = moved is not None or unit.stage != stages.QUEUED
    # Whoever had named that language may have taken it back meanwhile.
    visited = unit.visited if before.language in unit.visited else [*unit.visited, before.language]
    move(
        unit,
        "undone",
        stages.QUEUED,
        by=judgment.annotator.user,
        judgment=judgment,
        keep=keep and is_moved,
        round=before.round,
        language=before.language,
        visited=visited[: visited.index(before.language) + 1],
        # Nobody need confirm what is taken back.
        redundancy=1 if moved and moved.event == "named" else unit.redundancy,
    )


def read_answer(
    kind: Kind,
    sent: list[str],
    reason: str = "",
    comment: str = "",
    **details: Any,
) -> Answer:
    """The answer that a page or a client sent; a reason alone means the answer that has reasons. details: further
    fields of Answer.

    InvalidAnswer if it cannot be read or stored; `check` decides whether it suits a unit.
    """
    if reason and not any(sent):
        sent = [kind.undefined.label]
    if sum(map(len, sent)) > LONGEST:
        raise refusals.InvalidAnswer(
            _("The answer is longer than %(most)s characters. Choose fewer labels.") % {"most": intcomma(LONGEST)}
        )
    check_words(*sent, reason, comment)
    try:
        label = kind.form.read(sent)
    except ValueError as error:
        raise refusals.InvalidAnswer(translated(error)) from error
    return Answer(label=label, reason=reason, comment=comment, **details)


def posted_answer(kind: Kind, posted: Any) -> Answer:
    """What a page's form says of one unit. posted: a QueryDict. InvalidAnswer if it cannot be read."""
    # A browser counts a line's end as one character and sends two.
    comment = posted.get("comment", "").replace("\r\n", "\n")
    return read_answer(kind, posted.getlist("answer"), posted.get("reason", ""), comment, **kind.form.details(posted))


def check_words(*words: str) -> None:
    """InvalidAnswer where words cannot be stored; the last of them are the comment."""
    if len(words[-1]) > COMMENT:
        raise refusals.InvalidAnswer(
            _("The comment is longer than %(most)s characters. Please shorten it.") % {"most": intcomma(COMMENT)}
        )
    if any("\x00" in word for word in words):
        raise refusals.InvalidAnswer(_("The answer has a NUL character in it. Please remove it."))


def check(kind: Kind, answer: Answer, unit: Unit) -> None:
    """InvalidAnswer if an answer does not suit a unit."""
    try:
        kind.rules.check(answer, unit)
    except ValueError as error:
        raise refusals.InvalidAnswer(translated(error)) from error
