"""The rows of a task of posts, for files that can be published. Reads only; the same database, the same rows.

Those of records are put together in annotate/goldsets/survey.py; annotate/goldsets/writing.py writes both.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from django.db import connection, transaction
from django.db.models import Prefetch, QuerySet

from annotate.core import stages
from annotate.models import Judgment, Task, Transition, Unit
from annotate.work.routing import audit_counts, contested_labels
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
    """One row a drawn post and question, in the order of the draw; label is None for posts without one.

    A copy has the label, judgments and transitions of the unit with its text, which `judged_as` names. chance is that
    of being drawn; audit_chance, for posts on which the detectors agree, that of having been given to people. Posts
    hidden among the work, whose answer was known, are not there. Without the right to the text, neither it is in the
    row nor what leads to it (author, url) or may quote it (comments).
    """
    units = work_of(task).select_related("item", "copy_of__item", "reused_from__task", "copy_of__reused_from__task")
    units = with_history(units)
    chances = {draw.language: draw.chance for draw in task.draws.all()}
    audit_chances = {label: chosen / posts for label, (posts, chosen) in audit_counts(task).items()}
    contested = contested_labels(task)
    for unit in units.iterator(chunk_size=CHUNK):
        row = _row(unit, with_text)
        row["stratum"] = _stratum(unit, contested)
        row["chance"] = chances[unit.asked]
        row["audit_chance"] = audit_chances[unit.agreed_label] if row["stratum"] in ("agreed", "audited") else 1.0
        yield row


def work_of(task: Task) -> QuerySet[Unit]:
    """The units that are exported, in the order of the draw: no hidden answers, which nobody is asked to find out."""
    return task.units.filter(gold_answer="").order_by("position")


def with_history(units: QuerySet[Unit]) -> QuerySet[Unit]:
    """With the judgments and transitions of each unit, and of the unit that it is a copy of."""
    judgments = Judgment.objects.select_related("annotator", "lease").order_by("pk")
    transitions = Transition.objects.select_related("by__annotator").order_by("pk")
    return units.prefetch_related(
        *(
            Prefetch(f"{unit}{related}", queryset=queryset)
            for unit in ("", "copy_of__")
            for related, queryset in (("judgments", judgments), ("transitions", transitions))
        )
    )


def history(judged: Unit, with_text: bool) -> dict:
    """What people did with a unit, the same in every kind of row."""
    return {
        "judgments": [_judgment(judgment, with_text) for judgment in judged.judgments.all()],
        "transitions": [_transition(transition) for transition in judged.transitions.all()],
    }


def _row(unit: Unit, with_text: bool) -> dict:
    judged = unit.copy_of or unit
    item = unit.item
    row = {
        "id": item.key,
        "label": judged.label or None,
        "asked": unit.asked or None,
        "text": item.text,
        "stage": judged.stage,
        "stratum": None,
        "agreed": unit.agreed_label or None,
        "chance": None,
        "audit_chance": None,
        "round": judged.round,
        "judged_as": judged.item.key if unit.copy_of else None,
        "reused_from": judged.reused_from.task.name if judged.reused_from else None,
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
        **history(judged, with_text),
    }
    if not with_text:
        for field in ("text", "author", "url"):
            del row[field]
    return row


def _stratum(unit: Unit, contested: set[str]) -> str | None:
    """How a post of a uniform task came to its label; None where people were asked in any case.

    agreed: by the detectors' agreement, or from a post with the same text that was audited; audited: chosen by chance
    to audit that, and read by people; contested: they agreed, but their language failed its audit, and people read
    it, or had read a post with the same text in the audit; disputed: they did not agree.
    """
    if unit.asked:
        return None
    if not unit.agreed_label:
        return "disputed"
    if unit.audited:
        return "audited"
    # Where a task was extended since, what was added waits for the next audit.
    judged = unit.copy_of or unit
    return "contested" if unit.agreed_label in contested and judged.stage != stages.AGREED else "agreed"


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
        # Who takes an answer back themselves is not named.
        "voided_by": "manager" if judgment.voided_by_id else None,
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
    """Counts of the rows that pass through, for the manifest and the card.

    noun: what the rows are. tallies: name -> what is counted by it, of the rows in the set; None counts nowhere.
    """

    def __init__(self, noun: str, tallies: Mapping[str, Callable[[dict], str | None]]):
        self.noun, self.tallies = noun, tallies
        self.by_stage: Counter[str] = Counter()
        self.by_label: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.tallied: dict[str, Counter[str]] = {name: Counter() for name in tallies}
        self.copies = 0

    def take(self, row: dict, left_out: str | None) -> None:
        """left_out: why the row is not in the gold set; None where it is."""
        self.by_stage[row["stage"]] += 1
        self.copies += row["judged_as"] is not None
        if left_out is not None:
            self.left_out[left_out] += 1
            return
        self.by_label[row["label"]] += 1
        for name, key in self.tallies.items():
            if counted := key(row):
                self.tallied[name][counted] += 1

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
        counted = {"left_out": self.left_out, **self.tallied, "by_stage": self.by_stage, "by_label": self.by_label}
        return {
            self.noun: self.total,
            "labelled": self.labelled,
            "unfinished": self.unfinished,
            "copies": self.copies,
            **{name: dict(sorted(counts.items())) for name, counts in counted.items()},
        }
