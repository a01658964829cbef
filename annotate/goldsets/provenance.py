"""How an exported row came to its label: stratum, chances, who decided it, checks, and what the answers say of it.

Checks are chosen and counted in controls/checks.py.
"""

import json
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from annotate.core import stages
from annotate.core.estimation.proportions import SLACK
from annotate.goldsets.export import Source
from annotate.goldsets.unit_rows import Marks, each, live, where
from annotate.models import Judgment

_TEXT, _NUMBER = pa.string(), pa.float64()
SOFT_LABEL = pa.struct([("label", _TEXT), ("votes", _NUMBER), ("posterior", _NUMBER)])
DETECTORS, ONE, SEVERAL, ADJUDICATOR = "detectors", "one", "several", "adjudicator"


def stratum(rows: Source) -> pa.Array:
    """How a post of a uniform task came to its label; None if people were asked in any case.

    agreed: by the detectors' agreement, or from a post with the same text that was audited; audited: chosen by chance
    to audit that, and read by people; contested: they agreed, but their language failed its audit, and people read
    it, or had read a post with the same text in the audit; disputed: they did not agree; unconfirmed: one reader named
    another queue's language, and the task was closed before a second person read it.
    """
    contested, asks_all = rows.export.contested, rows.export.design.asks_all

    def of(asked: str, agreed_label: str, audited: bool, stage: str, event: str | None) -> str | None:
        if asked:
            return None
        if event == "unconfirmed":
            return event
        if asks_all:
            return None
        if not agreed_label:
            return "disputed"
        if audited:
            return "audited"
        # If the task was extended since, the added posts wait for the next audit.
        return "contested" if agreed_label in contested and stage != stages.AGREED else "agreed"

    own = (rows.own[name] for name in ("asked", "agreed_label", "audited"))
    return each(of, _TEXT, *own, rows.judged["stage"], rows.moved.last("event"))


def chance(rows: Source) -> pa.Array:
    """The chance of being drawn: in the draw of the language that is asked about or declared, or in the one
    draw of all; where classes are drawn in equal parts, that of the class that is declared or predicted; from both
    sides of a filter, that of the side.
    """
    own, chances, by_id = rows.own, rows.export.chances, rows.export.chances_by_id
    if rows.export.sets:
        of_class = rows.export.balancing.chances

        def chance(language: str, predicted: str, agreed_label: str) -> float | None:
            return of_class.get((language, predicted or agreed_label))

        return each(chance, _NUMBER, own["item__language"], own["predicted"], own["agreed_label"])

    def of_draw(asked: str, language: str) -> float | None:
        return chances.get(asked or language) or chances.get("")

    found = each(of_draw, _NUMBER, own["asked"], own["item__language"])
    return pc.coalesce(pa.array(map(by_id.get, own["item__key"].to_pylist()), _NUMBER), found) if by_id else found


def audit_chance(rows: Source) -> pa.Array:
    """The chance of having been given to people, for posts on which the detectors agree and declared labels."""
    chances = rows.export.audit_chances

    def chance(stratum: str | None, *of: str) -> float:
        return chances[of] if stratum in ("agreed", "audited") else 1.0

    return each(chance, _NUMBER, stratum(rows), *(rows.own[path] for path in rows.export.kind.statistics.audit_strata))


def second_opinions(rows: Source) -> list[tuple[str | None, float | None]]:
    """The label of Dawid and Skene's model, None if it is undecided, and the posterior of the likeliest label."""
    return [_likeliest(rows.export.opinions.get(unit)) for unit in rows.judged["pk"].to_pylist()]


def _likeliest(posterior: Mapping[str, float] | None) -> tuple[str | None, float | None]:
    if not posterior:
        return None, None
    best = max(posterior.values())
    likeliest = [label for label, share in posterior.items() if share >= best - SLACK]
    # Sums of floats may differ in the last digits on another machine.
    return likeliest[0] if len(likeliest) == 1 else None, round(best, 6)


def soft_labels(rows: Source) -> pa.Array:
    """The labels that anybody gave or the model holds possible, in the task's order, with votes and posterior."""
    export, found = rows.export, []
    for unit in rows.judged["pk"].to_pylist():
        votes, posterior = export.vote_shares.get(unit, {}), export.opinions.get(unit, {})
        # Rounded like the posterior of the likeliest.
        told = (
            (label, round(votes.get(label, 0.0), 6), round(posterior.get(label, 0.0), 6))
            for label in export.answers.labels
        )
        found.append([one for one in told if one[1] or one[2]])
    return pa.array(found, pa.list_(SOFT_LABEL))


def agreement(rows: Source) -> pa.Array:
    found = rows.export.pairs_that_agree
    shares = (found.get(unit) for unit in rows.judged["pk"].to_pylist())
    return pa.array([None if share is None else round(share, 6) for share in shares], _NUMBER)


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
