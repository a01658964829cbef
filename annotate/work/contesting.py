"""What follows from a failed audit: people label every post of the language on which the detectors had agreed."""

from django.db import transaction
from django.db.models import QuerySet, Subquery

from annotate.core import stages
from annotate.models import Job, Task, Unit
from annotate.quality.audits import audits, labels_of, left, over_limit, waiting
from annotate.work import jobs
from annotate.work.moving import NO_ROW, send_to_people
from annotate.work.routes import Routes
from corpora.prepared import prepared

AT_ONCE = 500  # posts that the answer which fails an audit sends to people by itself; more are a job


def check_limit(unit: Unit) -> None:
    """Called when an audited unit has its final label: if its language fails the audit, send the rest of it to people.

    This waits until the language's whole audit is done, since a few answers bound nothing. The caller has locked the
    unit.
    """
    task, label = unit.task, unit.agreed_label
    if "audit" not in task.kind.protections:
        return
    # This is asked of every unit, audited, checked or neither, so that every answer runs the same statements; only
    # where the label may fail do they find a row.
    judged = task.pk if label and unit.stage in stages.FINISHED else NO_ROW
    # Two simultaneous last answers would each count the other as outstanding, so the second waits here for the first.
    found = next(iter(_to_judge(judged)), None)
    # What people read of a language that failed waits too, and none of it need be looked through for its audit.
    if _to_fail(judged, label) and found and over_limit(found, audits(found, [label])[label]):
        _contest_after_answer(found, label)


def _contest_after_answer(task: Task, label: str) -> None:
    """With thousands of posts the person who answered would wait, and behind the task's lock everybody else."""
    if task.units.filter(stage=stages.AGREED, agreed_label=label).count() <= AT_ONCE:
        contest(task, label)
    elif not Job.objects.contesting(task).exists():
        jobs.begin("audit", {"task": task.name, "contest": True}, corpus=task.draw.corpus.name)


@prepared
def _to_judge(task) -> QuerySet[Task]:
    return _locked(task)


@prepared
def _to_fail(task, label) -> QuerySet[Task]:
    """The task, if machines label some of what they agree on, and all of its audit is done.

    Both are the first by an index whose order they are asked in. PostgreSQL plans this once for all labels, and would
    expect to meet one soon if it read through the table; where there is none it would read all of it.
    """
    agreed = Unit.objects.filter(task=task, agreed_label__range=(label, label)).order_by("agreed_label")
    first = {"agreed": agreed.filter(stage=stages.AGREED), "to_audit": waiting(agreed)}
    found = Task.objects.alias(**{name: Subquery(units.values("pk")[:1]) for name, units in first.items()})
    return found.filter(pk=task, agreed__isnull=False, to_audit__isnull=True)


def locked(task: Task) -> Task:
    """The task, locked, so that only one transaction at a time judges its agreement or adds to it."""
    return _locked(task.pk).get()


def _locked(task) -> QuerySet[Task]:
    return Task.objects.select_for_update(no_key=True).filter(pk=task)


@transaction.atomic
def contest(task: Task, label: str) -> int:
    """Have people label every unit on which the detectors agreed on a label. Returns how many."""
    return send_to_people(task.units.filter(agreed_label=label), "contested", Routes.load(task))


def contest_all(task: Task) -> dict[str, int]:
    """The same for all languages of a task, for example after its limit was lowered. Label -> units sent to people."""
    sent = {}
    unfinished = labels_of(waiting(task.units))
    for label, audit in audits(task).items():
        if label not in unfinished and left(task, label) and over_limit(task, audit):
            sent[label] = contest(task, label)
    return sent
