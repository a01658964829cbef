"""The quality control `suggestions`: labels of a predictor that people see beside the answers, and hide at random.

Suggestions are hidden for a random share of the combinations of person and unit (`--blind-share`), each decided on its
own with the task's secret. A person therefore cannot foresee or change who sees what, and everybody can repeat the
draw later. With `n` answers by a person or to a unit, both arms occur except with probability s^n + (1 - s)^n. A draw
that balanced the arms of each unit would depend on who else works on it, and could not be repeated from its rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from annotate.controls import suggestion_ledger
from annotate.core.draws.committed_draws import BLIND
from annotate.core.draws.hash_order import hit
from annotate.kinds.control import Panel, QualityControl, register
from annotate.models import Annotator, Judgment, Suggestion, Task, Unit
from annotate.work.moves import seen
from corpora.predictions.rankings import joined

SHOWN = 10  # maximum number of suggested labels for a unit


def suggested(unit: Unit) -> list[str]:
    """Return the labels suggested for a unit, best first, even if they are hidden from an annotator.

    The lists of several systems are merged, ranked by the sum of 1/rank.
    """
    if not unit.task.suggest:
        return []
    lists = Suggestion.objects.filter(unit=unit).order_by("system").values_list("ranked", flat=True)
    return joined(lists)[:SHOWN]


def all_suggested(task: Task) -> dict[int, list[str]]:
    """Return the suggested labels by unit key, for all units of a task that have suggestions."""
    if not task.suggest:
        return {}
    lists: dict[int, list[list[str]]] = {}
    rows = Suggestion.objects.filter(unit__task=task).order_by("unit", "system").values_list("unit", "ranked")
    for unit, ranked in rows:
        lists.setdefault(unit, []).append(ranked)
    return {unit: joined(unit_lists)[:SHOWN] for unit, unit_lists in lists.items()}


def shown_to(annotator: Annotator, unit: Unit) -> list[str]:
    """Return the suggestions that an annotator sees, as stored. The list is empty if they are hidden (is_blind)."""
    task = unit.task
    return suggested(unit) if task.suggest and not is_blind(annotator.pseudonym, task, unit.item.key) else []


def seen_by(annotator: Annotator, unit: Unit) -> list[str]:
    """Return the suggestions that an annotator sees, in the words that they can submit, such as sides of a pair."""
    labels = shown_to(annotator, unit)
    return seen(annotator, [(unit, label) for label in labels]) if labels else []


def is_blind(pseudonym: str, task: Task, key: str) -> bool:
    """Return whether the suggestions for an item are hidden from an annotator.

    This is decided at random for each combination of annotator and item. The result is the same if the annotator opens
    the item again.

    key: id of the item.
    """
    return hit(task.blind_share, lots=task.lots, purpose=BLIND, key=f"{pseudonym} {key}")


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


def answers(task: Task) -> Iterable[suggestion_ledger.Answer]:
    """Yield the answers in force to the units with suggestions, without those to hidden gold answers."""
    labels, form = all_suggested(task), task.kind.form
    first = suggestion_ledger.FIRST if form.several else 1
    answers = Judgment.objects.answers().live().filter(unit__in=task.units.exported(), lease__isnull=False)
    rows = answers.order_by("unit", "pk").values_list(
        "unit", "label", "annotator__pseudonym", "unit__item__key", "active_seconds"
    )
    for unit, label, person, key, seconds in rows:
        if unit in labels:
            chosen, suggestions = frozenset(form.facets(label)), frozenset(labels[unit][:first])
            is_shown = not is_blind(person, task, key)
            yield suggestion_ledger.Answer(person, unit, is_shown, chosen, suggestions, seconds)


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
        return suggestion_ledger.ledger(task.suggest, list(answers(task)), is_several=task.kind.form.several)

    def panel(self, task: Task, results: Any) -> Panel | None:
        if results is None:
            return None
        heading, page = "Effect of suggestions", "how-to/suggestions"
        words = suggestion_ledger.words(results, task.blind_share)
        tables = suggestion_ledger.tables(results, task.kind.name)
        return Panel(heading, words, tables, results, self.manifest_key, page=page)


register(Suggestions())
