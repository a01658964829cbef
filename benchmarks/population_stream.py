"""A generated stream of posts with authors, times and known truth: real sentences by authors like those of TweetLID.

The model of authors is fitted to the users of a real history with ten or more posts. A label of that history is one
language (es), ambiguous between several (ca/es), a mixture of several (en+es), or und. The guidelines of the 2015
article call the last three undefined, so here they are undefined posts.
"""

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from scipy import optimize, special, stats

from benchmarks.material import FIRST_ID, ID_STEP, MissingData, lines_of, sentences, shares, shares_present
from benchmarks.population_texts import MADE_KINDS, mixed_text, undefined_text
from benchmarks.world import label_of
from corpora.core.languages import UND

LEAST_POSTS = 10
# The article's: March to May, and July.
HISTORY = (datetime(2014, 3, 1, tzinfo=UTC), datetime(2014, 6, 1, tzinfo=UTC))
WINDOW = (datetime(2014, 7, 1, tzinfo=UTC), datetime(2014, 8, 1, tzinfo=UTC))
# Chosen shares for languages with at most one tweet in the uniform sample of 2014.
CHOSEN_SHARES = {"pcm": 0.01, "am": 0.001, "ha": 0.001}
# Shares of the posts. July has as many as the history, so that frames are ten times a draw with fewer posts overall.
PERIODS = ((*HISTORY, 0.45), (HISTORY[1], WINDOW[0], 0.1), (*WINDOW, 0.45))


@dataclass(frozen=True)
class AuthorModel:
    """The parameters common to all authors. Beta distributions are pairs (a, b); shares are fractions of posts.

    An author has 10 + Lomax(tail, scale) posts, of which a share ~ Beta(undefined) is undefined. A fraction `two` of
    the authors write the share main_of_two of their other posts in their main language, and all other authors a share
    ~ Beta(main_of_one). Of the remaining posts, the share `second` is in a second language, and the rest in a third.
    The second language is English for a fraction `english` of authors with another main language; otherwise, it is
    drawn by the languages' shares of the stream, like the third. A share `mixed` of undefined posts mixes the first two
    languages.
    """

    tail: float
    scale: float
    undefined: tuple[float, float]
    two: float
    main_of_two: float
    main_of_one: tuple[float, float]
    second: float
    english: float
    mixed: float

    @property
    def in_main(self) -> float:
        """The mean share of an author's posts in the main language, without undefined posts."""
        one, other = self.main_of_one
        return self.two * self.main_of_two + (1 - self.two) * one / (one + other)


@dataclass(frozen=True)
class Fit:
    model: AuthorModel
    users: int
    posts: int


@dataclass(frozen=True)
class StreamPost:
    """label: the right one by the article's guidelines; kind: the language, or the kind of undefined post."""

    id: str
    text: str
    author: str
    posted_at: datetime
    label: str
    kind: str


def read_history(folder: Path) -> list[list[str]]:
    """Return the labels of each user of tweetlid_history who has ten or more posts."""
    lines = lines_of(folder, "tweetlid_history/user_language_history.tsv")
    by_user: dict[str, list[str]] = {}
    for row in csv.DictReader(lines, delimiter="\t"):
        by_user.setdefault(row["user"], []).append(row["lang"])
    users = [labels for labels in by_user.values() if len(labels) >= LEAST_POSTS]
    if not users:
        raise MissingData(f"No user of {folder}/tweetlid_history has {LEAST_POSTS} posts.")
    return users


def fit(users: Sequence[Sequence[str]]) -> Fit:
    """Fit the model by maximum likelihood. Numbers of posts have a Lomax distribution from 9.5, and undefined posts a
    beta-binomial one. Posts in the main language have a mixture of a binomial and a beta-binomial, whose log-likelihood
    is 21 higher than the beta-binomial's. All else are plain shares of the posts of all users."""
    lengths = [len(labels) for labels in users]
    tail, _, scale = stats.lomax.fit(np.array(lengths) - (LEAST_POSTS - 0.5), floc=0)
    undefined, main = [], []
    mixed = second = others = 0
    seconds: Counter[bool] = Counter()
    for labels in users:
        plain = Counter(label for label in labels if not _is_undefined(label))
        undefined.append((len(labels) - plain.total(), len(labels)))
        mixed += sum("+" in label for label in labels)
        if not plain:
            continue
        (first, count), *rest = plain.most_common()
        main.append((count, plain.total()))
        others += plain.total() - count
        if rest:
            second += rest[0][1]
            if first != "en":
                seconds[rest[0][0] == "en"] += 1
    two, main_of_two, *main_of_one = _likeliest(_main_language, main, [0.2, 0.6, 50.0, 2.0])
    model = AuthorModel(
        tail=float(tail),
        scale=float(scale),
        undefined=tuple(_likeliest(_one_beta, undefined, [1.0, 10.0])),
        two=two,
        main_of_two=main_of_two,
        main_of_one=tuple(main_of_one),
        second=second / others,
        english=seconds[True] / seconds.total(),
        mixed=mixed / sum(count for count, _ in undefined),
    )
    return Fit(model, len(users), sum(lengths))


def _is_undefined(label: str) -> bool:
    return label == UND or "/" in label or "+" in label


def _one_beta(hits: np.ndarray, of: np.ndarray, a: float, b: float) -> np.ndarray:
    """Return the probability of each user's hits if users' shares are ~ Beta(a, b)."""
    return stats.betabinom.pmf(hits, of, a, b)


def _main_language(hits: np.ndarray, of: np.ndarray, two: float, share: float, a: float, b: float) -> np.ndarray:
    """Return the probability of each user's hits if some users have a fixed share, and others one ~ Beta(a, b)."""
    return two * stats.binom.pmf(hits, of, share) + (1 - two) * stats.betabinom.pmf(hits, of, a, b)


def _likeliest(chance: Callable, counts: Sequence[tuple[int, int]], start: Sequence[float]) -> list[float]:
    """Return the likeliest parameters for users' (hits, posts). Of four parameters, two are shares."""
    hits, of = np.array(counts).T
    shares = len(start) - 2

    def unfolded(x: np.ndarray) -> np.ndarray:
        return np.concatenate([special.expit(x[:shares]), np.exp(x[shares:])])

    def unlikeliness(x: np.ndarray) -> float:
        return -float(np.log(chance(hits, of, *unfolded(x))).sum())

    first = np.concatenate([special.logit(start[:shares]), np.log(start[shares:])])
    optimum = optimize.minimize(unlikeliness, first, method="Nelder-Mead", options={"maxiter": 5_000, "maxfev": 5_000})
    return [float(value) for value in unfolded(optimum.x)]


def texts_and_shares(folder: Path) -> tuple[dict[str, list[str]], dict[str, float], float]:
    """Return the texts by language, the shares of the languages and und, and their share of the uniform sample."""
    pools = sentences(folder)
    for language in ("am", "ha", "pcm", "pt", "sw"):
        pools.setdefault(language, []).extend(lines_of(folder, f"afrisenti_tweets/{language}.txt"))
    present, covered = shares_present(folder, pools)
    counts = shares(folder)
    weights = {code: count for code, count in (present | {UND: counts[UND]}).items() if code not in CHOSEN_SHARES}
    left = (1 - sum(CHOSEN_SHARES.values())) / sum(weights.values())
    of = {code: count * left for code, count in weights.items()} | CHOSEN_SHARES
    return pools, of, covered + counts[UND] / counts.total()


def make_stream(
    pools: Mapping[str, Sequence[str]],
    of: Mapping[str, float],
    model: AuthorModel,
    *,
    posts: int,
    habit: float,
    seed: str,
) -> list[StreamPost]:
    """Return posts in order of time, with new ids.

    of: mean shares of the languages and und, from which authors differ; habit: correlation of the lengths of two texts
    by one author in a language (Gaussian copula). It does not change the texts of all authors together.
    """
    rng = np.random.default_rng(list(f"{seed} stream".encode()))
    languages = [code for code in of if code != UND]
    weights = np.array([of[code] for code in languages]) / sum(of[code] for code in languages)
    lengths = _lengths(rng, model, posts)
    spoken = _spoken(rng, model, languages, weights, len(lengths))
    author = np.repeat(np.arange(len(lengths)), lengths)[:posts]
    precision = sum(model.undefined)
    undefined = rng.beta(of[UND] * precision, (1 - of[UND]) * precision, len(lengths))
    main = np.where(rng.random(len(lengths)) < model.two, model.main_of_two, rng.beta(*model.main_of_one, len(lengths)))
    # The index of the author's language; 3: undefined.
    which = np.where(
        rng.random(posts) < undefined[author],
        3,
        np.where(rng.random(posts) < main[author], 0, np.where(rng.random(posts) < model.second, 1, 2)),
    )
    trait = rng.normal(size=len(lengths))[author]
    place = special.ndtr(np.sqrt(habit) * trait + np.sqrt(1 - habit) * rng.normal(size=posts))
    by_length = {code: sorted(pools[code], key=lambda text: (len(text), text)) for code in languages}

    def written(number: int, code: str) -> str:
        return by_length[code][int(place[number] * len(by_length[code]))]

    stream = []
    seconds = _times(rng, posts)
    for rank, number in enumerate(np.argsort(seconds, kind="stable")):
        mine = [languages[code] for code in spoken[author[number]]]
        if which[number] < 3:
            kind = mine[which[number]]
            text = written(number, kind)
        elif rng.random() < model.mixed:
            kind, text = "mixed", mixed_text(written(number, mine[0]), written(number, mine[1]))
        else:
            kind = MADE_KINDS[rng.integers(len(MADE_KINDS))]
            text = undefined_text(rng, kind)
        stream.append(
            StreamPost(
                id=str(FIRST_ID + rank * ID_STEP),
                text=text,
                author=f"author{author[number]:06}",
                posted_at=HISTORY[0] + timedelta(seconds=int(seconds[number])),
                label=UND if which[number] == 3 else label_of(kind),
                kind=kind,
            )
        )
    return stream


def _lengths(rng: np.random.Generator, model: AuthorModel, posts: int) -> np.ndarray:
    """Return the numbers of posts of enough authors to have `posts` in total."""
    some = LEAST_POSTS + np.floor(0.5 + model.scale * rng.pareto(model.tail, posts // LEAST_POSTS + 1) - 0.5)
    return some[: 1 + np.searchsorted(np.cumsum(some), posts)].astype(int)


def _spoken(
    rng: np.random.Generator, model: AuthorModel, languages: list[str], weights: np.ndarray, authors: int
) -> np.ndarray:
    """Return three languages of each author, the main one first, as indices.

    The weights of main languages are adjusted until all posts have the languages' shares, although English is the
    second language of many.
    """
    size = len(languages)
    second = (1 - model.english) * np.tile(weights, (size, 1))
    english = languages.index("en")
    second[:, english] += model.english
    second[english] = weights
    np.fill_diagonal(second, 0)
    second /= second.sum(axis=1, keepdims=True)
    mains = weights.copy()
    for _ in range(50):
        mains *= weights / (model.in_main * mains + (1 - model.in_main) * mains @ second)
        mains /= mains.sum()
    spoken = np.empty((authors, 3), int)
    spoken[:, 0] = rng.choice(size, authors, p=mains)
    for number, main in enumerate(spoken[:, 0]):
        spoken[number, 1] = rng.choice(size, p=second[main])
        third = weights.copy()
        third[spoken[number, :2]] = 0
        spoken[number, 2] = rng.choice(size, p=third / third.sum())
    return spoken


def _times(rng: np.random.Generator, posts: int) -> np.ndarray:
    """Return the seconds since the start of the history, drawn uniformly within each period."""
    starts, ends, parts = zip(*PERIODS, strict=True)
    period = rng.choice(len(PERIODS), posts, p=parts)
    start = np.array([(moment - HISTORY[0]).total_seconds() for moment in starts])
    length = np.array([(end - begin).total_seconds() for begin, end in zip(starts, ends, strict=True)])
    return start[period] + np.floor(rng.random(posts) * length[period])


def write_jsonl(stream: Iterable[StreamPost], path: Path) -> None:
    """Write the file to import, without the truth."""
    with open(path, "w", encoding="utf-8") as file:
        for post in stream:
            row = {"id": post.id, "text": post.text, "author": post.author}
            row["posted_at"] = post.posted_at.astimezone(UTC).isoformat()
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
