"""Compute the expected interval widths of a uniform draw, and the amount of reading it requires.

This module has no access to the database. It uses the same estimator as reports, `stratified` in
core/estimation/proportions.py, with expected counts instead of actual counts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum
from typing import NamedTuple

from annotate.core.estimation.label_errors import (
    OTHERS,
    Audit,
    Errors,
    of_adjudicators,
    overall_error,
    power_allocation,
    slips_of,
    turned,
    with_slips,
)
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

AUDITS, CHECKS, SECONDS, POSTS = "audits", "checks", "second opinions", "a larger draw"  # the kinds of further work
DESIGNED = ("recall", "precision")  # the measures with a design for a single language


@dataclass(frozen=True)
class Stream:
    """The posts of a corpus.

    agreed: number of posts on which the detectors agree, by the agreed label.
    disputed: number of posts on which the detectors disagree, by the most likely language.
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
        """Return the probability that a post that is not in `language` is in `label`."""
        other_share = 1 - self.share(language)
        return self.share(label) / other_share if other_share else 0.0

    def audits(self, draw: "Draw") -> Mapping[str, float]:
        """Return the expected number of audited posts in a draw, by label."""
        return self._by_power("agreed", draw, draw.share, draw.least)

    def checks(self, draw: "Draw") -> Mapping[str, float]:
        """Return the expected number of checked posts among a draw's disputed posts, by language."""
        return self._by_power("disputed", draw, draw.checks.share, draw.checks.least)

    def _by_power(self, part: str, draw: "Draw", share: float, least: int) -> Mapping[str, float]:
        if (part, draw) not in self._spread:
            sizes = {label: draw.size / self.posts * posts for label, posts in getattr(self, part).items()}
            self._spread[part, draw] = power_allocation(sizes, share, least)
        return self._spread[part, draw]

    @cached_property
    def sizes(self) -> list[int]:
        """The draw sizes to try: all numbers with two significant digits, and the size of the corpus."""
        rounded = (digits * 10**zeros for zeros in range(len(str(self.posts))) for digits in range(10, 100))
        return [*(size for size in rounded if size < self.posts), self.posts]


@dataclass(frozen=True)
class Counted(Stream):
    """The posts of an existing draw, with actual counts of audits and checks instead of expected counts.

    audited: number of audits, by label.
    checked: number of checks, by language.
    """

    audited: Mapping[str, float]
    checked: Mapping[str, float]

    def audits(self, draw: "Draw") -> Mapping[str, float]:
        return {label: draw.size / self.posts * self.audited.get(label, 0) for label in self.agreed}

    def checks(self, draw: "Draw") -> Mapping[str, float]:
        return {language: draw.size / self.posts * self.checked.get(language, 0) for language in self.disputed}


class Checks(NamedTuple):
    """Checks by adjudicators.

    share: share of checks among disputed posts decided by a single annotator, by power allocation.
    least: minimum number of these checks per language.
    recheck: share of checks among confirmed audits, where the annotator gave the detectors' label.
    second: share of adjudicators' decisions that are repeated by a second adjudicator.
    """

    share: float = 0.0
    least: int = 0
    recheck: float = 0.0
    second: float = 0.0


NO_CHECKS = Checks()


class Draw(NamedTuple):
    """A uniform draw with an audit.

    size: number of posts.
    share: share of the agreed posts to audit, by power allocation.
    least: minimum number of audits per language.
    checks: checks of the annotators.
    """

    size: int
    share: float
    least: int
    checks: Checks = NO_CHECKS


@dataclass(frozen=True)
class Expected:
    """Assumptions about a predictor, the detectors and the annotators.

    accuracy: accuracy of the predictor on all posts.
    wrong: share of wrong labels among posts on which the detectors agree.
    voted: whether the predictor is one of the detectors, and so gives the label on which they agree.
    others: share of posts in other languages in a recall-oriented draw.
    false_yes: share of decoys that annotators answer with Yes.
    misread: share of wrong labels among labels from a single annotator.
    misconfirmed: share of wrong labels among confirmed audits; the predictor is assumed to make the same error.
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
    """Probabilities about a predictor and the detectors.

    agreed: probability that the predictor is right if the detectors agree and are right.
    caught: probability that the predictor is right if the detectors agree and are wrong.
    disputed: probability that the predictor is right if the detectors do not agree.
    wrong: probability that the detectors are wrong if they agree.

    If the detectors and the predictor are both wrong, they are assumed to give the same label.
    """

    agreed: float
    caught: float
    disputed: float
    wrong: float

    @property
    def lone_right(self) -> float | None:
        """The probability that the predictor is right if it contradicts the detectors' agreed label."""
        right, all_lone = self.wrong * self.caught, (1 - self.wrong) * (1 - self.agreed) + self.wrong * self.caught
        return right / all_lone if all_lone else None


class Ways(NamedTuple):
    """A post's contribution to the domain and to the hits.

    guess: contribution if the detectors' label is right.
    turn: change of the contribution if the detectors' label is wrong.
    """

    guess: Way
    turn: Way


# For each measure, the contributions of four kinds of posts. The first two kinds are in the label's own stratum: the
# predictor agrees with the detectors, or does not. The last two kinds are in another label's stratum: the predictor
# gives the label in question, or does not. None means that such posts are never in the domain. For accuracy, every
# stratum counts as the label's own. evaluation/metrics.py does the same for real posts.
WAYS: Mapping[str, tuple[Ways | None, Ways | None, Ways | None, Ways | None]] = {
    "recall": (Ways((1, 1), (-1, -1)), Ways((1, 0), (-1, 0)), Ways((0, 0), (1, 1)), Ways((0, 0), (1, 0))),
    "precision": (Ways((1, 1), (0, -1)), None, Ways((1, 0), (0, 1)), None),
    "accuracy": (Ways((1, 1), (0, -1)), Ways((1, 0), (0, 1)), None, None),
}
ERROR = "error"
MEASURES = (*WAYS, ERROR)


def planned(measure: str, label: str, stream: Stream, draw: Draw, expected: Expected) -> Estimate:
    """Return the estimate for a draw with exactly the expected counts.

    measure: one of MEASURES; `error` is the error rate of the detectors' agreed labels, see
        core/estimation/label_errors.py.
    label: label to estimate the measure for; "" for accuracy and the overall error.
    """
    if measure == ERROR:
        return _error(label, stream, draw, expected)
    expected_strata = strata(measure, label, stream, draw, expected)

    def estimate_with(slips: Estimate | None) -> Estimate:
        further = _uncertainty(expected_strata, stream, draw, expected, slips, leaves=measure == "recall")
        return stratified(expected_strata, further=further, normal=measure == "accuracy")

    seconds = reading(stream, draw).seconds
    return with_slips(estimate_with, slips_of(seconds, 2 * expected.slips * seconds) if seconds else None)


def _error(label: str, stream: Stream, draw: Draw, expected: Expected) -> Estimate:
    audits = stream.audits(draw)
    if label:
        return proportion(expected.wrong * audits.get(label, 0), audits.get(label, 0))
    audit_list = []
    for agreed, number in audits.items():
        wrong, right = expected.wrong * number, number - expected.wrong * number
        posts = max(wrong + right, draw.size / stream.posts * stream.agreed[agreed])
        audit_list.append(Audit(posts, wrong, wrong, right, draw.checks.recheck * right, 0))
    return overall_error(audit_list)


def width(estimate: Estimate) -> float:
    """Return the width of the interval as a fraction, which is 1 if there is no interval."""
    return estimate.high - estimate.low


def strata(measure: str, label: str, stream: Stream, draw: Draw, expected: Expected) -> list[Stratum]:
    """Return the expected strata of a draw: the disputed posts, which are all read, and the agreed posts by label.

    Each language is assumed to be as frequent among disputed posts, posts with wrong agreement and wrong labels as it
    is among all posts.
    """
    part, chances, audits = draw.size / stream.posts, expected.of(stream), stream.audits(draw)
    result = [_disputed_stratum(measure, label, stream, part, chances.disputed)]
    for agreed, posts in stream.agreed.items():
        is_same = measure == "accuracy" or agreed == label
        mistaken = 0.0 if is_same else stream.mistaken(agreed, label)
        result.append(_agreed_stratum(WAYS[measure], is_same, part * posts, audits[agreed], chances, mistaken))
    return result


def _disputed_stratum(measure: str, label: str, stream: Stream, part: float, right: float) -> Stratum:
    drawn = part * stream.all_disputed
    if measure == "accuracy":
        return Stratum(drawn, drawn, drawn, drawn * right)
    in_label = part * stream.disputed.get(label, 0)
    if measure == "recall":
        return Stratum(drawn, drawn, in_label, in_label * right)
    disputed = ((language, posts) for language, posts in stream.disputed.items() if language != label)
    outside = fsum(part * posts * stream.mistaken(language, label) for language, posts in disputed)
    triggers = in_label * right + outside * (1 - right)
    return Stratum(drawn, drawn, min(drawn, triggers), in_label * right)


def _agreed_stratum(
    ways: Sequence[Ways | None], is_same: bool, drawn: float, read: float, chances: Chances, mistaken: float
) -> Stratum:
    """Return the stratum of the posts with a given agreed label.

    is_same: whether the agreed label is the label to estimate; always true for accuracy.
    drawn, read: number of posts drawn, and number of posts read.
    mistaken: probability that a post outside the stratum's language is in the language to estimate.
    """
    right, caught, _, wrong = chances
    # For each kind of post, two shares of the stratum's posts. The first is for all posts of this kind. The second is
    # for posts whose label is wrong (own stratum), or that are in the language to estimate (other strata).
    if is_same:
        cells = (
            ((1 - wrong) * right + wrong * (1 - caught), wrong * (1 - caught)),
            ((1 - wrong) * (1 - right) + wrong * caught, wrong * caught),
        )
    else:
        predicted = mistaken * ((1 - wrong) * (1 - right) + wrong * caught)
        cells = (predicted, mistaken * wrong * caught), (1 - predicted, mistaken * wrong * (1 - caught))
    guessed, true, turns = [0.0, 0.0], [0.0, 0.0], []
    for way, (share, off) in zip(ways[:2] if is_same else ways[2:], cells, strict=True):
        if way is None:
            continue
        for place in (0, 1):
            guessed[place] += drawn * share * way.guess[place]
            true[place] += read * (share * way.guess[place] + off * way.turn[place])
        usual = chances.lone_right if way.turn[1] == 1 else None
        turns.append(Turn(*way.turn, drawn * share, read * share, read * off, usual))
    domain = min(read, true[0])
    # If no wrong label can change the contribution of a post, state this explicitly.
    guess = Guess(guessed[0], guessed[1], tuple(turns) or (Turn(0, 0, 0, 0, 0),))
    return Stratum(drawn, read, domain, min(domain, max(0.0, true[1])), guess)


def _uncertainty(
    expected_strata: Sequence[Stratum],
    stream: Stream,
    draw: Draw,
    expected: Expected,
    slips: Estimate | None,
    *,
    leaves: bool,
) -> dict[str, list[tuple[Way, Turned]]]:
    """Return the uncertainty due to wrong labels, by source. The result is empty if there are no checks.

    `turns` in evaluation/uniform.py does the same for real posts. There, if an annotator rejects the detectors' label
    in an audit, the adjudicator's decision counts. Here, the annotator's label counts.
    """
    hits_turn, misses_turn = ((-1, -1), (-1, 0)) if leaves else ((0, -1), (0, 1))
    by_source: dict[str, list[tuple[Way, Turned]]] = {}
    for source, errors, labels in _pools(expected_strata, stream, draw, expected, slips):
        if errors:
            of_misses, misses = errors.gone if leaves else errors.gained, labels.inside - labels.hits
            by_source.setdefault(source, []).extend(
                (
                    turned(hits_turn, labels.hits, errors.lost),
                    turned(misses_turn, misses, of_misses, labels.per_miss),
                )
            )
    return by_source


def _pools(
    expected_strata: Sequence[Stratum], stream: Stream, draw: Draw, expected: Expected, slips: Estimate | None
) -> Iterator[tuple[str, Errors | None, "_Labels"]]:
    """Yield the source, the error rates and the labels for disputed posts, for audits and for adjudicators."""
    (disputed, *agreed), chances, checks = expected_strata, expected.of(stream), draw.checks
    part, agreeing = draw.size / stream.posts, 1 - chances.wrong if expected.voted else chances.agreed
    numbers = {language: number for language, number in stream.checks(draw).items() if number}
    checked = [(1 + part * stream.disputed[language] / number, number) for language, number in numbers.items()]
    audited, recheck = [stratum for stratum in agreed if stratum.read], checks.recheck
    rechecked = [(1 + 1 / recheck, recheck * stratum.read) for stratum in audited if recheck]
    share = sum(numbers.values()) / disputed.drawn if disputed.drawn else 0.0
    by_reader = _Labels(disputed.drawn, disputed.drawn * (1 - chances.disputed), disputed.domain, disputed.hits)
    drawn = fsum(stratum.drawn for stratum in audited)
    inside = fsum(stratum.drawn / stratum.read * stratum.domain for stratum in audited)
    hits = fsum(stratum.drawn / stratum.read * stratum.hits for stratum in audited)
    by_audit = _Labels(drawn, drawn * (1 - agreeing), inside, hits)
    yield BY_CHECKS, _errors(checked, chances.disputed, expected.misread), by_reader.times(1 - share)
    yield RECHECKS, _errors(rechecked, agreeing, repeated=expected.misconfirmed), by_audit.times(1 - recheck)
    if slips:
        decided = _Labels(*map(sum, zip(by_reader.times(share), by_audit.times(recheck), strict=True)))
        yield BY_CHECKS, of_adjudicators(slips, decided.right), decided


class _Labels(NamedTuple):
    """Labels that each come from a single person, counted by the posts that they represent.

    labels: number of posts.
    missed: number of these posts with a different label from the predictor.
    inside, hits: number of posts in the domain, and number of hits.
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
    checked: Sequence[tuple[float, float]], matching: float, wrong: float = 0.0, repeated: float = 0.0
) -> Errors | None:
    """Return the error rates found by the checks, or None if there are no checks.

    checked: (weight, number of checks) of each group.
    matching: share of checked labels that match the predictor's.
    wrong: share of checked labels that are wrong and differ from the predictor's.
    repeated: share of checked labels that are wrong and match the predictor's.
    """
    of_matching, of_all = Unread(), Unread()
    for weight, number in checked:
        of_matching.add(weight, 0, matching * number, min(matching, repeated) * number)
        of_all.add(weight, 0, number, wrong * number)
    return Errors(of_matching.rate(), of_all.rate(), of_all.rate()) if of_all.seen else None


# --- Amount of reading


class Reading(NamedTuple):
    """The number of posts to read.

    disputed, audits: number of posts for annotators.
    checks: number of these posts that an adjudicator decides again.
    seconds: number of checked posts that a second adjudicator also decides.
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
        """The number of readings, including those by adjudicators. It determines the hours."""
        return self.all + self.checks + self.seconds


def reading(stream: Stream, draw: Draw, labels: Callable[[str], bool] = lambda label: True) -> Reading:
    """Return the amount of reading for a draw.

    labels: function that returns whether to include a language; all languages by default.
    """
    disputed = draw.size / stream.posts * sum(posts for label, posts in stream.disputed.items() if labels(label))
    audits = sum(number for label, number in stream.audits(draw).items() if labels(label))
    checks = sum(number for label, number in stream.checks(draw).items() if labels(label))
    checks += draw.checks.recheck * audits
    return Reading(disputed, audits, checks, draw.checks.second * checks)
