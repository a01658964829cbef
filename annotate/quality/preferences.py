"""Which of two systems the people of a task prefer, by what counts of their answers. Reads only.

paired_comparisons.py makes the figures; agreement.py decides which answers count. Where both systems suggest
the same, nobody is asked, and the unit counts as that many ties as people would have been asked. A unit is finished
unless it waits in a queue for further answers; what was judged elsewhere never does.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from annotate.core import stages
from annotate.core.draws.hash_order import lot
from annotate.core.estimation.comparisons import holm
from annotate.core.measures import paired_comparisons
from annotate.core.measures.paired_comparisons import Judgment, Order, Pair, Sides, Standing
from annotate.kinds.preference_kind import between
from annotate.models import Annotator, Comparison, Side, Task
from annotate.quality import agreement
from corpora.draws.part_draws import SYSTEMS

# How many systems have an order, beyond which of two is preferred.
LEAST_ORDERED = 3


class NoPreferences(ValueError):
    """A task in which nobody compares systems; the sentence says so."""


def report(task: Task, *, without: Collection[int] = ()) -> dict[str, Any]:
    """Everything of the preferences of a task that can be written as JSON; NoPreferences if it has none. without: units
    that do not count.

        {"task", "kind", "systems": [name, ...],
         "all": SECTION and
            "comparisons": units, with those that nobody has answered yet, and "unfinished": those of them that wait for
                           answers,
            "equal": units of which both systems suggest the same,
            "people": who answered, how many,
            "agreement": MEASURE, the nominal alpha, as quality/agreement.py has it,
            "standings": [{"system", "judgments", "won", "tied", "win": ESTIMATE}, ...] the one who wins most first, and
            "order": {"left_out": ORDER, "half": ORDER}    ties left out, or as half a win for both; both of these are
                                                           empty and None of fewer than three systems
            "sides": SIDES without a person, with the number of people "out_of_line", and "people": [SIDES, ...], who is
                     farthest from a half first
         "languages": {code: SECTION}}                     no languages where it is not known which the units are in

    SECTION: {"units", "judgments": counts, "pairs": [PAIR, ...]}
    PAIR: {"systems": [a, b], "units", "finished": units, "judgments": counts, "counts": {answer: n}, "shares":
           {answer: ESTIMATE} of judgments, "majority": {answer: n}, "majority_shares": {answer: ESTIMATE} of finished
           units, "win": ESTIMATE of a, ties as half, "p": of the sign test, "p_holm": corrected for all pairs of the
           section}; an answer is the name of a system, tie, and of majorities none.
    ORDER: {"reference": system, "strengths": [{"system", "value", "low", "high"}, ...], "differences": [{"systems":
           [a, b], "value", "low", "high"}, ...], "groups": [[system, ...], ...], "lost": share}
           (paired_comparisons.py).
    SIDES: {"annotator": pk or None, "pseudonym", "judgments": counts, those with known sides, "ties", "first", "share":
           ESTIMATE, "p", "out_of_line": bool}
    ESTIMATE, MEASURE: as quality/agreement.py has them.
    """
    is_compared = "preferences" in task.kind.publication.sections
    if not is_compared and (systems := task.draw.parameters.get(SYSTEMS)):
        raise NoPreferences(
            f"The task {task.name} compares two predictors by the labels that people give, not by preferences. Export "
            f"its gold set, and run `assay evaluate {' --against '.join(systems)} --gold FOLDER`."
        )
    if not is_compared:
        raise NoPreferences(
            f"Nobody compares systems in the task {task.name}: its kind is {task.kind_slug}. Name a task whose people "
            "say which of two systems they prefer."
        )
    waiting = _waiting(task) - set(without)
    judgments = [each for each in judgments_of(task) if each.unit not in without]
    asked = [each for each in judgments if each.person is not None]
    seed = lot(task.draw.seed, "preferences", task.name)
    of_language = attrgetter("language")
    by_language = {code: list(group) for code, group in groupby(sorted(judgments, key=of_language), of_language)}
    by_language.pop("", None)
    systems = paired_comparisons.systems_of(judgments)
    is_ordered = len(systems) >= LEAST_ORDERED
    return {
        "task": task.name,
        "kind": task.kind_slug,
        "systems": systems,
        "all": _section(judgments)
        | {
            "comparisons": len(waiting | {each.unit for each in judgments}),
            "unfinished": len(waiting),
            "equal": len({each.unit for each in judgments if each.person is None}),
            "people": len({each.person for each in asked}),
            "agreement": agreement.nominal(task, without=without),
            "standings": [_standing(each) for each in paired_comparisons.standings(judgments)] if is_ordered else [],
            "order": {
                "left_out": _order(paired_comparisons.order(judgments, ties=False, seed=seed)),
                "half": _order(paired_comparisons.order(judgments, ties=True, seed=seed)),
            }
            if is_ordered
            else None,
            "sides": _sides(asked),
        },
        "languages": {code: _section(group) for code, group in by_language.items()},
    }


def _waiting(task: Task) -> set[int]:
    """The units that are not finished."""
    return set(task.units.exported().queued().values_list("pk", flat=True))


def judgments_of(task: Task) -> list[Judgment]:
    """The answers that count, and the ties on which both systems agree."""
    waiting = _waiting(task)
    pairs = {each.unit_id: each for each in Comparison.objects.filter(unit__task=task).exclude(unit=None)}
    sides = {
        (unit, annotator): first
        for unit, annotator, first in Side.objects.filter(unit__task=task).values_list("unit", "annotator", "first")
    }
    found = [
        _judgment(pairs[said.unit], said.key, said.language, said.annotator, said.label, sides)
        for said in agreement.answers(task)
        if said.unit in pairs
    ]
    for unit in task.units.exported().filter(stage=stages.AGREED, pk__in=pairs).select_related("item").order_by("pk"):
        code = unit.item.language if task.languages else ""
        equal = _judgment(pairs[unit.pk], unit.item.key, code, None, unit.label, sides)
        found += [equal] * task.redundancy
    return [each._replace(is_finished=each.unit not in waiting) for each in found]


def _judgment(
    pair: Comparison,
    key: str,
    language: str,
    annotator: int | None,
    label: str,
    sides: Mapping[tuple[int, int], str],
) -> Judgment:
    a, b = sorted((pair.system_a, pair.system_b))
    message = key.removesuffix(between(a, b))
    first = "" if annotator is None else sides.get((pair.unit_id, annotator), "")
    return Judgment(pair.unit_id, annotator, (a, b), label, first, language, message)


# --- what is made of them


def _section(judgments: Sequence[Judgment]) -> dict[str, Any]:
    pairs = [_pair(each) for each in paired_comparisons.compared(judgments)]
    for pair, p_holm in zip(pairs, holm([pair["p"] for pair in pairs]), strict=True):
        pair["p_holm"] = p_holm
    return {"units": len({each.unit for each in judgments}), "judgments": len(judgments), "pairs": pairs}


def _pair(found: Pair) -> dict[str, Any]:
    told = found._asdict()
    for key in ("shares", "majority_shares"):
        told[key] = {answer: each.as_dict() for answer, each in told[key].items()}
    return told | {"systems": list(found.systems), "win": found.win.as_dict()}


def _standing(found: Standing) -> dict[str, Any]:
    return found._asdict() | {"win": found.win.as_dict()}


def _order(found: Order) -> dict[str, Any]:
    return {
        "reference": found.reference,
        "strengths": [{"system": name, **each._asdict()} for name, each in found.strengths.items()],
        "differences": [{"systems": list(pair), **each._asdict()} for pair, each in found.differences.items()],
        "groups": [list(group) for group in found.groups],
        "lost": found.lost,
    }


def _sides(judgments: Sequence[Judgment]) -> dict[str, Any]:
    whole, people = paired_comparisons.sides(judgments)
    names = dict(Annotator.objects.filter(pk__in=[each.person for each in people]).values_list("pk", "pseudonym"))

    def told(each: Sides) -> dict[str, Any]:
        return {
            "annotator": each.person,
            "pseudonym": names.get(each.person, ""),
            "judgments": each.judgments,
            "ties": each.ties,
            "first": each.first,
            "share": each.share.as_dict(),
            "p": each.p,
            "out_of_line": each.is_out_of_line,
        }

    listed = [told(each) for each in people]
    return told(whole) | {"out_of_line": sum(each["out_of_line"] for each in listed), "people": listed}
