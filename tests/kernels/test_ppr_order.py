"""The returned bits are those of the contract's order of operations, not merely close to them."""

from __future__ import annotations

import hopfuse as hf
import numpy as np
import pytest
from cases import random_graph
from compare import assert_bitwise
from kernels.canonical_ppr import canonical_ppr


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weights", ["none", "integer"])
@pytest.mark.parametrize("damping", [0.3, 0.85])
def test_ppr_has_the_bits_of_the_contract(variant: str, directed: bool, weights: str, damping: float) -> None:
    rng = np.random.default_rng(1)
    graph = random_graph(rng, 150, 400, directed=directed, weights=weights, hub=9)  # two tiles and a bit; 3 segments
    restart = [{0: 1.0}, {9: 1.0, 149: 0.3}, {63: 2.0, 64: 1.0, 65: 0.7}, {140: 1.0}]
    for passes in (1, 2, 3, 6):
        result = hf.ppr(graph, restart, damping=damping, tol=1e-12, max_iter=passes)
        expected = np.array([canonical_ppr(graph, row, damping, passes) for row in restart])
        assert_bitwise(result.scores, expected, f"scores after {passes} passes")


def test_ppr_has_the_bits_of_the_contract_where_it_stops_by_itself(variant: str) -> None:
    rng = np.random.default_rng(2)
    for directed in (False, True):
        graph = random_graph(rng, 130, 400, directed=directed, weights="integer", hub=3)
        restart = [{int(v): 1.0} for v in rng.integers(0, 130, 5)]
        result = hf.ppr(graph, restart, tol=1e-5)
        for b, row in enumerate(restart):
            passes = int(result.iterations[b]) - 1  # the last is the certifying pass
            assert_bitwise(result.scores[b], canonical_ppr(graph, row, 0.5, passes), f"query {b}")
