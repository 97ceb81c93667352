"""Ask questions of a language model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from threading import Event
from typing import Any

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
from ._answers import Schema
from ._asking import Answer, Asker, Failure, Question, all_answers, given
from ._cache import Cache
from ._transport import Transport

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
        self._asker = Asker(self._transport, model, warmth, retries, Cache(cache))

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
            A prompt has no usable answer after all tries, or the endpoint refused it. Nothing more is sent then;
            earlier answers are in the cache. With ``failed``, only a wrong key, address or model, or a server that
            answers none of twice ``concurrency`` prompts in a row, at least six.
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
            Question(_messages_of(prompt, at), schema, check, called[at], fit) for at, prompt in enumerate(prompts)
        ]
        keys = [self._asker.key(question) for question in questions]

        def answer(at: int, stop: Event) -> Answer | Failure:
            return self._asker.answer(questions[at], f"prompt {at + 1} of {len(prompts)}", stop)

        found, out = all_answers(answer, keys, self._concurrency, progress, failed), set[str]()
        return [
            None if answered is None else _own(answered, question, key, out)
            for answered, question, key in zip(found, questions, keys, strict=True)
        ]

    def __repr__(self) -> str:
        return f"ChatEndpoint({self._transport.url!r}, model={self._model!r})"


def _own(answer: Answer, question: Question, key: str, out: set[str]) -> Any:
    """Return the checked answer for the first prompt with a key, and a copy for the others."""
    if key in out:
        return given(answer.kept, question)
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
