"""Audit of the detectors' agreement.

Items that the detectors agree on get their label without being shown to readers. In the audit, readers label a random
sample of these items. If a language fails the audit, readers label all items that the detectors assigned to it.
audit_report.py counts and presents the results.
"""

from collections.abc import Mapping, Sequence
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
    limit_words,
    name_of,
    over_limit,
    report,
    unfinished_units,
)
from annotate.controls.audited_units import Audit
from annotate.core import stages
from annotate.core.estimation.label_errors import can_tell, contest_chance
from annotate.kinds.control import Panel, register
from annotate.kinds.designs import DESIGNS
from annotate.kinds.language import LEAST_LETTERS
from annotate.kinds.panel_kind import invalid_notes, invalid_votes
from annotate.models import Job, Task, Unit
from annotate.quality.agreement_strata import in_strata, strata
from annotate.reports.tables import are, many
from annotate.work import job_store
from annotate.work.moves import NO_ROW, is_audit, queue_agreed_units
from annotate.work.routes import Routes
from annotate.work.task_creation import Opened
from corpora.database.statements import prepared

AT_ONCE = 500  # maximum number of units sent to readers right after an answer; a background job sends larger numbers


def check_limit(unit: Unit) -> None:
    """Evaluate the audit of a unit's stratum. If the audit has failed, send the stratum's remaining units to readers.

    This is called after each judgment, with the unit locked. Unfinished audits aren't evaluated, because the error
    bounds from a few answers are too wide.
    """
    task, label = unit.task, unit.agreed_label
    values = ((unit.item.language,) if len(task.kind.statistics.audit_strata) > 1 else ()) + (label,)
    stratum = " ".join(values)
    # Run the same statements after every answer. If the unit isn't in an audit, NO_ROW makes them match nothing.
    task_key = task.pk if label and unit.stage in stages.FINISHED else NO_ROW
    # If an audit's last two answers arrive at the same time, each transaction still sees the other unit as unfinished,
    # so neither would evaluate the audit. Because of this lock, the second transaction waits for the first.
    locked_task = next(iter(_lock_task(task_key)), None)
    # Once a stratum has failed, none of its units is in the stage AGREED, so its audit isn't evaluated again.
    is_finished = (_find_finished_audit, _find_finished_audit_in)[len(values) - 1](task_key, *reversed(values))
    if is_finished and locked_task and over_limit(locked_task, audits(locked_task, [stratum])[stratum]):
        _contest_after_answer(locked_task, stratum)


def _contest_after_answer(task: Task, stratum: str) -> None:
    """Send all units of a stratum to readers. If there are more than AT_ONCE, a background job sends them.

    Sending thousands of units is slow. The annotator would have to wait for the transaction, and all other users
    for the lock on the task.
    """
    if task.units.filter(in_strata(task, [stratum]), stage=stages.AGREED).count() <= AT_ONCE:
        contest(task, stratum)
    elif not Job.objects.contesting(task).exists():
        job_store.begin("audit", {"task": task.name, "contest": True}, corpus=task.draw.corpus.name)


@prepared
def _lock_task(task: int) -> QuerySet[Task]:
    return Task.objects.select_for_update(no_key=True).filter(pk=task)


@prepared
def _find_finished_audit(task: int, label: str) -> QuerySet[Task]:
    """Select the task if a label's audit is finished and some units with the label have not been sent to readers.

    The subqueries are sorted so that PostgreSQL reads the first row of an index. PostgreSQL plans the query once for
    all labels. Without the sort, it would expect an early match and scan the table, which is slow if nothing
    matches.
    """
    return _select_finished_audit(task, Unit.objects.filter(task=task, agreed_label__range=(label, label)))


@prepared
def _find_finished_audit_in(task: int, label: str, language: str) -> QuerySet[Task]:
    """Do the same as `_find_finished_audit`, for an audit whose strata are pairs of language and label."""
    return _select_finished_audit(
        task, Unit.objects.filter(task=task, agreed_label__range=(label, label), item__language=language)
    )


def _select_finished_audit(task: int, units: QuerySet[Unit]) -> QuerySet[Task]:
    units = units.order_by("agreed_label")
    agreed, to_audit = (
        Subquery(selected.values("pk")[:1]) for selected in (units.filter(stage=stages.AGREED), unfinished_units(units))
    )
    tasks = Task.objects.alias(agreed=agreed, to_audit=to_audit)
    return tasks.filter(pk=task, agreed__isnull=False, to_audit__isnull=True)


@transaction.atomic
def contest(task: Task, stratum: str) -> int:
    """Send all units of a stratum to readers. Return the number of units sent.

    stratum: the label from the detectors, or the language and the label; see agreement_strata.strata.
    """
    return queue_agreed_units(task.units.filter(in_strata(task, [stratum])), "contested", Routes.load(task))


def contest_all(task: Task) -> dict[str, int]:
    """Send the units of every stratum that has failed its audit to readers.

    A stratum that passed can fail later, for example if the task's limit is lowered.

    Return the number of units sent, by stratum.
    """
    unfinished = strata(task, unfinished_units(task.units.all()))
    to_read = strata(task, task.units.filter(stage=stages.AGREED)) - unfinished
    label_audits = {label: audit for label, audit in audits(task).items() if label in to_read}
    return {label: contest(task, label) for label, audit in label_audits.items() if over_limit(task, audit)}


# The assumed share of wrong labels where the detectors agree. "Evaluating language identification performance" (2015)
# reports "<1%".
USUALLY_WRONG = 0.01


def _expected_audit(task: Task, posts: int, chosen: int) -> dict[str, Any]:
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
    """Return a phrase with the number of copies, for example "3 copies of others".

    For a new task, the phrase includes the number of copies whose original has no label yet.
    """
    copies = are(opened.stages[stages.COPIED], "copy of another", "copies of others")
    waiting = 0 if extended else opened.task.units.waiting_copies().count()
    return f"{copies} ({are(waiting, 'waits', 'wait')} for a label)" if waiting else copies


def fewer_notes(opened: Opened) -> list[str]:
    """Return a note about languages that have fewer records than requested."""
    frames = {sample.language: sample.parameters.get("frame_groups", sample.frame_size) for sample in opened.samples}
    sizes = {sample.language: sample.asked for sample in opened.samples}
    fewer = [language for language, size in sizes.items() if size > frames[language]]
    if not fewer:
        return []
    noun = "group" if "frame_groups" in opened.samples[0].parameters else "record"
    requested, counts = many(sizes[fewer[0]], noun), ", ".join(f"{language} {frames[language]:,}" for language in fewer)
    return [f"Note: {requested} per language were requested, but all that can be drawn are {counts}."]


def _invalid_votes(task: Task) -> dict[str, dict[str, int]]:
    votes = task.units.exported().values_list("item__votes", flat=True)
    return invalid_votes(((item_votes, 1) for item_votes in votes.iterator()), task)


NO_AUDIT = (
    "No item was chosen for an audit when the task was opened, so nobody checks the labels on which the voters agree."
)


class AuditOfAgreement(Audit):
    """Audit items that the detectors agree on. An adjudicator rechecks a share of the labels that readers confirm."""

    name = "audit"
    manifest_key = "audit"
    of_agreement = True
    section = staticmethod(report)
    plot = staticmethod(audit_plot)
    enlarged = staticmethod(contest_all)

    def panel(self, task: Task, results: dict[str, Any]) -> Panel:
        who = "voters" if task.panel.imported else "detectors"
        heading, words = f"Audit of the {who}' agreement", audit_words(results, who, task.kind.noun)
        if not words:
            return Panel(heading, data=results, empty=NO_AUDIT)
        return Panel(
            heading,
            words,
            [audit_table(results)],
            results,
            over_limit=sorted(name_of(row) for row in results["languages"] if row["over_limit"]),
            advice=limit_words(results, task.name, task.kind.noun),
            page="explanation/audit",
        )

    def expected(self, task: Task) -> Mapping[str, Any]:
        counts = audit_counts(task)
        if not counts:
            return {"audit": None}
        chosen = sum(chosen for _, chosen in counts.values())
        languages = {" ".join(stratum): _expected_audit(task, *numbers) for stratum, numbers in sorted(counts.items())}
        audit = {
            "posts": sum(posts for posts, _ in counts.values()),
            "chosen": chosen,
            "recheck": task.units.filter(recheck=True, transitions__event="audited").count(),
            "limit": task.audit_limit,
            "hours": chosen * task.redundancy * task.kind.seconds / 3600,
            "contested": sum(numbers["contested"] for numbers in languages.values()),
            "languages": languages,
        }
        return {"audit": audit}

    def opened(self, opened: Opened, size: int | None, *, extended: bool) -> tuple[list[str], list[str]]:
        counts, total, kind = opened.stages, opened.stages.total(), opened.task.kind
        who = "voters" if opened.task.panel.imported else "detectors"
        warnings = []
        if size and total < size and not extended and kind.labels_are_languages:
            warnings.append(f"Note: the corpus contains only {many(total, 'post')}, so the task contains all of them.")
        if extended and opened.samples[0].size < opened.samples[0].asked:
            warnings.append(
                f"Note: the task now contains all {opened.samples[0].frame_size:,} posts that the corpus contained "
                "when they were drawn."
            )
        if DESIGNS[opened.samples[0].design].asks_all:
            summary = f"{counts[stages.QUEUED]:,} queued for readers, {copies(opened)}"
            return [f"Task {opened.task.name}: {many(total, 'post')} drawn; {summary}."], warnings
        audited = opened.task.units.filter(audited=True).count()
        sentences = [
            f"Task {opened.task.name}: {many(total, kind.noun)} {'added' if extended else 'drawn'}; "
            f"{counts[stages.AGREED]:,} agreed, {counts[stages.QUEUED]:,} queued for readers, "
            f"{copies(opened, extended=extended)}; {are(audited, f'{kind.noun} is', f'{kind.noun}s are')} in the audit."
        ]
        if not kind.labels_are_languages:
            return sentences, [*warnings, *fewer_notes(opened), *invalid_notes(_invalid_votes(opened.task))]
        if counting := opened.task.units.exclude(agreed_label="").count():
            # This can be fewer posts than `prelabel` reports, because short texts and some languages are excluded.
            sentences.append(
                f"The {who}' agreement is used for {counting:,} of the task's posts. It is not used for texts with "
                f"fewer than {LEAST_LETTERS} letters or in languages whose route excludes it."
            )
            if audited:
                sentences[-1] += f" For the audit, people also read {audited:,} of these posts, without knowing which."
        if opened.contested:
            sentences.append(
                f"Some languages are over the audit's limit. {audit_report.contested_sentence(opened.contested)}"
            )
        return sentences, warnings

    def decided(self, unit: Unit, answers: Sequence[str], label: str | None) -> tuple[str, str, str] | None:
        # An adjudicator decides if the reader disagrees with the detectors, or if the unit was drawn for a recheck.
        if is_audit(unit) and (unit.recheck or label != unit.agreed_label):
            return "doubted", stages.ADJUDICATION, ""
        return None

    def moved(self, unit: Unit) -> None:
        check_limit(unit)


register(AuditOfAgreement())
