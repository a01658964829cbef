"""Forecast a panel before a task is opened: the voters' agreement, the work for annotators, and the expected error.

The votes are counted in a single query per panel, grouped by the voters' first labels. The error is measured on items
with a known true label, and predicted from earlier audits of the same panel.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import combinations
from math import sqrt
from typing import Any, NamedTuple

from annotate.controls.audit_report import audits_of
from annotate.controls.check_report import slips
from annotate.core.estimation.label_errors import Audit, error, overall_error, power_allocation
from annotate.core.estimation.proportions import pool, proportion
from annotate.kinds.language import LEAST_LETTERS
from annotate.kinds.panel_kind import invalid_votes
from annotate.models import Task
from annotate.work.routes import Routes
from corpora.core.languages import finer
from corpora.core.voters import Panel, agreed_vote
from corpora.models import Item
from corpora.predictions.panels import ComparedCount, compared_votes, supported_labels

# Earlier audits are samples from other draws, but the estimator expects the audited items to be a part of all items.
# All counts of items are therefore multiplied, so that the audited items are a negligible part of them.
LARGER = 1_000
Stratum = tuple[str, ...]  # the label of posts, or the language and the label of records
Rule = Callable[
    [ComparedCount], tuple[str | None, str]
]  # returns the label on which voters agree, and the readers' language


class Work(NamedTuple):
    """The amount of work in a task.

    size: number of items to draw; None for all
    audit_share, audit_least: share of the agreed items to audit, and minimum number per stratum
    seconds: total time of all annotators per item
    """

    size: int | None
    audit_share: float
    audit_least: int
    seconds: float


class Group(NamedTuple):
    """The number of items with the same votes, language and true label.

    firsts: each voter's first label; "" for no vote
    label: label on which the voters agree; "" if they don't
    queue: queue (language) of the items
    language: language of the records; "" for posts
    truth: true label; None if unknown
    items: number of items
    """

    firsts: tuple[str, ...]
    label: str
    queue: str
    language: str
    truth: str | None
    items: int

    @property
    def stratum(self) -> Stratum:
        return (self.language, self.label) if self.language else (self.label,)

    def is_right(self, label: str) -> bool:
        """Return whether a label is right. A coarse code such as zh is right for the languages that it covers."""
        return label == self.truth or (not self.language and bool(label) and self.truth in finer(label))


def forecast_of(
    corpus: str, panel: Panel, task: Task | None, truth: Mapping[str, str] | None, work: Work
) -> dict[str, Any]:
    """Return the forecast of a panel, as a dict.

    task: unsaved task with the panel, whose kind defines agreement; None for records with any labels
    truth: true labels of some items, by id; None to use the records' declared labels

    voters, agree: voters of the panel, and how many must agree
    items, agreed: number of items, and number of items on which the voters agree
    unused: number of posts on which the voters agree but the task does not use the agreement
    invalid: the voters' labels that are not valid answers, see `invalid_votes`
    known, wrong: number of agreed items with a known true label, and how many of them have a wrong agreed label
    error: error of the agreement on these items, see Estimate.as_dict
    earlier: error expected from earlier audits, see `_expected_error`; None if there is no such audit
    labels: a row for each label on which the voters agree, see `_labels`
    single: a row for each voter: `voter`, `voted` (number of items with a vote), `known` (how many of these items have
        a known true label) and `right` (how many of the votes on known items are right); see `_voter`
    pairs: a row for each pair of voters, see `_pair`
    queues: expected work by language: `items` (to annotate), `disputed`, `audits` and `hours`
    people, hours: total `items` and total `hours` of all queues
    """
    counts = [*compared_votes(corpus, LEAST_LETTERS, panel, truth)]
    are_sets = task is not None and task.kind.form.several
    groups = [*_groups(counts, _rule(corpus, panel, task), are_sets=are_sets)]
    agreed = [group for group in groups if group.label]
    sizes = _sum_counts((group.stratum, group.items) for group in agreed)
    tasks, audits = earlier_audits(panel, 2 if any(group.language for group in groups) else 1)
    queues = _queues(groups, work)
    return {
        "voters": [*panel.voters],
        "agree": panel.agree,
        "items": sum(group.items for group in groups),
        "agreed": sum(sizes.values()),
        "unused": sum(group.items for group in groups if not (group.language or group.label) and _agree(group, panel)),
        "invalid": invalid_votes(((row.voted.votes, row.voted.posts) for row in counts), task) if task else {},
        **_error_counts(agreed),
        "earlier": _expected_error(sizes, tasks, audits),
        "labels": _labels(agreed, audits),
        "single": [{"voter": name} | _voter(place, groups) for place, name in enumerate(panel.voters)],
        "pairs": [
            {"voters": [panel.voters[place] for place in places]} | _pair(*places, groups)
            for places in combinations(range(len(panel.voters)), 2)
        ],
        "queues": queues,
        "people": sum(row["items"] for row in queues),
        "hours": sum(row["hours"] for row in queues),
    }


def _groups(counts: Iterable[ComparedCount], rule: Rule, *, are_sets: bool) -> Iterator[Group]:
    """Yield a group for each count. Labels within a set are sorted, so that sets can be compared.

    are_sets: whether a vote is a set of labels
    """
    for row in counts:
        firsts = tuple(str(ranking[0][0]) if ranking else "" for ranking in row.voted.votes.values())
        firsts = tuple(" ".join(sorted(first.split())) for first in firsts) if are_sets else firsts
        label, queue = rule(row)
        truth = None if row.truth is None else " ".join(sorted(row.truth))
        yield Group(firsts, label or "", queue, row.language, truth, row.voted.posts)


def _rule(corpus: str, panel: Panel, task: Task | None) -> Rule:
    """Return the rule for the agreed label and the queue: the task's routing or, without a task, the panel's votes."""
    if task is None:
        supported = supported_labels(corpus, panel)

        def by_panel(row: ComparedCount) -> tuple[str | None, str]:
            label = agreed_vote(row.voted.votes, panel)
            return label if supported is None or label in supported else None, row.language

        return by_panel
    routes = Routes.load(task)

    def by_task(row: ComparedCount) -> tuple[str | None, str]:
        item = Item(votes=row.voted.votes, letters=row.voted.letters, language=row.language)
        label = task.kind.routing.agreed(item, task)
        if label:
            return label, row.language or routes.queue_in(label)
        return None, task.kind.routing.candidates(item, "", routes)[0]

    return by_task


def _sum_counts(counts: Iterable[tuple[Any, int]]) -> Counter[Any]:
    total: Counter[Any] = Counter()
    for key, number in counts:
        total[key] += number
    return total


# --- Agreement and errors


def _agree(group: Group, panel: Panel) -> bool:
    return max(Counter(filter(None, group.firsts)).values(), default=0) >= panel.agree


def _error_counts(agreed: Iterable[Group]) -> dict[str, Any]:
    """Return the number of agreed items with a known true label, how many of them are wrong, and the error."""
    with_truth = [group for group in agreed if group.truth is not None]
    number, wrong = (
        sum(group.items for group in groups)
        for groups in (with_truth, [group for group in with_truth if not group.is_right(group.label)])
    )
    return {"known": number, "wrong": wrong, "error": proportion(wrong, number).as_dict()}


def _labels(agreed: Sequence[Group], audits: Mapping[Stratum, Audit]) -> list[dict[str, Any]]:
    """Return a row for each label on which the voters agree, most frequent first.

    A row has `label`, `items`, `known`, `wrong` and `error` as in forecast_of, `audited` (number of items in earlier
    audits) and `earlier` (error in these audits; None without audits).
    """
    by_label: dict[str, list[Group]] = {}
    for group in agreed:
        by_label.setdefault(group.label, []).append(group)
    rows = []
    for label, groups in by_label.items():
        audit = _merge([audit for stratum, audit in audits.items() if stratum[-1] == label])
        rows.append(
            {
                "label": label,
                "items": sum(group.items for group in groups),
                **_error_counts(groups),
                "audited": audit.resolved if audit else 0,
                "earlier": error(audit).as_dict() if audit and audit.resolved else None,
            }
        )
    return sorted(rows, key=lambda row: (-row["items"], row["label"]))


def _voter(place: int, groups: Sequence[Group]) -> dict[str, Any]:
    with_truth = [group for group in groups if group.truth is not None and group.firsts[place]]
    number = sum(group.items for group in with_truth)
    right = sum(group.items for group in with_truth if group.is_right(group.firsts[place]))
    return {
        "voted": sum(group.items for group in groups if group.firsts[place]),
        "known": number,
        "right": right,
        "accuracy": proportion(right, number).as_dict(),
    }


def _pair(one: int, other: int, groups: Iterable[Group]) -> dict[str, Any]:
    """Compare two voters on the items on which both vote. The result has:

    voted, same: number of these items, and number with the same label from both voters
    known: number of these items with a known true label
    correlation: phi coefficient of the voters' errors on items with a known true label; None if a voter is always right
        or always wrong
    """
    both = [group for group in groups if group.firsts[one] and group.firsts[other]]
    with_truth = [group for group in both if group.truth is not None]
    counts = _sum_counts(
        ((*(not group.is_right(group.firsts[place]) for place in (one, other)),), group.items) for group in with_truth
    )
    return {
        "voted": sum(group.items for group in both),
        "same": sum(group.items for group in both if group.firsts[one] == group.firsts[other]),
        "known": counts.total(),
        "correlation": _phi(counts),
    }


def _phi(counts: Mapping[tuple[bool, ...], int]) -> float | None:
    """Return the phi coefficient of two binary variables, from the counts of their four combinations."""
    both, first, second, none = (counts[key] for key in ((True, True), (True, False), (False, True), (False, False)))
    variances = (both + first) * (second + none) * (both + second) * (first + none)
    return (both * none - first * second) / sqrt(variances) if variances else None


# --- Earlier audits of the same panel


def earlier_audits(panel: Panel, width: int) -> tuple[list[Task], dict[Stratum, Audit]]:
    """Return the tasks with audits of a panel, and the audits of each stratum, merged over these tasks.

    width: number of values that define a stratum
    """
    tasks = [
        task
        for task in Task.objects.order_by("pk")
        if task.kind.audits_agreement and task.panel == panel and len(task.kind.statistics.audit_strata) == width
    ]
    audits: dict[Stratum, list[Audit]] = {}
    with_audits = []
    for task in tasks:
        task_audits = audits_of(task, task.units.exclude(agreed_label=""))
        if any(audit.resolved for audit in task_audits.values()):
            with_audits.append(task)
            for stratum, audit in task_audits.items():
                audits.setdefault(stratum, []).append(audit)
    return with_audits, {stratum: merged for stratum, parts in audits.items() if (merged := _merge(parts))}


def _merge(audits: Sequence[Audit]) -> Audit | None:
    if not audits:
        return None
    return Audit(**{field.name: sum(getattr(audit, field.name) for audit in audits) for field in fields(Audit)})


def _expected_error(
    sizes: Mapping[Stratum, int], tasks: Sequence[Task], audits: Mapping[Stratum, Audit]
) -> dict[str, Any] | None:
    """Return the error expected from earlier audits, or None if these strata were not audited.

    Each stratum is weighted by its size in this corpus, and has the error from the earlier audits. A stratum without an
    audit has the mean error of the others, with an interval from all right to all wrong (label_errors.overall_error).

    The result is Estimate.as_dict with `audited` (number of audited items), `tasks` (names of the audited tasks) and
    `unseen` (number of items in strata without an audit).
    """
    audited = {stratum: audits[stratum] for stratum in sizes if stratum in audits and audits[stratum].resolved}
    if not audited:
        return None
    larger = LARGER * max((audit.resolved + audit.unresolved) / sizes[stratum] for stratum, audit in audited.items())
    nothing = Audit(0, 0, 0, 0, 0, 0)
    here = [replace(audited.get(stratum, nothing), posts=size * max(larger, 1)) for stratum, size in sizes.items()]
    by_task = [rate for task in tasks if (rate := slips(task))]
    return overall_error(here, pool(*by_task) if by_task else None).as_dict() | {
        "audited": sum(audit.resolved for audit in audited.values()),
        "tasks": [task.name for task in tasks],
        "unseen": sum(size for stratum, size in sizes.items() if stratum not in audited),
    }


# --- Work for annotators


def _queues(groups: Sequence[Group], work: Work) -> list[dict[str, Any]]:
    """Return the expected work in each queue, largest first."""
    total = sum(group.items for group in groups)
    part = min(1.0, work.size / total) if work.size and total else 1.0
    queue_of = {group.stratum: group.queue for group in groups if group.label}
    sizes = _sum_counts((group.stratum, group.items) for group in groups if group.label)
    read: dict[str, list[float]] = {}
    for group in groups:
        read.setdefault(group.queue, [0.0, 0.0])[0] += part * group.items * (not group.label)
    audits = power_allocation(
        {stratum: part * size for stratum, size in sizes.items()}, work.audit_share, work.audit_least
    )
    for stratum, number in audits.items():
        read[queue_of[stratum]][1] += number
    rows = [
        {
            "language": queue,
            "items": disputed + audited,
            "disputed": disputed,
            "audits": audited,
            "hours": (disputed + audited) * work.seconds / 3600,
        }
        for queue, (disputed, audited) in read.items()
    ]
    return sorted(rows, key=lambda row: (-row["items"], row["language"]))
