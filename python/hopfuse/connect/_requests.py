"""What a model is sent: formats, the schema in words, what was wrong with its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ._cache import Messages

REPEATED = 4000  # characters of a wrong answer that the model is shown again
SHAPE = "Answer with one JSON object of this schema, and nothing else:"
CORRECTION = "That answer cannot be used: {problem}. Answer again, in the same form, and with nothing else."


def formats_of(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Ways to ask for an answer, the strictest first."""
    strict = {"name": "answer", "strict": True, "schema": schema}
    return [
        {"response_format": {"type": "json_schema", "json_schema": strict}},
        {"response_format": {"type": "json_object"}},
        {},
    ]


def with_schema(messages: Messages, schema: Mapping[str, Any]) -> Messages:
    """The messages, with the schema at the end of the last."""
    last = {**messages[-1], "content": f"{messages[-1]['content']}\n\n{SHAPE}\n{json.dumps(schema)}"}
    return [*messages[:-1], last]


def correction(text: str, problem: str) -> Messages:
    """What the model wrote, and what is wrong with it."""
    told = {"role": "user", "content": _whole(CORRECTION.format(problem=problem))}
    return [{"role": "assistant", "content": _whole(text[:REPEATED])}, told] if text.strip() else [told]


def _whole(text: str) -> str:
    """Without halves of characters, which no request can hold."""
    return text.encode(errors="replace").decode()


def begin_of(messages: Messages) -> str:
    """The first words of the last message, for errors."""
    return " ".join(messages[-1]["content"].split())[:80]
