"""The configuration of ``hopfuse serve``, read from TOML and checked."""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections.abc import Mapping
from datetime import datetime
from itertools import permutations
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from .._validation import check_names, check_whole
from ..errors import InputError
from ..io.files import read_text
from .errors import invalid_value, value_at

_NAMES = "1 to 64 of A-Z, a-z, 0-9, _, - and ."
_NAME = re.compile(r"^[A-Za-z0-9_.-]{1,64}$")
Name = Annotated[str, msgspec.Meta(pattern=_NAME.pattern)]
Count = Annotated[int, msgspec.Meta(ge=1, le=2**40)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=86400)]


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of requests, the queue and connections.

    Attributes
    ----------
    body_bytes : int
        Bytes of a request's body.
    header_bytes : int
        Bytes of a request's line and headers, and of what frames a body in chunks: sizes, extensions and trailers. The
        default is above what nginx passes on (32 KiB) and what browsers send with many cookies. A connection holds at
        most a few times as much.
    headers : int
        Headers of a request.
    json_bytes, tool_bytes : int
        Bytes of JSON in a body, and of a call of a tool by MCP. One of 4 MiB is decoded in about 10 ms, during which no
        other Python runs; Arrow streams and binary tensors may have ``body_bytes``.
    tool_answer_bytes : int
        Bytes of JSON of a tool's answer by MCP, whose library makes the response on the event loop.
    values : int
        Values of a JSON body: numbers of vectors, too, and 4 for each list and each member of an object. And ids, names
        and values of conditions of a request together, whatever its format.
    depth : int
        Nesting of lists and objects in ``options``.
    queries : int
        Queries of a request.
    k, hits : int
        Hits of a query, at least 10, the default of a request; and of a request, ``queries`` times ``k``.
    text_chars : int
        Characters of a query's text, and of an entity's name.
    entities, allow : int
        Entities, and ids of allowed passages, of a query.
    filters : int
        Different filters of a request's queries.
    conditions, condition_values : int
        Conditions of a filter, and values in the list of one.
    passages, writes : int
        Passages of a change, also of a page from ``GET /v1/passages``, and changes that wait for the disk.
    traced : int
        Queries times k of a request with a trace, which takes many times as long as its search.
    batch : int
        Most queries that are searched together. A batch gathers requests up to half of it; the other half is left to
        requests of many queries.
    encoder_seconds : float
        Time of an encoder's call, for a batch of questions or 16 passages. One that takes longer is left to itself.
    encoder_threads : int
        Threads of each encoder, and so the number of calls that may hang before texts are refused.
    option_sets : int
        Different recipes and options that are kept at a time, over all indexes; and those of a key (without keys, of
        an address) that are being made, beyond which its requests for others are answered 429.
    part_bytes : int, optional
        Bytes of the parts of an index that are kept for filters, those that were used last: as of
        :meth:`hopfuse.Index.keep_parts`, by default those of the index, and at least 256 MiB.
    queue_requests : int
        Requests that wait for a batch, and requests that wait for a seq.
    queue_bytes, key_bytes : int
        Bytes of all requests, and of those of one key (without keys, of one address): bodies that are arriving,
        requests until they are answered or their client leaves, and large answers until they are read. The workers
        divide ``key_bytes``.
    timeout_ms, max_timeout_ms : int
        Default and maximum of a request's ``timeout_ms``.
    body_seconds, header_seconds, idle_seconds : float
        Time for a body and for the headers to arrive, and for a connection to stay open without a request.
    drain_seconds : float
        Time for open requests to be answered when the server stops.
    connections : int
        Open connections. At the limit, the one that has waited longest for a request is closed for a new one; if all
        have requests, new ones are answered 503. ``/health`` is answered on further ones.
    address_connections, key_connections : int
        Open connections of a client's address (of IPv6, its /64 network), and of a key, in all workers; further ones
        replace those that wait, or are answered 429. Those of a trusted proxy are not counted by address.
    key_requests : int
        Requests of a key that are not answered yet, in all workers; further ones are answered 429.
    wrong_keys : int
        Wrong keys of an address in a minute. The refusal of each further one is sent a second later.

    Examples
    --------
    >>> from hopfuse.serve import Limits
    >>> Limits(batch=16).batch
    16
    """

    body_bytes: Count = 8 * 2**20
    header_bytes: Annotated[int, msgspec.Meta(ge=1024, le=2**24)] = 64 * 2**10
    headers: Annotated[int, msgspec.Meta(ge=16, le=10_000)] = 100
    json_bytes: Count = 4 * 2**20
    tool_bytes: Count = 128 * 2**10
    tool_answer_bytes: Count = 2**20
    values: Count = 200_000
    depth: Annotated[int, msgspec.Meta(ge=1, le=64)] = 8
    queries: Count = 256
    k: Annotated[int, msgspec.Meta(ge=10, le=2**31 - 1)] = 1000
    hits: Count = 100_000
    text_chars: Count = 8192
    entities: Count = 256
    allow: Count = 100_000
    filters: Count = 256
    conditions: Annotated[int, msgspec.Meta(ge=1, le=256)] = 64
    condition_values: Count = 10_000
    passages: Count = 1000
    writes: Count = 64
    traced: Count = 50
    batch: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 64
    encoder_seconds: Seconds = 10.0
    encoder_threads: Annotated[int, msgspec.Meta(ge=1, le=64)] = 4
    option_sets: Count = 16
    part_bytes: Count | None = None
    queue_requests: Count = 1024
    queue_bytes: Count = 128 * 2**20
    key_bytes: Count = 64 * 2**20
    timeout_ms: Count = 5000
    max_timeout_ms: Count = 60_000
    body_seconds: Seconds = 10.0
    header_seconds: Seconds = 10.0
    idle_seconds: Seconds = 30.0
    drain_seconds: Seconds = 10.0
    connections: Count = 1024
    address_connections: Count = 512
    key_connections: Count = 512
    key_requests: Count = 512
    wrong_keys: Count = 20

    def check(self) -> None:
        """Refuse limits that do not fit together."""
        check_whole(self.timeout_ms, "limits.timeout_ms", self.max_timeout_ms)


class IndexConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An index, its recipe and encoder.

    Attributes
    ----------
    path : str
        A directory written by ``Index.save``.
    recipe : str, optional
        Recipe of requests that name none; by default as of :class:`hopfuse.Retriever`.
    recipes : sequence of str
        Further recipes, made before the server is ready. Others are made at the first request for them, which takes
        long if facts must be encoded.
    options : mapping
        Fields of the recipe's config.
    encoder : str, optional
        A name as in ``hopfuse search --encoder``; by default the index's own, if it is known and installed.
    words : str, optional
        The lexical leg: ``"auto"``, ``"bm25"``, ``"fts5"``, ``"fts5:unicode61"``, ``"fts5:trigram"`` or ``"none"``; by
        default the recipe decides.
    writable : bool
        Accept changes of the index, and hold its lock; other processes follow them.

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
    words: str | None = None
    writable: bool = False


class KeyConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An API key; ``hopfuse serve key NAME`` makes one.

    Attributes
    ----------
    sha256 : str
        SHA-256 of the key, in hexadecimal.
    rights : sequence of {"read", "write", "admin"}
        ``"admin"`` includes the others.
    filter : mapping
        Conditions on metadata, as for :func:`hopfuse.where`. The key sees only passages that meet all of them.
    indexes : sequence of str, optional
        Indexes that the key sees; by default all.
    prefix : str
        Prefix required of the ids of passages that the key adds, so that it cannot probe the ids of other keys'
        passages.
    expires : datetime, optional
        When the key ends, with an offset from UTC (RFC 3339): ``2027-01-31T00:00:00Z``.

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
    expires: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class LogConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The log, which is written to standard error.

    Attributes
    ----------
    format : {"plain", "json"}
        Format of a line.
    requests : bool
        Log each request: method, route, status, milliseconds, the client's address, the key's name, index, seq and
        batch.
    texts : bool
        Also log the texts of queries.
    slow_ms : float, optional
        Log requests that take that long as warnings, even without ``requests``.
    most : int
        Lines of requests in a second, and as many of slow ones; of further ones, only their number is logged.

    Examples
    --------
    >>> from hopfuse.serve import LogConfig
    >>> LogConfig(format="json", requests=True).texts
    False
    """

    format: Literal["plain", "json"] = "plain"
    requests: bool = False
    texts: bool = False
    slow_ms: Annotated[float, msgspec.Meta(gt=0, le=86_400_000)] | None = None
    most: Count = 1000


class ProxyConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The proxies in front of the server, which say who sends a request.

    Attributes
    ----------
    trusted : sequence of str
        Addresses and networks of the proxies, such as ``"127.0.0.1"`` or ``"10.0.0.0/8"``. Headers of others are
        ignored.
    header : {"x-forwarded", "forwarded"}
        Which headers the proxies set themselves, whatever a client sends: X-Forwarded-For, X-Forwarded-Proto and
        X-Forwarded-Host, or Forwarded (RFC 7239).

    Examples
    --------
    >>> from hopfuse.serve import ProxyConfig
    >>> ProxyConfig(trusted=("127.0.0.1",)).header
    'x-forwarded'
    """

    trusted: tuple[str, ...] = ()
    header: Literal["x-forwarded", "forwarded"] = "x-forwarded"

    def networks(self) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
        """Return ``trusted`` as networks.

        Raises
        ------
        InputError
            One is neither an address nor a network.
        """
        found = []
        for at, one in enumerate(self.trusted):
            try:
                found.append(ipaddress.ip_network(one))
            except ValueError as error:
                raise InputError(
                    "syntax",
                    f"proxies.trusted[{at}]",
                    "{field} is {given!r}, which is not an address or network: {error}; give one such as 10.0.0.0/8",
                    given=one,
                    error=error,
                ) from None
        return found


#: Types of the tables of a configuration.
_TABLES = {"indexes": IndexConfig, "keys": KeyConfig, "limits": Limits, "log": LogConfig, "proxies": ProxyConfig}


def check_name(name: str, field: str) -> None:
    """Refuse a name that an index or a key cannot have."""
    if not _NAME.fullmatch(name):
        raise InputError(
            "syntax", field, "{field} has the name {given!r}; it must be {allowed}", given=name, allowed=_NAMES
        )


def table_of(kind: str, name: str) -> str:
    """Return the TOML table of an index or a key, such as ``keys.team``.

    Examples
    --------
    >>> table_of("keys", "team"), table_of("keys", "a.b")
    ('keys.team', 'keys."a.b"')
    """
    return f'{kind}."{name}"' if "." in name else f"{kind}.{name}"


def _named(found: Mapping[str, Any], place: str) -> str:
    """Return a place with the name of the index or key that is wrong, which msgspec leaves out."""
    table, named, rest = place.partition("[...]")
    if named:
        for name, given in found[table].items():
            try:
                msgspec.convert(given, _TABLES[table])
            except msgspec.ValidationError:
                return f"{table_of(table, name)}{rest}"
    return place


class ServeConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole configuration.

    Parameters
    ----------
    indexes : mapping of str to IndexConfig
        At least one. Requests without ``index`` use the first.
    host : str
        Address or host name to listen on.
    port : int
        Port to listen on; 0 for any free one.
    public : bool
        Allow a host beyond loopback without keys; ``--public`` is also needed on the command line.
    threads : int, optional
        Kernel threads; by default all processors, shared by the workers.
    workers : int
        Processes that answer on the port; a writable index needs a server with one.
    share_port : bool
        Listen on a port beside other servers of the same user; the system distributes connections among them. A server
        listens once it is ready.
    request_options : bool
        Whether a request may choose the recipe and its options.
    keys : mapping of str to KeyConfig
        API keys by name. Without any, whoever reaches the server may do everything.
    follow_seconds : float
        Interval at which changes of an index are looked for. A change is searched after at most this time and that of
        a merge.
    mcp : bool
        Also answer the Model Context Protocol at ``/mcp`` (extra ``mcp``).
    compress_bytes : int, optional
        Compress answers of at least that many bytes, by gzip or deflate, for clients that accept it. By default none
        is, since that costs processor time, and many clients on the same network accept it.
    compact_at : float
        A writable index is compacted when the log of its changes reaches this share of its size.
    origins : sequence of str
        Other sites whose pages may send requests from a browser (CORS), such as ``"https://example.org"``.
    limits : Limits
        Limits of each worker.
    log : LogConfig
    proxies : ProxyConfig
        Proxies in front of the server.

    Raises
    ------
    InputError
        :meth:`read` and :meth:`check` refuse a value; the message names its key.

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
    share_port: bool = False
    request_options: bool = True
    keys: dict[Name, KeyConfig] = {}
    follow_seconds: Seconds = 0.2
    mcp: bool = False
    compress_bytes: Count | None = None
    compact_at: Annotated[float, msgspec.Meta(gt=0, le=1000)] = 0.2
    origins: tuple[str, ...] = ()
    limits: Limits = Limits()
    log: LogConfig = LogConfig()
    proxies: ProxyConfig = ProxyConfig()

    @classmethod
    def read(cls, text: str, changes: Mapping[str, Any] | None = None) -> ServeConfig:
        """Return the configuration in a TOML text; the keys of ``changes`` override those of the text."""
        try:
            found = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError("syntax", "config", "{field} is not valid TOML: {error}", error=error) from None
        found |= changes or {}
        for table in ("indexes", "keys"):
            for name in found[table] if isinstance(found.get(table), dict) else ():
                check_name(name, table)
        try:
            config = msgspec.convert(found, cls)
        except msgspec.ValidationError as error:
            path = str(error).partition(" - at `$")[2].rstrip("`").lstrip(".")
            kind = _TABLES.get(re.split(r"[.[]", path)[0], cls)
            place = _named(found, path)
            raise invalid_value(error, kind, place, value_at(found, place)) from None
        return config.check()

    @classmethod
    def load(cls, path: Path, changes: Mapping[str, Any] | None = None) -> ServeConfig:
        """Return the configuration in a file; its paths are relative to the folder of the file."""
        text = read_text(path, "config")
        try:
            config = cls.read(text, changes)
        except InputError as error:
            raise error.at(path) from None
        return msgspec.structs.replace(
            config,
            indexes={
                name: msgspec.structs.replace(one, path=str(path.parent / one.path))
                for name, one in config.indexes.items()
            },
        )

    def own(self) -> ServeConfig:
        """Return a copy for a server, which changes its keys, limits and log in place when they are read again."""
        copies = {name: msgspec.structs.replace(getattr(self, name)) for name in ("limits", "log")}
        return msgspec.structs.replace(self, **copies)

    def check(self) -> ServeConfig:
        """Return the configuration itself; refuse values that do not fit together."""
        if not self.indexes:
            raise InputError(
                "empty",
                "indexes",
                "{field} has no index; add [indexes.NAME] with path, the directory of an index",
            )
        self.limits.check()
        self.proxies.networks()
        if self.is_open and not self.public:
            raise InputError(
                "forbidden",
                "host",
                "{field} is {given!r}, which others can reach{through}, and there are no keys: add [keys.NAME] "
                "(hopfuse serve key NAME makes one), {other}, or set public = true in the "
                "configuration and --public on the command line",
                given=self.host,
                through=" through [proxies]" if is_loopback(self.host) else "",
                other="remove proxies.trusted" if is_loopback(self.host) else "use 127.0.0.1",
            )
        written = [name for name, one in self.indexes.items() if one.writable]
        if self.workers > 1 and written:
            raise InputError(
                "conflict",
                "workers",
                "{field} is {given}, and index {index} is writable, which allows one process; start another server "
                "with --writable on another port, whose changes the workers follow",
                given=self.workers,
                index=written[0],
            )
        for name, key in self.keys.items():
            if key.indexes == ():
                raise InputError(
                    "empty",
                    f"keys.{name}.indexes",
                    "{field} is empty, so the key would see no index; name those that it sees, or leave it out for all",
                )
            check_names(key.indexes or (), f"keys.{name}.indexes", self.indexes)
        self._check_prefixes()
        return self

    def _check_prefixes(self) -> None:
        """Refuse prefixes that let keys with different filters add the same ids."""
        given = [(name, key) for name, key in self.keys.items() if key.prefix]
        for (name, key), (other, second) in permutations(given, 2):
            if key.filter != second.filter and second.prefix.startswith(key.prefix):
                raise InputError(
                    "conflict",
                    f"keys.{other}.prefix",
                    "{field} is {given!r}, which begins with {prefix!r} of keys.{key}, a key with another filter; end "
                    "each prefix with a character that occurs nowhere else in it, as in 'a/'",
                    given=second.prefix,
                    prefix=key.prefix,
                    key=name,
                )

    def part(self, limit: int) -> int:
        """Return a worker's part of a limit that holds for all workers together."""
        return -(-limit // self.workers)

    @property
    def is_open(self) -> bool:
        """Whether other machines can reach the server without a key, perhaps through a proxy."""
        return not self.keys and not self.is_local

    @property
    def is_local(self) -> bool:
        """Whether only programs of this machine send requests."""
        return is_loopback(self.host) and not self.proxies.trusted

    def check_public(self, confirmed: bool) -> None:
        """Refuse to listen beyond loopback without keys, unless the command line also allows it."""
        if self.is_open and not confirmed:
            raise InputError(
                "forbidden",
                "host",
                "{field} is {given!r}, which others can reach, and there are no keys: add {@public} to confirm",
                given=self.host,
            )


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback address.

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
