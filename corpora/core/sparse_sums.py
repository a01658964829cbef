"""Sums over sparse tables, and the connected components of a graph, on arrays of numpy."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]

LONG = 10  # groups that are longer than this on average are added up one after the other


def row_sums(rows: Floats, indices: Ints, offsets: Ints) -> Floats:
    """Return the sum of the rows with the indices of each group (groups, columns).

    Rows are added in the order of the indices, so the result does not depend on how the sums are computed.

    rows: the rows, (number of rows, columns)
    indices: the indices of the rows to add up, group by group
    offsets: where each group begins in `indices`, and at last where the last one ends (groups + 1,)
    """
    starts, lengths = offsets[:-1], np.diff(offsets)
    sums: Floats = np.zeros((len(lengths), rows.shape[1]))
    if lengths.sum() > LONG * len(lengths):
        for group in np.flatnonzero(lengths):
            sums[group] = rows.take(indices[offsets[group] : offsets[group + 1]], axis=0).sum(axis=0)
        return sums
    # Most groups are short, so add the first row of every group, then the second, and so on.
    shortest = int(lengths.min(initial=0))
    for place in range(shortest):
        sums += rows.take(indices[starts + place], axis=0)
    for place in range(shortest, int(lengths.max(initial=0))):
        has_more = np.flatnonzero(lengths > place)
        sums[has_more] += rows.take(indices[starts[has_more] + place], axis=0)
    return sums


def connected_components(first: Ints, second: Ints, size: int) -> Ints:
    """Return the number of the component of each node, counted in the order of the components' first nodes (size,).

    first, second: the nodes that each edge connects
    size: the number of nodes
    """
    root = np.arange(size)
    while True:
        low, high = np.minimum(root[first], root[second]), np.maximum(root[first], root[second])
        if (low == high).all():
            return np.unique(root, return_inverse=True)[1]
        np.minimum.at(root, high, low)
        while (root != (shorter := root[root])).any():
            root = shorter
