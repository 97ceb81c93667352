"""Refusals of requests, and errors of the library as answers to them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from ..errors import HopfuseError, InputError, MissingExtraError
from ..io.source import METADATA_ADVICE

#: The HTTP status of a refusal by its code. An invalid argument is an InputError, and is answered 400.
STATUSES = {
    "unauthorized": 401,
    "expired": 401,
    "forbidden": 403,
    "unknown": 404,
    "method": 405,
    "slow": 408,
    "read_only": 409,
    "too_large": 413,
    "unsupported": 415,
    "overloaded": 429,
    "head_too_large": 431,
    "gone": 499,
    "failed": 500,
    "damaged": 500,
    "encoder": 500,
    "unavailable": 503,
    "disk": 503,
    "timeout": 504,
}
#: The codes of refusals for which the request is at fault, so that clients raise an InputError.
FAULTS = ("unknown", "too_large", "head_too_large", "unsupported")


#: Most characters of a value in an error.
MOST_SHOWN = 60


class RefusalError(HopfuseError):
    """A request that the server does not answer for a reason other than an invalid argument.

    Parameters
    ----------
    code : str
        A key of :data:`STATUSES`.
    field, sentence, **values
        As of :class:`hopfuse.errors.HopfuseError`; the field is a path in the body, such as ``queries[3].vector``.

    Attributes
    ----------
    retry_after : float or None
        Seconds after which the request may be sent again.

    Examples
    --------
    >>> from hopfuse.serve import RefusalError
    >>> refusal = RefusalError("overloaded", None, "the queue has {most} requests", most=8).after(1)
    >>> print(refusal, refusal.retry_after)
    the queue has 8 requests 1
    """

    retry_after: float | None = None

    def after(self, seconds: float) -> RefusalError:
        """Return this refusal with the seconds after which the request may be sent again."""
        self.retry_after = seconds
        return self


def without_frames(error: BaseException) -> None:
    """Drop the frames of an error that was answered, and of those it came from.

    They hold the request, and in turn what holds the error, such as a future: memory until the next full collection.
    """
    left, seen = [error], set()
    while left:
        one = left.pop()
        seen.add(id(one))
        one.__traceback__ = None
        left += [cause for cause in (one.__cause__, one.__context__) if cause is not None and id(cause) not in seen]


def gone_away() -> RefusalError:
    """Return the refusal of a request whose client has left."""
    return RefusalError("gone", None, "the client has left")


def no_passage(id: str) -> RefusalError:
    """Return the refusal of an id that no passage has, or none that the key sees."""
    return RefusalError("unknown", "id", "there is no passage with the {field} {given!r}", given=id[:MOST_SHOWN])


def not_json(error: Exception) -> InputError:
    """Return the refusal of a body."""
    return InputError("syntax", None, "the body is not valid JSON: {error}; send one JSON object in UTF-8", error=error)


def damaged() -> RefusalError:
    """Return the refusal of a request for an index whose files are damaged; where is not the client's concern."""
    return RefusalError("damaged", None, "the index is damaged; the server's log says more")


def status_of(error: HopfuseError) -> int:
    """Return the HTTP status of an error.

    Parameters
    ----------
    error : HopfuseError

    Examples
    --------
    >>> from hopfuse.errors import InputError
    >>> from hopfuse.serve import RefusalError, status_of
    >>> status_of(RefusalError("timeout", None, "too late")), status_of(InputError("empty", "text", "{field} is empty"))
    (504, 400)
    """
    if isinstance(error, RefusalError):
        return STATUSES[error.code]
    return 400 if isinstance(error, (InputError, MissingExtraError)) else 500


def body_of(error: HopfuseError) -> dict[str, Any]:
    """Return the JSON body of an error, which names the class that clients raise."""
    found = error.data(str)
    if isinstance(error, RefusalError):
        found["class"] = "InputError" if error.code in FAULTS else "EndpointError"
    return {"error": found}


def in_request(error: HopfuseError, path: str) -> HopfuseError:
    """Return an error of the library about a part of a request, with the field's path: ``path`` and the error's field.

    Examples
    --------
    >>> said = InputError("range", "k", "{field} is {given}", given=-1)
    >>> in_request(said, "options").field, in_request(InputError("empty", "[2]", "{field} is empty"), "allow").field
    ('options.k', 'allow[2]')
    """
    field = error.field or ""
    return error.at(field=f"{path}{'.' if field and not field.startswith('[') else ''}{field}")


def in_row(error: HopfuseError) -> HopfuseError:
    """Return an error at a row of the request, such as ``passages[2]``, with the row in the field's path."""
    if not error.places or re.fullmatch(r"\w+\[\d+\]", error.places[0]) is None:
        return error
    moved = in_request(error, error.places[0])
    moved.places = error.places[1:]
    return moved


# ---- Errors of msgspec -----------------------------------------------------------------------------------------------

#: The code of a value that msgspec refuses, by the beginning of its message; that of others is "type".
_CODES = {
    r"invalid enum value": "choice",
    r"expected `(int|float)( \| null)?`": "range",
    r"expected `\w+` of length >= 1": "empty",
    r"expected `\w+` of length": "length",
    r"expected `str` matching regex": "syntax",
}


#: Types of JSON, as msgspec names them, in words.
_KINDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "null": "null",
    "object": "an object",
    "str": "a string",
}


#: No types of entries, which :func:`invalid_value` has by default.
NO_PARTS: Mapping[str, type] = {}


def invalid_value(
    error: msgspec.ValidationError, body: type | None, path: str, value: Any, parts: Mapping[str, type] = NO_PARTS
) -> InputError:
    """Return an error of msgspec's about a value as one of the library's.

    Parameters
    ----------
    error : ValidationError
    body : type or None
        The type of the object that holds the value, whose fields are the allowed ones.
    path : str
        The value's path, such as ``keys.team.rights[0]``; empty for the body itself.
    value : object
        The value, UNSET if it is not known.
    parts : mapping of str to type
        The types of the entries of lists. The error about an unknown field says if such entries have it.
    """
    problem = str(error).partition(" - at `$")[0]
    problem = f"{problem[:1].lower()}{problem[1:]}"
    named = re.fullmatch(r"object (contains unknown|missing required) field `(.*)`", problem)
    if named is not None:
        field = ".".join(filter(None, (path, named[2])))
        if named[1] == "missing required":
            return InputError("missing", field, "{field} is missing; give it")
        fields: tuple[str, ...] = getattr(body, "__struct_fields__", ())
        inner = [name for name in fields if field in getattr(parts.get(name), "__struct_fields__", ())]
        return InputError(
            "unknown",
            field,
            "{field} does not exist{hint}; allowed: {allowed}{fix}",
            hint=f" here, but in an entry of {inner[0]}" if inner else "",
            allowed=", ".join(fields),
            fix=f"; {METADATA_ADVICE}" if "metadata" in fields else "",
        )
    allowed = re.sub(", got `.*`$", "", problem).removeprefix("expected ")
    allowed = re.sub("`([^`]*)`", lambda kinds: " or ".join(_kinds(kinds[1].split(" | "))), allowed)
    if not path:
        return InputError("type", None, "the body must be {allowed}", allowed=allowed)
    code = next((code for pattern, code in _CODES.items() if re.match(pattern, problem)), "type")
    name = path.rpartition(".")[2].partition("[")[0]
    kind = get_type_hints(body).get(name)
    shown = ", ".join(_literals(kind) if code == "choice" else ())
    if shown:
        allowed = f"a whole number or {shown}" if int in get_args(kind) else f"one of {shown}"
    given, shown = _shown(value)
    said = InputError("type", path, "{field} must be {allowed}{shown}", given=given, allowed=allowed, shown=shown)
    said.code = code
    return said


def _kinds(names: Sequence[str]) -> list[str]:
    """Return types in words; a number is a whole number, too."""
    return [_KINDS.get(name, f"`{name}`") for name in names if name != "int" or "float" not in names]


def value_at(whole: Any, path: str) -> Any:
    """Return what stands at a path in plain values; UNSET if the path does not lead to it.

    Examples
    --------
    >>> value_at({"keys": [{"name": "a"}]}, "keys[0].name")
    'a'
    """
    try:
        for name, place in steps_of(path):
            whole = whole[name] if name else whole[int(place)]
    except (LookupError, TypeError, ValueError):
        return msgspec.UNSET
    return whole


def steps_of(path: str) -> list[tuple[str, str]]:
    """Return the steps of a path: a name, or a place in a list.

    Examples
    --------
    >>> steps_of("queries[3].text")
    [('queries', ''), ('', '3'), ('text', '')]
    """
    return re.findall(r"([^.\[\]]+)|\[(\d+)\]", path)


def _shown(value: Any) -> tuple[Any, str]:
    """Return a value, cut if it is long, and the end of a sentence that tells it."""
    if value is msgspec.UNSET:
        return None, ""
    try:  # it may be nested too deeply to be shown
        text = json.dumps(value, default=str, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return None, ""
    if len(text) > MOST_SHOWN:
        value = text = text[: MOST_SHOWN - 1] + "…"
    return value, f"; it is {text}"


def _literals(kind: Any) -> tuple[str, ...]:
    """Return the strings that a type allows."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    return next((found for inner in get_args(kind) if (found := _literals(inner))), ())
