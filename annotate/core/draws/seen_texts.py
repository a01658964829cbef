"""Which of very many texts have come before: each takes 24 bytes, in arrays, where a dictionary would take ten times as
many.
"""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

# Digests of 16 bytes in two halves, and the keys of what has them; in order of the first half.
_Run = tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64]]
_TIMES = 4  # a run has so many times what the next one has, so there are few


class Seen:
    """Digest of 16 bytes -> the key of what has it."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []

    def find(self, digests: Iterable[bytes]) -> dict[bytes, int]:
        """Those that have been added before, with their keys."""
        asked = list(dict.fromkeys(digests))
        first, second = _halves(asked)
        found: dict[bytes, int] = {}
        for firsts, seconds, keys in self._runs:
            at, places = np.searchsorted(firsts, first), np.arange(len(asked))
            # Several digests may begin alike.
            while len(places := places[at[places] < len(firsts)]):
                places = places[firsts[at[places]] == first[places]]
                there = places[seconds[at[places]] == second[places]]
                found |= {
                    asked[place]: key for place, key in zip(there.tolist(), keys[at[there]].tolist(), strict=True)
                }
                at[places] += 1
        return found

    def add(self, keys: Mapping[bytes, int]) -> None:
        """What has these digests; none of them has been added before."""
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
    order = np.argsort(run[0], kind="stable")  # quick where there are two runs that are in order
    return run[0][order], run[1][order], run[2][order]
