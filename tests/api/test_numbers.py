"""A number that no float can hold is refused like any other that is out of range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hopfuse as hf
import pytest
from api.checks import refused
from hopfuse.lexical import FTS5

HUGE = 10**400
GRAPH = hf.Graph.from_edges([0], [1])
INDEX = hf.Index.build(passages=[{"text": "a"}], vectors=[[1.0]], entities=["A"], graph=GRAPH)
SEEDS = hf.Seeds([[0]], [[1.0]])
LISTS = hf.Hits([[1]], [[0.5]])

CALLS: list[tuple[Callable[[], Any], list[str]]] = [
    (lambda: hf.ppr(GRAPH, [{0: 1.0}], tol=HUGE), ["tol is 1000", "finite"]),
    (lambda: hf.add_passage_seeds(SEEDS, LISTS, HUGE), ["1000", "finite"]),
    (lambda: hf.recipes.PhaseGraph(INDEX, passage_seeds=HUGE), ["passage_seeds is 1000", "finite"]),
    (lambda: hf.recipes.PhaseGraph(INDEX, edge_weights={"edge": HUGE}), ["edge_weights['edge'] is 1000", "finite"]),
    (lambda: hf.recipes.HybridRRF(INDEX, lexical=FTS5.build(["a"]), exact_bonus=HUGE), ["exact_bonus is 1000"]),
    (lambda: hf.recipes.PhaseGraph(INDEX, alpha=HUGE), ["alpha is 1000", "[0, 1]"]),
]


@pytest.mark.parametrize(("call", "says"), CALLS)
def test_a_huge_whole_number_is_out_of_range(call: Callable[[], Any], says: list[str]) -> None:
    refused(call, says)
