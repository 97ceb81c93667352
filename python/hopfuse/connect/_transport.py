"""One request to a chat endpoint, by the client of OpenAI, and what its failure means."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from importlib import import_module
from typing import Any

from ..errors import EndpointError, MissingExtraError
from ._answers import UnusableError
from ._cache import Messages

AGAIN = (408, 409, 425, 429)  # and all from 500
NOT_TAKEN = (400, 422)
FORMAT = re.compile(r"response[ _]?format|json_(schema|object)", re.IGNORECASE)  # not "JSON object": prompts say it
LONGEST_WAIT = 300.0  # seconds that a server may ask to wait
SHOWN = 300  # characters of a server's own words
NO_KEY = "none"  # the client does not ask without one
#: Ways to end that are no end.
CUT = {
    "length": "it was cut off at the model's limit of tokens; be shorter",
    "content_filter": "it was cut off by the endpoint's content filter",
}


class TransientError(Exception):
    """Another try may do; ``after`` is what the server asks to wait, in seconds.

    ``busy`` is False where the server did answer, though with something else.
    """

    def __init__(self, message: str, after: float = 0.0, *, busy: bool = True) -> None:
        super().__init__(message)
        self.after, self.busy = after, busy


class NotTakenError(Exception):
    """The format that the request asks for is refused."""


class Transport:
    """The client, and its errors without the key.

    Parameters
    ----------
    base_url : str or None
    key : str
    timeout : float
        Seconds without a byte.
    """

    def __init__(self, base_url: str | None, key: str, timeout: float) -> None:
        try:
            self._library = import_module("openai")
        except ModuleNotFoundError as error:
            raise MissingExtraError("openai", "llm", "ChatEndpoint") from error
        self._key, self._timeout = key, timeout
        self._client = self._library.OpenAI(base_url=base_url, api_key=key, timeout=timeout, max_retries=0)
        self.url = str(self._client.base_url)

    def send(self, model: str, messages: Messages, options: Mapping[str, Any]) -> str:
        """The text of the model's message.

        Raises
        ------
        TransientError, NotTakenError
        UnusableError
            The text is not whole, or the model refused.
        EndpointError
            Another try would be in vain.
        """
        try:
            completion = self._client.chat.completions.create(model=model, messages=list(messages), **options)
            choice = completion.choices[0]
            message, reason = choice.message, choice.finish_reason
            text, refusal = message.content, getattr(message, "refusal", None)
        except self._library.APITimeoutError:
            failure: Exception = TransientError(f"not a byte came for {self._timeout:g} s")
        except self._library.APIConnectionError as error:
            failure = TransientError(self._clean(f"{self.url} cannot be reached: {error.__cause__ or error}"))
        except self._library.APIStatusError as error:
            failure = self._of_status(error)
        except (self._library.APIError, AttributeError, IndexError, TypeError, ValueError, RecursionError):
            odd = f"{self.url} answered with something that is no chat completion; check the address"
            failure = TransientError(odd, busy=False)
        else:
            return self._whole(text, reason, refusal)
        raise failure  # here: an error that is raised above would carry the request, and its header the key

    def _whole(self, text: Any, reason: Any, refusal: Any) -> str:
        if isinstance(refusal, str) and refusal.strip():
            raise UnusableError(self._clean(f"the model refused: {refusal}"))
        if reason in (None, "stop"):
            return text if isinstance(text, str) else ""
        raise UnusableError(CUT.get(str(reason)) or self._clean(f"it ended with {reason!r}; give the answer as text"))

    def _of_status(self, error: Any) -> Exception:
        status = error.status_code
        told = error.body.get("message") if isinstance(error.body, Mapping) else None
        said = self._clean(f"{self.url} answered {status}: {told or error.message}")
        if status in (401, 403):
            return EndpointError(f"{said}; the key is refused: set OPENAI_API_KEY to one that this endpoint takes")
        if status in NOT_TAKEN:
            whole = f"{told} {error.message}"  # the client's own words hold those that are no ``message``
            return NotTakenError(said) if FORMAT.search(whole) else EndpointError(f"{said}; it refuses this request")
        if status not in AGAIN and status < 500:
            return EndpointError(f"{said}; check the address and the model's name")
        after = _seconds(error.response.headers.get("retry-after"))
        if after > LONGEST_WAIT:
            return EndpointError(f"{said}; it asks to wait {after:.0f} s: run again then")
        return TransientError(said, after)

    def _clean(self, text: str) -> str:
        """Without the key, which some servers repeat."""
        hidden = text if self._key == NO_KEY else text.replace(self._key, "[key]")
        return " ".join(hidden.split())[:SHOWN]


def _seconds(header: str | None) -> float:
    """Seconds to wait, from a Retry-After header: a number, or a date (RFC 9110, section 10.2.3)."""
    if header is None:
        return 0.0
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except ValueError:
        return 0.0
