"""Who gave the label of an exported row, and whether that was checked: the values of four columns.

Chosen and counted are the checks in quality/checks.py.
"""

import json

import pyarrow as pa
import pyarrow.compute as pc

from annotate.core import stages
from annotate.goldsets.arrays import Marks, each, where
from annotate.goldsets.export import Source
from annotate.goldsets.records import live
from annotate.models import Judgment

DETECTORS, ONE, SEVERAL, ADJUDICATOR = "detectors", "one", "several", "adjudicator"


def decided_by(rows: Source) -> pa.Array:
    """Where the label was taken from another task: who gave it there."""
    judged, said = rows.judged, rows.decided
    decisions = said.count(live(said, Judgment.SETTLE, Judgment.DISCARD))
    answers = said.count(live(said, Judgment.ANSWER))
    return each(_decided_by, pa.string(), judged["label"], judged["stage"], pa.array(decisions), pa.array(answers))


def _decided_by(label: str, stage: str, decisions: int, answers: int) -> str | None:
    if not label:
        return None
    if stage == stages.AGREED:
        return DETECTORS
    if decisions:
        return ADJUDICATOR
    return ONE if answers == 1 else SEVERAL


def check_chance(rows: Source) -> pa.Array:
    """The chance that what one reader decided had of being checked: 0 where it was decided in another task; 1 for what
    others decided.
    """
    export, judged = rows.export, rows.judged

    def chance(checked: bool, by: str | None, audit: bool, reused: bool, visited: str) -> float:
        if not checked and by != ONE:
            return 1.0
        if audit:
            return export.task.audit_recheck
        return 0.0 if reused else export.check_chances.get(json.loads(visited)[0], 0.0)

    how = checked(rows), decided_by(rows), pa.array(_is_audit(rows)), pc.is_valid(judged["reused_from"])
    return each(chance, pa.float64(), *how, judged["visited"])


def checked(rows: Source) -> pa.Array:
    return pc.is_valid(first_label(rows))


def first_label(rows: Source) -> pa.Array:
    """None too where others would have decided in any case: of an audited post that the reader doubts, and of one whose
    reader named another queue's language.
    """
    judged = rows.judged
    said = rows.said.first("label", live(rows.said, Judgment.ANSWER))
    again = where(judged["recheck"]) & where(pc.equal(judged["stage"], stages.LABELLED))
    doubted = _is_audit(rows) & ~where(pc.equal(said, judged["agreed_label"]))
    return pc.if_else(pa.array(again & ~doubted & ~_has(rows, "named")), said, pa.scalar(None, pa.string()))


def _is_audit(rows: Source) -> Marks:
    return _has(rows, "audited")


def _has(rows: Source, event: str) -> Marks:
    return rows.moved.count(where(pc.equal(rows.moved.held["event"], event))) > 0
