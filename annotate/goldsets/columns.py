"""Every column that a row of an exported set can have: its type in Parquet, and where its value is from.

A kind of question names the columns of its rows, in their order (`Publication.columns`). Values are made from a Source
of export.py, for many rows at once.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from annotate.goldsets import form_extras, provenance
from annotate.goldsets.export import Source
from annotate.goldsets.unit_rows import each, lists_in, or_none
from annotate.kinds import Kind
from annotate.models import Task
from corpora.engines import votes_in

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
VOTE = pa.struct([("detector", _TEXT), ("rank", _COUNT), ("language", _TEXT), ("score", _NUMBER)])


@dataclass(frozen=True)
class Column:
    """type: in Parquet. values: one for each row. about: what it says, for the documentation. with_text: the column is
    the text, or is kept back with it.
    """

    type: pa.DataType
    values: Callable[[Source], pa.Array]
    about: str
    with_text: bool = False


def _own(name: str) -> Callable[[Source], pa.Array]:
    """A column of the unit, as unit_rows.py has it."""
    return lambda rows: rows.own[name]


def _judged(name: str) -> Callable[[Source], pa.Array]:
    return lambda rows: rows.judged[name]


def _if_any(values: Callable[[Source], pa.Array]) -> Callable[[Source], pa.Array]:
    return lambda rows: or_none(values(rows))


def _by_key(find: Callable[[Source, str], str | None]) -> Callable[[Source], pa.Array]:
    return lambda rows: pa.array([find(rows, key) for key in rows.own["item__key"].to_pylist()], _TEXT)


def _split(rows: Source) -> pa.Array:
    splits = rows.export.splits
    keys = zip(rows.own["item__key"].to_pylist(), rows.in_set.to_pylist(), strict=True)
    return pa.array([splits[key] if in_set else None for key, in_set in keys], _TEXT)


def _apart(rows: Source) -> pa.Array:
    return pa.array([[fields[name] for name in rows.export.apart] for fields in rows.fields], pa.list_(_TEXT))


def _judgments(*more: Callable[[Source], pa.Array], of: pa.DataType = JUDGMENT) -> Callable[[Source], pa.Array]:
    """of: the type of a judgment; more: what else is told of each."""

    def values(rows: Source) -> pa.Array:
        held, export = rows.said.held, rows.export
        # Comments, and an adjudicator's reasons, are free text and may quote the post.
        reason, comment = held["reason"], held["comment"]
        if not export.with_text:
            reason = pc.if_else(pc.is_valid(held["lease"]), reason, "")
            comment = pa.nulls(len(comment), _TEXT)
        told = [
            each(export.pseudonyms.get, _TEXT, held["annotator"]),
            held["kind"],
            *map(or_none, (held["label"], reason, comment)),
            held["lease__round"],
            held["lease__queue"],
            *(held[name] for name in ("shown_at", "answered_at", "active_seconds", "voided_at")),
            # A person who took back their own answer is not named.
            each(lambda by: "manager" if by else None, _TEXT, held["voided_by"]),
            *(values(rows) for values in more),
        ]
        return rows.said.as_array(pa.StructArray.from_arrays(told, fields=list(of)))

    return values


def _transitions(rows: Source) -> pa.Array:
    held, users = rows.moved.held, rows.export.users
    told = [
        *(held[name] for name in ("event", "from_stage", "to_stage", "round")),
        *map(or_none, (held["language"], held["label"])),
        each(lambda by: by and users.get(by, "manager"), _TEXT, held["by"]),
        held["at"],
    ]
    return rows.moved.as_array(pa.StructArray.from_arrays(told, fields=list(TRANSITION)))


COLUMNS: Mapping[str, Column] = {
    "id": Column(_TEXT, _own("item__key"), "The id that the post or record has in its corpus."),
    "language": Column(_TEXT, _if_any(_own("item__language")), "The language that a record declares; none for posts."),
    "split": Column(
        _TEXT,
        _split,
        "The part of the set that the row belongs to: train, dev or test.",
    ),
    "set": Column(
        _TEXT,
        _by_key(lambda rows, key: rows.export.added.get(key)),
        "The smallest set that has the row: test, dev, or train with its size; larger train sets have it too.",
    ),
    "predicted": Column(
        _TEXT,
        _if_any(_own("predicted")),
        "The class by which a predictor found the document for people; none where classes are declared.",
    ),
    "declared": Column(
        pa.list_(_TEXT),
        lambda rows: lists_in(rows.own["item__declared"]),
        "The labels that came with the record; annotators never saw them.",
    ),
    "apart": Column(
        pa.list_(_TEXT),
        _apart,
        "The values of the fields named after `apart` in --sets, in their order: rows with an equal one are in one "
        "split. It is left out where the licence keeps the text.",
        with_text=True,
    ),
    "label": Column(
        _TEXT,
        _if_any(_judged("label")),
        "The label that people gave, on which the detectors agree, or that is declared.",
    ),
    "concepts": Column(
        pa.list_(_TEXT),
        form_extras.concepts,
        "The ids of the concepts: as they were declared where the declared ones stand, else in the order of their ids.",
    ),
    "support": Column(
        pa.list_(form_extras.SUPPORT),
        form_extras.support,
        "Each concept that anybody chose, with how many did and of how many whose answers count, the most chosen "
        "first; what adjudicators chose does not count here.",
    ),
    "suggested": Column(
        pa.list_(_TEXT),
        form_extras.suggested,
        "The ids of the concepts that were suggested, the best first, to whom suggestions were shown.",
    ),
    "systems": Column(
        pa.list_(_TEXT), form_extras.systems, "The two systems that people compared, in the order of their names."
    ),
    "replies": Column(
        pa.list_(form_extras.REPLIES),
        form_extras.replies,
        "What each of the two suggests, the best first. It is left out where the licence keeps the text.",
        with_text=True,
    ),
    "preferred": Column(
        pa.list_(form_extras.PREFERRED),
        form_extras.preferred,
        "How many people preferred each of the two, or neither (`tie`), of those whose answers count; empty where both "
        "suggest the same, and nobody was asked.",
    ),
    "dawid_skene": Column(
        _TEXT,
        lambda rows: pa.array([label for label, _ in provenance.second_opinions(rows)], _TEXT),
        "The label that the model of Dawid and Skene finds likeliest; none where it is undecided.",
    ),
    "posterior": Column(
        _NUMBER,
        lambda rows: pa.array([posterior for _, posterior in provenance.second_opinions(rows)], _NUMBER),
        "How sure the model is of that label, 0 to 1. That is the model's own, and not a calibrated probability.",
    ),
    "soft_labels": Column(
        pa.list_(provenance.SOFT_LABEL),
        provenance.soft_labels,
        "Each label with its share of the answers that count, and its posterior under the model; empty where no answer "
        "counts.",
    ),
    "agreement": Column(
        _NUMBER,
        provenance.agreement,
        "How far people agree on it: the share of the pairs of its answers that are the same, of those that count "
        "(Fleiss 1971); none with fewer than two.",
    ),
    "asked": Column(
        _TEXT,
        _if_any(_own("asked")),
        "The language that people were asked about; none where they were asked which one it is.",
    ),
    "text": Column(
        _TEXT,
        _own("item__text"),
        "The text as people saw it. It is left out where the licence keeps it.",
        with_text=True,
    ),
    "stage": Column(_TEXT, _judged("stage"), "The stage in which the unit ended, such as LABELLED or AGREED."),
    "stratum": Column(
        _TEXT,
        provenance.stratum,
        "How the label came about: agreed (the detectors' label, or what people said of an audited post with the same "
        "text), audited, contested, disputed or unconfirmed (one reader named another queue's language, and nobody "
        "else read it); none where people were asked in any case.",
    ),
    "agreed": Column(
        _TEXT,
        _if_any(_own("agreed_label")),
        "The label on which the detectors agree; none where they do not.",
    ),
    "chance": Column(_NUMBER, provenance.chance, "The chance that the row had of being drawn from its corpus."),
    "audit_chance": Column(
        _NUMBER,
        provenance.audit_chance,
        "The chance that a post on which the detectors agree, or a document whose class is declared, had of being "
        "given to people; 1 for all others.",
    ),
    "decided_by": Column(
        _TEXT,
        provenance.decided_by,
        "Who gave the label: detectors, one (a reader alone), several (readers) or adjudicator; none without a label.",
    ),
    "check_chance": Column(
        _NUMBER,
        provenance.check_chance,
        "The chance that what one reader decided had of being decided again by an adjudicator; 1 for all others.",
    ),
    "checked": Column(
        pa.bool_(),
        provenance.checked,
        "Whether an adjudicator gave the label who checked, by lot, what one reader had decided.",
    ),
    "first_label": Column(
        _TEXT, provenance.first_label, "What that reader had said, where the row was checked; none elsewhere."
    ),
    "round": Column(
        _COUNT,
        _judged("round"),
        "The number of the round in which the unit ended: how many languages' readers were tried.",
    ),
    "judged_as": Column(
        _TEXT,
        lambda rows: pc.if_else(pc.is_valid(rows.own["copy_of"]), rows.judged["item__key"], pa.scalar(None, _TEXT)),
        "The id of the post with the same text whose label this one has; none where it has its own.",
    ),
    "reused_from": Column(
        _TEXT,
        _judged("reused_from__task__name"),
        "The task from which the label was taken; none where people gave it here.",
    ),
    "posted_at": Column(_TIME, _own("item__posted_at"), "The time of the post, in UTC."),
    "author": Column(
        _TEXT,
        _if_any(_own("item__author")),
        "The author's id, hashed with the key of the installation. It is left out where the licence keeps the text.",
        with_text=True,
    ),
    "url": Column(
        _TEXT,
        _if_any(_own("item__url")),
        "The address of the post. It is left out where the licence keeps the text.",
        with_text=True,
    ),
    "letters": Column(
        _COUNT, _own("item__letters"), "The number of letters in the text, without hashtags; a repetition counts once."
    ),
    "votes": Column(
        pa.list_(VOTE),
        lambda rows: votes_in(rows.own["item__votes"]).cast(pa.list_(VOTE)),
        "What each detector named, in its order.",
    ),
    "candidates": Column(
        pa.list_(_TEXT),
        lambda rows: lists_in(rows.judged["candidates"]),
        "The languages whose readers could be asked, the most likely first.",
    ),
    "judgments": Column(
        pa.list_(JUDGMENT),
        _judgments(),
        "Every answer, skip and flag, those that were taken back or voided among them.",
    ),
    "transitions": Column(
        pa.list_(TRANSITION),
        _transitions,
        "Every move of the unit from stage to stage.",
    ),
}


def _judgments_of(kind: Kind) -> Column:
    """The judgments of a row, with what the kind's quality controls add to each."""
    added = [column for control in kind.quality_controls for column in control.judgment_columns()]
    if not added:
        return COLUMNS["judgments"]
    names, types, functions = zip(*added, strict=True)
    type = pa.struct([*JUDGMENT, *zip(names, types, strict=True)])
    return Column(pa.list_(type), _judgments(*functions, of=type), COLUMNS["judgments"].about)


def columns_of(task: Task, *, with_text: bool) -> dict[str, Column]:
    """The columns of a task's rows by name, in their order; those of its quality controls last. with_text: with the
    text and what is kept back with it.
    """
    kind = task.kind
    known = COLUMNS | {"judgments": _judgments_of(kind)}
    found: dict[str, Column] = {}
    for name in kind.publication.columns:
        found |= {field: _of_field(field) for field in kind.exported_fields} if name == FIELDS else {name: known[name]}
    for control in kind.quality_controls:
        found |= {name: _of_control(values) for name, values in control.columns(task).items()}
    return {name: column for name, column in found.items() if with_text or not column.with_text}


def _of_control(given: Mapping[int, object]) -> Column:
    def values(rows: Source) -> pa.Array:
        return pa.array([given.get(unit) for unit in rows.own["pk"].to_pylist()], _TEXT)

    return Column(_TEXT, values, "What a quality control says of it.")


def _of_field(field: str) -> Column:
    def values(rows: Source) -> pa.Array:
        return pa.array([fields[field] for fields in rows.fields], _TEXT)

    return Column(_TEXT, values, f"The field {field} of the record.", with_text=True)


def taken(kind: Kind) -> Collection[str]:
    """The fields of a kind that have the name of a column: no row could have both."""
    return sorted({*kind.publication.columns, *LEFT_OUT}.difference([FIELDS]).intersection(kind.exported_fields))


def schema(columns: Mapping[str, Column]) -> pa.Schema:
    return pa.schema([(name, column.type) for name, column in columns.items()])
