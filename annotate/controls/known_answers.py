"""Records whose answer is known: hidden among the work to tell how people do, and asked in a test before they begin."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from annotate.core.refusals import InvalidAnswer
from annotate.goldsets.exclusions import known_of
from annotate.kinds.control import Place, QualityControl, register
from annotate.models import Judgment, Lease, Task, Unit
from annotate.quality.gold_answers import GoldAnswerError, check_pool, store, without_twins
from annotate.quality.honeypots import Turn, in_order, is_due, turn_in
from annotate.work.eligible import unjudged_by
from annotate.work.interventions import pause_if_failing
from annotate.work.permit import Permit
from annotate.work.queue import PlaceOf, free_place
from annotate.work.task_opening import Entry
from annotate.work.unit_entry import add_units, shuffled
from corpora.database.statements import prepared
from corpora.draws.items import items_of

# What the pool of gold answers must suffice for.
OF_POOL = {"test_items", "tries"}


class GoldAnswers(QualityControl):
    """Of the units that a person is given a share has a known answer. Whoever fails too many of them is paused."""

    name = "gold answers"
    switch = "gold_share"
    inputs = ("gold", "gold_column")
    hides = True

    def enter(self, entry: Entry) -> None:
        task = entry.task
        hidden = store(task, list(entry.gold), items_of(entry.corpus, [row.id for row in entry.gold]))
        for control in task.kind.quality_controls:
            control.gold_stored(task, entry.suggested)
        answers = {item.pk: label for item, label in hidden.items()}
        add_units(task, list(hidden), known_answers=answers, honeypots=True, suggested=entry.suggested)
        check_pool(task)
        entry.items = without_twins(task, shuffled(entry.items, entry.seed))

    def place(self, unit: Unit, permit: Permit) -> PlaceOf:
        annotator = permit.annotator
        pots_of = _pots[annotator.adjudicates, annotator.takes_disturbing]
        pots = pots_of(permit.task.pk, annotator.pk, unit.language, unit.pk)
        met = {pk: bool(number) for pk, *_, number in pots}
        hidden = in_order(permit, [pot for *pot, was_given, _ in pots if not was_given])
        # As long as there are such, one that nobody has met who has not answered the unit: so a gold answer has no more
        # readers than the unit, and a colleague to whom it comes if it is given back can be given it.
        hidden.sort(key=met.__getitem__)
        turn = turn_in(permit, unit.language)
        due = hidden if is_due(permit, unit.language, turn) else []
        return partial(_what_comes, unit=unit, due=due, pots=[pk for pk, *_ in pots], turn=turn)

    def known(self, task: Task, units: Iterable[Any]) -> Mapping[int, str]:
        return known_of(task, units)

    def pauses(self, permit: Permit) -> bool:
        return pause_if_failing(permit)


class QualificationTest(QualityControl):
    """People begin in a language once they have passed a test of records with a known answer."""

    name = "test"
    switch = "test_items"
    tabs = (("manage-tests", "Test and gold answers"), ("manage-rule", "Pause rule"))

    def check_change(self, task: Task, changed: Sequence[str]) -> None:
        if OF_POOL.isdisjoint(changed):
            return
        try:
            # Refused here, and not to the person who takes it.
            check_pool(task)
        except GoldAnswerError as error:
            raise InvalidAnswer(str(error)) from error


def _of_pots(adjudicates: bool, takes_disturbing: bool) -> Callable[..., list[Any]]:
    @prepared
    def pots(task, annotator, language, work) -> QuerySet[Unit]:
        """The gold answers of a language that a person can be given: unit, id of its item, whether they have it or gave
        it back, and to how many others it was shown who have not answered a unit of work.
        """
        answered = Judgment.objects.filter(unit=work).order_by().values("annotator")
        met = Lease.objects.filter(unit=OuterRef("pk")).exclude(annotator=annotator).exclude(annotator__in=answered)
        given = Lease.objects.filter(unit=OuterRef("pk"), annotator=annotator, instead_of__isnull=False)
        given = given.filter(Q(closed_at=None) | Q(outcome__in=Lease.RETURNED))
        hidden = Unit.objects.filter(task=task, honeypot=True, language=language).order_by()
        left = unjudged_by(hidden, annotator, adjudicates=adjudicates, takes_disturbing=takes_disturbing)
        # Counted, and not asked whether there is one: PostgreSQL would make a join of that.
        number = met.order_by().values("unit").annotate(number=Count("pk")).values("number")
        left = left.annotate(given=Exists(given), met=Coalesce(Subquery(number), 0))
        return left.values_list("pk", "item__key", "given", "met")

    return pots


_pots = {own: _of_pots(*own) for own in product((False, True), repeat=2)}


def _what_comes(
    leases: list[Lease], own: list[Lease], *, unit: Unit, due: Sequence[int], pots: Collection[int], turn: Turn
) -> Place:
    """What the annotator is shown at the place of a unit of work.

    due: if a gold answer is due, those from which it is taken, in their order. pots: all gold answers that the
    annotator can be given. turn: where their lot stands.

    First comes what they gave back there themselves, which no lot decides; then the gold answer that is due; then one
    that somebody else gave back there, which takes the place of the unit and is work to the lot; then the unit itself.
    """
    stood = {lease.unit_id for lease in leases}.intersection(pots)
    waiting = {pk for pk in stood if free_place(unit, leases, stand_in=pk) is not None}
    back = _own_returned(own)
    if back and (back.unit_id == unit.pk or back.unit_id in waiting):
        return Place(back.unit_id, {"turn": None, "in_place": back.in_place})
    if due:
        # One that has not stood there before, if there is such: what others said to that one would count.
        return Place(min(due, key=lambda pk: pk in stood), {"turn": turn})
    if theirs := _last_returned(leases, waiting):
        return Place(theirs.unit_id, {"turn": turn, "in_place": True})
    return Place(unit.pk, {"turn": turn})


def _last_returned(leases: Iterable[Lease], golds: Collection[int]) -> Lease | None:
    """The lease of a gold answer that was given back last; golds: those that may be handed out."""
    found = [each for each in leases if each.outcome in Lease.RETURNED and each.unit_id in golds]
    return max(found, key=lambda each: each.pk, default=None)


def _own_returned(own: Sequence[Lease]) -> Lease | None:
    """The lease that a person gave back last, of the unit or of a gold answer that stood for it."""
    return max((each for each in own if each.outcome in Lease.RETURNED), key=lambda each: each.pk, default=None)


register(GoldAnswers())
register(QualificationTest())
