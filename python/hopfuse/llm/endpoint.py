"""Ask questions of a language model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from threading import Event
from typing import Any

from .._validation import check_whole
from ..errors import InputError
from ._answers import Schema
from ._asking import Answer, Asker, Question, all_answers, given
from ._cache import Cache
from ._transport import Transport, address_and_key

Prompt = str | Sequence[Mapping[str, str]]
Progress = Callable[[int, int], None]
ROLES = ("system", "developer", "user", "assistant")


class ChatEndpoint:
    """A language model that is asked many questions at once; it keeps answers, and goes on after an interruption.

    Parameters
    ----------
    base_url : str, optional
        The address before ``/chat/completions``, such as ``"http://localhost:8000/v1"``; where absent,
        ``OPENAI_BASE_URL``, else OpenAI's own. It has no password and no query: the key is given apart.
    model : str
        As the endpoint names it.
    api_key : str, optional
        Where absent, ``OPENAI_API_KEY``. Where that is absent too and ``base_url`` is given, for a server that needs
        none, the word ``none`` is sent in its place. The key is sent to the endpoint, and written nowhere.
    cache : path, optional
        Folder of answers, by the hash of model, messages, schema and temperature; made where absent. What is there is
        not asked again. Where a file cannot be read or written, a RuntimeWarning says so once, and the answer is
        returned all the same.
    concurrency : int, at least 1
        Requests at once.
    retries : int, at least 0
        Requests after the first, while the server is busy or fails or a connection breaks: the client of OpenAI waits
        longer each time, or as long as Retry-After says, up to two minutes. Counted apart, as many corrections: an
        answer that is not what the schema or ``check`` asks for is asked for again, with what was wrong.
    timeout : float, above 0
        Seconds without a byte from the endpoint, after which a request is given up. A request as a whole may take
        longer where bytes keep coming.
    temperature : float in [0, 2], or None
        None leaves it to the endpoint; some models take no other.

    Raises
    ------
    InputError
        A value outside the above, no key for OpenAI's own endpoint, an address with a password or a
        query in it, a cache that is no folder.
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
        if not isinstance(model, str) or not model.strip():
            raise InputError(f"model is {model!r}; it must be a name that the endpoint knows")
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise InputError(f"retries is {retries!r}; it must be an integer, at least 0")
        self._concurrency = check_whole(concurrency, "concurrency")
        self._model = model
        self._transport = Transport(*address_and_key(base_url, api_key), _checked_timeout(timeout), int(retries))
        self._asker = Asker(self._transport, model, _checked_temperature(temperature), int(retries), Cache(cache))

    def ask(
        self,
        prompts: Sequence[Prompt],
        schema: Mapping[str, Any],
        *,
        check: Callable[[Any], Any] | None = None,
        progress: Progress | None = None,
        names: Sequence[str] | None = None,
    ) -> list[Any]:
        """Return answers in JSON.

        The schema is sent as ``response_format`` (``json_schema``; ``json_object``, or nothing, where the endpoint
        takes no more), stands at the end of the prompt, and is checked in what comes back: the first JSON object of the
        text that fits it, after a leading ``<think>…</think>``. A prompt that is there twice is asked once.

        Parameters
        ----------
        prompts : sequence of str, or of lists of messages
            A text is a user's message; a message is {"role": ..., "content": ...}.
        schema : mapping
            JSON Schema, draft 2020-12, of type object. A ``$ref`` points within it: nothing is fetched. An integer is
            one in JSON's text too: 1.0 is none.
        check : callable, optional
            Takes an object of its own, for each prompt, and returns the answer; a ValueError is told to the model as
            the schema's errors are. What is kept is the object as it came.
        progress : callable, optional
            Called with the prompts that are answered and their number.
        names : sequence of str, optional
            What the prompts are called in errors; where absent, by their first words.

        Returns
        -------
        list
            An answer for each prompt, in their order.

        Raises
        ------
        InputError
            Prompts that are none, what is no JSON Schema of an object, names of another number than the prompts.
        EndpointError
            A prompt that has no usable answer after all tries, or a refusal that another try would not change; nothing
            more is asked then. Answers that came before are in the cache.
        MissingExtraError
            ``jsonschema`` is not installed.
        """
        return self._all(prompts, Schema(schema), check, progress, names)

    def text(self, prompts: Sequence[Prompt], *, progress: Progress | None = None) -> list[str]:
        """Return answers in words, as the model wrote them; see :meth:`ask`. An empty answer is asked for again."""
        return self._all(prompts, None, None, progress)

    def _all(
        self,
        prompts: Sequence[Prompt],
        schema: Schema | None,
        check: Callable[[Any], Any] | None,
        progress: Progress | None,
        names: Sequence[str] | None = None,
    ) -> list[Any]:
        if isinstance(prompts, str) or not isinstance(prompts, Sequence):
            raise InputError(f"prompts is one {type(prompts).__name__}; pass a list: [prompt]")
        called = _names_of(names, len(prompts))
        questions = [Question(_messages_of(prompt, at), schema, check, called[at]) for at, prompt in enumerate(prompts)]
        keys = [self._asker.key(question) for question in questions]

        def answer(at: int, stop: Event) -> Answer:
            return self._asker.answer(questions[at], f"prompt {at + 1} of {len(prompts)}", stop)

        found, out = all_answers(answer, keys, self._concurrency, progress), set[str]()
        return [_own(*row, out) for row in zip(found, questions, keys, strict=True)]

    def __repr__(self) -> str:
        return f"ChatEndpoint({self._transport.url!r}, model={self._model!r})"


def _own(answer: Answer, question: Question, key: str, out: set[str]) -> Any:
    """Return an answer that no other prompt has: the first of a key takes the one that was checked, others a copy."""
    if key in out:
        return given(answer.kept, question)
    out.add(key)
    return answer.value


def _messages_of(prompt: Any, at: int) -> list[dict[str, str]]:
    """Return the messages of ``prompts[at]``; a text is a user's."""
    rows = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    whole = isinstance(rows, Sequence) and len(rows) > 0
    if not whole or not all(_is_message(row) for row in rows):
        raise InputError(
            f"prompts[{at}] is {str(prompt)[:80]!r}; it must be a text, or a list of messages with a 'role' of "
            f"{', '.join(ROLES)} and a 'content'"
        )
    return [{"role": row["role"], "content": row["content"]} for row in rows]


def _is_message(row: Any) -> bool:
    if not isinstance(row, Mapping) or row.get("role") not in ROLES or not isinstance(row.get("content"), str):
        return False
    try:
        row["content"].encode()
    except UnicodeEncodeError:  # half a character
        return False
    return True


def _names_of(names: Any, number: int) -> list[str | None]:
    """Return what prompts are called in errors; None for each where nothing is given."""
    if names is None:
        return [None] * number
    whole = isinstance(names, Sequence) and not isinstance(names, str | bytes) and len(names) == number
    if not whole or not all(isinstance(name, str) for name in names):
        raise InputError(f"names is {str(names)[:80]!r}; it must be a list of {number} texts, one for each prompt")
    return list(names)


def _checked_temperature(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 2:
        raise InputError(f"temperature is {value!r}; it must be a number in [0, 2], or None")
    return float(value)


def _checked_timeout(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise InputError(f"timeout is {value!r}; it must be a number of seconds above 0")
    return float(value)
