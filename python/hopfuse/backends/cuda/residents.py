"""Device copies of graphs, corpora and similar types, cached in their ``derived`` until they are released."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...errors import DeviceMemoryError
from ...types import Corpus, Graph, Incidence, LabelSets
from .runtime import DeviceArray, Runtime

Held = Graph | Corpus | LabelSets | Incidence
R = TypeVar("R")


def resident_key(runtime: Runtime) -> str:
    """Return the common prefix of the keys of a runtime's device copies."""
    return f"{runtime.name}:{id(runtime)}"


def resident(runtime: Runtime, held: Held, arrays: Sequence[Any], what: str, make: Callable[[], R]) -> R:
    """Return the device copy of ``held``; its first use makes it from these arrays."""
    key = resident_key(runtime)
    if key not in held.derived:
        require(runtime, sum(0 if array is None else array.nbytes for array in arrays), what)
        with runtime.resident():  # waits at the end, so that other streams may read the arrays
            made = make()
        held.derived[key] = made
    found: R = held.derived[key]
    return found


def require(runtime: Runtime, nbytes: int, what: str) -> None:
    """Raise DeviceMemoryError if the device lacks the memory."""
    free = runtime.free_bytes()
    if nbytes > free:
        raise DeviceMemoryError(
            "memory",
            what,
            "{field} needs {nbytes:,.1f} MiB on the device, which has {free:,.1f} MiB free: free others "
            "(hopfuse.free_device_memory), store vectors as float16 or bfloat16, or use backend='cpu'",
            nbytes=nbytes / 2**20,
            free=free / 2**20,
        )


def upload_some(runtime: Runtime, array: NDArray[Any]) -> DeviceArray:
    """Upload an array, or a dummy element if it is empty, because kernels need an address."""
    return runtime.upload(array if array.size else np.zeros(1, array.dtype))


def residents(runtime: Runtime, held: Held) -> list[Any]:
    """Return all device copies of ``held``, for a recording to keep alive."""
    return [kept for key, kept in list(held.derived.items()) if key.startswith(resident_key(runtime))]


def release(runtime: Runtime, held: Held) -> None:
    """Free the device copies of ``held``; a recording that reads them keeps them alive."""
    for key in [key for key in list(held.derived) if key.startswith(resident_key(runtime))]:
        held.derived.pop(key, None)
    runtime.trim()
