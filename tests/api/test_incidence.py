"""Incidence: pairs in any order, normalised rows, refusals."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7)), unique=True, max_size=30)


@given(pairs=PAIRS, weighted=st.booleans())
def test_rows_hold_their_pairs_by_ascending_columns(pairs: list[tuple[int, int]], weighted: bool) -> None:
    weights = [1.0 + at for at in range(len(pairs))] if weighted else None
    rows, columns = [row for row, _ in pairs], [column for _, column in pairs]
    made = hf.Incidence.from_pairs(rows, columns, weights, num_rows=6, num_columns=8)
    assert (made.num_rows, made.num_columns) == (6, 8)
    weight_of = dict(zip(pairs, weights or [1.0] * len(pairs), strict=True))
    for row in range(6):
        entries = slice(made.indptr[row], made.indptr[row + 1])
        held = sorted(column for r, column in pairs if r == row)
        assert made.indices[entries].tolist() == held
        if made.weights is not None:
            assert made.weights[entries].tolist() == [weight_of[row, column] for column in held]
    assert (made.weights is None) is not weighted
    types = (made.indptr.dtype, made.indices.dtype)
    assert types == (np.int64, np.int32)


@pytest.mark.parametrize("weighted", [False, True])
def test_normalised_rows_sum_to_1(weighted: bool) -> None:
    weights = [3.0, 1.0, 0.1, 0.0, 0.0, 7.0] if weighted else None
    made = hf.Incidence.from_pairs([0, 0, 0, 2, 2, 4], [1, 5, 2, 3, 4, 0], weights, num_rows=6, num_columns=6)
    shares = made.normalised()
    assert (shares.indices is made.indices, shares.num_columns) == (True, 6)
    assert shares.weights is not None
    if weighted:
        total = 3.0 + float(np.float32(0.1)) + 1.0
        expected = [3.0 / total, float(np.float32(0.1)) / total, 1.0 / total, 0.0, 0.0, 1.0]
    else:
        expected = [1 / 3, 1 / 3, 1 / 3, 0.5, 0.5, 1.0]
    assert shares.weights.tolist() == np.array(expected, np.float32).tolist()
    again = shares.normalised().weights
    np.testing.assert_allclose(np.asarray(again), shares.weights, rtol=1e-6)


def test_normalised_of_nothing_and_of_the_largest_numbers() -> None:
    empty = hf.Incidence.from_pairs([], [], num_rows=0, num_columns=0)
    assert empty.normalised().indices.size == 0
    assert repr(empty) == "Incidence(rows=0, columns=0, entries=0, weighted=False)"
    largest = float(np.finfo(np.float32).max)
    wide = hf.Incidence.from_pairs([0, 0], [0, 1], [largest, largest], num_rows=1, num_columns=2)
    assert np.asarray(wide.normalised().weights).tolist() == [0.5, 0.5]


GOOD: dict[str, Any] = {"rows": [1, 0], "columns": [2, 1], "weights": [1.0, 2.0], "num_rows": 2, "num_columns": 3}
BAD: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
    ({"rows": [1, 2]}, ("range", "rows", {"given": 2, "size": "num_rows", "allowed": 2})),
    ({"columns": [-1, 0]}, ("range", "columns", {"given": -1, "size": "num_columns", "allowed": 3})),
    ({"num_rows": 0}, ("range", "rows", {"size": "num_rows", "allowed": 0})),
    ({"rows": [1.0, 0.0]}, ("shape", "rows", {"given": "float64(2,)"})),
    ({"rows": [[1, 0]]}, ("shape", "rows", {"given": "int64(1, 2)"})),
    ({"rows": [1]}, ("length", "rows", {"given": 1, "other": "columns", "allowed": 2})),
    ({"weights": [1.0]}, ("shape", "weights", {"given": "float64(1,)"})),
    ({"weights": ["a", "b"]}, ("shape", "weights", {"allowed": "real numbers of shape (2,)"})),
    ({"weights": [1.0, -2.0]}, ("range", "weights[1]", {"given": -2.0})),
    ({"weights": [np.nan, 2.0]}, ("range", "weights[0]")),
    ({"weights": [1e39, 2.0]}, ("range", "weights[0]", {"given": np.inf})),
    ({"num_rows": -1}, ("range", "num_rows", {"given": -1})),
    ({"num_rows": 2.0}, ("range", "num_rows", {"given": 2.0})),
    ({"num_columns": True}, ("range", "num_columns", {"given": True})),
    ({"num_columns": 2**31}, ("range", "num_columns", {"given": 2**31})),
]


@pytest.mark.parametrize(("change", "expected"), BAD, ids=[str(next(iter(change.items())))[:40] for change, _ in BAD])
def test_invalid_pairs_are_named(change: dict[str, Any], expected: tuple[Any, ...]) -> None:
    given = GOOD | change
    with refused(InputError, *expected):
        hf.Incidence.from_pairs(given.pop("rows"), given.pop("columns"), **given)


def test_the_first_pair_that_is_there_twice_is_named() -> None:
    rows, columns = [2, 0, 1, 0, 2, 1], [0, 3, 1, 3, 0, 1]
    with refused(InputError, "duplicate", "rows", first=1, second=3, row=0, column=3):
        hf.Incidence.from_pairs(rows, columns, num_rows=3, num_columns=4)


INDPTR, INDICES, WEIGHTS = np.array([0, 2, 3]), np.array([0, 2, 1], np.int32), np.ones(3, np.float32)
ARRAYS: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
    ({"indptr": np.array([0, 2])}, ("order", "indptr", {"entries": 3})),
    ({"indptr": np.array([0, 4, 3])}, ("order", "indptr", {"entries": 3})),
    ({"indptr": np.array([], np.int64)}, ("order", "indptr", {"entries": 3})),
    ({"indptr": np.array([0, 3, 3])}, ("order", "indices")),
    ({"indptr": [0, 2, 3]}, ("dtype", "indptr", {"given": "list", "allowed": "int64"})),
    ({"indices": INDICES.astype(np.int64)}, ("dtype", "indices", {"given": "int64(3,)", "allowed": "int32"})),
    ({"indices": np.array([0, 9, 2, 9, 1], np.int32)[::2]}, ("shape", "indices")),
    ({"indptr": np.frombuffer(b"." + INDPTR.tobytes(), np.int64, offset=1)}, ("shape", "indptr")),
    ({"weights": np.frombuffer(b"." + WEIGHTS.tobytes(), np.float32, offset=1)}, ("shape", "weights")),
    ({"indices": np.array([0, 3, 1], np.int32)}, ("range", "indices", {"last": 2})),
    ({"indices": np.array([2, 2, 1], np.int32)}, ("order", "indices")),
    ({"weights": WEIGHTS[:2]}, ("length", "weights", {"given": 2, "other": "indices", "allowed": 3})),
    ({"weights": WEIGHTS.astype(np.float64)}, ("dtype", "weights", {"allowed": "float32"})),
    ({"weights": -WEIGHTS}, ("range", "weights[0]", {"given": -1.0})),
    ({"num_columns": -1}, ("range", "num_columns", {"given": -1})),
]


@pytest.mark.parametrize(("change", "expected"), ARRAYS)
def test_invalid_arrays_are_named(change: dict[str, Any], expected: tuple[Any, ...]) -> None:
    given: dict[str, Any] = {"indptr": INDPTR, "indices": INDICES, "weights": WEIGHTS, "num_columns": 3}
    assert hf.Incidence(**given).num_rows == 2
    with refused(InputError, *expected):
        hf.Incidence(**(given | change))


@given(pairs=PAIRS, others=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8), flip=st.booleans())
def test_from_graph_has_each_first_nodes_later_neighbours_once(
    pairs: list[tuple[int, int]], others: list[tuple[int, int]], flip: bool
) -> None:
    """Edges among the rows, and among the columns, count for nothing; twice, and of two types, counts once."""
    edges = [(row, column + 6, 0) for row, column in pairs] + [(column + 6, row, 1) for row, column in pairs[::2]]
    edges += [(a, b, 0) for a, b in others] + [(a + 6, b + 6, 2) for a, b in others]
    src, dst, types = zip(*(edges[::-1] if flip else edges), strict=True) if edges else ((), (), ())
    graph = hf.Graph.from_edges(src, dst, edge_type=types, num_nodes=14)
    made = hf.Incidence.from_graph(graph, 6)
    expected = hf.Incidence.from_pairs([r for r, _ in pairs], [c + 6 for _, c in pairs], num_rows=6, num_columns=14)
    assert made.indptr.tolist() == expected.indptr.tolist()
    assert made.indices.tolist() == expected.indices.tolist()
    assert (made.weights, made.num_columns) == (None, 14)


def test_a_graph_has_as_many_rows_as_nodes_at_most() -> None:
    graph = hf.Graph.from_edges([0], [2])
    assert hf.Incidence.from_graph(graph, 3).indices.size == 0
    with refused(InputError, "range", "num_rows", given=4, allowed="a whole number from 0 to 3"):
        hf.Incidence.from_graph(graph, 4)
    with refused(InputError, "type", "graph", given="ndarray"):
        hf.Incidence.from_graph(np.eye(3), 2)  # type: ignore[arg-type]
