"""Evaluation of replies that a system suggests for the test pairs of a set of message-reply pairs.

The measures are weighted ROUGE, ROUGE-1 to ROUGE-3, Dist-1 and Dist-2. Precision at one and mean reciprocal rank are
also reported for the examples whose reference reply is in the response set.

A set contains the following files. The formats are those of Zhang et al. 2021 and the code published with it.
- test/LANGUAGE/*.tsv has four columns. The first two are the message and the reply.
- rsp_set/LANGUAGE/response_lm_cluster.txt has three columns. The second is the reply.

Predictions are in LANGUAGE_model_responses.txt. A line contains the message, the reference reply and up to three
suggested replies. The lines may be in any order.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from annotate.core.estimation.resampling import LEAST_LEFT_OUT, LEAST_UNITS
from annotate.core.measures import replies as measures
from annotate.core.measures.figure_rows import Row, difference_row, holm_corrected, row
from annotate.core.measures.replies import LONGEST, Example, MissingExtra, best_of, is_measured, rank_of, tokenized
from annotate.evaluation.prediction_files import RESTORE, PublishedSet, described, system_names
from annotate.evaluation.subjects import EvaluationError
from annotate.goldsets.formats.mrs import RESPONSES
from annotate.goldsets.set_folder import GoldSetError
from annotate.reports.evaluation_report import texts
from annotate.reports.tables import are, many
from corpora.threads.messages import compared
from corpora.threads.pair_sets import MOST, OF_LANGUAGE, examples

Pair = tuple[str, str]  # message, reference reply
# For each language, an example for each test pair that is measured, in the order of the set.
Measured = Mapping[str, list[Example]]
RETRIEVED = ("p1", "mrr")  # measures that count only examples whose reference reply is in the response set
TEXTS = texts("replies")


@dataclass(frozen=True)
class Tested:
    """The test pairs of a language, in the order of the set, and the replies of its response set."""

    pairs: list[Pair]
    responses: frozenset[str]


@dataclass(frozen=True)
class Suggested:
    """A system's suggested replies.

    replies: for each language, a list with the suggested replies for each test pair, in the order of the set.
    told: sentences for the report, for example about test pairs without predictions and files that were not used.
    """

    replies: dict[str, list[list[str]]]
    told: list[str] = field(default_factory=list)


def read_tests(gold: PublishedSet) -> dict[str, Tested]:
    """Return the test set of each language.

    Raises EvaluationError if there are no test pairs, and GoldSetError if a file has the wrong number of columns.
    """
    found: dict[str, Tested] = {}
    for folder in sorted(path for path in (gold.folder / "test").glob("*") if path.is_dir()):
        pairs = [(said, reply) for path in sorted(folder.glob("*.tsv*")) for said, reply, *_ in _cells(path, 4)]
        responses = gold.folder / "rsp_set" / folder.name / RESPONSES
        known = frozenset(reply for _, reply, _ in _cells(responses, 3)) if responses.exists() else frozenset()
        if pairs:
            found[folder.name] = Tested(pairs, known)
    if not found:
        raise EvaluationError(
            f"The set {gold.name} in {gold.folder} has no test pairs, and predictions are for these; export it with a "
            "share for test, from a corpus whose licence lets its texts leave."
        )
    return found


def _cells(path: Path, wanted: int) -> Iterator[list[str]]:
    """Yield the cells of each line, with white space normalized."""
    with path.open(encoding="utf-8-sig", newline="\n") as lines:
        for number, line in enumerate(lines, 1):
            cells = list(map(compared, line.rstrip("\r\n").split("\t")))
            if len(cells) != wanted:
                raise GoldSetError(f"{path}, line {number:,} has {len(cells)} cells and not {wanted}. {RESTORE}")
            yield cells


# --- predictions


def read_predictions(path: Path, tests: Mapping[str, Tested]) -> Suggested:
    """Read the replies suggested for the test pairs from a file, or from a folder with a file per language.

    Raises EvaluationError if there is no file of predictions, or if a file lacks a test pair of its language.
    """
    told: list[str] = []
    files = _files(path, tests, told)
    replies = {language: _read(file, language, tests[language], told) for language, file in files.items()}
    if without := sorted(tests.keys() - files.keys()):
        told.append(f"There are no predictions for {', '.join(without)}, whose test pairs are not measured.")
    return Suggested(replies, told)


def _files(path: Path, tests: Mapping[str, Tested], told: list[str]) -> dict[str, Path]:
    """Return the file of each language.

    A file in a language without test pairs is left out, and a sentence about it is added to `told`.
    """
    example = f"{next(iter(tests))}{OF_LANGUAGE}"
    if not path.exists():
        raise EvaluationError(f"There is no {path}; name a file such as {example}, or a folder of such files.")
    if not (path.is_dir() or path.is_file()):
        raise EvaluationError(f"{path} is not an ordinary file; save the predictions in one.")
    files = sorted(path.glob(f"*{OF_LANGUAGE}")) if path.is_dir() else [path]
    if not files:
        raise EvaluationError(f"{path} has no file of predictions; put one there for each language, such as {example}.")
    found, others = {}, []
    for file in files:
        language = file.name.removesuffix(OF_LANGUAGE)
        if language == file.name:
            raise EvaluationError(f"{file} does not say its language; name it by that, such as {example}.")
        if language in tests:
            found[language] = file
        else:
            others.append(language)
            told.append(f"{file.name} is for {language}, of which the set has no test pairs; it is left out.")
    if not found:
        raise EvaluationError(
            f"{path} is for {', '.join(others)}, of which the set has no test pairs; it has them in {', '.join(tests)}."
        )
    return found


def _read(path: Path, language: str, tested: Tested, told: list[str]) -> list[list[str]]:
    """Return the replies suggested for each test pair. If the set repeats a pair, its lines are matched in order."""
    waiting, outside = Counter(tested.pairs), 0
    said: defaultdict[Pair, deque[list[str]]] = defaultdict(deque)
    for example in examples(path):
        # Empty cells at the end of a line are not suggestions. An empty cell before a suggestion keeps its rank.
        pair, replies = (compared(example.message), compared(example.reference)), list(map(compared, example.replies))
        while replies and not replies[-1]:
            replies.pop()
        if len(said[pair]) < waiting[pair]:
            said[pair].append(replies)
        else:
            outside += 1
            last_outside = example.line
    if outside and not any(said.values()):
        raise EvaluationError(
            f"{path} has no line of any of the {len(tested.pairs):,} test pairs of {language}: message and reference "
            "reply must be the first two cells of a line, as the set has them."
        )
    if lacking := [pair for pair in waiting if len(said[pair]) < waiting[pair]]:
        number, there = sum(waiting[pair] - len(said[pair]) for pair in lacking), len(said[lacking[0]])
        wanted = waiting[lacking[0]]
        often = f", which the set has {wanted:,} times and the file {there:,}" if wanted > 1 else ""
        raise EvaluationError(
            f"{path} lacks a line for {number:,} of the {len(tested.pairs):,} test pairs of {language}, the first of "
            f"them {_short(lacking[0][0])} with the reply {_short(lacking[0][1])}{often}; give one for each, without "
            "suggestions where there are none."
        )
    if outside:
        told.append(
            f"{language}: {are(outside, 'line is', 'lines are')} of no test pair, or of one that has its "
            f"line, without effect on any figure; the last is line {last_outside:,}."
        )
    suggested = [said[pair].popleft() for pair in tested.pairs]
    if fewer := sum(len(each) < MOST for each in suggested):
        told.append(
            f"{language}: {are(fewer, 'example has', 'examples have')} fewer than {MOST} suggested replies; "
            "the best of those that there are counts, and where there is none, nothing is right."
        )
    return suggested


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")


# --- the report


def grade(predictions: Path, sets: Sequence[PublishedSet], against: Path | None = None) -> dict[str, Any]:
    """Return the evaluation report.

    predictions: file or folder of predictions.
    sets: a sequence with the gold set as its only element.
    against: file or folder of a second system's predictions, None for no comparison.

    Raises EvaluationError if the predictions do not fit the set.
    """
    [gold] = sets
    paths = [path for path in (predictions, against) if path]
    names, tests = system_names(paths), read_tests(gold)
    said = [read_predictions(path, tests) for path in paths]
    systems = [_examples(each, tests) for each in said]
    test = TEXTS.words["randomization"]
    comparison, alone = _comparison(*systems, seed=gold.digest) if against else ([], [])
    return {
        "form": "text",
        "unit": "example",
        "sections": TEXTS.sections,
        "head": [{"measure": measure, "of": {}} for measure in ("weighted_rouge", "p1")],
        "words": {"gold": _counts(systems[0], tests), "comparison": alone},
        "reading": [words.format(least=LEAST_LEFT_OUT) for words in TEXTS.reading],
        "predictor": described(names[0]),
        "gold": [gold.described() | {"rows": sum(len(tested.pairs) for tested in tests.values())}],
        "rows": [
            row(measure, of, found, _units(measure, examples), _note(measure, examples))
            for of, examples in _slices(systems[0])
            for measure, found in measures.figures(examples).items()
        ],
        "comparison": {"other": described(names[1]), "rows": comparison, "test": test} if against else None,
        "told": [f"{name}: {words}" for name, each in zip(names, said, strict=True) for words in each.told],
        "warnings": [],
    }


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
    except MissingExtra as error:
        raise EvaluationError(str(error)) from error


def _slices(examples: Measured) -> list[tuple[dict[str, str], list[Example]]]:
    """Return all examples and, if there are several languages, the examples of each language."""
    found: list[tuple[dict[str, str], list[Example]]] = [({}, [each for of in examples.values() for each in of])]
    return found + [({"language": code}, of) for code, of in examples.items() if len(examples) > 1]


def _units(measure: str, examples: Sequence[Example]) -> int:
    return sum(each.rank is not None for each in examples) if measure in RETRIEVED else len(examples)


def _note(measure: str, examples: Sequence[Example]) -> str:
    return "" if _units(measure, examples) or not examples else "no reference is in the response set"


def _counts(examples: Measured, tests: Mapping[str, Tested]) -> list[str]:
    """Return sentences with the numbers of examples and messages per language."""
    counts = []
    for language, found in examples.items():
        left = len(tests[language].pairs) - len(found)
        messages = len({each.message for each in found})
        counts.append(
            f"{language}: {many(len(found), 'example')} of {many(messages, 'message')}"
            + (f", and {left:,} left out" if left else "")
        )
    return [
        f"Measured on test pairs. {'; '.join(counts)}.",
        f"References of more than {LONGEST} words, or of full stops alone, are left out.",
    ]


def _comparison(first: Measured, second: Measured, *, seed: str) -> tuple[list[Row], list[str]]:
    """Return the rows, and a sentence about languages for which only one system has predictions."""
    both = [language for language in first if language in second]
    if not both:
        raise EvaluationError(
            f"There is no language of which both systems have predictions: the one has {', '.join(first)}, the other "
            f"{', '.join(second)}; predict the same test pairs with both."
        )
    sides = [_slices({language: each[language] for language in both}) for each in (first, second)]
    rows = []
    for (of, ones), (_, others) in zip(*sides, strict=True):
        drawn_by = f"{seed}:{of.get('language', '' if len(both) > 1 else both[0])}"
        p_values = measures.p_values(ones, others, seed=drawn_by)
        for measure, found in measures.differences(ones, others).items():
            note = _note(measure, ones) or ("" if found else f"fewer than {LEAST_UNITS} messages")
            rows.append(difference_row(measure, of, found, _units(measure, ones), note, p_values.get(measure)))
    alone = ", ".join(sorted(first.keys() ^ second.keys()))
    return holm_corrected(rows), [f"Only one system has predictions for {alone}; they are not compared."] * bool(alone)
