"""The requests of both clients, as steps without input or output: each client sends them in its own way."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict
from urllib.parse import quote

from ..errors import EndpointError, InputError
from .bodies import ARROW, JSON, Questions, as_stream, read_stream, with_vector
from .results import Found, FoundIds, found_of, ids_of

#: Statuses whose fault is the request's.
FAULTS = (400, 404, 413, 415)
#: Seconds beyond a search's own timeout until a connection is given up.
GRACE = 1.0


@dataclass(frozen=True)
class Send:
    """A request that is to be sent, within so many seconds; its answer is (status, headers, body)."""

    method: str
    path: str
    body: bytes | None
    seconds: float
    kind: str = JSON

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of httpx's ``request``."""
        headers = {"content-type": self.kind}
        about = {"content": self.body, "headers": headers, "timeout": self.seconds}
        return {"method": self.method, "url": self.path, **about}


@dataclass(frozen=True)
class Wait:
    """Seconds to wait."""

    seconds: float


Steps = Generator[Send | Wait, Any, Any]


class VectorSearchOptions(TypedDict, total=False):
    """The keyword arguments of a search by vectors."""

    entities: Sequence[Sequence[str | int] | None] | None
    allow: Any
    k: int
    index: str | None
    recipe: str | None
    options: Mapping[str, Any] | None
    at_least: int | None
    timeout: float | None


class SearchOptions(VectorSearchOptions, total=False):
    """The keyword arguments of a search."""

    vectors: Any
    trace: bool
    fields: Sequence[str]


class ChangeOptions(TypedDict, total=False):
    """The keyword arguments of a change."""

    entities: Sequence[str | Mapping[str, Any]] | None
    aliases: Mapping[str, Sequence[str]] | None
    edges: Sequence[Mapping[str, Any]] | None
    facts: Sequence[Sequence[Any]] | None
    replace: bool
    index: str | None
    timeout: float | None


class _UnsupportedError(InputError):
    """The server does not read bodies of this type."""


class Requests:
    """The requests that a server takes.

    Parameters
    ----------
    url : str
    timeout : float
        Seconds.
    """

    def __init__(self, url: str, timeout: float) -> None:
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise InputError(f"url is {url!r}; give the server's address: http://localhost:8080")
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < 86400:
            raise InputError(f"timeout is {timeout!r}; it must be seconds, above 0")
        self.url, self._timeout = url.rstrip("/"), float(timeout)

    def search(
        self,
        queries: Any,
        *,
        vectors: Any = None,
        entities: Any = None,
        allow: Any = None,
        trace: bool = False,
        fields: Sequence[str] = ("title", "text", "metadata"),
        timeout: float | None = None,
        **settings: Any,
    ) -> Steps:
        """Search by JSON; the outcome is a :class:`Found`."""
        asked = Questions.of(queries, vectors, entities, allow)
        stated = {"queries": asked.as_json(), "trace": trace, "fields": list(fields), **_settings(**settings)}
        found: Found = found_of((yield from self._answered("POST", "/v1/search", stated, timeout)))
        return found

    def search_vectors(
        self, vectors: Any, *, entities: Any = None, allow: Any = None, timeout: float | None = None, **settings: Any
    ) -> Steps:
        """Search by an Arrow stream where both sides have pyarrow, else by JSON; the outcome is a :class:`FoundIds`."""
        asked = Questions.of(None, vectors, entities, allow)
        stated = {"fields": [], **_settings(**settings)}
        table = asked.as_table()
        found: FoundIds
        if table is not None:
            try:
                content = yield from self._patiently(
                    "POST", "/v1/search", timeout, lambda limit: as_stream(table, {**stated, **limit}), ARROW
                )
            except _UnsupportedError:
                pass  # the server has no pyarrow
            else:
                found = read_stream(content)
                return found
        stated["queries"] = asked.as_json()
        found = ids_of((yield from self._answered("POST", "/v1/search", stated, timeout)))
        return found

    def add_passages(
        self, passages: Iterable[Mapping[str, Any]], *, timeout: float | None = None, **given: Any
    ) -> Steps:
        """Add passages and more; the outcome is the seq."""
        stated = {name: value for name, value in given.items() if value is not None}
        stated["passages"] = [with_vector(one) for one in passages]
        if "entities" in stated:
            stated["entities"] = [with_vector(one) if isinstance(one, Mapping) else one for one in stated["entities"]]
        answer = yield from self._answered("POST", "/v1/passages", stated, timeout)
        return answer["seq"]

    def delete_passage(self, id: str | int, *, index: str | None = None, timeout: float | None = None) -> Steps:
        """Delete a passage; the outcome is the seq."""
        of = "" if index is None else f"?index={quote(index)}"
        answer = yield from self._answered("DELETE", f"/v1/passages/{quote(str(id), safe='')}{of}", None, timeout)
        return answer["seq"]

    def indexes(self) -> Steps:
        """List the indexes; the outcome is what the server says of each."""
        status, _, content = yield Send("GET", "/v1/indexes", None, self._timeout)
        if status != 200:
            raise self._error(status, content)
        return json.loads(content)["indexes"]

    def lost(self, error: Exception) -> EndpointError:
        """Return the error of a request that nobody answered."""
        return EndpointError(f"{self.url} gave no answer: {error or type(error).__name__}; is hopfuse serve there?")

    def _answered(self, method: str, path: str, stated: dict[str, Any] | None, timeout: float | None) -> Steps:
        """Send JSON, or nothing; the outcome is the JSON of the answer."""
        make = None if stated is None else lambda limit: json.dumps({**stated, **limit}).encode()
        return json.loads((yield from self._patiently(method, path, timeout, make)))

    def _patiently(
        self,
        method: str,
        path: str,
        timeout: float | None,
        make: Callable[[dict[str, int]], bytes] | None,
        kind: str = JSON,
    ) -> Steps:
        """Send a body that ``make`` makes of the time that is left, until it is taken; the outcome is the answer's."""
        end = time.monotonic() + (self._timeout if timeout is None else timeout)
        while True:
            left = end - time.monotonic()
            if left <= 0:
                raise EndpointError(f"{self.url} gave no answer in time; give a larger timeout")
            body = None if make is None else make({"timeout_ms": max(1, int(1000 * left))})
            status, headers, content = yield Send(method, path, body, left + GRACE, kind)
            if status == 200:
                return content
            wait = headers.get("retry-after", "")
            if status not in (429, 503) or not wait.isdecimal() or time.monotonic() + int(wait) >= end:
                raise self._error(status, content)
            yield Wait(int(wait))

    def _error(self, status: int, content: bytes) -> Exception:
        """Return the error of an answer: InputError where the request has the fault."""
        try:
            message = str(json.loads(content)["error"]["message"])
        except (ValueError, KeyError, TypeError):
            message = content[:200].decode("utf-8", "replace")
        if status == 415:
            return _UnsupportedError(message)
        if status in FAULTS:
            return InputError(message)
        return EndpointError(f"{self.url} answered {status}: {message}")


def _settings(
    *,
    k: int = 10,
    index: str | None = None,
    recipe: str | None = None,
    options: Mapping[str, Any] | None = None,
    at_least: int | None = None,
) -> dict[str, Any]:
    """Return the other fields of a search, without those that are the server's own."""
    given = {"k": k, "index": index, "recipe": recipe, "options": options, "at_least": at_least}
    return {name: value for name, value in given.items() if value is not None}
