"""A predictor measured on gold sets of posts: everything that a report says, as one dict that JSON can hold.

This module decides which sets a measure takes and what is refused; the measures are in measures.py, and
reports/writing.py writes the report.
"""

from collections.abc import Collection, Iterable
from typing import Any

from annotate.evaluation import measures as parts
from annotate.evaluation import unread_triggers
from annotate.evaluation.comparison import comparison
from annotate.evaluation.given import EvaluationError, Subject, erased, gone, rows_of
from annotate.evaluation.matching import join
from annotate.evaluation.measures import sources
from annotate.goldsets.reading import GoldRow, GoldSet
from annotate.kinds.designs import DESIGNS, Design
from annotate.reports import predictor_report

# What can be measured, in the order of reports.
MEASURES = tuple(dict.fromkeys(measure for design in DESIGNS.values() for measure in design.measures))


def evaluate(
    subject: Subject,
    sets: list[GoldSet],
    *,
    against: Subject | None = None,
    vanished: Collection[str] = frozenset(),
    measures: Collection[str] = (),
    balanced: bool = False,
) -> dict[str, Any]:
    """The report. measures: those that it must have, and no others; empty for all that the sets allow.

    balanced: also precision on the recall sets, under a name that says what it is. EvaluationError for what cannot, or
    must not, be computed from these sets; CorpusError if the corpus lacks what it takes.
    """
    if against and against.is_same(subject):
        raise EvaluationError(f"{subject.spelled} cannot be compared with itself; name another predictor.")
    designs = [DESIGNS[name] for name in {gold.design for gold in sets}]
    _check_measures(designs, measures, balanced)
    wanted = [measure for measure in measures or MEASURES if any(measure in design.measures for design in designs)]
    _check_used(sets, wanted, balanced, against)
    left = rows_of(sets, vanished)
    joined = join(subject, left, [subject.mapping])
    precision = parts.precision(subject, joined) if "precision" in wanted else None
    both = joined.uniform is not None and bool(joined.recall) and "recall" in wanted
    return {
        "kind": predictor_report.KIND,
        "predictor": parts.described(subject, any(subject.voted_in(gold) for gold in sets)),
        "gold": [_gold(gold, rows) for gold, rows in left],
        "vanished": gone(sets, vanished),
        "erased": erased(sets),
        "accuracy": parts.accuracy(joined) if "accuracy" in wanted else None,
        "recall": parts.recall(joined) if "recall" in wanted else None,
        "precision": precision,
        "recall_check": parts.recall_check(joined) if both else None,
        "unseen": unread_triggers.unseen(subject, joined, left) if precision else None,
        "balanced": parts.balanced(joined) if balanced else None,
        "comparison": comparison(subject, against, left) if against else None,
        "confusion": parts.confusion(joined),
        "warnings": [
            *_of_sets(sets),
            *subject.warnings,
            *(against.warnings if against else ()),
            *joined.warnings,
            *(unread_triggers.warnings(subject, joined) if "precision" in wanted else ()),
            *(NO_PRECISION if _lacks_precision(designs) and not measures and not balanced else ()),
        ],
    }


# --- what is refused


NO_PRECISION = (
    "Precision is not measured: a recall-oriented set has as many posts of a rare language as of a common one, "
    "so it lacks nearly all false triggers on the common ones. Give a precision-oriented or a uniform set.",
)


def _lacks_precision(designs: Collection[Design]) -> bool:
    """Whether sets are given from which somebody might expect precision, but none that can tell it."""
    told = any("precision" in design.measures for design in designs)
    return not told and any(design.by_author for design in designs)


def _check_measures(designs: Collection[Design], measures: Collection[str], balanced: bool) -> None:
    authors = any(design.by_author for design in designs)
    for measure in measures:
        if any(measure in design.measures for design in designs) or (measure == "precision" and balanced):
            continue
        takes = " or a ".join(design.spelled for design in sources(measure) if not design.of_uniform)
        refusal = f"{measure.capitalize()} takes a {takes} set, and none is given."
        if measure == "precision" and authors:
            refusal += (
                " A recall-oriented set has as many posts of a rare language as of a common one, so the precision that "
                "it gives is not that of any stream; --balanced-precision computes it, under that name."
            )
        raise EvaluationError(refusal)
    if balanced and not authors:
        raise EvaluationError("--balanced-precision takes a recall-oriented set, and none is given.")


def _check_used(sets: list[GoldSet], wanted: list[str], balanced: bool, against: Subject | None) -> None:
    for gold in sets:
        design = DESIGNS[gold.design]
        # Sets of the stream give natural shares to the balanced precision, and the posts on which two are compared.
        also = (balanced or against) and not design.by_trigger
        if not (also or set(wanted) & set(design.measures)):
            raise EvaluationError(
                f"The gold set {gold.name} is {design.spelled}, and no measure that was asked for uses it; "
                "leave it out, or ask for more with --measure."
            )
    if against and all(DESIGNS[gold.design].by_trigger for gold in sets):
        raise EvaluationError(
            "Two predictors are compared on uniform and recall-oriented sets, and none is given; on a "
            "precision-oriented set, only posts that one predictor chose were read."
        )


# --- the parts of the report about the sets


def _gold(gold: GoldSet, rows: list[GoldRow]) -> dict[str, Any]:
    return {
        "name": gold.name,
        "design": gold.design,
        "folder_name": gold.folder.resolve().name,
        "posts": len(rows),
        "frame": gold.frame_size,
        "finished": gold.finished,
        "predictor": ", ".join(sorted(set(gold.predictors.values()))),
        "digest": gold.digest,
    }


def _of_sets(sets: Iterable[GoldSet]) -> list[str]:
    return [
        f"The gold set {gold.name} is unfinished: posts that still wait for people are missing from it, and disputed "
        "ones are harder than the others."
        for gold in sets
        if not gold.finished
    ]
