"""One request to a chat endpoint, by the client of OpenAI, and what its failure means."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from importlib import import_module
from typing import Any

from ..errors import EndpointError, MissingExtraError
from ._answers import UnusableError
from ._cache import Messages

AGAIN = (408, 409, 425, 429)  # and all from 500
NOT_TAKEN = (400, 422, 501)
LONGEST_WAIT = 300.0  # seconds that a server may ask to wait
SHOWN = 300  # characters of a server's own words
NO_KEY = "none"


class TransientError(Exception):
    """Another try may do; ``after`` is what the server asks to wait, in seconds."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class NotTakenError(Exception):
    """The request, or the format that it asks for, is refused."""


class Transport:
    """The client, and its errors without the key.

    Parameters
    ----------
    base_url : str or None
    key : str
    timeout : float
        Seconds.
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
            The text is not whole.
        EndpointError
            Another try would be in vain.
        """
        try:
            completion = self._client.chat.completions.create(model=model, messages=list(messages), **options)
            choice = completion.choices[0]
            text = choice.message.content
        except self._library.APITimeoutError:
            raise TransientError(f"no answer within {self._timeout:g} s") from None
        except self._library.APIConnectionError as error:
            raise TransientError(self._clean(f"{self.url} cannot be reached: {error.__cause__ or error}")) from None
        except self._library.APIStatusError as error:
            raise self._of_status(error) from None
        except (self._library.APIError, AttributeError, IndexError, TypeError, ValueError):
            raise TransientError(f"{self.url} answered with something that is no chat completion") from None
        if choice.finish_reason == "length":
            raise UnusableError("it was cut off at the model's limit of tokens; be shorter")
        return text if isinstance(text, str) else ""

    def _of_status(self, error: Any) -> Exception:
        status = error.status_code
        told = error.body.get("message") if isinstance(error.body, Mapping) else None
        said = self._clean(f"{self.url} answered {status}: {told or error.message}")
        if status in (401, 403):
            return EndpointError(f"{said}; the key is refused: set OPENAI_API_KEY to one that this endpoint takes")
        if status in NOT_TAKEN:
            return NotTakenError(said)
        if status not in AGAIN and status < 500:
            return EndpointError(f"{said}; check the address and the model's name")
        after = _seconds(error.response.headers.get("retry-after"))
        if after is not None and after > LONGEST_WAIT:
            return EndpointError(f"{said}; it asks to wait {after:.0f} s: run again then")
        return TransientError(said, after)

    def _clean(self, text: str) -> str:
        """Without the key, which some servers repeat."""
        hidden = text if self._key == NO_KEY else text.replace(self._key, "[key]")
        return " ".join(hidden.split())[:SHOWN]


def _seconds(header: str | None) -> float | None:
    """Seconds to wait, from a Retry-After header: a number, or a date (RFC 9110, section 10.2.3)."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except ValueError:
        return None
