"""The quality control `suggestions`: labels of a predictor that people see beside the answers, and hide at random.

Suggestions are hidden for a random share of the combinations of person and unit (`--blind-share`), each decided on its
own with the task's secret. A person therefore cannot foresee or change who sees what, and everybody can repeat the
draw later. With `n` answers by a person or to a unit, both arms occur except with probability s^n + (1 - s)^n. A draw
that balanced the arms of each unit would depend on who else works on it, and could not be repeated from its rows.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, groupby
from operator import attrgetter
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from annotate.core.agreement.coefficients import f1
from annotate.core.draws.committed_draws import BLIND
from annotate.core.draws.hash_order import is_drawn
from annotate.core.estimation.differences import arm_difference
from annotate.kinds.control import Panel, QualityControl, register
from annotate.models import Annotator, Judgment, Suggestion, Task, Unit
from annotate.reports.numbers import NOT_MEASURED, percent, points
from annotate.reports.tables import NUMBER, Cell, Column, Table, numbered, table
from annotate.work.moves import labels_as_seen
from corpora.predictions.rankings import fuse_rankings

SHOWN = 10  # maximum number of suggested labels for a unit


def suggested(unit: Unit) -> list[str]:
    """Return the labels suggested for a unit, best first, even if they are hidden from an annotator.

    The lists of several systems are merged, ranked by the sum of 1/rank.
    """
    if not unit.task.suggest:
        return []
    lists = Suggestion.objects.filter(unit=unit).order_by("system").values_list("ranked", flat=True)
    return fuse_rankings(lists)[:SHOWN]


def all_suggested(task: Task) -> dict[int, list[str]]:
    """Return the suggested labels by unit key, for all units of a task that have suggestions."""
    if not task.suggest:
        return {}
    lists: dict[int, list[list[str]]] = {}
    rows = Suggestion.objects.filter(unit__task=task).order_by("unit", "system").values_list("unit", "ranked")
    for unit, ranked in rows:
        lists.setdefault(unit, []).append(ranked)
    return {unit: fuse_rankings(unit_lists)[:SHOWN] for unit, unit_lists in lists.items()}


def shown_to(annotator: Annotator, unit: Unit) -> list[str]:
    """Return the suggestions that an annotator sees, as stored. The list is empty if they are hidden (is_blind)."""
    task = unit.task
    return suggested(unit) if task.suggest and not is_blind(annotator.pseudonym, task, unit.item.key) else []


def seen_by(annotator: Annotator, unit: Unit) -> list[str]:
    """Return the suggestions that an annotator sees, in the words that they can submit, such as sides of a pair."""
    labels = shown_to(annotator, unit)
    return labels_as_seen(annotator, [(unit, label) for label in labels]) if labels else []


def is_blind(pseudonym: str, task: Task, key: str) -> bool:
    """Return whether the suggestions for an item are hidden from an annotator.

    This is decided at random for each combination of annotator and item. The result is the same if the annotator opens
    the item again.

    key: id of the item.
    """
    return is_drawn(task.blind_share, lots=task.lots, purpose=BLIND, key=f"{pseudonym} {key}")


def suggestions_shown(rows: Any) -> pa.Array:
    """Return whether the author of each judgment saw suggestions.

    The value is None if nothing was suggested, or if the judgment is a skip, was imported, or is an adjudicator's
    decision.
    """
    export, shown = rows.export, []
    keys = zip(rows.judged["pk"].to_pylist(), rows.judged["item__key"].to_pylist(), strict=True)
    for (unit, key), answers in zip(keys, rows.judgments.tuples("kind", "annotator", "lease"), strict=True):
        suggestions = export.suggested.get(unit)
        for kind, annotator, lease in answers:
            has_suggestions = kind == Judgment.ANSWER and lease and suggestions
            shown.append(not is_blind(export.pseudonyms[annotator], export.task, key) if has_suggestions else None)
    return pa.array(shown, pa.bool_())


# --- The comparison of answers with and without suggestions. What is shown is decided at random for each combination of
# person and unit, so the difference between the two arms is the effect of showing a suggestion.


FIRST = 5  # number of suggestions at the top of the list with which a set of labels is compared
MOST_LABELS = 20  # maximum number of labels for which the ledger has shares, the most frequent first
ARMS = {"shown": True, "blind": False}


class Answer(NamedTuple):
    """An answer to a unit with suggestions.

    person: pseudonym of the annotator.
    unit: key of the unit.
    is_shown: whether the suggestions were shown.
    chosen: the chosen labels.
    first: the first suggested labels, even if they were hidden.
    seconds: working time; None if unknown.
    """

    person: str
    unit: int
    is_shown: bool
    chosen: frozenset[str]
    first: frozenset[str]
    seconds: float | None

    @property
    def score(self) -> float:
        """The score of the suggestion if this answer is the truth: F1, which is 0 or 1 for a single label."""
        return f1(self.chosen, self.first)


def ledger(systems: Sequence[str], answers: Sequence[Answer], *, is_several: bool) -> dict[str, Any]:
    """Return the comparison of the two arms, as JSON data.

    systems: predictors whose labels were suggested.
    is_several: whether an answer is a set of labels.

    first: number of suggestions at the top of the list to which the figures refer.
    shown, blind: the figures of each arm, see `_figures`.
    score: the difference in the suggester's score, shown minus blind, with its interval.
    labels: for the most frequent labels, the share of answers with the label in each arm, and the difference.
    people: a row for each annotator, with `shown` and `blind` figures for their answers.
    """
    by_person: dict[str, list[Answer]] = {}
    for answer in answers:
        by_person.setdefault(answer.person, []).append(answer)
    frequencies = Counter(label for answer in answers for label in answer.chosen)
    most_frequent = sorted(frequencies, key=lambda label: (-frequencies[label], label))[:MOST_LABELS]
    return {
        "systems": list(systems),
        "several": is_several,
        "first": FIRST if is_several else 1,
        **_both(answers),
        "score": _difference(answers, attrgetter("score")),
        "labels": [_of_label(label, answers) for label in most_frequent],
        "people": [{"annotator": person, **_both(of_person)} for person, of_person in sorted(by_person.items())],
    }


def _both(answers: Sequence[Answer]) -> dict[str, dict[str, Any]]:
    return {arm: _figures([answer for answer in answers if answer.is_shown is shown]) for arm, shown in ARMS.items()}


def _figures(answers: Sequence[Answer]) -> dict[str, Any]:
    """Return the figures of some answers of one arm. Means are None if there are no answers.

    answers: number of answers.
    score: mean score of the suggestions if the answers are the truth.
    exactly: number of answers that consist of exactly the first suggestions.
    concepts: mean number of labels per answer.
    taken: share of the first suggestions that people chose.
    among: share of the chosen labels that are among the first suggestions.
    agreement: mean F1 of the pairs of answers to the same unit; for single labels, the share of equal pairs.
    pairs: number of these pairs.
    seconds: median working time.
    """
    labels = sum(len(answer.chosen) for answer in answers)
    common = sum(len(answer.chosen & answer.first) for answer in answers)
    alike = list(_alike(answers))
    times = [answer.seconds for answer in answers if answer.seconds is not None]
    return {
        "answers": len(answers),
        "score": fmean(answer.score for answer in answers) if answers else None,
        "exactly": sum(answer.chosen == answer.first for answer in answers),
        "concepts": labels / len(answers) if answers else None,
        "taken": common / sum(len(answer.first) for answer in answers) if answers else None,
        "among": common / labels if labels else None,
        "agreement": fmean(alike) if alike else None,
        "pairs": len(alike),
        "seconds": median(times) if times else None,
    }


def _alike(answers: Sequence[Answer]) -> Iterator[float]:
    """Yield how similar each pair of answers to the same unit is."""
    for _, of_unit in groupby(sorted(answers, key=attrgetter("unit")), key=attrgetter("unit")):
        yield from (f1(one.chosen, other.chosen) for one, other in combinations(of_unit, 2))


def _difference(answers: Sequence[Answer], value_of: Callable[[Answer], float]) -> dict[str, float | None]:
    """Return the difference between the arms, with an interval clustered by annotator and by unit."""
    people, units = (
        {key: number for number, key in enumerate(dict.fromkeys(map(attrgetter(name), answers)))}
        for name in ("person", "unit")
    )
    difference = arm_difference(
        np.array([value_of(answer) for answer in answers], dtype=np.float64),
        np.array([answer.is_shown for answer in answers], dtype=np.bool_),
        np.array([people[answer.person] for answer in answers], dtype=np.int64),
        np.array([units[answer.unit] for answer in answers], dtype=np.int64),
    )
    if difference is None:
        return {"value": None, "low": None, "high": None}
    ends = (difference.low, difference.high) if difference.has_interval else (None, None)
    return dict(zip(("value", "low", "high"), (difference.value, *ends), strict=True))


def _of_label(label: str, answers: Sequence[Answer]) -> dict[str, Any]:
    def share(answers: Sequence[Answer]) -> float | None:
        return fmean(label in answer.chosen for answer in answers) if answers else None

    shares = {arm: share([answer for answer in answers if answer.is_shown is shown]) for arm, shown in ARMS.items()}
    return {"label": label, **shares, "difference": _difference(answers, lambda answer: float(label in answer.chosen))}


# --- Words and tables


ALL = "all"


def effect_words(results: Mapping[str, Any], blind_share: float) -> list[str]:
    """Return sentences about the comparison."""
    shown, blind = results["shown"], results["blind"]
    sentences = [
        f"People saw labels by {', '.join(results['systems'])} beside the answers, except for a random "
        f"{percent(blind_share)} of the combinations of person and item."
    ]
    if not (shown["answers"] and blind["answers"]):
        return [*sentences, "The effect is unknown until there are answers with and without suggestions."]
    counts = f"{shown['answers']:,} answers with a suggestion", f"{blind['answers']:,} without"
    if results["several"]:
        sentences.append(
            f"The mean F1 of answers and the first {results['first']} suggestions is {percent(shown['score'])} in "
            f"{counts[0]}, and {percent(blind['score'])} in {counts[1]}: {points(results['score'])} percentage points."
        )
    else:
        sentences.append(
            f"The suggested label is the answer in {percent(shown['score'])} of {counts[0]}, and in "
            f"{percent(blind['score'])} of {counts[1]}: {points(results['score'])} percentage points."
        )
    sentences.append("The predictions would seem better by this much if answers with suggestions measured them.")
    return sentences


def effect_tables(results: Mapping[str, Any], called: Callable[[str], str]) -> list[Table]:
    """Return the table of both arms, and the table of annotators.

    called: function that returns the display name of a label.
    """
    return [_effect_table(results, called), _people_table(results)]


def _effect_table(results: Mapping[str, Any], called: Callable[[str], str]) -> Table:
    """Return a table with a row for each figure, and for the share of each label."""
    shown, blind, first = results["shown"], results["blind"], results["first"]

    def row(name: str, key: str, written: Callable[[Any], str], difference: Any = None) -> dict[str, Any]:
        cells = {arm: written(results[arm][key]) if results[arm][key] is not None else NOT_MEASURED for arm in ARMS}
        return {"figure": name, **cells, "difference": points(difference) if difference else ""}

    of_sets = [
        row("labels per answer", "concepts", "{:.1f}".format),
        row(f"share of the first {first} that were chosen", "taken", percent),
        row(f"share of chosen labels among the first {first}", "among", percent),
    ]
    score = f"mean F1 with the first {first}" if results["several"] else "share that equals the suggestion"
    rows = [
        row("answers", "answers", "{:,}".format),
        row(score, "score", percent, results["score"]),
        *(of_sets if results["several"] else ()),
        row("agreement of two answers" if results["several"] else "pairs of equal answers", "agreement", percent),
        row("median seconds", "seconds", "{:.1f}".format),
        *(
            {
                "figure": f"label {called(label['label'])}",
                **{arm: percent(label[arm]) for arm in ARMS},
                "difference": points(label["difference"]),
            }
            for label in (results["labels"] if shown["answers"] and blind["answers"] else ())
        ),
    ]
    columns = (
        Column("figure", ""),
        Column("shown", "with suggestion", NUMBER),
        Column("blind", "without", NUMBER),
        Column("difference", "difference", NUMBER),
    )
    return table("Effect of suggestions", columns, rows)


def _people_table(results: Mapping[str, Any]) -> Table:
    """Return a table with two rows for each annotator and for all annotators together.

    One row is for answers given with suggestions, and the other for answers given without suggestions. A row is omitted
    if it would contain no answers.
    """
    rows = [
        {"annotator": figures.get("annotator", ALL), "arm": arm, **figures[arm]}
        for figures in (results, *results["people"])
        for arm in ARMS
        if figures[arm]["answers"]
    ]
    first, several = results["first"], results["several"]
    of_sets = (
        _number("concepts", "labels per answer", "{:.1f}".format),
        _number("taken", f"share of the first {first} that were chosen", percent),
        _number("among", f"share of chosen labels among the first {first}", percent),
    )
    columns = (
        Column("annotator", "annotator"),
        Column("arm", "suggestions", says=lambda row: {"shown": "shown", "blind": "not shown"}[row["arm"]]),
        numbered("answers", "answers"),
        *(of_sets if several else ()),
        Column(
            "exactly",
            f"answers that equal the first {first}" if several else "answers that equal it",
            NUMBER,
            lambda row: Cell(f"{row['exactly']:,} of {row['answers']:,}", row["exactly"]),
        ),
        _number("score", "mean F1" if several else "share", percent),
        _number("agreement", "F1 of pairs" if several else "equal pairs", percent),
        _number("seconds", "median seconds", "{:.1f}".format),
    )
    return table("Annotators with and without suggestions", columns, rows)


def _number(key: str, heading: str, format_value: Callable[[float], str]) -> Column:
    def says(row: dict[str, Any]) -> Cell:
        return Cell(NOT_MEASURED if row[key] is None else format_value(row[key]), row[key])

    return Column(key, heading, NUMBER, says)


# --- The quality control


def answers(task: Task) -> Iterable[Answer]:
    """Yield the answers in force to the units with suggestions, without those to hidden gold answers."""
    labels, form = all_suggested(task), task.kind.form
    first = FIRST if form.several else 1
    answers = Judgment.objects.answers().live().filter(unit__in=task.units.exported(), lease__isnull=False)
    rows = answers.order_by("unit", "pk").values_list(
        "unit", "label", "annotator__pseudonym", "unit__item__key", "active_seconds"
    )
    for unit, label, person, key, seconds in rows:
        if unit in labels:
            chosen, suggestions = frozenset(form.facets(label)), frozenset(labels[unit][:first])
            is_shown = not is_blind(person, task, key)
            yield Answer(person, unit, is_shown, chosen, suggestions, seconds)


class Suggestions(QualityControl):
    name = "suggestions"
    inputs = ("suggest", "blind_share")
    switches = ("suggest",)
    manifest_key = "suggestions"

    def beside(self, unit: Unit, annotator: Annotator) -> Mapping[str, Any]:
        # Concepts are listed in their own panel (pages/concept_picker.py).
        return {} if unit.task.vocabulary_id else {"suggested": seen_by(annotator, unit)}

    def judgment_columns(self) -> Sequence[tuple[str, Any, Any]]:
        return (("suggestions_shown", pa.bool_(), suggestions_shown),)

    def columns(self, task: Task) -> Mapping[str, Mapping[int, str]]:
        if "suggested" in task.kind.publication.columns:
            return {}
        return {"suggested": {unit: labels[0] for unit, labels in all_suggested(task).items()}}

    def section(self, task: Task) -> dict[str, Any] | None:
        if not task.suggest:
            return None
        return ledger(task.suggest, list(answers(task)), is_several=task.kind.form.several)

    def panel(self, task: Task, results: Any) -> Panel | None:
        if results is None:
            return None
        heading, page = "Effect of suggestions", "how-to/suggestions"
        sentences, tables = effect_words(results, task.blind_share), effect_tables(results, task.kind.name)
        return Panel(heading, sentences, tables, results, self.manifest_key, page=page)


register(Suggestions())
