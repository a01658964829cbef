"""Adjudication: settling or discarding a unit, and undoing such a decision.

Adjudicators decide units that the annotators' answers did not settle, and units that were selected for a check. For a
random share of their decisions, a second adjudicator decides too (controls/checks.py). If they differ, a third
adjudicator is asked.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import models, transaction
from django.db.models import Count, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotate.core import stages
from annotate.core.draws.committed_draws import NOBODY
from annotate.core.refusals import InvalidAnswer, NotAllowed, NotFound, NothingToUndo, Paused, Refusal, WrongStage
from annotate.kinds import Answer, Kind
from annotate.models import Annotator, Judgment, Membership, Task, Transition, Unit
from annotate.models.work import Judgments
from annotate.quality import commitments
from annotate.work.judgments import check, check_texts, read_answer
from annotate.work.moves import labels_as_seen, move
from annotate.work.permit import NO_ADJUDICATOR, PAUSED, adjudicates, current_pause, permit_of

# Values of the case filter on the list of units. All units that are decided blind share one case. Separate cases, e.g.
# for checks and second opinions, would reveal why a unit is listed. Other units' cases depend on their answers.
BLIND, UNANSWERED, AGREEING, DIFFERING = CASES = ("blind", "unanswered", "agreeing", "differing")
# Sort order of the list of units, and the fields of the sort key.
_ORDER, _SORT_FIELDS = ("-blind", "since", "position"), ("blind", "since", "position")
# Maximum length of a reason, in characters.
REASON = 200
JUDGED = gettext_noop("You have judged this case as an annotator, so another adjudicator must decide it.")
# Maximum number of earlier reasons suggested to an adjudicator.
OWN_REASONS = 9


def adjudicates_in(annotator: Annotator, task: Task) -> bool:
    """Return whether an annotator is an adjudicator in a task."""
    role = task.memberships.filter(annotator=annotator).values_list("role", flat=True).first()
    return adjudicates(annotator, task, role)


def check_may_adjudicate(annotator: Annotator, task: Task, *, opens_unit: bool = False) -> None:
    """Check that an annotator may act as an adjudicator in a task.

    opens_unit: whether another unit will be shown, so that the daily limit for sensitive work applies.

    Raise NotAllowed if they aren't an adjudicator in the task, Paused if they are paused, NotAgreed if the work is
    sensitive and they have not consented, and EnoughToday if they have reached the daily limit.
    """
    if not adjudicates_in(annotator, task):
        raise NotAllowed(_(NO_ADJUDICATOR))
    if current_pause(annotator, task):
        raise Paused(_(PAUSED))
    if not task.kind.sensitive:
        return
    permit = permit_of(annotator, task).to_revise()
    if permit.stopped and (opens_unit or not permit.has_agreed):
        raise permit.stopped


def to_adjudicate(task: Task, annotator: Annotator, language: str = "", case: str = "") -> QuerySet[Any]:
    """Return the units that an adjudicator can decide, next unit first.

    Units that are decided blind come first, in draw order, because published figures depend on them. Their
    annotation `blind` is true. The other units follow, longest waiting time first.

    A blind unit's queue or waiting time would reveal the answers of detectors or annotators. Blind units are therefore
    listed under no language, and their waiting time does not affect the order.

    task: the task.
    annotator: the adjudicator.
    language: only units that have been in this queue; "" for all queues.
    case: only units of this case, one of CASES; "" for all cases.
    """
    units = _with_case(_with_sort_fields(task.units.filter(stage=stages.ADJUDICATION), annotator))
    if language:
        visits = Transition.objects.filter(unit=models.OuterRef("pk"), to_stage=stages.QUEUED, language=language)
        units = units.filter(models.Exists(visits), blind=False)
    if case:
        units = units.filter(case=case)
    return units.exclude(pk__in=_judged_units(annotator)).select_related("item", "task").order_by(*_ORDER)


SortKey = tuple[bool, int, int]  # (not blind, primary key of the transition into adjudication, position)


def sort_key(unit: Unit, annotator: Annotator) -> SortKey:
    """Return a unit's sort key in the order of `to_adjudicate`, even if the unit is not in that list."""
    return _to_sort_key(*_with_sort_fields(Unit.objects.filter(pk=unit.pk), annotator).values_list(*_SORT_FIELDS).get())


def sort_keys(units: QuerySet[Unit], annotator: Annotator) -> list[tuple[SortKey, int]]:
    """Return the sort key and the primary key of each unit, in the order of `to_adjudicate`."""
    placed = _with_sort_fields(units, annotator).order_by().values_list(*_SORT_FIELDS, "pk")
    return sorted((_to_sort_key(*where), unit) for *where, unit in placed)


def units_in_order(keys: Iterable[int], annotator: Annotator) -> list[Any]:
    """Return the units with these primary keys, in the order and with the annotations of `to_adjudicate`."""
    units = _with_case(_with_sort_fields(Unit.objects.filter(pk__in=list(keys)), annotator))
    return list(units.select_related("item", "task").order_by(*_ORDER))


def _with_sort_fields(units: QuerySet[Unit], annotator: Annotator) -> QuerySet[Any]:
    history = Transition.objects.filter(unit=models.OuterRef("pk"))
    came = history.filter(to_stage=stages.ADJUDICATION).order_by().values("unit")
    # Order by the transitions' primary keys: they increase over time and compare faster than timestamps.
    first = models.Subquery(came.annotate(first=models.Min("pk")).values("first"))
    since = models.Case(
        models.When(blind=False, then=first), default=models.Value(0), output_field=models.BigIntegerField()
    )
    return units.annotate(blind=models.Exists(_blind_transitions(history, annotator))).annotate(since=since)


def _with_case(units: QuerySet[Unit]) -> QuerySet[Any]:
    answers = Judgment.objects.live().answers().filter(unit=models.OuterRef("pk")).order_by()
    distinct = answers.values("unit").annotate(number=models.Count("label", distinct=True)).values("number")
    case = models.Case(
        models.When(blind=True, then=models.Value(BLIND)),
        models.When(distinct_answers=None, then=models.Value(UNANSWERED)),
        models.When(distinct_answers=1, then=models.Value(AGREEING)),
        default=models.Value(DIFFERING),
    )
    return units.alias(distinct_answers=models.Subquery(distinct)).annotate(case=case)


def _to_sort_key(blind: bool, since: int, position: int) -> SortKey:
    return (not blind, since, position)


def is_blind(unit: Unit, annotator: Annotator) -> bool:
    """Return whether an adjudicator must decide a unit without seeing the answers of detectors and annotators."""
    return _blind_transitions(unit.transitions.all(), annotator).exists()


def _blind_transitions(moves: QuerySet[Transition], annotator: Annotator) -> QuerySet[Transition]:
    """Return the transitions after which a unit is decided blind.

    A transition caused by this adjudicator's own decision does not count. Otherwise, they could tell that a second
    opinion on their decision was requested.
    """
    return moves.filter(event__in=stages.BLIND).exclude(judgment__annotator=annotator)


def rows(units: Iterable[Any], annotator: Annotator, called: Callable[[str], str] = str) -> list[tuple[Any, list[str]]]:
    """Return the units with their table cells, one for each heading in Pages.list_heads.

    A unit that is decided blind has no cells.

    units: units of `to_adjudicate`.
    called: function that returns the text to show for a language code.
    """
    listed = list(units)
    answers = _answers(listed, annotator)
    return [
        (unit, [] if unit.blind else unit.task.kind.pages.list_row(unit, answers[unit.pk], called)) for unit in listed
    ]


def _answers(units: Iterable[Unit], annotator: Annotator) -> dict[int, list[str]]:
    """Return each unit's answers in the form that this adjudicator sees, oldest first, by the unit's primary key."""
    by_key = {unit.pk: unit for unit in units}
    live = Judgment.objects.live().answers().filter(unit__in=by_key).order_by("pk").values_list("unit_id", "label")
    labelled = [(by_key[unit], label) for unit, label in live]
    answers = defaultdict(list)
    for (unit, _stored), label in zip(labelled, labels_as_seen(annotator, labelled), strict=True):
        answers[unit.pk].append(label)
    return answers


def waiting_counts(annotator: Annotator, tasks: Iterable[Task]) -> dict[int, int]:
    """Count the units that this adjudicator may decide, by task."""
    units = Unit.objects.filter(task__in=list(tasks), stage=stages.ADJUDICATION).exclude(
        pk__in=_judged_units(annotator)
    )
    return dict(units.order_by().values_list("task").annotate(models.Count("pk")))


def for_others(task: Task, annotator: Annotator) -> int:
    """Count the units that another adjudicator must decide, because this one has already judged them."""
    return task.units.filter(stage=stages.ADJUDICATION, pk__in=_judged_units(annotator)).count()


def visible_for_others(task: Task, annotator: Annotator) -> int:
    """Return the result of `for_others` if the task is closed, and 0 while the task is open.

    In an open task, the adjudicator must not see the true number. It increases right after they give an answer that is
    checked, or make a decision that gets a second opinion, so it would reveal both.
    """
    return 0 if task.is_open else for_others(task, annotator)


def _judged_units(annotator: Annotator) -> QuerySet[Judgment, Any]:
    return Judgment.objects.binding().filter(annotator=annotator).values("unit")


def own_decision(unit: Unit, annotator: Annotator) -> Judgment | None:
    """Return this adjudicator's decision on a unit, if the decision is in force and the task is open.

    The unit's page then shows only events before this decision. If adjudicators could see that a second adjudicator
    was asked, they could correct their own decision.
    """
    if not unit.task.is_open:
        return None
    return unit.judgments.live().decisions().filter(annotator=annotator).first()


def visible_units(task: Task, annotator: Annotator) -> QuerySet[Unit]:
    """Return the units whose votes and judgments this adjudicator may see.

    These are the units that are in adjudication or that an adjudicator has decided.

    While the task is open, units that the adjudicator has answered as an annotator are excluded, because seeing them
    here would reveal that the answer is being checked.
    """
    decided_units = Judgment.objects.decisions().values("unit")
    is_visible = Q(stage=stages.ADJUDICATION) | Q(stage__in=[stages.LABELLED, stages.DISCARDED], pk__in=decided_units)
    units = task.units.filter(is_visible).select_related("item", "task")
    return units.exclude(pk__in=_own_judgments(annotator).values("unit")) if task.is_open else units


def visible_unit(task: Task, annotator: Annotator, unit_id: int) -> Unit:
    """Return a unit whose votes and judgments this adjudicator may see.

    Raise NotAllowed if the task is open and they have answered the unit as an annotator, whatever its stage. Raise
    NotFound for any other unit that is not in `visible_units`.
    """
    if task.is_open and _own_judgments(annotator).filter(unit=unit_id, unit__task=task).exists():
        raise NotAllowed(_(JUDGED))
    if unit := visible_units(task, annotator).filter(pk=unit_id).first():
        return unit
    raise NotFound(_("This item does not exist."))


def _own_judgments(annotator: Annotator) -> Judgments:
    return Judgment.objects.binding().filter(annotator=annotator, lease__isnull=False).order_by()


def decisions(annotator: Annotator, task: Task) -> QuerySet[Judgment]:
    """Return this adjudicator's decisions that are in force, newest first."""
    in_force = Judgment.objects.live().filter(annotator=annotator, unit__task=task, lease=None)
    return in_force.select_related("unit__item", "unit__task").order_by("-pk")


def own_reasons(annotator: Annotator, task: Task) -> list[str]:
    """Return the reasons that an adjudicator has given in this task, at most OWN_REASONS, most frequent first."""
    reasons = (
        decisions(annotator, task)
        .order_by()
        .values_list("reason")
        .annotate(times=models.Count("pk"), last=models.Max("pk"))
    )
    return [reason for reason, *_ in reasons.order_by("-times", "-last")[:OWN_REASONS]]


def read_decision(kind: Kind, sent: list[str], reason: str, comment: str, **details: Any) -> Answer:
    """Parse a decision that a page or client sent. A decision without an answer discards the unit.

    details: other fields of Answer.

    Raise InvalidAnswer if the decision cannot be parsed.
    """
    return replace(read_answer(kind, sent, comment=comment, **details), reason=reason)


def settle(annotator: Annotator, unit_id: int, answer: Answer) -> Judgment:
    """Decide on a unit's label. The unit gets it immediately, unless a second adjudicator is asked too.

    answer: the label and the `reason` for it, which is required.
    """
    return _decide(annotator, unit_id, Judgment.SETTLE, answer)


def discard(annotator: Annotator, unit_id: int, reason: str, comment: str = "") -> Judgment:
    """Vote to exclude a unit from the gold set because its label cannot be determined.

    If other adjudicators have already decided on a label, their decisions count too (see `resolve_decisions`).
    """
    return _decide(annotator, unit_id, Judgment.DISCARD, Answer(label="", reason=reason, comment=comment))


def check_reason(reason: str, comment: str = "") -> None:
    """Check the text fields of a decision.

    Raise InvalidAnswer if the reason is empty or too long, or if a field cannot be stored.
    """
    if not reason.strip():
        raise InvalidAnswer(_("Enter a short reason, so that others can follow the decision."))
    check_texts(reason, comment)
    if len(reason) > REASON:
        raise InvalidAnswer(_("The reason is longer than %(most)s characters. Please shorten it.") % {"most": REASON})


@transaction.atomic
def _decide(annotator: Annotator, unit_id: int, kind: str, answer: Answer) -> Judgment:
    unit = lock_unit(unit_id)
    if current_pause(annotator, unit.task):
        raise Paused(_(PAUSED))
    for control in unit.task.hooks["stored"]:
        answer = control.stored(answer, unit, annotator)
    earlier = unit.judgments.binding().filter(annotator=annotator).first()
    content = (kind, answer.label, answer.reason.strip(), answer.comment.strip())
    if earlier and (earlier.kind, earlier.label, earlier.reason, earlier.comment) == content:
        return earlier  # a retry
    check_may_adjudicate(annotator, unit.task, opens_unit=True)
    if unit.stage != stages.ADJUDICATION:
        raise WrongStage(_("This case is not waiting for an adjudicator. Another adjudicator may have decided it."))
    if earlier and earlier.kind in (Judgment.SETTLE, Judgment.DISCARD):
        raise NotAllowed(_("You have already decided this case. To change your decision, undo it first."))
    if earlier:
        raise NotAllowed(_(JUDGED))
    check_reason(answer.reason, answer.comment)
    if kind == Judgment.SETTLE:
        check(unit.task.kind, replace(answer, reason="", comment=""), unit)
    for control in unit.task.hooks["shown"]:
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
    for control in unit.task.hooks["judged"]:
        control.judged(judgment, answer)
    event, stage, label = resolve_decisions(unit)
    move(unit, event, stage, by=annotator.user, judgment=judgment, label=label)
    for control in unit.task.hooks["moved"]:
        control.moved(unit)
    return judgment


def resolve_decisions(unit: Unit, *, is_final: bool = False) -> tuple[str, str, str]:
    """Return the event, the next stage and the label that result from the adjudicators' decisions in force.

    is_final: whether to decide now, without asking another adjudicator.
    """
    labels = list(unit.judgments.live().decisions().order_by("pk").values_list("label", flat=True))
    match labels:
        case [label] if label and any(control.is_seconded(unit) for control in unit.task.hooks["is_seconded"]):
            event_to_ask = "seconded"
        case [first, second] if first != second:
            event_to_ask = "differed"
        case _:
            event_to_ask = ""
    if event_to_ask and not is_final and has_other_adjudicator(unit):
        return event_to_ask, stages.ADJUDICATION, ""
    if event_to_ask == "seconded":
        _record_no_second(unit)
    # A label that two adjudicators chose wins. Otherwise, the third decision counts, or the first if there's no third.
    label = next((label for label in labels if labels.count(label) > 1), labels[-1] if len(labels) > 2 else labels[0])
    return ("settled", stages.LABELLED, label) if label else ("discarded", stages.DISCARDED, "")


def has_other_adjudicator(unit: Unit) -> bool:
    """Return whether there is an adjudicator who has not judged the unit and is not paused."""
    judged = unit.judgments.binding().values("annotator")
    paused = unit.task.pauses.filter(lifted_at=None).values("annotator")
    return adjudicators(unit.task).exclude(pk__in=judged).exclude(pk__in=paused).exists()


@transaction.atomic
def unsettle(annotator: Annotator, unit_id: int) -> Unit:
    """Undo the adjudicator's own decision, which returns the unit to adjudication.

    Other adjudicators' decisions remain in force and count when the unit is decided again.
    """
    unit = lock_unit(unit_id)
    decision = unit.judgments.live().decisions().filter(annotator=annotator).first()
    if decision is None:
        raise NothingToUndo(_("You have no decision here to undo."))
    check_may_adjudicate(annotator, unit.task)
    if unit.transitions.filter(event="withdrawn").exists():
        raise WrongStage(_("A manager has excluded this case since, so your decision cannot be undone."))
    decision.voided_at = timezone.now()
    decision.save(update_fields=["voided_at"])
    move(unit, "unsettled", stages.ADJUDICATION, by=annotator.user, judgment=decision)
    return unit


def lock_unit(unit_id: int) -> Unit:
    """Return a unit with its row locked until the transaction ends.

    Raise NotFound if the unit does not exist.
    """
    # no_key: see judgments.py.
    units = Unit.objects.select_for_update(of=("self",), no_key=True).select_related("task", "item")
    unit = units.filter(pk=unit_id).first()
    if unit is None:
        raise NotFound(_("This item does not exist."))
    return unit


# --- bulk decisions on cases with the same text or with unanimous answers; `settle` still decides each case separately


# Maximum number of cases with the same text that are listed with a case.
SAME_TEXT = 20


@dataclass
class BulkResult:
    """The result of settling several cases at once.

    settled: the new decisions.
    refused: (case, error) pairs of cases that were not settled. `case` is None if the adjudicator can no longer see it.
    """

    settled: list[Judgment] = field(default_factory=list)
    refused: list[tuple[Unit | None, Refusal]] = field(default_factory=list)


def agreed_labels(units: Iterable[Any], annotator: Annotator) -> dict[int, str]:
    """Return a dict from primary key to unanimous label, for the units that can be settled in bulk.

    Labels are in the form that this adjudicator sees. Sensitive texts are left out, because they must be viewed one at
    a time.

    units: units of `to_adjudicate`.
    """
    listed = [unit for unit in units if unit.case == AGREEING and not unit.task.kind.sensitive]
    return {unit: label for unit, (label, *_rest) in _answers(listed, annotator).items()}


def settle_together(annotator: Annotator, task: Task, labels: Mapping[int, str], reason: str) -> BulkResult:
    """Settle each unit with its unanimous label, in a transaction per unit.

    A unit that has changed in the meantime is refused, without affecting the other units.

    labels: the label that the adjudicator saw for each unit, by primary key.
    reason: the reason, which is stored with every decision.

    Raise InvalidAnswer if no unit is selected or the reason is missing. No unit is settled then.
    """
    if not labels:
        raise InvalidAnswer(_("Select the cases that you want to decide together."))
    check_reason(reason)
    result = BulkResult()
    units = {unit.pk: unit for unit in visible_units(task, annotator).filter(pk__in=labels)}
    for key, label in labels.items():
        unit = units.get(key)
        try:
            if unit is None:
                raise WrongStage(_("One of the cases is no longer waiting for an adjudicator."))
            result.settled.append(_settle(annotator, unit, label, reason))
        except Refusal as refusal:
            result.refused.append((unit, refusal))
    return result


@transaction.atomic
def _settle(annotator: Annotator, unit: Unit, label: str, reason: str) -> Judgment:
    lock_unit(unit.pk)
    # A decision by the same adjudicator means that this request is a retry.
    is_retry = unit.judgments.live().decisions().filter(annotator=annotator).exists()
    pending = list(to_adjudicate(unit.task, annotator).filter(pk=unit.pk))
    if pending and not is_retry and agreed_labels(pending, annotator).get(unit.pk) != label:
        # Don't say why. A more specific message could reveal that a second opinion was requested.
        raise NotAllowed(_("This case can no longer be decided together with others. Decide it separately."))
    return settle(annotator, unit.pk, read_decision(unit.task.kind, [label], reason, ""))


def with_same_text(
    unit: Unit, annotator: Annotator, called: Callable[[str], str] = str
) -> list[tuple[Unit, list[str]]]:
    """Return units of any task that have the same text and that this adjudicator can decide, with their table cells.

    Units that are decided blind are left out, because answers to the same text would suggest how to decide them.

    unit: a unit that is not decided blind.
    called: see `rows`.
    """
    items = Unit.objects.filter(Q(pk=unit.pk) | Q(copy_of=unit.pk)).order_by().values("item")
    tasks = Unit.objects.filter(item__in=items).order_by().values("task")
    cases: list[Unit] = []
    for task in Task.objects.filter(pk__in=tasks).order_by("pk"):
        if task.kind.sensitive is None and adjudicates_in(annotator, task) and not current_pause(annotator, task):
            waiting = to_adjudicate(task, annotator).filter(blind=False, item__in=items)
            cases += waiting.exclude(pk=unit.pk)[:SAME_TEXT]
    return rows(cases[:SAME_TEXT], annotator, called)


def _record_no_second(unit: Unit) -> None:
    """Record that a unit was drawn for a second opinion but that no second adjudicator is available."""
    commitments.record_draw(unit.task, NOBODY, (), {}, [unit.item.key], [])


def adjudicators(task: Task) -> models.QuerySet[Annotator]:
    """Return a task's active adjudicators: members with this role, and non-members who are adjudicators by account.

    In a task for members only, non-members don't count.
    """
    members = task.memberships.order_by()
    chosen = Q(pk__in=members.filter(role=Membership.ADJUDICATOR).values("annotator"))
    if not task.members_only:
        chosen |= Q(adjudicates=True) & ~Q(pk__in=members.values("annotator"))
    return Annotator.objects.filter(chosen, user__is_active=True)


def adjudicator_counts(tasks: Iterable[Task]) -> dict[int, int]:
    """Count each task's `adjudicators` with two queries. Returns the counts by the task's primary key."""
    active = Annotator.objects.filter(user__is_active=True)
    members = Membership.objects.filter(annotator__user__is_active=True).order_by().values_list("task")
    rows = members.annotate(
        chosen=Count("pk", filter=Q(role=Membership.ADJUDICATOR)),
        by_account=Count("pk", filter=Q(annotator__adjudicates=True)),
    )
    counts = {task: numbers for task, *numbers in rows}
    by_account_count = active.filter(adjudicates=True).count()
    return {
        task.pk: chosen + (0 if task.members_only else by_account_count - replaced)
        for task in tasks
        for chosen, replaced in [counts.get(task.pk, (0, 0))]
    }
