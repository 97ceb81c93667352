"""What graphs and corpora have on a device: kept with them, under keys that begin alike, until they are released."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...errors import BackendError
from ...types import Corpus, Graph, Incidence, LabelSets
from .runtime import DeviceArray, Runtime

Held = Graph | Corpus | LabelSets | Incidence
R = TypeVar("R")


def resident_key(runtime: Runtime) -> str:
    """Return what begins the keys of all that a graph or corpus has on a runtime's device."""
    return f"{runtime.name}:{id(runtime)}"


def resident(runtime: Runtime, held: Held, arrays: Sequence[Any], what: str, make: Callable[[], R]) -> R:
    """Return what is there of a graph or corpus, made of these arrays at its first use there."""
    key = resident_key(runtime)
    if key not in held.derived:
        require(runtime, sum(0 if array is None else array.nbytes for array in arrays), what)
        with runtime.resident():  # which waits at its end: then other streams may read what is there
            made = make()
        held.derived[key] = made
    found: R = held.derived[key]
    return found


def require(runtime: Runtime, nbytes: int, what: str) -> None:
    """Raise BackendError where the device has no room for what is about to stay there."""
    free = runtime.free_bytes()
    if nbytes > free:
        raise BackendError(
            f"{what} needs {nbytes / 2**20:,.1f} MiB on the device, which has {free / 2**20:,.1f} MiB free: release "
            "others (hopfuse.free_device_memory), store vectors as float16 or bfloat16, or use backend='cpu'"
        )


def upload_some(runtime: Runtime, array: NDArray[Any]) -> DeviceArray:
    """Upload the array, or of an empty one a single element: a kernel reads none of it, but takes its address."""
    return runtime.upload(array if array.size else np.zeros(1, array.dtype))


def residents(runtime: Runtime, held: Held) -> list[Any]:
    """Return all that is there, for what must not lose it."""
    return [kept for key, kept in list(held.derived.items()) if key.startswith(resident_key(runtime))]


def release(runtime: Runtime, held: Held) -> None:
    """Free what is on the device; a recording that reads it keeps it until it is dropped itself."""
    for key in [key for key in list(held.derived) if key.startswith(resident_key(runtime))]:
        held.derived.pop(key, None)
    runtime.trim()
