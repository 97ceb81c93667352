"""A chat endpoint of one's own: HTTP on a free port, the protocol of ``/v1/chat/completions``."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """The reply to a request: the model's words, or a status with its body.

    It is held until ``held`` is set; its body goes out a byte at a time, one for each release of ``drip``.
    """

    text: str | None = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    finish: str | None = "stop"
    refusal: tuple[str, str | None] | None = None
    held: threading.Event | None = None
    drip: threading.Semaphore | None = None


Answer = Callable[[dict[str, Any]], Reply | str | dict[str, Any]]
HANGS = 600  # seconds that nothing takes, however busy the machine: a wait that is longer has gone wrong


class ChatServer:
    """Answers as it is told, and remembers what it was asked.

    Attributes
    ----------
    url : str
    requests : list of dict
        Bodies, in their order.
    keys : list of str
        What stood behind "Bearer".
    most_at_once : int
    """

    def __init__(self, answer: Answer) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        self._answer = answer
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def prompts(self) -> list[str]:
        """The last message of each request."""
        return [request["messages"][-1]["content"] for request in self.requests]

    @contextmanager
    def _counted(self, request: dict[str, Any], key: str) -> Iterator[None]:
        with self._lock:
            self.requests.append(request)
            self.keys.append(key)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            yield
        finally:
            with self._lock:
                self._at_once -= 1

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                key = self.headers["Authorization"].removeprefix("Bearer ")
                request |= {"path": self.path, "tries_before": int(self.headers.get("x-stainless-retry-count", 0))}
                with server._counted(request, key):
                    reply = as_reply(server._answer(request))
                    if reply.held is not None:
                        reply.held.wait(HANGS)
                body = completion(reply) if reply.body is None else reply.body
                try:
                    self.send_response(reply.status)
                    for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    if reply.drip is None:
                        self.wfile.write(body)
                        return
                    for byte in body:
                        reply.drip.acquire(timeout=HANGS)
                        self.wfile.write(bytes([byte]))
                except OSError:
                    pass  # who asked has gone

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler

    def __enter__(self) -> ChatServer:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._http.shutdown()
        self._http.server_close()


def as_reply(said: Reply | str | dict[str, Any]) -> Reply:
    if isinstance(said, Reply):
        return said
    return Reply(said if isinstance(said, str) else json.dumps(said))


def completion(reply: Reply) -> bytes:
    message = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
    choice = {"index": 0, "message": message, "finish_reason": reply.finish}
    return json.dumps(
        {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    ).encode()


def failure(status: int, message: str, **headers: str) -> Reply:
    """An error in the form that endpoints give it."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, headers=named, body=json.dumps({"error": {"message": message}}).encode())


def in_turn(*replies: Reply | str | dict[str, Any]) -> Answer:
    """The first request gets the first reply, and so on; the last one stays."""
    left, lock = list(replies), threading.Lock()

    def answer(request: dict[str, Any]) -> Reply | str | dict[str, Any]:
        with lock:
            return left.pop(0) if len(left) > 1 else left[0]

    return answer
