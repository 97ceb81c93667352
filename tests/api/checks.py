"""What the tests of refusals share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hopfuse.errors import HopfuseError


def refused(call: Callable[[], Any], says: Sequence[str], error: type[Exception] = ValueError) -> None:
    """The call raises the library's own error, which is also ``error``, and the message holds every part."""
    with pytest.raises(HopfuseError) as caught:
        call()
    assert isinstance(caught.value, error)
    for part in says:
        assert part in str(caught.value), f"{part!r} is not in: {caught.value}"
