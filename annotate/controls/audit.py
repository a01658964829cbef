"""Audits by people of what machines or files say: of the detectors' agreement, of declared labels, and of a filter.

Posts are chosen by lot when units are added (quality/audits.py counts what came of them). If a language fails the audit
of the agreement, people label every post of it on which the detectors had agreed.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any

from django.db import transaction
from django.db.models import QuerySet, Subquery

from annotate.core import stages
from annotate.core.refusals import WrongStage
from annotate.figures.finish_forecast import audit_expected
from annotate.kinds.control import Panel, QualityControl, register
from annotate.kinds.designs import DESIGNS
from annotate.kinds.language import LEAST_LETTERS
from annotate.models import Job, Task, Unit
from annotate.quality import audit_report, declared_audits, filter_audits
from annotate.quality.audit_report import (
    audit_plot,
    audit_table,
    audit_words,
    class_table,
    declared_words,
    found_table,
    language_table,
    limit_words,
)
from annotate.quality.audits import (
    audits,
    choose_audits,
    choose_more,
    choose_rechecks,
    labels_of,
    left,
    of_audit,
    over_limit,
    report,
    unread,
    waiting,
)
from annotate.reports.tables import are, many
from annotate.work import job_store
from annotate.work.closure import check_languages, locked_open, units_of, where
from annotate.work.moves import BATCH, CHANGED, NO_ROW, save_all, send_to_people, to_people
from annotate.work.routes import Routes
from annotate.work.routing import is_audit
from annotate.work.task_opening import Opened
from corpora.database.bulk_rows import listed
from corpora.database.statements import prepared

AT_ONCE = 500  # posts that the answer which fails an audit sends to people by itself; more are a job


def check_limit(unit: Unit) -> None:
    """Called when an audited unit has its final label: if its language fails the audit, send the rest of it to people.

    This waits until the language's whole audit is done, since a few answers bound nothing. The caller has locked the
    unit.
    """
    task, label = unit.task, unit.agreed_label
    # This is asked of every unit, audited, checked or neither, so that every answer runs the same statements; only
    # where the label may fail do they find a row.
    judged = task.pk if label and unit.stage in stages.FINISHED else NO_ROW
    # Two simultaneous last answers would each count the other as outstanding, so the second waits here for the first.
    found = next(iter(_to_judge(judged)), None)
    # What people read of a language that failed waits too, and none of it need be looked through for its audit.
    if _to_fail(judged, label) and found and over_limit(found, audits(found, [label])[label]):
        _contest_after_answer(found, label)


def _contest_after_answer(task: Task, label: str) -> None:
    """With thousands of posts the person who answered would wait, and behind the task's lock everybody else."""
    if task.units.filter(stage=stages.AGREED, agreed_label=label).count() <= AT_ONCE:
        contest(task, label)
    elif not Job.objects.contesting(task).exists():
        job_store.begin("audit", {"task": task.name, "contest": True}, corpus=task.draw.corpus.name)


@prepared
def _to_judge(task) -> QuerySet[Task]:
    return _locked(task)


@prepared
def _to_fail(task, label) -> QuerySet[Task]:
    """The task, if machines label some of what they agree on, and all of its audit is done.

    Both are the first by an index whose order they are asked in. PostgreSQL plans this once for all labels, and would
    expect to meet one soon if it read through the table; where there is none it would read all of it.
    """
    agreed = Unit.objects.filter(task=task, agreed_label__range=(label, label)).order_by("agreed_label")
    first = {"agreed": agreed.filter(stage=stages.AGREED), "to_audit": waiting(agreed)}
    found = Task.objects.alias(**{name: Subquery(units.values("pk")[:1]) for name, units in first.items()})
    return found.filter(pk=task, agreed__isnull=False, to_audit__isnull=True)


def _locked(task) -> QuerySet[Task]:
    return Task.objects.select_for_update(no_key=True).filter(pk=task)


@transaction.atomic
def contest(task: Task, label: str) -> int:
    """Have people label every unit on which the detectors agreed on a label. Returns how many."""
    return send_to_people(task.units.filter(agreed_label=label), "contested", Routes.load(task))


def contest_all(task: Task) -> dict[str, int]:
    """The same for all languages of a task, for example after its limit was lowered. Label -> units sent to people."""
    sent = {}
    unfinished = labels_of(waiting(task.units))
    for label, audit in audits(task).items():
        if label not in unfinished and left(task, label) and over_limit(task, audit):
            sent[label] = contest(task, label)
    return sent


@transaction.atomic
def add_audits(task: Task, number: int, languages: Collection[str] = ()) -> dict[str, int]:
    """Add `number` posts that nobody was asked about to the audit, or all there are. Returns how many by language.

    languages: labels on which the detectors agree, among which they are shared out (core/audits.allotted); empty for
    all. A text whose other posts have been read is not read again. by: the manager who asks for it. NotFound for a
    language in which the detectors agree on nothing, WrongStage for a closed task or where nothing is left.
    """
    # The units that are with people because a copy of theirs was chosen may be chosen now themselves.
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
    # Those that had been chosen before have left the detectors' stage.
    send_to_people(task.units.filter(of_audit()), "audited", Routes.load(task))
    return {label: len(units) for label, units in found.items()}


def _send(task: Task, chosen: Sequence[int], first: int) -> int:
    """Send the units that are chosen for the audit to people; of a copy, that whose text it has. first: the position of
    the first unit that has just been added. Returns how many of those go.
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


def copies(opened: Opened, *, extended: bool = False) -> str:
    """extended: how many of the added ones wait is not told."""
    copies = are(opened.stages[stages.COPIED], "copy of another", "copies of others")
    waiting = 0 if extended else opened.task.units.waiting_copies().count()
    return f"{copies} ({are(waiting, 'waits', 'wait')} too)" if waiting else copies


def _said_of(opened: Opened, size: int | None, extended: bool) -> tuple[list[str], list[str]]:
    counts, total = opened.stages, opened.stages.total()
    warned = []
    if size and total < size and not extended:
        warned.append(f"Note: the corpus holds only {many(total, 'post')}, and the task has all there are.")
    if extended and opened.samples[0].size < opened.samples[0].asked:
        warned.append(
            f"Note: the task has all {opened.samples[0].frame_size:,} posts now that the corpus held when it was drawn."
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


def _agreement(task: Task, counting: int, audited: int) -> str:
    """How the detectors' agreement, as prelabel counts it, becomes that of the task. counting, audited: posts."""
    read = f" People read {audited:,} of these all the same, as the audit, and are not told which." if audited else ""
    return (
        f"The detectors' agreement counts on {counting:,} of the task's posts: never on texts of fewer than "
        f"{many(LEAST_LETTERS, 'letter')}, nor in languages whose route says so.{read}"
    )


NO_AUDIT = "Nobody checks what the detectors agree on: no post was chosen for an audit when the task was opened."


class AuditOfDeclaredLabels(QualityControl):
    """Of documents whose class is declared a share is read by people all the same."""

    name = "audit of declared labels"
    manifest_key = "declared_audit"
    look_at = "audit"

    def applies(self, task: Task) -> bool:
        return bool(task.audit_share or task.audit_least)

    def section(self, task: Task) -> Any:
        return declared_audits.report(task)

    def panel(self, task: Task) -> Panel:
        found = declared_audits.report(task)
        heading, empty = "The audit of declared labels", audit_report.NONE_CHOSEN
        if found is None:
            return Panel(heading, data={"declared": None}, empty=empty)
        tables = [made(found) for made in (class_table, language_table, found_table)]
        return Panel(heading, declared_words(found), tables, found, "declared", page="how-to/balanced-sets")

    def units_added(self, task: Task, first: int, before: Any) -> int:
        return _send(task, choose_audits(task, first), first)

    def queued(self, task: Task, units: Collection[Unit], event: str) -> None:
        if event == "audited":
            choose_rechecks(task, units)


class AuditOfAgreement(AuditOfDeclaredLabels):
    """Of posts on which the detectors agree people read a share, and an adjudicator a share of what they confirm."""

    name = "audit"
    manifest_key = "audit"
    of_agreement = True

    def applies(self, task: Task) -> bool:
        return True  # a manager may add audits to any such task

    def section(self, task: Task) -> Any:
        return report(task)

    def panel(self, task: Task) -> Panel:
        found = report(task)
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
        return {"audit": audit_expected(task)}

    def opened(self, opened: Opened, size: int | None, *, extended: bool) -> tuple[list[str], list[str]]:
        return _said_of(opened, size, extended)

    def enlarged(self, task: Task) -> Mapping[str, int]:
        return contest_all(task)

    def decided(self, unit: Unit, answers: Sequence[str], label: str | None) -> tuple[str, str, str] | None:
        # Where one reader alone audits, an adjudicator confirms doubts; the majority of several readers stands.
        if is_audit(unit) and (unit.recheck or label != unit.agreed_label):
            return "doubted", stages.ADJUDICATION, ""
        return None

    def moved(self, unit: Unit) -> None:
        check_limit(unit)


class AuditOfFilter(QualityControl):
    """People read what a filter keeps and drops, by a draw of its own."""

    name = "audit of a filter"
    manifest_key = "filter_audit"
    look_at = "audit"

    def section(self, task: Task) -> Any:
        return filter_audits.report(task)

    def panel(self, task: Task) -> Panel:
        found = filter_audits.report(task)
        if found is None:
            return Panel("The audit of the filter", data={"filter": None}, empty=filter_audits.NOT_DRAWN)
        words, tables = filter_audits.filter_words(found), [filter_audits.figures_table(found)]
        return Panel("The audit of the filter", words, tables, found, "filter", page="how-to/pairs")


register(AuditOfAgreement())
register(AuditOfDeclaredLabels())
register(AuditOfFilter())
