"""An answer that its person changes after the time in which it can be taken back, until the task is closed.

While nobody has gone on with the unit, the new answer stands in place of the first, under the same number. Else the
unit becomes a case for an adjudicator, who sees both; until they decide, the first answer counts. What an adjudicator
has decided already stands, and so does that a manager left the unit out.

Which of these it is nobody is told, and for a hidden gold answer the same statements are run. It is decided by the unit
of work for which the gold answer stood, as if that had been answered; of a gold answer the first answer counts.
"""

from collections.abc import Mapping
from copy import copy

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.core import stages
from annotate.core.refusals import EnoughToday, InvalidAnswer, NotAllowed, NotFound, WrongStage
from annotate.kinds import Answer
from annotate.kinds.interface_language import label_name
from annotate.models import Annotator, Change, Judgment, Task, Unit
from annotate.work.judgments import check
from annotate.work.moves import NO_ROW, move
from annotate.work.permit import acting, midnight
from corpora.database.statements import insert_one, update_one

# Each may become a case for an adjudicator.
CHANGES_A_DAY = 50


def changeable(annotator: Annotator, task: Task) -> QuerySet[Judgment]:
    """A person's answers that they may change, as long as the task is open. What becomes of a unit decides nothing
    here.
    """
    return Judgment.objects.live().answers().filter(annotator=annotator, unit__task=task, lease__isnull=False)


def change(annotator: Annotator, task: Task, judgment_id: int, answer: Answer) -> Change:
    """Say otherwise now. Returns what was changed, which is kept in any case.

    WrongStage if the task is closed; EnoughToday after CHANGES_A_DAY of them in all tasks; NotFound if it is no answer
    of theirs that stands; NotAllowed if they may not work in its language any more; InvalidAnswer if the answer does
    not suit the unit, or is what they say already.
    """
    with acting(annotator.user, task.name) as permit:
        if permit.stopped:
            raise permit.stopped
        if not permit.task.is_open:
            raise WrongStage(_("This task is closed, so your answer stands."))
        if Change.objects.filter(judgment__annotator=annotator, at__gte=midnight()).count() >= CHANGES_A_DAY:
            raise EnoughToday(
                _("You have changed %(number)s answers today, so your answer stands. You can change more tomorrow.")
                % {"number": CHANGES_A_DAY}
            )
        own = changeable(annotator, permit.task).numbered(annotator, judgment_id)
        of = list(own.values_list(Coalesce("lease__instead_of", "unit"), flat=True))
        if not of:
            raise NotFound(_("There is no such answer of yours."))
        # no_key: as in judgments.py.
        work = Unit.objects.select_for_update(of=("self",), no_key=True).select_related("item").get(pk=of[0])
        first = own.select_related("lease", "unit__item").get()
        work.task = first.unit.task = permit.task
        if first.lease.queue not in permit.queues:
            raise NotAllowed(
                _("You may not work in %(language)s any more, so your answer stands.")
                % {"language": label_name(first.lease.queue)}
            )
        for control in permit.task.controls:
            answer = control.stored(answer, first.unit, annotator)
        check(permit.task.kind, answer, first.unit)
        said = latest([first]).get(first.unit_id, first)
        if said.label == answer.label:
            raise InvalidAnswer(_("That is what you have said. Choose another answer, or go back."))
        return _kept(work, first, answer)


def _kept(work: Unit, first: Judgment, answer: Answer) -> Change:
    # Nobody needs another label of what was hidden among the work.
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
    """Whether others have judged a unit, or it has left the queue in which it was answered; of a unit for which a gold
    answer stood, whether it would have.
    """
    others = work.judgments.binding().exclude(annotator=first.annotator).exists()
    lease = first.lease
    is_there = (work.stage, work.round, work.language) == (stages.QUEUED, lease.round, lease.queue)
    return others or not is_there or work.redundancy == 1


def _replace(first: Judgment, answer: Answer, *, keep: bool) -> None:
    """Another judgment in place of the first, with its lease and as of the same time, so that what a person is told of
    their day, and which answer Undo takes back, do not tell which way a change went.
    """
    judgment, lease = copy(first), copy(first.lease)
    lease.pk, lease.place, lease.outcome = None, None, "undone"
    insert_one(lease)
    now = timezone.now()
    first.voided_at, first.lease_id = now, lease.pk
    update_one(first, "voided_at", "lease", keep=keep)
    judgment.pk, judgment.voided_at = None, None if keep else now
    judgment.lease_id = judgment.lease_id if keep else lease.pk
    judgment.label, judgment.reason, judgment.comment = answer.label, answer.reason, answer.comment.strip()
    insert_one(judgment)
    for control in judgment.unit.task.controls:
        for part in control.parts(judgment, answer):
            insert_one(part, keep=keep)
    # The numbers of the next judgment and the next lease do not tell whether these were kept.
    for row in (judgment, lease):
        rows = type(row).objects.filter(pk=NO_ROW if keep else row.pk)
        rows._raw_delete(rows.db)


def numbers(annotator: Annotator, changes: Mapping[int, Change]) -> dict[int, int]:
    """Unit -> the number under which a person finds an answer that they changed: that of the answer they gave first.
    changes: of `latest`.
    """
    first = Judgment.objects.filter(annotator=annotator, unit__in=changes).order_by("-pk")
    given = {(each.judgment.unit_id, each.judgment.answered_at) for each in changes.values()}
    rows = first.values_list("unit_id", "answered_at", "pk") if changes else ()
    return {unit: pk for unit, at, pk in rows if (unit, at) in given}


def latest(judgments) -> dict[int, Change]:
    """Unit -> the last change that a person made since they gave the judgment, of these judgments of theirs."""
    given = {(each.unit_id, each.annotator_id): each.answered_at for each in judgments}
    units, people = {unit for unit, _ in given}, {person for _, person in given}
    found = Change.objects.filter(judgment__unit__in=units, judgment__annotator__in=people).order_by("pk")
    found = found.annotate(unit=F("judgment__unit"), person=F("judgment__annotator")).select_related("judgment")
    return {each.unit: each for each in found if each.at > given.get((each.unit, each.person), each.at)}


def of_unit(unit: Unit) -> QuerySet[Change]:
    """What people would say otherwise of a unit, for an adjudicator; not what was taken back since."""
    return Change.objects.filter(Q(judgment__voided_at=None), judgment__unit=unit).select_related(
        "judgment__annotator__user"
    )
