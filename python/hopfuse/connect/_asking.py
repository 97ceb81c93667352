"""One question until it has an answer that can be used."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from threading import Event
from typing import Any, NamedTuple

from ..errors import EndpointError
from ._answers import UnusableError, object_in, words_in
from ._cache import Cache, Messages, key_of
from ._requests import begin_of, correction, formats_of, with_schema
from ._transport import NotTakenError, TransientError, Transport

LONGEST_BACKOFF = 60.0
MOST_DOUBLINGS = 64  # beyond any pause below LONGEST_BACKOFF, and far from what a float holds
GO_ON = "Answers that came are in the cache, where one is given: run again to go on"


class Question(NamedTuple):
    """Messages, what an answer to them is, and what the caller calls them."""

    messages: Messages
    schema: Mapping[str, Any] | None
    check: Callable[[Any], Any] | None
    name: str | None = None


class Answer(NamedTuple):
    """What is kept, in JSON, and what the caller is given."""

    kept: str
    value: Any


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
        self._format: dict[str, int] = {}  # of formats_of, by schema: the first that the endpoint has taken

    def key(self, question: Question) -> str:
        """What answers are kept by."""
        return key_of(self._model, question.messages, question.schema, self._temperature)

    def answer(self, question: Question, place: str, stop: Event) -> Answer:
        """The answer; ``place`` is where the question stands, for errors.

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
                return _checked(_fitting(json.dumps(kept) if question.schema else kept, question), question)
            except UnusableError:
                pass  # a file of something else: asked again
        told = repr(begin_of(question.messages)) if question.name is None else question.name
        return self._asked(question, key, f"{place} ({told})", stop)

    def _asked(self, question: Question, key: str, name: str, stop: Event) -> Answer:
        messages, problem, advice = question.messages, "", ""
        for attempt in range(self._retries + 1):
            if stop.is_set():
                raise StoppedError
            text = ""
            try:
                text = self._sent(messages, question.schema)
                kept = _fitting(text, question)
                self._cache.put(key, kept)  # before a check that may break: it is paid for
                return _checked(kept, question)
            except UnusableError as error:
                problem, advice = str(error), ""
                messages = [*question.messages, *correction(text, problem)]
            except TransientError as error:
                problem = str(error)
                advice = ", with more retries where the endpoint is busy" if error.busy else ""
                if attempt < self._retries:
                    stop.wait(max(error.after, self._pause(attempt)))
            except (EndpointError, NotTakenError) as error:
                problem = str(error)
                break
        else:
            problem = f"has no usable answer after {self._retries + 1} requests; the last: {problem}. {GO_ON}{advice}"
            raise EndpointError(f"{name} {problem}")
        raise EndpointError(f"{name}: {problem}")

    def _sent(self, messages: Messages, schema: Mapping[str, Any] | None) -> str:
        """Ask in the strictest format that the endpoint takes for the schema."""
        common = {} if self._temperature is None else {"temperature": self._temperature}
        if schema is None:
            return self._transport.send(self._model, messages, common)
        formats, whole, asked_for = formats_of(schema), with_schema(messages, schema), json.dumps(schema)
        for at in range(self._format.get(asked_for, 0), len(formats)):
            try:
                text = self._transport.send(self._model, whole, {**common, **formats[at]})
            except NotTakenError:
                if at + 1 == len(formats):
                    raise
            else:
                self._format[asked_for] = at
                return text
        raise AssertionError("the last format is sent or raises")

    def _pause(self, attempt: int) -> float:
        doubled = self._backoff * 2.0 ** min(attempt, MOST_DOUBLINGS)
        return min(LONGEST_BACKOFF, doubled) * random.uniform(0.5, 1.0)


def given(kept: str, question: Question) -> Any:
    """An answer for one prompt: a copy of what is kept, as ``check`` makes it."""
    value = json.loads(kept)
    return value if question.check is None else question.check(value)


def _checked(kept: str, question: Question) -> Answer:
    try:
        return Answer(kept, given(kept, question))
    except ValueError as error:
        problem = str(error)
    raise UnusableError(problem)


def _fitting(text: Any, question: Question) -> str:
    """What is kept of a text, in JSON."""
    schema = question.schema
    return json.dumps(words_in(text) if schema is None else object_in(text, schema), allow_nan=False)
