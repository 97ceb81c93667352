"""Send a request to a chat endpoint with OpenAI's client, which retries it, and classify failures."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from threading import Event
from typing import Any

from .._validation import UNREADABLE, import_extra, without_key
from ..errors import EndpointError
from ._answers import MAX_SHOWN, UnusableError

Messages = Sequence[Mapping[str, str]]
RETRIED_STATUSES = (408, 409, 429)  # retried by the client, like all from 500
TOO_LARGE = 413
REFUSED = (400, TOO_LARGE, 422)  # this request, where others may be accepted
FORMAT = re.compile(
    r"response[ _]?format|json_(schema|object)", re.IGNORECASE
)  # not "JSON object", which prompts contain
#: Finish reasons of incomplete answers.
CUT = {
    "length": "it was cut off at the model's limit of tokens; be shorter",
    "content_filter": "it was cut off by the endpoint's content filter",
}


class BusyError(Exception):
    """The server was busy, failed or could not be reached in ``requests`` tries of the client."""

    def __init__(self, message: str, request: Any) -> None:
        super().__init__(message)
        self.requests = 1 + int(request.headers.get("x-stainless-retry-count", 0))


class OddAnswerError(Exception):
    """The server's answer is not a chat completion; another request may succeed."""


class RefusedError(Exception):
    """The server refused this request; its argument is the error."""


class FormatRefusedError(RefusedError):
    """The server refused the requested format; its argument is the error if it takes no other."""


class StoppedError(Exception):
    """Another question has failed, so nothing more is sent."""


class Transport:
    """OpenAI's client, with errors that do not contain the key.

    Redirects are not followed: a compromised server could send the prompts to any other server.

    Parameters
    ----------
    base_url : str or None
    key : str
    timeout : float
        Seconds without a byte.
    retries : int
        Retries of a request by the client, with growing waits or as Retry-After says.
    """

    def __init__(self, base_url: str | None, key: str, timeout: float, retries: int) -> None:
        self._library = import_extra("openai", "ChatEndpoint")
        self._key, self._timeout, self._retries = key, timeout, retries
        self._thread = threading.local()
        http = self._library.DefaultHttpxClient(follow_redirects=False, event_hooks={"request": [self._check_stop]})
        self._client = self._library.OpenAI(
            base_url=base_url, api_key=key, timeout=timeout, max_retries=retries, http_client=http
        )
        self.url = str(self._client.base_url)

    def send(self, model: str, messages: Messages, options: Mapping[str, Any], stop: Event) -> str:
        """Return the text of the model's message.

        Raises
        ------
        BusyError, OddAnswerError, RefusedError, FormatRefusedError
        UnusableError
            The text is incomplete, or the model refused.
        StoppedError
            ``stop`` was set before the request, or before a retry.
        EndpointError
            A retry would not help.
        """
        self._thread.stop = stop
        try:
            completion = self._client.chat.completions.create(model=model, messages=list(messages), **options)
            choice = completion.choices[0]
            message, reason = choice.message, choice.finish_reason
            text, refusal = message.content, getattr(message, "refusal", None)
        except self._library.APITimeoutError as error:
            failure: Exception = BusyError(f"no byte was received for {self._timeout:g} s", error.request)
        except self._library.APIConnectionError as error:
            failure = BusyError(self._clean(f"{self.url} cannot be reached: {error.__cause__ or error}"), error.request)
        except self._library.APIStatusError as error:
            failure = self._of_status(error)
        except (self._library.APIError, *UNREADABLE):
            failure = OddAnswerError(
                f"{self.url} answered with something that is not a chat completion; check the address"
            )
        else:
            return self._whole(text, reason, refusal)
        raise failure  # outside the handlers: an error's context would hold the request, whose header has the key

    def _check_stop(self, request: Any) -> None:
        """Raise StoppedError if asked to stop; the client calls this before each request and retry."""
        if self._thread.stop.is_set():
            raise StoppedError

    def _whole(self, text: Any, reason: Any, refusal: Any) -> str:
        if isinstance(refusal, str) and refusal.strip():
            raise UnusableError(self._clean(f"the model refused: {refusal}"))
        if reason in (None, "stop"):
            return text if isinstance(text, str) else ""
        raise UnusableError(CUT.get(str(reason)) or self._clean(f"it ended with {reason!r}; give the answer as text"))

    def _of_status(self, error: Any) -> Exception:
        status, headers = error.status_code, error.response.headers
        told = error.body.get("message") if isinstance(error.body, Mapping) else None
        about = {"url": self.url, "status": status, "said": self._clean(str(told or error.message))}
        if status in RETRIED_STATUSES or status >= 500:
            wait = headers.get("retry-after")
            later = "" if wait is None else f"; it asks to wait: Retry-After {wait}"
            return BusyError(
                self._clean(f"{self.url} answered {status}: {told or error.message}{later}"), error.request
            )
        if 300 <= status < 400:
            return EndpointError(
                "reply",
                None,
                "{url} answered {status}, a redirect to {target}; redirects are not followed: check that address, and "
                "give it as {@base_url}",
                url=self.url,
                status=status,
                target=self._clean(str(headers.get("location"))),
            )
        if status in (401, 403):
            return EndpointError(
                "reply",
                "api_key",
                "{url} answered {status}: {said}; the key is refused: set OPENAI_API_KEY to one that it takes",
                **about,
            )
        if status not in REFUSED:
            return EndpointError(
                "reply", None, "{url} answered {status}: {said}; check the address and the model's name", **about
            )
        whole = f"{told} {error.message}"  # the client's message has text outside the body's ``message``
        refused = EndpointError("reply", None, "{url} answered {status}: {said}; it refuses this request", **about)
        return FormatRefusedError(refused) if status != TOO_LARGE and FORMAT.search(whole) else RefusedError(refused)

    def _clean(self, text: str) -> str:
        """Return a text without the key, which some servers echo."""
        return " ".join(without_key(text, self._key).split())[:MAX_SHOWN]
