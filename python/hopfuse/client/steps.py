"""The requests of both clients, as generators that yield what to send; each client does the input and output."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from operator import itemgetter
from typing import Any, Literal, TypedDict
from urllib.parse import quote, urlencode

import numpy as np
from numpy.typing import NDArray

from .._validation import UNREADABLE, check_length, check_list, check_number, check_type
from ..errors import EndpointError, HopfuseError, InputError, error_of
from ..io.arrow import unreadable
from .results import Found, FoundIds, deletions_of, found_of, ids_of, padded, page_of, passage_of

#: Seconds to wait for a response beyond the timeout in the request.
GRACE = 1.0
#: The most of ``timeout_ms`` that a server allows by default (``limits.max_timeout_ms``).
MOST_MS = 60_000

_JSON = "application/json"
_ARROW = "application/vnd.apache.arrow.stream"


@dataclass(frozen=True)
class Send:
    """A request; the generator is sent (status, headers, body).

    It is to be answered within ``seconds``, which are left of the caller's ``timeout``.
    """

    method: str
    path: str
    body: bytes | None
    seconds: float
    timeout: float
    kind: str = _JSON

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of httpx's ``request``."""
        headers = {"content-type": self.kind}
        about = {"content": self.body, "headers": headers, "timeout": self.seconds + GRACE}
        return {"method": self.method, "url": self.path, **about}


@dataclass(frozen=True)
class Wait:
    """A pause, in seconds."""

    seconds: float


Steps = Generator[Send | Wait, Any, Any]
AtLeast = int | Literal["latest"] | None


class VectorSearchOptions(TypedDict, total=False):
    """The keyword arguments of a search by vectors."""

    entities: Sequence[Sequence[str | int] | None] | None
    allow: Any
    k: int
    index: str | None
    recipe: str | None
    options: Mapping[str, Any] | None
    per_document: int | None
    strict: bool | None
    at: str | float | datetime | None
    at_least: AtLeast
    timeout: float | None


class SearchOptions(VectorSearchOptions, total=False):
    """The keyword arguments of a search."""

    vectors: Any
    trace: bool
    fields: Sequence[str]


class ReadOptions(TypedDict, total=False):
    """The keyword arguments of reading a passage."""

    index: str | None
    at_least: AtLeast
    timeout: float | None


class ScrollOptions(ReadOptions, total=False):
    """The keyword arguments of reading passages page by page."""

    after: str | int | None
    limit: int | None


class ChangeOptions(TypedDict, total=False):
    """The keyword arguments of a change."""

    entities: Sequence[str | Mapping[str, Any]] | None
    aliases: Mapping[str, Sequence[str]] | None
    merge: Mapping[str, Sequence[str]] | None
    edges: Sequence[Mapping[str, Any]] | None
    facts: Sequence[Sequence[Any]] | None
    replace: bool
    index: str | None
    timeout: float | None


class DeletionOptions(TypedDict, total=False):
    """The keyword arguments of a deletion of passages."""

    where: Mapping[str, Any] | None
    document: str | int | None
    dry_run: bool
    index: str | None
    timeout: float | None


class Requests:
    """The requests of a server.

    Parameters
    ----------
    url : str
    timeout : float
        Seconds.
    has_key : bool
        Whether a key is sent.
    """

    def __init__(self, url: str, timeout: float, *, has_key: bool) -> None:
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise InputError(
                "syntax", "url", "{field} is {given!r}; give the server's address: http://localhost:8080", given=url
            )
        self.url, self._timeout = url.rstrip("/"), check_number(timeout, "timeout", above=0, below=86400)
        self._most_ms, self._has_key = MOST_MS, has_key

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
        """Search by JSON; return a :class:`Found`."""
        asked = _QuestionColumns.of(queries, vectors, entities, allow)
        stated = {"queries": asked.as_json(), "trace": trace, "fields": list(fields), **_settings(**settings)}
        found: Found = yield from self._answered(found_of, "POST", "/v1/search", stated, timeout)
        return found

    def search_vectors(
        self, vectors: Any, *, entities: Any = None, allow: Any = None, timeout: float | None = None, **settings: Any
    ) -> Steps:
        """Search by an Arrow stream if both sides have pyarrow, else by JSON; return a :class:`FoundIds`."""
        asked = _QuestionColumns.of(None, vectors, entities, allow)
        stated = {"fields": [], **_settings(**settings)}
        table = asked.as_table()
        found: FoundIds
        if table is not None:
            try:
                content = yield from self._retried(
                    "POST", "/v1/search", timeout, lambda limit: _as_stream(table, {**stated, **limit}), _ARROW
                )
            except InputError as error:
                if error.code != "unsupported":
                    raise
            else:
                found = self._read(_read_stream, content)
                return found
        stated["queries"] = asked.as_json()
        found = yield from self._answered(ids_of, "POST", "/v1/search", stated, timeout)
        return found

    def add_passages(
        self, passages: Iterable[Mapping[str, Any]], *, timeout: float | None = None, **given: Any
    ) -> Steps:
        """Add passages and more; return the seq."""
        stated = {name: value for name, value in given.items() if value is not None}
        listed = check_list(passages, "passages", "a list of mappings with id and text")
        stated["passages"] = [_with_vector(one, f"passages[{i}]") for i, one in enumerate(listed)]
        if "entities" in stated:
            stated["entities"] = [
                _with_vector(one, f"entities[{i}]") if isinstance(one, Mapping) else one
                for i, one in enumerate(stated["entities"])
            ]
        return (yield from self._answered(itemgetter("seq"), "POST", "/v1/passages", stated, timeout))

    def delete_passage(self, id: str | int, *, index: str | None = None, timeout: float | None = None) -> Steps:
        """Delete a passage; return the seq."""
        return (yield from self._answered(itemgetter("seq"), "DELETE", _path_of(id, index=index), None, timeout))

    def delete_passages(
        self, ids: Iterable[str | int] | None = None, *, timeout: float | None = None, **given: Any
    ) -> Steps:
        """Delete passages by ids, conditions or document; return :class:`Deletions`."""
        stated = {name: value for name, value in given.items() if value is not None}
        if ids is not None:
            stated["ids"] = _ids(ids, "ids", "a list of ids of passages")
        return (yield from self._answered(deletions_of, "POST", "/v1/passages/delete", stated, timeout))

    def passage(self, id: str | int, *, timeout: float | None = None, **where: Any) -> Steps:
        """Read a passage; return a :class:`Passage`."""
        return (yield from self._answered(passage_of, "GET", _path_of(id, **where), None, timeout))

    def page(self, *, timeout: float | None = None, **where: Any) -> Steps:
        """Read a page of passages; return a :class:`PassagesPage`."""
        return (yield from self._answered(page_of, "GET", _with("/v1/passages", **where), None, timeout))

    def indexes(self) -> Steps:
        """List the indexes; return the description of each."""
        status, _, content = yield Send("GET", "/v1/indexes", None, self._timeout, self._timeout)
        if status != 200:
            raise self._error(status, content)
        return self._read(lambda content: list(json.loads(content)["indexes"]), content)

    def lost(self, sent: Send, error: Exception, *, late: bool) -> EndpointError:
        """Return the error for a request without a response."""
        if late:
            return self._late(sent.timeout, f"{type(error).__name__}; is hopfuse serve running there?")
        return EndpointError(
            "connection",
            None,
            "{url} did not answer: {reason}; is hopfuse serve running there?",
            url=self.url,
            reason=str(error) or type(error).__name__,
        )

    def _late(self, seconds: float, reason: str) -> EndpointError:
        return EndpointError(
            "timeout",
            "timeout",
            "{url} did not answer within the {field} of {seconds:g} s: {reason}",
            url=self.url,
            seconds=seconds,
            reason=reason,
        )

    def _answered(
        self, read: Callable[[Any], Any], method: str, path: str, stated: dict[str, Any] | None, timeout: float | None
    ) -> Steps:
        """Send JSON, or no body; return what ``read`` makes of the JSON of the response."""
        make = None if stated is None else lambda limit: _json({**stated, **limit})
        content = yield from self._retried(method, path, timeout, make)
        return self._read(lambda content: read(json.loads(content)), content)

    def _read(self, read: Callable[[bytes], Any], content: bytes) -> Any:
        """Return what ``read`` makes of the body of an answer; refuse one that a server of hopfuse does not give."""
        try:
            return read(content)
        except UNREADABLE:
            failure = EndpointError(
                "reply",
                None,
                "{url} answered {answer!r}; hopfuse serve answers in another form: check the address",
                url=self.url,
                answer=content[:200].decode("utf-8", "replace"),
            )
        raise failure

    def _retried(
        self,
        method: str,
        path: str,
        timeout: float | None,
        make: Callable[[dict[str, int]], bytes] | None,
        kind: str = _JSON,
    ) -> Steps:
        """Send a request until it is accepted; return the response's body. ``make`` makes a body with the time left.

        Without a body, the time left is one more parameter of the path. If it is more than the server allows, that is
        sent.
        """
        seconds = self._timeout if timeout is None else timeout
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            if left <= 0:
                raise self._late(seconds, "give a larger one")
            ms = max(1, min(int(1000 * left), self._most_ms))
            limit = {"timeout_ms": ms}
            body, where = (None, f"{path}&{urlencode(limit)}") if make is None else (make(limit), path)
            status, headers, content = yield Send(method, where, body, left, seconds, kind)
            if status == 200:
                return content
            if status == 504:
                raise self._error(status, content).at(f"timeout of {min(seconds, self._most_ms / 1000):g} s")
            if status == 400:
                error = self._error(status, content)
                most = error.values.get("most") if error.field == "timeout_ms" else None
                if not isinstance(most, int) or not 0 < most < ms:
                    raise error
                self._most_ms = most
                continue
            wait = headers.get("retry-after", "")
            if status not in (429, 503) or not wait.isdecimal() or time.monotonic() + int(wait) >= end:
                raise self._error(status, content)
            yield Wait(int(wait))

    def _error(self, status: int, content: bytes) -> HopfuseError:
        """Return the error of an answer, of the same class, code and field as on the server."""
        if status == 401 and b'"unauthorized"' in content:
            return self._unauthorized()
        try:
            error = error_of(json.loads(content)["error"])
            if not str(error):
                raise ValueError("the answer does not say why")
        except UNREADABLE:
            values = {"url": self.url, "status": status, "answer": content[:200].decode("utf-8", "replace")}
            if status == 415:
                return InputError("unsupported", None, "{url} does not take {kind}: {answer}", kind=_ARROW, **values)
            return EndpointError("reply", None, "{url} answered {status}: {answer}", **values)
        return error if isinstance(error, InputError) else error.at(f"{self.url} answered {status}")

    def _unauthorized(self) -> EndpointError:
        """Return the error for a key that the server does not know, in terms of the client's argument."""
        return EndpointError(
            "unauthorized",
            "key",
            "{field} {given}, and {url} answers only to the keys of its configuration; give one that `hopfuse serve "
            "key` has made for it",
            given="is none of the server's" if self._has_key else "is missing",
            url=self.url,
        )


def _path_of(id: str | int, **parameters: Any) -> str:
    """Return the path of a passage."""
    own = quote(_sent("id", check_type(id, "id", (str, int), "the id of a passage")), safe="")
    if own in (".", ".."):  # which would be a step in the path
        own = own.replace(".", "%2E")
    return _with(f"/v1/passages/{own}", **parameters)


def _with(path: str, **parameters: Any) -> str:
    """Return a path with the parameters that are given."""
    given = {name: _sent(name, value) for name, value in parameters.items() if value is not None}
    return f"{path}?{urlencode(given)}"


def _sent(name: str, value: Any) -> str:
    """Return a value as text for an address, which is UTF-8."""
    text = str(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(
            "syntax", name, "{field} is {given!r}, which has a lone surrogate, half a character; give text", given=text
        ) from None
    return text


def _settings(
    *,
    k: int = 10,
    index: str | None = None,
    recipe: str | None = None,
    options: Mapping[str, Any] | None = None,
    per_document: int | None = None,
    strict: bool | None = None,
    at: str | float | datetime | None = None,
    at_least: AtLeast = None,
) -> dict[str, Any]:
    """Return the other fields of a search, without those left to the server."""
    given: dict[str, Any] = {"k": k, "index": index, "recipe": recipe, "options": options, "at_least": at_least}
    given |= {"per_document": per_document, "strict": strict}
    given["at"] = at
    return {name: value for name, value in given.items() if value is not None}


# ---- Bodies ----------------------------------------------------------------------------------------------------------

#: What a search takes as ``allow``.
_FILTERS = (
    "ids of passages, conditions such as {'year__ge': 2020}, or a list with one of these or None for each question"
)
#: Key in the schema's metadata for the fields of a JSON body other than the queries.
_KEY = b"hopfuse"


@dataclass(frozen=True, eq=False)
class _QuestionColumns:
    """The columns of a batch of questions, each None or of the same length.

    Attributes
    ----------
    texts : list of str, optional
    vectors : ndarray of float32, shape (B, d), optional
    entities : list of (list or None), optional
    allow : list of (list, mapping or None), optional
    """

    texts: list[Any] | None
    vectors: NDArray[np.float32] | None
    entities: list[Any] | None
    allow: list[Any] | None

    @classmethod
    def of(cls, texts: Any, vectors: Any, entities: Any, allow: Any) -> _QuestionColumns:
        """Return the questions from the arguments of a search.

        Raises
        ------
        InputError
            All columns are missing, or their lengths differ.
        """
        columns: dict[str, Any] = {
            "queries": [texts] if isinstance(texts, str) else None if texts is None else _listed(texts, "queries"),
            "vectors": None if vectors is None else np.atleast_2d(np.asarray(vectors, "<f4")),
            "entities": None if entities is None else _listed(entities, "entities"),
        }
        lengths = {name: len(column) for name, column in columns.items() if column is not None}
        if not lengths or len(set(lengths.values())) != 1:
            raise InputError(
                "length",
                "queries",
                "{field}, {@vectors} and {@entities} must have an entry for each question; given: {counts}",
                given=lengths or "none",
                counts=", ".join(f"{count:,} {name}" for name, count in lengths.items()) or "none",
            )
        given = {"texts": columns["queries"], "vectors": columns["vectors"], "entities": columns["entities"]}
        return cls(**given, allow=_allowed(allow, next(iter(lengths.values()))))

    def as_json(self) -> list[dict[str, Any]]:
        """Return an object for each question, without missing fields."""
        columns = {
            "text": self.texts,
            "vector_base64": None if self.vectors is None else [_encoded(row) for row in self.vectors],
            "entities": self.entities,
            "allow": self.allow,
        }
        given = {name: column for name, column in columns.items() if column is not None}
        rows = zip(*given.values(), strict=True)
        return [{name: one for name, one in zip(given, row, strict=True) if one is not None} for row in rows]

    def as_table(self) -> Any:
        """Return a pyarrow table; None if pyarrow is not installed, or a column would have values of several types."""
        try:
            pa = import_module("pyarrow")
            import_module("pyarrow.ipc")
        except ModuleNotFoundError:
            return None
        columns: dict[str, Any] = {}
        if self.texts is not None:
            columns["text"] = pa.array(self.texts, pa.string())
        if self.vectors is not None:
            flat = pa.array(np.ascontiguousarray(self.vectors).ravel())
            columns["vector"] = pa.FixedSizeListArray.from_arrays(flat, self.vectors.shape[1])
        for name, lists in (("entities", self.entities), ("allow", self.allow)):
            if lists is None:
                continue
            kinds = {type(one) for row in lists if row is not None for one in row}
            if any(isinstance(row, Mapping) for row in lists) or not (kinds <= {str} or kinds <= {int}):
                return None
            columns[name] = pa.array(lists, pa.list_(pa.int64() if kinds == {int} else pa.string()))
        return pa.table(columns)


def _as_stream(table: Any, settings: Mapping[str, Any]) -> bytes:
    """Return a table as an Arrow IPC stream, with the other fields of a search in the schema's metadata."""
    pa = import_module("pyarrow")
    sink, stated = pa.BufferOutputStream(), table.replace_schema_metadata({_KEY: _json(settings)})
    with pa.ipc.new_stream(sink, stated.schema) as writer:
        writer.write_table(stated)
    return bytes(sink.getvalue())


def _read_stream(content: bytes) -> FoundIds:
    """Return the ids and scores of an Arrow response."""
    try:
        table = import_module("pyarrow").ipc.open_stream(content).read_all()
        table.validate(full=True)
        about = json.loads(table.schema.metadata[_KEY])
        scores = table.column("score").combine_chunks().flatten().to_numpy(zero_copy_only=False)
        return padded(table.column("id").to_pylist(), scores, about)
    except unreadable() as error:
        raise ValueError(str(error)) from None


def _json(value: Any) -> bytes:
    """Return JSON; times of metadata and of conditions as text, and NumPy's values as Python's."""
    return json.dumps(value, default=_plain).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, np.datetime64) and value == value.astype("datetime64[us]"):
        return f"{value.astype('datetime64[us]')}Z"
    if isinstance(value, np.generic | np.ndarray) and not isinstance(value, np.datetime64):
        return value.tolist()
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    raise InputError("type", None, "{given!r} cannot be sent to a server as JSON; convert it", given=value)


def _encoded(vector: Any) -> str:
    """Return a vector as base64 of little-endian float32 values."""
    return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()


def _with_vector(row: Mapping[str, Any], field: str) -> dict[str, Any]:
    """Return a passage or an entity with its vector as base64."""
    given = dict(check_type(row, field, Mapping, "a mapping"))
    vector = given.pop("vector", None)
    return given if vector is None else {**given, "vector_base64": _encoded(vector)}


def _listed(values: Any, name: str) -> list[Any]:
    if isinstance(values, str):
        raise InputError("type", name, "{field} is one string; pass a list: [{given!r}]", given=values)
    return [list(one) if isinstance(one, tuple) else one for one in values]


def _allowed(allow: Any, count: int) -> list[Any] | None:
    """Return one filter for each question."""
    if allow is None:
        return None
    is_filter = isinstance(allow, Mapping)
    listed = [] if is_filter else check_list(allow, "allow", _FILTERS)
    is_one = is_filter or not any(one is None or isinstance(one, list | tuple | Mapping) for one in listed)
    each: Sequence[Any] = [allow if is_filter else listed] * count if is_one else listed
    check_length(len(each), "allow", count, "question")
    return [one if one is None or isinstance(one, Mapping) else _ids(one, "allow", _FILTERS) for one in each]


def _ids(given: Any, field: str, allowed: str) -> list[Any]:
    """Return ids of passages as a list."""
    ids = check_list(given, field, allowed)
    for one in ids:
        check_type(one, field, (str, int), allowed)
    return ids
