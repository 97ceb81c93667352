"""Every argument of ppr and ppr_topk: what is refused, and that the message says what was given and what is allowed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
import scipy.sparse as sp
from compare import assert_bitwise
from hopfuse.errors import InputError
from refusals import refused

GRAPH = {"src": [0, 1, 2, 3], "dst": [1, 2, 3, 0], "edge_type": [0, 1, 0, 1], "edge_type_names": ["a", "b"]}
SEED = [{0: 1.0}, {2: 1.0}]


@pytest.fixture
def graph() -> hf.Graph:
    return hf.Graph.from_edges(**GRAPH, num_nodes=5)


BAD_RESTARTS: list[tuple[Any, tuple[str, str | None]]] = [
    (np.zeros(4), ("shape", "restart")),
    (np.zeros((2, 4)), ("shape", "restart")),
    (np.zeros((2, 5, 1)), ("shape", "restart")),
    ([[0.0] * 5], ("zero", "restart[0]")),
    (np.array([[1.0, 0, 0, 0, 0], [0, 0, 0, 0, 0]]), ("zero", "restart[1]")),
    (np.array([1.0, -0.5, 0, 0, 0]), ("range", "restart[0]")),
    (np.array([1.0, np.nan, 0, 0, 0]), ("range", "restart[0]")),
    (np.array([[1.0, 0, 0, 0, 0], [0, 0, np.inf, 0, 0]]), ("range", "restart[1]")),
    (np.array([1e308, 1e308, 0, 0, 0]), ("finite", "restart[0]")),
    (np.array(["a"] * 5), ("dtype", "restart")),
    (np.ones(5, complex), ("dtype", "restart")),
    ([{}], ("zero", "restart[0]")),
    ([{0: 1.0}, {}], ("zero", "restart[1]")),
    ([{5: 1.0}], ("unknown", "restart[0]")),
    ([{0: 1.0}, {-1: 1.0}], ("unknown", "restart[1]")),
    ([{0.5: 1.0}], ("type", "restart[0]")),
    ([{True: 1.0}], ("type", "restart[0]")),
    ([{"x": 1.0}], ("type", "restart[0]")),
    ([{0: "heavy"}], ("type", "restart")),
    ([{0: None}], ("range", "restart[0]")),
    ([{0: -1.0}], ("range", "restart[0]")),
    ([{0: float("nan")}], ("range", "restart[0]")),
    ([[1.0, 0, 0], [1.0]], ("shape", "restart")),
    (None, ("dtype", "restart")),
    ("seeds", ("dtype", "restart")),
    (sp.csr_array((2, 4)), ("shape", "restart")),
    (sp.csr_array(([1.0, -1.0], ([0, 1], [0, 3])), (2, 5)), ("range", "restart[1]")),
    (sp.csr_array(([1.0], ([1], [0])), (2, 5)), ("zero", "restart[0]")),
    (sp.csr_array(([np.nan], ([0], [2])), (1, 5)), ("range", "restart[0]")),
]

BAD_OPTIONS: list[tuple[dict[str, Any], tuple[str, str | None]]] = [
    ({"damping": 1.0}, ("range", "damping")),
    ({"damping": -0.1}, ("range", "damping")),
    ({"damping": float("nan")}, ("range", "damping")),
    ({"damping": [0.5, 1.5]}, ("range", "damping")),
    ({"damping": [0.5] * 3}, ("shape", "damping")),
    ({"damping": [[0.5], [0.5]]}, ("shape", "damping")),
    ({"damping": "half"}, ("dtype", "damping")),
    ({"damping": None}, ("dtype", "damping")),
    ({"tol": 0.0}, ("range", "tol")),
    ({"tol": -1e-6}, ("range", "tol")),
    ({"tol": float("nan")}, ("range", "tol")),
    ({"tol": float("inf")}, ("range", "tol")),
    ({"tol": True}, ("range", "tol")),
    ({"tol": "small"}, ("range", "tol")),
    ({"tol": None}, ("range", "tol")),
    ({"max_iter": 0}, ("range", "max_iter")),
    ({"max_iter": -3}, ("range", "max_iter")),
    ({"max_iter": 2.0}, ("range", "max_iter")),
    ({"max_iter": True}, ("range", "max_iter")),
    ({"edge_type_weights": [1.0]}, ("shape", "edge_type_weights")),
    ({"edge_type_weights": [[1.0, 1.0]] * 3}, ("shape", "edge_type_weights")),
    ({"edge_type_weights": [1.0, -1.0]}, ("range", "edge_type_weights[1]")),
    ({"edge_type_weights": [1.0, np.inf]}, ("range", "edge_type_weights[1]")),
    ({"edge_type_weights": [np.nan, 1.0]}, ("range", "edge_type_weights[0]")),
    ({"edge_type_weights": ["a", "b"]}, ("dtype", "edge_type_weights")),
    ({"edge_type_weights": [1.0, 1e-40]}, ("range", "edge_type_weights[0]")),
    ({"edge_type_weights": [0.8, 0.4], "edge_type_norm": "per_type"}, ("range", "edge_type_weights[0]")),
    ({"edge_type_weights": [[0.5, 0.5], [1, 1]], "edge_type_norm": "per_type"}, ("range", "edge_type_weights[1]")),
    ({"edge_type_norm": "row"}, ("choice", "edge_type_norm")),
    ({"edge_type_norm": None}, ("choice", "edge_type_norm")),
    ({"allow": [True] * 4}, ("shape", "allow")),
    ({"allow": np.ones((3, 5), bool)}, ("shape", "allow")),
    ({"allow": [0, 5]}, ("unknown", "allow")),
    ({"allow": [True, True, False, True, True]}, ("conflict", "restart[1]")),
    ({"allow": np.array([[False] + [True] * 4, [True] * 5])}, ("conflict", "restart[0]")),
    ({"backend": "tpu"}, ("choice", "backend")),
    ({"backend": None}, ("choice", "backend")),
    ({"threads": 0}, ("range", "threads")),
    ({"threads": 1025}, ("range", "threads")),
    ({"threads": 1.0}, ("range", "threads")),
    ({"threads": True}, ("range", "threads")),
]

BAD_OUTS: list[tuple[Any, tuple[str, str | None]]] = [
    (np.zeros((2, 4), np.float32), ("shape", "out")),
    (np.zeros((2, 5)), ("shape", "out")),
    (np.zeros((5, 2), np.float32).T, ("shape", "out")),
    ([[0.0] * 5] * 2, ("type", "out")),
]

BAD_TOPK: list[tuple[dict[str, Any], tuple[str, str | None]]] = [
    ({"k": -1}, ("range", "k")),
    ({"k": 2.0}, ("range", "k")),
    ({"k": True}, ("range", "k")),
    ({"k": None}, ("range", "k")),
    ({"k": 2, "stop": "soon"}, ("choice", "stop")),
    ({"k": 2, "candidates": [0, 5]}, ("unknown", "candidates")),
    ({"k": 2, "candidates": [-1]}, ("unknown", "candidates")),
    ({"k": 2, "candidates": [0.5]}, ("shape", "candidates")),
    ({"k": 2, "candidates": [True] * 4}, ("shape", "candidates")),
    ({"k": 2, "candidates": np.ones((3, 5), bool)}, ("shape", "candidates")),
    ({"k": 2, "candidates": [[0], [1], [2]]}, ("length", "candidates")),
]


@pytest.mark.parametrize(("restart", "refusal"), BAD_RESTARTS)
def test_a_bad_restart_is_refused(graph: hf.Graph, restart: Any, refusal: tuple[str, str | None]) -> None:
    with refused(InputError, *refusal):
        hf.ppr(graph, restart)
    with refused(InputError, *refusal):
        hf.ppr_topk(graph, restart, 2)


@pytest.mark.parametrize(("options", "refusal"), BAD_OPTIONS)
def test_a_bad_option_is_refused_and_out_is_untouched(
    graph: hf.Graph, options: dict[str, Any], refusal: tuple[str, str | None]
) -> None:
    out = np.full((2, 5), 7.0, np.float32)
    with refused(InputError, *refusal):
        hf.ppr(graph, SEED, out=out, **options)
    with refused(InputError, *refusal):
        hf.ppr_topk(graph, SEED, 2, **options)
    assert (out == 7.0).all()


@pytest.mark.parametrize(("out", "refusal"), BAD_OUTS)
def test_a_bad_out_is_refused(graph: hf.Graph, out: Any, refusal: tuple[str, str | None]) -> None:
    with refused(InputError, *refusal):
        hf.ppr(graph, SEED, out=out)


def test_a_read_only_out_is_refused_and_untouched(graph: hf.Graph) -> None:
    out = np.zeros((2, 5), np.float32)
    out.flags.writeable = False
    with refused(InputError, "shape", "out"):
        hf.ppr(graph, SEED, out=out)
    assert not out.any()


@pytest.mark.parametrize(("options", "refusal"), BAD_TOPK)
def test_a_bad_argument_of_topk_is_refused(
    graph: hf.Graph, options: dict[str, Any], refusal: tuple[str, str | None]
) -> None:
    with refused(InputError, *refusal):
        hf.ppr_topk(graph, SEED, **options)


def test_anything_but_a_graph_is_refused() -> None:
    for value in (None, np.eye(3), sp.eye_array(3)):
        with refused(InputError, "type", "graph", given=type(value).__name__):
            hf.ppr(value, [{0: 1.0}])


def test_an_option_that_does_not_exist_is_refused(graph: hf.Graph) -> None:
    with pytest.raises(TypeError, match="alpha"):
        hf.ppr(graph, SEED, alpha=0.5)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        hf.ppr(graph, SEED, 0.5)  # type: ignore[misc]


def test_a_score_matrix_above_the_budget_is_refused_but_not_with_out(
    graph: hf.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = import_module("hopfuse.ops.ppr")
    assert module.SCORES_BUDGET == 4 << 30
    monkeypatch.setattr(module, "SCORES_BUDGET", 39)
    with refused(InputError, "limit"):
        hf.ppr(graph, SEED)
    assert hf.ppr(graph, SEED, out=np.empty((2, 5), np.float32)).scores.shape == (2, 5)


def test_a_sum_of_per_type_weights_above_one_by_rounding_is_divided_out(graph: hf.Graph) -> None:
    third = hf.ppr(graph, SEED, edge_type_weights=[0.7, 0.3 + 1e-7], edge_type_norm="per_type")
    exact = hf.ppr(graph, SEED, edge_type_weights=[0.7, 0.3], edge_type_norm="per_type")
    np.testing.assert_allclose(third.scores, exact.scores, atol=1e-6)


def test_inputs_are_left_as_they_were(graph: hf.Graph) -> None:
    dense = np.array([[2.0, 0, 0, 0, 0], [0, 0, 3.0, 1.0, 0]])
    sparse = sp.coo_array(([1.0, 2.0, 3.0], ([0, 0, 1], [1, 1, 2])), (2, 5))
    eta, mask = np.array([[2.0, 1.0], [0.5, 0.5]]), np.ones((2, 5), bool)
    rows = [{0: 1.0}, {1: 2.0, 3: 0.0}]
    before = [a.copy() for a in (dense, sparse.data, eta, mask)]
    for restart in (dense, sparse, rows):
        hf.ppr(graph, restart, edge_type_weights=eta, allow=mask)
        hf.ppr_topk(graph, restart, 2, edge_type_weights=eta, allow=mask)
    for now, then in zip((dense, sparse.data, eta, mask), before, strict=True):
        assert_bitwise(now, then)
    assert sparse.nnz == 3
    assert rows == [{0: 1.0}, {1: 2.0, 3: 0.0}]


def test_integers_and_bools_are_numbers(graph: hf.Graph) -> None:
    expected = hf.ppr(graph, [1.0, 0, 0, 1.0, 0]).scores
    for dtype in (int, bool, np.uint8, np.float16, np.float32):
        assert_bitwise(hf.ppr(graph, np.array([1, 0, 0, 1, 0], dtype)).scores, expected)
    assert_bitwise(hf.ppr(graph, {np.int32(0): np.float32(1), 3: 1}).scores, expected)


def test_a_seed_of_weight_zero_does_not_count(graph: hf.Graph) -> None:
    allowed = np.array([True, True, False, True, True])
    scores = hf.ppr(graph, [{0: 1.0, 2: 0.0}], allow=allowed).scores
    assert_bitwise(scores, hf.ppr(graph, [{0: 1.0}], allow=allowed).scores)


def test_a_damping_that_float32_rounds_to_one_is_refused(graph: hf.Graph) -> None:
    with refused(InputError, "range", "damping"):
        hf.ppr(graph, SEED, damping=1 - 1e-9)


def test_type_weights_that_vanish_times_the_lightest_edge_are_refused() -> None:
    graph = hf.Graph.from_edges([0, 1], [1, 2], [1e-30, 1.0], edge_type=[0, 1])
    with refused(InputError, "range", "edge_type_weights[0]", type=0):
        hf.ppr(graph, [{0: 1.0}], edge_type_weights=[1e-20, 1])
    assert hf.ppr(graph, [{0: 1.0}], edge_type_weights=[0, 1]).converged.all()


def test_type_weights_may_be_given_by_name() -> None:
    graph = hf.Graph.from_edges([0, 1, 2], [1, 2, 3], edge_type=[0, 1, 1], edge_type_names=["context", "synonym"])
    for norm, given, expected in (
        ("joint", {"synonym": 0.25}, [1.0, 0.25]),
        ("joint", {"synonym": 0.25, "context": 0.5}, [0.5, 0.25]),
        ("joint", {}, [1.0, 1.0]),
        ("per_type", {"synonym": 0.75}, [0.0, 0.75]),
    ):
        named, listed = (hf.ppr(graph, [{0: 1.0}], edge_type_weights=w, edge_type_norm=norm) for w in (given, expected))
        assert_bitwise(named.scores, listed.scores)
        named, listed = (
            hf.ppr_topk(graph, [{0: 1.0}], 2, edge_type_weights=w, edge_type_norm=norm) for w in (given, expected)
        )
        assert_bitwise(named.scores, listed.scores)
    with refused(InputError, "unknown", "edge_type_weights", given="other", allowed="context, synonym"):
        hf.ppr(graph, [{0: 1.0}], edge_type_weights={"other": 1.0})
    with refused(InputError, "range", "edge_type_weights[1]"):
        hf.ppr(graph, [{0: 1.0}], edge_type_weights={"synonym": -1.0})
    with refused(InputError, "dtype", "edge_type_weights"):
        hf.ppr(graph, [{0: 1.0}], edge_type_weights={"synonym": "much"})
