"""The order of the cases that wait for an adjudicator.

Sorting tens of thousands of cases takes longer than showing one of them. Each process therefore keeps the order of a
few long lists. Before it is used, the cases that have moved since are found by their transitions, and placed again.
"""

from bisect import insort
from collections import OrderedDict
from threading import Lock

from django.db.models import Max, QuerySet

from annotate.core import stages
from annotate.models import Annotator, Judgment, Task, Transition, Unit
from annotate.work.adjudication import Place, places

LONG = 1_000  # minimum number of cases in a list that is kept
KEPT = 4  # number of lists that are kept

Order = list[tuple[Place, int]]  # the sort key and the primary key of each case, in order
# Task and adjudicator -> the last transition when the list was read, and the list.
_kept: OrderedDict[tuple[int, int], tuple[int, Order]] = OrderedDict()
_lock = Lock()


def order(task: Task, annotator: Annotator) -> Order:
    """Return all cases that an adjudicator may decide, in the order of `to_adjudicate`."""
    key, waiting = (task.pk, annotator.pk), task.units.filter(stage=stages.ADJUDICATION)
    last = Transition.objects.aggregate(last=Max("pk"))["last"] or 0
    read_until, cases = _kept.get(key, (last + 1, []))
    if read_until <= last:
        cases = _moved(cases, waiting, annotator, read_until)
    # If transactions ended in another order than they began, a transition may have been missed.
    if read_until > last or len(cases) != waiting.count():
        cases = places(waiting, annotator)
    with _lock:
        if len(cases) >= LONG:
            _kept[key] = last, cases
            _kept.move_to_end(key)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    own = Judgment.objects.binding().filter(annotator=annotator, unit__task=task, unit__stage=stages.ADJUDICATION)
    judged = set(own.order_by().values_list("unit_id", flat=True))
    return [case for case in cases if case[1] not in judged] if judged else cases


def _moved(cases: Order, waiting: QuerySet[Unit], annotator: Annotator, read_until: int) -> Order:
    """Return the list with the cases that have had a transition since in their new places, or without them."""
    recent = Transition.objects.filter(pk__gt=read_until).order_by()
    moved = set(recent.values_list("unit_id", flat=True))
    cases = [case for case in cases if case[1] not in moved] if moved else cases
    for case in places(waiting.filter(pk__in=moved), annotator):
        insort(cases, case)
    return cases
