"""Evaluation of a predictor on gold sets of posts.

This module chooses the sets for each measure, rejects measures that the sets do not support, and writes the report's
explanations. measures.py computes the figures, and reports/evaluation_report.py renders the report, a JSON-serializable
dict.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from annotate.core.estimation.proportions import LEAST_EFFECTIVE
from annotate.core.measures.figure_rows import Row, of_compared, row
from annotate.evaluation import measures as parts
from annotate.evaluation import unread_triggers
from annotate.evaluation.comparison import comparison
from annotate.evaluation.joined_sets import EQUAL_RATES, Joined, KeptRows, join, missing_check_options
from annotate.evaluation.judge import add_certificate, judged_posts, post_frame
from annotate.evaluation.metrics import und_last
from annotate.evaluation.subjects import EvaluationError, Subject, read_sets, subject_of
from annotate.goldsets.gold_set import GoldSet, read_ids
from annotate.kinds.designs import AUTHORS, DESIGNS, STREAM, TRIGGERS
from annotate.kinds.interface_language import label_name
from annotate.reports.evaluation_report import COMMANDS, texts
from annotate.reports.tables import many

# Measures, in report order.
MEASURES = tuple(dict.fromkeys(measure for design in DESIGNS.values() for measure in design.sets.measures))
# For each measure, the designs whose sets support it. The design that samples the whole stream comes last.
_BY_POPULATION = sorted(DESIGNS.values(), key=lambda design: design.population == STREAM)
SOURCES = {measure: [design for design in _BY_POPULATION if measure in design.sets.measures] for measure in MEASURES}


def evaluate_posts(
    predictions: str,
    folders: Sequence[Path],
    *,
    against: str = "",
    allow_erased: bool = False,
    unfinished: bool = False,
    vanished: Path | Collection[str] = frozenset(),
    measure: Collection[str] = (),
    balanced_precision: bool = False,
    missing_rate: str = "",
    placed: Path | Collection[str] = frozenset(),
    judge: Mapping[str, float] | None = None,
    **reading: Any,
) -> dict[str, Any]:
    """Evaluate a predictor whose labels are in a file or in the corpus, and return the report.

    predictions: path of a file, or name of a predictor in the corpus.
    folders: folders of the gold sets.
    against: path or name of a second predictor; "" for no comparison.
    allow_erased: whether to accept sets with erased posts.
    unfinished: whether to accept unfinished sets.
    vanished: ids of posts that no longer exist at their source, or a file with these ids.
    measure: measures to report; all if empty.
    balanced_precision: whether to report balanced precision.
    missing_rate: range of the ratio between the error rates in unresolved and in resolved audits, as LOW:HIGH; "" for
        equal rates.
    placed: ids of posts with a place, or a file with these ids; see `recall_check`.
    judge: options of the judge's certificate if the predictor is a machine judge, otherwise None.
    reading: options for reading the predictions, see `subjects.subject_of`.
    """
    sets = read_sets(folders, allow_erased=allow_erased, unfinished=unfinished)
    frame = post_frame(sets, reading.get("corpus", "")) if judge is not None else ()
    subjects = [subject_of(sets, predictions, others=frame, **reading)]
    subjects += [subject_of(sets, against, **reading)] if against else []
    if against and subjects[0].is_same(subjects[1]):
        raise EvaluationError(
            f"{predictions} cannot be compared with itself. Specify other predictions with --against."
        )
    report = evaluate(
        subjects[0],
        sets,
        against=subjects[1] if against else None,
        vanished=read_ids(vanished) if isinstance(vanished, Path) else vanished,
        measures=measure,
        balanced=balanced_precision,
        rates=_rates(missing_rate, sets) if missing_rate else EQUAL_RATES,
        placed=read_ids(placed) if isinstance(placed, Path) else placed,
    )
    return report if judge is None else add_certificate(report, judged_posts(sets[0], subjects[0]), **judge)


def evaluate(
    subject: Subject,
    sets: list[GoldSet],
    *,
    against: Subject | None = None,
    vanished: Collection[str] = frozenset(),
    measures: Collection[str] = (),
    balanced: bool = False,
    rates: tuple[float, float] = EQUAL_RATES,
    placed: Collection[str] = frozenset(),
) -> dict[str, Any]:
    """Evaluate one predictor and return the report.

    subject: the predictor.
    sets: the gold sets.
    against: a second predictor; None for no comparison.
    vanished: ids of posts to leave out.
    measures: measures to report; if empty, all that the sets support.
    balanced: whether to also report balanced precision, which is measured on the recall-oriented sets.
    rates: see `join`.
    placed: see `recall_check`.

    Raise EvaluationError if the sets do not support a measure, CorpusError if the corpus lacks the necessary data.
    """
    selected = _select_measures(sets, measures, balanced, against)
    kept = [(gold, [row for row in gold.rows if row.id not in vanished]) for gold in sets]
    joined = join(subject, kept, [subject.mapping], rates)
    missing, left_out_notes = _report_left_out(sets, vanished)
    compared = _compare(subject, against, kept, selected, rates) if against else {}
    analysis = parts.error_analysis(joined, kept)
    figures = _figures(subject, joined, kept, selected, balanced=balanced, placed=placed)
    rows = [*(row for _, added, _ in figures for row in added), *missing]
    # The report's head shows accuracy and the first mean of each measure.
    means = {row["measure"]: row for row in reversed(rows) if row["measure"].startswith("mean_")}
    heads = [row for row in rows if row["measure"] == "accuracy" or row is means.get(row["measure"])]
    words = {slug: [*filter(None, sentences)] for slug, _, sentences in figures} | compared.pop("words", {})
    labels = {row["of"]["label"] for row in (*rows, *compared.get("rows", ())) if "label" in row["of"]}
    labels |= set((analysis["confusion"] or {}).get("labels", ()))
    return {
        "form": "posts",
        "unit": "post",
        "head": [{"measure": row["measure"], "of": row["of"]} for row in heads],
        "sections": SECTIONS,
        "names": {label: name for label in sorted(labels) if (name := label_name(label)) not in ("", label)},
        "words": words,
        "reading": READING,
        **_describe(subject, kept, left_out_notes),
        "rows": rows,
        "comparison": compared or None,
        **analysis,
        "warnings": list(_warnings(subject, against, sets, joined, selected, is_all=not (measures or balanced))),
    }


def _compare(
    subject: Subject, against: Subject, kept: KeptRows, selected: Collection[str], rates: tuple[float, float]
) -> dict[str, Any]:
    """Return the comparison of two predictors, with the second predictor's figures."""
    compared = comparison(subject, against, kept, rates)
    other_figures = _figures(against, join(against, kept, [against.mapping], rates), kept, selected, balanced=False)
    other_rows = of_compared((row for _, added, _ in other_figures for row in added), compared["rows"])
    sentences = []
    if not any(row["measure"] == "accuracy" for row in compared["rows"]):
        sentences.append("Without a uniform set, accuracy and precision cannot be compared.")
    if merged := compared["together"]:
        classes = "; ".join(f"{', '.join(fine)} as {coarse}" for coarse, fine in merged.items())
        explanation = "In this comparison only, labels that one of the two predictors does not distinguish are merged"
        sentences.append(f"{explanation}: {classes}.")
    of_other = {"other": _describe(against, kept, ())["predictor"], "other_rows": other_rows}
    return compared | of_other | {"words": {"comparison": sentences}}


def _figures(
    subject: Subject,
    joined: Joined,
    kept: KeptRows,
    selected: Collection[str],
    *,
    balanced: bool,
    placed: Collection[str] = frozenset(),
) -> list[tuple[str, list[Row], Sequence[str]]]:
    """Return the report's sections as (slug, rows, explanations) tuples. Some sections have no rows."""
    sections: list[tuple[str, list[Row], Sequence[str]]] = []
    commands = list[str]()
    if "accuracy" in selected:
        sections.append(("accuracy", list(parts.accuracy(joined)), (WORDS["naive"],)))
    if "recall" in selected:
        rows = list(parts.recall(joined))
        advice = _audit_advice(rows, joined)
        commands += [WORDS["more_audits"]] * bool(advice)
        sections.append(("recall", rows, (_measured_on("recall", joined), advice)))
    if "precision" in selected and (rows := list(parts.precision(joined))):
        sections.append(("precision", rows, (_measured_on("precision", joined),)))
        if joined.foreign:
            over, rows = unread_triggers.count_unseen(subject, joined, kept)
            sections.append(("unseen", rows, (WORDS["unseen"].format(over=over),)))
    if {"recall", "precision"} <= {*selected}:
        sections.append(("f1", list(parts.f1([row for _, rows, _ in sections for row in rows], joined)), ()))
    if joined.uniform is not None and joined.recall and "recall" in selected:
        rows = parts.recall_check(joined, placed)
        checks = [row for row in rows if "p" in row]
        differing = sum(bool(row["note"]) for row in checks)
        sections.append(("recall_check", rows, (WORDS["check"].format(differing=differing, of=len(checks)),)))
    if balanced:
        sections.append(("balanced", list(parts.balanced_precision(joined)), (WORDS["balanced"], WORDS["reweighted"])))
    if joined.is_naive:
        sections = [(slug, [*parts.naive_rows(rows, joined)], sentences) for slug, rows, sentences in sections]
    sections = [section for section in sections if section[1]]
    all_rows = [row for _, rows, _ in sections for row in rows]
    measures = {row["measure"] for row in all_rows}
    if "width_share" in measures:
        # Suggest further work only for a set exported from a task, not for an imported set.
        tasks = [gold.name for gold, _ in kept if gold.population == STREAM and gold.corpus]
        sections.append(("width", [], (WORDS["width"],)))
        sources = [row["of"]["source"] for row in all_rows if row["measure"] == "width_share"]
        narrower = "; ".join("{}: `{}`".format(*parts.REMEDIES[source]) for source in sources)
        commands.append(WORDS["narrower"].format(commands=narrower))
        commands += [WORDS["further_work"].format(task=task) for task in tasks[:1]]
    if joined.labelled and (options := missing_check_options(joined.labelled)):
        commands.append(WORDS["more_checks"].format(options=" and ".join(f"`{option}`" for option in options)))
    if any("false_yes" in row["of"] for row in all_rows):
        sections.append(("false_yes", [], (WORDS["false_yes"],)))
    if "if_wrong" in measures:
        sections.append(("lone", [], (WORDS["lone"],)))
    return [*sections, (COMMANDS, [], commands)] if commands else sections


# --- words


SECTIONS, _READING, WORDS = texts("posts")
READING = [sentence.format(least=many(LEAST_EFFECTIVE, "post")) for sentence in _READING]
WIDE = 0.2


def _measured_on(measure: str, joined: Joined) -> str:
    """Return a sentence that names the kinds of sets used for a measure."""
    has_posts = {
        (STREAM, False): joined.uniform is not None,
        (AUTHORS, False): bool(joined.recall),
        (TRIGGERS, False): bool(joined.precision),
        (TRIGGERS, True): bool(joined.verified),
    }
    set_names = [
        f"{design.name} set" for design in SOURCES[measure] if has_posts[design.population, "of" in design.needs]
    ]
    return (
        f"Measured on the {' and '.join(set_names)}{', with posts in both counted once' if len(set_names) > 1 else ''}."
    )


def _audit_advice(rows: Iterable[Row], joined: Joined) -> str:
    """Return a sentence on where more audits would narrow recall's intervals most.

    It names up to three of the detectors' agreed labels. Their unannotated posts contribute most to the uncertainty,
    because each annotated post represents many others.

    Returns "" if all posts are annotated, or if every interval is narrow.
    """
    wide = [
        row
        for row in rows
        if row["measure"] == "recall" and list(row["of"]) == ["label"] and row["value"] is not None
        if row["low"] is None or row["high"] - row["low"] >= WIDE
    ]
    drawn, annotated = (joined.uniform.drawn, joined.uniform.annotated) if joined.uniform else ({}, {})
    incomplete = [label for label, posts in drawn.items() if label and annotated[label] < posts]
    if not (wide and incomplete):
        return ""
    to_audit = sorted(incomplete, key=lambda label: (-(drawn[label] ** 2) / max(1, annotated[label]), label))[:3]
    return (
        f"Recall has no interval, or an interval of at least {100 * WIDE:.0f} points, for "
        f"{many(len(wide), 'label')}. Posts with these labels may be hidden where the detectors agree on another "
        f"language and people read few posts, mainly {', '.join(to_audit)}."
    )


def _report_left_out(sets: Collection[GoldSet], vanished: Collection[str]) -> tuple[list[Row], list[str]]:
    """Return rows and a sentence on vanished and erased posts, which no measure includes.

    A post may be labelled `de` in one set and `not-en` in another. The rows count it under both labels, but the
    sentence counts it once.

    sets: the gold sets.
    vanished: ids of posts that no longer exist at their source.
    """
    gone = {(row.id, row.label) for gold in sets for row in gold.rows if row.id in vanished}
    erased = sum((gold.erased for gold in sets), Counter[str]())
    by_label = {"vanished": Counter(label for _, label in gone), "erased": erased}
    labels = und_last({label for counts in by_label.values() for label in counts})
    rows = [row(measure, {"label": label}, by_label[measure][label], None) for label in labels for measure in by_label]
    sentence = (
        f"Left out because they are listed as vanished: {many(len({key for key, _ in gone}), 'post')}. Erased from "
        f"the gold sets: {many(erased.total(), 'post')}. If these posts differ from the others, all figures are "
        "biased."
    )
    return rows, [sentence] if gone or erased.total() else []


def _describe(subject: Subject, kept: KeptRows, missing: Sequence[str]) -> dict[str, Any]:
    """Return the report's description of the predictor and the sets.

    missing: sentences on posts that are left out.
    """
    voted = any(subject.voted_in(gold) for gold, _ in kept)
    notes = []
    if subject.mapping:
        pairs = "; ".join(f"{coarse} stands for {', '.join(fine)}" for coarse, fine in sorted(subject.mapping.items()))
        notes.append(
            f"The predictor uses coarser labels: {pairs}. A coarse label counts as right if people gave any of the "
            "labels that it includes."
        )
    if voted:
        notes.append(
            "The predictor voted on posts of a uniform set, so where the detectors agree, only audited posts count."
        )
    return {
        "predictor": {
            "name": subject.name,
            "version": subject.version,
            "spelled": subject.full_name,
            "voted": voted,
            "mapping": {coarse: list(labels) for coarse, labels in subject.mapping.items()},
        },
        "gold": [
            {
                "name": gold.name,
                "design": gold.design,
                "folder_name": gold.folder.resolve().name,
                "rows": len(rows),
                "frame": gold.frame_size,
                "finished": gold.finished,
                "predictor": ", ".join(sorted(set(gold.predictors.values()))),
                "digest": gold.digest,
            }
            for gold, rows in kept
        ],
        "told": [*notes, *missing],
    }


# --- checks of the options


def _rates(text: str, sets: Sequence[GoldSet]) -> tuple[float, float]:
    """Parse the range of --missing-rate.

    Raise EvaluationError if it is not a range, or if no set has an audit.
    """
    try:
        low, high = map(float, text.split(":"))
    except ValueError:
        low = high = 0.0
    if not 0 < low <= high < inf:
        raise EvaluationError(
            f"--missing-rate is {text!r}. It must be LOW:HIGH, for example 1:3, with LOW above 0 and not above HIGH."
        )
    if not any(gold.population == STREAM for gold in sets):
        raise EvaluationError(
            "--missing-rate requires a uniform set, but none was specified. Remove the option, or add a uniform set."
        )
    return low, high


def _select_measures(
    sets: Sequence[GoldSet], measures: Collection[str], balanced: bool, against: Subject | None
) -> list[str]:
    """Return the measures to report.

    Raise EvaluationError if the sets do not support a requested measure, or if no measure uses one of the sets.
    """
    designs = [DESIGNS[gold.design] for gold in sets]
    measurable = {measure for design in designs for measure in design.sets.measures}
    by_author = any(gold.population == AUTHORS for gold in sets)
    for measure in measures:
        if measure in measurable or (measure == "precision" and balanced):
            continue
        takes = " or a ".join(design.spelled for design in SOURCES[measure] if "of" not in design.needs)
        refusal = f"{measure.capitalize()} requires a {takes} set, but none was specified."
        if measure == "precision" and by_author:
            refusal += (
                " A recall-oriented set contains about as many posts in rare languages as in common ones, so "
                "its precision does not apply to any stream; --balanced-precision reports it under that name."
            )
        raise EvaluationError(refusal)
    if balanced and not by_author:
        raise EvaluationError("--balanced-precision requires a recall-oriented set, but none was specified.")
    selected = [measure for measure in measures or MEASURES if measure in measurable]
    for gold, design in zip(sets, designs, strict=True):
        # Balanced precision and comparisons also use sets whose own measures were not requested: balanced precision
        # takes natural weights from uniform sets, and a comparison uses the posts of both kinds of set.
        is_used = (balanced or against) and gold.population != TRIGGERS
        if not (is_used or set(selected) & set(design.sets.measures)):
            raise EvaluationError(
                f"The gold set {gold.name} is {design.spelled}, and none of the selected measures uses it. Remove "
                "it, or select more measures with --measure."
            )
    if against and all(gold.population == TRIGGERS for gold in sets):
        raise EvaluationError(
            "--against requires a uniform or recall-oriented set, but none was specified. In a precision-oriented "
            "set, people read only posts that one predictor selected."
        )
    return selected


# --- the parts of the report about the sets


def _warnings(
    subject: Subject,
    against: Subject | None,
    sets: Sequence[GoldSet],
    joined: Joined,
    selected: Collection[str],
    *,
    is_all: bool,
) -> Iterator[str]:
    """Yield the report's warnings.

    selected: measures of the report.
    is_all: whether all measures are reported because the user chose none. Only then is a missing precision worth a
        warning.
    """
    for gold in sets:
        if not gold.finished:
            yield (
                f"The gold set {gold.name} is unfinished: posts without a final label are missing, and disputed "
                "posts are harder than the others."
            )
    yield from subject.warnings
    if against:
        yield from against.warnings
    yield from joined.warnings
    if "precision" in selected and (joined.foreign or joined.undecided):
        yield from unread_triggers.warnings(subject, joined)
    measures_precision = any("precision" in DESIGNS[gold.design].sets.measures for gold in sets)
    if is_all and not measures_precision and any(gold.population == AUTHORS for gold in sets):
        yield WORDS["no_precision"]
