"""From a task to files that can be published: rows, manifest and card. Reads only; the same database, the same bytes.

The rows are put together here; annotate/gold_files.py writes them.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction
from django.db.models import Prefetch

from annotate.core import stages
from annotate.models import Judgment, Task, Transition, Unit
from corpora.core.voting import DETECTOR_NAMES

CHUNK = 2000


@contextmanager
def one_moment():
    """Everything read inside is of one moment, however long it takes, and nobody who writes is held up."""
    with connection.cursor() as cursor:
        if connection.in_atomic_block:
            yield
        elif connection.vendor == "postgresql":
            with transaction.atomic():
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                yield
        else:
            # atomic() would take the writers' lock.
            cursor.execute("BEGIN DEFERRED")
            try:
                yield
            finally:
                cursor.execute("COMMIT")


def rows(task: Task, *, with_text: bool) -> Iterator[dict]:
    """One row a drawn post, in the order of the draw; label is None for posts without one.

    A copy has the label, judgments and transitions of the unit with its text, which `judged_as` names. chance is that
    of being drawn. Without the right to the text, neither it is in the row nor what leads to it (author, url)
    or may quote it (comments).
    """
    judgments = Judgment.objects.select_related("annotator", "lease").order_by("pk")
    transitions = Transition.objects.select_related("by__annotator").order_by("pk")
    units = task.units.select_related("item", "copy_of__item").order_by("position")
    units = units.prefetch_related(
        *(
            Prefetch(f"{unit}{related}", queryset=queryset)
            for unit in ("", "copy_of__")
            for related, queryset in (("judgments", judgments), ("transitions", transitions))
        )
    )
    chance = task.draw.chance
    for unit in units.iterator(chunk_size=CHUNK):
        yield _row(unit, chance, with_text)


def _row(unit: Unit, chance: float, with_text: bool) -> dict:
    judged = unit.copy_of or unit
    item = unit.item
    row = {
        "id": item.key,
        "label": judged.label or None,
        "text": item.text,
        "stage": judged.stage,
        "stratum": _stratum(judged),
        "chance": chance,
        "round": judged.round,
        "judged_as": judged.item.key if unit.copy_of else None,
        "posted_at": item.posted_at,
        "author": item.author or None,
        "url": item.url or None,
        "letters": item.letters,
        "votes": [
            {"detector": detector, "rank": rank, "language": language, "score": float(score)}
            # The databases keep the keys of JSON in orders of their own.
            for detector in DETECTOR_NAMES
            for rank, (language, score) in enumerate(item.votes.get(detector, ()), 1)
        ],
        "candidates": judged.candidates,
        "judgments": [_judgment(judgment, with_text) for judgment in judged.judgments.all()],
        "transitions": [_transition(transition) for transition in judged.transitions.all()],
    }
    if not with_text:
        for field in ("text", "author", "url"):
            del row[field]
    return row


def _stratum(unit: Unit) -> str:
    """How the unit came to its label: by the detectors' agreement, or because they disputed it."""
    first = unit.transitions.all()[0]
    return "agreed" if first.to_stage == stages.AGREED else "disputed"


def _judgment(judgment: Judgment, with_text: bool) -> dict:
    lease = judgment.lease
    # Comments, and an adjudicator's reasons, are free text and may quote the post.
    reason = judgment.reason if with_text or lease else ""
    comment = judgment.comment if with_text else ""
    return {
        "annotator": judgment.annotator.pseudonym,
        "kind": judgment.kind,
        "label": judgment.label or None,
        "reason": reason or None,
        "comment": comment or None,
        "round": lease.round if lease else None,
        "queue": lease.queue if lease else None,
        "shown_at": judgment.shown_at,
        "answered_at": judgment.answered_at,
        "active_seconds": judgment.active_seconds,
        "voided_at": judgment.voided_at,
    }


def _transition(transition: Transition) -> dict:
    by = transition.by
    return {
        "event": transition.event,
        "from_stage": transition.from_stage,
        "to_stage": transition.to_stage,
        "round": transition.round,
        "queue": transition.language or None,
        "label": transition.label or None,
        "by": None if by is None else by.annotator.pseudonym if hasattr(by, "annotator") else "manager",
        "at": transition.at,
    }


class Counts:
    """Counts of the rows that pass through, for the manifest and the card."""

    def __init__(self):
        self.by_stage: Counter[str] = Counter()
        self.by_label: Counter[str] = Counter()
        self.by_stratum: Counter[str] = Counter()
        self.copies = 0

    def take(self, row: dict) -> dict:
        self.by_stage[row["stage"]] += 1
        self.copies += row["judged_as"] is not None
        if row["label"]:
            self.by_label[row["label"]] += 1
            self.by_stratum[row["stratum"]] += 1
        return row

    @property
    def total(self) -> int:
        return self.by_stage.total()

    @property
    def labelled(self) -> int:
        return self.by_label.total()

    @property
    def unfinished(self) -> int:
        return sum(count for stage, count in self.by_stage.items() if stage not in stages.FINISHED)

    def as_dict(self) -> dict:
        return {
            "posts": self.total,
            "labelled": self.labelled,
            "unfinished": self.unfinished,
            "copies": self.copies,
            "by_stage": dict(sorted(self.by_stage.items())),
            "by_stratum": dict(sorted(self.by_stratum.items())),
            "by_label": dict(sorted(self.by_label.items())),
        }
