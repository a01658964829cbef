"""Sets of message-reply pairs, as export_pairs writes them, and predictions for them, LANGUAGE_model_responses.txt.

A set has test/LANGUAGE/*.tsv, of four cells a line, message and reply first, and rsp_set/LANGUAGE/
response_lm_cluster.txt, of three, the reply in the middle. A line of predictions is message, reference reply, and up to
three suggested replies, in any order of lines (Zhang et al. 2021, and the code published with it). reply_grading.py
measures them.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from annotate.evaluation.given import EvaluationError
from annotate.evaluation.prediction_files import RESTORE, PublishedSet
from annotate.goldsets.manifest import GoldSetError
from annotate.goldsets.pairs import RESPONSES
from corpora.core.pairs import compared
from corpora.suggested import MOST, OF_LANGUAGE, examples

Pair = tuple[str, str]  # message, reference reply


@dataclass(frozen=True)
class Tested:
    """The test pairs of a language, in their order, and the replies of its response set."""

    pairs: list[Pair]
    responses: frozenset[str]


@dataclass(frozen=True)
class Suggested:
    """What a system says. replies: language -> the suggested replies of each test pair, in the order of the set.
    told: what does not go together, a sentence each."""

    replies: dict[str, list[list[str]]]
    told: list[str] = field(default_factory=list)


def read_tests(gold: PublishedSet) -> dict[str, Tested]:
    """Language -> its test pairs. EvaluationError where there are none, GoldSetError for a file of another shape."""
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
    for number, cells in _lines(path):
        if len(cells) != wanted:
            raise GoldSetError(f"{path}, line {number:,} has {len(cells)} cells and not {wanted}. {RESTORE}")
        yield cells


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line by line its number and cells, with white space run together, as no reader keeps it."""
    with path.open(encoding="utf-8-sig", newline="\n") as lines:
        for number, line in enumerate(lines, 1):
            cells = line.rstrip("\r\n").split("\t")
            yield number, list(map(compared, cells))


# --- predictions


def read_predictions(path: Path, tests: Mapping[str, Tested]) -> Suggested:
    """What a file, or a folder of one file a language, suggests for the test pairs. EvaluationError where it lacks one
    of them, or is no such file."""
    told: list[str] = []
    files = _files(path, tests, told)
    replies = {language: _read(file, language, tests[language], told) for language, file in files.items()}
    if without := sorted(tests.keys() - files.keys()):
        told.append(f"There are no predictions for {', '.join(without)}, whose test pairs are not measured.")
    return Suggested(replies, told)


def _files(path: Path, tests: Mapping[str, Tested], told: list[str]) -> dict[str, Path]:
    """Language -> its file. One of a folder that is for a language without test pairs is left out, and told."""
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
    """The replies of each test pair. Of a pair that stands there several times the lines are taken in their order."""
    waiting, lines = Counter(tested.pairs), 0
    said: defaultdict[Pair, deque[list[str]]] = defaultdict(deque)
    outside: Counter[bool] = Counter()
    for number, cells in _checked(path):
        lines += 1
        pair = cells[0], cells[1]
        if len(said[pair]) < waiting[pair]:
            said[pair].append(cells[2:])
        else:
            outside[pair in waiting] += 1
            told_first = number
    if lines and lines == outside[False]:
        raise EvaluationError(
            f"{path} has no line of any of the {len(tested.pairs):,} test pairs of {language}: message and reference "
            "reply must be the first two cells of a line, as the set has them."
        )
    lacking = [pair for pair in waiting if len(said[pair]) < waiting[pair]]
    if lacking:
        number = sum(waiting[pair] - len(said[pair]) for pair in lacking)
        there, wanted = len(said[lacking[0]]), waiting[lacking[0]]
        often = f", which the set has {wanted:,} times and the file {there:,}" if wanted > 1 else ""
        raise EvaluationError(
            f"{path} lacks a line for {number:,} of the {len(tested.pairs):,} test pairs of {language}, the first of "
            f"them {_short(lacking[0][0])} with the reply {_short(lacking[0][1])}{often}; give one for each, without "
            "suggestions where there are none."
        )
    if outside:
        told.append(
            f"{language}: {_number(outside.total(), 'line is', 'lines are')} of no test pair, or of one that has its "
            f"line, without effect on any figure; the last is line {told_first:,}."
        )
    replies = [said[pair].popleft() for pair in tested.pairs]
    if fewer := sum(len(each) < MOST for each in replies):
        told.append(
            f"{language}: {_number(fewer, 'example has', 'examples have')} fewer than {MOST} suggested replies; "
            "the best of those that there are counts, and where there is none, nothing is right."
        )
    return replies


def _checked(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of each line. An empty cell at its end is no suggestion; before others it keeps its rank."""
    for example in examples(path):
        cells = list(map(compared, (example.message, example.reference, *example.replies)))
        while len(cells) > 2 and not cells[-1]:
            cells.pop()
        yield example.line, cells


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")


def _number(count: int, one: str, several: str) -> str:
    return f"{count:,} {one if count == 1 else several}"
