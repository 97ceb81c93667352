"""The page at ``/``: one file, and the headers that let a browser run nothing on it but what the file holds."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from importlib.resources import files

from starlette.responses import Response


def page() -> Response:
    """Return the page.

    Its policy allows the file's own style and script by their digests, requests to this server, and nothing else: no
    other host, no attribute that runs or styles, no markup made from text (trusted types), no frame around it.
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
    """Return the source of a policy that allows what stands in the only element of this name."""
    (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    return f"'sha256-{b64encode(hashlib.sha256(inside.encode()).digest()).decode()}'"
