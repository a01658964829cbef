"""The summary printed when a task is opened or extended: the stages of its units, and what needs attention."""

from collections import Counter
from collections.abc import Sized
from functools import partial
from typing import Any

from django.db.models import Count

from annotate.actions.action import Outcome
from annotate.controls import honeypots
from annotate.controls.agreement_audit import copies, fewer_notes
from annotate.controls.replenishment import class_progress, remarks
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
from annotate.kinds.designs import CLASSES, DESIGNS
from annotate.models import Annotator, Task
from annotate.quality.agreement_report import spelling_variants, variants_warning
from annotate.reports.table_formats import as_lines
from annotate.reports.tables import are, many
from annotate.work.closure import reopening_advice
from annotate.work.routes import Routes
from annotate.work.routing import lacking_readers
from annotate.work.task_creation import Opened
from corpora.draws.part_draws import AGREE, DIFFER, DRAWN, FRAME, SYSTEMS, totals
from corpora.storage.inventory import declared_counts

NOT_KEPT = "This was a dry run: nothing was stored. Run the command without --dry-run to do the same."
TOLERANCE = 0.03  # shares count as equal up to this relative difference, so that 0.33 is "one in three"


def summary(opened: Opened, size: int | None, *, extended: bool, is_dry_run: bool = False) -> Outcome:
    """Return the summary of a task that was opened or extended.

    size: number of items the manager requested; None for the design's default
    extended: whether the task was extended
    is_dry_run: whether nothing is stored; the summary then also shows the expected work
    """
    task = opened.task
    design = DESIGNS[opened.samples[0].design]
    if design.answers_from:
        outcome = (_balanced_summary if design.answers_from == CLASSES else _preference_summary)(opened, size)
    elif summarize := next(filter(None, (control.opened for control in task.kind.quality_controls)), None):
        outcome = Outcome(*summarize(opened, size, extended=extended))
    else:
        outcome = _records_summary(opened)
    # For a stored task, only --json shows the expected work, except for the checks drawn by quality controls.
    work = expected(task) if is_dry_run or task.hooks["expected"] else {}
    if is_dry_run:
        forecast, interval_widths = forecast_of(task), _interval_widths(task)
        lines = [*_dry_run_lines(task, work, forecast), *_width_lines(interval_widths), *outcome.said, NOT_KEPT]
        work = {**work, "forecast": forecast, "widths": interval_widths}
    else:
        lines = [*outcome.said, *(plan_report.of_checks(work["checks"]) if work else ())]
    if SYSTEMS in opened.samples[0].parameters and design.asks_all:
        lines.insert(0, _contrast_summary(opened))
    # In a dry run, the table of the expected work already shows which queues lack readers.
    warnings = [*([] if is_dry_run else reader_warnings(task)), *outcome.warned]
    if extended and not task.is_open:
        warnings.append(f"Task {task.name} is closed, so annotators do not receive the items. {reopening_advice(task)}")
    draws = [
        {"language": sample.language, "asked": sample.asked, "drawn": len(sample.rows), "frame": sample.frame_size}
        for sample in opened.samples
    ]
    counts = {"draws": draws, "stages": dict(opened.stages), "decoys": dict(opened.decoys)}
    counts |= {"decoys_wanted": dict(opened.wanted), "reused": dict(opened.reused), "contested": opened.contested}
    data = {"task": task.name, "dry_run": is_dry_run, **counts, **work}
    return Outcome(lines, warnings, data, more=dict if work else partial(expected, task))


def _dry_run_lines(task: Task, work: dict[str, Any], forecast: dict[str, Any]) -> list[str]:
    if not work["queues"]:
        return plan_report.work_words(work)
    table = plan_report.work_table(work, tested=bool(task.test_items))
    dates = as_lines(progress_report.terminal_table(forecast))
    return [
        as_lines(table),
        "",
        *plan_report.work_words(work),
        "",
        dates,
        "",
        *progress_report.forecast_words(forecast),
    ]


def _interval_widths(task: Task) -> dict[str, Any] | None:
    if not measures_accuracy(task):
        return None
    return widths(task, stream_of(task.draw.corpus.name, task), task.draw.size, Expected(), task.kind.seconds)


def _width_lines(interval_widths: dict[str, Any] | None) -> list[str]:
    if interval_widths is None:
        return []
    builders = (plan_report.language_table, plan_report.curve_table, plan_report.next_table)
    tables = [build(interval_widths) for build in builders]
    languages, curve, more = (as_lines(table) if table.rows else "" for table in tables)
    sentence, next_sentence = plan_report.width_words(interval_widths), plan_report.next_words(interval_widths)
    below = [next_sentence, more, ""] if next_sentence else []
    return ["", *([languages, ""] if languages else []), sentence, "", curve, "", *below]


def reader_warnings(task: Task) -> list[str]:
    """Return warnings about queues that have too few annotators, with advice on how to find more."""
    lacking = Counter(lacking_readers(task, Routes.load(task).readers()).values())
    warnings, exhausted = [], Counter[str]()
    # If there aren't any annotators, there are no readers who could be blocked, so skip the queue states.
    if lacking and Annotator.objects.exists():
        needed = at_first(task.redundancy, stop_early=task.stop_early)
        for row in queue_states(task)["queues"]:
            if row["queue"] not in lacking or row["readers"] < needed:
                continue
            # The queue has enough readers. Either something blocks them, or they have already seen the units.
            if reason := _blocking_reason(task, row, needed):
                warnings.append(f"Warning: {reason}")
                del lacking[row["queue"]]
            else:
                exhausted[row["queue"]] = lacking.pop(row["queue"])
    if exhausted:
        warnings.append(
            "Warning: too few readers of these languages have not yet seen the items, in this task or another: "
            f"{_largest_first(exhausted)}. Invite others."
        )
    if not lacking:
        return warnings
    tested = "; they must pass the test first" if task.test_items else ""
    move = ", or reroute the items to other queues"
    advice = tested if task.kind.routing.waits else move
    if task.kind.sensitive:
        advice += "; before they start, they must agree on the task's page to work with distressing content"
    return [*warnings, f"Warning: items in these queues lack readers: {_largest_first(lacking)}. Invite some{advice}."]


def _largest_first(queues: Counter[str]) -> str:
    ordered = sorted(queues.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{queue} ({number:,})" for queue, number in ordered)


def _blocking_reason(task: Task, row: dict[str, Any], needed: int) -> str:
    """Return a sentence about what blocks the readers of a queue, or "" if nothing does.

    row: state of the queue, as in queue_states
    needed: number of annotators who are initially asked about each unit
    """
    if row["state"] in (UNTESTED, NOT_AGREED, PAUSED):
        return str(row["said"])
    if task.test_items and row["passed"] < needed:
        return (
            f"Only {row['passed']:,} of {are(row['readers'], 'reader', 'readers')} of {row['name']} passed the test. "
            "Ask the others to take it."
        )
    return ""


def _contrast_summary(opened: Opened) -> str:
    """Return a sentence about how many items two systems label differently, and how many of those were drawn."""
    first_parameters, *_ = draws = [sample.parameters for sample in opened.samples]
    corpus_counts, noun = totals(first_parameters[FRAME]), opened.task.kind.noun
    drawn = totals({str(number): parameters[DRAWN] for number, parameters in enumerate(draws)})
    systems, total = " and ".join(first_parameters[SYSTEMS]), many(corpus_counts.total(), noun)
    return (
        f"{systems} differ on {corpus_counts[DIFFER]:,} of {total}; "
        f"{drawn[DIFFER]:,} of these were drawn, and {drawn[AGREE]:,} of the others."
    )


def _balanced_summary(opened: Opened, size: int | None) -> Outcome:
    if rows := class_progress(opened.task):
        return _labelling_summary(opened, rows)
    draws = [(sample.language, sample.parameters) for sample in opened.samples]
    drawn = sum(len(sample.rows) for sample in opened.samples)
    sizes = {
        language: ", ".join(f"{name} {len(ids):,}" for name, ids in parameters[IDS].items())
        for language, parameters in draws
    }
    size_list = "; ".join(f"{code}: {of}" for code, of in sizes.items())
    if len(set(sizes.values())) == 1:
        size_list = f"in each language: {next(iter(sizes.values()))}"
    sentences = [
        f"Task {opened.task.name}: {many(drawn, 'document')} drawn in {many(len(draws), 'language')}, {size_list}.",
        "Documents that cannot be drawn: "
        + ", ".join(
            f"{sum(parameters[name] for _, parameters in draws):,} {words}" for name, words in NEVER_DRAWN.items()
        )
        + ".",
    ]
    if audited := opened.stages[stages.QUEUED]:
        sentences.append(f"Of these, {many(audited, 'random document')} go to annotators, who audit the labels.")
    warnings = [f"Note: {remark}" for language, parameters in draws for remark in remarks(language, parameters)]
    warnings += _missing_answer_note(opened) if audited else []
    return Outcome(sentences, [*warnings, *_case_notes(opened.task)])


def _case_notes(task: Task) -> list[str]:
    """Return notes about labels that differ only in case from each other or from labels of the corpus."""
    declared_labels = declared_counts(task.draw.corpus.name).by_label
    groups = spelling_variants(sorted({*task.labels, *declared_labels}))
    return [f"Note: {variants_warning(group)}" for group in groups if not set(group).isdisjoint(task.labels)]


def _labelling_summary(opened: Opened, rows: list[dict[str, Any]]) -> Outcome:
    drawn = sum(len(sample.rows) for sample in opened.samples)
    needed = rows[0]["needed"]
    summary = (
        f"Task {opened.task.name}: {many(drawn, 'document')} in {many(len(opened.samples), 'language')} for annotators "
        f"to label, {needed:,} of each class as predicted by {opened.task.draw.predictor}. If annotators find fewer, "
        "more are drawn automatically."
    )
    incomplete = [row for row in rows if row["drawn"] < needed]
    notes = [
        f"Note: {row['language']}, {row['class']}: {many(row['drawn'], 'document')} predicted, but {needed:,} needed. "
        "The class stays incomplete unless annotators find more among the other documents."
        for row in incomplete
    ]
    return Outcome([summary], [*notes, *_missing_answer_note(opened)])


def _missing_answer_note(opened: Opened) -> list[str]:
    if opened.task.kind.answers:
        return []
    return [
        f"Note: the kind {opened.task.kind_slug} has no answer for documents that belong to none of the classes, so "
        "annotators can only skip them. Add an answer under [[answers]] in its file."
    ]


NEVER_DRAWN = {
    "no_class": "without any of the classes",
    "several": "with several classes",
    "equal": "equal to another document",
    "differing": "equal to a document of another class",
}


def _records_summary(opened: Opened) -> Outcome:
    task = opened.task
    drawn = ", ".join(f"{sample.language} {len(sample.rows):,}" for sample in opened.samples)
    purposes = task.gold_answers.order_by("purpose").values_list("purpose").annotate(Count("pk"))
    golds = ", ".join(f"{count:,} for {purpose}" for purpose, count in purposes)
    unchanged = f"{opened.stages[stages.AGREED]:,} keep their declared labels; " if task.keep_declared else ""
    summary = (
        f"Task {task.name}: {many(opened.stages[stages.QUEUED], task.kind.noun)} queued ({drawn}), each for "
        f"{are(task.redundancy, 'person', 'people')}; {unchanged}{copies(opened)}; gold answers: "
        f"{golds or 'none'}."
    )
    return Outcome([summary], [*fewer_notes(opened), *_unlabelled_notes(task), *_gold_answer_notes(task)])


def _preference_summary(opened: Opened, size: int | None) -> Outcome:
    """Return the summary of a task that compares systems, with notes on unusable rows in the systems' files."""
    task, draws = opened.task, opened.samples
    drawn = {sample.language: sample.parameters["groups"] for sample in draws}
    drawn_list = ", ".join(f"{language} {messages:,}" for language, messages in drawn.items())
    *systems, _ = task.labels
    counts = opened.stages
    sentences = [
        f"Task {task.name}: {many(sum(drawn.values()), 'message')} drawn ({drawn_list}), and {' and '.join(systems)} "
        f"are compared on each message; {many(counts[stages.QUEUED], task.kind.noun)} queued, each for "
        f"{are(task.redundancy, 'person', 'people')}, {copies(opened)}, and "
        f"{are(counts[stages.AGREED], 'is a tie', 'are ties')}, because both systems suggest the same."
    ]
    warnings = [
        f"Note: in {sample.language}, all systems suggest a reply for only {many(drawn[sample.language], 'message')}, "
        f"but {sample.asked:,} were requested."
        for sample in draws
        if size and drawn[sample.language] < size
    ]
    parameters = draws[0].parameters
    for name, counts_in_file in parameters["systems"].items():
        faults = "; ".join(
            f"{many(counts_in_file[fault], noun)} {description}"
            for fault, (noun, description) in FAULTS_OF_SYSTEMS.items()
            if counts_in_file[fault]
        )
        totals_text = f"of {many(parameters['records'], 'record')} and {many(counts_in_file['lines'], 'line')}"
        warnings += [f"Note: {name}, {totals_text}: {faults}."] if faults else []
    return Outcome(sentences, [*warnings, *_gold_answer_notes(task)])


# Problem in a system's file -> (noun that is counted, rest of the description).
FAULTS_OF_SYSTEMS = {
    "lacking": ("record", "without a reply, not drawn"),
    "unknown": ("line", "without a matching message in the corpus"),
    "none": ("line", "without a reply"),
    "repeated": ("line", "repeated for a message, ignored"),
    "fewer": ("line", "with fewer than three replies"),
}


def _unlabelled_notes(task: Task) -> list[str]:
    """Return notes on documents that annotators must label even though the task keeps declared concepts.

    These documents were declared with no concept, or with a concept that is not in the vocabulary.
    """
    if not task.keep_declared:
        return []
    queued = task.units.queued().work().exported().select_related("item")
    without_concept: list[str] = []
    with_unknown: list[tuple[str, str]] = []
    for unit in queued.order_by("position").iterator():
        if unknown := concept_kind.unknown_concepts(unit.item, task):
            with_unknown.append((unit.item.key, unknown[0]))
        else:
            without_concept.append(unit.item.key)
    notes = []
    if with_unknown:
        key, concept = with_unknown[0]
        notes.append(
            f"Note: {are(len(with_unknown), 'document has', 'documents have')} a concept that {task.vocabulary} does "
            f"not contain, such as {concept} in {key}. Annotators label {_them(with_unknown)}."
        )
    if without_concept:
        notes.append(
            f"Note: {are(len(without_concept), 'document has', 'documents have')} no concept, such as "
            f"{without_concept[0]}. Annotators label {_them(without_concept)}."
        )
    return notes


def _them(several: Sized) -> str:
    return "it" if len(several) == 1 else "them"


def _gold_answer_notes(task: Task) -> list[str]:
    """Return notes on the gold answers hidden among the units.

    The notes report whether the share of gold answers was rounded, and list languages that have too few gold answers to
    monitor annotators.
    """
    notes = []
    if task.gold_share and abs(task.gold_share * (size := honeypots.block(task)) - 1) > TOLERANCE:
        notes.append(
            f"Note: --gold-share {task.gold_share:g} is rounded to {1 / size:.3g}, which is one in {size} items."
        )
    for language, number in honeypots.out_of_reach(task).items():
        notes.append(
            f"Note: an annotator who labels all items of {language} gets only {many(number, 'hidden gold answer')}, "
            f"but the pause rule needs {pause_rule.LEAST}, so it cannot pause anybody there. Set --gold-share higher."
        )
    for language, (pool, units) in honeypots.too_few(task).items():
        notes.append(
            f"Warning: the {many(pool, 'gold answer')} hidden in {language} {'runs' if pool == 1 else 'run'} out for "
            f"annotators who label more than {units:,} items there; after that, their work is not checked. Add gold "
            "answers with the purpose queue, or set --gold-share lower."
        )
    return notes
