"""The models behind the built-in voters. Each detector takes cleaned texts and returns up to k languages for each text.

Callers must clean the texts first (masking.py). The detectors return our label codes (languages.py), and voters.py
combines their votes. Each model is loaded once per process, when it is first used.

A detector votes on text only if it recognizes a feature that contains letters. Without any such feature, langid.py
would return English with a score of 0.169, fastText English with 0.125, and CLD2 the script's default language.
Features that consist only of punctuation, digits and emoji do not count as evidence. For example, fastText recognizes
the quotation marks of '"BARACK OBAMA" (ANGELA MERKEL)' and would return English with 0.57.
"""

import hashlib
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

from corpora.core import CorpusError
from corpora.core.languages import LISTED, normalise
from corpora.core.masking import letters_alone

# --- langid.py's model, applied to many texts at once.
#
# langid.py (Lui and Baldwin, 2012) is a naive Bayes classifier. It feeds a text byte by byte to an automaton, counts
# the features (byte n-grams) that the visited states emit, and adds their log-probabilities to each language's prior.
# This code computes the same result with two shortcuts:
#
# - No feature is longer than four bytes, so the last four bytes determine the state. The states after all bytes of all
#   texts can therefore be computed at once, in four array operations.
# - When the model is loaded, the log-probabilities of the features that each state emits are summed. A text's score is
#   the sum over the states that it visits.
#
# The model stores float32 values, and this code sums them as float64. The sums are exact, so the results equal those
# of langid.py to the last digit.


# Texts are processed in blocks of about this many bytes. This bounds memory, and a block fits the CPU cache.
_BLOCK_BYTES = 1 << 18


@dataclass(frozen=True)
class LangidModel:
    """langid.py's automaton and naive Bayes weights, as arrays.

    languages: langid.py's n language codes
    following: next state for each state and byte (states * 256,)
    pairs: state after reading two bytes from the root, which is state 0 (65536,)
    state_scores: summed log-probabilities of the features that each state emits (states, n)
    prior: log-probability of each language (n,)
    memory: number of most recent bytes that determine the state, at least two
    """

    languages: tuple[str, ...]
    following: NDArray[np.int32]
    pairs: NDArray[np.int32]
    state_scores: NDArray[np.float64]
    prior: NDArray[np.float32]
    memory: int

    def log_probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return each language's log-probability for each text, up to a constant per text (texts, languages)."""
        logs = np.empty((len(texts), len(self.languages)))
        for start, end, visits in self._count_visits(texts):
            logs[start:end] = visits @ self.state_scores + self.prior
        return logs

    def has_features(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Return whether each text contains a feature of the model (texts,).

        The result for a text without features would depend only on the prior.
        """
        has_feature = np.zeros(len(texts), np.bool_)
        emits = self.state_scores.any(axis=1).astype(np.float64)
        for start, end, visits in self._count_visits(texts):
            has_feature[start:end] = visits @ emits > 0
        return has_feature

    def _count_visits(self, texts: Sequence[str]) -> Iterator[tuple[int, int, csr_array]]:
        """Yield (start, end, visits) for each block of texts.

        start, end: the block is texts[start:end]
        visits: number of visits to each state by each text of the block (texts, states)
        """
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        blocks = (np.cumsum(lengths) - 1) // _BLOCK_BYTES
        bounds = [0, *(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(encoded)]
        for start, end in pairwise(bounds):
            content = np.frombuffer(b"".join(encoded[start:end]), np.uint8).astype(np.int32)
            states = self._states(content, lengths[start:end])
            offsets = np.concatenate([[0], np.cumsum(lengths[start:end])]).astype(np.int32)
            # Row i has a 1 for each visit to a state by text i. The product with the scores sums repeated visits.
            shape = end - start, len(self.state_scores)
            yield start, end, csr_array((np.ones(len(states)), states, offsets), shape=shape)

    def _states(self, content: NDArray[np.int32], lengths: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the state after each byte.

        content: the bytes of all texts, concatenated
        lengths: the length of each text (bytes)
        """
        states = np.zeros(len(content), np.int32)
        if len(content) >= self.memory:
            reached = self.pairs.take((content[:-1] << 8) | content[1:])
            for step in range(2, self.memory):
                reached = self.following.take((reached[:-1] << 8) | content[step:])
            states[self.memory - 1 :] = reached
        # Each text starts at the root, so the states after its first bytes must not depend on the previous text.
        starts = np.cumsum(lengths) - lengths
        current = np.zeros(len(lengths), np.int32)
        for step in range(self.memory - 1):
            longer = lengths > step
            starts, lengths, current = starts[longer], lengths[longer], current[longer]
            current = self.following.take((current << 8) | content[starts + step])
            states[starts + step] = current
        return states


@cache
def langid_model() -> LangidModel:
    """Load the model that is shipped with langid.py."""
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
    """Return the number of bytes after which the state no longer depends on where the automaton started.

    In such an automaton, a state represents the longest suffix of the input that is a prefix of a feature. The loop
    therefore terminates.

    following: next state for each state and byte (states, 256)
    """
    steps = 0
    # Each pair of states is encoded as one number: (state) * (number of states) + (state reached from the root).
    differing = np.arange(len(following)) * len(following)
    while len(differing):
        steps += 1
        ours, root = (following[states].ravel().astype(np.int64) for states in np.divmod(differing, len(following)))
        differing = np.unique((ours * len(following) + root)[ours != root])
    return max(steps, 2)


Ranking = list[tuple[str, float]]  # (our code, score from 0 to 1), best first
# Arrays store each code as its index in CODES.
CODES: tuple[str, ...] = tuple(sorted(LISTED))
_PLACES = {code: place for place, code in enumerate(CODES)}
_NO_VOTE = -1
_FASTTEXT_LABEL = "__label__"
# For its origin and licence, see README.md in the same folder.
FASTTEXT_MODEL = Path(__file__).parent / "lid176" / "lid.176.ftz"
_FASTTEXT_SHA256 = "8f3472cfe8738a7b6099e8e999c3cbfae0dcd15696aac7d7738a8039db603e83"
# CLD2 gives one point to the default language of a script and more points for each n-gram that it recognizes. It
# reports points per 1,024 bytes, rounded down. A language with fewer points than this is only the script's default.
_CLD2_DEFAULT = 1.5
_FIRST_WORDS = 10  # minimum number of letters in the prefix that is checked for features first


@dataclass(frozen=True)
class Rankings(Iterable[Ranking]):
    """The languages that a detector returns for n texts, best first and without duplicates.

    The languages of text i are codes[offsets[i] : offsets[i + 1]].

    offsets: start of each text's languages, and the end of the last text's (n + 1,)
    codes: index of each language in CODES
    scores: score of each language, from 0 to 1
    """

    offsets: NDArray[np.int32]
    codes: NDArray[np.int16]
    scores: NDArray[np.float64]

    def first(self) -> NDArray[np.int16]:
        """Return the index in CODES of each text's first language, or -1 if the text has none (n,)."""
        starts, ends = self.offsets[:-1], self.offsets[1:]
        return np.where(starts < ends, np.append(self.codes, np.int16(_NO_VOTE))[starts], np.int16(_NO_VOTE))

    def from_score(self, least: float) -> "Rankings":
        """Return rankings in which texts have no language if their best score is below `least`."""
        if not least:
            return self
        lengths = np.diff(self.offsets)
        sure = np.append(self.scores, 0)[self.offsets[:-1]] >= least
        mask = np.repeat(sure, lengths)
        offsets = np.append(0, np.cumsum(np.where(sure, lengths, 0))).astype(np.int32)
        return Rankings(offsets, self.codes[mask], self.scores[mask])

    def __iter__(self) -> Iterator[Ranking]:
        pairs = [*zip((CODES[code] for code in self.codes), self.scores.tolist(), strict=True)]
        return (pairs[start:end] for start, end in zip(self.offsets, self.offsets[1:], strict=False))


def _best(codes: NDArray[np.int16], scores: NDArray[np.float64], k: int) -> Rankings:
    """Return the first k languages of each text.

    If several of a detector's codes map to the same language, only the best score is kept.

    codes: indices in CODES, best first; -1 means no vote (texts, ranks)
    scores: scores from 0 to 1 (texts, ranks)
    """
    keep = codes != _NO_VOTE
    for column in range(1, codes.shape[1]):
        keep[:, column] &= (codes[:, :column] != codes[:, column, None]).all(axis=1)
    keep &= np.cumsum(keep, axis=1) <= k
    offsets = np.concatenate([[0], np.cumsum(keep.sum(axis=1))])
    return Rankings(offsets.astype(np.int32), codes[keep], np.clip(scores[keep], 0.0, 1.0))


@cache
def _code_index(detector: str, detector_code: str) -> int:
    code = normalise(detector, detector_code)
    return _NO_VOTE if code is None else _PLACES[code]


def _rankings_from_lists(codes: list[int], scores: list[float], lengths: list[int], k: int) -> Rankings:
    """Return the first k languages of each text.

    codes, scores: the entries of all texts, concatenated
    lengths: number of entries of each text
    """
    filled = np.arange(max(lengths, default=0)) < np.array(lengths, np.int64)[:, None]
    padded_codes = np.full(filled.shape, _NO_VOTE, np.int16)
    padded_codes[filled] = codes
    padded_scores = np.zeros(filled.shape)
    padded_scores[filled] = scores
    return _best(padded_codes, padded_scores, k)


@cache
def _langid_codes() -> NDArray[np.int16]:
    return np.array([_code_index("langid", detector_code) for detector_code in langid_model().languages], np.int16)


def detect_langid(texts: Sequence[str], k: int) -> Rankings:
    """Run langid.py (Lui and Baldwin, 2012). The score is the language's probability among langid.py's 97 languages.

    Languages are ranked by log-probability. langid.py's own rank() uses probabilities. For longer texts, all except the
    highest underflow to 0, so rank() returns the other languages in alphabetical order.
    """
    codes = _langid_codes()
    model = langid_model()
    logs = model.log_probabilities(texts)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    totals = shares.sum(axis=1)
    rows = np.arange(len(texts))
    # If languages tie, the first one wins. Several langid.py codes may map to the same Assay code, so an extra rank
    # is computed for each duplicate.
    places = np.empty((len(texts), min(k + len(codes) - len(set(codes.tolist())), len(codes))), np.int64)
    for column in places.T:
        column[:] = logs.argmax(axis=1)
        logs[rows, column] = -np.inf
    best_codes = codes[places]
    # Both checks are needed. For example, "throwback" contains a feature for the start of a word, but "#throwback"
    # doesn't.
    best_codes[~(model.has_features(texts) & model.has_features(letters_alone(texts)))] = _NO_VOTE
    return _best(best_codes, shares[rows[:, None], places] / totals[:, None], k)


def detect_cld2(texts: Sequence[str], k: int) -> Rankings:
    """Run Google's Compact Language Detector 2. The score is the language's share of the text's bytes.

    CLD2 returns at most three languages, and rarely more than one. Without `bestEffort`, it would return no language
    for many texts as short as social media posts.
    """
    import pycld2

    # Flat lists of numbers are used, because the garbage collector would have to scan tuples.
    codes, scores, lengths = list[int](), list[float](), list[int]()
    for text in texts:
        _, size, details = pycld2.detect(text, isPlainText=True, bestEffort=True) if text else (False, 0, ())
        results = [
            (cld2_code, percent)
            for _, cld2_code, percent, score in details
            if score * size * percent > _CLD2_DEFAULT * 1024 * 100
        ]
        lengths.append(len(results))
        for cld2_code, percent in results:
            codes.append(_code_index("cld2", cld2_code))
            scores.append(percent / 100)
    return _rankings_from_lists(codes, scores, lengths, k)


@cache
def _fasttext_model() -> Path:
    """Return the path of the fastText model. Raise CorpusError unless it is the file shipped with Assay."""
    try:
        unchanged = hashlib.sha256(FASTTEXT_MODEL.read_bytes()).hexdigest() == _FASTTEXT_SHA256
    except OSError:
        unchanged = False
    if not unchanged:
        raise CorpusError(f"{FASTTEXT_MODEL} is missing or is not the model that Assay ships. Install Assay again.")
    return FASTTEXT_MODEL


@cache
def _fasttext() -> Any:
    import fasttext

    return fasttext.load_model(str(_fasttext_model()))


def detect_fasttext(texts: Sequence[str], k: int) -> Rankings:
    """Run fastText's lid.176 (Joulin et al., 2016). The score is the label's probability among the model's 176 labels.

    The threshold is -1, because the default of 0 drops labels whose probability is rounded to below 0. Texts are
    predicted one by one, because fastText's batch call doesn't return scores.

    Spare labels either don't count as votes or map to the same language as another label. Additional labels are
    requested only if one of the first k labels is spare, because they slow down the prediction.
    """
    predict = _fasttext().f.predict  # the function that the public `predict` calls; its input must end in a newline
    places, spare = _fasttext_labels()
    labels, scores, lengths = list[str](), list[float](), list[int]()
    (nothing,) = predict("\n", 1, -1.0, "strict")

    def unknown(letters: str) -> bool:
        return bool(predict(f"{letters}\n", 1, -1.0, "strict")[0] == nothing)

    for text, alone in zip(texts, letters_alone(texts), strict=True):
        results = predict(f"{text}\n", k, -1.0, "strict")
        # Look for a feature in the first few words before the whole text, because they usually contain one.
        end = alone.find(" ", _FIRST_WORDS)
        if results[0] == nothing or ((end < 0 or unknown(alone[:end])) and unknown(alone)):
            results = ()
        for _, label in results:
            if label in spare:
                results = predict(f"{text}\n", k + len(spare), -1.0, "strict")
                break
        lengths.append(len(results))
        for score, label in results:
            labels.append(label)
            scores.append(score)
    return _rankings_from_lists([*map(places.__getitem__, labels)], scores, lengths, k)


@cache
def _fasttext_labels() -> tuple[dict[str, int], frozenset[str]]:
    """Return the index in CODES for each fastText label, and the set of spare labels.

    A label is spare if it does not count as a vote, or if it is not the main label for its language.
    """
    labels = [label for _, label in _fasttext().f.predict("\n", 1_000, -1.0, "strict")]
    indexes = {label: _code_index("fasttext", label.removeprefix(_FASTTEXT_LABEL)) for label in labels}
    ours = {f"{_FASTTEXT_LABEL}{code}" for code in CODES}
    counts = Counter(indexes.values())
    return indexes, frozenset(
        label for label, index in indexes.items() if index == _NO_VOTE or (counts[index] > 1 and label not in ours)
    )


def ranked(answers: Iterable[Sequence[tuple[str, float]]], k: int) -> Rankings:
    """Convert the results of Voter.vote to Rankings.

    Raise ValueError if a code is not listed in languages.toml, or if a score is not from 0 to 1.
    """
    if isinstance(answers, Rankings):
        return answers
    listed = [sorted(answer, key=lambda pair: -pair[1]) for answer in answers]
    for code, score in chain.from_iterable(listed):
        if code not in _PLACES:
            raise ValueError(f"A voter returned {code!r}, which is not the code of a listed language.")
        if not 0 <= score <= 1:
            raise ValueError(f"A voter returned the score {score} for {code!r}. Scores must be from 0 to 1.")
    codes, scores = ([_PLACES[code] for answer in listed for code, _ in answer], [s for a in listed for _, s in a])
    return _rankings_from_lists(codes, scores, [len(answer) for answer in listed], k)


DETECTORS: dict[str, Callable[[Sequence[str], int], Rankings]] = {
    "langid": detect_langid,
    "cld2": detect_cld2,
    "fasttext": detect_fasttext,
}


@cache
def detector_versions() -> dict[str, str]:
    """Return the version of each detector's package. fastText's version includes its model's file name and SHA-256."""
    return {
        "langid": version("langid"),
        "cld2": version("pycld2"),
        "fasttext": f"{version('fasttext-predict')} {_fasttext_model().name} sha256:{_FASTTEXT_SHA256}",
    }
