"""Bradley and Terry's model of paired comparisons: how strong each of several systems is.

A system i is preferred to j with the chance p_i / (p_i + p_j); a strength is log p_i, and all add up to 0 (Bradley and
Terry 1952, Rank Analysis of Incomplete Block Designs, Biometrika 39). preferences.py says what counts as a win.
"""

import numpy as np
import scipy  # which loads its parts when they are first used

from annotate.core.answers import Floats

ROUNDS = 100
CLOSE = 1e-10  # in logs
LONGEST_STEP = 2.0


def groups(wins: Floats) -> list[list[int]]:
    """The systems in parts, in each of which every system has won, by others between them, against every other; the
    part whose systems are not beaten by others of another part first. With one part, and only then, all strengths are
    finite (Ford 1957, Solution of a Ranking Problem from Binary Comparisons, American Mathematical Monthly 64(8)).

    wins: of the row's system against the column's, (K, K).
    """
    number, part = scipy.sparse.csgraph.connected_components(wins > 0, connection="strong")
    found: list[list[int]] = [np.flatnonzero(part == place).tolist() for place in range(number)]
    # How many systems each reaches by its wins and those of whom it beat: a part above another reaches more.
    reached = (~np.isinf(scipy.sparse.csgraph.shortest_path(wins > 0, unweighted=True))).sum(axis=1)
    return sorted(found, key=lambda part: (-reached[part[0]], part))


def strengths(wins: Floats) -> Floats:
    """The strengths of greatest likelihood, in natural logarithms, (..., K), that add up to 0; NaN where they are not
    finite, as the systems are of several `groups`.

    wins: of the row's system against the column's, (..., K, K), of as many comparisons as there are; halves count too.
    By Newton's method, the likelihood of strengths being concave, with steps of LONGEST_STEP at most.
    """
    size = wins.shape[-1]
    found: Floats = np.full(wins.shape[:-1], np.nan)
    finite = _are_finite(wins)
    found[finite] = _strengths(wins[finite].reshape(-1, size, size))
    return found


def _are_finite(wins: Floats) -> np.ndarray:
    """Whether every system has won against every other, by others between them: (...)."""
    size = wins.shape[-1]
    reached = (wins > 0) | np.eye(size, dtype=bool)
    for _ in range(size.bit_length()):
        reached = reached @ reached
    return np.asarray(reached.all(axis=(-1, -2)))


def _strengths(wins: Floats) -> Floats:
    """wins: (N, K, K), of which each has finite strengths."""
    played, won = wins + wins.swapaxes(1, 2), wins.sum(axis=2)
    found: Floats = np.zeros(won.shape)
    for _ in range(ROUNDS):
        chance = scipy.special.expit(found[:, :, None] - found[:, None, :])
        weights = played * chance * (1 - chance)
        information = weights.sum(axis=2)[:, :, None] * np.eye(won.shape[1]) - weights
        # The sum of strengths is free; with 1 added in all cells the matrix has an inverse, and the step adds up to 0.
        step = np.linalg.solve(information + 1, (won - (played * chance).sum(axis=2))[:, :, None])[:, :, 0]
        longest = np.abs(step).max(axis=1, keepdims=True, initial=CLOSE)
        found = found + step * np.minimum(1.0, LONGEST_STEP / longest)
        if not (longest > CLOSE).any():
            break
    centred: Floats = found - found.mean(axis=1, keepdims=True)
    return centred
