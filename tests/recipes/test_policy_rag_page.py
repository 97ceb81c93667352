"""The example of docs/policy-rag.md runs, and its page names every section of a policy's steps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import hopfuse as hf
from hopfuse.recipes import Policy

PAGE = Path(__file__).parents[2] / "docs" / "policy-rag.md"


def test_the_example_runs() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    known: dict[str, Any] = {}
    exec(compile(block, PAGE.name, "exec"), known)
    assert isinstance(known["found"], hf.recipes.PolicyRAGResult)


def test_the_defaults_that_it_states() -> None:
    policy, text = Policy(), PAGE.read_text(encoding="utf-8")
    assert f"(β = {policy.projection.beta})" in text
    assert policy.projection.gamma == policy.reranking.hub == 0.0  # "are off"
    assert f"to {policy.seeds.passages})" in text
