"""A predictor measured on gold sets of posts: the report, as one dict that JSON can hold.

This module decides which sets a measure takes, what is refused, and what the report says besides figures; the measures
are in measures.py. reports/evaluation_report.py writes the report.
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
from annotate.kinds.language_labels import label_name
from annotate.reports.evaluation_report import texts
from annotate.reports.tables import many

# What can be measured, in the order of reports.
MEASURES = tuple(dict.fromkeys(measure for design in DESIGNS.values() for measure in design.sets.measures))
# Measure -> the designs whose sets tell it; the one that samples all posts comes last.
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
    """The report on a file, or a predictor of the corpus. judge: options of its certificate, if it labelled the whole
    corpus. reading: how predictions are read, see subjects.subject_of."""
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
    """(section, its rows, its words) of all sections that have figures; a section may have words alone."""
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
        # A set whose task is not here has no further work.
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
        yield WORDS["no_precision"]
