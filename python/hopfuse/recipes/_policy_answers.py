"""Answers from retrieved passages alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..index import Index
from ..types import Hits
from ._fact_gate import LanguageModel, fill, schema_of
from ._policy import Policy


def grounded_answers(llm: LanguageModel, policy: Policy, index: Index, queries: Sequence[str], hits: Hits) -> list[str]:
    """What the model reads in the first passages of each question; the policy's words where there are none."""
    rules = policy.answers
    read = [b for b in range(len(queries)) if hits.counts[b] > 0]
    prompts = [
        fill(
            rules.prompt,
            question=queries[b],
            passages="\n\n".join(_passage(index, passage) for passage, _ in hits.row(b)[: rules.passages]),
            not_found=rules.not_found,
        )
        for b in read
    ]
    said = dict(zip(read, llm.ask(prompts, schema_of(answer={"type": "string"}), check=_answer), strict=True))
    return [said.get(b, rules.not_found) for b in range(len(queries))]


def _passage(index: Index, passage: int) -> str:
    return f"{index.titles[passage]}\n{index.texts[passage]}".strip()


def _answer(said: Mapping[str, Any]) -> str:
    answer = str(said["answer"]).strip()
    if not answer:
        raise ValueError("answer is empty; say that it was not found where the passages do not hold it")
    return answer
