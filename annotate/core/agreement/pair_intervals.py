"""Intervals of coefficients that are counted from pairs of answers: every measure in coefficients.py.

Each unit adds a table to one sum: how often, among its pairs of answers, one is c and the other k. A coefficient is a
function of that sum. Its interval is between the 2.5% and the 97.5% quantile of a posterior over how frequent each kind
of unit is among all units: the Bayesian bootstrap over units (Rubin 1981, The Bayesian Bootstrap, Annals of Statistics
9(1)), with three half units that nobody has answered. On one all agree on the most frequent label, on one all agree on
any other, and on one all differ, with labels as frequent as they are. With two labels and two answers a unit there are
no other kinds of units, and this is Jeffreys' prior, Dirichlet(1/2, 1/2, 1/2). Without those half units, what happens
not to be seen counts as impossible, and where one label is rare the interval does not cover (tests/benchmarks/
agreeing.py tries both). The annotators are taken as they are, so an interval says how far other units of this kind may
differ, not other people.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
import scipy  # which loads its part `sparse` when it is first used

from annotate.core.aggregation.answer_table import Floats, Ints
from annotate.core.estimation.resampling import percentiles

REPLICATES = 1000
IMAGINED = 0.5  # how many units of each kind that is imagined

# Squared distances of each two labels, (K, K); or what makes them of the margins, (..., K) -> (..., K, K).
Distance = Floats | Callable[[Floats], Floats]


class Tables(NamedTuple):
    """Tables of pairs of answers, one a row: outer(first, second) - diag(less), each of shape (rows, K).

    They are kept in these parts, since of many labels nearly all of a table is empty: of the sets that three people
    chose for 300 documents, nearly every one is another label, and the tables would have 200 million cells.
    """

    first: Floats
    second: Floats
    less: Floats

    def own(self) -> Floats:
        """The sums of the lines of each table: the margins of the first answers of the pairs."""
        margins: Floats = self.first * self.second.sum(axis=1, keepdims=True) - self.less
        return margins

    def rest(self) -> Floats:
        margins: Floats = self.second * self.first.sum(axis=1, keepdims=True) - self.less
        return margins

    def whole(self) -> Floats:
        """The tables themselves: (rows, K, K)."""
        cells: Floats = self.first[:, :, None] * self.second[:, None, :]
        places = np.arange(self.less.shape[1])
        cells[:, places, places] -= self.less
        return cells


class Sums(NamedTuple):
    """What a coefficient is made of, of B sums of tables. off: the sum of cells times distances, (B,); own, rest: the
    margins of the first and of the second answers, (B, K); apart: the distances, (K, K) or (B, K, K).
    """

    off: Floats
    own: Floats
    rest: Floats
    apart: Floats


# B sums of tables -> B coefficients, NaN where one is not defined.
Coefficient = Callable[[Sums], Floats]


@dataclass(frozen=True)
class Measure:
    """A coefficient with its 95% interval, from `units` units.

    value: None if it is not defined. low, high: None where there is no value, or where only one label may be given.
    """

    value: float | None
    low: float | None
    high: float | None
    units: int

    def as_dict(self) -> dict[str, float | int | None]:
        return asdict(self)


def kinds_of(rows: Ints) -> tuple[Ints, Ints]:
    """Rows (U, C) of counts that are alike, once, and how many there are of each.

    Of 8,000 units with three answers of two labels there are four kinds. Each row is read as the digits of one number,
    as numbers are sorted a good deal faster than rows.
    """
    base = int(rows.max(initial=0)) + 1
    code, limit = np.zeros(len(rows), dtype=np.int64), 1
    for column in rows.T:
        if limit * base >= 2**63:
            code = np.unique(code, return_inverse=True)[1].astype(np.int64)
            limit = int(code.max(initial=0)) + 1
        code, limit = code * base + column, limit * base
    _, first, number = np.unique(code, return_index=True, return_counts=True)
    return rows[first], number.astype(np.int64)


def measure(
    value: Coefficient, tables: Tables, number: Ints, distance: Distance, *, seed: int, replicates: int = REPLICATES
) -> Measure:
    """tables: what a unit of each kind adds; number: the units of each kind. Distances that are made of the margins are
    made anew in each replicate.

    The interval is held to contain the value, as the posterior of a coefficient that is 1 is below 1.
    """
    units, size = int(number.sum()), tables.first.shape[1]
    if not units:
        return Measure(None, None, None, 0)
    rows, summed = _fixed(distance) if isinstance(distance, np.ndarray) else _moving(distance, size)
    point = float(value(summed((number @ rows(tables))[None]))[0])
    if np.isnan(point):
        return Measure(None, None, None, units)
    if size < 2:
        return Measure(point, None, None, units)
    imagined, weights = _imagined(number @ tables.own(), number @ tables.rest(), units)
    times = np.random.default_rng(seed).standard_gamma(
        np.concatenate([number, weights]), size=(replicates, len(number) + len(weights))
    )
    times *= units / times.sum(axis=1, keepdims=True)
    # Of many labels a unit has few: nearly all of its row is empty.
    each = scipy.sparse.csr_array(np.concatenate([rows(tables), rows(imagined)]))
    low, high = percentiles(value(summed((each.T @ times.T).T)))
    return Measure(point, min(low, point), max(high, point), units)


# How tables become rows that can be added up, and their sums what a coefficient is made of.
_Summing = tuple[Callable[[Tables], Floats], Callable[[Floats], Sums]]


def _fixed(apart: Floats) -> _Summing:
    size = len(apart)

    def rows(tables: Tables) -> Floats:
        off = ((tables.first @ apart) * tables.second).sum(axis=1) - tables.less @ np.diag(apart)
        return np.concatenate([off[:, None], tables.own(), tables.rest()], axis=1)

    return rows, lambda sums: Sums(sums[:, 0], sums[:, 1 : 1 + size], sums[:, 1 + size :], apart)


def _moving(distance: Callable[[Floats], Floats], size: int) -> _Summing:
    def summed(sums: Floats) -> Sums:
        tables = sums.reshape(-1, size, size)
        own = tables.sum(axis=2)
        apart = distance(own)
        return Sums((tables * apart).sum(axis=(1, 2)), own, tables.sum(axis=1), apart)

    return lambda tables: tables.whole().reshape(-1, size * size), summed


def _imagined(own: Floats, rest: Floats, units: int) -> tuple[Tables, Floats]:
    """The tables of units that nobody has answered, each with as many pairs as units have on average, and how many
    units each is: for each label one on which all agree on it, and one on which all differ. own, rest: the margins of
    all units together."""
    size, pairs = len(own), own.sum() / units
    # Half an answer more for each label, as all answers may be of one.
    first, second = own + 0.5, rest + 0.5
    scale = pairs / (first.sum() * second.sum() - first @ second)
    weights = np.full(size + 1, IMAGINED)
    weights[:size] /= size - 1
    weights[np.argmax(own + rest)] = IMAGINED
    agreed = np.eye(size)
    tables = Tables(
        np.concatenate([agreed * pairs, first[None] * scale]),
        np.concatenate([agreed, second[None]]),
        np.concatenate([np.zeros((size, size)), (first * second)[None] * scale]),
    )
    return tables, weights
