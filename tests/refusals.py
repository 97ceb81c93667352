"""Errors as tests check them: a class, a code, a field and values, never a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import pytest
from hopfuse.errors import CODES, HopfuseError


@contextmanager
def refused(
    kind: type[HopfuseError],
    code: str,
    field: str | None = None,
    values: Mapping[str, Any] = MappingProxyType({}),
    /,
    **more: Any,
) -> Iterator[pytest.ExceptionInfo[Any]]:
    """Expect an error of this class, code and field; see :func:`check_error`."""
    with pytest.raises(kind) as caught:
        yield caught
    check_error(caught.value, kind, code, field, **values, **more)


def check_error(
    error: BaseException,
    kind: type[HopfuseError],
    code: str,
    field: str | None = None,
    /,
    place: str = "",
    **values: Any,
) -> None:
    """Check an error's class, code, field and these of its values, and that its sentence can be made.

    ``place`` is the end of one of the places where it happened, such as ``"rows.jsonl, line 3"``.
    """
    assert isinstance(error, kind), repr(error)
    said = str(error)
    assert (error.code, error.field) == (code, field), f"({error.code!r}, {error.field!r}): {said}"
    assert code in CODES
    assert {name: error.values.get(name) for name in values} == values, said
    assert not place or any(one.endswith(place) for one in error.places), said
