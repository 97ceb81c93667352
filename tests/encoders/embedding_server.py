"""An embedding endpoint of one's own: HTTP on a free port, the protocol of ``/v1/embeddings``."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class EmbeddingServer:
    """Answers a text by counts of its letters, or as ``reply`` says; it remembers what it was asked.

    Attributes
    ----------
    requests : list of dict
    keys : list of str
    reply : callable, optional
        Takes a request and returns a status and a body.
    """

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.reply: Any = None
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with server._lock:
                    server.requests.append({"path": self.path, **request})
                    server.keys.append(self.headers["authorization"])
                status, body = (server.reply or answered)(request)
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    @contextmanager
    def running(self) -> Iterator[EmbeddingServer]:
        thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            self._http.shutdown()
            thread.join()
            self._http.server_close()


def vector(text: str, dim: int = 4) -> list[float]:
    """What the model makes of a text."""
    return [1.0 + text.count(letter) for letter in "aeio"[:dim]]


def answered(request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Vectors of a request, the last first: an endpoint gives each its place by its index."""
    data = [
        {"object": "embedding", "index": at, "embedding": vector(text, request.get("dimensions", 4))}
        for at, text in enumerate(request["input"])
    ]
    return 200, {"object": "list", "model": request["model"], "data": data[::-1], "usage": {}}
