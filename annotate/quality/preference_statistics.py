"""Preferences between a task's systems, computed from its valid answers (answer_models.py).

If both systems suggest the same replies, the unit is not annotated. It counts as one tie for each annotator who would
have been asked. A unit is unfinished as long as it is in a queue. Imported units are never in a queue.

`report` returns JSON data:

    {"task", "kind", "systems": [name, ...],
     "all": SECTION with these additional keys:
        "comparisons": number of units, including those without answers,
        "unfinished": number of units in a queue,
        "equal": number of units with the same replies from both systems,
        "people": number of annotators who have answered,
        "agreement": MEASURE, the nominal alpha, as in agreement_statistics.py,
        "standings": [{"system", "judgments", "won", "tied", "win": ESTIMATE}, ...], most wins first; empty if there are
                     fewer than three systems,
        "order": {"left_out": ORDER without ties, "half": ORDER in which a tie is half a win for both systems}; None if
                 there are fewer than three systems,
        "sides": SIDES for all annotators together, in which "out_of_line" is a number of annotators; also has
                 "people": [SIDES, ...] for each annotator, most one-sided first
     "languages": {code: SECTION}}                     empty if the languages of the units are unknown

SECTION: {"units", "judgments": counts, "pairs": [PAIR, ...]}

PAIR: {"systems": [a, b], "units", "finished": units, "judgments": counts, "counts": {answer: n}, "shares": {answer:
    ESTIMATE} as shares of the judgments, "majority": {answer: n}, "majority_shares": {answer: ESTIMATE} as shares of
    the finished units, "win": ESTIMATE of how often system a is preferred, with a tie as half a win, "p": p-value of
    the sign test, "p_holm": the p-value corrected for all pairs in the section}. An answer is the name of a system,
    "tie" or, for majorities, "none".

ORDER: {"reference": system, "strengths": [{"system", "value", "low", "high"}, ...], "differences": [{"systems": [a, b],
    "value", "low", "high"}, ...], "groups": [[system, ...], ...], "lost": share} (paired_comparisons.py).

SIDES: {"annotator": pk (None for all), "pseudonym", "judgments": number of judgments with known sides,
    "ties", "first": number of judgments for the first side, "share": ESTIMATE, "p", "out_of_line": bool}

ESTIMATE, MEASURE: as in agreement_statistics.py.
"""

from collections.abc import Collection, Sequence
from typing import Any

from annotate.core import stages
from annotate.core.draws.hash_order import lot
from annotate.core.estimation.differences import holm
from annotate.core.measures import paired_comparisons
from annotate.core.measures.paired_comparisons import Judgment, Order, Pair, Sides
from annotate.kinds.preference_kind import pair_suffix
from annotate.models import Annotator, Comparison, Side, Task
from annotate.quality import agreement_statistics
from annotate.quality.answer_models import answers as answers_of
from corpora.draws.part_draws import SYSTEMS

# Minimum number of systems that are ranked.
LEAST_ORDERED = 3


class NoPreferences(ValueError):
    """Raised if a task does not ask which system annotators prefer. The message states why, and what to do."""


def report(task: Task, *, without: Collection[int] = ()) -> dict[str, Any]:
    """Measure the preferences in a task. The module docstring describes the result.

    without: keys of units to leave out.

    Raise NoPreferences if the task does not ask for preferences.
    """
    _check_compared(task)
    queued = _queued_units(task) - set(without)
    judgments = [judgment for judgment in judgments_of(task) if judgment.unit not in without]
    answered = [judgment for judgment in judgments if judgment.person is not None]
    by_language: dict[str, list[Judgment]] = {}
    for judgment in judgments:
        by_language.setdefault(judgment.language, []).append(judgment)
    systems, seed = paired_comparisons.systems_of(judgments), lot(task.draw.seed, "preferences", task.name)
    standings, order = [], None
    if len(systems) >= LEAST_ORDERED:
        standings = [row._asdict() | {"win": row.win.as_dict()} for row in paired_comparisons.win_rates(judgments)]
        order = {
            name: _order(paired_comparisons.order(judgments, ties=ties, seed=seed))
            for name, ties in (("left_out", False), ("half", True))
        }
    whole = {
        "comparisons": len(queued | {judgment.unit for judgment in judgments}),
        "unfinished": len(queued),
        "equal": len({judgment.unit for judgment in judgments if judgment.person is None}),
        "people": len({judgment.person for judgment in answered}),
        "agreement": agreement_statistics.nominal(task, without=without),
        "standings": standings,
        "order": order,
        "sides": _sides(answered),
    }
    return {
        "task": task.name,
        "kind": task.kind_slug,
        "systems": systems,
        "all": _section(judgments) | whole,
        "languages": {code: _section(by_language[code]) for code in sorted(filter(None, by_language))},
    }


def _check_compared(task: Task) -> None:
    if "preferences" in task.kind.reports:
        return
    if systems := task.draw.parameters.get(SYSTEMS):
        raise NoPreferences(
            f"The task {task.name} compares two predictors by annotators’ labels, not by their preferences. Export "
            f"its gold set, and run `assay evaluate {' --against '.join(systems)} --gold FOLDER`."
        )
    raise NoPreferences(
        f"The task {task.name} does not compare systems: its kind is {task.kind_slug}. Name a task in which "
        "annotators choose the better of two systems."
    )


def _queued_units(task: Task) -> set[int]:
    """Return the keys of the units in a queue."""
    return set(task.units.exported().queued().values_list("pk", flat=True))


def judgments_of(task: Task) -> list[Judgment]:
    """Return the valid answers, and a tie per annotator for each unit whose systems suggest the same replies."""
    queued = _queued_units(task)
    compared = Comparison.objects.filter(unit__task=task)
    pairs = {comparison.unit_id: comparison for comparison in compared if comparison.unit_id is not None}
    side_rows = Side.objects.filter(unit__task=task).values_list("unit", "annotator", "first")
    sides: dict[tuple[int, int | None], str] = {(unit, annotator): first for unit, annotator, first in side_rows}
    equal = task.units.exported().filter(stage=stages.AGREED, pk__in=pairs).order_by("pk")
    rows = equal.values_list("pk", "label", "item__language", "item__key")
    answers: list[tuple[int, int | None, str, str, str]]
    answers = [
        (answer.unit, answer.annotator, answer.label, answer.language, answer.key) for answer in answers_of(task)
    ]
    for unit, label, language, key in rows:
        answers += [(unit, None, label, language if task.languages else "", key)] * task.redundancy
    judgments = []
    for unit, person, label, language, key in answers:
        if unit in pairs:
            a, b = sorted(pairs[unit].systems)
            first, message = sides.get((unit, person), ""), key.removesuffix(pair_suffix(a, b))
            judgments.append(Judgment(unit, person, (a, b), label, first, language, message, unit not in queued))
    return judgments


# --- Results as JSON data


def _section(judgments: Sequence[Judgment]) -> dict[str, Any]:
    pairs = [_pair(judgment) for judgment in paired_comparisons.compare_pairs(judgments)]
    for pair, p_holm in zip(pairs, holm([pair["p"] for pair in pairs]), strict=True):
        pair["p_holm"] = p_holm
    return {"units": len({judgment.unit for judgment in judgments}), "judgments": len(judgments), "pairs": pairs}


def _pair(pair: Pair) -> dict[str, Any]:
    shares = {
        key: {answer: estimate.as_dict() for answer, estimate in getattr(pair, key).items()}
        for key in ("shares", "majority_shares")
    }
    return pair._asdict() | shares | {"systems": list(pair.systems), "win": pair.win.as_dict()}


def _order(order: Order) -> dict[str, Any]:
    return {
        "reference": order.reference,
        "strengths": [{"system": name, **strength._asdict()} for name, strength in order.strengths.items()],
        "differences": [{"systems": list(pair), **strength._asdict()} for pair, strength in order.differences.items()],
        "groups": [list(group) for group in order.groups],
        "lost": order.lost,
    }


def _sides(judgments: Sequence[Judgment]) -> dict[str, Any]:
    whole, people = paired_comparisons.sides(judgments)
    names = dict(
        Annotator.objects.filter(pk__in=[judgment.person for judgment in people]).values_list("pk", "pseudonym")
    )

    def row(judgment: Sides) -> dict[str, Any]:
        return {
            "annotator": judgment.person,
            "pseudonym": names.get(judgment.person, ""),
            **{name: getattr(judgment, name) for name in ("judgments", "ties", "first")},
            "share": judgment.share.as_dict(),
            "p": judgment.p,
            "out_of_line": judgment.is_flagged,
        }

    rows = list(map(row, people))
    return row(whole) | {"out_of_line": sum(judgment["out_of_line"] for judgment in rows), "people": rows}
