"""Ask questions of a language model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from os import PathLike
from threading import Event
from typing import Any, NamedTuple

from .._validation import (
    address_and_key,
    check_length,
    check_number,
    check_text,
    check_whole,
    checked_texts,
    wrong_type,
    wrong_value,
)
from ..errors import EndpointError
from ._answers import Schema, UnusableError, object_in, words_in
from ._cache import Cache, key_of
from ._transport import BusyError, FormatRefusedError, Messages, OddAnswerError, RefusedError, StoppedError, Transport

Prompt = str | Sequence[Mapping[str, str]]
Progress = Callable[[int, int], None]
Failed = Callable[[int, EndpointError], None]
ROLES = ("system", "developer", "user", "assistant")


class ChatEndpoint:
    """A language model behind ``POST /chat/completions``, asked concurrently, with an optional cache of its answers.

    Parameters
    ----------
    base_url : str, optional
        The URL before ``/chat/completions``, such as ``"http://localhost:8000/v1"``, without a password or a query; by
        default ``OPENAI_BASE_URL``, else OpenAI's own.
    model : str
        The endpoint's name of the model.
    api_key : str, optional
        By default ``OPENAI_API_KEY``. If that is not set and there is a URL, the key ``none`` is sent. The key is not
        stored.
    cache : path, optional
        A folder of answers, keyed by the hash of model, messages, schema and temperature, and created if absent.
        Answers that it holds are not requested again. If a file cannot be read or written, a RuntimeWarning is issued
        once, and the answer is still returned.
    concurrency : int, at least 1
        Concurrent requests.
    retries : int, at least 0
        Retries of a request by OpenAI's client, if the server is busy or fails or the connection breaks, with growing
        waits or as Retry-After says, up to two minutes. Also the number of corrections: an answer that violates the
        schema or ``check`` is requested again, with a message that says what was wrong.
    timeout : float, above 0
        Seconds without a byte, after which a request fails. A whole request may take longer.
    temperature : float in [0, 2], or None
        None uses the endpoint's default; some models accept no other.

    Raises
    ------
    InputError
        A value outside the above, no key for OpenAI's own endpoint, a URL with a password or a query, or a cache that
        is not a folder.
    MissingExtraError
        ``openai`` is not installed.

    Examples
    --------
    >>> from hopfuse.llm import ChatEndpoint
    >>> ChatEndpoint("http://localhost:8000/v1", model="qwen3")
    ChatEndpoint('http://localhost:8000/v1/', model='qwen3')
    """

    def __init__(
        self,
        base_url: str | None = None,
        *,
        model: str,
        api_key: str | None = None,
        cache: str | PathLike[str] | None = None,
        concurrency: int = 8,
        retries: int = 4,
        timeout: float = 120.0,
        temperature: float | None = 0.0,
    ) -> None:
        check_text(model, "model")
        retries = check_whole(retries, "retries", least=0)
        self._concurrency = check_whole(concurrency, "concurrency")
        self._model = model
        limit = check_number(timeout, "timeout", above=0)
        warmth = None if temperature is None else check_number(temperature, "temperature", low=0, high=2)
        self._transport = Transport(*address_and_key(base_url, api_key), limit, retries)
        self._asker = _Asker(self._transport, model, warmth, retries, Cache(cache))

    def ask(
        self,
        prompts: Sequence[Prompt],
        schema: Mapping[str, Any],
        *,
        check: Callable[[Any], Any] | None = None,
        progress: Progress | None = None,
        names: Sequence[str] | None = None,
        fit: Callable[[Any], Any] | None = None,
        failed: Failed | None = None,
    ) -> list[Any]:
        """Return answers in JSON.

        The schema is sent as ``response_format`` (``json_schema`` or, if the endpoint refuses it, ``json_object`` or
        nothing) and appended to the prompt. The answer is the first JSON object in the model's text that is valid under
        the schema, after a leading ``<think>…</think>``. Trailing commas, comments, single quotes and bare keys are
        read as meant. Identical prompts are sent once.

        Parameters
        ----------
        prompts : sequence of str, or of lists of messages
            A string is a user's message; a message is {"role": ..., "content": ...}.
        schema : mapping
            JSON Schema, draft 2020-12, of type object. A ``$ref`` must point within it; nothing is fetched. 1.0 is not
            an integer.
        check : callable, optional
            Takes the object for a prompt, a copy of its own, and returns the answer. A ValueError is reported to the
            model like a violation of the schema. The cache stores the object before ``check``.
        progress : callable, optional
            Called with the number of answered prompts and the number of all prompts.
        names : sequence of str, optional
            Names of the prompts in errors, by default their first words.
        fit : callable, optional
            Takes an object, or the only list, of an answer that violates the schema, and returns it in the form of the
            schema, or None if it may mean something else. The answer is then valid, if nothing else in it is.
        failed : callable, optional
            Called with the number of a prompt that has no usable answer after all tries, or that the endpoint refused
            (400, 413, 422), and with the EndpointError; its answer is None. An error that it raises ends the call.

        Returns
        -------
        list
            An answer for each prompt, in order.

        Raises
        ------
        InputError
            Prompts that are not as above, a schema that is not a JSON Schema of an object, or another number of names
            than prompts.
        EndpointError
            A prompt has no usable answer after all tries, or the endpoint refused it. Nothing more is sent; earlier
            answers are in the cache. With ``failed``, only a wrong key, address or model, or a server that answers none
            of twice ``concurrency`` prompts in a row, at least six.
        MissingExtraError
            ``jsonschema`` is not installed.
        """
        return self._all(prompts, Schema(schema), check, progress, names, fit, failed)

    def text(self, prompts: Sequence[Prompt], *, progress: Progress | None = None) -> list[str]:
        """Return answers as text; see :meth:`ask`. An empty answer is requested again."""
        return self._all(prompts, None, None, progress)

    def _all(
        self,
        prompts: Sequence[Prompt],
        schema: Schema | None,
        check: Callable[[Any], Any] | None,
        progress: Progress | None,
        names: Sequence[str] | None = None,
        fit: Callable[[Any], Any] | None = None,
        failed: Failed | None = None,
    ) -> list[Any]:
        if isinstance(prompts, str) or not isinstance(prompts, Sequence):
            raise wrong_type(prompts, "prompts", "a list: [prompt]")
        called = _names_of(names, len(prompts))
        questions = [
            _Question(_messages_of(prompt, at), schema, check, called[at], fit) for at, prompt in enumerate(prompts)
        ]
        keys = [self._asker.key(question) for question in questions]

        def answer(at: int, stop: Event) -> _ModelAnswer | _Failure:
            return self._asker.answer(questions[at], f"prompt {at + 1} of {len(prompts)}", stop)

        found, out = _all_answers(answer, keys, self._concurrency, progress, failed), set[str]()
        return [
            None if answered is None else _own(answered, question, key, out)
            for answered, question, key in zip(found, questions, keys, strict=True)
        ]

    def __repr__(self) -> str:
        return f"ChatEndpoint({self._transport.url!r}, model={self._model!r})"


def _own(answer: _ModelAnswer, question: _Question, key: str, out: set[str]) -> Any:
    """Return the checked answer for the first prompt with a key, and a copy for the others."""
    if key in out:
        return _given(answer.kept, question)
    out.add(key)
    return answer.value


def _messages_of(prompt: Any, at: int) -> list[dict[str, str]]:
    """Return the messages of ``prompts[at]``; a string is a user's message."""
    rows = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    whole = isinstance(rows, Sequence) and len(rows) > 0
    if not whole or not all(_is_message(row) for row in rows):
        allowed = f"a string, or a list of messages with a 'role' of {', '.join(ROLES)} and a 'content'"
        raise wrong_value(prompt, f"prompts[{at}]", allowed, "type")
    return [{"role": row["role"], "content": row["content"]} for row in rows]


def _is_message(row: Any) -> bool:
    if not isinstance(row, Mapping) or row.get("role") not in ROLES or not isinstance(row.get("content"), str):
        return False
    try:
        row["content"].encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True


def _names_of(names: Any, number: int) -> list[str | None]:
    """Return the prompts' names in errors, or None for each."""
    if names is None:
        return [None] * number
    listed = checked_texts(names, "names")
    check_length(len(listed), "names", number, "prompt")
    return list(listed)


# ---- Questions and their answers -------------------------------------------------------------------------------------

_LEAST_SILENT = 6  # questions in a row without an answer of the server, which is then taken to be down
_MAX_REPEATED = 4000  # characters of a wrong answer that a correction repeats
_SHAPE = "Answer with one JSON object of this schema, and nothing else:"
_CORRECTION = "That answer cannot be used: {problem}. Answer again, in the same form, and with nothing else."


class _Question(NamedTuple):
    """Messages, the schema and check of their answer, and their name in errors."""

    messages: Messages
    schema: Schema | None
    check: Callable[[Any], Any] | None
    name: str | None = None
    fit: Callable[[Any], Any] | None = None


class _ModelAnswer(NamedTuple):
    """An answer as cached, in JSON, and as returned to the caller."""

    kept: str
    value: Any


class _Failure(NamedTuple):
    """Why one question has no answer, and its name; other questions may have one."""

    error: EndpointError
    place: str


class _Asker:
    """Asks questions and caches answers; asks up to ``retries`` times more for a usable answer."""

    def __init__(self, transport: Transport, model: str, temperature: float | None, retries: int, cache: Cache) -> None:
        self._transport, self._model, self._cache = transport, model, cache
        self._temperature, self._retries = temperature, retries
        self._format: dict[str, int] = {}  # by schema, the strictest format that the endpoint has accepted

    def key(self, question: _Question) -> str:
        """Return the cache key of a question."""
        schema = None if question.schema is None else question.schema.plain
        return key_of(self._model, question.messages, schema, self._temperature)

    def answer(self, question: _Question, place: str, stop: Event) -> _ModelAnswer | _Failure:
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

    def _asked(self, question: _Question, key: str, name: str, stop: Event) -> _ModelAnswer | _Failure:
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
        return _Failure(failure, name)

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


def _all_answers(
    answer: Callable[[int, Event], _ModelAnswer | _Failure],
    keys: Sequence[str],
    concurrency: int,
    progress: Callable[[int, int], None] | None,
    failed: Callable[[int, EndpointError], None] | None,
) -> list[_ModelAnswer | None]:
    """Return ``answer(at, stop)`` for each question; questions with the same key are asked once.

    The first failure stops questions that were not sent yet. Running requests end by themselves, without being waited
    for, and their answers are cached. With ``failed``, which is called with each question that has no answer and the
    reason, only an error that it raises stops them, or an endpoint that answers none of many questions in a row.
    """
    same: dict[str, list[int]] = {}
    for at, key in enumerate(keys):
        same.setdefault(key, []).append(at)
    found: dict[str, _ModelAnswer | None] = {}
    done, silent, stop = 0, 0, Event()

    def one(at: int) -> _ModelAnswer | _Failure:
        try:
            made = answer(at, stop)
            if isinstance(made, _Failure) and failed is None:
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
            if isinstance(made, _Failure):
                silent = silent + 1 if made.error.code == "connection" else 0
                if silent >= max(_LEAST_SILENT, 2 * concurrency):
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


def _given(kept: str, question: _Question) -> Any:
    """Return a new copy of a cached answer, passed through the question's check."""
    value = json.loads(kept)
    return value if question.check is None else question.check(value)


def _checked(kept: str, question: _Question) -> _ModelAnswer:
    try:
        return _ModelAnswer(kept, _given(kept, question))
    except ValueError as error:
        problem = str(error)
    raise UnusableError(problem)


def _fitting(text: Any, question: _Question) -> str:
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
    last = {**messages[-1], "content": f"{messages[-1]['content']}\n\n{_SHAPE}\n{schema}"}
    return [*messages[:-1], last]


def _correction(text: str, problem: str) -> Messages:
    """Return messages that repeat the model's answer and say what is wrong with it."""
    told = {"role": "user", "content": _whole(_CORRECTION.format(problem=problem))}
    return [{"role": "assistant", "content": _whole(text[:_MAX_REPEATED])}, told] if text.strip() else [told]


def _whole(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode."""
    return text.encode(errors="replace").decode()
