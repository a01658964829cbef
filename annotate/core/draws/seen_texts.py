"""A compact index of the texts seen so far, with 24 bytes per text where a dictionary takes ten times as much."""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

# Both halves of 16-byte digests, and their keys, sorted by the first half.
_Run = tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64]]
_TIMES = 4  # each run is at least this many times as large as the next, so there are few


class Seen:
    """A mapping from 16-byte digests to keys."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []

    def find(self, digests: Iterable[bytes]) -> dict[bytes, int]:
        """Return the keys of those digests that were added before."""
        asked = list(dict.fromkeys(digests))
        first, second = _halves(asked)
        found: dict[bytes, int] = {}
        for firsts, seconds, keys in self._runs:
            at, places = np.searchsorted(firsts, first), np.arange(len(asked))
            # Several digests may share their first half.
            while len(places := places[at[places] < len(firsts)]):
                places = places[firsts[at[places]] == first[places]]
                there = places[seconds[at[places]] == second[places]]
                found |= {
                    asked[place]: key for place, key in zip(there.tolist(), keys[at[there]].tolist(), strict=True)
                }
                at[places] += 1
        return found

    def add(self, keys: Mapping[bytes, int]) -> None:
        """Add digests and their keys. None of the digests may have been added before."""
        if not keys:
            return
        self._runs.append(_in_order((*_halves([*keys]), np.fromiter(keys.values(), np.int64, len(keys)))))
        while len(self._runs) > 1 and len(self._runs[-2][0]) < _TIMES * len(self._runs[-1][0]):
            last, before = self._runs.pop(), self._runs.pop()
            first, second, of = (np.concatenate(pair) for pair in zip(before, last, strict=True))
            self._runs.append(_in_order((first, second, of)))


def _halves(digests: list[bytes]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    numbers = np.frombuffer(b"".join(digests), np.uint64).reshape(-1, 2)
    return numbers[:, 0].copy(), numbers[:, 1].copy()


def _in_order(run: _Run) -> _Run:
    order = np.argsort(run[0], kind="stable")  # fast for two sorted runs
    return run[0][order], run[1][order], run[2][order]
