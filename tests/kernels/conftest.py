"""The emulator, for tests of how a device answers: what it launches, keeps and reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import variants


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests of the emulator."""
    if "runtime" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.emulator)


@pytest.fixture
def runtime(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The emulator, as new, on which calls run in this test; each is made on the CPU too and has its bits."""
    reason = variants.missing(variants.SIMT)
    if reason is not None:
        pytest.skip(reason)
    with variants.emulated(variants.order_of(request.node.nodeid)) as emulator:
        yield emulator
