"""langid.py's own model, put to many texts at once.

langid.py (Lui and Baldwin, 2012) takes a text byte by byte through an automaton, counts the features (n-grams of bytes)
that the states on its way emit, and adds their log-probabilities to each language's own: naive Bayes. Here too, but

- no feature has more than four bytes, so the last four tell where the automaton stands, whatever came before them. All
  bytes of all texts are taken through it at the same time, in as many steps;
- the log-probabilities of the features that a state emits are added up once. A text's are the sum over its states.

The model's numbers are float32 and the sums float64, which holds them without rounding, so that what comes out is what
langid.py's own loop gives, to the last digit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

# Texts are taken together up to this many bytes: memory stays small, and what is worked on in the cache.
_BLOCK_BYTES = 1 << 18


@dataclass(frozen=True)
class LangidModel:
    """languages: langid.py's codes, n of them. following: (states * 256,), the state after a state and a byte; pairs:
    (65536,), the state after two bytes from the root, state 0. state_scores: (states, n); prior: (n,).
    memory: how many bytes tell where the automaton stands, two at least."""

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
