"""Requests as nobody should send them: changed in their values and bytes, with forged lengths, headers and streams."""

from __future__ import annotations

import copy
import json
import os
import random
import re
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from serve.served import DIM, configured, running, save

JSON, ARROW, BINARY = "application/json", "application/vnd.apache.arrow.stream", "application/octet-stream"
HEADER = "Inference-Header-Content-Length"
NAN, INFINITY = float("nan"), float("inf")
#: What an error may be about: fields of requests, columns of a stream, parameters and headers.
FIELDS = {
    "queries", "k", "index", "recipe", "options", "timeout_ms", "at_least", "trace", "strict", "per_document",
    "fields", "passages", "entities", "aliases", "merge", "edges", "facts", "replace", "knowledge_id", "query",
    "retrieval_setting", "metadata_condition", "inputs", "id", "parameters", "outputs", "columns", "Host", "Origin",
    "Content-Type", "text", "vector", "name", "version", HEADER,
}  # fmt: skip
#: MiB that the process may grow by, after a tenth of the cases: an index that changes is in memory twice at times.
GROWTH = 64
#: Small limits of a server, which requests exceed.
LIMITS = (
    "[limits]\nbody_bytes = 100000\nqueries = 40\nk = 50\nentities = 4\nallow = 20\ntext_chars = 200\nbatch = 8\n"
    "passages = 5\n"
)
#: Values that may stand where another is expected.
ODD: list[Any] = [
    None, True, False, -1, 0, 1, 2, 7, 2**31, 2**53 + 1, 2**63, 2**64, 10**40, -(10**40), 0.5, 1e308, -1e-320, NAN,
    INFINITY, -INFINITY, "", " ", "\0", "\ud800", "é" * 9, "a" * 300, "Ankara", "p1", "../../etc/passwd", "<script>",
    "%s{0}", "[" * 50, "AAAAgD8=", "===", [], [[]], [None], [True], [0], [-1], ["p1"], ["Ankara", 3], ["p0"] * 30,
    [NAN], [1e308] * DIM, [1.0] * DIM, [0.0] * DIM, [1] * (DIM + 1), ["a", "b", "c"], {}, {"a": {}}, {"tenant": "a"},
    {"tenant": 1}, {"tenant__ge": None}, {"number__in": [1, 2.5]}, {"number__in": 3}, {"number__ge": "x"}, {"nope": 1},
    {"": 0}, {"name": "rrf"}, {"name": "nope"}, {"name": "rrf", "rank_constant": -1}, "guided-walk", "hybrid-rrf",
    "triple-hybrid", "policy-rag",
]  # fmt: skip


@dataclass(frozen=True)
class Request:
    """A request, as its parts."""

    method: str
    path: str
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def ends(self) -> bool:
        """Whether a server may wait for more of it than there is."""
        return not {"Content-Length", "Transfer-Encoding", "Expect"}.isdisjoint(self.headers)

    def wire(self) -> bytes:
        """Its bytes."""
        headers = {"Host": "localhost", "Content-Length": str(len(self.body)), **self.headers}
        lines = [f"{self.method} {self.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + self.body


QUERY = {"text": "What is far from Ankara?", "vector": [0.5] * DIM, "entities": ["Ankara", 3], "allow": ["p1", "p5"]}
SEARCH = {
    "queries": [
        "What is far from Lima?",
        QUERY,
        {"vector_base64": "AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8=", "entities": []},
    ],
    "k": 3,
    "index": "cities",
    "recipe": "phase-graph",
    "options": {"damping": 0.4, "alpha": 0.5, "method": {"name": "rrf", "rank_constant": 20}},
    "timeout_ms": 2000,
    "trace": True,
    "strict": False,
    "per_document": None,
    "at_least": 0,
    "fields": ["title", "metadata"],
}
PASSAGES = {
    "passages": [
        {
            "id": "p1",
            "text": "Oslo is near Ankara.",
            "title": "No. 1",
            "metadata": {"tenant": "a", "number": 3},
            "vector": [1.0] * DIM,
            "entities": ["Oslo", "Ankara"],
            "facts": [],
        }
    ],
    "entities": ["Oslo", {"name": "Ankara"}],
    "aliases": {"Oslo": ["Christiania"]},
    "merge": {"Lima": ["Graz"]},
    "edges": [
        {"src": ["entity", "Oslo"], "dst": ["entity", "Lima"], "type": "context", "weight": 1.0, "stated_by": "p1"}
    ],
    "facts": [],
    "replace": True,
    "index": "cities",
    "timeout_ms": 2000,
}
RETRIEVAL = {
    "knowledge_id": "cities",
    "query": "What is far from Fes?",
    "retrieval_setting": {"top_k": 3, "score_threshold": 0.5},
    "metadata_condition": None,
}
INFER = {
    "id": "7",
    "inputs": [
        {"name": "vectors", "shape": [2, DIM], "datatype": "FP32", "data": [0.5] * (2 * DIM)},
        {"name": "texts", "shape": [2], "datatype": "BYTES", "data": ["far from Graz", "and Lima?"]},
    ],
    "outputs": [{"name": "ids"}, {"name": "scores", "parameters": {"binary_data": True}}],
    "parameters": {"k": 3, "timeout": 2_000_000, "binary_data_output": False, "strict": False, "per_document": 2},
}
ROUTES: list[tuple[str, dict[str, Any]]] = [
    ("/v1/search", SEARCH),
    ("/v1/passages", PASSAGES),
    ("/retrieval", RETRIEVAL),
    ("/v2/models/cities/infer", INFER),
]


def changed(value: Any, draw: random.Random) -> Any:
    """Return a body with one of its values changed, taken away, repeated, or one more."""
    body = copy.deepcopy(value)
    places: list[tuple[Any, Any]] = []

    def walk(one: Any) -> None:
        for key in list(one) if isinstance(one, dict) else range(len(one)):
            places.append((one, key))
            if isinstance(one[key], dict | list):
                walk(one[key])

    walk(body)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        holder, key = draw.choice(places)
        what = draw.random()
        if what < 0.75:
            if isinstance(holder, dict) or key < len(holder):
                holder[key] = copy.deepcopy(draw.choice(ODD))
        elif what < 0.85 and isinstance(holder, dict):
            holder.pop(key, None)
        elif what < 0.93 and isinstance(holder, list) and key < len(holder):
            holder[:] = [holder[key]] * draw.choice((0, 2, 5, 45))
        elif isinstance(holder, dict):
            holder[draw.choice(("", "nope", "k", "vector", "name", "\ud800", "data", "binary_data_size"))] = (
                draw.choice(ODD)
            )
    return body


def damaged(data: bytes, draw: random.Random) -> bytes:
    """Return bytes of which some are others, missing, or more."""
    found = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 6))):
        at, what = draw.randrange(len(found) + 1), draw.randrange(6)
        if what == 0:
            del found[at:]
        elif what == 1:
            del found[at : at + draw.choice((1, 4, 16))]
        elif what == 2:
            found[at:at] = draw.choice(
                (b"\xff", b"\xed\xa0\x80", b"\0", b"[" * 5000, b'{"a":' * 2000, b"1" * 5000, b"NaN")
            )
        elif what == 3:
            found[at : at + 8] = draw.randbytes(8)
        elif at < len(found):
            found[at] = draw.randrange(256)
    return bytes(found)


def json_request(draw: random.Random) -> Request:
    """Return a JSON request to a route, changed in its values or its bytes."""
    path, good = draw.choice(ROUTES)
    body = json.dumps(changed(good, draw)).encode()
    if draw.random() < 0.3:
        body = damaged(body, draw)
    if draw.random() < 0.1:
        body = draw.choice(
            (b"", b"null", b"[]", b"3", b'"a"', b"[" * 90_000, b'{"queries":' * 9000, b"\xff\xfe" + body)
        )
    return Request("POST", path, body, {"Content-Type": JSON})


def stream(draw: random.Random) -> bytes:
    """Return an Arrow stream of queries, with columns of some type."""
    import pyarrow as pa

    count = draw.choice((1, 2, 3, 41))
    vectors: list[Any] = [[0.5] * DIM, [NAN] * DIM, None, [], [1e300] * DIM, [1.0]]
    columns: dict[str, Any] = {
        "text": pa.array(
            [draw.choice(["Fes?", "", None, "a" * 300]) for _ in range(count)],
            draw.choice((pa.string(), pa.large_string())),
        ),
        "vector": pa.array(
            [draw.choice(vectors) for _ in range(count)], pa.list_(draw.choice((pa.float32(), pa.float64())))
        ),
        "entities": pa.array(
            [draw.choice([["Fes"], [], None, ["nope"] * 9]) for _ in range(count)], pa.list_(pa.string())
        ),
        "allow": pa.array([draw.choice([["p1", "p2"], [], None, ["x"]]) for _ in range(count)], pa.list_(pa.string())),
        "odd": pa.array([draw.choice(["p1", None]) for _ in range(count)]),
    }
    names = draw.sample(list(columns), draw.randrange(1, 5))
    table = pa.table({name: columns[name] for name in names})
    if draw.random() < 0.5:
        settings = changed({key: SEARCH[key] for key in ("k", "index", "options", "timeout_ms", "fields")}, draw)
        table = table.replace_schema_metadata({"hopfuse": json.dumps(settings)})
    if draw.random() < 0.1 and names[0] in ("text", "odd"):
        table = table.set_column(0, names[0], table.column(0).combine_chunks().dictionary_encode())
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=draw.choice((None, None, None, "lz4", "zstd")))
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def arrow_request(draw: random.Random) -> Request:
    """Return an Arrow request, often damaged."""
    body = stream(draw)
    if draw.random() < 0.7:
        body = damaged(body, draw)
    accept = draw.choice((JSON, ARROW, "*/*"))
    return Request("POST", "/v1/search", body, {"Content-Type": ARROW, "Accept": accept})


def binary_request(draw: random.Random) -> Request:
    """Return a request for inference with binary tensors whose lengths and headers may be forged."""
    texts = b"".join(struct.pack("<I", len(one)) + one for one in (b"far from Graz", b"\xc3\xa9"))
    vectors = np.full((2, DIM), 0.5, "<f4").tobytes()
    if draw.random() < 0.4:
        texts, vectors = damaged(texts, draw)[:5000], damaged(vectors, draw)[:5000]
    sizes = [len(vectors), len(texts)]
    if draw.random() < 0.3:
        sizes[draw.randrange(2)] = draw.choice((-1, 0, 3, 2**31, 2**63, 10**30))
    body = copy.deepcopy(INFER)
    for one, size in zip(body["inputs"], sizes, strict=True):
        del one["data"]
        one["parameters"] = {"binary_data_size": size}
    body["inputs"][0]["datatype"] = draw.choice(("FP32", "FP32", "FP16", "FP64", "INT8", "BYTES"))
    if draw.random() < 0.5:
        body = changed(body, draw)
    head = json.dumps(body).encode()
    length: Any = len(head)
    if draw.random() < 0.3:
        length = draw.choice((0, 1, -1, length - 1, length + 1, 2**31, 2**63, 10**30, "", "x", "0x10", "٣", "1 2"))
    return Request(
        "POST", "/v2/models/cities/infer", head + vectors + texts, {"Content-Type": BINARY, HEADER: str(length)}
    )


def other_request(draw: random.Random) -> Request:
    """Return a request to a route that may not be there, with headers as they should not be."""
    passages = ("p11", "a" * 500, "%ff", "%00?index=", "nope?index=nope")
    plain = (
        "/",
        "/v1/search",
        "/v1/indexes",
        "/health/ready",
        "/metrics",
        "/openapi.json",
        "/mcp",
        "//",
        "/%",
        "/..;/",
    )
    paths = [*plain, *(f"/v1/passages/{one}" for one in passages), "/v2", "/v2/models/cities", "/v2/models/%2e%2e"]
    headers = {
        "Content-Type": draw.choice(
            (JSON, "text/plain", "application/json; charset=utf-16", "\udcff", "a" * 300, "", "multipart/form-data")
        ),
        draw.choice(
            ("Authorization", "Origin", "Host", "Accept", "Expect", "Transfer-Encoding", "Content-Length", "X-A")
        ): draw.choice(
            (
                "",
                "x",
                "Bearer ",
                "\udcff",
                "http://evil.example",
                "evil.example",
                "100-continue",
                "chunked",
                "-1",
                "99999999",
                "1, 2",
                "a" * 9000,
            )
        ),
    }
    method = draw.choice(("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "BREW"))
    return Request(method, draw.choice(paths), draw.choice((b"", b"{}", b'{"queries":["a"]}')), headers)


KINDS: list[Callable[[random.Random], Request]] = [
    json_request,
    json_request,
    json_request,
    binary_request,
    other_request,
]
if find_spec("pyarrow") is not None:
    KINDS.append(arrow_request)


def requests(count: int, seed: int = 0) -> Iterator[Request]:
    """Give so many requests, the same for each seed."""
    for number in range(count):
        draw = random.Random(f"{seed}/{number}")
        yield draw.choice(KINDS)(draw)


@dataclass(frozen=True)
class Answered:
    """An answer; status 0: the connection was closed without one."""

    status: int
    body: bytes = b""
    closed: bool = False


class Wire:
    """A connection to a server, made again after each answer that closes it.

    Parameters
    ----------
    url : str
    """

    def __init__(self, url: str) -> None:
        host, port = re.findall(r"//(.*):(\d+)", url)[0]
        self._address = (host, int(port))
        self._socket: socket.socket | None = None

    def close(self) -> None:
        """Close it."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def send(self, data: bytes, *, method: str = "POST", ends: bool = False) -> Answered:
        """Send bytes and return the answer; ``ends``: nothing comes after them.

        The server would wait for the rest of a request whose length is not that of what was sent.
        """
        kept = self._socket is not None
        if self._socket is None:
            self._socket = socket.create_connection(self._address, timeout=600)
        try:
            self._socket.sendall(data)
            if ends:
                self._socket.shutdown(socket.SHUT_WR)
            answered = self._read(method)
        except (ConnectionError, BrokenPipeError):
            answered = Answered(0, closed=True)
        if answered.closed or ends:
            self.close()
        if kept and answered.status == 0 and not ends:  # it was idle for too long
            return self.send(data, method=method)
        return answered

    def _read(self, method: str) -> Answered:
        assert self._socket is not None
        data = b""
        while b"\r\n\r\n" not in data:
            part = self._socket.recv(65536)
            if not part:
                return Answered(0, closed=True)
            data += part
        head, _, body = data.partition(b"\r\n\r\n")
        status, headers = int(head[9:12]), head.lower()
        if status == 100:
            return self._read(method)
        length = 0 if method == "HEAD" else int((re.findall(rb"content-length: (\d+)", headers) or [b"0"])[0])
        while len(body) < length:
            part = self._socket.recv(65536)
            if not part:
                return Answered(0, closed=True)
            body += part
        return Answered(status, body, b"connection: close" in headers)


#: What an escaped byte of a string of JSON stands for, other than itself.
ESCAPES = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}


def fault(request: Request, answered: Answered) -> str:
    """Return what is wrong with an answer, or an empty string."""
    if answered.status == 0:
        return "" if request.ends else "the connection was closed without an answer"
    if answered.status == 200 or request.method == "HEAD":
        return "" if answered.status < 500 else f"it was answered {answered.status}"
    if answered.status == 504 and (b"timeout" in request.body or b'"field":"at_least"' in answered.body):
        return ""  # what was asked takes longer, or waits for a change that does not come
    if not 400 <= answered.status < 500:
        return f"it was answered {answered.status}: {answered.body[:300]!r}"
    if not answered.body.startswith(b"{"):
        return "" if b"Invalid HTTP request" in answered.body else f"the refusal is {answered.body[:100]!r}"
    error = json.loads(answered.body)
    found = error.get("error", error)
    if not isinstance(found, dict):
        return "" if found else "the message is empty"
    message = found.get("message", found.get("error_msg", ""))
    if not message or "Traceback" in message or "object at 0x" in message:
        return f"the message is {message!r}"
    named = re.split(r"[.\[]", found.get("field") or "")[0]
    if named and named not in FIELDS and named.encode() not in request.body + unescaped(request.body):
        return f"the field {found['field']} is in no request: {message!r}"
    return ""


def unescaped(body: bytes) -> bytes:
    """Return a body with what the escapes of JSON's strings stand for, wherever they are."""

    def meant(found: re.Match[bytes]) -> bytes:
        return chr(int(found[1], 16)).encode(errors="replace") if found[1] else ESCAPES.get(found[2], found[2])

    return re.sub(rb"\\(?:u([0-9a-fA-F]{4})|(.))", meant, body)


def resident() -> float:
    """Resident memory of this process, in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def ask_forged(wire: Wire, count: int, seed: int = 0) -> set[int]:
    """Send forged requests to a server of this process; none is answered by a fault, and memory does not grow.

    Return the statuses of the answers.
    """
    seen, before = set(), 0.0
    for number, request in enumerate(requests(count, seed)):
        answered = wire.send(request.wire(), method=request.method, ends=request.ends)
        wrong = fault(request, answered)
        assert not wrong, f"case {number} of seed {seed}, {request}: {wrong}"
        seen.add(answered.status)
        if number == count // 10:
            before = resident()
    assert resident() - before < GROWTH
    return seen


def served(folder: Path, limits: str = LIMITS) -> Any:
    """Serve an index that may be changed."""
    path = save(folder / "index")
    return running(configured(path, limits, indexes={"cities": {"path": path, "writable": True}}))
