"""The examples of docs/phase-graph.md run, one after another."""

from __future__ import annotations

import hopfuse as hf
from recipes.doc_pages import DOCS, run_examples

PAGE = DOCS / "phase-graph.md"


def test_the_examples_run() -> None:
    known = run_examples(PAGE, 8, hf.recipes.PhaseGraphResult)
    assert known["reranked"].shape == (1, 3)
    assert known["shared"].hits.counts.tolist() == [2]
