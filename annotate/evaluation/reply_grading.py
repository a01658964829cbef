"""Suggested replies, measured: weighted ROUGE, ROUGE-1 to -3, Dist-1 and -2, and of references in the response set
precision at one and mean reciprocal rank, by language and in all; and two systems, by the same examples.

The report is one dict that JSON can hold, like that of evaluate.py; reports/reply_report.py says it in words.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from annotate.core import replies as measures
from annotate.core.comparing import holm
from annotate.core.replies import Example, rank_of
from annotate.core.rouge import MissingTokenizer, best_of, is_measured, tokenized
from annotate.evaluation.given import EvaluationError
from annotate.evaluation.prediction_files import PublishedSet
from annotate.evaluation.reply_sets import Suggested, Tested, read_predictions, read_tests
from annotate.kinds.labels import label_name
from annotate.reports import reply_report

# Language -> its examples, one for each test pair that is measured, in the order of the set.
Measured = Mapping[str, list[Example]]


def grade(predictions: Path, sets: Sequence[PublishedSet], against: Path | None = None) -> dict[str, Any]:
    """The report. EvaluationError if the predictions do not fit the set."""
    if len(sets) > 1:
        raise EvaluationError(
            f"{len(sets)} sets of message-reply pairs are given, and the predictions are for one; measure on each by "
            "itself."
        )
    if against and against.resolve() == predictions.resolve():
        raise EvaluationError(f"{predictions} cannot be compared with itself; name other predictions with --against.")
    [gold] = sets
    tests = read_tests(gold)
    paths = [path for path in (predictions, against) if path]
    said = [read_predictions(path, tests) for path in paths]
    names = _names(paths)
    systems = [_examples(each, tests) for each in said]
    return {
        "kind": reply_report.KIND,
        "predictor": _described(names[0]),
        "gold": [gold.described() | {"rows": sum(len(tested.pairs) for tested in tests.values())}],
        "replies": {
            **_figures("", _together(systems[0]), [tests[language] for language in systems[0]]),
            "languages": [_figures(language, found, [tests[language]]) for language, found in systems[0].items()],
        },
        "comparison": _comparison(*systems, name=names[1], seed=gold.digest) if against else None,
        "told": [f"{name}: {words}" for name, each in zip(names, said, strict=True) for words in each.told],
        "warnings": [],
    }


def _names(paths: Sequence[Path]) -> list[str]:
    """What the report calls the systems: by the names of their files or folders, or by the paths where these are the
    same, as they are where each is a file of one language in a folder of its own."""
    names = [path.resolve().name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def _described(name: str) -> dict[str, str]:
    return {"name": name, "version": "", "spelled": name}


def _examples(said: Suggested, tests: Mapping[str, Tested]) -> Measured:
    try:
        return {
            language: [
                Example(f"{language}\t{message}", best_of(texts, reference), rank)
                for (message, true), suggestions in zip(tests[language].pairs, each, strict=True)
                if is_measured(reference := tokenized(true, language))
                for texts in [[tokenized(text, language) for text in suggestions]]
                for rank in [rank_of(true, suggestions, tests[language].responses)]
            ]
            for language, each in said.replies.items()
        }
    except MissingTokenizer as error:
        raise EvaluationError(str(error)) from error


def _together(examples: Measured) -> list[Example]:
    return [each for found in examples.values() for each in found]


# --- one system


def _figures(language: str, examples: Sequence[Example], tests: Sequence[Tested]) -> dict[str, Any]:
    return {
        "language": language,
        "name": label_name(language) if language else "",
        "rows": len(examples),
        "messages": len({each.message for each in examples}),
        "unmeasured": sum(len(tested.pairs) for tested in tests) - len(examples),
        "retrievable": sum(each.rank is not None for each in examples),
        **{name: each.as_dict() for name, each in measures.figures(examples).items()},
    }


# --- two systems


def _comparison(first: Measured, second: Measured, *, name: str, seed: str) -> dict[str, Any]:
    both = [language for language in first if language in second]
    if not both:
        raise EvaluationError(
            f"There is no language of which both systems have predictions: the one has {', '.join(first)}, the other "
            f"{', '.join(second)}; predict the same test pairs with both."
        )
    pairs = {language: (first[language], second[language]) for language in both}
    if len(both) > 1:
        pairs = {"": tuple(_together({code: each[code] for code in both}) for each in (first, second)), **pairs}  # type: ignore[dict-item]
    rows, tested = [], []
    for language, (ones, others) in pairs.items():
        named = {"language": language, "name": label_name(language) if language else ""}
        found = measures.differences(ones, others)
        apart = {measure: each and each.as_dict() for measure, each in found.items()}
        rows.append(named | {"rows": len(ones)} | apart)
        p_values = measures.p_values(ones, others, seed=f"{seed}:{language}")
        tested += [
            named | {"measure": measure, "difference": apart[measure], "p": p}
            for measure, p in p_values.items()
            if p is not None
        ]
    for row, p_holm in zip(tested, holm([row["p"] for row in tested]), strict=True):
        row["p_holm"] = p_holm
    alone = sorted(first.keys() ^ second.keys())
    return {"other": _described(name), "languages": rows, "tested": tested, "alone": alone}
