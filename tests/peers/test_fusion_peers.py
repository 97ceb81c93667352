"""Fusion methods against ranx's of the same meaning."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import random_lists
from tiers import FULL

pytestmark = pytest.mark.full

#: ours, ranx's name of the method, and its parameters.
PAIRS: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    ({"method": "comb_sum"}, "sum", {}),
    ({"method": "comb_mnz"}, "mnz", {}),
    ({"method": "comb_mnz", "gamma": 2.0}, "gmnz", {"gamma": 2.0}),
    ({"method": "comb_mnz", "gamma": 0.5, "weights": (0.5, 0.3, 0.2)}, "mixed", {"weights": (0.5, 0.3, 0.2)}),
    ({"method": "wmnz", "weights": (0.5, 0.3, 0.2)}, "wmnz", {"weights": (0.5, 0.3, 0.2)}),
    ({"method": "comb_anz"}, "anz", {}),
    ({"method": "comb_min"}, "min", {}),
    ({"method": "comb_max"}, "max", {}),
    ({"method": "comb_med"}, "med", {}),
    ({"method": "isr"}, "isr", {}),
    ({"method": "log_isr"}, "log_isr", {}),
    ({"method": "log_isr", "sigma": 0.25}, "logn_isr", {"sigma": 0.25}),
    ({"method": "borda"}, "bordafuse", {}),
    ({"method": "borda", "weights": (0.5, 1.0, 2.0)}, "w_bordafuse", {"weights": (0.5, 1.0, 2.0)}),
    ({"method": "rbc", "phi": 0.8}, "rbc", {"phi": 0.8}),
    ({"method": "rrf"}, "rrf", {"k": 60}),
    ({"method": "linear", "calibration": "min_max", "weights": (0.5, 0.3, 0.2)}, "wsum", {"weights": (0.5, 0.3, 0.2)}),
    ({"method": "linear", "weights": (1.0, 1.0, 1.0), "calibration": "sum"}, "sum", {"norm": "sum"}),
    ({"method": "linear", "weights": (1.0, 1.0, 1.0), "calibration": "z_score"}, "sum", {"norm": "zmuv"}),
    ({"method": "linear", "weights": (1.0, 1.0, 1.0), "calibration": "rank"}, "sum", {"norm": "rank"}),
]


slow = pytest.mark.skipif(
    not FULL,
    reason="numba compiles each of ranx's methods for a quarter of a minute; run with HOPFUSE_TESTS=full",
)


@slow
@pytest.mark.filterwarnings("ignore")  # of what ranx imports
@pytest.mark.parametrize(("ours", "theirs", "parameters"), PAIRS, ids=lambda x: str(x) if isinstance(x, str) else None)
def test_scores_are_ranxs(ours: dict[str, Any], theirs: str, parameters: dict[str, Any]) -> None:
    """Lists of two distinct scores or more: ranx has other conventions for a list without a spread."""
    ranx = pytest.importorskip("ranx")
    lists = [wide(one) for one in random_lists(np.random.default_rng(3), 5, 3, width=12, ids=20)]
    runs = [ranx.Run({f"q{b}": {str(i): s for i, s in one.row(b)} for b in range(5)}) for one in lists]
    norm, settings = parameters.get("norm", "min-max"), {n: v for n, v in parameters.items() if n != "norm"}
    if theirs in ("isr", "log_isr", "logn_isr", "bordafuse", "w_bordafuse", "rbc", "rrf"):
        norm = None
    found = ranx.fuse(runs, norm=norm, method=theirs, params=settings or None).to_dict()
    fused = hf.fuse(lists, k=40, **ours)
    for b in range(5):
        expected = {int(document): score for document, score in found[f"q{b}"].items()}
        assert dict(fused.row(b)) == pytest.approx(expected, rel=2e-6, abs=2e-6)


@slow
@pytest.mark.filterwarnings("ignore")  # of what ranx imports
@pytest.mark.parametrize("weights", [None, (2.0, 1.0, 1.5)])
def test_the_order_is_that_of_ranxs_condorcet(weights: tuple[float, ...] | None) -> None:
    """Three orders of the same documents without a cycle and without ties: elsewhere ranx's depends on where its sort
    starts, and a document that two lists lack gets both votes there."""
    ranx = pytest.importorskip("ranx")
    rng, found = np.random.default_rng(4), 0
    method, params = ("condorcet", None) if weights is None else ("w_condorcet", {"weights": weights})
    for _ in range(40):
        orders = [rng.permutation(6) for _ in range(3)]
        lists = [hf.Hits(order, -np.arange(6.0)) for order in orders]
        ours = hf.fuse(lists, method="condorcet", weights=weights, k=6)
        if len(set(ours.scores[0].tolist())) < 6:
            continue
        found += 1
        runs = [ranx.Run({"q": {str(i): float(6 - at) for at, i in enumerate(order)}}) for order in orders]
        theirs = ranx.fuse(runs, norm=None, method=method, params=params).to_dict()["q"]
        assert {int(i): score - 1 for i, score in theirs.items()} == dict(ours.row(0))
    assert found > 10


def wide(hits: hf.Hits) -> hf.Hits:
    """Each row with two documents more, above and below."""
    rows = [[*hits.row(b), (30, 2.0), (31, -1.0)] for b in range(len(hits))]
    return hf.Hits.from_lists(rows)
