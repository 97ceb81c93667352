"""Refusals of requests."""

from __future__ import annotations

from typing import Any


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


def with_names(message: str, body: type | None) -> str:
    """Return msgspec's message, in lower case; of an unknown field with the names that the type has."""
    names: tuple[str, ...] = getattr(body, "__struct_fields__", ())
    allowed = f"; allowed: {', '.join(names)}" if names and "contains unknown field" in message else ""
    return f"{message[:1].lower()}{message[1:]}{allowed}"


def invalid(field: str, message: str) -> RefusalError:
    """Return the 400 refusal of a field; its message is the field's name and ``message``."""
    return RefusalError(400, "invalid", f"{field} {message}", field=field)
