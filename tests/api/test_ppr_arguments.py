"""Every argument of ppr and ppr_topk: what is refused, and that the message says what was given and what is allowed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
import scipy.sparse as sp
from api.checks import refused
from compare import assert_bitwise

GRAPH = {"src": [0, 1, 2, 3], "dst": [1, 2, 3, 0], "edge_type": [0, 1, 0, 1], "edge_type_names": ["a", "b"]}
SEED = [{0: 1.0}, {2: 1.0}]


@pytest.fixture
def graph() -> hf.Graph:
    return hf.Graph.from_edges(**GRAPH, num_nodes=5)


BAD_RESTARTS: list[tuple[Any, list[str]]] = [
    (np.zeros(4), ["(4,)", "(5,)"]),
    (np.zeros((2, 4)), ["(2, 4)", "(B, 5)"]),
    (np.zeros((2, 5, 1)), ["(2, 5, 1)"]),
    ([[0.0] * 5], ["row 0", "all zero"]),
    (np.array([[1.0, 0, 0, 0, 0], [0, 0, 0, 0, 0]]), ["row 1", "all zero", "leave"]),
    (np.array([1.0, -0.5, 0, 0, 0]), ["row 0", "-0.5", "node 1"]),
    (np.array([1.0, np.nan, 0, 0, 0]), ["row 0", "nan", "node 1"]),
    (np.array([[1.0, 0, 0, 0, 0], [0, 0, np.inf, 0, 0]]), ["row 1", "inf", "node 2"]),
    (np.array([1e308, 1e308, 0, 0, 0]), ["row 0", "float64"]),
    (np.array(["a"] * 5), ["dtype"]),
    (np.ones(5, complex), ["complex"]),
    ([{}], ["row 0", "seed"]),
    ([{0: 1.0}, {}], ["row 1"]),
    ([{5: 1.0}], ["row 0", "seed 5", "0 .. 4"]),
    ([{0: 1.0}, {-1: 1.0}], ["row 1", "seed -1", "0 .. 4"]),
    ([{0.5: 1.0}], ["row 0", "0.5"]),
    ([{True: 1.0}], ["row 0", "True"]),
    ([{"x": 1.0}], ["row 0", "'x'"]),
    ([{0: "heavy"}], ["numbers"]),
    ([{0: None}], ["row 0"]),
    ([{0: -1.0}], ["row 0", "-1"]),
    ([{0: float("nan")}], ["row 0", "nan"]),
    ([[1.0, 0, 0], [1.0]], ["rectangular"]),
    (None, ["restart"]),
    ("seeds", ["restart"]),
    (sp.csr_array((2, 4)), ["(2, 4)", "(B, 5)"]),
    (sp.csr_array(([1.0, -1.0], ([0, 1], [0, 3])), (2, 5)), ["row 1", "-1", "node 3"]),
    (sp.csr_array(([1.0], ([1], [0])), (2, 5)), ["row 0", "all zero"]),
    (sp.csr_array(([np.nan], ([0], [2])), (1, 5)), ["row 0", "nan"]),
]

BAD_OPTIONS: list[tuple[dict[str, Any], list[str]]] = [
    ({"damping": 1.0}, ["damping", "1.0", "[0, 1)"]),
    ({"damping": -0.1}, ["damping", "-0.1", "[0, 1)"]),
    ({"damping": float("nan")}, ["damping", "nan"]),
    ({"damping": [0.5, 1.5]}, ["damping", "1.5"]),
    ({"damping": [0.5] * 3}, ["damping", "(3,)", "(2,)"]),
    ({"damping": [[0.5], [0.5]]}, ["damping", "(2, 1)"]),
    ({"damping": "half"}, ["damping"]),
    ({"damping": None}, ["damping"]),
    ({"tol": 0.0}, ["tol", "0.0", "above 0"]),
    ({"tol": -1e-6}, ["tol", "-1e-06"]),
    ({"tol": float("nan")}, ["tol", "nan"]),
    ({"tol": float("inf")}, ["tol", "inf"]),
    ({"tol": True}, ["tol", "True"]),
    ({"tol": "small"}, ["tol", "'small'"]),
    ({"tol": None}, ["tol", "None"]),
    ({"max_iter": 0}, ["max_iter", "0", "at least 1"]),
    ({"max_iter": -3}, ["max_iter", "-3"]),
    ({"max_iter": 2.0}, ["max_iter", "2.0"]),
    ({"max_iter": True}, ["max_iter", "True"]),
    ({"edge_type_weights": [1.0]}, ["edge_type_weights", "(1,)", "(2,)", "(2, 2)"]),
    ({"edge_type_weights": [[1.0, 1.0]] * 3}, ["(3, 2)", "(2, 2)"]),
    ({"edge_type_weights": [1.0, -1.0]}, ["edge_type_weights", "-1", "at least 0"]),
    ({"edge_type_weights": [1.0, np.inf]}, ["edge_type_weights", "inf"]),
    ({"edge_type_weights": [np.nan, 1.0]}, ["edge_type_weights", "nan"]),
    ({"edge_type_weights": ["a", "b"]}, ["edge_type_weights", "dtype"]),
    ({"edge_type_weights": [1.0, 1e-40]}, ["query 0", "type 1", "1e-30"]),
    ({"edge_type_weights": [0.8, 0.4], "edge_type_norm": "per_type"}, ["query 0", "1.2", "at most 1"]),
    ({"edge_type_weights": [[0.5, 0.5], [1, 1]], "edge_type_norm": "per_type"}, ["query 1", "2.0"]),
    ({"edge_type_norm": "row"}, ["edge_type_norm", "'row'", "'joint'", "'per_type'"]),
    ({"edge_type_norm": None}, ["edge_type_norm", "None"]),
    ({"allow": [True] * 4}, ["allow", "(4,)", "(5,)"]),
    ({"allow": np.ones((3, 5), bool)}, ["allow", "(3, 5)"]),
    ({"allow": [0, 5]}, ["allow", "5", "0 .. 4"]),
    ({"allow": [True, True, False, True, True]}, ["row 1", "seed 2", "drop the seed"]),
    ({"allow": np.array([[False] + [True] * 4, [True] * 5])}, ["row 0", "seed 0"]),
    ({"backend": "tpu"}, ["backend", "'tpu'", "auto", "cpu"]),
    ({"backend": None}, ["backend", "None"]),
    ({"threads": 0}, ["threads", "0", "1 to 1024"]),
    ({"threads": 1025}, ["threads", "1025"]),
    ({"threads": 1.0}, ["threads", "1.0"]),
    ({"threads": True}, ["threads", "True"]),
]

BAD_OUTS: list[tuple[Any, list[str]]] = [
    (np.zeros((2, 4), np.float32), ["out", "(2, 4)", "(2, 5)"]),
    (np.zeros((2, 5)), ["out", "float64", "float32"]),
    (np.zeros((5, 2), np.float32).T, ["out", "contiguous"]),
    ([[0.0] * 5] * 2, ["out", "list"]),
]

BAD_TOPK: list[tuple[dict[str, Any], list[str]]] = [
    ({"k": -1}, ["k", "-1", "at least 0"]),
    ({"k": 2.0}, ["k", "2.0"]),
    ({"k": True}, ["k", "True"]),
    ({"k": None}, ["k", "None"]),
    ({"k": 2, "stop": "soon"}, ["stop", "'soon'", "'proven'", "'tol'"]),
    ({"k": 2, "candidates": [0, 5]}, ["candidates", "5", "0 .. 4"]),
    ({"k": 2, "candidates": [-1]}, ["candidates", "-1", "0 .. 4"]),
    ({"k": 2, "candidates": [0.5]}, ["candidates", "float64"]),
    ({"k": 2, "candidates": [True] * 4}, ["candidates", "(4,)", "5"]),
    ({"k": 2, "candidates": np.ones((3, 5), bool)}, ["candidates", "(3, 5)"]),
    ({"k": 2, "candidates": [[0], [1], [2]]}, ["candidates", "3"]),
]


@pytest.mark.parametrize(("restart", "says"), BAD_RESTARTS)
def test_a_bad_restart_is_refused(graph: hf.Graph, restart: Any, says: list[str]) -> None:
    refused(lambda: hf.ppr(graph, restart), says)
    refused(lambda: hf.ppr_topk(graph, restart, 2), says)


@pytest.mark.parametrize(("options", "says"), BAD_OPTIONS)
def test_a_bad_option_is_refused_and_out_is_untouched(
    graph: hf.Graph, options: dict[str, Any], says: list[str]
) -> None:
    out = np.full((2, 5), 7.0, np.float32)
    refused(lambda: hf.ppr(graph, SEED, out=out, **options), says)
    refused(lambda: hf.ppr_topk(graph, SEED, 2, **options), says)
    assert (out == 7.0).all()


@pytest.mark.parametrize(("out", "says"), BAD_OUTS)
def test_a_bad_out_is_refused(graph: hf.Graph, out: Any, says: list[str]) -> None:
    refused(lambda: hf.ppr(graph, SEED, out=out), says)


def test_a_read_only_out_is_refused_and_untouched(graph: hf.Graph) -> None:
    out = np.zeros((2, 5), np.float32)
    out.flags.writeable = False
    refused(lambda: hf.ppr(graph, SEED, out=out), ["out", "writeable"])
    assert not out.any()


@pytest.mark.parametrize(("options", "says"), BAD_TOPK)
def test_a_bad_argument_of_topk_is_refused(graph: hf.Graph, options: dict[str, Any], says: list[str]) -> None:
    refused(lambda: hf.ppr_topk(graph, SEED, **options), says)


def test_anything_but_a_graph_is_refused() -> None:
    for value in (None, np.eye(3), sp.eye_array(3)):
        refused(lambda value=value: hf.ppr(value, [{0: 1.0}]), ["graph", type(value).__name__, "from_edges"])


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
    refused(lambda: hf.ppr(graph, SEED), ["2 queries", "5 nodes", "GiB", "ppr_topk", "out="])
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
    refused(lambda: hf.ppr(graph, SEED, damping=1 - 1e-9), ["damping", "[0, 1)", "float32"])


def test_type_weights_that_vanish_times_the_lightest_edge_are_refused() -> None:
    graph = hf.Graph.from_edges([0, 1], [1, 2], [1e-30, 1.0], edge_type=[0, 1])
    refused(lambda: hf.ppr(graph, [{0: 1.0}], edge_type_weights=[1e-20, 1]), ["query 0", "type 0", "float32"])
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
    says = ["edge_type_weights has the type 'other'", "the graph's edge types are context, synonym"]
    refused(lambda: hf.ppr(graph, [{0: 1.0}], edge_type_weights={"other": 1.0}), says)
    refused(lambda: hf.ppr(graph, [{0: 1.0}], edge_type_weights={"synonym": -1.0}), ["at least 0"])
    refused(lambda: hf.ppr(graph, [{0: 1.0}], edge_type_weights={"synonym": "much"}), ["edge_type_weights"])
