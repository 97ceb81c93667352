"""A number that no float can hold is refused like any other that is out of range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hopfuse as hf
import pytest
from hopfuse.errors import InputError
from hopfuse.lexical import FTS5
from refusals import refused

HUGE = 10**400
GRAPH = hf.Graph.from_edges([0], [1])
INDEX = hf.Index.build(passages=[{"text": "a"}], vectors=[[1.0]], entities=["A"], graph=GRAPH)
SEEDS = hf.Seeds([[0]], [[1.0]])
LISTS = hf.Hits([[1]], [[0.5]])

CALLS: list[tuple[Callable[[], Any], list[str]]] = [
    (lambda: hf.ppr(GRAPH, [{0: 1.0}], tol=HUGE), ("range", "tol")),
    (lambda: hf.ppr(GRAPH, [{0: HUGE}]), ("finite", "restart")),
    (lambda: hf.dense_topk([[HUGE]], INDEX.corpus, 1), ("dtype", "queries")),
    (lambda: hf.add_passage_seeds(SEEDS, LISTS, HUGE), ("range", "mass")),
    (lambda: hf.recipes.PhaseGraph(INDEX, passage_seeds=HUGE), ("range", "passage_seeds")),
    (lambda: hf.recipes.PhaseGraph(INDEX, edge_weights={"edge": HUGE}), ("range", "edge_weights.edge")),
    (lambda: hf.recipes.HybridRRF(INDEX, lexical=FTS5.build(["a"]), exact_bonus=HUGE), ("range", "exact_bonus")),
    (lambda: hf.recipes.PhaseGraph(INDEX, alpha=HUGE), ("range", "alpha")),
]


@pytest.mark.parametrize(("call", "refusal"), CALLS)
def test_a_huge_whole_number_is_out_of_range(call: Callable[[], Any], refusal: tuple[str, str | None]) -> None:
    with refused(InputError, *refusal):
        call()
