"""What graphs and corpora have on a device: kept with them, under keys that begin alike, until they are released."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import BackendError
from ...types import Corpus, Graph, Incidence, LabelSets
from .runtime import DeviceArray, Runtime


def resident_key(runtime: Runtime) -> str:
    """What begins the keys of all that a graph or corpus has on a runtime's device."""
    return f"{runtime.name}:{id(runtime)}"


def require(runtime: Runtime, nbytes: int, what: str) -> None:
    """BackendError where the device has no room for what is about to stay there."""
    free = runtime.free_bytes()
    if nbytes > free:
        raise BackendError(
            f"{what} needs {nbytes / 2**20:,.1f} MiB on the device, which has {free / 2**20:,.1f} MiB free: release "
            "others (hopfuse.release), store vectors as float16 or bfloat16, or use backend='cpu'"
        )


def upload_some(runtime: Runtime, array: NDArray[Any]) -> DeviceArray:
    """The array, or of an empty one a single element: a kernel reads none of it, but takes its address."""
    return runtime.upload(array if array.size else np.zeros(1, array.dtype))


def residents(runtime: Runtime, held: Graph | Corpus | Incidence) -> list[Any]:
    """All that is there, for what must not lose it."""
    return [kept for key, kept in list(held._prepared.items()) if key.startswith(resident_key(runtime))]


def release(runtime: Runtime, held: Graph | Corpus | LabelSets | Incidence) -> None:
    """Free what is on the device; a recording that reads it keeps it until it is dropped itself."""
    for key in [key for key in list(held._prepared) if key.startswith(resident_key(runtime))]:
        held._prepared.pop(key, None)
    runtime.trim()
