"""Expected interval widths of a uniform draw, and the amount of reading.

This module has no access to data. Expected counts go through the same estimator as reports, `stratified` in
core/estimation/proportions.py, so there is no second formula.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum
from typing import NamedTuple

from annotate.core.estimation.annotator_error import OTHERS, Errors, of_adjudicators, turned, with_slips
from annotate.core.estimation.detector_error import Audit, by_power, overall_error, slips_of
from annotate.core.estimation.proportions import CHECKS as BY_CHECKS
from annotate.core.estimation.proportions import (
    RECHECKS,
    Estimate,
    Guess,
    Stratum,
    Turn,
    Turned,
    Unread,
    Way,
    proportion,
    stratified,
)

AUDITS, CHECKS, SECONDS, POSTS = "audits", "checks", "second opinions", "a larger draw"  # kinds of further work
DESIGNED = ("recall", "precision")  # measures that a design for one language estimates


@dataclass(frozen=True)
class Stream:
    """The posts of a corpus.

    agreed: number of posts by the label on which the detectors agree.
    disputed: number of other posts by most likely language.
    """

    agreed: Mapping[str, int]
    disputed: Mapping[str, int]
    _spread: dict[tuple[str, "Draw"], Mapping[str, float]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @cached_property
    def posts(self) -> int:
        return sum(self.agreed.values()) + self.all_disputed

    @cached_property
    def all_disputed(self) -> int:
        return sum(self.disputed.values())

    def share(self, label: str) -> float:
        return (self.agreed.get(label, 0) + self.disputed.get(label, 0)) / self.posts

    def mistaken(self, language: str, label: str) -> float:
        """Return how often a post outside `language` is in `label`."""
        others = 1 - self.share(language)
        return self.share(label) / others if others else 0.0

    def audits(self, draw: "Draw") -> Mapping[str, float]:
        """Return the expected number of audited posts in a draw by label."""
        return self._by_power("agreed", draw, draw.share, draw.least)

    def checks(self, draw: "Draw") -> Mapping[str, float]:
        """Return the expected number of checked posts among the disputed posts of a draw by language."""
        return self._by_power("disputed", draw, draw.checks.share, draw.checks.least)

    def _by_power(self, part: str, draw: "Draw", share: float, least: int) -> Mapping[str, float]:
        if (part, draw) not in self._spread:
            sizes = {label: draw.size / self.posts * posts for label, posts in getattr(self, part).items()}
            self._spread[part, draw] = by_power(sizes, share, least)
        return self._spread[part, draw]

    @cached_property
    def sizes(self) -> list[int]:
        """The sizes of a draw to try: numbers with two significant digits, and the size of the corpus."""
        rounded = (digits * 10**noughts for noughts in range(len(str(self.posts))) for digits in range(10, 100))
        return [*(size for size in rounded if size < self.posts), self.posts]


@dataclass(frozen=True)
class Counted(Stream):
    """The posts of an existing draw, with the actual audits and checks instead of expected ones.

    audited: number of audits by label.
    checked: number of checks by language.
    """

    audited: Mapping[str, float]
    checked: Mapping[str, float]

    def audits(self, draw: "Draw") -> Mapping[str, float]:
        return {label: draw.size / self.posts * self.audited.get(label, 0) for label in self.agreed}

    def checks(self, draw: "Draw") -> Mapping[str, float]:
        return {language: draw.size / self.posts * self.checked.get(language, 0) for language in self.disputed}


class Checks(NamedTuple):
    """Checks by adjudicators.

    share: share of disputed posts decided by one annotator that an adjudicator checks, by power allocation.
    least: minimum number of these per language.
    recheck: share of confirmed audits that an adjudicator checks.
    second: share of adjudicators' decisions that a second adjudicator makes too.
    """

    share: float = 0.0
    least: int = 0
    recheck: float = 0.0
    second: float = 0.0


NO_CHECKS = Checks()


class Draw(NamedTuple):
    """A uniform draw with an audit.

    size: number of posts.
    share: share of agreed posts to audit, by power allocation.
    least: minimum number of audits per language.
    checks: checks of the annotators.
    """

    size: int
    share: float
    least: int
    checks: Checks = NO_CHECKS


@dataclass(frozen=True)
class Expected:
    """Assumptions about a predictor, the detectors and annotators.

    accuracy: accuracy of the predictor on all posts.
    wrong: share of wrong labels where the detectors agree.
    voted: whether the predictor is one of the detectors, so that it gives the label on which they agree.
    others: share of posts in another language in a recall-oriented draw.
    false_yes: share of decoys that annotators answer with Yes.
    misread: share of single-annotator labels that are wrong.
    misconfirmed: share of confirmed audits that are wrong; the predictor is assumed to make the same error.
    slips: error rate of adjudicators.
    """

    accuracy: float = 0.95
    wrong: float = 0.01
    voted: bool = False
    others: float = OTHERS
    false_yes: float = 0.0
    misread: float = 0.0
    misconfirmed: float = 0.0
    slips: float = 0.0

    def of(self, stream: Stream) -> "Chances":
        if not self.voted:
            return Chances(self.accuracy, self.accuracy, self.accuracy, self.wrong)
        agreed = 1 - stream.all_disputed / stream.posts
        disputed = (self.accuracy - agreed * (1 - self.wrong)) / (1 - agreed) if agreed < 1 else self.accuracy
        return Chances(1.0, 0.0, min(1.0, max(0.0, disputed)), self.wrong)


class Chances(NamedTuple):
    """Probabilities that a predictor is right.

    agreed: where the detectors agree and are right.
    caught: where the detectors agree and are wrong.
    disputed: where the detectors do not agree.
    wrong: probability that the detectors are wrong where they agree.

    If both are wrong, the predictor is assumed to give the same label as the detectors.
    """

    agreed: float
    caught: float
    disputed: float
    wrong: float

    @property
    def lone_right(self) -> float | None:
        """The probability that the predictor is right where it contradicts the detectors' agreement."""
        right, all_lone = self.wrong * self.caught, (1 - self.wrong) * (1 - self.agreed) + self.wrong * self.caught
        return right / all_lone if all_lone else None


class Ways(NamedTuple):
    """The contribution of a post to the domain and to the hits.

    guess: contribution according to the detectors' label.
    turn: change if the detectors' label is wrong.
    """

    guess: Way
    turn: Way


# Measure -> four kinds of posts: in the label's own stratum, the predictor agrees with the detectors, or does not; in
# the stratum of another label, the predictor gives the label, or does not. None: such posts are never in the domain.
# For accuracy, every stratum counts as the label's own. For real posts, evaluation/metrics.py does the same.
WAYS: Mapping[str, tuple[Ways | None, Ways | None, Ways | None, Ways | None]] = {
    "recall": (Ways((1, 1), (-1, -1)), Ways((1, 0), (-1, 0)), Ways((0, 0), (1, 1)), Ways((0, 0), (1, 0))),
    "precision": (Ways((1, 1), (0, -1)), None, Ways((1, 0), (0, 1)), None),
    "accuracy": (Ways((1, 1), (0, -1)), Ways((1, 0), (0, 1)), None, None),
}
ERROR = "error"
MEASURES = (*WAYS, ERROR)


def planned(measure: str, label: str, stream: Stream, draw: Draw, expected: Expected) -> Estimate:
    """Return the estimate that a draw gives if everything is as expected.

    measure: one of MEASURES. The measure `error` is the error rate of the detectors' agreement, see `error` in
        core/estimation/detector_error.py.
    label: "" for accuracy and the overall error.
    """
    if measure == ERROR:
        return _error(label, stream, draw, expected)
    found = strata(measure, label, stream, draw, expected)

    def of(slips: Estimate | None) -> Estimate:
        further = _unsure(found, stream, draw, expected, slips, leaves=measure == "recall")
        return stratified(found, further=further, normal=measure == "accuracy")

    seconds = reading(stream, draw).seconds
    return with_slips(of, slips_of(seconds, 2 * expected.slips * seconds) if seconds else None)


def _error(label: str, stream: Stream, draw: Draw, expected: Expected) -> Estimate:
    audits = stream.audits(draw)
    if label:
        return proportion(expected.wrong * audits.get(label, 0), audits.get(label, 0))
    found = []
    for agreed, number in audits.items():
        wrong, right = expected.wrong * number, number - expected.wrong * number
        posts = max(wrong + right, draw.size / stream.posts * stream.agreed[agreed])
        found.append(Audit(posts, wrong, wrong, right, draw.checks.recheck * right, 0))
    return overall_error(found)


def width(estimate: Estimate) -> float:
    """Return the width of the interval as a fraction; 1 if there is none."""
    return estimate.high - estimate.low


def strata(measure: str, label: str, stream: Stream, draw: Draw, expected: Expected) -> list[Stratum]:
    """Return the expected strata of a draw: disputed posts, which are all read, and agreed posts by label.

    Languages are assumed to have the same shares in disputed posts, wrong agreement and wrong labels as in all posts.
    """
    part, chances, audits = draw.size / stream.posts, expected.of(stream), stream.audits(draw)
    found = [_disputed(measure, label, stream, part, chances.disputed)]
    for agreed, posts in stream.agreed.items():
        own = measure == "accuracy" or agreed == label
        mistaken = 0.0 if own else stream.mistaken(agreed, label)
        found.append(_agreed(WAYS[measure], own, part * posts, audits[agreed], chances, mistaken))
    return found


def _disputed(measure: str, label: str, stream: Stream, part: float, right: float) -> Stratum:
    drawn = part * stream.all_disputed
    if measure == "accuracy":
        return Stratum(drawn, drawn, drawn, drawn * right)
    own = part * stream.disputed.get(label, 0)
    if measure == "recall":
        return Stratum(drawn, drawn, own, own * right)
    disputed = ((language, posts) for language, posts in stream.disputed.items() if language != label)
    others = fsum(part * posts * stream.mistaken(language, label) for language, posts in disputed)
    triggers = own * right + others * (1 - right)
    return Stratum(drawn, drawn, min(drawn, triggers), own * right)


def _agreed(
    ways: Sequence[Ways | None], own: bool, drawn: float, read: float, chances: Chances, mistaken: float
) -> Stratum:
    """Return the stratum of an agreed label.

    own: whether it is the label's own stratum.
    drawn, read: number of posts drawn and read.
    mistaken: how often a post outside the stratum's language is in the label's language.
    """
    right, caught, _, wrong = chances
    # Shares of the stratum's posts, and of those whose label is wrong (own stratum) or that are in the label's language
    # (other strata).
    if own:
        cells = (
            ((1 - wrong) * right + wrong * (1 - caught), wrong * (1 - caught)),
            ((1 - wrong) * (1 - right) + wrong * caught, wrong * caught),
        )
    else:
        said = mistaken * ((1 - wrong) * (1 - right) + wrong * caught)
        cells = (said, mistaken * wrong * caught), (1 - said, mistaken * wrong * (1 - caught))
    guessed, true, turns = [0.0, 0.0], [0.0, 0.0], []
    for way, (share, off) in zip(ways[:2] if own else ways[2:], cells, strict=True):
        if way is None:
            continue
        for place in (0, 1):
            guessed[place] += drawn * share * way.guess[place]
            true[place] += read * (share * way.guess[place] + off * way.turn[place])
        usual = chances.lone_right if way.turn[1] == 1 else None
        turns.append(Turn(*way.turn, drawn * share, read * share, read * off, usual))
    domain = min(read, true[0])
    # If no post can turn, say so explicitly.
    guess = Guess(guessed[0], guessed[1], tuple(turns) or (Turn(0, 0, 0, 0, 0),))
    return Stratum(drawn, read, domain, min(domain, max(0.0, true[1])), guess)


def _unsure(
    found: Sequence[Stratum],
    stream: Stream,
    draw: Draw,
    expected: Expected,
    slips: Estimate | None,
    *,
    leaves: bool,
) -> dict[str, list[tuple[Way, Turned]]]:
    """Return the uncertainty due to wrong labels by source, or nothing without checks.

    For real posts, `turns` in evaluation/uniform.py does the same. In contrast to that, audits that annotators doubt
    count as theirs here, although an adjudicator decides them.
    """
    hits_turn, misses_turn = ((-1, -1), (-1, 0)) if leaves else ((0, -1), (0, 1))
    by_source: dict[str, list[tuple[Way, Turned]]] = {}
    for source, errors, of in _pools(found, stream, draw, expected, slips):
        if errors:
            by_source.setdefault(source, []).extend(
                (
                    turned(hits_turn, of.hits, errors.lost),
                    turned(misses_turn, of.inside - of.hits, errors.gone if leaves else errors.gained, of.per_miss),
                )
            )
    return by_source


def _pools(
    found: Sequence[Stratum], stream: Stream, draw: Draw, expected: Expected, slips: Estimate | None
) -> Iterator[tuple[str, Errors | None, "_Labels"]]:
    """Yield the labels of disputed posts, of audits, and of adjudicators, each with its source and error rates."""
    (disputed, *agreed), chances, checks = found, expected.of(stream), draw.checks
    part, agreeing = draw.size / stream.posts, 1 - chances.wrong if expected.voted else chances.agreed
    numbers = {language: number for language, number in stream.checks(draw).items() if number}
    checked = [(1 + part * stream.disputed[language] / number, number) for language, number in numbers.items()]
    audited, recheck = [each for each in agreed if each.read], checks.recheck
    rechecked = [(1 + 1 / recheck, recheck * each.read) for each in audited if recheck]
    share = sum(numbers.values()) / disputed.drawn if disputed.drawn else 0.0
    by_reader = _Labels(disputed.drawn, disputed.drawn * (1 - chances.disputed), disputed.domain, disputed.hits)
    by_audit = _Labels(
        fsum(each.drawn for each in audited),
        fsum(each.drawn for each in audited) * (1 - agreeing),
        fsum(each.drawn / each.read * each.domain for each in audited),
        fsum(each.drawn / each.read * each.hits for each in audited),
    )
    yield BY_CHECKS, _errors(checked, chances.disputed, expected.misread), by_reader.times(1 - share)
    yield RECHECKS, _errors(rechecked, agreeing, repeated=expected.misconfirmed), by_audit.times(1 - recheck)
    if slips:
        decided = _Labels(*map(sum, zip(by_reader.times(share), by_audit.times(recheck), strict=True)))
        yield BY_CHECKS, of_adjudicators(slips, decided.right), decided


class _Labels(NamedTuple):
    """Labels given by one person, in numbers of posts that they represent.

    missed: number of these that the predictor does not give.
    inside, hits: number of posts in the domain, and of hits.
    """

    labels: float
    missed: float
    inside: float
    hits: float

    @property
    def per_miss(self) -> float:
        return self.labels / self.missed if self.missed else 0.0

    @property
    def right(self) -> float:
        return 1 - self.missed / self.labels if self.labels else 0.0

    def times(self, share: float) -> "_Labels":
        return _Labels(*(share * number for number in self))


def _errors(
    checked: Sequence[tuple[float, float]], said: float, wrong: float = 0.0, repeated: float = 0.0
) -> Errors | None:
    """Return the error rates found by checks, or None without checks.

    checked: weight and number of checks in each group.
    said: share of checked labels that the predictor also gives.
    wrong: share of checked labels that are wrong and that the predictor does not give.
    repeated: share of checked labels that are wrong and that the predictor also gives.
    """
    of_said, of_all = Unread(), Unread()
    for weight, number in checked:
        of_said.add(weight, 0, said * number, min(said, repeated) * number)
        of_all.add(weight, 0, number, wrong * number)
    return Errors(of_said.rate(), of_all.rate(), of_all.rate()) if of_all.seen else None


# --- Amount of reading


class Reading(NamedTuple):
    """The number of posts to read.

    disputed, audits: posts read by annotators.
    checks: number of these that an adjudicator decides again.
    seconds: number of those that a second adjudicator decides too.
    """

    disputed: float
    audits: float
    checks: float
    seconds: float

    @property
    def all(self) -> float:
        return self.disputed + self.audits

    @property
    def work(self) -> float:
        """The number of readings, including by adjudicators. Hours are computed from it."""
        return self.all + self.checks + self.seconds


def reading(stream: Stream, draw: Draw, labels: Callable[[str], bool] = lambda label: True) -> Reading:
    """Return the reading for a draw, optionally only in some languages."""
    disputed = draw.size / stream.posts * sum(posts for label, posts in stream.disputed.items() if labels(label))
    audits = sum(number for label, number in stream.audits(draw).items() if labels(label))
    checks = sum(number for label, number in stream.checks(draw).items() if labels(label))
    checks += draw.checks.recheck * audits
    return Reading(disputed, audits, checks, draw.checks.second * checks)
