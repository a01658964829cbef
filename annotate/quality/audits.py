"""How wrong the detectors are where they agree, by what people found in the posts chosen for the audit.

Posts are chosen by lot when units are added. A reader is not told, and an adjudicator who checks the answer sees
neither it nor the votes. Where too much of a language may be wrong, people label all of it (controls/audit.py).
"""

from collections.abc import Collection, Iterable
from functools import reduce

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.db.models.lookups import GreaterThan

from annotate.core import stages
from annotate.core.aggregation.majority import majority
from annotate.core.draws.committed_draws import AUDIT, RECHECK
from annotate.core.estimation.allocation import further
from annotate.core.estimation.detector_error import (
    Audit,
    allotted,
    bounds,
    error,
    is_over,
    overall_bounds,
    overall_error,
)
from annotate.core.estimation.proportions import Estimate
from annotate.models import Judgment, Task, Unit
from annotate.quality import lots
from annotate.quality.checks import slips
from corpora.database.bulk_rows import listed

# What is told of where nothing says how often adjudicators slip.
ASSUMED = Estimate(0.01, 0.01, 0.01, 0.0, 0.0)

Stratum = tuple[str, ...]  # a unit's values at the paths of Statistics.audit_strata


def stratum_of(task: Task, unit: Unit) -> Stratum:
    """What a share is chosen of for the audit: the posts with the unit's label, of documents those in its language."""
    return tuple(reduce(getattr, path.split("__"), unit) for path in task.kind.statistics.audit_strata)


def audits(task: Task, labels: Iterable[str] | None = None) -> dict[str, Audit]:
    """Label -> what the audit found of the posts on which the detectors agreed; in order of label."""
    posts = task.units.exclude(agreed_label="")
    if labels is not None:
        posts = posts.filter(agreed_label__in=labels)
    return {label: audit for (label,), audit in audits_of(task, posts).items()}


def audits_of(task: Task, posts: QuerySet[Unit]) -> dict[Stratum, Audit]:
    """Stratum -> what the audit found of its posts; in order."""
    paths = task.kind.statistics.audit_strata
    counted = {tuple(of): posts for *of, posts in posts.order_by(*paths).values_list(*paths).annotate(Count("pk"))}
    chosen = posts.filter(audited=True).order_by()
    judged = [Coalesce(f"copy_of__{name}", name) for name in ("pk", "label", "stage", "agreed_label", "recheck")]
    rows = list(chosen.values_list(*paths, *judged))
    said: dict[int, list[str]] = {}
    answers = Judgment.objects.live().answers().filter(unit__in=listed({row[-5] for row in rows}))
    for unit, label in answers.order_by().values_list("unit_id", "label"):
        said.setdefault(unit, []).append(label)
    found: dict[Stratum, list[str]] = {of: [] for of in counted}
    for *of, unit, label, stage, agreed_label, recheck in rows:
        found[tuple(of)].append(_finding(said.get(unit, []), label, stage, agreed_label, recheck))
    return {of: Audit(posts=counted[of], **_counts(found[of])) for of in counted}


def _finding(said: list[str], label: str, stage: str, agreed_label: str, recheck: bool) -> str:
    """What came of one audited post: unresolved; confirmed, unchecked or checked; or doubted; and whether it
    was wrong. said: what people answered.
    """
    if stage != stages.LABELLED:
        return "unresolved"
    wrong = "_wrong" if label != agreed_label else ""
    if majority(said) != agreed_label:
        return f"doubted{wrong}"
    return f"checked{wrong}" if recheck else "unchecked"


def _counts(findings: list[str]) -> dict[str, int]:
    count = findings.count
    checked = count("checked") + count("checked_wrong")
    return {
        "doubted": count("doubted") + count("doubted_wrong"),
        "doubted_wrong": count("doubted_wrong"),
        "confirmed": count("unchecked") + checked,
        "checked": checked,
        "checked_wrong": count("checked_wrong"),
        "unresolved": count("unresolved"),
    }


def over_limit(task: Task, audit: Audit) -> bool:
    return is_over(audit, task.audit_limit, slips(task))


def audit_counts(task: Task) -> dict[Stratum, tuple[int, int]]:
    """Stratum -> how many posts machines label there, and how many of those were chosen for the audit."""
    counts = task.units.exclude(agreed_label="").order_by().values_list(*task.kind.statistics.audit_strata)
    counts = counts.annotate(posts=Count("pk"), chosen=Count("pk", filter=Q(audited=True)))
    return {tuple(of): (posts, chosen) for *of, posts, chosen in counts}


def contested_labels(task: Task) -> set[str]:
    """The labels on which the detectors agreed but which people now label in full, because their audit failed."""
    contested = task.units.filter(transitions__event="contested")
    return set(contested.order_by().values_list("agreed_label", flat=True).distinct())


def contested_waiting() -> dict[int, dict[str, int]]:
    """Task -> label of a language that failed its audit -> units that people have yet to read for that. All tasks."""
    units = Unit.objects.filter(stage=stages.QUEUED, transitions__event="contested").order_by()
    found: dict[int, dict[str, int]] = {}
    for task, label, number in units.values_list("task", "agreed_label").annotate(Count("pk", distinct=True)):
        found.setdefault(task, {})[label] = number
    return found


def choose_audits(task: Task, first: int) -> list[int]:
    """Choose the posts by which the detectors' agreement is audited. Returns the keys of their units.

    They are chosen by lot among the posts of each stratum on which the detectors agree, as many as the power allocation
    gives it. Copies are included, since posts are counted. When a task is extended, lots are drawn among the added
    posts only: the earlier choice stays. first: the position of the first post that was added.
    """
    if not (task.audit_share or task.audit_least):
        return []
    added = task.units.exclude(agreed_label="").filter(position__gte=first)
    counts = further(audit_counts(task), task.audit_share, task.audit_least)
    return lots.drawn_units(task, AUDIT, added, task.kind.statistics.audit_strata, counts)


def choose_rechecks(task: Task, units: Collection[Unit]) -> None:
    """Mark those of the audited units that a lot has an adjudicator check although their reader confirms them."""
    chosen = lots.drawn_each(task, RECHECK, (unit.item.key for unit in units), task.audit_recheck)
    for unit in units:
        unit.recheck = unit.item.key in chosen


def unread(task: Task) -> QuerySet[Unit]:
    """The posts whose label is the detectors' agreement alone: neither chosen for the audit nor contested (stratum
    `agreed` of an exported set). Posts are counted, so one of them may have a text that was read as another post.
    """
    alone = Q(stage=stages.AGREED) | Q(copy_of__stage=stages.AGREED) | ~Q(agreed_label__in=contested_labels(task))
    return task.units.exclude(agreed_label="").filter(alone, audited=False)


def choose_more(task: Task, number: int, labels: Collection[str] = ()) -> dict[str, list[int]]:
    """Label -> the keys of the unread posts that the audit would have next: `number` in all, or all there are, of these
    labels or of every one. The lot goes on where that of the posts chosen before has ended.
    """
    posts: dict[str, dict[str, int]] = {}
    rest = unread(task).filter(agreed_label__in=labels) if labels else unread(task)
    for label, key, unit in rest.order_by().values_list("agreed_label", "item__key", "pk"):
        posts.setdefault(label, {})[key] = unit
    found = audits(task, posts)
    shares = allotted(number, {label: (len(keys), found[label]) for label, keys in posts.items()})
    return {
        label: [posts[label][key] for key in lots.drawn(task, AUDIT, [label], posts[label], share)]
        for label, share in shares.items()
    }


def of_audit() -> Q:
    """Of a task's units: those that were chosen for the audit, and those whose text a chosen copy has.

    The copies are counted: to know whether there is one, PostgreSQL would gather those of all tasks, with every answer.
    """
    copies = Unit.objects.filter(copy_of=OuterRef("pk"), audited=True).order_by().values("copy_of")
    return Q(audited=True) | Q(GreaterThan(Subquery(copies.values(number=Count("pk"))), 0))


def left(task: Task, label: str) -> bool:
    return task.units.filter(agreed_label=label, stage=stages.AGREED).exists()


def waiting(units: QuerySet[Unit]) -> QuerySet[Unit]:
    """Those of a task's units that are of the audit and not done yet. In a language that failed it, the rest that
    people read does not count.
    """
    return units.filter(of_audit(), stage__in=(stages.QUEUED, stages.ADJUDICATION))


def labels_of(units: QuerySet[Unit]) -> set[str]:
    return set(units.exclude(agreed_label="").order_by().values_list("agreed_label", flat=True).distinct())


def report(task: Task) -> dict:
    """What the audit found, in all and by language, in JSON's terms.

    slips: how often adjudicators slip, as far as two of them decided the same, which overall and error take off; None
    where that is not known, and then assumed is overall if they slipped in 1%. languages: one row for each label on
    which the detectors agreed; posts: how many such there are; audited: how many
    of them people have read to the end; error: the share in which the detectors are wrong, with its 95% interval;
    checked: how many that readers confirmed an adjudicator decided too, and overruled: of these, found wrong;
    bounds: the ends of error if all unresolved (discarded, or not done yet) were right, or all wrong, and of overall in
    overall_bounds; waiting: some of it is not done;
    over_limit: it is done, too much may be wrong, and some were not read; all_read: the same, but nothing is left that
    people do not read; contested: people label them all.
    """
    found, slipping = audits(task), slips(task)
    unread, unfinished = labels_of(task.units.filter(stage=stages.AGREED)), labels_of(waiting(task.units))
    contested = contested_labels(task)
    over = {label for label, audit in found.items() if label not in unfinished and over_limit(task, audit)}
    return {
        "limit": task.audit_limit,
        "overall": overall_error(found.values(), slipping).as_dict(),
        "overall_bounds": list(overall_bounds(found.values(), slipping)),
        "slips": slipping and slipping.as_dict(),
        "assumed": None if slipping else overall_error(found.values(), ASSUMED).as_dict(),
        "languages": [
            {
                "language": label,
                "posts": audit.posts,
                "audited": audit.resolved,
                "unresolved": audit.unresolved,
                "checked": audit.checked,
                "overruled": audit.checked_wrong,
                "error": error(audit, slipping).as_dict(),
                "bounds": list(bounds(audit, slipping)),
                "waiting": label in unfinished,
                "over_limit": label in over & unread,
                "all_read": label in over - unread - contested,
                "contested": label in contested,
            }
            for label, audit in found.items()
        ],
    }
