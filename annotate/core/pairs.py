"""Intervals of coefficients that are counted from pairs of answers: every measure in agreement.py.

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

import numpy as np
import scipy  # which loads its part `sparse` when it is first used

from annotate.core.answers import Floats, Ints
from annotate.core.resampling import percentiles

REPLICATES = 1000
IMAGINED = 0.5  # how many units of each kind that is imagined

# Sums of tables, shape (B, K, K) -> B coefficients, NaN where one is not defined.
Coefficient = Callable[[Floats], Floats]


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


def measure(value: Coefficient, tables: Floats, number: Ints, *, seed: int, replicates: int = REPLICATES) -> Measure:
    """tables: what a unit of each kind adds, (kinds, K, K); number: the units of each kind.

    The interval is held to contain the value, as the posterior of a coefficient that is 1 is below 1.
    """
    units = int(number.sum())
    if not units:
        return Measure(None, None, None, 0)
    total = np.tensordot(number.astype(np.float64), tables, 1)
    point = float(value(total[None])[0])
    if np.isnan(point):
        return Measure(None, None, None, units)
    if len(total) < 2:
        return Measure(point, None, None, units)
    imagined, weights = _imagined(total, units)
    times = np.random.default_rng(seed).standard_gamma(
        np.concatenate([number, weights]), size=(replicates, len(number) + len(weights))
    )
    times *= units / times.sum(axis=1, keepdims=True)
    # Of many labels a unit has few: nearly all of its table is empty.
    each = scipy.sparse.csr_array(np.concatenate([tables, imagined]).reshape(times.shape[1], -1))
    low, high = percentiles(value((each.T @ times.T).T.reshape(-1, *total.shape)))
    return Measure(point, min(low, point), max(high, point), units)


def _imagined(total: Floats, units: int) -> tuple[Floats, Floats]:
    """The tables of units that nobody has answered, each with as many pairs as units have on average, and how many
    units each is: for each label one on which all agree on it, and one on which all differ."""
    size = len(total)
    own, rest = total.sum(axis=1), total.sum(axis=0)
    agreed = np.eye(size)[:, :, None] * np.eye(size)[:, None, :]
    # Half an answer more for each label, as all answers may be of one.
    differ = np.outer(own + 0.5, rest + 0.5) * (1 - np.eye(size))
    weights = np.full(size + 1, IMAGINED)
    weights[:size] /= size - 1
    weights[np.argmax(own + rest)] = IMAGINED
    tables = np.concatenate([agreed, differ[None] / differ.sum()]) * total.sum() / units
    return tables, weights
