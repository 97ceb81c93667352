"""Device copies of graphs, corpora and similar types, cached in their ``derived`` until they are released."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from ... import _native
from ...types import Corpus, Graph, Incidence, LabelSets
from .runtime import Runtime

Held = Graph | Corpus | LabelSets | Incidence
R = TypeVar("R")

_making = threading.RLock()


def resident(runtime: Runtime, held: Held, make: Callable[[_native.DeviceQueue], R], part: str = "") -> R:
    """Return the device copy of ``held``, or of a part of it; its first use makes it, in one thread."""
    key = runtime.key + part
    found: R | None = held.derived.get(key)
    if found is None:
        with _making:
            found = held.derived.get(key)
            if found is None:
                found = held.derived[key] = make(runtime.device.queue())
    return found


def release(runtime: Runtime, held: Held) -> None:
    """Free the device copies of ``held``; a recording that reads them keeps them alive."""
    with _making:
        for key in [key for key in list(held.derived) if key.startswith(runtime.key)]:
            held.derived.pop(key, None)
    runtime.trim()
