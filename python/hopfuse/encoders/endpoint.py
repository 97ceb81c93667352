"""Encode by an embedding model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from hashlib import sha256
from importlib import import_module
from os import PathLike, fspath
from threading import Event, Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import (
    UNREADABLE,
    address_and_key,
    check_number,
    check_text,
    check_whole,
    checked_texts,
    float32_of,
    import_extra,
    without_key,
)
from ..errors import EndpointError, InputError
from .protocol import NamedEncoder

#: The largest number of texts in a request: OpenAI's limit.
MAX_BATCH = 2048
#: Statuses by which an endpoint refuses these texts, where it may accept others: too long, filtered.
REFUSED = frozenset((400, 413, 422))


class EndpointEncoder(NamedEncoder):
    """An embedding model behind ``POST /embeddings``, called in batches, with an optional cache of its vectors.

    Vectors arrive as JSON numbers and are rounded to float32. With ``normalize`` they are scaled to length 1 in
    float64. A text that occurs twice in a call is sent once.

    Parameters
    ----------
    base_url : str, optional
        The URL before ``/embeddings``, such as ``"http://localhost:8000/v1"``, without a password or a query; by
        default ``OPENAI_BASE_URL``, else OpenAI's own.
    model : str
        The endpoint's name of the model.
    dim : int
        Entries of a vector. An answer with another number is an error.
    ask_dim : bool
        Send ``dim`` as ``dimensions``, for models that can shorten their vectors.
    query_prefix, passage_prefix : str
        Text that the model expects before every query and every passage (``"query: "``).
    api_key : str, optional
        By default ``OPENAI_API_KEY``. If that is not set and there is a URL, the key ``none`` is sent.
    batch_size : int, 1 to 2,048
        Texts in one request.
    concurrency : int, at least 1
        Concurrent requests.
    cache : path, optional
        A SQLite file of vectors, keyed by the hash of URL, model, dim and text, and created if absent. Texts that it
        holds are not sent again. Several processes may share it.
    retries : int, at least 0
        Retries of a request by OpenAI's client, with growing waits or as Retry-After says.
    timeout : float, above 0
        Seconds without a byte.
    name : str, optional
        The name that an index stores and compares; by default ``"endpoint/"`` and the model's name.
    normalize : bool
        Scale every row to length 1.

    Raises
    ------
    InputError
        A value outside the above, or a cache that cannot be used.
    EndpointError
        While encoding: no answer, a refusal, a wrong number of vectors or dimension, or entries that are not finite
        numbers.
    MissingExtraError
        ``openai`` is not installed.

    Examples
    --------
    >>> from hopfuse.encoders import EndpointEncoder
    >>> encoder = EndpointEncoder("http://localhost:8000/v1", model="bge-small-en-v1.5", dim=384)
    >>> encoder.name, encoder.dim
    ('endpoint/bge-small-en-v1.5', 384)
    """

    def __init__(
        self,
        base_url: str | None = None,
        *,
        model: str,
        dim: int,
        ask_dim: bool = False,
        query_prefix: str = "",
        passage_prefix: str = "",
        api_key: str | None = None,
        batch_size: int = 64,
        concurrency: int = 4,
        cache: str | PathLike[str] | None = None,
        retries: int = 4,
        timeout: float = 60.0,
        name: str | None = None,
        normalize: bool = True,
    ) -> None:
        check_text(model, "model")
        super().__init__(name or f"endpoint/{model}", check_whole(dim, "dim"), normalize)
        self._model, self._prefixes = model, (query_prefix, passage_prefix)
        self._batch_size = check_whole(batch_size, "batch_size", MAX_BATCH)
        self._concurrency = check_whole(concurrency, "concurrency")
        self._options = {"dimensions": self._dim} if ask_dim else {}
        self._cache = None if cache is None else _VectorCache(cache, self._dim)
        self._key, self._client = _client(base_url, api_key, retries, timeout)

    def try_passages(self, texts: Sequence[str], failed: Callable[[int, EndpointError], None]) -> NDArray[np.float32]:
        """Return the vectors of passages, and zeros for a text that the endpoint refuses by itself (400, 413, 422).

        A batch that is refused is divided until the text is found. Nothing more is sent after any other error.

        Parameters
        ----------
        texts : sequence of str, n entries
        failed : callable
            Called with the number of a text that is refused and the error, one call at a time. An error that it raises
            ends the call.

        Returns
        -------
        ndarray of float32, shape (n, dim), C-contiguous

        Raises
        ------
        InputError, EndpointError
            As :meth:`encode_passages`.
        """
        whole = [self._prefixes[True] + text for text in checked_texts(texts)]
        places: dict[str, list[int]] = {}
        for at, text in enumerate(whole):
            places.setdefault(text, []).append(at)
        lock = Lock()

        def refused(text: str, error: EndpointError) -> None:
            with lock:
                for at in places[text]:
                    failed(at, error)

        made = self._made(places, refused)
        kept = [at for at, text in enumerate(whole) if text in made]
        rows = np.zeros((len(whole), self._dim), np.float32)
        if kept:
            rows[kept] = self._checked([made[whole[at]] for at in kept], len(kept))
        return rows

    def forget(self, texts: Sequence[str]) -> None:
        """Delete the vectors of texts from the cache, and overwrite them in its file; without a cache, do nothing.

        A :class:`hopfuse.LiveIndex` that was opened with the encoder does so for what was deleted when it is compacted.

        Parameters
        ----------
        texts : sequence of str

        Raises
        ------
        InputError
            A single string, an entry that is not a string, or a cache that cannot be used.
        """
        listed = checked_texts(texts)
        if self._cache is not None:
            self._cache.forget([self._key_of(prefix + text) for text in listed for prefix in self._prefixes])

    def _vectors(self, texts: list[str], of_passages: bool) -> list[NDArray[np.float32]]:
        whole = [self._prefixes[of_passages] + text for text in texts]
        made = self._made(whole)
        return [made[text] for text in whole]

    def _made(
        self, texts: Iterable[str], refused: Callable[[str, EndpointError], None] | None = None
    ) -> dict[str, NDArray[np.float32]]:
        """Return the vector of each distinct text, without those for which ``refused`` is called."""
        keys = {text: self._key_of(text) for text in texts}
        known = {} if self._cache is None else self._cache.read(list(keys.values()))
        made = {text: known[key] for text, key in keys.items() if key in known}
        new = [text for text in keys if text not in made]
        batches = [new[at : at + self._batch_size] for at in range(0, len(new), self._batch_size)]
        stopped = Event()

        def ask(batch: list[str]) -> dict[str, NDArray[np.float32]]:
            if stopped.is_set():
                return {}
            try:
                return self._ask_and_store(batch, refused)
            except BaseException:
                stopped.set()
                raise

        with ThreadPoolExecutor(max_workers=max(1, min(self._concurrency, len(batches)))) as pool:
            for rows in pool.map(ask, batches):
                made |= rows
        return made

    def _key_of(self, text: str) -> bytes:
        parts = [str(self._client.base_url), self._model, str(self._dim), text]
        return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()

    def _ask_and_store(
        self, batch: list[str], refused: Callable[[str, EndpointError], None] | None
    ) -> dict[str, NDArray[np.float32]]:
        try:
            rows = self._ask(batch)
        except EndpointError as error:
            if refused is None or error.values.get("status") not in REFUSED:
                raise
            failure = error
        else:
            if self._cache is not None:
                self._cache.write([self._key_of(text) for text in batch], rows)
            return dict(zip(batch, rows, strict=True))
        if len(batch) == 1:
            refused(batch[0], failure)
            return {}
        half = len(batch) // 2
        return self._ask_and_store(batch[:half], refused) | self._ask_and_store(batch[half:], refused)

    def _ask(self, batch: list[str]) -> NDArray[np.float32]:
        library = import_module("openai")
        try:
            answer = self._client.embeddings.create(
                model=self._model, input=batch, encoding_format="float", **self._options
            )
            vectors = [one.embedding for one in sorted(answer.data, key=lambda one: int(one.index))]
        except library.APIStatusError as error:
            failure = EndpointError(
                "reply",
                None,
                "{url} answered {status}: {said}; check the address and the model",
                url=self._url,
                status=error.status_code,
                said=self._clean(error.message),
            )
        except library.APIConnectionError as error:
            failure = EndpointError(
                "connection",
                None,
                "{url} gave no answer: {error}; check the address",
                url=self._url,
                error=self._clean(str(error.__cause__ or error)),
            )
        except (library.APIError, *UNREADABLE) as error:
            failure = EndpointError(
                "syntax",
                None,
                "{url} answered with no list of embeddings ({kind}); check the address",
                url=self._url,
                kind=type(error).__name__,
            )
        else:
            return self._rows(vectors, len(batch))
        raise failure  # outside the handlers: a handled error would hold the key

    def _rows(self, vectors: list[Any], count: int) -> NDArray[np.float32]:
        lengths = {len(vector) if isinstance(vector, list) else None for vector in vectors}
        if len(vectors) != count or (None not in lengths and lengths != {self._dim}):
            raise EndpointError(
                "shape",
                "dim",
                "{url} answered {given} vectors of {lengths} entries for {count} texts, and {field} is {allowed}; "
                "check the model, and give {field} as it makes vectors",
                url=self._url,
                given=len(vectors),
                lengths=sorted(length for length in lengths if length is not None),
                count=count,
                allowed=self._dim,
            )
        numbers = None if None in lengths else _numbers(vectors)
        if numbers is None:
            raise EndpointError(
                "type",
                None,
                "{url} answered an embedding that is not a list of numbers; check the model",
                url=self._url,
            )
        rows = float32_of(numbers)
        if not np.isfinite(rows).all():
            raise EndpointError(
                "finite", None, "{url} answered a vector with a NaN or outside float32's range", url=self._url
            )
        return rows

    @property
    def _url(self) -> str:
        return str(self._client.base_url)

    def _clean(self, text: str) -> str:
        return without_key(text, self._key)


def _numbers(vectors: list[list[Any]]) -> NDArray[Any] | None:
    """Return lists of equal length as a matrix, or None if an entry is not a number."""
    try:
        found = np.array(vectors)
    except ValueError:  # an entry is a list
        return None
    return found if found.ndim == 2 and found.dtype.kind in "fi" else None


def _client(base_url: str | None, api_key: str | None, retries: int, timeout: float) -> tuple[str, Any]:
    """Return the key and OpenAI's client, which follows no redirects, since they could send texts to any server."""
    url, key = address_and_key(base_url, api_key)
    check_whole(retries, "retries", least=0)
    check_number(timeout, "timeout", above=0, below=86400)
    library = import_extra("openai", "EndpointEncoder")
    http = library.DefaultHttpxClient(follow_redirects=False)
    client = library.OpenAI(base_url=url, api_key=key, timeout=timeout, max_retries=retries, http_client=http)
    return key, client


# ---- Vectors that are kept -------------------------------------------------------------------------------------------

#: Keys in one SQLite query, which accepts at most 32,766 values.
_KEYS = 10_000


class _VectorCache:
    """A SQLite file of float32 vectors, without their texts. Threads and processes may share it.

    Parameters
    ----------
    path : str or path
        Created if absent.
    dim : int
        Entries of a vector.

    Raises
    ------
    InputError
        The file is not a SQLite database or cannot be created; later, it cannot be read or written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> cache = _VectorCache(f"{tempfile.mkdtemp()}/vectors.db", 2)
    >>> cache.write([b"a"], np.array([[1.0, 2.0]], np.float32))
    >>> cache.read([b"a", b"b"])
    {b'a': array([1., 2.], dtype=float32)}
    """

    def __init__(self, path: str | PathLike[str], dim: int) -> None:
        self._path, self._bytes = fspath(path), 4 * dim
        with self._connected() as db:
            db.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID")

    def read(self, keys: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """Return the cached vectors by key; a vector of another length counts as absent."""
        found: dict[bytes, NDArray[np.float32]] = {}
        with self._connected() as db:
            for at in range(0, len(keys), _KEYS):
                part = list(keys[at : at + _KEYS])
                marks = ",".join("?" * len(part))
                for key, vector in db.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", part):
                    if len(vector) == self._bytes:
                        found[key] = np.frombuffer(vector, "<f4").astype(np.float32)
        return found

    def write(self, keys: Sequence[bytes], rows: NDArray[np.float32]) -> None:
        """Store vectors: all of them or, if the process is killed, none."""
        pairs = [(key, row.astype("<f4").tobytes()) for key, row in zip(keys, rows, strict=True)]
        with self._connected() as db:
            db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", pairs)

    def forget(self, keys: Sequence[bytes]) -> None:
        """Delete vectors, and overwrite them in the file."""
        with self._connected() as db:
            db.execute("PRAGMA secure_delete = ON")
            db.executemany("DELETE FROM vectors WHERE key = ?", [(key,) for key in keys])

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection; commit its changes unless an exception is raised."""
        try:
            with closing(sqlite3.connect(self._path, timeout=600)) as db, db:
                yield db
        except sqlite3.Error as error:
            raise InputError(
                "failed",
                "cache",
                "{field} is {given!r}, which cannot be used as a file of vectors: {error}",
                given=self._path,
                error=error,
            ) from None
