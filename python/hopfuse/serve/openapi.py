"""``/openapi.json``, generated from the routes and the types of their bodies, and the page at ``/``."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import msgspec
from starlette.responses import Response

from .. import __version__
from ..errors import HopfuseError
from .schema import ErrorResponse

REF = "#/components/schemas/{name}"
STATUSES = {
    200: "Answered.",
    400: "A field is invalid; code and field are those of the library's error, the message says the fix.",
    401: "The request has no valid key.",
    403: "The key or the server does not allow this.",
    404: "Not found.",
    408: "The body did not arrive in time.",
    409: "This process only reads the index.",
    413: "The body is too large.",
    415: "The body has another type than those listed.",
    429: "The deadline cannot be met, or the queue is full; try again after Retry-After.",
    503: "The server is starting or stopping.",
    504: "The deadline passed.",
}
#: Error statuses of any route with a body.
WITH_BODY = (400, 404, 408, 413, 415, 429, 503, 504)


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A route, for Starlette and for OpenAPI.

    Attributes
    ----------
    method, path, summary : str
    handler
        ``async handler(request) -> Response``.
    request, response : type, optional
        Types of the JSON bodies; None if there is none, or it is not JSON.
    media : str
        Media type of the response.
    also : sequence of str
        Further media types of both bodies.
    query : mapping of str to type
        Query parameters, all optional.
    errors : sequence of int
        Error statuses.
    right : str, optional
        The right that a key needs.
    error : callable, optional
        Makes the body of a refusal; by default the server's own.
    """

    method: str
    path: str
    summary: str
    handler: Any
    request: Any = None
    response: Any = None
    media: str = "application/json"
    also: Sequence[str] = ()
    query: Mapping[str, Any] = field(default_factory=dict)
    errors: Sequence[int] = ()
    right: str | None = None
    error: Callable[[HopfuseError], dict[str, Any]] | None = None


def document(endpoints: Sequence[Endpoint], *, keys: bool) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document."""
    types = [kind for one in endpoints for kind in (one.request, one.response) if kind is not None]
    listed = list(dict.fromkeys([*types, ErrorResponse]))
    schemas, components = msgspec.json.schema_components(listed, ref_template=REF)
    shown = dict(zip(listed, schemas, strict=True))
    paths: dict[str, Any] = {}
    for one in endpoints:
        paths.setdefault(one.path.replace(":path}", "}"), {})[one.method.lower()] = _operation(one, shown)
    found: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "hopfuse", "version": __version__, "summary": "Graph and vector retrieval."},
        "paths": paths,
        "components": {"schemas": components},
    }
    if keys:
        found["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        found["security"] = [{"key": []}]
    return found


def _operation(one: Endpoint, shown: dict[Any, Any]) -> dict[str, Any]:
    binary = {kind: {"schema": {"type": "string", "format": "binary"}} for kind in one.also}
    content = {one.media: {"schema": shown[one.response] if one.response else {"type": "string"}}}
    responses = {"200": {"description": STATUSES[200], "content": {**content, **binary}}}
    for status in sorted({*one.errors, 403} | ({401} if one.right else set())):
        body = {"application/json": {"schema": {"type": "object"} if one.error else shown[ErrorResponse]}}
        responses[str(status)] = {"description": STATUSES[status], "content": body}
    operation: dict[str, Any] = {
        "summary": one.summary,
        "operationId": re.sub(r"\W+", "_", f"{one.method.lower()}{one.path.replace(':path', '')}").strip("_"),
        "responses": responses,
    }
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)(?::path)?\}", one.path)
    ]
    parameters += [
        {"name": name, "in": "query", "schema": msgspec.json.schema(kind)} for name, kind in one.query.items()
    ]
    if parameters:
        operation["parameters"] = parameters
    if one.request is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": shown[one.request]}, **binary},
        }
    if one.right is None:
        operation["security"] = []
    return operation


# ---- The page --------------------------------------------------------------------------------------------------------


def page() -> Response:
    """Return the page.

    Its Content-Security-Policy allows the style and the script of the file, by their digests, and requests to this
    server; no other host, no inline handlers or styles, no markup from strings (trusted types), and no framing.
    """
    text = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    policy = {
        "default-src": "'none'",
        "script-src": _digest(text, "script"),
        "style-src": _digest(text, "style"),
        "connect-src": "'self'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    headers = {
        "cache-control": "no-cache",
        "content-security-policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "cross-origin-opener-policy": "same-origin",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }
    return Response(text, headers=headers, media_type="text/html")


def _digest(text: str, tag: str) -> str:
    """Return the policy source for the contents of the only element with this tag."""
    (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    return f"'sha256-{b64encode(hashlib.sha256(inside.encode()).digest()).decode()}'"
