"""The draw of records that tell two systems apart: most of them are records on which the two say different labels.

Where both say the same, both are right or both are wrong, so the record adds nothing to the difference of their
accuracies. The best chance of a unit is in proportion to the size that its part of the difference is expected to have
(Zrnic and Candès 2024, Active Statistical Inference, ICML, section 4). Here that is the same for all records on which
the two differ, and 0 for the others. Some of the others are drawn all the same, for each system's own accuracy.
"""

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from annotate.core.lottery import by_seed, drawn
from corpora.core.errors import CorpusError
from corpora.core.languages import UND
from corpora.core.values import matching
from corpora.declared import declared_records
from corpora.draw import Sample, sample_chosen
from corpora.models import Corpus
from corpora.predictors import find_predictor, predicted_labels

DIFFER, AGREE = "differ", "agree"
AGREEING = 0.2  # share of the records that are drawn where both systems say the same
# What the draw's parameters call how many records of each part the corpus has, the chance of each, and the ids drawn.
FRAME, CHANCES, IDS = "frame", "chances", "part_ids"


def sample_contrasted(
    corpus: Corpus,
    languages: Collection[str] | None,
    *,
    labels: Collection[str],
    systems: Sequence[str],
    size: int,
    seed: str,
    leave_out: Collection[str] = frozenset(),
) -> list[Sample]:
    """One sample for each language in which something was drawn. It only reads files.

    labels: those that people can give. systems: two predictors of the corpus, such as mine@1. size: records of all
    languages together. CorpusError unless there are two predictors that differ on some record, and say these labels.
    """
    if len(systems) != 2:
        raise CorpusError(f"--systems names {len(systems)} predictors; name the two that are to be compared.")
    first, second = (find_predictor(corpus.name, each) for each in systems)
    language = {
        row["id"]: row["language"] for row in declared_records(corpus.name, languages, ()) if row["id"] not in leave_out
    }
    one, other = (predicted_labels(corpus.name, each, language) for each in (first, second))
    for predictor, said in ((first, one), (second, other)):
        _check_labels(str(predictor), {matching(label, labels) for label in said.values()} - {*labels, UND}, labels)
    parts: dict[str, list[str]] = {DIFFER: [], AGREE: []}
    for key in language:
        parts[AGREE if one[key] == other[key] else DIFFER].append(key)
    if not parts[DIFFER]:
        raise CorpusError(
            f"{first} and {second} say the same of all {len(language):,} records, so nothing tells them apart."
        )
    sizes = _sizes(size, {part: len(keys) for part, keys in parts.items()})
    taken = {part: drawn(keys, sizes[part], lots=by_seed(seed), purpose=f"draw {part}") for part, keys in parts.items()}
    mixed = drawn([key for keys in taken.values() for key in keys], size, lots=by_seed(seed), purpose="order")
    of_all = {
        "systems": [str(first), str(second)],
        FRAME: {part: len(keys) for part, keys in parts.items()},
        CHANCES: {part: len(taken[part]) / len(keys) for part, keys in parts.items() if keys},
    }
    chosen: dict[str, list[str]] = {}
    for key in mixed:
        chosen.setdefault(language[key], []).append(key)
    parameters: dict[str, dict[str, Any]] = {
        code: of_all | {IDS: {part: [key for key in keys if language[key] == code] for part, keys in taken.items()}}
        for code in chosen
    }
    frames = {code: sum(1 for each in language.values() if each == code) for code in chosen}
    return sample_chosen(corpus, "compare", chosen, seed=seed, frames=frames, parameters=parameters)


def _check_labels(predictor: str, strange: Collection[str], labels: Collection[str]) -> None:
    """CorpusError where a predictor says labels that people cannot give."""
    if strange:
        folded = {label.casefold(): label for label in labels}
        near = {label: folded[each] for label in strange for each in get_close_matches(label.casefold(), folded, 1)}
        label = min(strange, key=lambda label: (label not in near, label))
        meant = f" (near {near[label]!r})" if label in near else ""
        more = f" and {len(strange) - 1:,} more" if len(strange) > 1 else ""
        raise CorpusError(
            f"{predictor} has labels that the task does not have: {label[:40]!r}{meant}{more}. Its labels are "
            f"{', '.join([*labels][:20])}; import the predictions with these under another version."
        )


def _sizes(size: int, there: Mapping[str, int]) -> dict[str, int]:
    """How many to draw of each part. What one part lacks the other makes up for."""
    agreeing = min(there[AGREE], max(round(AGREEING * size), size - there[DIFFER]))
    return {AGREE: agreeing, DIFFER: min(there[DIFFER], size - agreeing)}


def chances(parameters: Mapping[str, Any]) -> dict[str, float]:
    """Id -> the chance of being drawn, by a draw's parameters; empty for other draws."""
    return {key: parameters[CHANCES][part] for part, keys in parameters.get(IDS, {}).items() for key in keys}
