"""Clients of a server that write bytes to a socket and read answers from it."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from typing import Any, NamedTuple


class Answer(NamedTuple):
    """An answer: its status, its headers with names in lower case, and its body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> dict[str, Any]:
        return json.loads(self.body)["error"]


class Raw:
    """A connection to a server, by its URL; ``address`` is the client's own."""

    def __init__(self, url: str, address: str = "127.0.0.1") -> None:
        port = int(url.rpartition(":")[2])
        self.socket = socket.create_connection(("127.0.0.1", port), 600, source_address=(address, 0))
        self._read = b""

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *error: object) -> None:
        self.socket.close()

    def send(self, *parts: bytes) -> Raw:
        for part in parts:
            self.socket.sendall(part)
        return self

    def flood(self, part: bytes, most: int = 2**28) -> int:
        """Send a part again and again until the server answers or closes; return how many bytes that were."""
        sent, self._read, end = 0, b"", time.monotonic() + 600  # a guard against a server that does neither
        self.socket.setblocking(False)
        try:
            while sent < most and time.monotonic() < end:
                with contextlib.suppress(BlockingIOError):
                    sent += self.socket.send(part)
                try:
                    self._read += self.socket.recv(2**16)
                    break
                except BlockingIOError:
                    pass
        except ConnectionError:
            pass
        finally:
            self.socket.settimeout(600)
        return sent

    def answer(self, head: bool = False) -> Answer:
        """Read one answer; of a HEAD request, without a body."""
        while b"\r\n\r\n" not in self._read:
            self._more()
        first, _, rest = self._read.partition(b"\r\n\r\n")
        status, *lines = first.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        length = 0 if head else int(headers["content-length"])
        self._read = rest
        while len(self._read) < length:
            self._more()
        body, self._read = self._read[:length], self._read[length:]
        return Answer(int(status.split()[1]), headers, body)

    def ends(self) -> bool:
        """Whether the server closes the connection without a further byte."""
        try:
            return self._read == b"" and self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _more(self) -> None:
        data = self.socket.recv(2**16)
        if not data:
            raise EOFError(f"the server closed the connection after {self._read[:200]!r}")
        self._read += data


def get(path: str = "/v1/indexes", key: str = "") -> bytes:
    """A GET request."""
    return head("GET", path, key) + b"\r\n"


def post(body: bytes, path: str = "/v1/search", key: str = "", more: bytes = b"") -> bytes:
    """A POST request with a body of a stated length."""
    return head("POST", path, key) + b"Content-Length: %d\r\n%b\r\n" % (len(body), more) + body


def head(method: str, path: str, key: str = "") -> bytes:
    """The beginning of a head, to which further headers may be added."""
    given = f"Authorization: Bearer {key}\r\n" if key else ""
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{given}".encode()
