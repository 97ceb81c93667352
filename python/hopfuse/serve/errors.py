"""Refusals: what a request is answered with that is not served."""

from __future__ import annotations

from typing import Any


class RefusalError(Exception):
    """A request that is refused: an HTTP status, a code for programs, and a message with the field and the fix.

    Parameters
    ----------
    status : int
        4xx or 5xx.
    code : str
        One word for programs: ``"invalid"``, ``"overloaded"``, ``"timeout"``, ...
    message : str
        What was given, what is allowed, the fix.
    field : str, optional
        The field of the body, as ``queries[3].vector``.
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
        """The body: ``{"error": {"code", "message", "field"}}``."""
        error = {"code": self.code, "message": self.message}
        return {"error": error if self.field is None else {**error, "field": self.field}}


def invalid(field: str, message: str) -> RefusalError:
    """Return the refusal of a field's value, 400; the message follows the field's name."""
    return RefusalError(400, "invalid", f"{field} {message}", field=field)
