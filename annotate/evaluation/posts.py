"""A predictor measured on gold sets of posts: the report, as one dict that JSON can hold.

This module decides which sets a measure takes, what is refused, and what the report says besides figures; the measures
are in measures.py. reports/evaluation_report.py writes the report.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from annotate.core.agreement.judge_agreement import EPSILON
from annotate.core.estimation.proportions import LEAST_KNOWN
from annotate.core.measures.figure_rows import Row, of_compared, row
from annotate.evaluation import measures as parts
from annotate.evaluation import unread_triggers
from annotate.evaluation.comparison import comparison
from annotate.evaluation.joined_sets import EQUAL_RATES, Joined, join
from annotate.evaluation.judge import HALF_WIDTH, certificate, with_certificate
from annotate.evaluation.judged_posts import frame_of_posts, judged_posts
from annotate.evaluation.metrics import und_last
from annotate.evaluation.subjects import EvaluationError, Subject, read_sets, subject_of
from annotate.evaluation.unread_triggers import Left
from annotate.goldsets.gold_set import GoldSet, read_ids
from annotate.kinds.designs import AUTHORS, DESIGNS, STREAM, TRIGGERS
from annotate.kinds.language_labels import label_name
from annotate.reports.evaluation_report import section
from annotate.reports.tables import many

# What can be measured, in the order of reports.
MEASURES = tuple(dict.fromkeys(measure for design in DESIGNS.values() for measure in design.sets.measures))
# Measure -> the designs whose sets tell it; the one that samples all posts comes last.
SOURCES = {
    measure: sorted(
        (design for design in DESIGNS.values() if measure in design.sets.measures),
        key=lambda design: design.population == STREAM,
    )
    for measure in MEASURES
}


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
    judge: bool = False,
    half_width: float = HALF_WIDTH,
    epsilon: float = EPSILON,
    **reading: Any,
) -> dict[str, Any]:
    """The report on a file, or a predictor of the corpus. judge: whether it labelled the whole corpus and its
    certificate is wanted; half_width (in points), epsilon: see judge.py. reading: how predictions are read, see
    subjects.subject_of."""
    sets = read_sets(folders, allow_erased=allow_erased, unfinished=unfinished)
    others = frame_of_posts(sets, reading.get("corpus", "")) if judge else ()
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
    if not judge:
        return report
    read = judged_posts(sets[0], subjects[0])
    return with_certificate(report, certificate(read, half_width=half_width / 100, epsilon=epsilon))


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
    """The report. measures: those that it must have, and no others; empty for all that the sets allow. balanced: also
    precision on the recall sets, under a name that says what it is. rates: as in `join`. EvaluationError for what must
    not be computed from these sets; CorpusError if the corpus lacks what it takes."""
    wanted = _wanted(sets, measures, balanced, against)
    left = [(gold, [row for row in gold.rows if row.id not in vanished]) for gold in sets]
    joined = join(subject, left, [subject.mapping], rates)
    missing, told = _left_out(sets, vanished)
    compared = _compared(subject, against, left, wanted, rates) if against else None
    confused = parts.confused(joined, left)
    figures = _figures(subject, joined, left, wanted, balanced=balanced)
    rows = [*(row for _, added, _ in figures for row in added), *missing]
    # Accuracy, and the first mean of each measure.
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
    """The comparison of two predictors, with the figures of the other one."""
    compared = comparison(subject, against, left, rates)
    theirs = _figures(against, join(against, left, [against.mapping], rates), left, wanted, balanced=False)
    others = of_compared((row for _, added, _ in theirs for row in added), compared["rows"])
    words = {"comparison": _of_comparison(compared)}
    return compared | {"other": _about(against, left, ())["predictor"], "other_rows": others, "words": words}


def _figures(
    subject: Subject, joined: Joined, left: Left, wanted: Collection[str], *, balanced: bool
) -> list[tuple[str, list[Row], Sequence[str]]]:
    """(section, its rows, its words) of all sections that have figures; a section may have words alone."""
    found: list[tuple[str, list[Row], Sequence[str]]] = []
    if "accuracy" in wanted:
        found.append(("accuracy", list(parts.accuracy(joined)), (NAIVE,)))
    if "recall" in wanted:
        rows = list(parts.recall(joined))
        found.append(("recall", rows, (_measured_on("recall", joined), _hiding(rows, joined))))
    if "precision" in wanted and (rows := list(parts.precision(joined))):
        found.append(("precision", rows, (_measured_on("precision", joined),)))
        if joined.strangers:
            over, rows = unread_triggers.unseen(subject, joined, left)
            found.append(("unseen", rows, (UNSEEN.format(over=over),)))
    if {"recall", "precision"} <= {*wanted}:
        found.append(("f1", list(parts.f1([row for _, rows, _ in found for row in rows], joined)), ()))
    if joined.uniform is not None and joined.recall and "recall" in wanted:
        rows = parts.recall_check(joined)
        differing = sum(bool(row["note"]) for row in rows if row["measure"] == "uniform_set")
        found.append(("recall_check", rows, (CHECK.format(differing=differing, of=len(rows) // 3),)))
    if balanced:
        found.append(("balanced", list(parts.balanced(joined)), BALANCED))
    if joined.is_naive:
        found = [(slug, [*parts.naive(rows, joined)], told) for slug, rows, told in found]
    found = [each for each in found if each[1]]
    every = [row for _, rows, _ in found for row in rows]
    measures = {row["measure"] for row in every}
    if "width_share" in measures:
        # A set whose task is not here has no further work.
        tasks = [gold.name for gold, _ in left if gold.population == STREAM and gold.corpus]
        found.append(("width", [], (WIDTH, *(FURTHER_WORK.format(task=task) for task in tasks[:1]))))
    if any("false_yes" in row["of"] for row in every):
        found.append(("false_yes", [], (FALSE_YES,)))
    if "if_wrong" in measures:
        found.append(("lone", [], (LONE,)))
    return found


# --- words


SECTIONS = [
    section("accuracy", "Accuracy", "posts", "accuracy naive_accuracy", drawn=2),
    section("width", "Where the width of accuracy comes from", "source", "width_share"),
    section("means", "Means over labels", "posts labels", "mean_recall mean_precision mean_f1", drawn=3),
    section("recall", "Recall by label", "label", "recall naive_recall reach", drawn=2),
    section("precision", "Precision by label", "label", "precision precision_without_und naive_precision", drawn=3),
    section("f1", "F1 by label", "label", "f1"),
    section("false_yes", "If readers said Yes by mistake", "label false_yes", "recall precision"),
    section("lone", "Labels that it alone gives", "label", "if_wrong if_right"),
    section(
        "unseen",
        "Labelled, and never shown to people",
        "label",
        "never_shown posts_never_shown outside",
        loud="On the posts that were never shown, precision is unknown, and no weighting can recover it.",
    ),
    section("recall_check", "Is the recall set fair?", "label", "recall_set uniform_set visible", drawn=2),
    section(
        "balanced",
        "Hypothetical: a balanced stream",
        "label",
        "balanced_precision natural_precision",
        drawn=2,
        loud="HYPOTHETICAL: precision if every language had the same number of posts, which is true of no stream.",
    ),
    section("gone", "Posts that are left out", "label", "vanished erased"),
]
READING = [
    "A number with two in brackets, x% [a, b], is an estimate with its 95% interval, for the stream from which the "
    "posts come, even where the set holds all posts of its corpus. On a uniform set, estimates are made by stratum. "
    "Posts that people labelled count as they are, corrected for the errors that checks found in labels of one person. "
    "Posts on which the detectors merely agreed count through those among them that people audited, and the interval "
    f"allows for what nobody has seen. Where less than {many(LEAST_KNOWN, 'post')} is known, there is no interval.",
    "“Counts as” is the size of a plain random sample whose interval is as wide.",
    "With und: posts that people called undefined count too, and a predictor is right on them only where it says und. "
    "Without und: these posts are left out.",
]
NAIVE = (
    "The naive estimate takes the detectors’ agreement for the truth, on all posts of the set. It measures a detector "
    "that voted there, or its relative, against itself: it is here to show the gap, not to be quoted."
)
WIDTH = (
    "Each source moves the ends of the interval away from the value. These are the shares of the squared distances, "
    "which add up to 100%: without a source of 50% the interval would be about .7 times as wide, √(1 − .5). No work on "
    "that source alone gains more."
)
FURTHER_WORK = (
    "For the hours, the width and the command of each kind of further work, run `assay audit {task}`; `--width` takes "
    "the width that you want."
)
UNSEEN = (
    "The precision set was drawn from the posts that another predictor labels with the language. Of the posts that "
    "this predictor labels so, the share that was never shown to a person is counted here, over the {over}."
)
CHECK = (
    "The posts of a recall set come from authors whom a predictor had found to write the language. Where the uniform "
    "set has posts of the language too, the two recalls are tested for a difference, within the reach of these authors "
    "where it is known. Labels that differ at the 5% level: {differing} of {of}. In four of five cases, a test finds a "
    "difference as large as the one it would see."
)
BALANCED = (
    "Precision on the recall set, whose languages have about as many posts each. In a stream, errors on a large "
    "language outweigh all that a small one has, so a predictor may look far better here, or far worse.",
    "Reweighted to natural shares, a single error in a large language stands for very many, and the interval that "
    "results is often too wide to say anything.",
)
FALSE_YES = "The figures if this share of the posts in a set that asks about one language were false Yes."
LONE = (
    "The precision with und if all posts that it alone labels so, and that nobody has read, are wrong, and if all are "
    "right."
)
WIDE = 0.2


def _measured_on(measure: str, joined: Joined) -> str:
    """The kinds of sets that have posts for a measure."""
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
    """Where more audits would narrow recall most: at most three of the labels on which the detectors agree, where each
    post that was read stands for many others. Empty where all was read, or every interval is narrow."""
    of_label = [row for row in rows if row["measure"] == "recall" and list(row["of"]) == ["label"]]
    wide = [
        row for row in of_label if row["value"] is not None and (row["low"] is None or row["high"] - row["low"] >= WIDE)
    ]
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


def _of_comparison(compared: Mapping[str, Any]) -> list[str]:
    words = []
    if not any(row["measure"] == "accuracy" for row in compared["rows"]):
        words.append("Without a uniform set, accuracy and precision cannot be compared.")
    if together := compared["together"]:
        classes = "; ".join(f"{', '.join(fine)} as {coarse}" for coarse, fine in together.items())
        words.append(
            "For this comparison alone, labels that either of the two does not tell apart are taken together: "
            f"{classes}."
        )
    return words


def _left_out(sets: Collection[GoldSet], vanished: Collection[str]) -> tuple[list[Row], list[str]]:
    """Rows and a sentence on posts that no measure counts, vanished ones and erased ones. vanished: ids of posts that
    are gone from their source. A post may have the label `de` in one set and `not-en` in another; the sentence counts
    it once."""
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
    """What the report says of the predictor and the sets. missing: sentences on posts that are left out."""
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
    """The range that --missing-rate names. EvaluationError if it is none, or if no set has an audit."""
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


NO_PRECISION = (
    "Precision is not measured: a recall-oriented set has as many posts of a rare language as of a common one, "
    "so it lacks nearly all false triggers on the common ones. Give a precision-oriented or a uniform set."
)


def _wanted(sets: Sequence[GoldSet], measures: Collection[str], balanced: bool, against: Subject | None) -> list[str]:
    """The measures of the report. EvaluationError for a measure that the sets cannot tell, and for a set that none
    takes."""
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
        # Sets of the stream give natural shares to the balanced precision, and the posts on which two are compared.
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
    """wanted: the measures of the report. is_all: whether none was named, so that precision is missed where no set
    tells it."""
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
        yield NO_PRECISION
