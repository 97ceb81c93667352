"""The configuration of ``hopfuse serve``: a TOML file, read into frozen and checked values."""

from __future__ import annotations

import ipaddress
import tomllib
from collections.abc import Mapping
from itertools import permutations
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from ..errors import InputError

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
Count = Annotated[int, msgspec.Meta(ge=1, le=2**40)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=86400)]


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of requests, of the queue and of connections.

    Attributes
    ----------
    body_bytes : int
        Of one request.
    queries : int
        Of one request.
    k : int
        Hits of a query; at least 10, the default of a request.
    text_chars : int
        Of a query's text, and of a name in it.
    entities, allow : int
        Names, and passages, that one query gives.
    passages, writes : int
        Passages of one change, and changes that wait for the disk.
    traced : int
        Hits of one request whose trace is asked for, queries times k: a trace takes many times as long as its search.
    batch : int
        Queries that are searched together.
    option_sets : int
        Different recipes and options that are held at a time, over all indexes.
    queue_requests, queue_bytes : int
        Requests that wait, and the bytes of their bodies.
    timeout_ms, max_timeout_ms : int
        Of a request that gives no ``timeout_ms``, and the largest that it may give.
    body_seconds, header_seconds, idle_seconds : float
        For a body, and for the headers, to arrive whole; for a connection to be kept without a request.
    drain_seconds : float
        For requests to be answered when the server is stopped.
    connections : int
        At a time; others are answered 503.

    Examples
    --------
    >>> from hopfuse.serve import Limits
    >>> Limits(batch=16).batch
    16
    """

    body_bytes: Count = 8 * 2**20
    queries: Count = 256
    k: Annotated[int, msgspec.Meta(ge=10, le=2**31 - 1)] = 1000
    text_chars: Count = 8192
    entities: Count = 256
    allow: Count = 100_000
    passages: Count = 1000
    writes: Count = 64
    traced: Count = 50
    batch: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 32
    option_sets: Count = 16
    queue_requests: Count = 1024
    queue_bytes: Count = 128 * 2**20
    timeout_ms: Count = 5000
    max_timeout_ms: Count = 60_000
    body_seconds: Seconds = 10.0
    header_seconds: Seconds = 10.0
    idle_seconds: Seconds = 30.0
    drain_seconds: Seconds = 10.0
    connections: Count = 1024

    def __post_init__(self) -> None:
        if self.timeout_ms > self.max_timeout_ms:
            raise ValueError(f"timeout_ms is {self.timeout_ms}, above max_timeout_ms, {self.max_timeout_ms}")


class IndexConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An index and what searches it.

    Attributes
    ----------
    path : str
        The directory that ``Index.save`` wrote.
    recipe : str, optional
        By default what the index can run.
    recipes : sequence of str
        Others that requests may choose, made before the server is ready; one that is not named here is made when a
        request first asks for it, which takes long where facts are encoded for it.
    options : mapping
        Fields of the recipe's config, in the place of its defaults.
    encoder : str, optional
        As ``hopfuse search --encoder`` names it; by default the index's own, if it is known and installed.
    lexical : str, optional
        As ``--lexical``: ``"auto"``, ``"bm25"``, ``"fts5"`` or ``"none"``.
    writable : bool
        This process takes changes of it, and holds its lock; others follow them.

    Examples
    --------
    >>> from hopfuse.serve import IndexConfig
    >>> IndexConfig(path="wiki-index", recipe="phase-graph", options={"alpha": 0.4}).recipe
    'phase-graph'
    """

    path: str
    recipe: str | None = None
    recipes: tuple[str, ...] = ()
    options: dict[str, Any] = {}
    encoder: str | None = None
    lexical: str | None = None
    writable: bool = False


class KeyConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key; ``hopfuse serve key NAME`` makes one.

    Attributes
    ----------
    sha256 : str
        The digest of the key, in hexadecimal digits.
    rights : sequence of {"read", "write", "admin"}
        ``"admin"`` has all.
    filter : mapping
        Conditions on metadata, as of :func:`hopfuse.where`; the key sees the passages that meet them all, and no other.
    indexes : sequence of str, optional
        The indexes that it sees; by default all.
    prefix : str
        Ids of passages that it adds begin with it; so none tells whether another key's passage has an id.

    Examples
    --------
    >>> from hopfuse.serve import KeyConfig
    >>> KeyConfig(sha256="0" * 64, filter={"tenant": "a"}).rights
    ('read',)
    """

    sha256: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
    rights: tuple[Literal["read", "write", "admin"], ...] = ("read",)
    filter: dict[str, Any] = {}
    indexes: tuple[Name, ...] | None = None
    prefix: str = ""


class LogConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The log, on the standard error.

    Attributes
    ----------
    format : {"plain", "json"}
        Of each line.
    requests : bool
        Write a line for each request: method, route, status, milliseconds, the key's name, index, seq and batch.
    texts : bool
        Write the questions' texts, too.

    Examples
    --------
    >>> from hopfuse.serve import LogConfig
    >>> LogConfig(format="json", requests=True).texts
    False
    """

    format: Literal["plain", "json"] = "plain"
    requests: bool = False
    texts: bool = False


class ServeConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole configuration.

    Parameters
    ----------
    indexes : mapping of str to IndexConfig
        At least one; a request without ``index`` is for the first.
    host : str
        An address or a name to listen on.
    port : int
        0: any free port.
    public : bool
        Allow a host beyond loopback without keys; the command line must say ``--public``, too.
    threads : int, optional
        Of the kernels; by default all processors, a share of them for each worker.
    workers : int
        Processes that answer at the port; indexes that are written to have one of their own.
    request_options : bool
        Whether a request may choose the recipe and its options.
    keys : mapping of str to KeyConfig
        By name. Without any, everybody who reaches the server may do everything.
    follow_seconds : float
        Between two looks at whether an index was changed; a change is searched that much later at most, and the time of
        a merge.
    mcp : bool
        Answer the Model Context Protocol at ``/mcp``, too; extra ``mcp``.
    compact_at : float
        The changes of a writable index are compacted when their log has grown to this share of it.
    origins : sequence of str
        Pages of other sites that may send requests from a browser (CORS): ``"https://example.org"``.
    limits : Limits
        Of each worker.
    log : LogConfig

    Raises
    ------
    InputError
        By :meth:`read` and :meth:`check`; the message names the key of the file.

    Examples
    --------
    >>> from hopfuse.serve import ServeConfig
    >>> config = ServeConfig.read('port = 8000\\n[indexes.wiki]\\npath = "wiki-index"\\n[limits]\\nbatch = 16\\n')
    >>> config.port, config.indexes["wiki"].path, config.limits.batch
    (8000, 'wiki-index', 16)
    """

    indexes: dict[Name, IndexConfig]
    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8080
    public: bool = False
    threads: Annotated[int, msgspec.Meta(ge=1, le=1024)] | None = None
    workers: Annotated[int, msgspec.Meta(ge=1, le=256)] = 1
    request_options: bool = True
    keys: dict[Name, KeyConfig] = {}
    follow_seconds: Seconds = 0.2
    mcp: bool = False
    compact_at: Annotated[float, msgspec.Meta(gt=0, le=1000)] = 0.2
    origins: tuple[str, ...] = ()
    limits: Limits = Limits()
    log: LogConfig = LogConfig()

    @classmethod
    def read(cls, text: str, changes: Mapping[str, Any] | None = None) -> ServeConfig:
        """Return the configuration of a TOML text; ``changes`` are keys that stand in the place of the text's."""
        try:
            found = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"the configuration is not TOML: {error}") from None
        try:
            config = msgspec.convert({**found, **(changes or {})}, cls)
        except msgspec.ValidationError as error:
            raise InputError(f"the configuration has {_lowered(str(error))}") from None
        return config.check()

    @classmethod
    def load(cls, path: Path, changes: Mapping[str, Any] | None = None) -> ServeConfig:
        """Return the configuration of a file; paths in it are relative to its folder."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path} cannot be read as UTF-8 text: {error}") from None
        try:
            config = cls.read(text, changes)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        return msgspec.structs.replace(
            config,
            indexes={
                name: msgspec.structs.replace(one, path=str(path.parent / one.path))
                for name, one in config.indexes.items()
            },
        )

    def check(self) -> ServeConfig:
        """Return the configuration itself; refuse what its values do not allow together."""
        if not self.indexes:
            raise InputError("the configuration has no index; add [indexes.NAME] with path, the directory of an index")
        if self.is_open and not self.public:
            raise InputError(
                f"host is {self.host!r}, which others can reach, and there are no keys: add [keys.NAME] (hopfuse serve "
                "key NAME makes one), keep 127.0.0.1, or say public = true in the configuration and --public on the "
                "command line"
            )
        written = [name for name, one in self.indexes.items() if one.writable]
        if self.workers > 1 and written:
            raise InputError(
                f"workers is {self.workers}, and index {written[0]} is writable: one process takes changes; start one "
                "more server with --writable on another port, whose changes the workers follow"
            )
        for name, key in self.keys.items():
            for index in key.indexes or ():
                if index not in self.indexes:
                    raise InputError(f"keys.{name}.indexes has {index!r}; there are: {', '.join(self.indexes)}")
        self._check_prefixes()
        return self

    def _check_prefixes(self) -> None:
        """Refuse prefixes by which the ids of one filter's passages could be those of another's."""
        given = [(name, key) for name, key in self.keys.items() if key.prefix]
        for (name, key), (other, second) in permutations(given, 2):
            if key.filter != second.filter and second.prefix.startswith(key.prefix):
                raise InputError(
                    f"keys.{other}.prefix is {second.prefix!r}, which begins with {key.prefix!r} of keys.{name}, whose "
                    "filter is another; end each prefix by a sign that no other has before its end, as in 'a/'"
                )

    @property
    def is_open(self) -> bool:
        """Return whether others can reach the server, and need no key."""
        return not self.keys and not is_loopback(self.host)

    def check_public(self, said: bool) -> None:
        """Refuse to listen beyond this machine without keys, unless the command line says so, too."""
        if self.is_open and not said:
            raise InputError(
                f"host is {self.host!r}, which others can reach, and there are no keys: add --public to say so again"
            )


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine alone.

    Examples
    --------
    >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _lowered(text: str) -> str:
    """Return msgspec's message with its path as TOML has it: ``limits.k`` for ``$.limits.k``."""
    return (text[:1].lower() + text[1:]).replace("`$.", "`").replace("`$`", "its top level")
