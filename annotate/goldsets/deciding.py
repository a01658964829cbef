"""Who gave the label of an exported row, and whether that was checked: the values of four columns.

Chosen and counted are the checks in quality/checks.py.
"""

from annotate.core import stages
from annotate.goldsets.export import Source
from annotate.models import Judgment

DETECTORS, ONE, SEVERAL, ADJUDICATOR = "detectors", "one", "several", "adjudicator"
_DECISIONS = (Judgment.SETTLE, Judgment.DISCARD)


def decided_by(row: Source) -> str | None:
    """Where the label was taken from another task: who gave it there."""
    if not row.judged.label:
        return None
    if row.judged.stage == stages.AGREED:
        return DETECTORS
    said = [each.kind for each in row.decided if each.voided_at is None]
    if any(kind in _DECISIONS for kind in said):
        return ADJUDICATOR
    return ONE if said.count(Judgment.ANSWER) == 1 else SEVERAL


def check_chance(row: Source) -> float:
    """The chance that what one reader decided had of being checked: 0 where it was decided in another task; 1 for what
    others decided.
    """
    if not checked(row) and decided_by(row) != ONE:
        return 1.0
    if _is_audit(row):
        return row.export.task.audit_recheck
    return 0.0 if row.judged.reused_from else row.export.check_chances.get(row.judged.visited[0], 0.0)


def checked(row: Source) -> bool:
    return first_label(row) is not None


def first_label(row: Source) -> str | None:
    """None too where an adjudicator would have decided in any case, as of an audited post that the reader doubts."""
    judged = row.judged
    if not judged.recheck or judged.stage != stages.LABELLED:
        return None
    answers = (each.label for each in row.judgments if each.kind == Judgment.ANSWER and not each.voided_at)
    said = next(answers, None)
    return None if _is_audit(row) and said != judged.agreed_label else said


def _is_audit(row: Source) -> bool:
    return any(move.event == "audited" for move in row.transitions)
