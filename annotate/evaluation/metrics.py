"""Accuracy, recall, precision and confusions of a predictor, from gold sets already joined with what it says.

Labels that count as one class have been taken together (classes.py). estimation.py estimates proportions; the callers
decide which sets may be used for what.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from annotate.core.comparing import difference
from annotate.core.estimation import (
    UNKNOWN,
    Estimate,
    Guess,
    Stratum,
    Turn,
    moved,
    pooled,
    proportion,
    reweighted_precision,
    stratified,
    with_interval,
)
from annotate.core.intervals import jeffreys
from corpora.core.languages import UND


class Cell(NamedTuple):
    """What posts of one cell of a uniform set have in common. stratum: the label on which the detectors agreed, "" if
    they did not; agreed: the class of that label; read: whether people labelled it, so that truth is not the
    detectors' own label; said: the predictor's label; other: that of a predictor with which it is compared."""

    stratum: str
    agreed: str
    read: bool
    truth: str
    said: str
    other: str = ""


@dataclass(frozen=True)
class Uniform:
    """posts: id -> its cell. frame: the number of posts drawn from, None if it is not known. missing: stratum -> posts
    that were chosen for the audit and have no label, since nobody could tell; they are not among the posts.
    """

    posts: Mapping[str, Cell]
    frame: int | None
    missing: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def cells(self) -> Counter[Cell]:
        return Counter(self.posts.values())

    @cached_property
    def drawn(self) -> Counter[str]:
        """Stratum -> its posts."""
        return _by_stratum(self.cells)

    @cached_property
    def read(self) -> Counter[str]:
        """Stratum -> those of its posts that people have read."""
        return _by_stratum({cell: posts for cell, posts in self.cells.items() if cell.read})

    def weight(self, cell: Cell) -> float:
        """How many posts of the draw a post that was read stands for; 0 for a post that was not read."""
        return self.drawn[cell.stratum] / self.read[cell.stratum] if cell.read else 0.0

    @cached_property
    def lone_right(self) -> float | None:
        """Where the predictor says otherwise than the detectors, which agree: the share of such posts, of those that
        were read, in which it is right; None if there is none. Each counts as many as it stands for besides itself.
        """
        lone = {
            cell: posts * (self.weight(cell) - 1)
            for cell, posts in self.cells.items()
            if cell.read and cell.stratum and cell.said != cell.agreed
        }
        total = sum(lone.values())
        return sum(posts for cell, posts in lone.items() if cell.said == cell.truth) / total if total else None

    def as_labelled(self) -> "Uniform":
        """The same set as if all of its labels came from people."""
        return Uniform(
            {key: cell._replace(stratum="", agreed="", read=True) for key, cell in self.posts.items()}, self.frame
        )


# Language -> id -> what the predictor says of a post that is in it.
RecallSets = Mapping[str, Mapping[str, str]]
# Language -> the posts of the uniform set that its recall-oriented draw could have taken too.
Reach = Mapping[str, Collection[str]]
NOWHERE: Reach = {}
# Language -> id -> the label, X, not-X or und, of a post of its queue that the predictor labels X.
PrecisionSets = Mapping[str, Mapping[str, str]]


class Lone(NamedTuple):
    """Posts that nobody has read and that the predictor alone labels so, not the detectors, which agree there. bounds:
    the share if all of them are wrong, and if all are right."""

    posts: int
    bounds: tuple[float, float]


@dataclass(frozen=True)
class Measured:
    """An estimate and how many posts, read by people, it rests on."""

    estimate: Estimate
    posts: int

    @property
    def value(self) -> float | None:
        return self.estimate.value

    def as_dict(self) -> dict[str, float | None]:
        return self.estimate.as_dict() | {"posts": self.posts}


def _by_stratum(cells: Mapping[Cell, int]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for cell, posts in cells.items():
        counted[cell.stratum] += posts
    return counted


# The one turn of a guess that cannot turn, since without any turns every guess may.
NEVER = Turn(0, 0, 0, 0, 0)
# A label that no post is given by anybody: what a post truly is where it is none of those that count.
_ANOTHER = "?"


def share(
    uniform: Uniform,
    domain: Callable[[Cell], bool],
    right: Callable[[Cell], bool],
    apart: Collection[str] = (),
    truths: Collection[str] = (),
) -> Measured:
    """The share of right labels in a domain of a uniform set, by stratum; see `strata_of`."""
    strata = strata_of(uniform, domain, right, apart, truths)
    return Measured(stratified(strata, frame=uniform.frame), sum(stratum.domain for stratum in strata))


def strata_of(
    uniform: Uniform,
    domain: Callable[[Cell], bool],
    right: Callable[[Cell], bool],
    apart: Collection[str] = (),
    truths: Collection[str] = (),
) -> list[Stratum]:
    """The strata of a uniform set, with the posts of each in a domain and the right ones. apart: ids that are counted
    elsewhere.

    For posts that people have not read, the label that the detectors agreed on is a guess at the truth. truths: the
    labels that such a post may have in truth, as far as they make a difference, besides what was said of it.
    """
    without = Counter(uniform.posts[key] for key in apart if key in uniform.posts)
    tallies = {name: _Tally() for name in uniform.drawn}

    def counted_as(cell: Cell, truth: str) -> tuple[int, int]:
        cell = cell._replace(truth=truth)
        inside = domain(cell)
        return int(inside), int(inside and right(cell))

    for cell, all_posts in uniform.cells.items():
        posts, tally = all_posts - without[cell], tallies[cell.stratum]
        true = counted_as(cell, cell.truth)
        if cell.read:
            tally.add(tally.read, posts, true)
        if not cell.stratum:
            continue
        guess = counted_as(cell, cell.agreed)
        tally.add(tally.guessed, posts, guess)
        as_said = counted_as(cell, cell.said)
        for could in {as_said, *(counted_as(cell, truth) for truth in (cell.other, *truths, _ANOTHER))} - {guess}:
            turn = tally.turn(could[0] - guess[0], could[1] - guess[1])
            off = posts if cell.read and true == could else 0
            # Of the few posts where the predictor says otherwise than the detectors hardly any may have been read.
            usual = uniform.lone_right if could == as_said and could[1] else turn.usual
            tally.turns[turn[:2]] = turn._replace(
                posts=turn.posts + posts, read=turn.read + posts * cell.read, off=turn.off + off, usual=usual
            )
    return [
        Stratum(
            drawn,
            uniform.read[name],
            domain=tally.read[0],
            hits=tally.read[1],
            guess=tally.guess if name else None,
            missing=uniform.missing.get(name, 0),
        )
        for (name, drawn), tally in zip(uniform.drawn.items(), tallies.values(), strict=True)
    ]


def lone_triggers(uniform: Uniform, label: str) -> Lone | None:
    """Posts that nobody has read, and that the predictor labels so while the detectors agree on something else; None if
    there is none, or nothing is known of the label."""
    strata = strata_of(uniform, lambda cell: cell.said == label, lambda cell: cell.truth == label)
    settled = [[_settled(stratum, right) for stratum in strata] for right in (False, True)]
    low, high = (stratified(part, frame=uniform.frame).value for part in settled)
    unread = sum(turn.posts - turn.read for stratum in strata for turn in _misses(stratum))
    return None if low is None or high is None or not unread else Lone(int(unread), (low, high))


def _misses(stratum: Stratum) -> list[Turn]:
    """How the misses of a stratum may turn out to be hits."""
    return [turn for turn in stratum.guess.turns if turn[:2] == (0, 1)] if stratum.guess else []


def _settled(stratum: Stratum, right: bool) -> Stratum:
    """The stratum if all its misses that nobody has read were right, or all wrong."""
    if not (misses := _misses(stratum)):
        return stratum
    assert stratum.guess is not None
    hits = sum(turn.off + right * (turn.posts - turn.read) for turn in misses)
    others = tuple(turn for turn in stratum.guess.turns if turn not in misses)
    return replace(stratum, guess=Guess(stratum.guess.domain, stratum.guess.hits + int(hits), others or (NEVER,)))


@dataclass
class _Tally:
    """The posts of one stratum, in the domain and right: those read, and all as guessed; and how these may turn."""

    read: list[int] = field(default_factory=lambda: [0, 0])
    guessed: list[int] = field(default_factory=lambda: [0, 0])
    turns: dict[tuple[int, int], Turn] = field(default_factory=dict)

    @staticmethod
    def add(counts: list[int], posts: int, counted_as: tuple[int, int]) -> None:
        for place, is_so in enumerate(counted_as):
            counts[place] += posts * is_so

    def turn(self, domain: int, hits: int) -> Turn:
        return self.turns.get((domain, hits), Turn(domain, hits, 0, 0, 0))

    @property
    def guess(self) -> Guess:
        domain, hits = self.guessed
        return Guess(domain, hits, tuple(self.turns.values()) or (NEVER,))


def together(*parts: Measured) -> Measured:
    """Join estimates from disjoint posts of the same language."""
    known = [part for part in parts if part.posts]
    if len(known) == 1:
        return known[0]
    return Measured(pooled(*(part.estimate for part in known)), sum(part.posts for part in known))


def counted(hits: int, of: int) -> Measured:
    return Measured(proportion(hits, of), of)


def accuracy(uniform: Uniform, *, with_und: bool) -> Measured:
    return share(
        uniform, lambda cell: with_und or cell.truth != UND, lambda cell: cell.said == cell.truth, truths=(UND,)
    )


def naive_accuracy(uniform: Uniform, *, with_und: bool) -> Measured:
    """The estimate with the detectors' labels taken for the truth, as they stand in the set."""
    cells = {cell: posts for cell, posts in uniform.cells.items() if with_und or cell.truth != UND}
    return counted(sum(n for cell, n in cells.items() if cell.said == cell.truth), sum(cells.values()))


# --- by language; und is one of the classes if a uniform set measures it


def recall_on(uniform: Uniform, label: str, apart: Collection[str] = ()) -> Measured:
    return share(uniform, lambda cell: cell.truth == label, lambda cell: cell.said == label, apart, (label,))


def recall_in(found: Mapping[str, str], label: str, false_yes: float = 0.0) -> Measured:
    """Recall on a recall set's posts in one language. false_yes: of these, the share that may be in another language,
    and be missed for that, or found although it is.
    """
    plain = counted(sum(said == label for said in found.values()), len(found))
    return _widened(plain, lambda value: ((value - false_yes) / (1 - false_yes), value / (1 - false_yes)))


def _widened(plain: Measured, ends: Callable[[float], tuple[float, float]]) -> Measured:
    """An estimate that false answers may move to these ends too."""
    value = plain.estimate.value
    if value is None or ends(value) == (value, value):
        return plain
    by_answers = tuple(min(1.0, max(0.0, end)) for end in ends(value))
    low, high = moved(value, [(plain.estimate.low, plain.estimate.high), (by_answers[0], by_answers[1])])
    return Measured(with_interval(value, low, high, plain.estimate.count), plain.posts)


def false_among(answers: int, yes: int, is_so: int, is_not: int) -> float:
    """Of the posts that readers found to be in a language, the share that may be in another at most, by what they said
    of decoys: the upper end of their rate of false Yes, for as many posts as they found not to be in it. Decoys tempt
    more than such posts do, so it is a bound and no estimate. 0 where no decoy was answered, below 1 always."""
    if not answers or not is_so:
        return 0.0
    _, rate = jeffreys(yes, answers)
    return min(0.99, rate / max(0.01, 1 - rate) * is_not / is_so)


def recall(
    label: str, uniform: Uniform | None, sets: RecallSets, reach: Reach = NOWHERE, false_yes: float = 0.0
) -> Measured:
    """Recall on both kinds of sets, as far as they are given. false_yes: as in `recall_in`.

    Where both have posts in the language, and it is known which posts of the uniform set the recall-oriented draw
    could have taken: with a, the part of the language's posts that is within its reach, a times the recall there, by
    both sets, and 1 - a times the recall elsewhere, by the uniform set alone (Hartley 1962, Multiple frame surveys,
    Proceedings of the Social Statistics Section, American Statistical Association, with one frame within the other).
    Where that is not known, the recall-oriented set stands alone, and tells of its authors' posts. UNKNOWN where the
    two sets differ within that reach.
    """
    found = sets.get(label, {})
    if not found or uniform is None:
        return recall_on(uniform, label) if uniform else recall_in(found, label, false_yes)
    here = recall_in(found, label, false_yes)
    if label not in reach:
        return here
    both = two_frames(label, uniform, found, reach[label], false_yes)
    if both.differ:
        return Measured(UNKNOWN, here.posts)
    return Measured(both.estimate, here.posts + both.inside.posts + both.outside.posts)


class TwoFrames(NamedTuple):
    """part: of a language's posts, that within the reach of a recall-oriented draw. inside: recall there on the uniform
    set, without posts of the recall-oriented one; outside: elsewhere. p: of the test whether both sets have the same
    recall within the reach. estimate: of all posts of the language."""

    part: Measured
    inside: Measured
    outside: Measured
    p: float
    estimate: Estimate

    @property
    def differ(self) -> bool:
        return self.p < DIFFER


DIFFER = 0.01  # the sets differ where the test has a smaller p


def two_frames(
    label: str, uniform: Uniform, found: Mapping[str, str], reached: Collection[str], false_yes: float = 0.0
) -> TwoFrames:
    parted = Uniform(
        {key: cell._replace(other="inside" if key in reached else "outside") for key, cell in uniform.posts.items()},
        uniform.frame,
        uniform.missing,
    )

    def within(place: str, apart: Collection[str] = ()) -> Measured:
        is_there = lambda cell: cell.truth == label and cell.other == place  # noqa: E731
        return share(parted, is_there, lambda cell: cell.said == label, apart, (label,))

    part = share(parted, lambda cell: cell.truth == label, lambda cell: cell.other == "inside", (), (label,))
    here, inside, outside = recall_in(found, label, false_yes), within("inside", found), within("outside")
    p = difference(here.estimate, inside.estimate)
    in_reach = here.estimate if false_yes else together(here, inside).estimate
    estimate = _of_two_frames(part.estimate, in_reach, outside.estimate)
    return TwoFrames(part, inside, outside, p, estimate)


def _of_two_frames(part: Estimate, inside: Estimate, outside: Estimate) -> Estimate:
    """Where nothing is known of the posts outside, their recall is anything, and the value takes that inside for it."""
    if part.value is None or inside.value is None:
        return inside if part.value is None else UNKNOWN
    is_known = outside.value is not None
    elsewhere = outside.value if outside.value is not None else inside.value

    def joined(reached: float, inner: float, outer: float) -> float:
        return reached * inner + (1 - reached) * outer

    value = joined(part.value, inside.value, elsewhere)
    ends = [
        (joined(part.value, inside.low, elsewhere), joined(part.value, inside.high, elsewhere)),
        (joined(part.value, inside.value, outside.low), joined(part.value, inside.value, outside.high)),
    ]
    lowest, highest = (elsewhere, elsewhere) if is_known else (0.0, 1.0)
    by_part = [joined(reached, inside.value, outer) for reached in (part.low, part.high) for outer in (lowest, highest)]
    low, high = moved(value, [*ends, (min(by_part), max(by_part))])
    return with_interval(value, low, high, inside.count + outside.count)


def precision(
    label: str, uniform: Uniform | None, sets: PrecisionSets, *, with_und: bool, false_yes: float = 0.0
) -> Measured:
    """Precision on both kinds of sets. Without und, posts that people called undefined are left out; with it, they
    are wrong. false_yes: of the posts found to be right on a precision set, the share that may be wrong.
    """
    shown = sets.get(label, {})
    kept = [truth for truth in shown.values() if with_und or truth != UND]
    plain = counted(sum(truth == label for truth in kept), len(kept))
    parts = [_widened(plain, lambda value: (value * (1 - false_yes), value))]
    if uniform:
        parts.append(
            share(
                uniform,
                lambda cell: cell.said == label and (with_und or cell.truth != UND),
                lambda cell: cell.truth == label,
                shown,
                (UND,),
            )
        )
    return together(*parts)


def recall_labels(uniform: Uniform | None, sets: RecallSets) -> list[str]:
    """The labels whose recall these sets tell something about; und comes last."""
    return _und_last({*sets, *({cell.truth for cell in uniform.cells if cell.read} if uniform else ())})


def precision_labels(uniform: Uniform | None, sets: PrecisionSets) -> list[str]:
    return _und_last({*sets, *({cell.said for cell in uniform.cells if cell.read} if uniform else ())})


def _und_last(labels: Iterable[str]) -> list[str]:
    return sorted(labels, key=lambda label: (label == UND, label))


def mean(values: Iterable[float | None]) -> float | None:
    """The plain mean of what was measured; None if nothing was."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


# --- precision on languages in equal parts


def balanced_precision(label: str, sets: RecallSets, weights: Mapping[str, float] | None = None) -> Measured:
    """Precision on recall sets, as if all their languages were equally common, or as common as `weights` say.

    Undefined posts, and posts of languages without a recall set, do not count. UNKNOWN if the language's own weight is
    0.
    """
    own = sets[label]
    own_weight = weights.get(label, 0.0) if weights is not None else 1.0
    triggers = sum(said == label for found in sets.values() for said in found.values())
    if not own_weight:
        return Measured(UNKNOWN, triggers)
    others = [
        (
            float(sum(said == label for said in found.values())),
            float(len(found)),
            (weights.get(other, 0.0) if weights is not None else 1.0) / own_weight,
        )
        for other, found in sets.items()
        if other != label and found
    ]
    right = float(sum(said == label for said in own.values()))
    return Measured(reweighted_precision((right, float(len(own))), others), triggers)


def natural_weights(uniform: Uniform) -> dict[str, float]:
    """Label -> how many posts of the draw have it, estimated by stratum."""
    weights: dict[str, float] = {}
    for cell, posts in uniform.cells.items():
        weights[cell.truth] = weights.get(cell.truth, 0.0) + posts * uniform.weight(cell)
    return weights


# --- confusions


def confusion(uniform: Uniform | None, sets: RecallSets) -> list[tuple[str, str, float]]:
    """(truth, said, posts): of the uniform set, weighted by stratum; without one, of the recall sets."""
    weights: dict[tuple[str, str], float] = {}
    if uniform:
        for cell, posts in uniform.cells.items():
            if cell.read:
                pair = cell.truth, cell.said
                weights[pair] = weights.get(pair, 0.0) + posts * uniform.weight(cell)
    else:
        for label, found in sets.items():
            for said, posts in Counter(found.values()).items():
                weights[label, said] = float(posts)
    return [(truth, said, round(weight, 6)) for (truth, said), weight in sorted(weights.items())]
