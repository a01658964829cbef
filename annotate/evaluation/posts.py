"""Evaluation of a predictor on gold sets of posts.

This module chooses the sets for each measure, refuses measures that the sets do not allow, and writes the report's
explanations. The report is a dict that can be written as JSON. measures.py computes the figures, and
reports/evaluation_report.py renders the report.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from annotate.core.estimation.proportions import LEAST_KNOWN
from annotate.core.measures.figure_rows import Row, of_compared, row
from annotate.evaluation import measures as parts
from annotate.evaluation import unread_triggers
from annotate.evaluation.comparison import comparison
from annotate.evaluation.joined_sets import EQUAL_RATES, Joined, join
from annotate.evaluation.judge import frame_of_posts, judged_posts, with_certificate
from annotate.evaluation.metrics import und_last
from annotate.evaluation.subjects import EvaluationError, Subject, read_sets, subject_of
from annotate.evaluation.unread_triggers import Left
from annotate.goldsets.gold_set import GoldSet, read_ids
from annotate.kinds.designs import AUTHORS, DESIGNS, STREAM, TRIGGERS
from annotate.kinds.interface_language import label_name
from annotate.reports.evaluation_report import texts
from annotate.reports.tables import many

# Measures, in the order in which reports show them.
MEASURES = tuple(dict.fromkeys(measure for design in DESIGNS.values() for measure in design.sets.measures))
# For each measure, the designs whose sets can measure it. The design that samples the whole stream comes last.
_BY_POPULATION = sorted(DESIGNS.values(), key=lambda design: design.population == STREAM)
SOURCES = {measure: [each for each in _BY_POPULATION if measure in each.sets.measures] for measure in MEASURES}


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
    judge: Mapping[str, float] | None = None,
    **reading: Any,
) -> dict[str, Any]:
    """Return the evaluation report on a predictor, whose labels are in a file or in the corpus.

    predictions: path of a file, or name of a predictor in the corpus.
    folders: folders of the gold sets.
    against: path or name of a second predictor, "" for no comparison.
    allow_erased: whether to accept sets with erased posts.
    unfinished: whether to accept unfinished sets.
    vanished: ids of posts that no longer exist at their source, or a file with these ids.
    measure: measures to report; all if empty.
    balanced_precision: whether to report balanced precision.
    missing_rate: range of the ratio between error rates in unresolved and resolved audits, as LOW:HIGH; "" for equal
        rates.
    judge: options of the judge's certificate if the predictor is a machine judge, otherwise None.
    reading: options for reading the predictions, see `subjects.subject_of`.
    """
    sets = read_sets(folders, allow_erased=allow_erased, unfinished=unfinished)
    others = frame_of_posts(sets, reading.get("corpus", "")) if judge is not None else ()
    subjects = [subject_of(sets, predictions, others=others, **reading)]
    subjects += [subject_of(sets, against, **reading)] if against else []
    if against and subjects[0].is_same(subjects[1]):
        raise EvaluationError(f"{predictions} cannot be compared with itself; name other predictions with --against.")
    report = evaluate(
        subjects[0],
        sets,
        against=subjects[1] if against else None,
        vanished=read_ids(vanished) if isinstance(vanished, Path) else vanished,
        measures=measure,
        balanced=balanced_precision,
        rates=_rates(missing_rate, sets) if missing_rate else EQUAL_RATES,
    )
    return report if judge is None else with_certificate(report, judged_posts(sets[0], subjects[0]), **judge)


def evaluate(
    subject: Subject,
    sets: list[GoldSet],
    *,
    against: Subject | None = None,
    vanished: Collection[str] = frozenset(),
    measures: Collection[str] = (),
    balanced: bool = False,
    rates: tuple[float, float] = EQUAL_RATES,
) -> dict[str, Any]:
    """Return the report on one predictor.

    subject: the predictor.
    sets: the gold sets.
    against: a second predictor, None for no comparison.
    vanished: ids of posts to leave out.
    measures: measures to report; all that the sets allow if empty.
    balanced: whether to report balanced precision as well, which is measured on the recall-oriented sets.
    rates: see `join`.

    Raises EvaluationError if the sets must not be used for a measure, CorpusError if the corpus lacks the necessary
    data.
    """
    wanted = _wanted(sets, measures, balanced, against)
    left = [(gold, [row for row in gold.rows if row.id not in vanished]) for gold in sets]
    joined = join(subject, left, [subject.mapping], rates)
    missing, told = _left_out(sets, vanished)
    compared = _compared(subject, against, left, wanted, rates) if against else None
    confused = parts.confused(joined, left)
    figures = _figures(subject, joined, left, wanted, balanced=balanced)
    rows = [*(row for _, added, _ in figures for row in added), *missing]
    # The report's head shows accuracy and the first mean of each measure.
    first = {each["measure"]: each for each in reversed(rows) if each["measure"].startswith("mean_")}
    heads = [each for each in rows if each["measure"] == "accuracy" or each is first.get(each["measure"])]
    labels = {row["of"]["label"] for row in (*rows, *(compared["rows"] if compared else ())) if "label" in row["of"]}
    labels |= set(confused["confusion"]["labels"] if confused["confusion"] else ())
    return {
        "form": "posts",
        "unit": "post",
        "head": [{"measure": each["measure"], "of": each["of"]} for each in heads],
        "sections": SECTIONS,
        "names": {label: name for label in sorted(labels) if (name := label_name(label)) not in ("", label)},
        "words": {slug: [*filter(None, told)] for slug, _, told in figures} | (compared or {}).pop("words", {}),
        "reading": READING,
        **_about(subject, left, told),
        "rows": rows,
        "comparison": compared,
        **confused,
        "warnings": list(_warnings(subject, against, sets, joined, wanted, is_all=not (measures or balanced))),
    }


def _compared(
    subject: Subject, against: Subject, left: Left, wanted: Collection[str], rates: tuple[float, float]
) -> dict[str, Any]:
    """Return the comparison of two predictors, together with the figures of the second predictor."""
    compared = comparison(subject, against, left, rates)
    theirs = _figures(against, join(against, left, [against.mapping], rates), left, wanted, balanced=False)
    others = of_compared((row for _, added, _ in theirs for row in added), compared["rows"])
    words = []
    if not any(row["measure"] == "accuracy" for row in compared["rows"]):
        words.append("Without a uniform set, accuracy and precision cannot be compared.")
    if together := compared["together"]:
        classes = "; ".join(f"{', '.join(fine)} as {coarse}" for coarse, fine in together.items())
        apart = "For this comparison alone, labels that either of the two does not tell apart are taken together"
        words.append(f"{apart}: {classes}.")
    of_other = {"other": _about(against, left, ())["predictor"], "other_rows": others}
    return compared | of_other | {"words": {"comparison": words}}


def _figures(
    subject: Subject, joined: Joined, left: Left, wanted: Collection[str], *, balanced: bool
) -> list[tuple[str, list[Row], Sequence[str]]]:
    """Return the report's sections as (slug, rows, explanations) tuples. Some sections have explanations only."""
    found: list[tuple[str, list[Row], Sequence[str]]] = []
    if "accuracy" in wanted:
        found.append(("accuracy", list(parts.accuracy(joined)), (WORDS["naive"],)))
    if "recall" in wanted:
        rows = list(parts.recall(joined))
        found.append(("recall", rows, (_measured_on("recall", joined), _hiding(rows, joined))))
    if "precision" in wanted and (rows := list(parts.precision(joined))):
        found.append(("precision", rows, (_measured_on("precision", joined),)))
        if joined.strangers:
            over, rows = unread_triggers.unseen(subject, joined, left)
            found.append(("unseen", rows, (WORDS["unseen"].format(over=over),)))
    if {"recall", "precision"} <= {*wanted}:
        found.append(("f1", list(parts.f1([row for _, rows, _ in found for row in rows], joined)), ()))
    if joined.uniform is not None and joined.recall and "recall" in wanted:
        rows = parts.recall_check(joined)
        differing = sum(bool(row["note"]) for row in rows if row["measure"] == "uniform_set")
        found.append(("recall_check", rows, (WORDS["check"].format(differing=differing, of=len(rows) // 3),)))
    if balanced:
        found.append(("balanced", list(parts.balanced(joined)), (WORDS["balanced"], WORDS["reweighted"])))
    if joined.is_naive:
        found = [(slug, [*parts.naive(rows, joined)], told) for slug, rows, told in found]
    found = [each for each in found if each[1]]
    every = [row for _, rows, _ in found for row in rows]
    measures = {row["measure"] for row in every}
    if "width_share" in measures:
        # Suggest more work only if the set's task is in this installation.
        tasks = [gold.name for gold, _ in left if gold.population == STREAM and gold.corpus]
        found.append(("width", [], (WORDS["width"], *(WORDS["further_work"].format(task=task) for task in tasks[:1]))))
    if any("false_yes" in row["of"] for row in every):
        found.append(("false_yes", [], (WORDS["false_yes"],)))
    if "if_wrong" in measures:
        found.append(("lone", [], (WORDS["lone"],)))
    return found


# --- words


SECTIONS, _READING, WORDS = texts("posts")
READING = [words.format(least=many(LEAST_KNOWN, "post")) for words in _READING]
WIDE = 0.2


def _measured_on(measure: str, joined: Joined) -> str:
    """Return a sentence that names the kinds of sets with posts for a measure."""
    found = []
    for design in SOURCES[measure]:
        if design.population == STREAM:
            has_posts = joined.uniform is not None
        elif design.population == AUTHORS:
            has_posts = bool(joined.recall)
        else:
            has_posts = bool(joined.verified if "of" in design.needs else joined.precision)
        found += [f"{design.name} set"] * has_posts
    return f"Measured on the {' and '.join(found)}{', a post of both counted once' if len(found) > 1 else ''}."


def _hiding(rows: Iterable[Row], joined: Joined) -> str:
    """Return a sentence on where more audits would narrow recall most.

    The sentence names up to three labels on which the detectors agree. They are those whose unread posts contribute
    most to the uncertainty, because each post that people read represents many others.

    Returns "" if people read all posts, or if every interval is narrow.
    """
    of_label = [row for row in rows if row["measure"] == "recall" and list(row["of"]) == ["label"]]
    known = [row for row in of_label if row["value"] is not None]
    wide = [row for row in known if row["low"] is None or row["high"] - row["low"] >= WIDE]
    if joined.uniform is None or not wide:
        return ""
    drawn, read = joined.uniform.drawn, joined.uniform.read
    unread = [label for label, posts in drawn.items() if label and read[label] < posts]
    if not unread:
        return ""
    hiding = sorted(unread, key=lambda label: (-(drawn[label] ** 2) / max(1, read[label]), label))[:3]
    return (
        f"Of {many(len(wide), 'label')} the recall has no interval, or one of {100 * WIDE:.0f} points and more. Posts "
        f"may hide where the detectors agree on another language and few were read, most of all on {', '.join(hiding)}"
        ": “assay audit TASK --add N” has more of these read, and “assay plan CORPUS” says how many it takes."
    )


def _left_out(sets: Collection[GoldSet], vanished: Collection[str]) -> tuple[list[Row], list[str]]:
    """Return rows and a sentence on vanished and erased posts, which no measure counts.

    A post may be labelled `de` in one set and `not-en` in another. The rows count it under both labels, while the
    sentence counts it once.

    sets: the gold sets.
    vanished: ids of posts that no longer exist at their source.
    """
    gone = {(row.id, row.label) for gold in sets for row in gold.rows if row.id in vanished}
    erased = sum((gold.erased for gold in sets), Counter[str]())
    by_label = {"vanished": Counter(label for _, label in gone), "erased": erased}
    labels = und_last({label for counts in by_label.values() for label in counts})
    rows = [row(measure, {"label": label}, by_label[measure][label], None) for label in labels for measure in by_label]
    told = (
        f"Posts left out because they are listed as vanished: {len({key for key, _ in gone}):,}. Posts erased from the "
        f"gold sets: {erased.total():,}. If they are unlike the others, every number here is off by that."
    )
    return rows, [told] if gone or erased.total() else []


def _about(subject: Subject, left: Left, missing: Sequence[str]) -> dict[str, Any]:
    """Return the report's description of the predictor and the sets.

    missing: sentences on posts that are left out.
    """
    voted = any(subject.voted_in(gold) for gold, _ in left)
    told = []
    if subject.mapping:
        pairs = "; ".join(f"{coarse} stands for {', '.join(fine)}" for coarse, fine in sorted(subject.mapping.items()))
        told.append(f"It knows coarser labels: {pairs}. A coarse label is right where people gave any of those.")
    if voted:
        told.append("It voted on posts of a uniform set, so agreement there counts through audited posts alone.")
    return {
        "predictor": {
            "name": subject.name,
            "version": subject.version,
            "spelled": subject.spelled,
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
            for gold, rows in left
        ],
        "told": [*told, *missing],
    }


# --- what is refused


def _rates(text: str, sets: Sequence[GoldSet]) -> tuple[float, float]:
    """Parse the range of --missing-rate.

    Raises EvaluationError if it is not a range, or if no set has an audit.
    """
    try:
        least, most = map(float, text.split(":"))
    except ValueError:
        least = most = 0.0
    if not 0 < least <= most < inf:
        raise EvaluationError(
            f"--missing-rate is {text!r}; write two numbers LOW:HIGH, as 1:3, with LOW above 0 and at most HIGH."
        )
    if not any(gold.population == STREAM for gold in sets):
        raise EvaluationError("--missing-rate is for the audit of a uniform set, and none is given; leave it out.")
    return least, most


def _wanted(sets: Sequence[GoldSet], measures: Collection[str], balanced: bool, against: Subject | None) -> list[str]:
    """Return the measures to report.

    Raises EvaluationError if the sets do not allow a requested measure, or if a set is not used by any measure.
    """
    designs = [DESIGNS[gold.design] for gold in sets]
    told = {measure for design in designs for measure in design.sets.measures}
    by_author = any(gold.population == AUTHORS for gold in sets)
    for measure in measures:
        if measure in told or (measure == "precision" and balanced):
            continue
        takes = " or a ".join(design.spelled for design in SOURCES[measure] if "of" not in design.needs)
        refusal = f"{measure.capitalize()} takes a {takes} set, and none is given."
        if measure == "precision" and by_author:
            refusal += (
                " A recall-oriented set has as many posts of a rare language as of a common one, so the precision that "
                "it gives is not that of any stream; --balanced-precision computes it, under that name."
            )
        raise EvaluationError(refusal)
    if balanced and not by_author:
        raise EvaluationError("--balanced-precision takes a recall-oriented set, and none is given.")
    wanted = [measure for measure in measures or MEASURES if measure in told]
    for gold, design in zip(sets, designs, strict=True):
        # Balanced precision and comparisons also use sets whose own measures were not requested: balanced precision
        # takes natural weights from uniform sets, and a comparison uses the posts of both kinds of set.
        also = (balanced or against) and gold.population != TRIGGERS
        if not (also or set(wanted) & set(design.sets.measures)):
            raise EvaluationError(
                f"The gold set {gold.name} is {design.spelled}, and no measure that was asked for uses it; "
                "leave it out, or ask for more with --measure."
            )
    if against and all(gold.population == TRIGGERS for gold in sets):
        raise EvaluationError(
            "Two predictors are compared on uniform and recall-oriented sets, and none is given; on a "
            "precision-oriented set, only posts that one predictor chose were read."
        )
    return wanted


# --- the parts of the report about the sets


def _warnings(
    subject: Subject,
    against: Subject | None,
    sets: Sequence[GoldSet],
    joined: Joined,
    wanted: Collection[str],
    *,
    is_all: bool,
) -> Iterator[str]:
    """Yield the report's warnings.

    wanted: measures of the report.
    is_all: whether the user did not choose any measures. Only then is it worth a warning that precision is missing.
    """
    for gold in sets:
        if not gold.finished:
            yield (
                f"The gold set {gold.name} is unfinished: posts that still wait for people are missing from it, and "
                "disputed ones are harder than the others."
            )
    yield from subject.warnings
    if against:
        yield from against.warnings
    yield from joined.warnings
    if "precision" in wanted and (joined.strangers or joined.undecided):
        yield from unread_triggers.warnings(subject, joined)
    told = any("precision" in DESIGNS[gold.design].sets.measures for gold in sets)
    if is_all and not told and any(gold.population == AUTHORS for gold in sets):
        yield WORDS["no_precision"]
