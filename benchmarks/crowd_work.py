"""The manager's actions in the crowd benchmark, and the state of a task in the database. Prints JSON.

Arguments: `void TASK` or `facts TASK`. Answers are voided with the same operation as on the manager's page.
"""

import json
import sys
from collections import Counter

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402

from annotate.controls import honeypots  # noqa: E402
from annotate.core import stages  # noqa: E402
from annotate.models import Judgment, Lease, Task  # noqa: E402
from annotate.work import interventions  # noqa: E402

MANAGER = "manager"
REASON = "paused for too many wrong known answers"


def void_paused(task: Task) -> dict[str, int]:
    """Void all valid answers of paused people. Return the number of reopened units by name."""
    manager, _ = User.objects.get_or_create(username=MANAGER, defaults={"is_staff": True})
    reopened = {}
    for pause in task.pauses.filter(lifted_at=None).select_related("annotator__user").order_by("pk"):
        if Judgment.objects.filter(unit__task=task, annotator=pause.annotator, kind="answer", voided_at=None).exists():
            name = pause.annotator.user.username
            reopened[name] = interventions.void(pause.annotator, task, by=manager, reason=REASON).reopened
    return reopened


def facts(task: Task) -> dict:
    """Return the state of the task as JSON values."""
    work = task.units.filter(honeypot=False)
    live = Judgment.objects.filter(unit__task=task, unit__honeypot=False, kind=Judgment.ANSWER, voided_at=None)
    judgments = Judgment.objects.filter(unit__task=task)
    rows = judgments.values_list("annotator__user__username", "unit__item__fields", "kind", "label")
    gold_answers = [
        (judgment.annotator.user.username, honeypots.is_right(judgment))
        for judgment in honeypots.answers(task).select_related("annotator__user", "unit__task")
    ]
    totals, right = Counter(name for name, _ in gold_answers), Counter(name for name, hit in gold_answers if hit)
    return {
        "stages": Counter(work.values_list("stage", flat=True)),
        "answers": Counter(Counter(live.values_list("unit", flat=True)).values()),
        "labels": dict(work.exclude(label="").values_list("item__key", "label")),
        "faults": faults(task),
        "judgments": sorted([name, fields["question"], kind, label] for name, fields, kind, label in rows),
        "voided": judgments.filter(voided_by__isnull=False, unit__honeypot=False, kind=Judgment.ANSWER).count(),
        "known": {name: [right[name], totals[name]] for name in sorted(totals)},
        "paused": {
            pause.annotator.user.username: {
                "right": pause.right,
                "asked": pause.asked,
                "units": judgments.filter(
                    annotator=pause.annotator, answered_at__lte=pause.at, unit__honeypot=False, kind=Judgment.ANSWER
                ).count(),
            }
            for pause in task.pauses.filter(lifted_at=None).select_related("annotator__user").order_by("at")
        },
    }


def faults(task: Task) -> list[str]:
    """Return a sentence for each violation, such as a unit with too many or too few answers or a wrong majority."""
    problems = []
    answers: dict[int, list[str]] = {}
    live = Judgment.objects.filter(unit__task=task, kind=Judgment.ANSWER, voided_at=None)
    for key, label in live.values_list("unit_id", "label"):
        answers.setdefault(key, []).append(label)
    leases = Lease.objects.filter(unit__task=task, place__isnull=False, closed_at__isnull=False)
    places = Counter(leases.values_list("unit", flat=True))
    for unit in task.units.filter(honeypot=False):
        labels = answers.get(unit.pk, [])
        if len(labels) > unit.redundancy:
            problems.append(f"{unit} has {len(labels)} answers of {unit.redundancy}.")
        if unit.stage == stages.QUEUED and len(labels) >= unit.redundancy:
            problems.append(f"{unit} has all required answers but is still in the queue.")
        if unit.stage == stages.LABELLED:
            if len(labels) != task.redundancy:
                problems.append(f"{unit} is labelled with {len(labels)} answers of {task.redundancy}.")
            if labels and unit.label != Counter(labels).most_common(1)[0][0]:
                problems.append(f"{unit} is labelled {unit.label}, but the answers are {', '.join(labels)}.")
        if places[unit.pk] != len(labels):
            problems.append(f"{unit} has {places[unit.pk]} places kept for {len(labels)} answers.")
    for unit in task.units.filter(honeypot=True).exclude(stage=stages.QUEUED):
        problems.append(f"{unit} is a gold answer but moved from the queue to {unit.stage}.")
    voided = Judgment.objects.filter(unit__task=task, voided_by__isnull=False).values("annotator")
    if left := Judgment.objects.filter(unit__task=task, voided_at=None, annotator__in=voided, kind=Judgment.ANSWER):
        problems.append(f"{len(left)} answers are valid although their annotators' answers were voided.")
    return problems


def main(arguments: list[str]) -> None:
    operation, name = arguments
    print(json.dumps({"void": void_paused, "facts": facts}[operation](Task.objects.get(name=name))))


if __name__ == "__main__":
    main(sys.argv[1:])
