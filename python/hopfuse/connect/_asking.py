"""One question until it has an answer that can be used."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from threading import Event
from typing import Any, NamedTuple

from ..errors import EndpointError
from ._answers import UnusableError, object_in
from ._cache import Cache, Messages, key_of
from ._transport import NotTakenError, TransientError, Transport

LONGEST_BACKOFF = 60.0
REPEATED = 4000  # characters of a wrong answer that the model is shown again
SHAPE = "Answer with one JSON object of this schema, and nothing else:"
CORRECTION = "That answer cannot be used: {problem}. Answer again, in the same form, and with nothing else."


class Question(NamedTuple):
    """Messages, and what an answer to them is."""

    messages: Messages
    schema: Mapping[str, Any] | None
    check: Callable[[Any], Any] | None


class StoppedError(Exception):
    """Another question has failed; this one is not asked any more."""


class Asker:
    """Asks, waits, corrects, and keeps.

    Parameters
    ----------
    transport : Transport
    model : str
    temperature : float or None
    retries : int
    backoff : float
        Seconds.
    cache : Cache
    """

    def __init__(
        self, transport: Transport, model: str, temperature: float | None, retries: int, backoff: float, cache: Cache
    ) -> None:
        self._transport, self._model, self._cache = transport, model, cache
        self._temperature, self._retries, self._backoff = temperature, retries, backoff
        self._format = 0  # of _formats: the first that the endpoint has taken

    def key(self, question: Question) -> str:
        """What answers are kept by."""
        return key_of(self._model, question.messages, question.schema, self._temperature)

    def answer(self, question: Question, name: str, stop: Event) -> Any:
        """The answer; ``name`` is the question's in errors.

        Raises
        ------
        EndpointError
            No usable answer after all tries, or a refusal.
        StoppedError
            ``stop`` was set.
        """
        key = self.key(question)
        kept = self._cache.get(key)
        if kept is not None:
            try:
                return _usable(json.dumps(kept) if question.schema else kept, question)[1]
            except UnusableError:
                pass  # a file of something else: asked again
        raw, answer = self._asked(question, f"{name} ({_begin(question)!r})", stop)
        self._cache.put(key, raw)
        return answer

    def _asked(self, question: Question, name: str, stop: Event) -> tuple[Any, Any]:
        messages, problem = question.messages, ""
        for attempt in range(self._retries + 1):
            if stop.is_set():
                raise StoppedError
            text = ""
            try:
                text = self._sent(messages, question.schema)
                return _usable(text, question)
            except UnusableError as error:
                problem = str(error)
                messages = [*question.messages, *_correction(text, problem)]
            except TransientError as error:
                problem = str(error)
                if attempt < self._retries:
                    stop.wait(self._pause(attempt) if error.after is None else error.after)
            except (EndpointError, NotTakenError) as error:
                raise EndpointError(f"{name}: {error}") from None
        raise EndpointError(
            f"{name} has no usable answer after {self._retries + 1} requests; the last: {problem}. Answers that came "
            "are in the cache, where one is given: run again to go on, with more retries where the endpoint is busy"
        )

    def _sent(self, messages: Messages, schema: Mapping[str, Any] | None) -> str:
        """Ask in the strictest format that the endpoint takes."""
        common = {} if self._temperature is None else {"temperature": self._temperature}
        if schema is None:
            return self._transport.send(self._model, messages, common)
        formats, whole = _formats(schema), _with_schema(messages, schema)
        for at in range(self._format, len(formats)):
            try:
                text = self._transport.send(self._model, whole, {**common, **formats[at]})
            except NotTakenError:
                if at + 1 == len(formats):
                    raise
            else:
                self._format = at
                return text
        raise AssertionError("the last format is sent or raises")

    def _pause(self, attempt: int) -> float:
        return min(LONGEST_BACKOFF, self._backoff * 2.0**attempt) * random.uniform(0.5, 1.0)


def _usable(text: str, question: Question) -> tuple[Any, Any]:
    """What is kept of an answer, and the answer."""
    if question.schema is None:
        if not isinstance(text, str) or not text.strip():
            raise UnusableError("it is empty")
        return text, text
    value = object_in(text, question.schema)
    if question.check is None:
        return value, value
    try:
        return value, question.check(value)
    except ValueError as error:
        raise UnusableError(str(error)) from None


def _formats(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    strict = {"name": "answer", "strict": True, "schema": schema}
    return [
        {"response_format": {"type": "json_schema", "json_schema": strict}},
        {"response_format": {"type": "json_object"}},
        {},
    ]


def _with_schema(messages: Messages, schema: Mapping[str, Any]) -> Messages:
    last = {**messages[-1], "content": f"{messages[-1]['content']}\n\n{SHAPE}\n{json.dumps(schema)}"}
    return [*messages[:-1], last]


def _correction(text: str, problem: str) -> Messages:
    told = {"role": "user", "content": CORRECTION.format(problem=problem)}
    return [{"role": "assistant", "content": text[:REPEATED]}, told] if text.strip() else [told]


def _begin(question: Question) -> str:
    return " ".join(question.messages[-1]["content"].split())[:80]
