"""What the recipes' tests on the emulator share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
import variants


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """What turns the emulator on, for the rest of the test; its runtime tells what was launched."""
    reason = variants.missing(variants.SIMT)
    if reason is not None:
        pytest.skip(reason)
    monkeypatch.setenv("HOPFUSE_BACKEND", os.environ.get("HOPFUSE_BACKEND", ""))  # put back at the end

    def turn_on() -> Any:
        variants.use(variants.SIMT)
        return variants.simt_runtime()

    return turn_on
