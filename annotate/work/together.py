"""What an adjudicator looks at together: cases of one text, and cases that are settled in one act because all who
answered them said the same. Each is settled by itself, by the operation of adjudication.py.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from annotate.core.refusals import InvalidAnswer, NotAllowed, Refusal, WrongStage
from annotate.models import Annotator, Judgment, Task, Unit
from annotate.quality.pauses import running
from annotate.work import adjudication
from annotate.work.moving import seen

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
    listed = [unit for unit in units if unit.case == adjudication.AGREEING and not unit.task.kind.sensitive]
    by_key = {unit.pk: unit for unit in listed}
    live = Judgment.objects.live().answers().filter(unit__in=by_key).order_by().values_list("unit_id", "label")
    said = [(by_key[unit], label) for unit, label in live.distinct()]
    labels = zip(said, seen(annotator, said), strict=True)
    return {unit.pk: label for (unit, _stored), label in labels}


def settle_together(annotator: Annotator, task: Task, chosen: Mapping[int, str], reason: str) -> Together:
    """Settle units with what all who answered them said, each in a transaction of its own, so that one that has changed
    meanwhile leaves the others settled.

    chosen: unit -> what the adjudicator was told that they all said. InvalidAnswer, and nothing is settled, if no unit
    is chosen or there is no reason.
    """
    if not chosen:
        raise InvalidAnswer(_("Mark the cases first that you want to settle together."))
    adjudication.check_reason(reason)
    found = Together()
    shown = {unit.pk: unit for unit in adjudication.adjudicated(task, annotator).filter(pk__in=chosen)}
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
    adjudication.locked(unit.pk)
    # A retry finds the decision that the adjudicator has made already.
    own = unit.judgments.live().decisions().filter(annotator=annotator).exists()
    waits = list(adjudication.to_adjudicate(unit.task, annotator).filter(pk=unit.pk))
    if waits and not own and agreed(waits, annotator).get(unit.pk) != label:
        # Whatever has happened to it: whoever is asked for a second opinion is not to know.
        raise NotAllowed(_("It can no longer be settled together with others. Please decide it by itself."))
    return adjudication.settle(annotator, unit.pk, adjudication.read_decision(unit.task.kind, [label], reason, ""))


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
            waiting = adjudication.to_adjudicate(task, annotator).filter(blind=False, item__in=items)
            found += waiting.exclude(pk=unit.pk)[:OF_ONE_TEXT]
    return adjudication.told(found[:OF_ONE_TEXT], annotator)
