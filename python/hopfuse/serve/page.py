"""The page at ``/``, and headers that restrict it to the style and the script in its file."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from importlib.resources import files

from starlette.responses import Response


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
