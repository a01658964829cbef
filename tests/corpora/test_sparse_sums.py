"""Sums over sparse tables, and components of graphs, against SciPy's."""

import numpy as np
import pytest
import scipy

from corpora.core.sparse_sums import LONG, connected_components, row_sums


@pytest.mark.parametrize("longest", [3, 5 * LONG])
@pytest.mark.parametrize("seed", range(5))
def test_sums_of_rows_are_those_of_a_sparse_product_to_the_last_digit(longest, seed):
    drawing = np.random.default_rng(seed)
    rows, lengths = drawing.normal(size=(50, 7)), drawing.integers(0, longest, 30)
    offsets = np.append(0, np.cumsum(lengths))
    indices = drawing.integers(0, len(rows), offsets[-1])
    table = scipy.sparse.csr_array((np.ones(len(indices)), indices, offsets), shape=(len(lengths), len(rows)))
    np.testing.assert_array_equal(row_sums(rows, indices, offsets), table @ rows)


def test_without_groups_there_are_no_sums():
    none = np.zeros(0, np.int64)
    assert row_sums(np.ones((2, 3)), none, np.zeros(1, np.int64)).shape == (0, 3)
    assert row_sums(np.ones((2, 3)), none, np.zeros(3, np.int64)).tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("seed", range(20))
def test_components_are_those_of_scipy_in_the_order_of_their_first_nodes(seed):
    drawing = np.random.default_rng(seed)
    size = 60
    first, second = drawing.integers(0, size, (2, drawing.integers(0, size)))
    graph = scipy.sparse.coo_array((np.ones(len(first)), (first, second)), shape=(size, size))
    _, expected = scipy.sparse.csgraph.connected_components(graph, directed=False)
    assert connected_components(first, second, size).tolist() == expected.tolist()


def test_a_long_chain_is_one_component():
    node = np.random.default_rng(1).permutation(20_000)
    assert not connected_components(node[:-1], node[1:], len(node)).any()
