"""Graph.from_edges and from_scipy: what each form means, and what is refused."""

from __future__ import annotations

import tracemalloc
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
import scipy.sparse as sp
from compare import assert_bitwise
from hopfuse.errors import InputError
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from refusals import refused


def weights(graph: hf.Graph) -> dict[tuple[int, int, int], float]:
    """{(src, dst, type): weight} of the merged edges, undirected ones as (lower, higher)."""
    out = {}
    for a, b, w, t in zip(*(column.tolist() for column in graph.edges()), strict=True):
        key = (a, b, t) if graph.directed else (min(a, b), max(a, b), t)
        assert key not in out
        out[key] = w
    return out


def matrix(graph: hf.Graph) -> NDArray[np.float64]:
    """P's unnormalised entries summed over types: [i, j] is i -> j."""
    out = np.zeros((graph.num_nodes, graph.num_nodes))
    row = np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr))
    w = np.ones(graph.num_stored) if graph.weight is None else graph.weight
    np.add.at(out, (graph.node_of[graph.indices], graph.node_of[row]), w)
    return out


@pytest.mark.parametrize("largest", [2**31 - 2, 30_000_000, 1_000_032])
def test_one_wrong_id_does_not_take_the_memory(largest: int) -> None:
    """Refused before anything is allocated; num_nodes= says how many there are."""
    tracemalloc.start()
    implied = f"{largest + 1:,} nodes"
    with refused(InputError, "limit", "dst", given=largest, implied=implied, allowed=1_000_032, option="num_nodes"):
        hf.Graph.from_edges([0, 1], [1, largest])
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
    assert hf.Graph.from_edges([0, 1], [1, 1_000_031]).num_nodes == 1_000_032
    assert hf.Graph.from_edges([0], [2_000_000], num_nodes=2_000_001).num_nodes == 2_000_001


@pytest.mark.parametrize("bits", [32, 64])
def test_a_stored_entry_takes_at_most_40_bytes_while_an_undirected_graph_is_built(bits: int) -> None:
    """The arrays of the caller count too."""
    edges, nodes, rng = 250_000, 60_000, np.random.default_rng(5)
    tracemalloc.start()
    src, dst = (rng.integers(0, nodes, edges).astype(f"int{bits}") for _ in range(2))
    weight = rng.random(edges).astype(f"float{bits}")
    tracemalloc.reset_peak()
    graph = hf.Graph.from_edges(src, dst, weight, num_nodes=nodes)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most <= 40 * graph.num_stored


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.booleans(), st.integers(1, 3))
def test_rows_hold_the_edges_into_them_in_order(seed: int, n: int, directed: bool, types: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(0, 40))
    src, dst, weight = rng.integers(0, n, count), rng.integers(0, n, count), rng.random(count)
    kind = rng.integers(0, types, count)
    names = [f"t{i}" for i in range(types)]
    graph = hf.Graph.from_edges(src, dst, weight, num_nodes=n, directed=directed, edge_type=kind, edge_type_names=names)
    expected: dict[tuple[int, int, int], float] = {}
    for s, d, w, t in zip(src.tolist(), dst.tolist(), weight.tolist(), kind.tolist(), strict=True):
        for row, col in {(d, s)} if directed else {(d, s), (s, d)}:
            expected[row, col, t] = expected.get((row, col, t), 0.0) + w
    entries = sorted(expected)
    rows, cols, kinds = (np.array([entry[i] for entry in entries], np.int64) for i in range(3))
    assert (graph.indptr == np.searchsorted(rows, np.arange(n + 1))).all()
    assert (graph.indices == cols).all()
    assert graph.edge_type is None if types == 1 else (graph.edge_type == kinds).all()
    stored = np.array([expected[entry] for entry in entries])
    if count:
        assert_bitwise(graph.weight, stored.astype(np.float32), "weight")
    degree = np.zeros((n, types))
    for col, t, w in zip(cols.tolist(), kinds.tolist(), stored.astype(np.float32).tolist(), strict=True):
        degree[col, t] += w
    assert_bitwise(graph.degree, degree, "degree")


def test_a_masked_array_is_refused_where_something_is_masked() -> None:
    whole, masked = np.ma.masked_array([0, 1], [0, 0]), np.ma.masked_array([0, 1], [0, 1])
    assert hf.Graph.from_edges(whole, [1, 2]).num_nodes == 3
    with refused(InputError, "missing", "src"):
        hf.Graph.from_edges(masked, [1, 2])
    with refused(InputError, "missing", "weight"):
        hf.Graph.from_edges([1, 2], [2, 3], masked.astype(float))
    with refused(InputError, "missing", "X"):
        hf.Corpus.from_array(np.ma.masked_array(np.eye(2), np.eye(2)))


BAD_EDGES: list[tuple[tuple[Any, ...], dict[str, Any], tuple[Any, ...]]] = [
    (([0, 1], [1]), {}, ("length", "src", {"given": 2, "other": "dst", "allowed": 1})),
    (([0, -1], [1, 0]), {}, ("range", "src", {"given": -1})),
    (([0, 1], [1, -2]), {}, ("range", "dst", {"given": -2})),
    (([0, 5], [1, 0]), {"num_nodes": 3}, ("unknown", "src", {"given": 5, "nodes": 3})),
    (([0, 1], [1, 5]), {"num_nodes": 3}, ("unknown", "dst", {"given": 5, "nodes": 3})),
    (([0.5], [1]), {}, ("shape", "src", {"given": "float64(1,)"})),
    (([0], ["b"]), {}, ("shape", "dst")),
    (([[0]], [[1]]), {}, ("shape", "src", {"given": "int64(1, 1)"})),
    (([0], [1], [-1.0]), {}, ("range", "weight[0]", {"given": -1.0})),
    (([0, 0], [1, 2], [1.0, np.nan]), {}, ("range", "weight[1]")),
    (([0], [1], [np.inf]), {}, ("range", "weight[0]", {"given": np.inf})),
    (([0], [1], [1.0, 2.0]), {}, ("shape", "weight", {"given": "float64(2,)"})),
    (([0], [1], ["heavy"]), {}, ("shape", "weight")),
    (([0], [1], [1e39]), {}, ("range", "weight", {"src": 0, "dst": 1, "given": 1e39})),
    (([0], [1], [1e-39]), {}, ("range", "weight", {"src": 0, "dst": 1, "given": 1e-39})),
    (([0, 0], [1, 1], [3e38, 3e38]), {}, ("range", "weight", {"src": 0, "dst": 1, "given": 6e38})),
    (([0, 0], [1, 2], [1.5e38, 1.5e38]), {}, ("limit", "weight", {"node": 0})),
    (([0], [1]), {"num_nodes": -1}, ("range", "num_nodes", {"given": -1})),
    (([0], [1]), {"num_nodes": 2**31}, ("range", "num_nodes", {"given": 2**31})),
    (([0], [1]), {"num_nodes": 2.5}, ("range", "num_nodes", {"given": 2.5})),
    (([0], [1]), {"num_nodes": "2"}, ("range", "num_nodes", {"given": "2"})),
    (([0], [1]), {"num_nodes": True}, ("range", "num_nodes", {"given": True})),
    (([0], [1]), {"directed": "no"}, ("type", "directed", {"given": "no", "allowed": "True or False"})),
    (([0], [1]), {"directed": None}, ("type", "directed", {"given": None})),
    (([0], [1]), {"edge_type": [0, 1]}, ("shape", "edge_type", {"given": "int64(2,)"})),
    (([0], [1]), {"edge_type": [0.0]}, ("shape", "edge_type", {"given": "float64(1,)"})),
    (([0], [1]), {"edge_type": [-1]}, ("range", "edge_type", {"first": -1, "allowed": 0})),
    (
        ([0], [1]),
        {"edge_type": [2], "edge_type_names": ["a", "b"]},
        ("range", "edge_type", {"last": 2, "names": "2 names", "allowed": 1}),
    ),
    (([0], [1]), {"edge_type": [256]}, ("limit", "edge_type", {"given": 257, "allowed": 256})),
    (
        ([0], [1]),
        {"edge_type": [0], "edge_type_names": ["a", "a"]},
        ("duplicate", "edge_type_names", {"given": ["a", "a"]}),
    ),
    (([0], [1]), {"edge_type": [0], "edge_type_names": []}, ("limit", "edge_type", {"given": 0})),
    (([0], [1]), {"edge_type_names": ["a", "b"]}, ("unused", "edge_type_names", {"count": "2 names"})),
]


@pytest.mark.parametrize(("arguments", "options", "expected"), BAD_EDGES)
def test_a_bad_edge_list_is_refused(
    arguments: tuple[Any, ...], options: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    with refused(InputError, *expected):
        hf.Graph.from_edges(*arguments, **options)


def test_parallel_edges_of_a_type_are_summed_and_types_kept_apart() -> None:
    graph = hf.Graph.from_edges([0, 0, 0, 1], [1, 1, 1, 0], [1.0, 2.0, 4.0, 8.0], directed=True, edge_type=[0, 1, 0, 0])
    assert weights(graph) == {(0, 1, 0): 5.0, (0, 1, 1): 2.0, (1, 0, 0): 8.0}
    assert graph.edge_type_names == ("type0", "type1")
    assert graph.num_edge_types == 2


def test_both_directions_of_an_undirected_edge_add_up() -> None:
    graph = hf.Graph.from_edges([0, 1, 2], [1, 0, 1], [1.0, 2.0, 4.0])
    assert weights(graph) == {(0, 1, 0): 3.0, (1, 2, 0): 4.0}
    assert_bitwise(matrix(graph), np.array([[0.0, 3, 0], [3, 0, 4], [0, 4, 0]]))


def test_an_undirected_self_loop_counts_once() -> None:
    graph = hf.Graph.from_edges([0, 0], [0, 1], [2.0, 1.0])
    assert_bitwise(matrix(graph), np.array([[2.0, 1], [1, 0]]))
    assert graph.degree[graph.internal_of[0]].tolist() == [3.0]


def test_edges_of_weight_zero_carry_nothing() -> None:
    graph = hf.Graph.from_edges([0, 1], [1, 2], [0.0, 1.0])
    assert weights(graph) == {(1, 2, 0): 1.0}
    assert graph.num_nodes == 3


def test_duplicates_are_summed_in_float64_in_input_order() -> None:
    values = np.random.default_rng(1).random(1000)
    graph = hf.Graph.from_edges(np.zeros(1000, int), np.ones(1000, int), values)
    total = 0.0
    for value in values:
        total += value
    assert weights(graph) == {(0, 1, 0): float(np.float32(total))}


def test_an_unweighted_graph_stores_no_weights_and_reports_its_shape() -> None:
    graph = hf.Graph.from_edges([0, 1], [1, 2], num_nodes=5)
    assert graph.weight is None
    assert (graph.num_nodes, graph.num_stored, graph.directed) == (5, 4, False)
    assert repr(graph) == "Graph(undirected, nodes=5, stored=4, types=['edge'])"


def test_an_empty_graph_is_a_graph() -> None:
    assert hf.Graph.from_edges([], []).num_nodes == 0
    assert hf.ppr(hf.Graph.from_edges([], [], num_nodes=3), [{1: 2.0}]).scores.tolist() == [[0.0, 1.0, 0.0]]
    assert hf.ppr(hf.Graph.from_edges([], [], num_nodes=3, directed=True), [{1: 2.0}]).scores.tolist() == [[0, 1, 0]]


def test_integer_dtypes_give_the_same_graph() -> None:
    expected = weights(hf.Graph.from_edges([0, 1], [1, 2], [1, 2]))
    for dtype in (np.int8, np.uint8, np.int32, np.uint64):
        assert weights(hf.Graph.from_edges(np.array([0, 1], dtype), np.array([1, 2], dtype), [1, 2])) == expected


def test_an_asymmetric_matrix_names_a_pair() -> None:
    a = sp.csr_array(([1.0, 2.0, 5.0], ([0, 1, 2], [1, 0, 1])), (3, 3))
    for form in (a, a.tocsc(), a.tocoo(), a.astype(np.float32), a.astype(np.int64)):
        with refused(InputError, "conflict", "directed"):
            hf.Graph.from_scipy(form, directed=False)
    pair = sp.csr_array(([5.0], ([2], [0])), (3, 3))
    with refused(InputError, "conflict", "directed") as caught:
        hf.Graph.from_scipy(pair, directed=False)
    found = caught.value.values
    assert {(found["row"], found["column"]): found["given"], (found["column"], found["row"]): found["mirrored"]} == {
        (2, 0): 5.0,
        (0, 2): 0.0,
    }


BAD_MATRICES: list[tuple[Any, tuple[Any, ...]]] = [
    (np.eye(3), ("type", "A", {"given": "ndarray"})),
    ([[0, 1], [1, 0]], ("type", "A", {"given": "list"})),
    (sp.csr_array((2, 3)), ("shape", "A", {"given": (2, 3)})),
    (sp.csr_array(np.array([[0, -1.0], [-1.0, 0]])), ("range", "A.data[0]", {"given": -1.0})),
    (sp.csr_array(np.array([[0, np.nan], [np.nan, 0]])), ("range", "A.data[0]")),
    (sp.csr_array(np.array([[0, np.inf], [np.inf, 0]])), ("range", "A.data[0]", {"given": np.inf})),
    (sp.csr_array(np.array([[0, 1j], [1j, 0]])), ("shape", "A.data", {"given": "complex128(2,)"})),
]


@pytest.mark.parametrize(("a", "expected"), BAD_MATRICES)
@pytest.mark.parametrize("directed", [False, True])
def test_a_bad_matrix_is_refused(a: Any, expected: tuple[Any, ...], directed: bool) -> None:
    with refused(InputError, *expected):
        hf.Graph.from_scipy(a, directed=directed)


def test_the_direction_of_a_matrix_must_be_said_and_be_a_bool() -> None:
    with pytest.raises(TypeError, match="directed"):
        hf.Graph.from_scipy(sp.eye_array(2))  # type: ignore[call-arg]
    with refused(InputError, "type", "directed", given="yes"):
        hf.Graph.from_scipy(sp.eye_array(2), directed="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "convert", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.lil_array, sp.dok_array]
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, bool])
def test_every_matrix_format_and_dtype_means_its_entries(convert: Any, dtype: Any) -> None:
    rng = np.random.default_rng(2)
    dense = rng.integers(0, 2, (12, 12)).astype(dtype)
    symmetric = np.maximum(dense, dense.T)
    assert_bitwise(matrix(hf.Graph.from_scipy(convert(dense), directed=True)), dense.astype(np.float64))
    assert_bitwise(matrix(hf.Graph.from_scipy(convert(symmetric), directed=False)), symmetric.astype(np.float64))


def test_duplicates_of_a_matrix_are_summed_beyond_its_dtype() -> None:
    for directed in (False, True):
        ends = ([0, 0, 1, 1], [1, 1, 0, 0])
        a = sp.coo_array((np.full(4, 200, np.uint8), ends), (2, 2))
        graph = hf.Graph.from_scipy(a, directed=directed)
        assert_bitwise(matrix(graph), np.array([[0.0, 400], [400, 0]]))
        assert a.nnz == 4


def test_a_matrix_is_left_as_it_was() -> None:
    a = sp.csr_array((np.array([1.0, 2.0, 2.0]), np.array([1, 0, 0]), np.array([0, 1, 3])), (2, 2))
    copies = a.data.copy(), a.indices.copy(), a.indptr.copy()
    refused(lambda: hf.Graph.from_scipy(a, directed=False), ["A["])
    hf.Graph.from_scipy(a, directed=True)
    for now, then in zip((a.data, a.indices, a.indptr), copies, strict=True):
        assert_bitwise(now, then)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 20), directed=st.booleans())
def test_a_graph_goes_through_edges_and_arrays_and_scipy_unchanged(seed: int, n: int, directed: bool) -> None:
    rng = np.random.default_rng(seed)
    src, dst, w = rng.integers(0, n, 30), rng.integers(0, n, 30), rng.integers(1, 9, 30).astype(float)
    graph = hf.Graph.from_edges(src, dst, w, num_nodes=n, directed=directed)
    s, d, weight, kind = graph.edges()
    copies = [
        hf.Graph.from_edges(s, d, weight, num_nodes=n, directed=directed, edge_type=kind, edge_type_names=["edge"]),
        hf.Graph.from_arrays(graph.to_arrays(), directed=directed, edge_type_names=["edge"]),
        hf.Graph.from_scipy(sp.csr_array(matrix(graph)), directed=directed),
    ]
    for other in copies:
        for name, array in graph.to_arrays().items():
            assert_bitwise(other.to_arrays()[name], array, name)


def test_arrays_that_do_not_fit_are_refused() -> None:
    graph = hf.Graph.from_edges([0, 1], [1, 2], [1.0, 2.0])
    arrays = graph.to_arrays()

    def load(**changed: Any) -> Any:
        return lambda: hf.Graph.from_arrays({**arrays, **changed}, directed=False, edge_type_names=["edge"])

    refused(load(indices=arrays["indices"].astype(np.int64)), ["'indices'", "int64", "int32"])
    refused(load(weight=arrays["weight"][:-1]), ["'weight'", "(3,)", "(4,)"])
    refused(load(extra=np.zeros(3)), ["'extra'"])
    refused(load(indptr=np.zeros(4, np.int64)), ["indptr", "0", "4"])


@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([1, 3]), st.booleans())
def test_the_graph_of_some_nodes_is_that_of_the_edges_between_them(
    seed: int, directed: bool, types: int, weighted: bool
) -> None:
    rng = np.random.default_rng(seed)
    nodes, edges = int(rng.integers(1, 9)), int(rng.integers(0, 30))
    src, dst = rng.integers(0, nodes, (2, edges))
    weight = rng.integers(0, 4, edges) / 3 if weighted else np.ones(edges)
    kind, names = rng.integers(0, types, edges), [f"t{one}" for one in range(types)]
    how: dict[str, Any] = {"directed": directed, "edge_type_names": names}
    whole = hf.Graph.from_edges(src, dst, weight, edge_type=kind, num_nodes=nodes, **how)
    some = np.flatnonzero(rng.random(nodes) < 0.6)
    own, place = np.isin(src, some) & np.isin(dst, some), np.searchsorted(some, np.arange(nodes))
    # weights of parallel edges are summed and rounded once, in the whole graph; then they are the edges
    a, b, w, t = whole.edges()
    kept = np.isin(a, some) & np.isin(b, some)
    assert kept.sum() <= own.sum()
    made = hf.Graph.from_edges(place[a[kept]], place[b[kept]], w[kept], edge_type=t[kept], num_nodes=some.size, **how)
    found = whole.induced(some)
    expected = made.to_arrays()
    assert found.to_arrays().keys() == expected.keys()
    for name, array in found.to_arrays().items():
        assert array.dtype == expected[name].dtype
        assert_bitwise(array, expected[name])
    counts = np.bincount(whole.edges()[3], minlength=types)
    assert whole.counts_of_types().tolist() == counts.tolist()
