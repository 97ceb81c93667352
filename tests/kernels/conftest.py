"""The emulator, for tests of how a device answers: what it launches, keeps and reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import variants


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test of the emulator in every order of threads, if it is marked so."""
    if "runtime" in metafunc.fixturenames and metafunc.definition.get_closest_marker("every_order") is not None:
        metafunc.parametrize("runtime", variants.every_order(), indirect=True)


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
    threads = getattr(request, "param", None) or variants.order_of(request.node.nodeid)
    with variants.emulated(threads) as emulator:
        yield emulator
