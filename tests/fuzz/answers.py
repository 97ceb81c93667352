"""Targets of what other programs answer: a server of hopfuse, an endpoint of embeddings, one of a language model.

Their clients' connections are replaced, so that every request is answered by the input.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import hopfuse as hf
import numpy as np
from fuzz.mutators import json_values
from fuzz.targets import Target
from hopfuse.errors import HopfuseError

SCHEMA = {
    "type": "object",
    "properties": {"names": {"type": "array", "items": {"type": "string"}}, "n": {"type": "integer"}},
    "required": ["names"],
}


@cache
def libraries() -> list[Any]:
    """The libraries of HTTP by which clients send: httpx, and that of openai, which may be another one."""
    import httpx
    import openai

    name = type(openai.DefaultHttpxClient()._transport).__module__.partition(".")[0]
    return [httpx, *([] if name == "httpx" else [import_module(name)])]


@contextmanager
def answered(data: bytes, kind: str = "application/json", status: int = 200) -> Iterator[None]:
    """Answer every request by these bytes."""
    with ExitStack() as until:
        for library in libraries():

            def answer(_: Any, request: Any, library: Any = library) -> Any:
                return library.Response(status, headers={"content-type": kind}, content=data, request=request)

            until.enter_context(mock.patch.object(library.HTTPTransport, "handle_request", answer))
        yield


def client_json(data: bytes, folder: Path) -> object:
    """Read an answer to every kind of request of the client."""
    client = server_client()
    with answered(data):
        kept = []
        calls = (
            lambda: client.search(["Who?"]),
            lambda: client.indexes(),
            lambda: client.passage("a"),
            lambda: [*islice(client.passages(), 2)],
            lambda: client.add_passages([{"text": "a"}]),
            lambda: client.delete_passages(["a"]),
        )
        for call in calls:
            kept.append(_refused(call))
    return kept


def client_error(data: bytes, folder: Path) -> object:
    """Read a refusal of a server."""
    with answered(data, status=400):
        error = _refused(lambda: server_client().search(["Who?"]))
    assert str(error)
    return error


def client_arrow(data: bytes, folder: Path) -> object:
    """Read rankings of vectors, which come as an Arrow stream."""
    with answered(data, "application/vnd.apache.arrow.stream"):
        found = server_client().search_vectors(np.ones((1, 2), np.float32))
        assert len(found) == len(found.counts) == len(found.scores)
        return [found[at] for at in range(len(found))]


@cache
def server_client() -> Any:
    """Return a client of a server."""
    from hopfuse.client import Client

    return Client("http://localhost:1", timeout=5.0)


def _refused(call: Any) -> Any:
    try:
        return call()
    except HopfuseError as error:
        return error


@cache
def encoder() -> Any:
    """Return an encoder by an endpoint."""
    return hf.encoders.EndpointEncoder("http://localhost:1/v1", model="m", dim=2, api_key="k", retries=0)


@cache
def endpoint() -> Any:
    """Return an endpoint of a language model."""
    from hopfuse.llm import ChatEndpoint

    return ChatEndpoint("http://localhost:1/v1", model="m", api_key="k", retries=0)


def embeddings(data: bytes, folder: Path) -> object:
    """Read vectors of an endpoint."""
    with answered(data):
        rows = encoder().encode_queries(["a", "b"])
    assert rows.shape == (2, 2)
    assert np.isfinite(rows).all()
    return rows


def chat(data: bytes, folder: Path) -> object:
    """Read a completion of an endpoint, whose text is an object of a schema."""
    with answered(data):
        (found,) = endpoint().ask(["Who?"], SCHEMA)
    assert all(isinstance(name, str) for name in found["names"])
    return found


def careless(data: bytes, folder: Path) -> object:
    """Read the object in a model's text."""
    text = data.decode(errors="replace")
    message = {"role": "assistant", "content": text}
    return chat(json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode(), folder)


CARELESS = ("//", "/*", "*/", "<think>", "</think>", "'", "None", "True", "\\u")
TARGETS = (
    Target("client-json", client_json, 2_000, json_values, ("results", "hits", "score", "seq", "timings", "error")),
    Target("client-error", client_error, 6_000, json_values, ("error", "code", "field", "message", "values", "class")),
    Target("client-arrow", client_arrow, 5_000, None, ("hopfuse", "id", "score", '{"seq": 0, "timings": {}}')),
    Target("embeddings", embeddings, 2_000, json_values, ("data", "embedding", "index", "object", "list")),
    Target("chat", chat, 1_000, json_values, ("choices", "message", "content", "finish_reason", "refusal")),
    Target("careless-json", careless, 1_000, None, CARELESS),
)
