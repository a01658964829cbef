"""What a uniform draw will tell of a predictor, before it is drawn: how wide the intervals are, and what is read.

Numbers in, numbers out. The expected counts are handed to the estimator of reports, estimation.stratified, so that
there is no second formula.
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

AUDITS, CHECKS, SECONDS, POSTS = "audits", "checks", "second opinions", "a larger draw"  # further work
DESIGNED = ("recall", "precision")  # what a design for one language measures


@dataclass(frozen=True)
class Stream:
    """A corpus in posts. agreed: label -> posts on which the detectors agree with it; disputed: likeliest language ->
    the other posts.
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
        """How often a post that is not in a language is in another."""
        others = 1 - self.share(language)
        return self.share(label) / others if others else 0.0

    def audits(self, draw: "Draw") -> Mapping[str, float]:
        """Label -> how many of the agreed posts of a draw are audited, on average."""
        return self._by_power("agreed", draw, draw.share, draw.least)

    def checks(self, draw: "Draw") -> Mapping[str, float]:
        """Language -> how many of the disputed posts of a draw are checked, on average."""
        return self._by_power("disputed", draw, draw.checks.share, draw.checks.least)

    def _by_power(self, part: str, draw: "Draw", share: float, least: int) -> Mapping[str, float]:
        if (part, draw) not in self._spread:
            sizes = {label: draw.size / self.posts * posts for label, posts in getattr(self, part).items()}
            self._spread[part, draw] = by_power(sizes, share, least)
        return self._spread[part, draw]

    @cached_property
    def sizes(self) -> list[int]:
        """Of a draw: those that two digits and noughts write, up to all posts."""
        rounded = (digits * 10**noughts for noughts in range(len(str(self.posts))) for digits in range(10, 100))
        return [*(size for size in rounded if size < self.posts), self.posts]


@dataclass(frozen=True)
class Counted(Stream):
    """The posts of a draw that was made, with the audits and checks that were chosen in place of those that a plan
    expects. audited: by label; checked: by language.
    """

    audited: Mapping[str, float]
    checked: Mapping[str, float]

    def audits(self, draw: "Draw") -> Mapping[str, float]:
        return {label: draw.size / self.posts * self.audited.get(label, 0) for label in self.agreed}

    def checks(self, draw: "Draw") -> Mapping[str, float]:
        return {language: draw.size / self.posts * self.checked.get(language, 0) for language in self.disputed}


class Checks(NamedTuple):
    """What an adjudicator decides again, of what one reader has: a share of what the detectors dispute, spread by power
    allocation with so many posts of each language at least; and a share of what readers confirm in the audit. second:
    the share of the decisions of adjudicators that another one makes too."""

    share: float = 0.0
    least: int = 0
    recheck: float = 0.0
    second: float = 0.0


NO_CHECKS = Checks()


class Draw(NamedTuple):
    """A uniform draw of so many posts, of which an audit reads a share of what is agreed, spread by power allocation
    with so many posts of each language at least; and how those who read are checked."""

    size: int
    share: float
    least: int
    checks: Checks = NO_CHECKS


@dataclass(frozen=True)
class Expected:
    """What is expected. accuracy: of the predictor, of all posts; wrong: the share of agreement that is wrong; voted:
    whether the predictor is one of the detectors, which says what was agreed on. others: of a recall-oriented draw, the
    share of posts in another language; false_yes: of decoys, the share to which readers say Yes. misread: the share of
    one reader's labels that checks find wrong; misconfirmed: the share of confirmations in the audit that checks find
    wrong, a mistake of detectors and a reader that the predictor is taken to make too; slips: how often an adjudicator
    slips.
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
    """How often a predictor is right where the detectors agree rightly, where they agree wrongly, and where they do not
    agree; and how often agreement is wrong. Where it is wrong and the predictor too, that says what was agreed on."""

    agreed: float
    caught: float
    disputed: float
    wrong: float

    @property
    def lone_right(self) -> float | None:
        """How often the predictor is right where it says otherwise than the detectors, which agree."""
        right, all_lone = self.wrong * self.caught, (1 - self.wrong) * (1 - self.agreed) + self.wrong * self.caught
        return right / all_lone if all_lone else None


class Ways(NamedTuple):
    """What a post counts as by the detectors' label, and what it adds if its truth is otherwise: to the domain, and to
    the hits."""

    guess: Way
    turn: Way


# Measure -> where the predictor says what was agreed on, and where it says otherwise, in the label's own stratum; where
# it says the label, and where it does not, in that of another. None: no such post is in the domain, whatever its truth.
# Of accuracy every stratum is its own. The same follows from metrics.share, which counts real posts.
WAYS: Mapping[str, tuple[Ways | None, Ways | None, Ways | None, Ways | None]] = {
    "recall": (Ways((1, 1), (-1, -1)), Ways((1, 0), (-1, 0)), Ways((0, 0), (1, 1)), Ways((0, 0), (1, 0))),
    "precision": (Ways((1, 1), (0, -1)), None, Ways((1, 0), (0, 1)), None),
    "accuracy": (Ways((1, 1), (0, -1)), Ways((1, 0), (0, 1)), None, None),
}
ERROR = "error"
MEASURES = (*WAYS, ERROR)


def planned(measure: str, label: str, stream: Stream, draw: Draw, expected: Expected) -> Estimate:
    """The estimate that a draw gives if all of it is as expected. label: "" for accuracy, and for the error in all.

    error: how wrong the detectors are where they agree with the label, as audits.error says where no check finds more.
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
    """Of its interval, as a fraction; 1 where there is none."""
    return estimate.high - estimate.low


def strata(measure: str, label: str, stream: Stream, draw: Draw, expected: Expected) -> list[Stratum]:
    """What is expected of a draw: the disputed posts, which are read, and those on which the detectors agree, by label.

    The languages of the disputed posts, of wrong agreement and of wrong labels are taken to be as common as in all.
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
    """mistaken: how often a post that is not in the stratum's language is in the label's."""
    right, caught, _, wrong = chances
    # Shares of the stratum's posts: all such, and those of them that are otherwise than the detectors say (own), or in
    # the label's language (another's).
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
    # Where nothing may turn, that is said.
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
    """What the checks leave open, by source. The same follows from cells.turns, of real posts; but what readers doubt
    in the audit, which an adjudicator decides, counts as theirs here. Where nothing is checked there is nothing.
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
    """Labels of disputed posts, of audited ones, and those that an adjudicator decided, with the errors found."""
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
    """Labels that one person gave, those among them that the predictor does not say, and the posts in a domain and
    hits; each counts the posts for which it stands."""

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
    """The errors that checks find, or None without checks.

    checked: (weight, number of checks); said: the share of checked labels that the predictor gives as well; wrong,
    repeated: the shares of checked labels that are wrong and that the predictor does not give, or gives as well.
    """
    of_said, of_all = Unread(), Unread()
    for weight, number in checked:
        of_said.add(weight, 0, said * number, min(said, repeated) * number)
        of_all.add(weight, 0, number, wrong * number)
    return Errors(of_said.rate(), of_all.rate(), of_all.rate()) if of_all.seen else None


# --- what is read, and what is enough


class Reading(NamedTuple):
    """Posts that people read: disputed ones and audits; checks: how many of these an adjudicator decides again;
    seconds: how many of those decisions another adjudicator makes too."""

    disputed: float
    audits: float
    checks: float
    seconds: float

    @property
    def all(self) -> float:
        return self.disputed + self.audits

    @property
    def work(self) -> float:
        """Posts that anybody reads, adjudicators too; hours are counted for these."""
        return self.all + self.checks + self.seconds


def reading(stream: Stream, draw: Draw, labels: Callable[[str], bool] = lambda label: True) -> Reading:
    """labels: in which languages; all by default."""
    disputed = draw.size / stream.posts * sum(posts for label, posts in stream.disputed.items() if labels(label))
    audits = sum(number for label, number in stream.audits(draw).items() if labels(label))
    checks = sum(number for label, number in stream.checks(draw).items() if labels(label))
    checks += draw.checks.recheck * audits
    return Reading(disputed, audits, checks, draw.checks.second * checks)
