"""Evaluation of the replies that a system suggests for the test pairs of a set of message-reply pairs.

The measures are weighted ROUGE, ROUGE-1 to ROUGE-3, BLEU, Dist-1 and Dist-2. Precision at one and mean reciprocal rank
are also reported for examples whose reference reply is in the response set, and for ranks in a random set.

A set contains the following files, in the formats of Zhang et al. 2021 and their published code.
- test/LANGUAGE/*.tsv has four columns. The first two are the message and the reply.
- rsp_set/LANGUAGE/response_lm_cluster.txt has three columns. The second is the reply.
- random_set/LANGUAGE/replies.txt has a random reply in each line.

Predictions are in LANGUAGE_model_responses.txt. A line contains the message, the reference reply and up to three
suggested replies. Lines can be in any order. In LANGUAGE_random_ranks.txt, a line contains the message, the reference,
and the reference's rank in a list of the random replies and the reference itself.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from annotate.core.draws.splits import DEV
from annotate.core.estimation.resampling import LEAST_LEFT_OUT, LEAST_UNITS
from annotate.core.measures import replies as measures
from annotate.core.measures.figure_rows import Row, add_holm_p_values, difference_row, row
from annotate.core.measures.generated_texts import MissingExtra, counts
from annotate.core.measures.replies import LONGEST, Example, best_of, is_measured, rank_of, tokenize
from annotate.evaluation.prediction_files import describe_system, system_names
from annotate.evaluation.record_sets import PublishedSet
from annotate.evaluation.subjects import EvaluationError
from annotate.goldsets.formats.mrs import RANDOM_SET, REPLIES, RESPONSES
from annotate.goldsets.set_folder import RESTORE, GoldSetError
from annotate.reports.evaluation_report import texts
from annotate.reports.tables import are, many
from corpora.threads.messages import comparison_key
from corpora.threads.pair_sets import MOST, OF_LANGUAGE, TEST, VALID, examples

Pair = tuple[str, str]  # message, reference reply
# For each language, an example for each measured test pair, in set order.
Measured = Mapping[str, list[Example]]
# Measures that count only examples whose reference reply is in the response set.
RETRIEVED = ("p1", "mrr", "macro_mrr")
RANKS_SUFFIX = "_random_ranks.txt"
TEXTS = texts("replies")


@dataclass(frozen=True)
class Tested:
    """The test data of a language.

    pairs: the test pairs, in set order.
    responses: the replies of the response set.
    random: number of random replies.
    """

    pairs: list[Pair]
    responses: frozenset[str]
    random: int = 0


@dataclass(frozen=True)
class SuggestedReplies:
    """A system's suggested replies.

    replies: for each language, the suggested replies for each test pair, in set order.
    ranks: for each language with a rank file, the rank of each test pair's reference in the random set.
    notes: sentences for the report, such as on test pairs without predictions and on ignored files.
    """

    replies: dict[str, list[list[str]]]
    ranks: dict[str, list[int]]
    notes: list[str] = field(default_factory=list)


def read_tests(gold: PublishedSet, split: str = TEST) -> dict[str, Tested]:
    """Return each language's pairs in the split, by default its test set.

    Raise EvaluationError if there are no pairs, and GoldSetError if a file has the wrong number of columns.
    """
    tests: dict[str, Tested] = {}
    for folder in sorted(path for path in (gold.folder / split).glob("*") if path.is_dir()):
        pairs = read_pairs(gold, split, folder.name)
        responses = gold.folder / "rsp_set" / folder.name / RESPONSES
        reply_set = frozenset(reply for _, reply, _ in _cells(responses, 3)) if responses.exists() else frozenset()
        if pairs:
            drawn = gold.folder / RANDOM_SET / folder.name / REPLIES
            tests[folder.name] = Tested(pairs, reply_set, len(list(_cells(drawn, 1))) if drawn.exists() else 0)
    if not tests:
        raise EvaluationError(
            f"The set {gold.name} in {gold.folder} has no {split} pairs to predict replies for. Export it with a share "
            f"for the {split} split, from a corpus with a licence that allows its texts to be published."
        )
    return tests


def read_pairs(gold: PublishedSet, split: str, language: str) -> list[Pair]:
    """Return a split's messages and replies in a language, in set order."""
    paths = sorted((gold.folder / split / language).glob("*.tsv*"))
    return [(message, reply) for path in paths for message, reply, *_ in _cells(path, 4)]


def _cells(path: Path, cell_count: int) -> Iterator[list[str]]:
    """Yield the cells of each line, with white space normalized."""
    with path.open(encoding="utf-8-sig", newline="\n") as lines:
        for number, line in enumerate(lines, 1):
            cells = list(map(comparison_key, line.rstrip("\r\n").split("\t")))
            if len(cells) != cell_count:
                raise GoldSetError(f"{path}, line {number:,} has {len(cells)} cells instead of {cell_count}. {RESTORE}")
            yield cells


# --- predictions


def read_predictions(path: Path, tests: Mapping[str, Tested]) -> SuggestedReplies:
    """Read the replies suggested for the test pairs from a file, or from a folder with one file per language.

    Raise EvaluationError if there is no prediction file, or if a file lacks a test pair of its language.
    """
    notes: list[str] = []
    files = _files(path, tests, notes)
    replies = {language: _read(file, language, tests[language], notes) for language, file in files.items()}
    ranks = {
        language: _ranks(file, language, tests[language])
        for language in files
        if path.is_dir() and (file := path / f"{language}{RANKS_SUFFIX}").exists()
    }
    if without := sorted(tests.keys() - files.keys()):
        notes.append(f"Test pairs in {', '.join(without)} are not measured, because there are no predictions for them.")
    return SuggestedReplies(replies, ranks, notes)


def _files(path: Path, tests: Mapping[str, Tested], notes: list[str]) -> dict[str, Path]:
    """Return each language's prediction file.

    Files in languages without test pairs are left out, and a sentence about each is appended to `notes`.
    """
    example = f"{next(iter(tests))}{OF_LANGUAGE}"
    if not path.exists():
        raise EvaluationError(f"{path} does not exist. Specify a file such as {example}, or a folder of such files.")
    if not (path.is_dir() or path.is_file()):
        raise EvaluationError(f"{path} is not a regular file. Save the predictions in a regular file.")
    files = sorted(path.glob(f"*{OF_LANGUAGE}")) if path.is_dir() else [path]
    if not files:
        raise EvaluationError(f"{path} contains no prediction files. Add one for each language, such as {example}.")
    files_by_language, other_languages = {}, []
    for file in files:
        language = file.name.removesuffix(OF_LANGUAGE)
        if language == file.name:
            raise EvaluationError(
                f"The name of {file} does not contain a language. Rename it, for example to {example}."
            )
        if language in tests:
            files_by_language[language] = file
        else:
            other_languages.append(language)
            notes.append(f"{file.name} was ignored, because the set has no test pairs in {language}.")
    if not files_by_language:
        raise EvaluationError(
            f"{path} contains predictions for {', '.join(other_languages)}, but the set has test pairs only in "
            f"{', '.join(tests)}."
        )
    return files_by_language


def _read(path: Path, language: str, tested: Tested, notes: list[str]) -> list[list[str]]:
    """Return the replies suggested for each test pair. If the set repeats a pair, its lines are matched in order."""
    expected, outside = Counter(tested.pairs), 0
    suggestions: defaultdict[Pair, deque[list[str]]] = defaultdict(deque)
    for example in examples(path):
        # Ignore empty cells at the end of a line, but keep those before a suggestion, because they affect its rank.
        pair = (comparison_key(example.message), comparison_key(example.reference))
        replies = list(map(comparison_key, example.replies))
        while replies and not replies[-1]:
            replies.pop()
        if len(suggestions[pair]) < expected[pair]:
            suggestions[pair].append(replies)
        else:
            outside += 1
            last_outside = example.line
    if outside and not any(suggestions.values()):
        raise EvaluationError(
            f"{path} contains none of the {len(tested.pairs):,} test pairs in {language}. The first two cells of "
            "each line must be the message and the reference reply, as in the set."
        )
    if missing_pairs := [pair for pair in expected if len(suggestions[pair]) < expected[pair]]:
        number, in_file = (
            sum(expected[pair] - len(suggestions[pair]) for pair in missing_pairs),
            len(suggestions[missing_pairs[0]]),
        )
        in_set = expected[missing_pairs[0]]
        often = f", which occurs {in_set:,} times in the set and {in_file:,} times in the file" if in_set > 1 else ""
        raise EvaluationError(
            f"{path} has no line for {number:,} of the {len(tested.pairs):,} test pairs in {language}. The first is "
            f"{_quote(missing_pairs[0][0])} with the reply {_quote(missing_pairs[0][1])}{often}. Add a line for each "
            "pair, without suggestions if there are none."
        )
    if outside:
        notes.append(
            f"{language}: {are(outside, 'line was', 'lines were')} ignored (no test pair, or a repeated pair). "
            f"The last is line {last_outside:,}."
        )
    suggested = [suggestions[pair].popleft() for pair in tested.pairs]
    if fewer := sum(len(candidates) < MOST for candidates in suggested):
        notes.append(
            f"{language}: {are(fewer, 'example has', 'examples have')} fewer than {MOST} suggested replies. The best "
            "suggestion counts; an example without suggestions counts as wrong."
        )
    return suggested


def _ranks(path: Path, language: str, tested: Tested) -> list[int]:
    """Return the rank of each test pair's reference in the random set.

    Raise EvaluationError if the set has no random replies, or if a rank is out of range.
    """
    if not tested.random:
        raise EvaluationError(f"{path} has ranks, but the set has no random replies in {language}. Remove the file.")
    ranks = []
    for cells in _read(path, language, tested, []):
        if len(cells) != 1 or not cells[0].isdecimal() or not 1 <= int(cells[0]) <= tested.random + 1:
            raise EvaluationError(
                f"{path} has the rank {' '.join(cells)[:40]!r}. The third cell must be the rank of the reference among "
                f"the {tested.random:,} random replies and itself, from 1 to {tested.random + 1:,}."
            )
        ranks.append(int(cells[0]))
    return ranks


def _quote(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")


# --- the report


def grade(
    predictions: Path, sets: Sequence[PublishedSet], against: Path | None = None, *, split: str = TEST
) -> dict[str, Any]:
    """Evaluate suggested replies and return the report.

    predictions: file or folder of predictions.
    sets: a sequence with the gold set as its only element.
    against: file or folder of a second system's predictions; None for no comparison.
    split: the split to measure. These sets call their `dev` split `valid`.

    Raise EvaluationError if the predictions do not fit the set.
    """
    [gold] = sets
    paths = [path for path in (predictions, against) if path]
    names, tests = system_names(paths), read_tests(gold, VALID if split == DEV else split)
    suggestions = [read_predictions(path, tests) for path in paths]
    systems = [_examples(suggested, tests) for suggested in suggestions]
    test = TEXTS.words["randomization"]
    comparison, unmatched_notes = _comparison(*systems, seed=gold.digest) if against else ([], [])
    return {
        "form": "text",
        "unit": "example",
        "sections": TEXTS.sections,
        "head": [{"measure": measure, "of": {}} for measure in ("weighted_rouge", "p1")],
        "words": {"gold": _counts(systems[0], tests), "comparison": unmatched_notes},
        "reading": [sentence.format(least=LEAST_LEFT_OUT) for sentence in TEXTS.reading],
        "predictor": describe_system(names[0]),
        "gold": [gold.describe() | {"rows": sum(len(tested.pairs) for tested in tests.values())}],
        "rows": [
            row(measure, slice_keys, figure, _units(measure, examples), _note(measure, examples))
            for slice_keys, examples in _slices(systems[0])
            for measure, figure in measures.figures(examples).items()
            if _is_shown(measure, systems)
        ],
        "comparison": {"other": describe_system(names[1]), "rows": comparison, "test": test} if against else None,
        "told": [
            f"{name}: {note}" for name, suggested in zip(names, suggestions, strict=True) for note in suggested.notes
        ],
        "warnings": [],
    }


def _examples(suggested: SuggestedReplies, tests: Mapping[str, Tested]) -> Measured:
    try:
        return {
            language: list(_measure(language, tests[language], replies, suggested.ranks.get(language)))
            for language, replies in suggested.replies.items()
        }
    except MissingExtra as error:
        raise EvaluationError(str(error)) from error


def _measure(
    language: str, tested: Tested, replies: Sequence[Sequence[str]], ranks: Sequence[int] | None
) -> Iterator[Example]:
    random_ranks: Sequence[int | None] = ranks or [None] * len(replies)
    pairs = zip(tested.pairs, replies, random_ranks, strict=True)
    for (message, true), suggestions, random_rank in pairs:
        if is_measured(reference := tokenize(true, language)):
            best = best_of([tokenize(text, language) for text in suggestions], reference)
            [matches] = counts([" ".join(best.words)], [[reference]])
            rank = rank_of(true, suggestions, tested.responses)
            yield Example(f"{language}\t{message}", best, rank, f"{language}\t{true}", random_rank, matches)


def _slices(examples: Measured) -> list[tuple[dict[str, str], list[Example]]]:
    """Return all examples and, if there are several languages, the examples of each language."""
    slices: list[tuple[dict[str, str], list[Example]]] = [
        ({}, [example for language_examples in examples.values() for example in language_examples])
    ]
    return slices + [
        ({"language": code}, language_examples) for code, language_examples in examples.items() if len(examples) > 1
    ]


def _units(measure: str, examples: Sequence[Example]) -> int:
    if measure in measures.RANDOM:
        return sum(example.random_rank is not None for example in examples)
    return sum(example.rank is not None for example in examples) if measure in RETRIEVED else len(examples)


def _is_shown(measure: str, systems: Sequence[Measured]) -> bool:
    """Return whether to report a measure. Measures of ranks in a random set require ranks from all systems."""
    return measure not in measures.RANDOM or all(
        any(example.random_rank is not None for example in chain(*system.values())) for system in systems
    )


def _note(measure: str, examples: Sequence[Example]) -> str:
    if measure in measures.RANDOM:
        return "" if _units(measure, examples) else "no ranks in a random set"
    return "" if _units(measure, examples) or not examples else "no reference is in the response set"


def _counts(examples: Measured, tests: Mapping[str, Tested]) -> list[str]:
    """Return sentences on the number of examples and messages in each language."""
    counts = []
    for language, measured in examples.items():
        left_out = len(tests[language].pairs) - len(measured)
        messages = len({example.message for example in measured})
        counts.append(
            f"{language}: {many(len(measured), 'example')} of {many(messages, 'message')}"
            + (f", and {left_out:,} left out" if left_out else "")
        )
    return [
        f"Measured on test pairs. {'; '.join(counts)}.",
        f"References with more than {LONGEST} words, or with only full stops, are left out.",
    ]


def _comparison(first_examples: Measured, second_examples: Measured, *, seed: str) -> tuple[list[Row], list[str]]:
    """Return the rows, and a sentence on the languages that only one system has predictions for."""
    both = [language for language in first_examples if language in second_examples]
    if not both:
        raise EvaluationError(
            f"The systems have no language in common: one has predictions for {', '.join(first_examples)}, the other "
            f"for {', '.join(second_examples)}. Predict the same test pairs with both systems."
        )
    sides = [
        _slices({language: measured[language] for language in both}) for measured in (first_examples, second_examples)
    ]
    rows = []
    for (slice_keys, first_slice), (_, second_slice) in zip(*sides, strict=True):
        drawn_by = f"{seed}:{slice_keys.get('language', '' if len(both) > 1 else both[0])}"
        p_values = measures.p_values(first_slice, second_slice, seed=drawn_by)
        for measure, difference in measures.differences(first_slice, second_slice).items():
            if not _is_shown(measure, (first_examples, second_examples)):
                continue
            note = _note(measure, first_slice) or ("" if difference else f"fewer than {LEAST_UNITS} messages")
            rows.append(
                difference_row(
                    measure, slice_keys, difference, _units(measure, first_slice), note, p_values.get(measure)
                )
            )
    unmatched = ", ".join(sorted(first_examples.keys() ^ second_examples.keys()))
    return add_holm_p_values(rows), [
        f"Only one system has predictions for {unmatched}, so these languages are not compared."
    ] * bool(unmatched)
