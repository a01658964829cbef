"""Intervals for coefficients that are computed from pairs of answers, as all measures in coefficients.py are.

Each unit contributes a table that counts how often one answer of a pair is c and the other is k. A coefficient is a
function of the sum of these tables. Its interval runs from the 2.5% to the 97.5% quantile of a Bayesian bootstrap over
units (Rubin 1981, The Bayesian Bootstrap, Annals of Statistics 9(1)).

Imaginary units are added to the observed ones: half a unit on which all agree on the most frequent label, half a unit
on which all agree on another label, and half a unit on which all differ, with labels at their observed frequencies.
With two labels and two answers per unit, this is Jeffreys' prior, Dirichlet(1/2, 1/2, 1/2). Without the imaginary
units, outcomes that were not observed would count as impossible, and the intervals would be too narrow if a label is
rare (benchmarks/agreeing.py compares both).

The annotators are treated as fixed, so an interval applies to other units of this kind, but not to other annotators.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
import scipy  # loads `scipy.sparse` on first use

from annotate.core.aggregation.answer_table import Floats, Ints
from annotate.core.estimation.resampling import percentiles

REPLICATES = 1000
IMAGINED = 0.5  # number of imaginary units of each kind

# Squared distances of the labels (K, K), or a function from margins (..., K) to distances (..., K, K).
Distance = Floats | Callable[[Floats], Floats]


class Tables(NamedTuple):
    """Tables of pairs of answers. Each has one row in all three arrays, which have the shape (rows, K).

    A table is outer(first, second) - diag(less). These factors are stored instead of the tables, because the tables are
    sparse if there are many labels. For example, if three people choose label sets for 300 documents, nearly every set
    is a label of its own, and the tables would have 200 million cells.
    """

    first: Floats
    second: Floats
    less: Floats

    def own(self) -> Floats:
        """Return the row sums of each table, which are the margins of the first answers of the pairs."""
        margins: Floats = self.first * self.second.sum(axis=1, keepdims=True) - self.less
        return margins

    def rest(self) -> Floats:
        margins: Floats = self.second * self.first.sum(axis=1, keepdims=True) - self.less
        return margins

    def whole(self) -> Floats:
        """Return the full tables, (rows, K, K)."""
        cells: Floats = self.first[:, :, None] * self.second[:, None, :]
        places = np.arange(self.less.shape[1])
        cells[:, places, places] -= self.less
        return cells


class Sums(NamedTuple):
    """The inputs of a coefficient, for B sums of tables.

    off: sum of cells times distances, (B,).
    own, rest: margins of the first and second answers, (B, K).
    apart: distances, (K, K) or (B, K, K).
    """

    off: Floats
    own: Floats
    rest: Floats
    apart: Floats


# A function that computes B coefficients from B sums of tables. A coefficient is NaN if it is undefined.
Coefficient = Callable[[Sums], Floats]


@dataclass(frozen=True)
class Measure:
    """A coefficient with its 95% interval.

    value: the coefficient; None if it is undefined.
    low, high: ends of the interval; None if there is no value or only one label.
    units: number of units.
    """

    value: float | None
    low: float | None
    high: float | None
    units: int

    def as_dict(self) -> dict[str, float | int | None]:
        return asdict(self)


def kinds_of(rows: Ints) -> tuple[Ints, Ints]:
    """Return the distinct rows of an array of counts (U, C), and how often each occurs.

    Many units have the same counts: with three answers from two labels, 8,000 units have only four kinds. Each row is
    encoded as one integer, because integers sort much faster than rows.
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
    """Compute a coefficient and its interval.

    If necessary, the interval is extended to contain the value. For example, the posterior of a coefficient of 1 lies
    below 1.

    value: function from sums of tables to coefficients.
    tables: for each kind of unit, the table that one unit contributes.
    number: number of units of each kind.
    distance: distances of labels. If it is a function of the margins, it is evaluated again in each replicate.
    seed, replicates: seed and number of replicates.
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
    # If there are many labels, a unit uses only a few of them, so its row is nearly empty.
    each = scipy.sparse.csr_array(np.concatenate([rows(tables), rows(imagined)]))
    low, high = percentiles(value(summed((each.T @ times.T).T)))
    return Measure(point, min(low, point), max(high, point), units)


# Two functions. The first turns tables into rows that can be added up. The second turns sums of these rows into the
# inputs of a coefficient.
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
    """Return the tables and weights of the imaginary units.

    For each label, there is one unit on which all answers have this label. On one more unit, all answers differ. Each
    unit has the mean number of pairs per unit.

    own, rest: margins of all units together.
    units: number of units.
    """
    size, pairs = len(own), own.sum() / units
    # Half an answer per label is added, in case all answers have the same label.
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
