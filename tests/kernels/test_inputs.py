"""Checks that native code makes in one pass, against NumPy: restarts in the order of walks, and norms of vectors."""

from __future__ import annotations

from typing import Any, NamedTuple

import hopfuse as hf
import numpy as np
import pytest
from hopfuse import _native
from hopfuse._arrays.vectors import first_unscorable
from hopfuse.backends.node_weights import NodeWeights
from hopfuse.backends.walks import GivenRestart, Restart, read_dicts, read_restart
from hopfuse.errors import InputError
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

NODES = 9
#: Weights of nodes. -1 is a node for none, whatever its weight.
WEIGHTS = st.sampled_from([0.0, -0.0, 5e-324, 0.1, 1.0, 3.0, 1e300])


class Options(NamedTuple):
    """What may exclude seeds."""

    allow: Any = None
    node_weights: NodeWeights | None = None


NONE = Options()


def read(graph: hf.Graph, given: Any, *, may_be_empty: bool, options: Options = NONE) -> Restart:
    """Read restarts whose options do not depend on the batch."""
    return read_restart(graph, given, may_be_empty, lambda _: options)[0]


@st.composite
def given_rows(draw: st.DrawFn) -> list[list[tuple[int, float]]]:
    """Rows of distinct nodes in any order, with padding between them."""
    rows = []
    for _ in range(draw(st.integers(0, 5))):
        nodes = draw(st.permutations(range(NODES)))[: draw(st.integers(0, NODES))]
        row = [(node, draw(WEIGHTS)) for node in nodes]
        for _ in range(draw(st.integers(0, 2))):
            row.insert(draw(st.integers(0, len(row))), (-1, draw(st.sampled_from([0.0, -1.0, np.nan]))))
        rows.append(row)
    return rows


def as_arrays(rows: list[list[tuple[int, float]]]) -> GivenRestart:
    indptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    node = np.array([node for row in rows for node, _ in row], np.int64)
    return GivenRestart(indptr, node, np.array([weight for row in rows for _, weight in row], np.float64))


def graph(internal_of: list[int]) -> hf.Graph:
    """Nodes without edges, in an order of their own."""
    plain = hf.Graph.from_edges([], [], num_nodes=len(internal_of)).to_arrays()
    order = np.array(internal_of, np.int32)
    arrays = {**plain, "internal_of": order, "node_of": np.argsort(order).astype(np.int32)}
    return hf.Graph.from_arrays(arrays, directed=False, edge_type_names=("edge",))


@given(rows=given_rows(), order=st.permutations(range(NODES)))
def test_restarts_are_sorted_by_internal_node_without_what_weighs_nothing(
    rows: list[list[tuple[int, float]]], order: list[int]
) -> None:
    found = read(graph(order), as_arrays(rows), may_be_empty=True)
    expected = [sorted((order[node], weight) for node, weight in row if node >= 0 and weight > 0) for row in rows]
    assert found.indptr.tolist() == np.cumsum([0, *map(len, expected)]).tolist()
    assert found.node.tolist() == [node for row in expected for node, _ in row]
    assert found.value.tolist() == [weight for row in expected for _, weight in row]
    assert [array.dtype for array in found] == [np.int64, np.int32, np.float64]


@pytest.mark.parametrize(
    ("rows", "refusal"),
    [
        ([[(1, 1.0)], [(0, 1.0), (9, 1.0)]], ("unknown", "restart[1]")),
        ([[(-2, 1.0)]], ("unknown", "restart[0]")),
        ([[(1, 1.0)], [(3, np.nan)]], ("range", "restart[1]")),
        ([[(4, np.inf)]], ("range", "restart[0]")),
        ([[(4, -1.0), (5, np.nan)]], ("range", "restart[0]")),
        ([[(1, 1.0)], [(1, 0.0), (-1, 5.0)]], ("zero", "restart[1]")),
        ([[(1, 1.0)], [(1, 1.5e308), (2, 1.5e308)]], ("finite", "restart[1]")),
        ([[], [(1, np.nan)]], ("range", "restart[1]")),  # wrong entries are told before empty rows
        ([[(1, np.nan)], [(9, 1.0)]], ("unknown", "restart[1]")),  # and nodes before weights
        ([[(1, 1.5e308), (2, 1.5e308)], []], ("zero", "restart[1]")),
    ],
)
def test_wrong_restarts_are_told_by_their_row(
    rows: list[list[tuple[int, float]]], refusal: tuple[str, str | None]
) -> None:
    with refused(InputError, *refusal):
        read(graph(list(range(NODES))), as_arrays(rows), may_be_empty=False)


def test_a_row_may_be_empty_only_if_allowed() -> None:
    found = read(graph(list(range(NODES))), as_arrays([[], [(2, 0.0)]]), may_be_empty=True)
    assert isinstance(found, Restart)
    assert found.indptr.tolist() == [0, 0, 0]


@given(rows=given_rows(), order=st.permutations(range(NODES)))
def test_dicts_of_plain_numbers_are_read_as_arrays_are(rows: list[list[tuple[int, float]]], order: list[int]) -> None:
    ordered, plain = graph(order), [{node: weight for node, weight in row if node >= 0} for row in rows]
    found = read_dicts(ordered, plain, True)
    assert found is not None
    for mine, expected in zip(found, read(ordered, as_arrays(rows), may_be_empty=True), strict=True):
        assert mine.dtype == expected.dtype
        assert mine.tobytes() == expected.tobytes()
    whole = read_dicts(ordered, [dict.fromkeys(row, 2) for row in plain], True)
    assert whole is not None
    assert (whole.value == 2.0).all()


@pytest.mark.parametrize("as_dicts", [False, True])
def test_seeds_that_options_exclude_are_told_by_their_row_and_node(as_dicts: bool) -> None:
    order, rows = graph([8, 7, 6, 5, 4, 3, 2, 1, 0]), [[(1, 1.0)], [(6, 2.0), (3, 1.0)]]
    given: Any = [dict(row) for row in rows] if as_dicts else as_arrays(rows)
    own, shared = np.ones((2, NODES), np.uint8), np.ones((1, NODES), np.uint8)
    own[0, 2] = own[1, 5] = shared[0, 7] = 0
    for allow, row, node in ((own, 1, 3), (shared, 0, 1)):
        with refused(InputError, "conflict", f"restart[{row}]", node=node):
            read(order, given, may_be_empty=False, options=Options(allow))
        with refused(InputError, "conflict", f"restart[{row}]", node=node):
            read(order, given, may_be_empty=False, options=Options(allow, weights_of(1.0, 0.0)))
    with refused(InputError, "conflict", "restart[1]", node=6):
        read(order, given, may_be_empty=False, options=Options(node_weights=weights_of(0.0, 1.0)))
    with refused(InputError, "conflict", "restart[0]", node=1):
        read(order, given, may_be_empty=False, options=Options(node_weights=weights_of(1.0, 0.0)))
    own[1] = shared[0, 7] = 1
    for allow in (own, shared):
        found = read(order, given, may_be_empty=False, options=Options(allow, weights_of(0.5, 2.0)))
        assert found.node.tolist() == [7, 2, 5]


def weights_of(own: float, other: float) -> NodeWeights:
    """Weights of the internal node 2 of two queries, and of their other nodes."""
    return NodeWeights(np.full((2, 1), own, np.float32), np.array([2], np.int32), np.full(2, other, np.float32))


class OtherMapping(dict[Any, Any]):
    """A mapping that need not be what its memory says."""


@pytest.mark.parametrize(
    "rows",
    [
        [{np.int64(1): 1.0}],
        [{1: np.float64(1.0)}],
        [{1: True}],
        [OtherMapping({1: 1.0})],
        [{1: 1.0}, {True: 1.0}],
        [{1: 1.0}, {9: 1.0}],
        [{-1: 1.0}],
        [{2**80: 1.0}],
        [{1: 10**400}],
        [{1: float("nan")}],
        [{1: -1.0}],
        [{1: 1.0}, {}],
        [{1: 1.5e308, 2: 1.5e308}],
        [{1: "1"}],
        [[1.0] * NODES],
        [{1: 1.0}, 3],
        [1.0] * NODES,
    ],
)
def test_what_is_not_plain_or_is_refused_is_left_to_the_general_way(rows: Any) -> None:
    assert read_dicts(graph(list(range(NODES))), rows, False) is None


@pytest.mark.parametrize("dim", [1, 7, 8, 9, 384])
@pytest.mark.parametrize("row", [0, 2, 4])
def test_the_first_vector_without_a_score_is_found(dim: int, row: int) -> None:
    vectors = np.random.default_rng(dim).standard_normal((5, dim)).astype(np.float32)
    assert first_unscorable(vectors, needs_length=True) is None
    for at in (0, dim - 1):
        for value in (np.nan, np.inf, -np.inf, np.float32(2e19)):
            wrong = vectors.copy()
            wrong[row:, at] = value
            assert first_unscorable(wrong, needs_length=False) == (row, False)
    short = vectors.copy()
    short[row] = 0.0
    assert first_unscorable(short, needs_length=False) is None
    assert first_unscorable(short, needs_length=True) == (row, True)
    short[4, 0] = np.nan  # what has no score at all is told first
    assert first_unscorable(short, needs_length=True) == (4, False)


def test_the_borders_of_a_squared_norm() -> None:
    largest, smallest = float(np.finfo(np.float32).max) / 2, float(np.finfo(np.float32).tiny)
    side = np.float32(np.sqrt(largest))
    for entry, fits in ((np.nextafter(side, np.float32(0)), True), (np.nextafter(side, np.float32(np.inf)), False)):
        assert (float(entry) ** 2 <= largest) == fits
        assert (first_unscorable(np.array([[entry]]), needs_length=False) is None) == fits
    side = np.float32(np.sqrt(smallest))
    for entry in (np.nextafter(side, np.float32(0)), side, np.nextafter(side, np.float32(1))):
        assert (first_unscorable(np.array([[entry]]), needs_length=True) is None) == (float(entry) ** 2 >= smallest)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_find_the_first_of_several_faults(threads: int) -> None:
    vectors = np.random.default_rng(3).standard_normal((9_000, 33)).astype(np.float32)
    assert first_unscorable(vectors, True, threads) is None
    vectors[[8_000, 4_000, 8_999]] = 0.0
    assert first_unscorable(vectors, True, threads) == (4_000, True)
    assert first_unscorable(vectors, False, threads) is None
    vectors[[8_500, 7_000, 7_001, 8_998], [0, 16, 31, 32]] = np.nan, np.inf, 1e30, -np.inf
    for needs_length in (False, True):
        assert first_unscorable(vectors, needs_length, threads) == (7_000, False)


def test_no_vectors_and_no_rows_are_right() -> None:
    assert first_unscorable(np.zeros((0, 3), np.float32), needs_length=True) is None
    nothing: Any = _native.read_restarts(
        np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int32), False,
        np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0),
    )  # fmt: skip
    assert nothing is None
