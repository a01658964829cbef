"""Audit of the detectors' agreement, in which people read a random sample of the items that detectors label.

If a language fails the audit, people label every item on which the detectors agreed in that language. audit_report.py
counts and presents the results.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any

from django.db import transaction
from django.db.models import QuerySet, Subquery

from annotate.controls import audit_report
from annotate.controls.audit_report import (
    audit_counts,
    audit_plot,
    audit_table,
    audit_words,
    audits,
    labels_of,
    limit_words,
    of_audit,
    over_limit,
    report,
    waiting,
)
from annotate.core import stages
from annotate.core.draws.committed_draws import AUDIT, RECHECK
from annotate.core.estimation.detector_error import allotted, can_tell, contest_chance, further
from annotate.core.refusals import WrongStage
from annotate.kinds.control import Panel, QualityControl, register
from annotate.kinds.designs import DESIGNS
from annotate.kinds.language import LEAST_LETTERS
from annotate.models import Job, Task, Unit
from annotate.quality import commitments
from annotate.reports.tables import are, many
from annotate.work import job_store
from annotate.work.closure import check_languages, locked_open, units_of, where
from annotate.work.moves import BATCH, CHANGED, NO_ROW, save_all, send_to_people, to_people, unread
from annotate.work.routes import Routes
from annotate.work.routing import is_audit
from annotate.work.task_creation import Opened
from corpora.database.bulk_rows import listed
from corpora.database.statements import prepared

AT_ONCE = 500  # largest number of units that an answer sends to people directly; a job sends more


def check_limit(unit: Unit) -> None:
    """Send the remaining items of a language to people if its audit has finished and failed.

    Called after each judgment; the caller has locked the unit. An unfinished audit is not judged, because the bounds
    from a few answers are too wide.
    """
    task, label = unit.task, unit.agreed_label
    # This runs for every unit, audited or not, so that every answer executes the same statements. They match a row only
    # if the label may fail its audit.
    judged = task.pk if label and unit.stage in stages.FINISHED else NO_ROW
    # Two simultaneous last answers would each count the other as outstanding, so the second waits for this lock.
    found = next(iter(_to_judge(judged)), None)
    # After a language has failed, no unit in it is labelled by detectors alone. `_to_fail` is then empty, and the audit
    # is not counted again.
    if _to_fail(judged, label) and found and over_limit(found, audits(found, [label])[label]):
        _contest_after_answer(found, label)


def _contest_after_answer(task: Task, label: str) -> None:
    """Contest a label now, or in a job if it has more than AT_ONCE units.

    With thousands of units, the annotator would wait for the transaction, and everyone else for the task's lock.
    """
    if task.units.filter(stage=stages.AGREED, agreed_label=label).count() <= AT_ONCE:
        contest(task, label)
    elif not Job.objects.contesting(task).exists():
        job_store.begin("audit", {"task": task.name, "contest": True}, corpus=task.draw.corpus.name)


@prepared
def _to_judge(task) -> QuerySet[Task]:
    return Task.objects.select_for_update(no_key=True).filter(pk=task)


@prepared
def _to_fail(task, label) -> QuerySet[Task]:
    """Return the task if detectors still label units with this label and the label's audit is finished.

    Each subquery reads the first row of an index, in index order. PostgreSQL plans this query once for all labels.
    Without the order, it would expect to find a match early in a table scan, and would read the whole table if there
    were none.
    """
    agreed = Unit.objects.filter(task=task, agreed_label__range=(label, label)).order_by("agreed_label")
    first = {"agreed": agreed.filter(stage=stages.AGREED), "to_audit": waiting(agreed)}
    found = Task.objects.alias(**{name: Subquery(units.values("pk")[:1]) for name, units in first.items()})
    return found.filter(pk=task, agreed__isnull=False, to_audit__isnull=True)


@transaction.atomic
def contest(task: Task, label: str) -> int:
    """Send all units on which the detectors agreed on a label to people. Return their number."""
    return send_to_people(task.units.filter(agreed_label=label), "contested", Routes.load(task))


def contest_all(task: Task) -> dict[str, int]:
    """Contest every language that has failed its audit, for example after the task's limit was lowered.

    Returns the number of units sent to people, by label.
    """
    unfinished = labels_of(waiting(task.units))
    to_read = labels_of(task.units.filter(stage=stages.AGREED)) - unfinished
    found = {label: audit for label, audit in audits(task).items() if label in to_read}
    return {label: contest(task, label) for label, audit in found.items() if over_limit(task, audit)}


@transaction.atomic
def add_audits(task: Task, number: int, languages: Collection[str] = ()) -> dict[str, int]:
    """Add unread units to the audit.

    If another unit with the same text has been read, the text is not read again.

    number: number of units to add; if fewer are left, all of them are added.
    languages: labels of the detectors among which the units are allocated (detector_error.allotted); empty for all.

    Returns the number of added units by language. Raises NotFound if the detectors agree on nothing in a language, and
    WrongStage if the task is closed or no unit is left.
    """
    # Units that are with people because a copy of theirs was drawn can now be drawn themselves.
    task = locked_open(task, unread(task).exclude(stage__in=(stages.AGREED, stages.COPIED)))
    agreed = labels_of(task.units.all())
    check_languages(languages, agreed, f"The detectors agree on no post of task {task.name}", "they do")
    found = choose_more(task, number, languages)
    if not found:
        raise WrongStage(
            f"Nothing can be added to the audit of task {task.name}: people read every post{where(languages)} on "
            "which the detectors agree, or have read it."
        )
    units = units_of(task, found)
    for unit in units:
        unit.audited = True
    save_all(units, [], ["audited"])
    # Units drawn earlier have already left the detectors' stage.
    send_to_people(task.units.filter(of_audit()), "audited", Routes.load(task))
    return {label: len(units) for label, units in found.items()}


# --- Selection


def choose_audits(task: Task, first: int) -> list[int]:
    """Draw the units of the audit, and return their keys.

    The draw is random within each stratum of units on which the detectors agree. The power allocation sets the number
    per stratum. Copies are included, because the audit counts items, not texts. If a task is extended, only added units
    are drawn, and the earlier selection is kept.

    first: position of the first added unit.
    """
    if not (task.audit_share or task.audit_least):
        return []
    added = task.units.exclude(agreed_label="").filter(position__gte=first)
    counts = further(audit_counts(task), task.audit_share, task.audit_least)
    return commitments.drawn_units(task, AUDIT, added, task.kind.statistics.audit_strata, counts)


def choose_rechecks(task: Task, units: Collection[Unit]) -> None:
    """Mark a random share of audited units. An adjudicator decides these even if the reader confirms the detectors."""
    chosen = commitments.drawn_each(task, RECHECK, (unit.item.key for unit in units), task.audit_recheck)
    for unit in units:
        unit.recheck = unit.item.key in chosen


def choose_more(task: Task, number: int, labels: Collection[str] = ()) -> dict[str, list[int]]:
    """Draw the unread units that the audit takes next. The draw continues where the earlier one ended.

    number: number of units in total; if fewer are left, all of them are drawn.
    labels: labels to draw from; empty for all.

    Returns the keys of the units by label.
    """
    posts: dict[str, dict[str, int]] = {}
    rest = unread(task).filter(agreed_label__in=labels) if labels else unread(task)
    for label, key, unit in rest.order_by().values_list("agreed_label", "item__key", "pk"):
        posts.setdefault(label, {})[key] = unit
    found = audits(task, posts)
    shares = allotted(number, {label: (len(keys), found[label]) for label, keys in posts.items()})
    return {
        label: [posts[label][key] for key in commitments.drawn(task, AUDIT, [label], posts[label], share)]
        for label, share in shares.items()
    }


def _send(task: Task, chosen: Sequence[int], first: int) -> int:
    """Send units drawn for the audit to people. If a unit is a copy, its original is sent.

    chosen: keys of the units.
    first: position of the first unit that was just added.

    Returns the number of new units sent.
    """
    routes = Routes.load(task)
    Unit.objects.filter(pk__in=listed(chosen)).update(audited=True)
    originals = dict(Unit.objects.filter(pk__in=listed(chosen)).order_by().values_list("pk", "copy_of"))
    keys = iter(dict.fromkeys(originals[key] or key for key in chosen))
    sent = 0
    while some := list(islice(keys, BATCH)):
        judged = Unit.objects.filter(pk__in=listed(some), stage=stages.AGREED).select_related("item").in_bulk()
        added = [judged[key] for key in some if key in judged and judged[key].position >= first]
        for unit in added:
            unit.task = task
        transitions = [to_people(unit, "audited", routes) for unit in added]
        choose_rechecks(task, added)
        save_all(added, transitions, CHANGED)
        sent += len(added)
        earlier = [key for key, unit in judged.items() if unit.position < first]
        send_to_people(Unit.objects.filter(pk__in=listed(earlier)), "audited", routes)
    return sent


# Usual error rate of the detectors' agreement in a language: "<1%" in the article.
USUALLY_WRONG = 0.01


def _audit_of(task: Task, posts: int, chosen: int) -> dict[str, Any]:
    chance = contest_chance(chosen, USUALLY_WRONG, task.audit_limit) if chosen < posts else 0.0
    return {
        "posts": posts,
        "chosen": chosen,
        "can_tell": can_tell(chosen, task.audit_limit),
        "chance": chance,
        "contested": chance * (posts - chosen),
    }


# --- Summary of an opened task


def copies(opened: Opened, *, extended: bool = False) -> str:
    """Return the number of copies as text. For an extended task, the number of waiting copies is left out."""
    copies = are(opened.stages[stages.COPIED], "copy of another", "copies of others")
    waiting = 0 if extended else opened.task.units.waiting_copies().count()
    return f"{copies} ({are(waiting, 'waits', 'wait')} too)" if waiting else copies


def _agreement(task: Task, counting: int, audited: int) -> str:
    """Return a sentence that relates the agreement in the task to the agreement reported by `prelabel`.

    counting: number of items on which the agreement counts.
    audited: number of these in the audit.
    """
    read = f" People read {audited:,} of these all the same, as the audit, and are not told which." if audited else ""
    return (
        f"The detectors' agreement counts on {counting:,} of the task's posts: never on texts of fewer than "
        f"{many(LEAST_LETTERS, 'letter')}, nor in languages whose route says so.{read}"
    )


NO_AUDIT = "Nobody checks what the detectors agree on: no post was chosen for an audit when the task was opened."


class Audit(QualityControl):
    """Audit in which people read a random share of what machines label, drawn when units are added."""

    look_at = "audit"

    def units_added(self, task: Task, first: int, before: Any) -> int:
        return _send(task, choose_audits(task, first), first)

    def queued(self, task: Task, units: Collection[Unit], event: str) -> None:
        if event == "audited":
            choose_rechecks(task, units)


class AuditOfAgreement(Audit):
    """Audit of items on which detectors agree. An adjudicator rechecks a share of those that readers confirm."""

    name = "audit"
    manifest_key = "audit"
    of_agreement = True

    def section(self, task: Task) -> Any:
        return report(task)

    def panel(self, task: Task, found: dict[str, Any]) -> Panel:
        return Panel(
            "The audit of agreement",
            audit_words(found),
            [audit_table(found)],
            found,
            empty=NO_AUDIT,
            plot=audit_plot(found),
            over_limit=sorted(row["language"] for row in found["languages"] if row["over_limit"]),
            advice=limit_words(found, task.name),
            page="explanation/audit",
        )

    def expected(self, task: Task) -> Mapping[str, Any]:
        found = audit_counts(task)
        if not found:
            return {"audit": None}
        chosen = sum(chosen for _, chosen in found.values())
        languages = {label: _audit_of(task, *of) for (label,), of in sorted(found.items())}
        audit = {
            "posts": sum(posts for posts, _ in found.values()),
            "chosen": chosen,
            "recheck": task.units.filter(recheck=True, transitions__event="audited").count(),
            "limit": task.audit_limit,
            "hours": chosen * task.kind.seconds / 3600,
            "contested": sum(of["contested"] for of in languages.values()),
            "languages": languages,
        }
        return {"audit": audit}

    def opened(self, opened: Opened, size: int | None, *, extended: bool) -> tuple[list[str], list[str]]:
        counts, total = opened.stages, opened.stages.total()
        warned = []
        if size and total < size and not extended:
            warned.append(f"Note: the corpus holds only {many(total, 'post')}, and the task has all there are.")
        if extended and opened.samples[0].size < opened.samples[0].asked:
            warned.append(
                f"Note: the task has all {opened.samples[0].frame_size:,} posts now that the corpus held when it was "
                "drawn."
            )
        if DESIGNS[opened.task.draw.design].asks_all:
            asked = f"{counts[stages.QUEUED]:,} queued for readers, {copies(opened)}"
            return [f"Task {opened.task.name}: {many(total, 'post')} drawn; {asked}."], warned
        audited = opened.task.units.filter(audited=True).count()
        said = [
            f"Task {opened.task.name}: {many(total, 'post')} {'added' if extended else 'drawn'}; "
            f"{counts[stages.AGREED]:,} agreed, {counts[stages.QUEUED]:,} queued for readers, "
            f"{copies(opened, extended=extended)}; {are(audited, 'post audits', 'posts audit')} the agreement."
        ]
        if counting := opened.task.units.exclude(agreed_label="").count():
            said.append(_agreement(opened.task, counting, audited))
        if opened.contested:
            said.append(f"Over the audit's limit. {audit_report.contested(opened.contested)}")
        return said, warned

    def enlarged(self, task: Task) -> Mapping[str, int]:
        return contest_all(task)

    def decided(self, unit: Unit, answers: Sequence[str], label: str | None) -> tuple[str, str, str] | None:
        # If the reader disagrees with the detectors, or for a recheck, an adjudicator decides.
        if is_audit(unit) and (unit.recheck or label != unit.agreed_label):
            return "doubted", stages.ADJUDICATION, ""
        return None

    def moved(self, unit: Unit) -> None:
        check_limit(unit)


register(AuditOfAgreement())
