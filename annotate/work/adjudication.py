"""The last word on what the queues could not settle, and on what is checked: settle, discard, and take that back.

By lot a decision is made a second time by another adjudicator (controls/checks.py), and if they differ by a third.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import models, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotate.core import stages
from annotate.core.draws.committed_draws import NOBODY
from annotate.core.refusals import InvalidAnswer, NotAllowed, NotFound, NothingToUndo, Paused, Refusal, WrongStage
from annotate.kinds import Answer, Kind
from annotate.models import Annotator, Judgment, Task, Transition, Unit
from annotate.quality import commitments
from annotate.work.judgments import check, check_words, read_answer
from annotate.work.moves import move, seen
from annotate.work.permit import PAUSED, check_willing, running

# The cases by which a list may be cut: what is checked blind, whatever for, and of all others what people answered. A
# finer one, such as second opinions, would tell of a blind unit what nobody is to know of it.
BLIND, UNANSWERED, AGREEING, DIFFERING = CASES = ("blind", "unanswered", "agreeing", "differing")
# By what a list is in order: the order of rows, and the values of one.
_ORDER, _WHERE = ("-blind", "since", "position"), ("blind", "since", "position")
# As many characters as a reason has at most.
REASON = 200
JUDGED = gettext_noop("You have judged this one as an annotator, so another adjudicator must decide it.")
# As many of their own reasons as an adjudicator is offered again at most.
OWN_REASONS = 9


def to_adjudicate(task: Task, annotator: Annotator, language: str = "", case: str = ""):
    """Units that this adjudicator may decide, in the order in which they are worked through: first those that are
    checked blind, since figures wait for them, in the order of the draw; then the others, first what waits longest. If
    a language is given, those that were in its queue; if a case is given, those of this case.

    `blind` marks a unit that is checked: its queue would tell what detectors or people said of it, so no language lists
    it, and the time since which it waits has no part in its place.
    """
    units = _of_cases(_placed(task.units.filter(stage=stages.ADJUDICATION), annotator))
    if language:
        visits = {"transitions__to_stage": stages.QUEUED, "transitions__language": language}
        units = units.filter(blind=False, pk__in=task.units.filter(**visits).order_by().values("pk"))
    if case:
        units = units.filter(case=case)
    return units.exclude(pk__in=_judged(annotator)).select_related("item", "task").order_by(*_ORDER)


def place_of(unit: Unit, annotator: Annotator) -> tuple:
    """By what a unit has its place among those of `to_adjudicate`, whether it waits there or not; for `places`."""
    return _comparable(*_placed(Unit.objects.filter(pk=unit.pk), annotator).values_list(*_WHERE).get())


def places(units) -> list[tuple[tuple, int]]:
    """The place and the key of each unit of `to_adjudicate`, in order."""
    return [(_comparable(*where), unit) for *where, unit in units.values_list(*_WHERE, "pk")]


def _placed(units, annotator: Annotator):
    history = Transition.objects.filter(unit=models.OuterRef("pk"))
    came = history.filter(to_stage=stages.ADJUDICATION).order_by().values("unit")
    # Keys of moves, which are given one after another, are compared more quickly than times.
    first = models.Subquery(came.annotate(first=models.Min("pk")).values("first"))
    since = models.Case(
        models.When(blind=False, then=first), default=models.Value(0), output_field=models.BigIntegerField()
    )
    return units.annotate(blind=models.Exists(_to_be_blind(history, annotator))).annotate(since=since)


def _of_cases(units):
    answers = Judgment.objects.live().answers().filter(unit=models.OuterRef("pk")).order_by()
    said = answers.values("unit").annotate(number=models.Count("label", distinct=True)).values("number")
    case = models.Case(
        models.When(blind=True, then=models.Value(BLIND)),
        models.When(said=None, then=models.Value(UNANSWERED)),
        models.When(said=1, then=models.Value(AGREEING)),
        default=models.Value(DIFFERING),
    )
    return units.alias(said=models.Subquery(said)).annotate(case=case)


def _comparable(blind: bool, since: int, position: int) -> tuple:
    return (not blind, since, position)


def is_blind(unit: Unit, annotator: Annotator) -> bool:
    """Whether an adjudicator is told nothing of what detectors and people said of a unit."""
    return _to_be_blind(unit.transitions, annotator).exists()


def _to_be_blind(moves, annotator: Annotator):
    """The moves after which a unit is decided blind. That another adjudicator is asked after a decision of one's own
    does not show in what one is told.
    """
    return moves.filter(event__in=stages.BLIND).exclude(judgment__annotator=annotator)


def told(units: Iterable[Unit], annotator: Annotator) -> list[tuple[Unit, list[str]]]:
    """Units of `to_adjudicate` for this adjudicator, each with its cells under Pages.list_heads; none for a
    unit that is checked blind.
    """
    listed = list(units)
    answers = _answers(listed, annotator)
    return [(unit, [] if unit.blind else unit.task.kind.pages.list_row(unit, answers[unit.pk])) for unit in listed]


def _answers(units: Iterable[Unit], annotator: Annotator) -> dict[int, list[str]]:
    """Unit -> what people answered, in order, as this adjudicator is told it."""
    by_key = {unit.pk: unit for unit in units}
    live = Judgment.objects.live().answers().filter(unit__in=by_key).order_by("pk").values_list("unit_id", "label")
    labelled = [(by_key[unit], label) for unit, label in live]
    answers = defaultdict(list)
    for (unit, _stored), label in zip(labelled, seen(annotator, labelled), strict=True):
        answers[unit.pk].append(label)
    return answers


def waiting_in(annotator: Annotator, tasks: Iterable[Task]) -> dict[int, int]:
    """Task -> how many of its units this adjudicator may decide."""
    units = Unit.objects.filter(task__in=list(tasks), stage=stages.ADJUDICATION).exclude(pk__in=_judged(annotator))
    return dict(units.order_by().values_list("task").annotate(models.Count("pk")))


def for_others(task: Task, annotator: Annotator) -> int:
    """How many units wait for another adjudicator, because this one has judged them."""
    return task.units.filter(stage=stages.ADJUDICATION, pk__in=_judged(annotator)).count()


def for_others_told(task: Task, annotator: Annotator) -> int:
    """The same as the adjudicator is told: nothing while the task is open, since it goes up just after an answer that
    is checked, and after a decision that another makes too.
    """
    return 0 if task.is_open else for_others(task, annotator)


def _judged(annotator: Annotator):
    return Judgment.objects.binding().filter(annotator=annotator).values("unit")


def own_decision(unit: Unit, annotator: Annotator) -> Judgment | None:
    """This adjudicator's decision of a unit, if it stands and the task is open. Whether another adjudicator was asked
    too they are not told until the task is closed: whoever knows it could mend theirs.
    """
    if not unit.task.is_open:
        return None
    return unit.judgments.live().decisions().filter(annotator=annotator).first()


def adjudicated(task: Task, annotator: Annotator):
    """Units whose votes and judgments this adjudicator may see: those that wait for an adjudicator, or that an
    adjudicator has decided. While the task is open, none that they answered themselves: that such a unit is decided
    again tells which answers are checked.
    """
    decided = Judgment.objects.decisions().values("unit")
    seen = Q(stage=stages.ADJUDICATION) | Q(stage__in=[stages.LABELLED, stages.DISCARDED], pk__in=decided)
    units = task.units.filter(seen).select_related("item", "task")
    return units.exclude(pk__in=_read(annotator).values("unit")) if task.is_open else units


def shown(task: Task, annotator: Annotator, unit_id: int) -> Unit:
    """One of these units. NotAllowed for any unit of an open task that they answered themselves, wherever it is by now;
    NotFound if it is none of these units.
    """
    if task.is_open and _read(annotator).filter(unit=unit_id, unit__task=task).exists():
        raise NotAllowed(_(JUDGED))
    if unit := adjudicated(task, annotator).filter(pk=unit_id).first():
        return unit
    raise NotFound(_("There is no such unit."))


def _read(annotator: Annotator):
    return Judgment.objects.binding().filter(annotator=annotator, lease__isnull=False).order_by()


def decisions(annotator: Annotator, task: Task):
    """What this adjudicator has decided and not taken back, the latest first."""
    own = Judgment.objects.live().filter(annotator=annotator, unit__task=task, lease=None)
    return own.select_related("unit__item", "unit__task").order_by("-pk")


def own_reasons(annotator: Annotator, task: Task) -> list[str]:
    """What an adjudicator has said before, in this task, of how they know: what they said most often first."""
    said = (
        decisions(annotator, task)
        .order_by()
        .values_list("reason")
        .annotate(times=models.Count("pk"), last=models.Max("pk"))
    )
    return [reason for reason, *_ in said.order_by("-times", "-last")[:OWN_REASONS]]


def read_decision(kind: Kind, sent: list[str], reason: str, comment: str, **details: Any) -> Answer:
    """The decision that a page or a client sent; without an answer it is a discard. details: further fields of Answer.
    InvalidAnswer if it is unreadable.
    """
    return replace(read_answer(kind, sent, comment=comment, **details), reason=reason)


def settle(annotator: Annotator, unit_id: int, answer: Answer) -> Judgment:
    """Give a unit its label, unless another adjudicator is asked too. answer.reason, which is required, says how the
    adjudicator knows.
    """
    return _decide(annotator, unit_id, Judgment.SETTLE, answer)


def discard(annotator: Annotator, unit_id: int, reason: str, comment: str = "") -> Judgment:
    """Leave a unit out of the gold set, because nobody can tell its label; unless others have settled it."""
    return _decide(annotator, unit_id, Judgment.DISCARD, Answer(label="", reason=reason, comment=comment))


def check_reason(reason: str, comment: str = "") -> None:
    """InvalidAnswer where the words of a decision cannot be stored, or say nothing."""
    if not reason.strip():
        raise InvalidAnswer(_("Say in a few words how you know, so that others can follow the decision."))
    check_words(reason, comment)
    if len(reason) > REASON:
        raise InvalidAnswer(_("The reason is longer than %(most)s characters. Please shorten it.") % {"most": REASON})


@transaction.atomic
def _decide(annotator: Annotator, unit_id: int, kind: str, answer: Answer) -> Judgment:
    unit = locked(unit_id)
    if running(annotator, unit.task):
        raise Paused(_(PAUSED))
    for control in unit.task.controls:
        answer = control.stored(answer, unit, annotator)
    own = unit.judgments.binding().filter(annotator=annotator).first()
    said = (kind, answer.label, answer.reason.strip(), answer.comment.strip())
    if own and (own.kind, own.label, own.reason, own.comment) == said:
        return own  # a retry
    check_willing(annotator, unit.task, to_read_more=True)
    if unit.stage != stages.ADJUDICATION:
        raise WrongStage(_("This one is not waiting for an adjudicator; somebody may have decided it meanwhile."))
    if own and own.kind in (Judgment.SETTLE, Judgment.DISCARD):
        raise NotAllowed(_("You have decided this one already. To decide otherwise, take your decision back first."))
    if own:
        raise NotAllowed(_(JUDGED))
    check_reason(answer.reason, answer.comment)
    if kind == Judgment.SETTLE:
        check(unit.task.kind, replace(answer, reason="", comment=""), unit)
    for control in unit.task.controls:
        control.shown(unit, annotator)
    judgment = Judgment.objects.create(
        unit=unit,
        annotator=annotator,
        kind=kind,
        label=answer.label,
        reason=answer.reason.strip(),
        comment=answer.comment.strip(),
        answered_at=timezone.now(),
    )
    for control in unit.task.controls:
        control.judged(judgment, answer)
    event, stage, label = came_to(unit)
    move(unit, event, stage, by=annotator.user, judgment=judgment, label=label)
    for control in unit.task.controls:
        control.moved(unit)
    return judgment


def came_to(unit: Unit, *, ends: bool = False) -> tuple[str, str, str]:
    """What the standing decisions of a unit come to: event, stage and label. ends: nobody else is asked."""
    said = list(unit.judgments.live().decisions().order_by("pk").values_list("label", flat=True))
    match said:
        case [label] if label and any(control.is_seconded(unit) for control in unit.task.controls):
            asks = "seconded"
        case [first, second] if first != second:
            asks = "differed"
        case _:
            asks = ""
    if asks and not ends and somebody_else(unit):
        return asks, stages.ADJUDICATION, ""
    if asks == "seconded":
        nobody_else(unit)
    # What two say prevails. If all differ, it is the third's word, and without a third the first's.
    label = next((label for label in said if said.count(label) > 1), said[-1] if len(said) > 2 else said[0])
    return ("settled", stages.LABELLED, label) if label else ("discarded", stages.DISCARDED, "")


def somebody_else(unit: Unit) -> bool:
    """Whether there is an adjudicator who may still decide a unit."""
    judged = unit.judgments.binding().values("annotator")
    paused = unit.task.pauses.filter(lifted_at=None).values("annotator")
    return adjudicators().exclude(pk__in=judged).exclude(pk__in=paused).exists()


@transaction.atomic
def unsettle(annotator: Annotator, unit_id: int) -> Unit:
    """Take back the adjudicator's own decision; the unit waits for an adjudicator again. What others have decided of it
    stands, and counts when it is decided anew.
    """
    unit = locked(unit_id)
    own = unit.judgments.live().decisions().filter(annotator=annotator).first()
    if own is None:
        raise NothingToUndo(_("There is no decision of yours here to take back."))
    check_willing(annotator, unit.task)
    if unit.transitions.filter(event="withdrawn").exists():
        raise WrongStage(_("A manager has left this one out since, so your decision cannot be taken back."))
    own.voided_at = timezone.now()
    own.save(update_fields=["voided_at"])
    move(unit, "unsettled", stages.ADJUDICATION, by=annotator.user, judgment=own)
    return unit


def locked(unit_id: int) -> Unit:
    """A unit whose row is locked until the transaction ends. NotFound if there is none."""
    # no_key: as in judgments.py.
    units = Unit.objects.select_for_update(of=("self",), no_key=True).select_related("task", "item")
    unit = units.filter(pk=unit_id).first()
    if unit is None:
        raise NotFound(_("There is no such unit."))
    return unit


# --- What an adjudicator looks at together: cases of one text, and cases that are settled in one act because all who
# answered them said the same. Each is settled by itself, by `settle`.


# As many cases of one text as are shown beside one of them, at most.
OF_ONE_TEXT = 20


@dataclass
class Together:
    """What became of cases that were to be settled together; refused: each with the reason why it was not, and None for
    one that adjudicators do not see now.
    """

    settled: list[Judgment] = field(default_factory=list)
    refused: list[tuple[Unit | None, Refusal]] = field(default_factory=list)


def agreed(units: Iterable[Unit], annotator: Annotator) -> dict[int, str]:
    """Unit of `to_adjudicate` -> what all who answered it said, as it is told to this adjudicator; only those that can
    be settled together with others. Of work that may hurt, each text is looked at by itself.
    """
    listed = [unit for unit in units if unit.case == AGREEING and not unit.task.kind.sensitive]
    return {unit: label for unit, (label, *_rest) in _answers(listed, annotator).items()}


def settle_together(annotator: Annotator, task: Task, chosen: Mapping[int, str], reason: str) -> Together:
    """Settle units with what all who answered them said, each in a transaction of its own, so that one that has changed
    meanwhile leaves the others settled.

    chosen: unit -> what the adjudicator was told that they all said. InvalidAnswer, and nothing is settled, if no unit
    is chosen or there is no reason.
    """
    if not chosen:
        raise InvalidAnswer(_("Mark the cases first that you want to settle together."))
    check_reason(reason)
    found = Together()
    shown = {unit.pk: unit for unit in adjudicated(task, annotator).filter(pk__in=chosen)}
    for key, label in chosen.items():
        unit = shown.get(key)
        try:
            if unit is None:
                raise WrongStage(_("One of them no longer waits for an adjudicator."))
            found.settled.append(_settle(annotator, unit, label, reason))
        except Refusal as refusal:
            found.refused.append((unit, refusal))
    return found


@transaction.atomic
def _settle(annotator: Annotator, unit: Unit, label: str, reason: str) -> Judgment:
    locked(unit.pk)
    # A retry finds the decision that the adjudicator has made already.
    own = unit.judgments.live().decisions().filter(annotator=annotator).exists()
    waits = list(to_adjudicate(unit.task, annotator).filter(pk=unit.pk))
    if waits and not own and agreed(waits, annotator).get(unit.pk) != label:
        # Whatever has happened to it: whoever is asked for a second opinion is not to know.
        raise NotAllowed(_("It can no longer be settled together with others. Please decide it by itself."))
    return settle(annotator, unit.pk, read_decision(unit.task.kind, [label], reason, ""))


def of_one_text(unit: Unit, annotator: Annotator) -> list[tuple[Unit, list[str]]]:
    """Other units about the same text that wait for this adjudicator, in this task and in others, each with what its
    kind tells of it; for a unit that is not blind.

    None that is checked blind: who has seen what was said of the text would no longer be blind.
    """
    items = Unit.objects.filter(Q(pk=unit.pk) | Q(copy_of=unit.pk)).order_by().values("item")
    tasks = Unit.objects.filter(item__in=items).order_by().values("task")
    found: list[Unit] = []
    for task in Task.objects.filter(pk__in=tasks).order_by("pk"):
        if task.kind.sensitive is None and not running(annotator, task):
            waiting = to_adjudicate(task, annotator).filter(blind=False, item__in=items)
            found += waiting.exclude(pk=unit.pk)[:OF_ONE_TEXT]
    return told(found[:OF_ONE_TEXT], annotator)


def nobody_else(unit: Unit) -> None:
    """Write down that a lot asks for a second adjudicator, and that there is none."""
    commitments.keep(unit.task, NOBODY, (), {}, [unit.item.key], [])


def adjudicators() -> models.QuerySet[Annotator]:
    """Those who may log in."""
    return Annotator.objects.filter(adjudicates=True, user__is_active=True)
