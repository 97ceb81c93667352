"""What an endpoint is given, checked; no message repeats a key."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from ..errors import InputError
from ._transport import NO_KEY

ROLES = ("system", "developer", "user", "assistant")


def messages_of(prompt: Any, at: int) -> list[dict[str, str]]:
    """The messages of ``prompts[at]``; a text is a user's."""
    rows = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    whole = isinstance(rows, Sequence) and len(rows) > 0
    if not whole or not all(_is_message(row) for row in rows):
        raise InputError(
            f"prompts[{at}] is {str(prompt)[:80]!r}; it must be a text, or a list of messages with a 'role' of "
            f"{', '.join(ROLES)} and a 'content'"
        )
    return [{"role": row["role"], "content": row["content"]} for row in rows]


def _is_message(row: Any) -> bool:
    if not isinstance(row, Mapping) or row.get("role") not in ROLES or not isinstance(row.get("content"), str):
        return False
    try:
        row["content"].encode()
    except UnicodeEncodeError:  # half a character
        return False
    return True


def address_and_key(base_url: str | None, api_key: str | None) -> tuple[str | None, str]:
    """As given, else from the environment."""
    url = os.environ.get("OPENAI_BASE_URL") if base_url is None else base_url
    if url is not None:
        _check_address(url)
    key = os.environ.get("OPENAI_API_KEY") if api_key is None else api_key
    key = key.strip() if isinstance(key, str) else key
    if not key and url is None:
        raise InputError("OpenAI's endpoint needs a key: set OPENAI_API_KEY, or give the base_url of another endpoint")
    if key and not (isinstance(key, str) and key.isascii() and key.isprintable()):
        raise InputError("the key has characters that no key has; set OPENAI_API_KEY, or api_key, anew")
    return url, key or NO_KEY


def _check_address(url: Any) -> None:
    """Refuse what is no address, in words that do not repeat it: it may hold a secret in any place."""
    if isinstance(url, str) and any(sign in url for sign in "@?#"):
        raise InputError(
            "base_url may have no '@', no query and no fragment, where a password or a key would be shown in errors; "
            "give the key as OPENAI_API_KEY, and the address alone: http://localhost:8000/v1"
        )
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (ValueError, TypeError, AttributeError):
        fits = False
    if not fits or not isinstance(url, str) or not url.isprintable() or " " in url:
        raise InputError(
            "base_url must begin with http:// or https:// and name a host, as http://localhost:8000/v1 does; what was "
            "given is not repeated here, for it may hold a password"
        )


def names_of(names: Any, number: int) -> list[str | None]:
    """What prompts are called in errors; None for each where nothing is given."""
    if names is None:
        return [None] * number
    whole = isinstance(names, Sequence) and not isinstance(names, str | bytes) and len(names) == number
    if not whole or not all(isinstance(name, str) for name in names):
        raise InputError(f"names is {str(names)[:80]!r}; it must be a list of {number} texts, one for each prompt")
    return list(names)


def real(value: Any, name: str, most: float) -> float:
    """A number in [0, most]."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise InputError(f"{name} is {value!r}; it must be a number in [0, {most}]")
    return float(value)


def seconds(value: Any) -> float:
    """A timeout."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise InputError(f"timeout is {value!r}; it must be a number of seconds above 0")
    return float(value)
