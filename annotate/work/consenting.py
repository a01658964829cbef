"""Agreeing to work that may hurt, and taking that back. The permit says what follows from it."""

from datetime import datetime

from django.db.models.functions import Greatest
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.core.refusals import NotFound
from annotate.models import Annotator, Consent, Task
from annotate.work.permit import acting
from annotate.work.queue import close_others


def agreed_at(annotator: Annotator, task: Task) -> datetime | None:
    """When the annotator agreed to the work of a task; None if they have not, or have taken it back."""
    return (
        Consent.objects.filter(annotator=annotator, task=task, withdrawn_at=None).values_list("at", flat=True).first()
    )


def agree(annotator: Annotator, task: str) -> None:
    """Agree to the work of a task, named by its name; doing it twice changes nothing. NotFound if nothing of it may
    hurt.
    """
    with acting(annotator, task) as permit:
        check_sensitive(permit.task)
        Consent.objects.get_or_create(
            annotator=annotator, task=permit.task, withdrawn_at=None, defaults={"at": timezone.now()}
        )


def withdraw(annotator: Annotator, task: str) -> None:
    """Take it back, and give back what is open; what was answered stands. Doing it twice changes nothing."""
    with acting(annotator, task) as permit:
        check_sensitive(permit.task)
        running = Consent.objects.filter(annotator=annotator, task=permit.task, withdrawn_at=None)
        # A clock that was set back has nobody withdraw before they agreed.
        running.update(withdrawn_at=Greatest("at", timezone.now()))
        close_others([], annotator, permit.task, "released")


def check_sensitive(task: Task) -> None:
    if not task.kind.sensitive:
        raise NotFound(_("Nothing in this task asks for your agreement."))
