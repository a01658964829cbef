"""What is said of a task that was opened or enlarged: what became of its units, and what is to be seen to."""

from collections.abc import Callable

from django.db.models import Count

from annotate.actions.action import Outcome
from annotate.core import stages
from annotate.models import Task
from annotate.quality import honeypots
from annotate.reports import audits_and_decoys
from annotate.work.opening import Opened
from annotate.work.progress import queue_table

ROUNDED = 0.03  # 0.33 is one of three


def told(opened: Opened, size: int | None, *, extended: bool) -> Outcome:
    """size: what was asked for, if that was said."""
    task = opened.task
    tell = next((tell for protection, tell in BY_PROTECTION.items() if protection in task.kind.protections), _declared)
    outcome = tell(opened, size, extended)
    data = {"task": task.name, "stages": dict(opened.stages)}
    return Outcome(outcome.said, [*_lacking(task), *outcome.warned], data)


def _lacking(task: Task) -> list[str]:
    lacking = [row for row in queue_table(task) if row.lacking]
    if not lacking:
        return []
    queues = ", ".join(f"{row.queue} ({row.lacking:,})" for row in lacking)
    tested = "; they take the test first" if task.test_items else ""
    then = tested if task.kind.waits else "; or send the units on with `reroute`"
    return [f"Warning: units in these queues lack readers: {queues}. Invite some{then}."]


def _audited(opened: Opened, size: int | None, extended: bool) -> Outcome:
    counts, total = opened.stages, opened.stages.total()
    warned = []
    if size and total < size and not extended:
        warned.append(f"Note: the corpus holds only {total:,} posts, and the task has all of them.")
    audited = opened.task.units.filter(audited=True).count()
    said = [
        f"Task {opened.task.name}: {total:,} posts {'added' if extended else 'drawn'}; "
        f"{counts[stages.AGREED]:,} agreed, {counts[stages.QUEUED]:,} queued for readers, "
        f"{counts[stages.COPIED]:,} copies of others; {audited:,} posts audit the agreement."
    ]
    if opened.contested:
        said.append(f"Over the audit's limit. {audits_and_decoys.contested(opened.contested)}")
    return Outcome(said, warned)


def _with_decoys(opened: Opened, size: int | None, extended: bool) -> Outcome:
    drawn = sum(len(sample.rows) for sample in opened.samples)
    said = (
        f"Task {opened.task.name}: {drawn:,} posts drawn for {' '.join(opened.task.labels)}; "
        f"{opened.stages[stages.QUEUED]:,} units queued for readers, {opened.decoys.total():,} of them decoys; "
        f"{opened.stages[stages.COPIED]:,} copies of others, {opened.reused.total():,} labels reused."
    )
    return Outcome([said], [*_short(opened), *_bare(opened)])


def _short(opened: Opened) -> list[str]:
    """Of languages for which there is less than was asked for."""
    short = [sample for sample in opened.samples if len(sample.rows) < sample.asked]
    notes = []
    if some := ", ".join(f"{sample.language} {len(sample.rows):,}" for sample in short if sample.rows):
        notes.append(f"Note: the design finds fewer than {short[0].asked:,} posts for: {some}.")
    if none := " ".join(sample.language for sample in short if not sample.rows):
        notes.append(f"Note: the design finds no post for: {none}.")
    return notes


def _bare(opened: Opened) -> list[str]:
    """Of languages without decoys. Where every label is reused nobody is asked, and nothing needs a decoy."""
    queued = opened.task.units.filter(stage=stages.QUEUED).order_by()
    asked = set(queued.values_list("asked", flat=True).distinct())
    bare = [code for code in opened.task.labels if code in asked and not opened.decoys[code]]
    if not bare:
        return []
    return [
        f"Note: no decoys for {' '.join(bare)}: they are posts that people have found not to be in the language in "
        "another task, though they resemble it, and there are none. Label a uniform task first."
    ]


def _declared(opened: Opened, size: int | None, extended: bool) -> Outcome:
    task = opened.task
    drawn = ", ".join(f"{sample.language} {len(sample.rows):,}" for sample in opened.samples)
    purposes = task.gold_answers.order_by("purpose").values_list("purpose").annotate(Count("pk"))
    golds = ", ".join(f"{count:,} for {purpose}" for purpose, count in purposes)
    said = (
        f"Task {task.name}: {opened.stages[stages.QUEUED]:,} records queued ({drawn}), each for {task.redundancy} "
        f"people; {opened.stages[stages.COPIED]:,} copies of others; gold answers: {golds or 'none'}."
    )
    return Outcome([said], _hidden(task))


def _hidden(task: Task) -> list[str]:
    """Of hidden gold answers that are fewer, or tell less, than one may think."""
    notes = []
    if task.gold_share and abs(task.gold_share * (size := honeypots.block(task)) - 1) > ROUNDED:
        notes.append(f"Note: --gold-share {task.gold_share:g} is {1 / size:.3g}: one of each {size} units.")
    for language, number in honeypots.out_of_reach(task).items():
        notes.append(
            f"Note: who labels everything in {language} meets {number:,} hidden gold answers, and the rule pauses from "
            f"the {task.pause_least}th on: it can pause nobody there. Set --gold-share higher or --pause-least lower."
        )
    for language, (pool, units) in honeypots.too_few(task).items():
        notes.append(
            f"Warning: the {pool:,} gold answers hidden in {language} run out for who is given more than {units:,} "
            "units there, and nobody watches them from then on. Add some of the purpose queue, or set --gold-share "
            "lower."
        )
    return notes


BY_PROTECTION: dict[str, Callable[[Opened, int | None, bool], Outcome]] = {
    "audit": _audited,
    "decoys": _with_decoys,
    "gold answers": _declared,
}
