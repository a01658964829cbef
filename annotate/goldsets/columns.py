"""The columns of exported rows: their Parquet types and the functions that compute them.

Each kind of question lists its columns in order (`Publication.columns`). Values are computed for a batch of rows at
once, from a `Source` (see `export.py`).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from annotate.core.aggregation.answer_table import Floats
from annotate.core.estimation.proportions import SLACK
from annotate.goldsets import form_extras
from annotate.goldsets.export import Source
from annotate.goldsets.unit_rows import or_none
from annotate.models import Task
from annotate.quality.answer_models import agreement_shares, label_posteriors, vote_shares
from corpora.core.arrow import pc
from corpora.database.bulk_rows import map_rows
from corpora.engines import votes_in

# A placeholder for all exported record fields in a kind's list of columns.
FIELDS = "fields"
# Additional columns of left-out rows, which are written only as JSON.
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
VOTE = pa.struct([("detector", _TEXT), ("rank", _COUNT), ("language", _TEXT), ("score", _NUMBER)])


@dataclass(frozen=True)
class Column:
    """A column of exported rows.

    type: type in Parquet.
    values: function that returns an array with one value per row.
    about: description for the documentation.
    with_text: whether the column is omitted if the text must not be published.
    """

    type: pa.DataType
    values: Callable[[Source], pa.Array]
    about: str
    with_text: bool = False


def _unit(name: str) -> Callable[[Source], pa.Array]:
    """Return a function that reads a column of the exported unit (`Units.unit` in `unit_rows.py`)."""
    return lambda rows: rows.unit[name]


def _judged(name: str) -> Callable[[Source], pa.Array]:
    return lambda rows: rows.judged[name]


def _decision(name: str) -> Callable[[Source], pa.Array]:
    return lambda rows: rows.decisions[name]


def _nullable(values: Callable[[Source], pa.Array]) -> Callable[[Source], pa.Array]:
    return lambda rows: or_none(values(rows))


def _decode_lists(values: Callable[[Source], pa.Array]) -> Callable[[Source], pa.Array]:
    """Return a function that decodes a column of JSON lists of strings."""
    return lambda rows: map_rows(json.loads, pa.list_(_TEXT), values(rows))


def _set(rows: Source) -> pa.Array:
    return pa.array(map(rows.export.added.get, rows.unit["item__key"].to_pylist()), _TEXT)


def _split(rows: Source) -> pa.Array:
    splits = rows.export.splits
    keys = zip(rows.unit["item__key"].to_pylist(), rows.in_set.to_pylist(), strict=True)
    return pa.array([splits[key] if in_set else None for key, in_set in keys], _TEXT)


def _apart(rows: Source) -> pa.Array:
    """Return each row's values in the `apart` fields. A balanced draw puts rows that share a value in one split."""
    names = rows.export.draw.parameters["apart"]
    return pa.array([[fields[name] for name in names] for fields in rows.fields], pa.list_(_TEXT))


def _judgments(
    rows: Source, functions: Sequence[Callable[[Source], pa.Array]] = (), type: pa.DataType = JUDGMENT
) -> pa.Array:
    """Return the judgments of each row.

    functions: functions that compute the fields added by quality controls.
    type: struct type of a judgment, including these fields.
    """
    judgments, export = rows.judgments.values, rows.export
    # Comments and adjudicators' reasons are free text and may quote the item, so they are removed with the text.
    reason, comment = judgments["reason"], judgments["comment"]
    if not export.with_text:
        reason = pc.if_else(pc.is_valid(judgments["lease"]), reason, "")
        comment = pa.nulls(len(comment), _TEXT)
    values = [
        map_rows(export.pseudonyms.get, _TEXT, judgments["annotator"]),
        judgments["kind"],
        *map(or_none, (judgments["label"], reason, comment)),
        *(judgments[name] for name in ("lease__round", "lease__queue", "shown_at", "answered_at")),
        *(judgments[name] for name in ("active_seconds", "voided_at")),
        # This is null if annotators withdrew their own answers.
        map_rows(lambda by: "manager" if by else None, _TEXT, judgments["voided_by"]),
        *(function(rows) for function in functions),
    ]
    return rows.judgments.as_array(pa.StructArray.from_arrays(values, fields=list(type)))


def _transitions(rows: Source) -> pa.Array:
    transitions, users = rows.transitions.values, rows.export.users
    values = [
        *(transitions[name] for name in ("event", "from_stage", "to_stage", "round")),
        *map(or_none, (transitions["language"], transitions["label"])),
        map_rows(lambda by: by and users.get(by, "manager"), _TEXT, transitions["by"]),
        transitions["at"],
    ]
    return rows.transitions.as_array(pa.StructArray.from_arrays(values, fields=list(TRANSITION)))


def _chance(rows: Source) -> pa.Array:
    """Return each row's inclusion probability.

    All rows of a draw have the same probability. A task has either one draw for each language (named by the question or
    declared by the records), or a single draw. There are two exceptions. In a balanced draw, the probability depends on
    the class, declared or predicted. In a draw from both sides of a filter, it depends on the side.
    """
    unit = rows.unit
    if rows.export.sets:
        chances = rows.export.balancing.chances
        classes = (unit["item__language"], unit["predicted"], unit["agreed_label"])
        return map_rows(lambda language, first, second: chances.get((language, first or second)), _NUMBER, *classes)
    by_language, by_id = rows.export.chances
    by_draw = map_rows(
        lambda question_language, language: by_language.get(question_language or language) or by_language.get(""),
        _NUMBER,
        *(unit["asked"], unit["item__language"]),
    )
    return pc.coalesce(pa.array(map(by_id.get, unit["item__key"].to_pylist()), _NUMBER), by_draw) if by_id else by_draw


def _audit_chance(rows: Source) -> pa.Array:
    """Return the probability that each row was selected for an audit.

    Items that the detectors agree on, and items with declared labels, are audited at random. All other items have
    probability 1.
    """
    chances, paths = rows.export.audit_chances, rows.export.kind.statistics.audit_strata
    return map_rows(
        lambda stratum, *values: chances[values] if stratum in ("agreed", "audited") else 1.0,
        _NUMBER,
        *(rows.stratum, *(rows.unit[path] for path in paths)),
    )


def _dawid_skene(rows: Source) -> pa.Array:
    """Return each row's most likely label under Dawid and Skene's model.

    The label is None if several are equally likely, or if the model has no posterior for the row.
    """
    fit = rows.export.answers
    posterior = label_posteriors(fit, rows.judged["pk"].to_pylist())
    are_best = posterior >= posterior.max(axis=1, keepdims=True, initial=2 * SLACK) - SLACK
    likeliest = pa.array(are_best @ np.arange(len(fit.labels)), mask=are_best.sum(axis=1) != 1)
    return pa.array(fit.labels, _TEXT).take(likeliest)


def _posterior(rows: Source) -> pa.Array:
    """Return each row's largest posterior; None if the model has no posterior for the row."""
    best = label_posteriors(rows.export.answers, rows.judged["pk"].to_pylist()).max(axis=1, initial=0)
    return pa.array(_rounded(best), mask=best == 0)


def _rounded(shares: Floats) -> Floats:
    """Round shares to six decimals, like `round`. The last digits of float sums differ between machines."""
    scaled = shares * 1e6
    rounded: Floats = np.rint(scaled) / 1e6
    is_half = np.abs(scaled % 1 - 0.5) < 1e-6  # a half, or so close that the product may round to a half
    rounded[is_half] = [round(share, 6) for share in shares[is_half].tolist()]
    return rounded


def _soft_labels(rows: Source) -> pa.Array:
    """Return each row's labels in the task's order, each with its vote share and its posterior.

    A label is omitted if it has no votes and a posterior of zero.
    """
    fit, units = rows.export.answers, rows.judged["pk"].to_pylist()
    tables = [_rounded(table) for table in (vote_shares(fit, units), label_posteriors(fit, units))]
    unit, label = np.nonzero(np.maximum(*tables))
    values = [pa.array(fit.labels, _TEXT).take(pa.array(label)), *(pa.array(table[unit, label]) for table in tables)]
    ends = pa.array(np.searchsorted(unit, np.arange(len(units) + 1)), pa.int32())
    return pa.ListArray.from_arrays(ends, pa.StructArray.from_arrays(values, fields=list(SOFT_LABEL)))


def _agreement(rows: Source) -> pa.Array:
    shares = agreement_shares(rows.export.answers, rows.judged["pk"].to_pylist())
    return pa.array(_rounded(shares), mask=np.isnan(shares))


_text = partial(Column, _TEXT)
COLUMNS: Mapping[str, Column] = {
    "id": _text(_unit("item__key"), "The id of the post or record in its corpus."),
    "language": _text(_nullable(_unit("item__language")), "The declared language of a record; null for posts."),
    "split": _text(_split, "The row's split: train, dev or test."),
    "set": _text(
        _set, "The smallest set with the row: test, dev, or train with its size; larger train sets contain it too."
    ),
    "predicted": _text(
        _nullable(_unit("predicted")),
        "The predicted class that the document was drawn for; null if classes are declared.",
    ),
    "declared": Column(
        pa.list_(_TEXT),
        _decode_lists(_unit("item__declared")),
        "The labels that came with the record; annotators never see them.",
    ),
    "apart": Column(
        pa.list_(_TEXT),
        _apart,
        "The values of the fields listed after `apart` in --sets; rows that share a value are in the same split. "
        "Omitted if the text must not be published.",
        with_text=True,
    ),
    "label": _text(
        _nullable(_judged("label")), "The label: given by annotators, agreed on by the detectors, or declared."
    ),
    "concepts": Column(
        pa.list_(_TEXT),
        form_extras.concepts,
        "The ids of the concepts: declared concepts in the declared order, others sorted.",
    ),
    "support": Column(
        pa.list_(form_extras.SUPPORT),
        form_extras.support,
        "Each concept that annotators chose, with the number of annotators who chose it and the number of valid "
        "answers, most frequent first; adjudicators are not counted.",
    ),
    "suggested": Column(pa.list_(_TEXT), form_extras.suggested, "The ids of the suggested concepts, best first."),
    "spans": Column(
        pa.list_(form_extras.SPAN),
        form_extras.spans,
        "The spans of the label: start, end and label, counted in code points from 0, and the marked text unless it "
        "must not be published.",
    ),
    "systems": Column(pa.list_(_TEXT), form_extras.systems, "The two compared systems, by name."),
    "replies": Column(
        pa.list_(form_extras.REPLIES),
        form_extras.replies,
        "The suggestions of each system, best first. Omitted if the text must not be published.",
        with_text=True,
    ),
    "preferred": Column(
        pa.list_(form_extras.PREFERRED),
        form_extras.preferred,
        "The number of valid answers for each system and for `tie`; empty if both systems suggest the same replies, "
        "because no answers are needed then.",
    ),
    "dawid_skene": _text(
        _dawid_skene,
        "The most likely label according to Dawid and Skene's model; null if no label is more likely than all others.",
    ),
    "posterior": Column(
        _NUMBER,
        _posterior,
        "The model's posterior for that label, from 0 to 1; not a calibrated probability.",
    ),
    "soft_labels": Column(
        pa.list_(SOFT_LABEL),
        _soft_labels,
        "Each label with its share of the valid answers and its posterior; empty without valid answers.",
    ),
    "agreement": Column(
        _NUMBER, _agreement, "The share of equal pairs among the valid answers (Fleiss 1971); null with fewer than two."
    ),
    "asked": _text(_nullable(_unit("asked")), "The language that the question names; null if it asks which language."),
    "text": _text(
        _unit("item__text"), "The text as annotators see it, unless it must not be published.", with_text=True
    ),
    "stage": _text(_judged("stage"), "The unit's last stage, such as LABELLED or AGREED."),
    "stratum": _text(
        lambda rows: rows.stratum,
        "The [stratum](../explanation/designs.md#strata-of-a-uniform-set): agreed, audited, contested, disputed or "
        "unconfirmed; null if annotators were asked regardless of the detectors.",
    ),
    "agreed": _text(_nullable(_unit("agreed_label")), "The label that the detectors agree on, or null."),
    "chance": Column(_NUMBER, _chance, "The probability that the row was drawn from its corpus."),
    "audit_chance": Column(
        _NUMBER, _audit_chance, "The probability of an audit, for agreed posts and declared documents; 1 for others."
    ),
    "decided_by": _text(
        _decision("decided_by"),
        "Who gave the label: detectors, one (annotator), several (annotators) or adjudicator; null without a label.",
    ),
    "check_chance": Column(
        _NUMBER,
        _decision("check_chance"),
        "The probability of a check, for labels by a single annotator; 1 for others.",
    ),
    "checked": Column(
        pa.bool_(),
        _decision("checked"),
        "Whether the label is from an adjudicator who checked a single annotator's label.",
    ),
    "first_label": _text(_decision("first_label"), "The single annotator's label if the row was checked, or null."),
    "round": Column(
        _COUNT, _judged("round"), "The number of the last round; each round asks annotators of another language."
    ),
    "judged_as": _text(
        lambda rows: pc.if_else(pc.is_valid(rows.unit["copy_of"]), rows.judged["item__key"], pa.scalar(None, _TEXT)),
        "The id of the post with the same text that gave the label, or null.",
    ),
    "reused_from": _text(_judged("reused_from__task__name"), "The task that the label was reused from, or null."),
    "posted_at": Column(_TIME, _unit("item__posted_at"), "The time of the post, in UTC."),
    "author": _text(
        _nullable(_unit("item__author")),
        "The author's id, hashed with the installation's key. Omitted if the text must not be published.",
        with_text=True,
    ),
    "url": _text(
        _nullable(_unit("item__url")), "The URL of the post. Omitted if the text must not be published.", with_text=True
    ),
    "letters": Column(
        _COUNT, _unit("item__letters"), "The number of letters in the text, without hashtags; repetitions count once."
    ),
    "votes": Column(
        pa.list_(VOTE),
        lambda rows: votes_in(rows.unit["item__votes"], rows.export.task.panel.voters).cast(pa.list_(VOTE)),
        "The languages that each detector returned, best first.",
    ),
    "candidates": Column(
        pa.list_(_TEXT),
        _decode_lists(_judged("candidates")),
        "The languages whose annotators could be asked, most likely first.",
    ),
    "judgments": Column(
        pa.list_(JUDGMENT), _judgments, "Every answer, skip and flag, including those that were undone or voided."
    ),
    "transitions": Column(pa.list_(TRANSITION), _transitions, "Every move between stages."),
}


def columns_of(task: Task, *, with_text: bool) -> dict[str, Column]:
    """Return a task's columns by name, in order. Columns added by quality controls come last.

    with_text: whether to include the text, and the other columns that are marked `with_text`.
    """
    kind, built_in = task.kind, dict(COLUMNS)
    if of_controls := [column for control in task.hooks["judgment_columns"] for column in control.judgment_columns()]:
        names, types, functions = zip(*of_controls, strict=True)
        type = pa.struct([*JUDGMENT, *zip(names, types, strict=True)])
        judgments = partial(_judgments, functions=functions, type=type)
        built_in["judgments"] = Column(pa.list_(type), judgments, COLUMNS["judgments"].about)
    columns: dict[str, Column] = {}
    for name in kind.publication.columns:
        if name == FIELDS:
            columns |= {field: _of_field(field) for field in kind.exported_fields}
        else:
            columns[name] = built_in[name]
    for control in task.hooks["columns"]:
        for name, values in control.columns(task).items():
            if name in columns:
                raise ValueError(
                    f"The quality control {control.name!r} adds a column named {name!r}, but the set already has one. "
                    "Rename the column."
                )
            columns[name] = _of_control(values)
    return {name: column for name, column in columns.items() if with_text or not column.with_text}


def _of_control(texts: Mapping[int, object]) -> Column:
    return Column(
        _TEXT,
        lambda rows: pa.array(map(texts.get, rows.unit["pk"].to_pylist()), _TEXT),
        "What a quality control reports about the row.",
    )


def _of_field(field: str) -> Column:
    return Column(
        _TEXT,
        lambda rows: pa.array([fields[field] for fields in rows.fields], _TEXT),
        f"The field {field} of the record.",
        with_text=True,
    )
