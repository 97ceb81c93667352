"""Ask many questions concurrently, and repeat each until its answer can be used."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from threading import Event
from typing import Any, NamedTuple

from ..errors import EndpointError
from ._answers import Schema, UnusableError, object_in, words_in
from ._cache import Cache, key_of
from ._transport import BusyError, FormatRefusedError, Messages, OddAnswerError, RefusedError, StoppedError, Transport

LEAST_SILENT = 6  # questions in a row without an answer of the server, which is then taken to be down
MAX_REPEATED = 4000  # characters of a wrong answer that a correction repeats
SHAPE = "Answer with one JSON object of this schema, and nothing else:"
CORRECTION = "That answer cannot be used: {problem}. Answer again, in the same form, and with nothing else."


class Question(NamedTuple):
    """Messages, the schema and check of their answer, and their name in errors."""

    messages: Messages
    schema: Schema | None
    check: Callable[[Any], Any] | None
    name: str | None = None
    fit: Callable[[Any], Any] | None = None


class Answer(NamedTuple):
    """An answer as cached, in JSON, and as returned to the caller."""

    kept: str
    value: Any


class Failure(NamedTuple):
    """Why one question has no answer, and its name; other questions may have one."""

    error: EndpointError
    place: str


class Asker:
    """Asks questions and caches answers; asks up to ``retries`` times more for a usable answer."""

    def __init__(self, transport: Transport, model: str, temperature: float | None, retries: int, cache: Cache) -> None:
        self._transport, self._model, self._cache = transport, model, cache
        self._temperature, self._retries = temperature, retries
        self._format: dict[str, int] = {}  # by schema, the strictest format that the endpoint has accepted

    def key(self, question: Question) -> str:
        """Return the cache key of a question."""
        schema = None if question.schema is None else question.schema.plain
        return key_of(self._model, question.messages, schema, self._temperature)

    def answer(self, question: Question, place: str, stop: Event) -> Answer | Failure:
        """Return the answer, or why there is none; ``place`` describes the question in errors.

        Raises
        ------
        EndpointError
            The endpoint would refuse every question: the key, the address or the model is wrong.
        StoppedError
            ``stop`` was set.
        """
        key = self.key(question)
        kept = self._cache.get(key)
        if kept is not None:
            try:
                return _checked(_fitting(json.dumps(kept) if question.schema else kept, question), question)
            except UnusableError:
                pass  # a foreign file; ask again
        told = " ".join(question.messages[-1]["content"].split())[:80]
        return self._asked(question, key, f"{place} ({repr(told) if question.name is None else question.name})", stop)

    def _asked(self, question: Question, key: str, name: str, stop: Event) -> Answer | Failure:
        messages, requests, fatal = question.messages, self._retries + 1, None
        for _ in range(requests):
            text = ""
            try:
                text = self._sent(messages, question.schema, stop)
                kept = _fitting(text, question)
                self._cache.put(key, kept)  # before the check, which may raise: the answer is paid for
                return _checked(kept, question)
            except (UnusableError, OddAnswerError) as error:
                if isinstance(error, UnusableError):
                    messages = [*question.messages, *_correction(text, str(error))]
                failure = EndpointError(
                    "reply",
                    None,
                    "there is no usable answer after {requests} requests; the last: {problem}. Received answers are in "
                    "the cache, if one is given: run again to continue",
                    requests=requests,
                    problem=str(error),
                )
            except BusyError as error:
                failure = EndpointError(
                    "connection",
                    None,
                    "there is no answer after {requests} requests; the last: {problem}. Received answers are in the "
                    "cache, if one is given: run again to continue, with more retries if the endpoint is busy",
                    requests=error.requests,
                    problem=str(error),
                )
                break
            except RefusedError as error:
                failure = error.args[0]
                break
            except EndpointError as error:
                fatal = error
                break
        if fatal is not None:
            raise fatal.at(name)  # outside the handlers, so that no caught error is in its context
        return Failure(failure, name)

    def _sent(self, messages: Messages, schema: Schema | None, stop: Event) -> str:
        """Ask in the strictest format that the endpoint accepts for the schema."""
        common = {} if self._temperature is None else {"temperature": self._temperature}
        if schema is None:
            return self._transport.send(self._model, messages, common, stop)
        written = json.dumps(schema.plain)
        formats, whole = _formats(schema.plain), _with_schema(messages, written)
        for at in range(self._format.get(written, 0), len(formats)):
            try:
                text = self._transport.send(self._model, whole, {**common, **formats[at]}, stop)
            except FormatRefusedError:
                if at + 1 == len(formats):
                    raise
            else:
                self._format[written] = at
                return text
        raise AssertionError("the last format is sent or raises")


def all_answers(
    answer: Callable[[int, Event], Answer | Failure],
    keys: Sequence[str],
    concurrency: int,
    progress: Callable[[int, int], None] | None,
    failed: Callable[[int, EndpointError], None] | None,
) -> list[Answer | None]:
    """Return ``answer(at, stop)`` for each question; questions with the same key are asked once.

    The first failure stops questions that were not sent yet. Running requests end by themselves, without being waited
    for, and their answers are cached. With ``failed``, which is called with each question that has no answer and the
    reason, only an error that it raises stops them, or an endpoint that answers none of many questions in a row.
    """
    same: dict[str, list[int]] = {}
    for at, key in enumerate(keys):
        same.setdefault(key, []).append(at)
    found: dict[str, Answer | None] = {}
    done, silent, stop = 0, 0, Event()

    def one(at: int) -> Answer | Failure:
        try:
            made = answer(at, stop)
            if isinstance(made, Failure) and failed is None:
                raise made.error.at(made.place)
        except BaseException:
            stop.set()
            raise
        return made

    pool = ThreadPoolExecutor(concurrency)
    try:
        asked = {pool.submit(one, rows[0]): key for key, rows in same.items()}
        for future in as_completed(asked):
            if isinstance(future.exception(), StoppedError):
                continue  # another future has the failure
            key, made = asked[future], future.result()
            if isinstance(made, Failure):
                silent = silent + 1 if made.error.code == "connection" else 0
                if silent >= max(LEAST_SILENT, 2 * concurrency):
                    raise made.error.at(made.place)
                assert failed is not None
                for at in same[key]:
                    failed(at, made.error)
                found[key] = None
            else:
                silent, found[key] = 0, made
            done += len(same[key])
            if progress is not None:
                progress(done, len(keys))
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
    return [found[key] for key in keys]


def given(kept: str, question: Question) -> Any:
    """Return a new copy of a cached answer, passed through the question's check."""
    value = json.loads(kept)
    return value if question.check is None else question.check(value)


def _checked(kept: str, question: Question) -> Answer:
    try:
        return Answer(kept, given(kept, question))
    except ValueError as error:
        problem = str(error)
    raise UnusableError(problem)


def _fitting(text: Any, question: Question) -> str:
    """Return the part of a text that is cached, as JSON."""
    schema = question.schema
    return json.dumps(words_in(text) if schema is None else object_in(text, schema, question.fit), allow_nan=False)


def _formats(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the options that request JSON, the strictest first."""
    strict = {"name": "answer", "strict": True, "schema": schema}
    return [
        {"response_format": {"type": "json_schema", "json_schema": strict}},
        {"response_format": {"type": "json_object"}},
        {},
    ]


def _with_schema(messages: Messages, schema: str) -> Messages:
    last = {**messages[-1], "content": f"{messages[-1]['content']}\n\n{SHAPE}\n{schema}"}
    return [*messages[:-1], last]


def _correction(text: str, problem: str) -> Messages:
    """Return messages that repeat the model's answer and say what is wrong with it."""
    told = {"role": "user", "content": _whole(CORRECTION.format(problem=problem))}
    return [{"role": "assistant", "content": _whole(text[:MAX_REPEATED])}, told] if text.strip() else [told]


def _whole(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode."""
    return text.encode(errors="replace").decode()
