"""What PPR takes as a restart, and what it refuses."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
import scipy.sparse as sp
from hopfuse.errors import InputError
from hopfuse.reference import ppr, ppr_residual, ppr_topk
from refusals import refused

G = hf.Graph.from_edges([0, 1, 1, 3], [1, 2, 3, 0], edge_type=[0, 1, 0, 1], directed=True)
DENSE = np.array([[1.0, 0, 3.0, 0], [0, 0, 0, 2.0]])


@pytest.mark.parametrize(
    "restart",
    [
        DENSE.astype(np.float32),
        DENSE.tolist(),
        DENSE.astype(int),
        sp.csr_array(DENSE),
        sp.coo_array(([1.0, 1.0, 2.0, 2.0], ([0, 0, 0, 1], [0, 2, 2, 3])), shape=(2, 4)),
        sp.csc_matrix(DENSE),
        [{0: 1.0, 2: 3.0}, {3: 2.0}],
        [{np.int64(0): 2, 2: 6, 1: 0.0}, {3: 1e-30}],
    ],
)
def test_all_forms_of_restart_agree(restart: Any) -> None:
    assert (ppr(G, restart) == ppr(G, DENSE)).all()


def test_one_row_and_no_rows() -> None:
    assert ppr(G, [1.0, 0, 0, 0]).shape == (1, 4)
    assert ppr(G, []).shape == (0, 4)
    assert ppr(G, np.zeros((0, 4))).shape == (0, 4)
    assert ppr_residual(G, np.zeros((0, 4)), []).shape == (0,)
    assert ppr_topk(G, [], 3) == ([], [])


@pytest.mark.parametrize(
    ("restart", "refusal"),
    [
        ([[1.0, 0, 0, 0], [0, 0, 0, 0]], ("zero", "restart[1]")),
        ([{0: 1.0}, {}], ("zero", "restart[1]")),
        (sp.csr_array((2, 4)), ("zero", "restart[0]")),
        ([[1.0, 0, np.nan, 0]], ("range", "restart[0, 2]")),
        ([[1.0, 0, np.inf, 0]], ("range", "restart[0, 2]")),
        ([[1.0, -0.5, 0, 0]], ("range", "restart[0, 1]")),
        ([[1.7e308, 1.7e308, 0, 0]], ("zero", "restart[0]")),
        ([{0: 1.0}, {4: 1.0}], ("unknown", "restart[1]")),
        ([{-1: 1.0}], ("unknown", "restart[0]")),
        ([{0.5: 1.0}], ("unknown", "restart[0]")),
        ([{0: -1.0}], ("range", "restart[0, 0]")),
        ([1.0, 2.0], ("shape", "restart")),
        (np.ones((1, 4, 1)), ("shape", "restart")),
        (sp.csr_array((2, 5)), ("shape", "restart")),
        (["a", "b", "c", "d"], ("dtype", "restart")),
    ],
)
def test_restart_is_refused(restart: Any, refusal: tuple[str, str | None]) -> None:
    with refused(InputError, *refusal):
        ppr(G, restart)


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"damping": 1.0}, ("range", "damping")),
        ({"damping": -0.1}, ("range", "damping")),
        ({"damping": float("nan")}, ("range", "damping")),
        ({"damping": [0.5, 0.5, 0.5]}, ("shape", "damping")),
        ({"edge_type_norm": "row"}, ("choice", "edge_type_norm")),
        ({"edge_type_weights": [1.0]}, ("shape", "edge_type_weights")),
        ({"edge_type_weights": [[1.0, 1.0]] * 3}, ("shape", "edge_type_weights")),
        ({"edge_type_weights": [1.0, -1.0]}, ("range", "edge_type_weights[1]")),
        ({"edge_type_weights": [1.0, np.inf]}, ("range", "edge_type_weights[1]")),
        ({"edge_type_weights": [0.75, 0.5], "edge_type_norm": "per_type"}, ("range", "edge_type_weights[0]")),
        ({"edge_type_weights": [[0.5, 0.5], [1, 1]], "edge_type_norm": "per_type"}, ("range", "edge_type_weights[1]")),
        ({"allow": [0.5, 2.0]}, ("dtype", "allow")),
        ({"allow": [0, 4]}, ("unknown", "allow")),
        ({"allow": [True] * 3}, ("dtype", "allow")),
        ({"allow": [True, True, True, False]}, ("conflict", "restart[1]")),
        ({"allow": np.array([[0, 1, 1, 1], [1, 1, 1, 1]], bool)}, ("conflict", "restart[0]")),
    ],
)
def test_options_are_refused(options: dict[str, Any], refusal: tuple[str, str | None]) -> None:
    with refused(InputError, *refusal):
        ppr(G, DENSE, **options)
    with refused(InputError, *refusal):
        ppr_residual(G, DENSE, DENSE, **options)


def test_residual_refuses_scores_of_another_shape() -> None:
    with refused(InputError, "shape", "x", given=(1, 4)):
        ppr_residual(G, [1.0, 0, 0, 0], DENSE)


def test_topk_lists_positive_scores_in_total_order() -> None:
    star = hf.Graph.from_edges([0, 0, 0, 0], [4, 3, 2, 1], num_nodes=6)
    ids, scores = ppr_topk(star, [{0: 1.0}, {5: 1.0}], 4)
    assert [row.tolist() for row in ids] == [[0, 1, 2, 3], [5]]
    x = ppr(star, [{0: 1.0}, {5: 1.0}])
    for b in range(2):
        assert (scores[b] == x[b, ids[b]]).all()


@pytest.mark.parametrize(
    ("candidates", "want"),
    [
        ([4, 2, 5], [[2, 4], [5]]),
        (np.array([False, False, True, False, True, True]), [[2, 4], [5]]),
        ([[1, 0], [5, 0]], [[0, 1], [5]]),
        (np.array([[0, 1], [2, 3]]), [[0, 1], []]),
        ([], [[], []]),
    ],
)
def test_topk_among(candidates: Any, want: list[list[int]]) -> None:
    star = hf.Graph.from_edges([0, 0, 0, 0], [4, 3, 2, 1], num_nodes=6)
    ids, _ = ppr_topk(star, [{0: 1.0}, {5: 1.0}], 3, candidates=candidates)
    assert [row.tolist() for row in ids] == want


def test_topk_passes_options_on() -> None:
    ids, scores = ppr_topk(G, DENSE, 4, damping=0.0)
    assert [row.tolist() for row in ids] == [[2, 0], [3]]
    assert [row.tolist() for row in scores] == [[0.75, 0.25], [1.0]]


@pytest.mark.parametrize("k", [-1, 2.0, True, None])
def test_topk_refuses_k(k: Any) -> None:
    with refused(InputError, "range", "k"):
        ppr_topk(G, DENSE, k)


@pytest.mark.parametrize(
    ("candidates", "code"),
    [
        ([4], "unknown"),
        ([-1], "unknown"),
        ([0.5], "dtype"),
        ([True, False], "dtype"),
        ([[0], [1], [2]], "length"),
        (np.zeros((2, 2, 2), int), "shape"),
    ],
)
def test_topk_refuses_candidates(candidates: Any, code: str) -> None:
    with refused(InputError, code, "candidates"):
        ppr_topk(G, DENSE, 2, candidates=candidates)
