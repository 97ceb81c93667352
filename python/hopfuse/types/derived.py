"""Cache of data derived from the arrays of a frozen type."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, Self

from ..errors import InputError


class KeepsDerived:
    """Base of frozen types with a dict ``derived``, where operations cache what they compute from the arrays.

    Pickling and copying leave the cache empty: it may hold memory of this process, and is filled again on use.
    """

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """Refuse data in place of the fields, and say which method takes them."""
        needed = [one for one in fields(cls) if one.default is one.default_factory is MISSING]  # type: ignore[arg-type]
        own_init = "__dataclass_fields__" not in vars(cls)  # a subclass that takes other arguments
        if given and not own_init and len(given) + len(named) < len(needed):
            raise InputError(
                "type",
                None,
                "{type}(...) does not take data {given}; call {allowed}",
                type=cls.__name__,
                given=_kind(given[0]),
                allowed=cls._maker(*given),
            )
        return super().__new__(cls)

    @classmethod
    def _maker(cls, *given: Any) -> str:
        """Return the call that takes such data."""
        return " or ".join(f"{cls.__name__}.{name}(...)" for name in sorted(vars(cls)) if name.startswith("from_"))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "derived": {}}


def _kind(given: Any) -> str:
    shape = getattr(given, "shape", None)
    return f"of the type {type(given).__name__}" + ("" if shape is None else f" and the shape {tuple(shape)}")
