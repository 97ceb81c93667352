"""The emulator's runtime of a file of tests, in every order of threads and blocks."""

from __future__ import annotations

import pytest
from hopfuse_simt.runtime import SimtRuntime

ORDERS = [("forward", 0), ("reverse", 0), ("shuffle", 1)]


@pytest.fixture(params=ORDERS, ids=[order for order, _ in ORDERS])
def runtime(emulated: SimtRuntime, request: pytest.FixtureRequest) -> SimtRuntime:
    """Return the file's runtime, ``emulated``, in one order, with no launches counted."""
    emulated.order, emulated.seed = request.param
    emulated.launches.clear()
    return emulated
