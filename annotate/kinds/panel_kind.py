"""Changes to kinds for tasks with a panel: voters whose agreement on a record labels it automatically.

A kind can have a panel if each answer is a label or a set of labels. Its tasks then have the same options, audit and
export columns as a language task.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from annotate.kinds.control import Task
from annotate.kinds.kind import Kind
from annotate.kinds.options import OF_AUDIT
from corpora.core import NAMED
from corpora.core.values import matching
from corpora.core.voters import Votes, agreed_vote, ballots
from corpora.models import Item, votes_of

FORMS = ("choice", "labels")
# Columns that an exported set has after `label`.
AFTER_LABEL = ("agreed", "stratum", "audit_chance", "decided_by")


def takes_panel(kind: Kind) -> bool:
    """Return whether managers can choose a panel for tasks of the kind."""
    return kind.audits_agreement or (kind.form.slug in FORMS and "records" in kind.designs)


def with_panel(kind: Kind) -> Kind:
    """Return a copy of the kind that labels units by a panel's agreement. Annotators audit these labels."""
    if kind.audits_agreement:
        return kind
    kind = replace(kind, options=(*kind.options, *OF_AUDIT), controls=("audit", *kind.controls))
    columns: list[str] = []
    for column in kind.publication.columns:
        columns += [*(["votes"] if column == "judgments" else []), column, *(AFTER_LABEL if column == "label" else ())]
    return kind.with_parts(
        routing={"agreed": agreed, "enters_by": "disputed"},
        statistics={"audit_strata": ("item__language", "agreed_label")},
        publication={"columns": tuple(columns), "tallies": (*kind.publication.tallies, "by_stratum", "agreed_by")},
    )


def agreed(item: Item, task: Task) -> str | None:
    """Return the label that the task's panel agrees on; None if annotators must label the item.

    Sets of labels agree only if they are equal.
    """
    votes = ballots(votes_of(item), task.panel)
    label = agreed_vote({voter: _as_answer(ranking, task) for voter, ranking in votes.items()}, task.panel)
    return None if label is None or label in task.never_agree or not _is_valid(label, task) else label


def _is_valid(label: str, task: Task) -> bool:
    try:
        task.kind.rules.check_label(label, task)
    except ValueError:
        return False
    return True


def _as_answer(ranking: Sequence[Sequence[str | float]], task: Task) -> list[list[str | float]]:
    """Reduce a ranking to its first label, in the task's spelling; empty if that label is not a valid answer."""
    if not ranking:
        return []
    try:
        return [[task.kind.form.read([matching(str(ranking[0][0]), task.labels)])]]
    except ValueError:
        return []


# --- Votes that are not answers


def invalid_votes(votes: Iterable[tuple[Votes, int]], task: Task) -> dict[str, dict[str, int]]:
    """Return the labels that voters rank first, but that are not valid answers in the task.

    The result is a mapping from voter to label to number of items, most frequent first. It is empty for language tasks.

    votes: the votes on an item, and the number of items with these votes
    """
    if task.kind.routing.agreed is not agreed:
        return {}
    items: dict[str, Counter[str]] = {}
    for item_votes, number in votes:
        for voter, ranking in ballots(item_votes, task.panel).items():
            if ranking:
                items.setdefault(voter, Counter())[str(ranking[0][0])] += number
    valid = {label: _is_answer(label, task) for labels in items.values() for label in labels}
    return {
        voter: invalid
        for voter, labels in items.items()
        if (invalid := {label: number for label, number in labels.most_common() if not valid[label]})
    }


def _is_answer(label: str, task: Task) -> bool:
    answer = _as_answer([[label]], task)
    return bool(answer) and _is_valid(str(answer[0][0]), task)


def invalid_notes(invalid: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return a warning for each voter in the result of `invalid_votes`."""
    notes = []
    for voter, labels in invalid.items():
        examples = ", ".join(f"{label} ({items:,})" for label, items in list(labels.items())[:NAMED])
        more = f", and {len(labels) - NAMED:,} more" if len(labels) > NAMED else ""
        total = sum(labels.values())
        notes.append(
            f"Warning: the labels of {voter} for {total:,} item{'' if total == 1 else 's'} are not answers to the "
            f"question: {examples}{more}. They count as disagreement. To correct them, import the predictions as a new "
            "version with --map."
        )
    return notes
