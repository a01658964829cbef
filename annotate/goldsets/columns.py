"""Every column that a row of an exported set can have: its type in Parquet, and where its value is from.

A kind of question names the columns of its rows, in their order (`Kind.columns`). Values are read from a Source of
export.py, in the terms of arrays.py: a struct is a tuple.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import pyarrow as pa

from annotate.core import stages
from annotate.core.answers import SLACK
from annotate.goldsets import compared, concepts, deciding
from annotate.goldsets.arrays import Lists, Values
from annotate.goldsets.export import Source
from annotate.goldsets.records import JudgmentRow
from annotate.kinds import Kind
from annotate.quality.audits import stratum_of
from corpora.core.voting import DETECTOR_NAMES

# In a kind's columns this stands for each field of its records, by the field's name.
FIELDS = "fields"
# Only in JSON, for rows that are not in the set.
LEFT_OUT = ("left_out", "left_out_why")

_TEXT, _NUMBER, _COUNT, _TIME = pa.string(), pa.float64(), pa.int32(), pa.timestamp("us", tz="UTC")
JUDGMENT = pa.struct(
    [(name, _TEXT) for name in ("annotator", "kind", "label", "reason", "comment")]
    + [("round", _COUNT), ("queue", _TEXT), ("shown_at", _TIME), ("answered_at", _TIME)]
    + [("active_seconds", _NUMBER), ("voided_at", _TIME), ("voided_by", _TEXT)]
)
TRANSITION = pa.struct(
    [(name, _TEXT) for name in ("event", "from_stage", "to_stage")]
    + [("round", _COUNT), ("queue", _TEXT), ("label", _TEXT), ("by", _TEXT), ("at", _TIME)]
)
SOFT_LABEL = pa.struct([("label", _TEXT), ("votes", _NUMBER), ("posterior", _NUMBER)])
SUPPORT = pa.struct([("concept", _TEXT), ("votes", _COUNT), ("asked", _COUNT)])
CHOSEN = pa.struct([("concept", _TEXT), ("way", _TEXT), ("rank", _COUNT)])
REPLIES = pa.struct([("system", _TEXT), ("replies", pa.list_(_TEXT))])
PREFERRED = pa.struct([("label", _TEXT), ("votes", _COUNT)])
VOTE = pa.struct([("detector", _TEXT), ("rank", _COUNT), ("language", _TEXT), ("score", _NUMBER)])


@dataclass(frozen=True)
class Column:
    """type: in Parquet. value: None if there is none; or of_many: those of many rows. about: what it says, for the
    documentation. with_text: the column is the text, or is kept back with it.
    """

    type: pa.DataType
    value: Callable[[Source], Any] | None
    about: str
    with_text: bool = False
    of_many: Callable[[Sequence[Source]], Lists] | None = None

    def values(self, rows: Sequence[Source]) -> Values:
        """In the terms of arrays.py."""
        if self.of_many:
            return self.of_many(rows)
        assert self.value
        return list(map(self.value, rows))


def _stratum(row: Source) -> str | None:
    """How a post of a uniform task came to its label; None if people were asked in any case.

    agreed: by the detectors' agreement, or from a post with the same text that was audited; audited: chosen by chance
    to audit that, and read by people; contested: they agreed, but their language failed its audit, and people read
    it, or had read a post with the same text in the audit; disputed: they did not agree.
    """
    unit = row.unit
    if unit.asked:
        return None
    if not unit.agreed_label:
        return "disputed"
    if unit.audited:
        return "audited"
    # If the task was extended since, the added posts wait for the next audit.
    is_contested = unit.agreed_label in row.export.contested and row.judged.stage != stages.AGREED
    return "contested" if is_contested else "agreed"


def _chance(row: Source) -> float | None:
    """The chance of being drawn: in the draw of the language that is asked about or declared, or in the one
    draw of all; where classes are drawn in equal parts, that of the class that is declared or predicted; from both
    sides of a filter, that of the side.
    """
    if row.export.sets:
        return row.export.balancing.chances.get((row.item.language, row.unit.predicted or row.unit.agreed_label))
    chances = row.export.chances
    if row.item.key in row.export.chances_by_id:
        return row.export.chances_by_id[row.item.key]
    return chances.get(row.unit.asked or row.item.language) or chances.get("")


def _audit_chance(row: Source) -> float:
    """The chance of having been given to people, for posts on which the detectors agree and declared labels."""
    if _stratum(row) not in ("agreed", "audited"):
        return 1.0
    return row.export.audit_chances[stratum_of(row.export.task, row.unit)]


def _second_opinion(row: Source) -> tuple[str | None, float | None]:
    """The label of Dawid and Skene's model, None if it is undecided, and the posterior of the likeliest label."""
    posterior = row.export.opinions.get(row.judged.pk)
    if not posterior:
        return None, None
    best = max(posterior.values())
    likeliest = [label for label, share in posterior.items() if share >= best - SLACK]
    # Sums of floats may differ in the last digits on another machine.
    return likeliest[0] if len(likeliest) == 1 else None, round(best, 6)


def _soft_labels(row: Source) -> list[tuple[str, float, float]]:
    """The labels that anybody gave or the model holds possible, in the task's order, with votes and posterior."""
    votes = row.export.vote_shares.get(row.judged.pk, {})
    posterior = row.export.opinions.get(row.judged.pk, {})
    # Rounded like the posterior of the likeliest.
    found = (
        (label, round(votes.get(label, 0.0), 6), round(posterior.get(label, 0.0), 6))
        for label in row.export.answers.labels
    )
    return [one for one in found if one[1] or one[2]]


def _votes(rows: Sequence[Source]) -> Lists:
    detectors: list[str] = []
    ranks: list[int] = []
    languages: list[str] = []
    scores: list[float] = []
    ends = [0]
    for row in rows:
        votes = json.loads(row.item.votes)
        # Each database keeps the keys of JSON in a different order.
        for detector in DETECTOR_NAMES:
            given = votes.get(detector, ())
            detectors += [detector] * len(given)
            ranks += range(1, len(given) + 1)
            languages += [language for language, _ in given]
            scores += [float(score) for _, score in given]
        ends.append(len(ranks))
    return Lists(ends, [detectors, ranks, languages, scores])


def _judgments(row: Source) -> list[tuple[Any, ...]]:
    with_text = row.export.with_text
    return [
        (
            each.annotator.pseudonym,
            each.kind,
            each.label or None,
            # Comments, and an adjudicator's reasons, are free text and may quote the post.
            (each.reason if with_text or each.leased else "") or None,
            (each.comment if with_text else "") or None,
            each.round,
            each.queue,
            each.shown_at,
            each.answered_at,
            each.active_seconds,
            each.voided_at,
            # A person who took back their own answer is not named.
            "manager" if each.by_manager else None,
        )
        for each in row.judgments
    ]


def _with(more: Callable[[JudgmentRow, Source], tuple[Any, ...]]) -> Callable[[Source], list[tuple[Any, ...]]]:
    """Judgments with what else is told of each."""
    return lambda row: [(*told, *more(each, row)) for told, each in zip(_judgments(row), row.judgments, strict=True)]


COLUMNS: Mapping[str, Column] = {
    "id": Column(_TEXT, attrgetter("item.key"), "The id that the post or record has in its corpus."),
    "language": Column(
        _TEXT, lambda row: row.item.language or None, "The language that a record declares; none for posts."
    ),
    "split": Column(
        _TEXT,
        lambda row: None if row.left_out else row.export.splits[row.item.key],
        "The part of the set that the row belongs to: train, dev or test.",
    ),
    "set": Column(
        _TEXT,
        lambda row: row.export.added.get(row.item.key),
        "The smallest set that has the row: test, dev, or train with its size; larger train sets have it too.",
    ),
    "predicted": Column(
        _TEXT,
        lambda row: row.unit.predicted or None,
        "The class by which a predictor found the document for people; none where classes are declared.",
    ),
    "declared": Column(
        pa.list_(_TEXT),
        attrgetter("item.declared"),
        "The labels that came with the record; annotators never saw them.",
    ),
    "apart": Column(
        pa.list_(_TEXT),
        lambda row: [row.item.fields[field] for field in row.export.apart],
        "The values of the fields of --apart, in their order: rows with an equal one are in one split. It is left out "
        "where the licence keeps the text.",
        with_text=True,
    ),
    "label": Column(
        _TEXT,
        lambda row: row.judged.label or None,
        "The label that people gave, on which the detectors agree, or that is declared.",
    ),
    "concepts": Column(
        pa.list_(_TEXT),
        concepts.concepts,
        "The ids of the concepts: as they were declared where the declared ones stand, else in the order of their ids.",
    ),
    "support": Column(
        pa.list_(SUPPORT),
        concepts.support,
        "Each concept that anybody chose, with how many did and of how many whose answers count, the most chosen "
        "first; what adjudicators chose does not count here.",
    ),
    "suggested": Column(
        pa.list_(_TEXT),
        concepts.suggested,
        "The ids of the concepts that were suggested, the best first, to whom suggestions were shown.",
    ),
    "systems": Column(
        pa.list_(_TEXT), compared.systems, "The two systems that people compared, in the order of their names."
    ),
    "replies": Column(
        pa.list_(REPLIES),
        compared.replies,
        "What each of the two suggests, the best first. It is left out where the licence keeps the text.",
        with_text=True,
    ),
    "preferred": Column(
        pa.list_(PREFERRED),
        compared.preferred,
        "How many people preferred each of the two, or neither (`tie`), of those whose answers count; empty where both "
        "suggest the same, and nobody was asked.",
    ),
    "dawid_skene": Column(
        _TEXT,
        lambda row: _second_opinion(row)[0],
        "The label that the model of Dawid and Skene finds likeliest; none where it is undecided.",
    ),
    "posterior": Column(
        _NUMBER,
        lambda row: _second_opinion(row)[1],
        "How sure the model is of that label, 0 to 1. That is the model's own, and not a calibrated probability.",
    ),
    "soft_labels": Column(
        pa.list_(SOFT_LABEL),
        _soft_labels,
        "Each label with its share of the answers that count, and its posterior under the model; empty where no answer "
        "counts.",
    ),
    "asked": Column(
        _TEXT,
        lambda row: row.unit.asked or None,
        "The language that people were asked about; none where they were asked which one it is.",
    ),
    "text": Column(
        _TEXT,
        attrgetter("item.text"),
        "The text as people saw it. It is left out where the licence keeps it.",
        with_text=True,
    ),
    "stage": Column(
        _TEXT, attrgetter("judged.stage"), "The stage in which the unit ended, such as LABELLED or AGREED."
    ),
    "stratum": Column(
        _TEXT,
        _stratum,
        "How the label came about: agreed, audited, contested or disputed; none where people were asked in any case.",
    ),
    "agreed": Column(
        _TEXT,
        lambda row: row.unit.agreed_label or None,
        "The label on which the detectors agree; none where they do not.",
    ),
    "chance": Column(_NUMBER, _chance, "The chance that the row had of being drawn from its corpus."),
    "audit_chance": Column(
        _NUMBER,
        _audit_chance,
        "The chance that a post on which the detectors agree, or a document whose class is declared, had of being "
        "given to people; 1 for all others.",
    ),
    "decided_by": Column(
        _TEXT,
        deciding.decided_by,
        "Who gave the label: detectors, one (a reader alone), several (readers) or adjudicator; none without a label.",
    ),
    "check_chance": Column(
        _NUMBER,
        deciding.check_chance,
        "The chance that what one reader decided had of being decided again by an adjudicator; 1 for all others.",
    ),
    "checked": Column(
        pa.bool_(),
        deciding.checked,
        "Whether an adjudicator gave the label who checked, by lot, what one reader had decided.",
    ),
    "first_label": Column(
        _TEXT, deciding.first_label, "What that reader had said, where the row was checked; none elsewhere."
    ),
    "round": Column(
        _COUNT,
        attrgetter("judged.round"),
        "The number of the round in which the unit ended: how many languages' readers were tried.",
    ),
    "judged_as": Column(
        _TEXT,
        lambda row: row.judged.item.key if row.unit.copy_of else None,
        "The id of the post with the same text whose label this one has; none where it has its own.",
    ),
    "reused_from": Column(
        _TEXT,
        attrgetter("judged.reused_in"),
        "The task from which the label was taken; none where people gave it here.",
    ),
    "posted_at": Column(_TIME, attrgetter("item.posted_at"), "The time of the post, in UTC."),
    "author": Column(
        _TEXT,
        lambda row: row.item.author or None,
        "The author's id, hashed with the key of the installation. It is left out where the licence keeps the text.",
        with_text=True,
    ),
    "url": Column(
        _TEXT,
        lambda row: row.item.url or None,
        "The address of the post. It is left out where the licence keeps the text.",
        with_text=True,
    ),
    "letters": Column(_COUNT, attrgetter("item.letters"), "The number of letters in the text."),
    "votes": Column(pa.list_(VOTE), None, "What each detector named, in its order.", of_many=_votes),
    "candidates": Column(
        pa.list_(_TEXT),
        attrgetter("judged.candidates"),
        "The languages whose readers could be asked, the most likely first.",
    ),
    "judgments": Column(
        pa.list_(JUDGMENT),
        _judgments,
        "Every answer, skip and flag, those that were taken back or voided among them.",
    ),
    "transitions": Column(
        pa.list_(TRANSITION),
        attrgetter("transitions"),
        "Every move of the unit from stage to stage.",
    ),
}


# The columns that have more where answers are concepts of a vocabulary.
OF_CONCEPTS: Mapping[str, Column] = {
    "judgments": Column(
        pa.list_(pa.struct([*JUDGMENT, ("concepts", pa.list_(CHOSEN)), ("suggestions_shown", pa.bool_())])),
        _with(concepts.chosen),
        COLUMNS["judgments"].about,
    ),
}


# The column that has more where people compare two systems.
OF_PAIRS: Mapping[str, Column] = {
    "judgments": Column(
        pa.list_(pa.struct([*JUDGMENT, ("first", _TEXT)])),
        _with(compared.first),
        COLUMNS["judgments"].about,
    ),
}


def columns_of(kind: Kind, *, with_text: bool) -> dict[str, Column]:
    """The columns of a kind's rows by name, in their order. with_text: with the text and what is kept back with it."""
    known = {**COLUMNS, **(OF_CONCEPTS if kind.thesaurus else OF_PAIRS if kind.form.SIDED else {})}
    found: dict[str, Column] = {}
    for name in kind.columns:
        found |= {field: _of_field(field) for field in kind.exported_fields} if name == FIELDS else {name: known[name]}
    return {name: column for name, column in found.items() if with_text or not column.with_text}


def _of_field(field: str) -> Column:
    return Column(_TEXT, lambda row: row.item.fields[field], f"The field {field} of the record.", with_text=True)


def taken(kind: Kind) -> Collection[str]:
    """The fields of a kind that have the name of a column: no row could have both."""
    return sorted({*kind.columns, *LEFT_OUT}.difference([FIELDS]).intersection(kind.exported_fields))


def schema(columns: Mapping[str, Column]) -> pa.Schema:
    return pa.schema([(name, column.type) for name, column in columns.items()])
