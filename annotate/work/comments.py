"""What people wrote beside their answers and decisions, for managers. Reads only."""

from django.db.models import Exists, OuterRef

from annotate.models import Annotator, Judgment, Task, Unit

MOST = 200  # comments on a page, the newest


def comments(task: Task, of: Annotator | None = None) -> list[dict]:
    """The newest comments of a task, or of one annotator in it, MOST at most; those on voided answers too.

    A row: at, annotator, name, unit, text, kind (of the judgment), label, comment, voided.
    """
    # As a condition, so that the comments are read by their index, and not all that was said of the task's units.
    of_task = Exists(Unit.objects.filter(pk=OuterRef("unit"), task=task))
    found = Judgment.objects.filter(of_task, **({} if of is None else {"annotator": of})).exclude(comment="")
    listed = found.select_related("annotator__user", "unit__item").order_by("-pk")[:MOST]
    return [
        {
            "at": judgment.answered_at,
            "annotator": judgment.annotator_id,
            "name": str(judgment.annotator),
            "unit": judgment.unit_id,
            "text": judgment.unit.item.text,
            "kind": judgment.kind,
            "label": judgment.label,
            "comment": judgment.comment,
            "voided": judgment.voided_at is not None,
        }
        for judgment in listed
    ]
