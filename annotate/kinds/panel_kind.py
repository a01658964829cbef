"""Kinds of questions about records in tasks with a panel of voters, whose agreement settles labels.

Any kind with one label or a set of labels per answer can have a panel. With a panel, its tasks have the options and the
audit of a language task, and their sets have the same columns.
"""

from collections.abc import Sequence
from dataclasses import replace

from annotate.kinds.control import Task
from annotate.kinds.kind import Kind
from annotate.kinds.options import OF_AUDIT
from corpora.core.values import matching
from corpora.core.voters import agreed_vote, ballots
from corpora.models import Item, votes_of

FORMS = ("choice", "labels")
# Columns of an exported set that follow the label. The votes precede the judgments.
AFTER_LABEL = ("agreed", "stratum", "audit_chance", "decided_by")


def takes_panel(kind: Kind) -> bool:
    """Return whether tasks of a kind can have a panel of the manager's choice."""
    return kind.audits_agreement or (kind.form.slug in FORMS and "records" in kind.designs)


def with_panel(kind: Kind) -> Kind:
    """Adapt a kind so that the agreement of a panel settles labels and people audit them."""
    if kind.audits_agreement:
        return kind
    kind = replace(kind, options=(*kind.options, *OF_AUDIT), controls=("audit", *kind.controls))
    columns: list[str] = []
    for column in kind.publication.columns:
        columns += [*(["votes"] if column == "judgments" else []), column, *(AFTER_LABEL if column == "label" else ())]
    return kind.with_parts(
        routing={"agreed": agreed, "enters_by": "disputed"},
        statistics={"audit_strata": ("item__language", "agreed_label")},
        publication={
            "columns": tuple(columns),
            "tallies": (*kind.publication.tallies, "by_stratum", "agreed_by"),
        },
    )


def agreed(item: Item, task: Task) -> str | None:
    """Return the label on which the task's panel agrees, or None if people must be asked.

    Sets of labels agree if they are equal.
    """
    votes = ballots(votes_of(item), task.panel)
    label = agreed_vote({voter: _as_answer(ranking, task) for voter, ranking in votes.items()}, task.panel)
    if label is None or label in task.never_agree:
        return None
    try:
        task.kind.rules.check_label(label, task)
    except ValueError:
        return None
    return label


def _as_answer(ranking: Sequence[Sequence[str | float]], task: Task) -> list[list[str | float]]:
    """Return a voter's first label as an answer in the task's spelling, like votes; empty if it is none."""
    if not ranking:
        return []
    try:
        return [[task.kind.form.read([matching(str(ranking[0][0]), task.labels)])]]
    except ValueError:
        return []
