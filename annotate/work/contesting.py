"""What follows from an audit that failed: people label all of the language on which the detectors had agreed."""

from django.db import transaction

from annotate.core import stages
from annotate.models import Task, Unit
from annotate.quality.audits import audits, labels_of, left, over_limit, waiting
from annotate.work.moving import send_to_people
from annotate.work.routes import Routes


def check_limit(unit: Unit) -> None:
    """After the last word on an audited unit: where its language fails the audit, send the rest of it to people.

    Only once all of the language's audit is done, since a few answers bound nothing. The caller has the unit locked.
    """
    task, label = unit.task, unit.agreed_label
    if "audit" not in task.kind.protections or unit.stage not in stages.FINISHED:
        return
    # Asked of every unit, audited or not, so that an answer takes as many statements for one as for another.
    if not left(task, label) or not label:
        return
    # Two last answers at a time would each take the other for outstanding: the second waits here for the first.
    task = locked(task)
    if not waiting(task).filter(agreed_label=label).exists() and over_limit(task, audits(task, [label])[label]):
        contest(task, label)


def locked(task: Task) -> Task:
    """The task, whose agreement only one transaction at a time judges or adds to."""
    return Task.objects.select_for_update(no_key=True).get(pk=task.pk)


@transaction.atomic
def contest(task: Task, label: str, by=None) -> int:
    """Have people label every unit on which the detectors agreed on a label. Returns how many.

    by: the manager who wants it; nobody where the audit itself does.
    """
    return send_to_people(task.units.filter(agreed_label=label), "contested", Routes.load(task), by)


def contest_all(task: Task, by=None) -> dict[str, int]:
    """The same for all languages of a task, as when its limit was lowered. Label -> units sent to people."""
    sent = {}
    unfinished = labels_of(waiting(task))
    for label, audit in audits(task).items():
        if label not in unfinished and left(task, label) and over_limit(task, audit):
            sent[label] = contest(task, label, by)
    return sent
