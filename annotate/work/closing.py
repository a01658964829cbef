"""Closing a task, so that it hands out no more work, and opening it again. What was answered stays either way."""

from typing import Any

from django.db import transaction
from django.utils import timezone

from annotate.core import stages
from annotate.core.refusals import WrongStage
from annotate.models import Lease, Task
from annotate.quality import commitments
from annotate.work.contesting import locked
from annotate.work.drawing_on import draw_later


@transaction.atomic
def close(task: Task) -> dict[str, Any]:
    """{"task", "is_open", "changed", "unfinished", "in_hand", "digest"}.

    changed: whether it was not so before. unfinished: how many units have no label yet. in_hand: how many are open with
    somebody now, who may still answer. digest: of what became of the units drawn by the secret, empty if none were.
    """
    told = _switch(task, is_open=False)
    return told | {"digest": commitments.fix(task)}


@transaction.atomic
def fix_outcomes(task: Task) -> None:
    """Write down what became of the drawn units of a closed task since it was last written down."""
    if not locked(task).is_open:
        commitments.fix(task)


@transaction.atomic
def reopen(task: Task) -> dict[str, Any]:
    """The same; WrongStage where nobody can be asked here, or its secret was told."""
    if not task.kind.answered_here:
        raise WrongStage(
            f"{task.name} holds judgments that were made elsewhere, so nobody can be given its units. Import further "
            "ones with import_judgments."
        )
    if locked(task).secret_told_at:
        raise WrongStage(
            f"The secret of {task.name} was told by an export, so anybody could foresee where its gold answers, audits "
            "and checks would be. Open a new task instead."
        )
    told = _switch(task, is_open=True)
    for language in task.languages:
        draw_later(task.pk, language)
    return told


def how_to_go_on(task: Task) -> str:
    """What a manager does so that people are given units of a closed task, in a sentence."""
    if task.secret_told_at:
        return "It cannot be opened again, since an export told its secret: open a new task for the rest."
    return f"Open it again with `assay reopen {task.name}`."


@transaction.atomic
def tell_secret(task: Task) -> None:
    """Note that the secret of the task's lots is told: it is never opened again. WrongStage while it is open, and where
    there is no secret.
    """
    if not task.secret:
        raise WrongStage(
            f"{task.name} was opened when lots were drawn by the seed, which the manifest has; leave --tell-secret out."
        )
    found = locked(task)
    if found.is_open:
        raise WrongStage(
            f"{task.name} is open, and whoever knows its secret could foresee the lots to come. Close it first, or "
            "leave --tell-secret out."
        )
    if not found.secret_told_at:
        found.secret_told_at = timezone.now()
        found.save(update_fields=["secret_told_at"])


def _switch(task: Task, *, is_open: bool) -> dict[str, Any]:
    was = locked(task).is_open
    task.is_open = is_open
    task.save(update_fields=["is_open"])
    work = task.units.work().order_by()
    held = Lease.objects.filter(unit__in=work, closed_at=None, expires_at__gt=timezone.now()).order_by()
    return {
        "task": task.name,
        "is_open": is_open,
        "changed": was != is_open,
        "unfinished": work.filter(stage__in=stages.WAITING).count() + work.waiting_copies().count(),
        "in_hand": held.values("unit").distinct().count(),
    }
