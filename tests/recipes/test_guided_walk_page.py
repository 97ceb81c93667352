"""The examples of docs/guided-walk.md run, one after another."""

from __future__ import annotations

import hopfuse as hf
from recipes.doc_pages import DOCS, run_examples

PAGE = DOCS / "guided-walk.md"


def test_the_examples_run() -> None:
    known = run_examples(PAGE, 9, hf.recipes.GuidedWalkResult)
    assert known["score"] > 0
