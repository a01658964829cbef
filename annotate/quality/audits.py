"""How wrong the detectors are where they agree, by what people found in the posts chosen for the audit.

Which posts are chosen is decided when units are added (routing.py). A reader is not told, and an adjudicator who
checks the answer sees neither it nor the votes. Where too much of a language may be wrong, people label all of it.
"""

from collections.abc import Iterable

from django.db.models import Count, Prefetch, Q, QuerySet

from annotate.core import stages
from annotate.core.aggregation import majority
from annotate.core.audits import Audit, bounds, error, overall_error
from annotate.models import Judgment, Task, Unit
from annotate.work.routing import contest, contested_labels


def audits(task: Task, labels: Iterable[str] | None = None) -> dict[str, Audit]:
    """Label -> what the audit found of the posts on which the detectors agreed; in order of label."""
    posts = task.units.exclude(agreed_label="")
    if labels is not None:
        posts = posts.filter(agreed_label__in=labels)
    counted = dict(posts.order_by("agreed_label").values_list("agreed_label").annotate(Count("pk")))
    found: dict[str, list[str]] = {label: [] for label in counted}
    answers = Judgment.objects.filter(kind=Judgment.ANSWER, voided_at=None)
    chosen = posts.filter(audited=True).select_related("task", "copy_of__task")
    for unit in chosen.prefetch_related(
        Prefetch("judgments", queryset=answers), Prefetch("copy_of__judgments", queryset=answers)
    ):
        found[unit.agreed_label].append(_finding(unit.copy_of or unit))
    return {label: Audit(posts=counted[label], **_counts(found[label])) for label in counted}


def _finding(unit: Unit) -> str:
    """What came of one audited post: unresolved; confirmed, unchecked or checked; or doubted; wrong where it was."""
    if unit.stage != stages.LABELLED:
        return "unresolved"
    said = majority([judgment.label for judgment in unit.judgments.all()])
    wrong = "_wrong" if unit.label != unit.agreed_label else ""
    if said != unit.agreed_label:
        return f"doubted{wrong}"
    return f"checked{wrong}" if unit.recheck else "unchecked"


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
    """Whether too much may be wrong; where nothing was chosen for the audit, there is nothing to say so."""
    return audit.resolved + audit.unresolved > 0 and error(audit).high > task.audit_limit


def check_limit(unit: Unit) -> None:
    """After the last word on an audited unit: where its language fails the audit, send the rest of it to people.

    Only once all of the language's audit is done, since a few answers bound nothing. The caller has the unit locked.
    """
    label = unit.agreed_label
    if unit.stage not in stages.FINISHED or not label or not _left(unit.task, label):
        return
    # Two last answers at a time would each take the other for outstanding: the second waits here for the first.
    task = locked(unit.task)
    if not _waiting(task).filter(agreed_label=label).exists() and over_limit(task, audits(task, [label])[label]):
        contest(task, label)


def locked(task: Task) -> Task:
    """The task, whose agreement only one transaction at a time judges or adds to."""
    return Task.objects.select_for_update(no_key=True).get(pk=task.pk)


def contest_all(task: Task, by=None) -> dict[str, int]:
    """The same for all languages of a task, as when its limit was lowered. Label -> units sent to people."""
    sent = {}
    waiting = _labels(_waiting(task))
    for label, audit in audits(task).items():
        if label not in waiting and _left(task, label) and over_limit(task, audit):
            sent[label] = contest(task, label, by)
    return sent


def _left(task: Task, label: str) -> bool:
    return task.units.filter(agreed_label=label, stage=stages.AGREED).exists()


def _waiting(task: Task) -> QuerySet[Unit]:
    """What of the audit is not done yet. Where a language failed it, the rest that people read does not count."""
    chosen = Q(audited=True) | Q(pk__in=task.units.filter(audited=True).values("copy_of"))
    return task.units.filter(chosen, stage__in=(stages.QUEUED, stages.ADJUDICATION))


def _labels(units: QuerySet[Unit]) -> set[str]:
    return set(units.exclude(agreed_label="").order_by().values_list("agreed_label", flat=True).distinct())


def report(task: Task) -> dict:
    """What the audit found, in all and by language, in JSON's terms.

    languages: one row for each label on which the detectors agreed; posts: how many such there are; audited: how many
    of them people have read to the end; error: the share in which the detectors are wrong, with its 95% interval;
    bounds: if all unresolved (discarded, or not done yet) were right, or all wrong; waiting: some of it is not done;
    over_limit: it is done, too much may be wrong, and some were not read; contested: people label them all.
    """
    found = audits(task)
    left, waiting = _labels(task.units.filter(stage=stages.AGREED)), _labels(_waiting(task))
    contested = contested_labels(task)
    return {
        "limit": task.audit_limit,
        "overall": overall_error(found.values()).as_dict(),
        "languages": [
            {
                "language": label,
                "posts": audit.posts,
                "audited": audit.resolved,
                "unresolved": audit.unresolved,
                "error": error(audit).as_dict(),
                "bounds": list(bounds(audit)),
                "waiting": label in waiting,
                "over_limit": label in left and label not in waiting and over_limit(task, audit),
                "contested": label in contested,
            }
            for label, audit in found.items()
        ],
    }
