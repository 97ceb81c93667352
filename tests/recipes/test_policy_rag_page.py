"""The example of docs/policy-rag.md runs, and its page names every section of a policy's steps."""

from __future__ import annotations

import hopfuse as hf
from hopfuse.recipes import Policy
from recipes.doc_pages import DOCS, run_examples

PAGE = DOCS / "policy-rag.md"


def test_the_example_runs() -> None:
    run_examples(PAGE, 2, hf.recipes.PolicyRAGResult)


def test_the_defaults_that_it_states() -> None:
    policy, text = Policy(), PAGE.read_text(encoding="utf-8")
    assert f"(β = {policy.projection.beta})" in text
    assert policy.projection.gamma == policy.reranking.hub == 0.0  # "are off"
    assert not any(policy.term_weights.values())  # "nothing is re-ranked"
    assert f"w_p = {Policy.paper().seeds.passages}" in text
    eta = ", ".join(map(str, Policy.paper().edge_type_weights))
    assert f"(η = {eta})" in text
