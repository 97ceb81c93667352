"""What the recipes' tests on the emulator share."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import variants


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Any]]:
    """What turns the emulator on, for the rest of the test; its runtime tells what was launched.

    What the emulated driver finds in the calls, or other bits than the CPU's, fail the test.
    """
    reason = variants.missing(variants.SIMT)
    if reason is not None:
        pytest.skip(reason)
    monkeypatch.setenv("HOPFUSE_BACKEND", os.environ.get("HOPFUSE_BACKEND", ""))  # put back at the end
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(variants.emulated("forward"))
