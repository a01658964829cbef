"""The `suggestions` quality control: predicted labels that annotators see next to the answers, hidden at random.

Suggestions are hidden for a random share s (`--blind-share`) of the (annotator, unit) pairs. Each pair is drawn
independently with the task's secret, so that annotators can't predict or influence the draw, and the draw can be
repeated later. Among n answers by an annotator or to a unit, one arm is missing with probability s^n + (1 - s)^n.
The arms are not balanced within units. Such a draw would depend on which annotators get the unit, so it couldn't be
repeated from its rows.
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
    """Return the labels suggested for a unit, best first, whether or not they are hidden from an annotator.

    The lists of several systems are merged. Labels are ranked by the sum of 1/rank.
    """
    if not unit.task.suggest:
        return []
    lists = Suggestion.objects.filter(unit=unit).order_by("system").values_list("ranked", flat=True)
    return fuse_rankings(lists)[:SHOWN]


def all_suggested(task: Task) -> dict[int, list[str]]:
    """Return the suggested labels of a task's units, by unit key. Units without suggestions are left out."""
    if not task.suggest:
        return {}
    lists: dict[int, list[list[str]]] = {}
    rows = Suggestion.objects.filter(unit__task=task).order_by("unit", "system").values_list("unit", "ranked")
    for unit, ranked in rows:
        lists.setdefault(unit, []).append(ranked)
    return {unit: fuse_rankings(unit_lists)[:SHOWN] for unit, unit_lists in lists.items()}


def shown_to(annotator: Annotator, unit: Unit) -> list[str]:
    """Return the suggestions that an annotator sees, as stored labels; an empty list if they are hidden (is_blind)."""
    task = unit.task
    return suggested(unit) if task.suggest and not is_blind(annotator.pseudonym, task, unit.item.key) else []


def seen_by(annotator: Annotator, unit: Unit) -> list[str]:
    """Return the suggestions that an annotator sees, as labels that they can submit, such as the sides of a pair."""
    labels = shown_to(annotator, unit)
    return labels_as_seen(annotator, [(unit, label) for label in labels]) if labels else []


def is_blind(pseudonym: str, task: Task, key: str) -> bool:
    """Return whether the suggestions for an item are hidden from an annotator.

    The result is random for each pair of annotator and item, but stays the same if the annotator opens the item again.

    key: item id.
    """
    return is_drawn(task.blind_share, lots=task.lots, purpose=BLIND, key=f"{pseudonym} {key}")


def suggestions_shown(rows: Any) -> pa.Array:
    """Return whether the annotator saw suggestions, for each judgment.

    The value is None if there were no suggestions, or if the judgment is a skip, an adjudicator's decision, or
    imported.
    """
    export, shown = rows.export, []
    keys = zip(rows.judged["pk"].to_pylist(), rows.judged["item__key"].to_pylist(), strict=True)
    for (unit, key), answers in zip(keys, rows.judgments.tuples("kind", "annotator", "lease"), strict=True):
        suggestions = export.suggested.get(unit)
        for kind, annotator, lease in answers:
            has_suggestions = kind == Judgment.ANSWER and lease and suggestions
            shown.append(not is_blind(export.pseudonyms[annotator], export.task, key) if has_suggestions else None)
    return pa.array(shown, pa.bool_())


# --- The comparison of answers with and without suggestions. Suggestions are shown at random for each annotator and
# unit, so the difference between the two arms is the effect of showing them.


FIRST = 5  # number of top suggestions that sets of labels are compared with
MOST_LABELS = 20  # maximum number of labels in the results; the most frequent are kept
ARMS = {"shown": True, "blind": False}


class Answer(NamedTuple):
    """An answer to a unit with suggestions.

    person: pseudonym of the annotator.
    unit: key of the unit.
    is_shown: whether the suggestions were shown.
    chosen: the chosen labels.
    first: the top suggestions, whether or not they were shown.
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
        """The F1 of the top suggestions, with this answer as the truth. For a single label, it is 0 or 1."""
        return f1(self.chosen, self.first)


def effect_of_suggestions(systems: Sequence[str], answers: Sequence[Answer], *, is_several: bool) -> dict[str, Any]:
    """Compare answers with and without suggestions. Return the results as JSON data.

    systems: predictors whose labels were suggested.
    is_several: whether an answer is a set of labels.

    The result has:

    first: number of top suggestions that the figures refer to.
    shown, blind: the figures of each arm, see `_figures`.
    score: the difference in the suggestions' mean score, shown minus blind, with its interval.
    labels: a row for each of the most frequent labels, with its share of the answers in each arm, and the difference.
    people: a row for each annotator, with the `shown` and `blind` figures of their answers.
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
        **_figures_by_arm(answers),
        "score": _compare_arms(answers, attrgetter("score")),
        "labels": [_compare_label(label, answers) for label in most_frequent],
        "people": [
            {"annotator": person, **_figures_by_arm(person_answers)}
            for person, person_answers in sorted(by_person.items())
        ],
    }


def _figures_by_arm(answers: Sequence[Answer]) -> dict[str, dict[str, Any]]:
    return {arm: _figures([answer for answer in answers if answer.is_shown is shown]) for arm, shown in ARMS.items()}


def _figures(answers: Sequence[Answer]) -> dict[str, Any]:
    """Return the figures of one arm's answers. Means and shares are None if there are no answers.

    answers: number of answers.
    score: mean score of the suggestions, with the answers as the truth.
    exactly: number of answers that equal the top suggestions.
    concepts: mean number of labels per answer.
    taken: share of the top suggestions that annotators chose.
    among: share of the chosen labels that are among the top suggestions.
    agreement: mean F1 between two answers to the same unit; for single labels, the share of equal answers.
    pairs: number of pairs of such answers.
    seconds: median working time.
    """
    labels = sum(len(answer.chosen) for answer in answers)
    common = sum(len(answer.chosen & answer.first) for answer in answers)
    similarities = list(_pair_similarities(answers))
    times = [answer.seconds for answer in answers if answer.seconds is not None]
    return {
        "answers": len(answers),
        "score": fmean(answer.score for answer in answers) if answers else None,
        "exactly": sum(answer.chosen == answer.first for answer in answers),
        "concepts": labels / len(answers) if answers else None,
        "taken": common / sum(len(answer.first) for answer in answers) if answers else None,
        "among": common / labels if labels else None,
        "agreement": fmean(similarities) if similarities else None,
        "pairs": len(similarities),
        "seconds": median(times) if times else None,
    }


def _pair_similarities(answers: Sequence[Answer]) -> Iterator[float]:
    """Yield the F1 of each pair of answers to the same unit."""
    for _, unit_answers in groupby(sorted(answers, key=attrgetter("unit")), key=attrgetter("unit")):
        yield from (f1(first.chosen, second.chosen) for first, second in combinations(unit_answers, 2))


def _compare_arms(answers: Sequence[Answer], value_of: Callable[[Answer], float]) -> dict[str, float | None]:
    """Return the difference between the arms' mean values, with an interval clustered by annotator and by unit."""
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


def _compare_label(label: str, answers: Sequence[Answer]) -> dict[str, Any]:
    def share(answers: Sequence[Answer]) -> float | None:
        return fmean(label in answer.chosen for answer in answers) if answers else None

    shares = {arm: share([answer for answer in answers if answer.is_shown is shown]) for arm, shown in ARMS.items()}
    return {
        "label": label,
        **shares,
        "difference": _compare_arms(answers, lambda answer: float(label in answer.chosen)),
    }


# --- Text and tables


ALL = "all"


def effect_words(results: Mapping[str, Any], blind_share: float) -> list[str]:
    """Return sentences that summarize the effect of suggestions.

    results: result of `effect_of_suggestions`.
    blind_share: share of the (annotator, item) pairs whose suggestions are hidden.
    """
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
    sentences.append("Measured on answers with suggestions, the predictions would seem better by this difference.")
    return sentences


def effect_tables(results: Mapping[str, Any], name_of: Callable[[str], str]) -> list[Table]:
    """Return a table that compares both arms, and a table of annotators.

    name_of: function that returns a label's display name.
    """
    return [_effect_table(results, name_of), _people_table(results)]


def _effect_table(results: Mapping[str, Any], name_of: Callable[[str], str]) -> Table:
    """Return a table with a row for each figure, and a row for each label's share."""
    shown, blind, first = results["shown"], results["blind"], results["first"]

    def row(name: str, key: str, format_value: Callable[[Any], str], difference: Any = None) -> dict[str, Any]:
        cells = {
            arm: format_value(results[arm][key]) if results[arm][key] is not None else NOT_MEASURED for arm in ARMS
        }
        return {"figure": name, **cells, "difference": points(difference) if difference else ""}

    set_rows = [
        row("labels per answer", "concepts", "{:.1f}".format),
        row(f"share of the first {first} that were chosen", "taken", percent),
        row(f"share of chosen labels among the first {first}", "among", percent),
    ]
    score = f"mean F1 with the first {first}" if results["several"] else "share that equals the suggestion"
    rows = [
        row("answers", "answers", "{:,}".format),
        row(score, "score", percent, results["score"]),
        *(set_rows if results["several"] else ()),
        row("agreement of two answers" if results["several"] else "pairs of equal answers", "agreement", percent),
        row("median seconds", "seconds", "{:.1f}".format),
        *(
            {
                "figure": f"label {name_of(label['label'])}",
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
    """Return a table with a row for each arm: first for all annotators, then for each annotator.

    Rows without answers are left out.
    """
    rows = [
        {"annotator": figures.get("annotator", ALL), "arm": arm, **figures[arm]}
        for figures in (results, *results["people"])
        for arm in ARMS
        if figures[arm]["answers"]
    ]
    first, several = results["first"], results["several"]
    set_columns = (
        _number("concepts", "labels per answer", "{:.1f}".format),
        _number("taken", f"share of the first {first} that were chosen", percent),
        _number("among", f"share of chosen labels among the first {first}", percent),
    )
    columns = (
        Column("annotator", "annotator"),
        Column("arm", "suggestions", says=lambda row: {"shown": "shown", "blind": "not shown"}[row["arm"]]),
        numbered("answers", "answers"),
        *(set_columns if several else ()),
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
    """Yield the current answers to units with suggestions. Hidden gold answers are left out."""
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
        return effect_of_suggestions(task.suggest, list(answers(task)), is_several=task.kind.form.several)

    def panel(self, task: Task, results: Any) -> Panel | None:
        if results is None:
            return None
        heading, page = "Effect of suggestions", "how-to/suggestions"
        sentences, tables = effect_words(results, task.blind_share), effect_tables(results, task.kind.name)
        return Panel(heading, sentences, tables, results, self.manifest_key, page=page)


register(Suggestions())
