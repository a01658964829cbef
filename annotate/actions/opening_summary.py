"""The summary printed after a task was opened or enlarged: the stages of its units, and what needs attention."""

from collections import Counter
from collections.abc import Sized
from typing import Any

from django.db.models import Count

from annotate.actions.action import Outcome
from annotate.controls import honeypots
from annotate.controls.agreement_audit import copies
from annotate.controls.replenishment import remarks, standing
from annotate.core import pause_rule, stages
from annotate.core.aggregation.answer_table import at_first
from annotate.figures import plan_report, progress_report
from annotate.figures.draw_plan import stream_of, widths
from annotate.figures.finish_forecast import expected, forecast_of
from annotate.figures.further_work import measures_accuracy
from annotate.figures.interval_width import Expected
from annotate.figures.queue_states import NOT_AGREED, PAUSED, UNTESTED, queue_states
from annotate.kinds import concept_kind
from annotate.kinds.balanced_draw import IDS
from annotate.kinds.designs import DESIGNS
from annotate.models import Annotator, Task
from annotate.quality.agreement_report import alike, spelled_alike
from annotate.reports.table_formats import as_lines
from annotate.reports.tables import are, many
from annotate.work.closure import how_to_go_on
from annotate.work.routes import Routes
from annotate.work.routing import lacking_readers
from annotate.work.task_creation import Opened
from corpora.draws.part_draws import AGREE, DIFFER, DRAWN, FRAME, SYSTEMS, totals
from corpora.storage.inventory import declared_counts

NOT_KEPT = "This was a dry run: nothing was kept of it. Without --dry-run the same is done."
ROUNDED = 0.03  # relative tolerance for shares, so that 0.33 counts as one in three


def summary(opened: Opened, size: int | None, *, extended: bool, is_dry_run: bool = False) -> Outcome:
    """Return the summary of a task that was opened or enlarged.

    size: number of items that the manager asked for, None if they gave no number
    extended: whether the task was enlarged
    is_dry_run: whether nothing is kept; if so, the summary also describes the expected work
    """
    task = opened.task
    design = DESIGNS[task.draw.design]
    if design.answers_from:
        outcome = (_balanced if design.names_answers else _compared)(opened, size)
    else:
        of_controls = (of.opened(opened, size, extended=extended) for of in task.kind.quality_controls)
        outcome = next((Outcome(*of) for of in of_controls if of), None) or _declared(opened)
    work = expected(task)
    if is_dry_run:
        when, wide = forecast_of(task), _widths(task)
        said = [*_foretold(task, work, when), *_told_widths(wide), *outcome.said, NOT_KEPT]
        work = {**work, "forecast": when, "widths": wide}
    else:
        said = [*outcome.said, *plan_report.of_checks(work["checks"])]
    if SYSTEMS in opened.samples[0].parameters and design.asks_all:
        said.insert(0, _contrasted(opened))
    # In a dry run, the table of the expected work already shows which queues lack readers.
    warned = [*([] if is_dry_run else lacking(task)), *outcome.warned]
    if extended and not task.is_open:
        warned.append(f"Task {task.name} is closed, so nobody is asked. {how_to_go_on(task)}")
    draws = [
        {"language": sample.language, "asked": sample.asked, "drawn": len(sample.rows), "frame": sample.frame_size}
        for sample in opened.samples
    ]
    counts = {"draws": draws, "stages": dict(opened.stages), "decoys": dict(opened.decoys)}
    counts |= {"decoys_wanted": dict(opened.wanted), "reused": dict(opened.reused), "contested": opened.contested}
    return Outcome(said, warned, {"task": task.name, "dry_run": is_dry_run, **counts, **work})


def _foretold(task: Task, work: dict[str, Any], when: dict[str, Any]) -> list[str]:
    if not work["queues"]:
        return plan_report.work_words(work)
    table = plan_report.work_table(work, tested=bool(task.test_items))
    dates = as_lines(progress_report.terminal_table(when))
    return [as_lines(table), "", *plan_report.work_words(work), "", dates, "", *progress_report.forecast_words(when)]


def _widths(task: Task) -> dict[str, Any] | None:
    if not measures_accuracy(task):
        return None
    return widths(task, stream_of(task.draw.corpus.name, task), task.draw.size, Expected(), task.kind.seconds)


def _told_widths(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return []
    made = (plan_report.language_table, plan_report.curve_table, plan_report.next_table)
    languages, curve, more = (as_lines(of(found)) for of in made)
    words, which = plan_report.width_words(found), plan_report.next_words(found)
    return ["", languages, "", words, "", curve, "", *([which, more, ""] if which else [])]


def lacking(task: Task) -> list[str]:
    """Return warnings about queues that have too few people who may work in them. They say how to find more people."""
    lacking = Counter(lacking_readers(task, Routes.load(task).readers()).values())
    warned = []
    # If there are no annotators at all, nobody can be held up, so do not compute the queue states.
    if lacking and Annotator.objects.exists():
        needed = at_first(task.redundancy, stop_early=task.stop_early)
        for row in queue_states(task)["queues"]:
            # If a queue has enough readers, something may keep them from working.
            if row["queue"] in lacking and row["readers"] >= needed and (reason := _held_up(task, row, needed)):
                warned.append(f"Warning: {reason}")
                del lacking[row["queue"]]
    if not lacking:
        return warned
    largest_first = sorted(lacking.items(), key=lambda item: (-item[1], item[0]))
    queues = ", ".join(f"{queue} ({number:,})" for queue, number in largest_first)
    tested = "; they take the test first" if task.test_items else ""
    then = tested if task.kind.routing.waits else f"; or send the units on with `assay reroute {task.name}`"
    if task.kind.sensitive:
        then += "; whoever reads them agrees first, on the task's page, to work that may hurt"
    return [*warned, f"Warning: units in these queues lack readers: {queues}. Invite some{then}."]


def _held_up(task: Task, row: dict[str, Any], needed: int) -> str:
    """Return a sentence about what keeps the readers of a queue from working, or an empty string if nothing does.

    row: state of the queue, as in queue_states
    needed: number of people that each unit needs at first
    """
    if row["state"] in (UNTESTED, NOT_AGREED, PAUSED):
        return str(row["said"])
    if task.test_items and row["passed"] < needed:
        return f"Of {row['readers']:,} people who read {row['name']} {row['passed']:,} passed the test; ask the others."
    return ""


def _contrasted(opened: Opened) -> str:
    """Return a sentence about how many units two systems label differently, and how many of these units are drawn."""
    first, *_ = draws = [sample.parameters for sample in opened.samples]
    there, noun = totals(first[FRAME]), opened.task.kind.noun
    drawn = totals({str(number): parameters[DRAWN] for number, parameters in enumerate(draws)})
    return (
        f"{' and '.join(first[SYSTEMS])} differ on {there[DIFFER]:,} of {many(there.total(), noun)}; "
        f"{drawn[DIFFER]:,} of these are drawn, and {drawn[AGREE]:,} of the others."
    )


def _balanced(opened: Opened, size: int | None) -> Outcome:
    if rows := standing(opened.task):
        return _to_label(opened, rows)
    draws = [(sample.language, sample.parameters) for sample in opened.samples]
    drawn = sum(len(sample.rows) for sample in opened.samples)
    sizes = {
        language: ", ".join(f"{name} {len(ids):,}" for name, ids in parameters[IDS].items())
        for language, parameters in draws
    }
    each = "in each: " if len(set(sizes.values())) == 1 else ""
    told = each + next(iter(sizes.values())) if each else "; ".join(f"{code}: {of}" for code, of in sizes.items())
    said = [
        f"Task {opened.task.name}: {many(drawn, 'document')} drawn in {many(len(draws), 'language')}, {told}.",
        "Never drawn: "
        + ", ".join(
            f"{sum(parameters[name] for _, parameters in draws):,} {words}" for name, words in NEVER_DRAWN.items()
        )
        + ".",
    ]
    if chosen := opened.stages[stages.QUEUED]:
        said.append(f"{many(chosen, 'document')} of these, chosen by lot, go to people to audit the labels.")
    warned = [f"Note: {remark}" for language, parameters in draws for remark in remarks(language, parameters)]
    warned += _no_answer_for_none(opened) if chosen else []
    return Outcome(said, [*warned, *_alike(opened.task)])


def _alike(task: Task) -> list[str]:
    """Return notes about labels of a task that differ only in case from each other or from labels of the corpus."""
    there = declared_counts(task.draw.corpus.name).by_label
    groups = spelled_alike(sorted({*task.labels, *there}))
    return [f"Note: {alike(group)}" for group in groups if not set(group).isdisjoint(task.labels)]


def _to_label(opened: Opened, rows: list[dict[str, Any]]) -> Outcome:
    drawn = sum(len(sample.rows) for sample in opened.samples)
    needed = rows[0]["needed"]
    said = (
        f"Task {opened.task.name}: {many(drawn, 'document')} in {many(len(opened.samples), 'language')} for people to "
        f"label, {needed:,} of each class as {opened.task.draw.predictor} sees it. Where people find fewer, the next "
        "are drawn by themselves."
    )
    few = [row for row in rows if row["drawn"] < needed]
    warned = [
        f"Note: {row['language']}, {row['class']}: {many(row['drawn'], 'document')} predicted, {needed:,} needed; it "
        "stays short unless people find others among the rest."
        for row in few
    ]
    return Outcome([said], [*warned, *_no_answer_for_none(opened)])


def _no_answer_for_none(opened: Opened) -> list[str]:
    if opened.task.kind.answers:
        return []
    return [
        f"Note: the kind {opened.task.kind_slug} has no answer for documents of none of the classes, which people can "
        "only skip; give its file one under [[answers]]."
    ]


NEVER_DRAWN = {
    "no_class": "with none of the classes",
    "several": "with several",
    "equal": "equal to another one",
    "differing": "equal to one of another class",
}


def _declared(opened: Opened) -> Outcome:
    task = opened.task
    drawn = ", ".join(f"{sample.language} {len(sample.rows):,}" for sample in opened.samples)
    purposes = task.gold_answers.order_by("purpose").values_list("purpose").annotate(Count("pk"))
    golds = ", ".join(f"{count:,} for {purpose}" for purpose, count in purposes)
    stand = f"{opened.stages[stages.AGREED]:,} keep the labels that were declared; " if task.keep_declared else ""
    said = (
        f"Task {task.name}: {many(opened.stages[stages.QUEUED], task.kind.noun)} queued ({drawn}), each for "
        f"{are(task.redundancy, 'person', 'people')}; {stand}{copies(opened)}; gold answers: "
        f"{golds or 'none'}."
    )
    return Outcome([said], [*_not_kept(task), *_hidden(task)])


def _compared(opened: Opened, size: int | None) -> Outcome:
    """Return the summary of a task that compares systems, with notes about unusable rows in the systems' files."""
    task, draws = opened.task, opened.samples
    drawn = {sample.language: sample.parameters["groups"] for sample in draws}
    told_drawn = ", ".join(f"{language} {messages:,}" for language, messages in drawn.items())
    *systems, _ = task.labels
    counts = opened.stages
    said = [
        f"Task {task.name}: {many(sum(drawn.values()), 'message')} drawn ({told_drawn}), and {' and '.join(systems)} "
        f"compared on each; {many(counts[stages.QUEUED], task.kind.noun)} queued, each for "
        f"{are(task.redundancy, 'person', 'people')}, {copies(opened)}, and "
        f"{are(counts[stages.AGREED], 'is a tie', 'are ties')}, since both suggest the same."
    ]
    warned = [
        f"Note: in {sample.language} there {'is' if drawn[sample.language] == 1 else 'are'} only "
        f"{many(drawn[sample.language], 'message')} for which all systems suggest a reply; {sample.asked:,} were asked "
        "for."
        for sample in draws
        if size and drawn[sample.language] < size
    ]
    parameters = draws[0].parameters
    for name, told in parameters["systems"].items():
        faults = "; ".join(
            f"{many(told[what], one)} {words}" for what, (one, words) in FAULTS_OF_SYSTEMS.items() if told[what]
        )
        counted = f"of {many(parameters['records'], 'record')} and {many(told['lines'], 'line')}"
        warned += [f"Note: {name}, {counted}: {faults}."] if faults else []
    return Outcome(said, [*warned, *_hidden(task)])


# Problem in a system's file -> (noun that is counted, rest of the description).
FAULTS_OF_SYSTEMS = {
    "lacking": ("record", "without a reply of it, not drawn"),
    "unknown": ("line", "of no message of the corpus"),
    "none": ("line", "more without a reply"),
    "repeated": ("line", "more for a message that has other replies before, which count"),
    "fewer": ("line", "with fewer than three replies"),
}


def _not_kept(task: Task) -> list[str]:
    """Return notes about documents that people must label although the task keeps declared concepts.

    Such a document came without a concept, or with one that the vocabulary lacks.
    """
    if not task.keep_declared:
        return []
    asked = task.units.queued().work().exported().select_related("item")
    bare: list[tuple[str, list[str]]] = []
    strange: list[tuple[str, list[str]]] = []
    for unit in asked.order_by("position").iterator():
        unknown = concept_kind.unknown(unit.item, task)
        (strange if unknown else bare).append((unit.item.key, unknown))
    notes = []
    if strange:
        key, unknown = strange[0]
        notes.append(
            f"Note: {are(len(strange), 'document has', 'documents have')} a concept that {task.vocabulary} does not "
            f"have, such as {unknown[0]} in {key}; people are asked about {_them(strange)}."
        )
    if bare:
        notes.append(
            f"Note: {are(len(bare), 'document', 'documents')} came without a concept, such as {bare[0][0]}; people "
            f"are asked about {_them(bare)}."
        )
    return notes


def _them(several: Sized) -> str:
    return "it" if len(several) == 1 else "them"


def _hidden(task: Task) -> list[str]:
    """Return notes about gold answers that are hidden among the units.

    They say whether the share of these answers differs from the share that the manager asked for, and in which
    languages there are too few of them to watch annotators.
    """
    notes = []
    if task.gold_share and abs(task.gold_share * (size := honeypots.block(task)) - 1) > ROUNDED:
        notes.append(f"Note: --gold-share {task.gold_share:g} is {1 / size:.3g}: one in {size} units.")
    for language, number in honeypots.out_of_reach(task).items():
        notes.append(
            f"Note: somebody who labels all of {language} meets {many(number, 'hidden gold answer')}, and the rule "
            f"pauses from the {pause_rule.LEAST}th on: it can pause nobody there. Set --gold-share higher."
        )
    for language, (pool, units) in honeypots.too_few(task).items():
        notes.append(
            f"Warning: the {many(pool, 'gold answer')} hidden in {language} "
            f"{'runs' if pool == 1 else 'run'} out for people given more than {units:,} units "
            "there, and from then on nothing watches them. Add some with the purpose queue, or set --gold-share lower."
        )
    return notes
