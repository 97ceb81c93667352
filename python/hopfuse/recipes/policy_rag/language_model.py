"""Calls of a language model: which facts to keep, and answers based only on passages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from ...errors import InputError
from ...types import Hits
from .._parts.config import needed
from .config import AnswerRules

#: The setting of a policy that needs a language model.
GATE = "facts.gate = 'llm'"


class LanguageModel(Protocol):
    """A model that answers in JSON, such as :class:`hopfuse.llm.ChatEndpoint`."""

    def ask(self, prompts: Sequence[str], schema: Mapping[str, Any], /, *, check: Callable[[Any], Any]) -> list[Any]:
        """Return ``check(answer)`` for the answer to each prompt; ``check`` raises ValueError for a bad answer."""
        ...


def model_needed(what: str) -> InputError:
    """Return the error for a recipe without a language model."""
    return needed("llm", what, "such as hopfuse.llm.ChatEndpoint(...)")


def chosen_facts(
    llm: LanguageModel, prompt: str, keep: int, queries: Sequence[str], facts: Sequence[Sequence[str]]
) -> list[list[int]]:
    """Return, for each question, the positions of the facts that the model keeps, in its order.

    Questions with the same number of facts share a call, since their answers are checked alike.
    """
    chosen: list[list[int]] = [[] for _ in queries]
    for size in sorted({len(row) for row in facts} - {0}):
        rows = [b for b, row in enumerate(facts) if len(row) == size]
        prompts = []
        for b in rows:
            numbered = "\n".join(f"{at + 1}. {text}" for at, text in enumerate(facts[b]))
            prompts.append(fill(prompt, question=queries[b], facts=numbered, keep=str(keep)))
        schema = _schema(keep={"type": "array", "items": {"type": "integer"}, "maxItems": keep})
        for b, answer in zip(rows, llm.ask(prompts, schema, check=partial(_places, size, keep)), strict=True):
            chosen[b] = answer
    return chosen


def grounded_answers(
    llm: LanguageModel,
    rules: AnswerRules,
    queries: Sequence[str],
    hits: Hits,
    titles: Sequence[str],
    texts: Sequence[str],
) -> list[str]:
    """Return the model's answer from the first passages of each question, or ``not_found`` without passages."""
    answers, rows = [rules.not_found] * len(queries), [b for b in range(len(queries)) if hits.counts[b] > 0]
    prompts = []
    for b in rows:
        read = [f"{titles[p]}\n{texts[p]}".strip() for p, _ in hits.row(b)[: rules.passages]]
        parts = {"question": queries[b], "passages": "\n\n".join(read), "not_found": rules.not_found}
        prompts.append(fill(rules.prompt, **parts))
    for b, answer in zip(rows, llm.ask(prompts, _schema(answer={"type": "string"}), check=_answer), strict=True):
        answers[b] = answer
    return answers


def fill(prompt: str, **parts: str) -> str:
    """Return the prompt with its placeholders filled in, in one pass, so that values are not expanded again."""
    return re.sub(r"\{(\w+)\}", lambda place: parts.get(place[1], place[0]), prompt).strip()


def _schema(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of an object with exactly these properties."""
    closed = {"required": list(properties), "additionalProperties": False}
    return {"type": "object", "properties": dict(properties), **closed}


def _places(size: int, keep: int, answer: Mapping[str, Any]) -> list[int]:
    """Return the positions of the facts whose numbers, from 1 on, are in ``keep``."""
    numbers = answer["keep"]
    if not all(1 <= number <= size for number in numbers):
        raise ValueError(f"keep is {numbers}; facts have the numbers 1 .. {size}")
    if len(set(numbers)) != len(numbers) or len(numbers) > keep:
        raise ValueError(f"keep has {len(numbers)} numbers; give at most {keep}, each once")
    return [number - 1 for number in numbers]


def _answer(given: Mapping[str, Any]) -> str:
    answer = str(given["answer"]).strip()
    if not answer:
        raise ValueError("answer is empty; if the passages do not hold it, say that it was not found")
    return answer
