"""Questions to a language model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from threading import Event
from typing import Any

from ..encoders._checks import positive
from ..errors import InputError
from ._asking import Asker, Question
from ._cache import Cache
from ._options import address_and_key, messages_of, real, seconds
from ._pool import all_answers
from ._schema import check_schema
from ._transport import Transport

Prompt = str | Sequence[Mapping[str, str]]
Progress = Callable[[int, int], None]


class ChatEndpoint:
    """Asks many questions at once, keeps the answers, and goes on after an interruption.

    Parameters
    ----------
    base_url : str, optional
        The address before ``/chat/completions``, such as ``"http://localhost:8000/v1"``; where absent,
        ``OPENAI_BASE_URL``, else OpenAI's own.
    model : str
        As the endpoint names it.
    api_key : str, optional
        Where absent, ``OPENAI_API_KEY``. A server that needs none is asked without one if ``base_url`` is given. The
        key is sent to the endpoint, and written nowhere.
    cache : path, optional
        Folder of answers, by the hash of model, messages, schema and temperature; made where absent. What is there is
        not asked again.
    concurrency : int, at least 1
        Requests at once.
    retries : int, at least 0
        Requests of one question after its first: the server is busy or fails, a connection breaks, or the answer is
        not what the schema says, which the model is told.
    timeout : float, above 0
        Seconds that a request may take.
    temperature : float in [0, 2], or None
        None leaves it to the endpoint; some models take no other.
    backoff : float, at least 0
        Seconds before the second request; each further wait is twice as long, at most 60 s, and a random part of up to
        half is taken off. Where the server says how long to wait (Retry-After), that holds.

    Raises
    ------
    InputError
        A value outside the above, no key for OpenAI's own endpoint, an address with a password in it.
    MissingExtraError
        ``openai`` is not installed.

    Examples
    --------
    >>> from hopfuse.connect import ChatEndpoint
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
        backoff: float = 0.5,
    ) -> None:
        if not isinstance(model, str) or not model.strip():
            raise InputError(f"model is {model!r}; it must be a name that the endpoint knows")
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise InputError(f"retries is {retries!r}; it must be an integer, at least 0")
        self._concurrency = positive(concurrency, "concurrency")
        self._model, self._temperature = model, None if temperature is None else real(temperature, "temperature", 2)
        self._transport = Transport(*address_and_key(base_url, api_key), seconds(timeout))
        self._cache, self._retries, self._backoff = Cache(cache), retries, real(backoff, "backoff", 60)
        self._asker = Asker(self._transport, self._model, self._temperature, self._retries, self._backoff, self._cache)

    def ask(
        self,
        prompts: Sequence[Prompt],
        schema: Mapping[str, Any],
        *,
        check: Callable[[Any], Any] | None = None,
        progress: Progress | None = None,
    ) -> list[Any]:
        """Answers in JSON.

        The schema is sent as ``response_format`` (``json_schema``; ``json_object``, or nothing, where the endpoint
        takes no more), stands at the end of the prompt, and is checked in what comes back: the first JSON object of the
        text that fits it. A prompt that is there twice is asked once.

        Parameters
        ----------
        prompts : sequence of str, or of lists of messages
            A text is a user's message; a message is {"role": ..., "content": ...}.
        schema : mapping
            JSON Schema of an object: ``type``, ``properties``, ``required``, ``additionalProperties`` (False),
            ``items``, ``minItems``, ``maxItems``, ``enum``, ``description``.
        check : callable, optional
            Takes the object and returns the answer; a ValueError is told to the model as the schema's errors are.
        progress : callable, optional
            Called with the prompts that are answered and their number.

        Returns
        -------
        list
            An answer for each prompt, in their order.

        Raises
        ------
        InputError
            Prompts that are none, a schema with other keywords.
        EndpointError
            A prompt that has no usable answer after all tries, or a refusal that another try would not change; nothing
            more is asked then. Answers that came before are in the cache.
        """
        check_schema(schema)
        if schema["type"] != "object":
            raise InputError(f"schema is of type {schema['type']!r}; an answer is an object: put it in a property")
        return self._all(prompts, dict(schema), check, progress)

    def text(self, prompts: Sequence[Prompt], *, progress: Progress | None = None) -> list[str]:
        """Answers in words; see :meth:`ask`. An empty answer is asked for again."""
        return self._all(prompts, None, None, progress)

    def _all(
        self,
        prompts: Sequence[Prompt],
        schema: Mapping[str, Any] | None,
        check: Callable[[Any], Any] | None,
        progress: Progress | None,
    ) -> list[Any]:
        if isinstance(prompts, str) or not isinstance(prompts, Sequence):
            raise InputError(f"prompts is one {type(prompts).__name__}; pass a list: [prompt]")
        questions = [Question(messages_of(prompt, at), schema, check) for at, prompt in enumerate(prompts)]
        keys = [self._asker.key(question) for question in questions]

        def answer(at: int, stop: Event) -> Any:
            return self._asker.answer(questions[at], f"prompt {at + 1} of {len(prompts)}", stop)

        return all_answers(answer, keys, self._concurrency, progress)

    def __repr__(self) -> str:
        return f"ChatEndpoint({self._transport.url!r}, model={self._model!r})"
