"""Plan uniform draws: the size for a required interval width, and the interval widths for a given size.

Widths are computed in `interval_width.py`. All widths are fractions. This module only reads data.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from annotate.controls.check_report import CHECK_LEAST
from annotate.core.estimation.label_errors import LEAST_READ_IN_ALL, AskedSet, expected_contested
from annotate.core.estimation.proportions import ENOUGH, LEAST_COUNT, UNKNOWN, Estimate
from annotate.figures.interval_width import (
    AUDITS,
    CHECKS,
    DESIGNED,
    ERROR,
    NO_CHECKS,
    POSTS,
    SECONDS,
    Checks,
    Draw,
    Expected,
    Reading,
    Stream,
    planned,
    reading,
    width,
)
from annotate.kinds import KINDS
from annotate.kinds.language import LEAST_LETTERS
from annotate.models import Task
from annotate.work.routes import Routes
from annotate.work.task_creation import provisional_task
from corpora.core.languages import UND
from corpora.models import Item
from corpora.predictions.panels import first_votes

FEW, HIDDEN = "few", "hidden"  # reasons why no uniform draw is sufficient
CURVE_SHARES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)  # audit shares of the points on the curve
FEWEST = 30  # minimum number of posts in the draw for a language to be reported
# The audit shares to try, as shares of the posts on which the detectors agree.
AUDIT_SHARES = (0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
SPARE = 1.2  # safety factor for the audits of a draw whose number of agreed posts is only an expectation
LEAST_AUDITS = 5  # minimum number of audits per language
MOST_ALONE = 1_000_000  # maximum number of posts in a set for one language
ENLARGED_BY = 0.1  # amount of additional work for comparing the kinds of work, as a share of the current reading
LABEL_MEASURES = ("recall", "precision", ERROR)


class Pace(NamedTuple):
    """An annotator's pace: seconds per post, and hours per week."""

    seconds: float
    weekly: float

    def of(self, posts: float) -> dict[str, float]:
        hours = posts * self.seconds / 3600
        return {"hours": hours, "weeks": hours / self.weekly}


def usual_task(**options: Any) -> Task:
    """Return an unsaved task with these options. Its kind is the first one whose agreement is audited."""
    return provisional_task(next(kind for kind in KINDS.values() if kind.audits_agreement), (), options)


def stream_of(corpus_name: str, task: Task) -> Stream:
    """Count the posts of a corpus by the label that they would get in a task.

    Posts on which the detectors agree are counted by label. All other posts are counted by the language of their first
    queue. Raise CorpusError if the posts have no votes.
    """
    routes = Routes.load(task)
    agreed: Counter[str] = Counter()
    disputed: Counter[str] = Counter()
    for votes, letters, posts in first_votes(corpus_name, LEAST_LETTERS, task.panel):
        item = Item(votes=votes, letters=letters)
        if label := task.kind.routing.agreed(item, task):
            agreed[label] += posts
        else:
            disputed[task.kind.routing.candidates(item, "", routes)[0]] += posts
    return Stream(agreed, disputed)


def draw_of(task: Task, size: int) -> Draw:
    """Return a uniform draw of `size` posts, with the audits and checks in the task's options."""
    least = CHECK_LEAST if task.check_share else 0
    check_options = Checks(task.check_share, least, task.audit_recheck, task.check_share)
    return Draw(size, task.audit_share, task.audit_least, check_options)


def languages_of(stream: Stream) -> list[str]:
    """Return the languages, most frequent first."""
    labels = {*stream.agreed, *stream.disputed} - {UND}
    return sorted(labels, key=lambda label: (-stream.share(label), label))


# --- The draw for a required width


def cheapest(stream: Stream, is_enough: Callable[[Draw], bool], checks: Checks = NO_CHECKS) -> Draw | None:
    """Return the sufficient draw that requires the least reading, or None if no draw is sufficient.

    stream: posts to draw from, which determine the sizes to try.
    is_enough: function that returns whether a draw is sufficient. If so, all larger draws must be sufficient too.
    checks: checks of the annotators in every draw.
    """
    best: Draw | None = None
    for share in AUDIT_SHARES:
        draws = [Draw(size, share, LEAST_AUDITS, checks) for size in stream.sizes]
        if best:
            draws = draws[: bisect_left(draws, reading(stream, best).all, key=lambda draw: reading(stream, draw).all)]
        if draws and is_enough(draws[-1]):
            best = draws[bisect_left(draws, True, key=is_enough)]
    return best


def least_audit(draw: Draw, is_enough: Callable[[Draw], bool]) -> Draw | None:
    """Return the sufficient draw with the smallest audit share, in steps of 0.001, or None if there is none."""
    draws = [draw._replace(share=thousandths / 1000) for thousandths in range(1001)]
    place = bisect_left(draws, True, key=is_enough)
    return draws[place] if place < len(draws) else None


def sufficient_share(task: Task, stream: Stream, size: int) -> float:
    """Return the smallest audit share that is enough to measure the detectors, but at least the task's own share.

    The result is a multiple of 0.01, or the task's share if that is enough. If not all posts are drawn, the number of
    agreed posts varies with the draw, so more audits are required.

    size: number of posts to draw, at most the number in the stream.
    """
    task_draw = draw_of(task, size)
    agreed = size / stream.posts * sum(stream.agreed.values())
    wanted = min(agreed, LEAST_READ_IN_ALL * (1 if size == stream.posts else SPARE))
    for draw in (task_draw, *(task_draw._replace(share=hundredths / 100) for hundredths in range(1, 101))):
        if draw.share >= task_draw.share and sum(stream.audits(draw).values()) >= wanted - 1e-6:
            return draw.share
    return 1.0


class OwnSet(NamedTuple):
    """A set for a single language.

    posts: number of posts to draw.
    inside: expected number of drawn posts in the language.
    decoys: number of decoys among the posts.
    without_decoys: interval width without decoys, by the share of false Yes.
    """

    posts: int
    inside: float
    decoys: int
    without_decoys: Mapping[float, float]


@cache
def single_language_set(measure: str, expected: Expected, wished: float) -> OwnSet | None:
    """Return the smallest recall- or precision-oriented set with the required width, and the default number of decoys.

    Return None if no design estimates this measure, or if no set is large enough.
    """
    if measure not in DESIGNED:
        return None
    of = AskedSet(measure == "recall", expected.accuracy, expected.others, expected.false_yes)

    def is_enough(posts: int) -> bool:
        return width(of.estimate(posts, of.decoys(posts))) <= wished

    posts = bisect_left(range(MOST_ALONE), True, lo=1, key=is_enough)
    if posts == MOST_ALONE:
        return None
    return OwnSet(posts, of.counts(posts)[0], of.decoys(posts), of.widths_without_decoys(posts))


def is_stated(estimate: Estimate) -> bool:
    """Return whether an estimate is based on enough data to be reported with its interval."""
    return estimate != UNKNOWN and estimate.count >= LEAST_COUNT * ENOUGH


def plan(
    stream: Stream,
    task: Task,
    *,
    measures: Iterable[str],
    languages: Collection[str],
    wished: float,
    expected: Expected,
    pace: Pace,
    done: Callable[[int], None] = lambda rows: None,
) -> dict[str, Any]:
    """Return a plan, as a dict with `posts`, `agreed` (share of posts with agreement), `rows`, `draw` and `recall`.

    wished: required width.
    done: called with 1 after each row.

    rows: a row for each measure and language, see _Planner.row.
    draw: draw with the least reading that gives more than half of the rows the required width, see _Planner.draw. Rows
        without a sufficient draw do not count. None if there is no such draw.
    recall: languages where this draw does not reach the required width for recall, see _Planner.reach.
    """
    planner = _Planner(stream, task, expected, wished, pace)
    rows = []
    for measure in measures:
        for label in [""] if measure == "accuracy" else languages:
            rows.append(planner.row(measure, label))
            done(1)
    possible = [(row["measure"], row["language"]) for row in rows if row["needs"]]

    def suited(draw: Draw) -> int:
        return sum(planner.suits(*of, draw) for of in possible)

    best = planner.cheapest(lambda draw: 2 * suited(draw) > len(possible)) if possible else None
    return {
        "posts": stream.posts,
        "agreed": 1 - stream.all_disputed / stream.posts,
        "rows": rows,
        "draw": best and planner.draw(best) | {"suits": suited(best), "of": len(rows)},
        "recall": [
            planner.reach(row["language"], best)
            for row in rows
            if best and row["measure"] == "recall" and not planner.suits("recall", row["language"], best)
        ],
    }


class _Planner:
    def __init__(self, stream: Stream, task: Task, expected: Expected, wished: float, pace: Pace) -> None:
        self.stream, self.task, self.expected, self.wished, self.pace = stream, task, expected, wished, pace
        self.suited: dict[tuple[str, str, Draw], bool] = {}

    def width(self, measure: str, label: str, draw: Draw) -> float:
        return width(planned(measure, label, self.stream, draw, self.expected))

    def suits(self, measure: str, label: str, draw: Draw) -> bool:
        key = measure, label, draw
        if key not in self.suited:
            self.suited[key] = self.width(*key) <= self.wished
        return self.suited[key]

    def cheapest(self, is_enough: Callable[[Draw], bool]) -> Draw | None:
        return cheapest(self.stream, is_enough, draw_of(self.task, 0).checks)

    def row(self, measure: str, label: str) -> dict[str, Any]:
        """Return the plan for a measure in a language. A row has:

        measure, language: the measure and the language, which is "" for all languages.
        share: share of posts in the language.
        needs: sufficient draw that requires the least reading, or None. For all languages, it has `size`,
            `audit_share`, `audit_least` and `reading`; for this language, `posts`, `disputed`, `audits`, `checks`,
            `hours` and `weeks` (of one annotator).
        why: FEW or HIDDEN if there is no sufficient draw, otherwise "".
        alone: number of posts in a set for this language only; None if the corpus has too few, or if no design
            estimates the measure.
        decoys: number of decoys among these posts.
        without_decoys: interval widths without decoys, as dicts with `false_yes` (share of false Yes) and `width`.
        """
        share = self.stream.share(label) if label else 1.0
        separate = single_language_set(measure, self.expected, self.wished)
        if separate is not None and share * self.stream.posts < separate.inside:
            separate = None
        draw, needs = self.cheapest(lambda draw: self.suits(measure, label, draw)), None
        if draw:
            in_all = reading(self.stream, draw)
            label_reading = reading(self.stream, draw, lambda other: other == label) if label else in_all
            needs = self._options(draw) | {"posts": share * draw.size} | self._read(label_reading)
            needs["reading"] = in_all.all
        return {
            "measure": measure,
            "language": label,
            "share": share,
            "needs": needs,
            "why": "" if draw else HIDDEN if separate else FEW,
            "alone": separate and separate.posts,
            "decoys": separate and separate.decoys,
            "without_decoys": separate
            and [{"false_yes": yes, "width": wide} for yes, wide in separate.without_decoys.items()],
        }

    def _options(self, draw: Draw) -> dict[str, Any]:
        return {"size": draw.size, "audit_share": draw.share, "audit_least": draw.least}

    def _read(self, of: Reading) -> dict[str, float]:
        read = {"disputed": of.disputed, "audits": of.audits, "checks": of.checks + of.seconds}
        return read | self.pace.of(of.work)

    def draw(self, draw: Draw) -> dict[str, Any]:
        """Return `size`, `audit_share`, `audit_least`, `disputed`, `audits`, `checks`, `contested`, `hours`, `weeks`.

        contested: expected number of additional posts to read because audits fail.
        """
        part = draw.size / self.stream.posts
        rule = self.expected.wrong, self.task.audit_limit
        agreed = {label: round(part * posts) for label, posts in self.stream.agreed.items()}
        audits = self.stream.audits(draw).items()
        more = sum(expected_contested(agreed[label], round(number), *rule) for label, number in audits)
        return {**self._options(draw), **self._read(reading(self.stream, draw)), "contested": more}

    def reach(self, label: str, draw: Draw) -> dict[str, Any]:
        """Describe the audits required to estimate recall in a language. The result has:

        language, posts: the language, and its number of posts in the draw.
        width: width of the interval in this draw.
        elsewhere: number of audits in all other languages in this draw.
        stated: number of audits in other languages required to estimate recall; None if no number is sufficient.
        wished: number of audits in other languages required for the required width; None if no number is sufficient.
        """

        def can_be_stated(candidate: Draw) -> bool:
            return is_stated(planned("recall", label, self.stream, candidate, self.expected))

        def elsewhere(candidate: Draw | None) -> float | None:
            return candidate and reading(self.stream, candidate, lambda other: other != label).audits

        return {
            "language": label,
            "posts": self.stream.share(label) * draw.size,
            "width": self.width("recall", label, draw),
            "elsewhere": elsewhere(draw),
            "stated": elsewhere(least_audit(draw, can_be_stated)),
            "wished": elsewhere(least_audit(draw, lambda candidate: self.suits("recall", label, candidate))),
        }


# --- The interval widths of a given draw


def widths(task: Task, stream: Stream, size: int, expected: Expected, seconds: int) -> dict[str, Any]:
    """Return the interval widths of a draw.

    The result has `expected`, `share`, `accuracy`, `error`, `languages`, `typical`, `curve` and `next`. A width is None
    if there is no interval.

    languages: languages with at least FEWEST posts, most frequent first; each row has `language`, `posts`, `audits`,
        and the width for each of LABEL_MEASURES.
    typical: the language in the middle of this list.
    curve: a point for each of CURVE_SHARES and for the task's own audit share. It has `share`, `audits`, `read` (posts
        to read), `hours`, and the widths for accuracy, overall error, and recall and precision in the typical language.
    next: a point for each draw with more work of one kind, narrowest interval of accuracy first. It also has `work`
        (AUDITS, CHECKS, SECONDS or POSTS) and `more` (number of additional readings by annotators and adjudicators,
        about ENLARGED_BY of the current reading).
    """
    draw = draw_of(task, size)
    calculator = _Widths(stream, draw, expected, seconds)
    curve: dict[float, dict[str, Any]] = {}
    for share in sorted({*CURVE_SHARES, draw.share}):
        point = calculator.point(draw._replace(share=share))
        # If the minimum requires all audits, different shares give the same draw. Keep the task's own share.
        audits = round(point["audits"], 6)
        if audits not in curve or share == draw.share:
            curve[audits] = point
    return {
        "expected": {"accuracy": expected.accuracy, "wrong": expected.wrong, "voted": expected.voted},
        "share": draw.share,
        "accuracy": calculator.width("accuracy", "", draw),
        "error": calculator.width(ERROR, "", draw),
        "languages": [calculator.row(label) for label in calculator.languages],
        "typical": calculator.typical,
        "curve": list(curve.values()),
        "next": sorted(calculator.enlarged(), key=lambda row: row["accuracy"] or 1),
    }


class _Widths:
    def __init__(self, stream: Stream, draw: Draw, expected: Expected, seconds: int) -> None:
        self.stream, self.draw, self.expected, self.seconds = stream, draw, expected, seconds
        self.languages = [label for label in languages_of(stream) if draw.size * stream.share(label) >= FEWEST]
        self.typical = self.languages[len(self.languages) // 2] if self.languages else ""

    def width(self, measure: str, label: str, draw: Draw) -> float | None:
        interval_width = width(planned(measure, label, self.stream, draw, self.expected))
        return interval_width if interval_width < 1 else None

    def row(self, label: str) -> dict[str, Any]:
        return {
            "language": label,
            "posts": self.draw.size * self.stream.share(label),
            "audits": self.stream.audits(self.draw).get(label, 0.0),
            **{measure: self.width(measure, label, self.draw) for measure in LABEL_MEASURES},
        }

    def amounts(self, draw: Draw) -> dict[str, float]:
        of = reading(self.stream, draw)
        return {"share": draw.share, "audits": of.audits, "read": of.all, "hours": of.work * self.seconds / 3600}

    def point(self, draw: Draw) -> dict[str, Any]:
        widths = {measure: self.width(measure, "", draw) for measure in ("accuracy", ERROR)}
        typical = {name: self.width(name, self.typical, draw) if self.typical else None for name in DESIGNED}
        return {**self.amounts(draw), **widths, **typical}

    def enlarged(self) -> Iterator[dict[str, Any]]:
        """Yield a point for a draw with more work of each kind.

        The additional work is ENLARGED_BY of the current reading, or less if less work of this kind remains.
        """
        stream, draw, checks = self.stream, self.draw, self.draw.checks
        current_reading = reading(stream, draw)
        kinds: dict[str, Callable[[float], Draw]] = {
            AUDITS: lambda by: draw._replace(share=min(1.0, draw.share + by)),
            CHECKS: lambda by: draw._replace(checks=checks._replace(share=min(1.0, checks.share + by))),
            SECONDS: lambda by: draw._replace(checks=checks._replace(second=min(1.0, checks.second + by))),
            POSTS: lambda by: draw._replace(size=min(stream.posts, round(draw.size * (1 + by)))),
        }
        steps = [step / 200 for step in range(201)]
        for work, make in kinds.items():

            def more(by: float, make: Callable[[float], Draw] = make) -> float:
                return reading(stream, make(by)).work - current_reading.work

            enough = bisect_left(steps, ENLARGED_BY * current_reading.all, key=more)
            larger = make(steps[min(enough, len(steps) - 1)])
            if larger != draw:
                yield {"work": work, **self.point(larger), "more": reading(stream, larger).work - current_reading.work}


def required_shares(
    task: Task, stream: Stream, size: int, wished: float, expected: Expected, seconds: int
) -> list[dict[str, Any]]:
    """Return the smallest audit share that gives the required width for each measure.

    There is a row for accuracy, for the overall error, and for each of LABEL_MEASURES, with `measure`, `share`,
    `audits`, `read` and `hours`. For LABEL_MEASURES, most of the languages with at least FEWEST posts must have the
    required width. If auditing every post is not sufficient, all values except `measure` are None.
    """
    calculator = _Widths(stream, draw_of(task, size), expected, seconds)
    figures = {"accuracy": [""], "error in all": [""], **dict.fromkeys(LABEL_MEASURES, calculator.languages)}
    rows = []
    for name, labels in figures.items():
        measure = ERROR if name == "error in all" else name

        def is_enough(draw: Draw, measure: str = measure, labels: Sequence[str] = labels) -> bool:
            narrow = (width(planned(measure, label, stream, draw, expected)) <= wished for label in labels)
            return 2 * sum(narrow) > len(labels)

        least = least_audit(calculator.draw, is_enough) if labels else None
        amounts = calculator.amounts(least) if least else dict.fromkeys(("share", "audits", "read", "hours"))
        rows.append({"measure": name, **amounts})
    return rows
