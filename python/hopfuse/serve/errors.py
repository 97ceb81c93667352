"""Refusals of requests."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin, get_type_hints


class RefusalError(Exception):
    """A refused request: an HTTP status, a code for programs, and a message for people.

    Parameters
    ----------
    status : int
        4xx or 5xx.
    code : str
        A word for programs: ``"invalid"``, ``"overloaded"``, ``"timeout"``, ...
    message : str
        What was given, what is allowed, and the fix.
    field : str, optional
        Field of the body, such as ``queries[3].vector``.
    retry_after : float, optional
        Seconds after which the request may be sent again.
    """

    def __init__(
        self, status: int, code: str, message: str, *, field: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.field, self.retry_after = field, retry_after

    @property
    def body(self) -> dict[str, Any]:
        """The JSON body: ``{"error": {"code", "message", "field"}}``."""
        error = {"code": self.code, "message": self.message}
        return {"error": error if self.field is None else {**error, "field": self.field}}


def with_names(message: str, body: type | None, place: str = "") -> str:
    """Return msgspec's message, in lower case, with what is allowed: the type's fields, or the values of a field.

    ``place`` ends with the field's name, such as ``keys[...].rights[0]``.
    """
    names: tuple[str, ...] = getattr(body, "__struct_fields__", ())
    if message.startswith("Invalid enum value"):
        field = place.rpartition(".")[2].partition("[")[0]
        names = _literals(get_type_hints(body).get(field)) if field in names else ()
    elif "contains unknown field" not in message:
        names = ()
    allowed = f"; allowed: {', '.join(names)}" if names else ""
    return f"{message[:1].lower()}{message[1:]}{allowed}"


def _literals(kind: Any) -> tuple[str, ...]:
    """Return the strings that a type allows."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    return next((found for inner in get_args(kind) if (found := _literals(inner))), ())


def invalid(field: str, message: str) -> RefusalError:
    """Return the 400 refusal of a field; its message is the field's name and ``message``."""
    return RefusalError(400, "invalid", f"{field} {message}", field=field)
