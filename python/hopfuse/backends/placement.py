"""The backend that an op takes for arrays on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .._arrays.codes import code_bytes
from .._arrays.convert import is_on_device
from .._arrays.mapped import mapping_of
from ..errors import InputError
from ..types import Corpus, Graph, Incidence, LabelSets
from . import _backends, automatic, resolve

if TYPE_CHECKING:  # loaded where a device is used, so that ``import hopfuse`` stays fast
    from .cuda import DeviceOps, Recordings

__all__ = ["device_for", "device_of", "estimate", "on_host", "recordings", "release"]


def device_for(backend: str, array: Any, name: str) -> DeviceOps | None:
    """Return the ops of the device that a caller's array is on; None for an array on the host."""
    if not is_on_device(array):
        return None
    for chosen in _candidates(backend):
        device = device_of(chosen)
        if device is not None and device.runtime.is_device_array(array):
            return device
    reads = "reads arrays on the host" if device_of(backend) is None else "cannot read it"
    raise InputError(
        f"{name} is a {type(array).__name__} on a device, and backend={backend!r} {reads}; move it to the host, or use "
        "backend='cuda' on a machine that has it (hopfuse.backend_info() says why not)"
    )


def device_of(backend: str) -> DeviceOps | None:
    """Return the ops on arrays of a backend's device; None where it has none."""
    found: DeviceOps | None = resolve(backend).device
    return found


def recordings(
    device: DeviceOps, core: Callable[..., Any], shapes: Sequence[tuple[tuple[int, ...], Any]], sizes: Sequence[int]
) -> Recordings:
    """Return a core's recordings on a device."""
    from .cuda import Recordings

    return Recordings(device, core, shapes, sizes)


def estimate(graph: Graph | None, corpus: Corpus | None, *, batch: int, k: int, seeds: int) -> dict[str, int]:
    """Return the bytes on a device by what takes them."""
    from .cuda.estimate import estimate

    return estimate(graph, corpus, batch=batch, k=k, seeds=seeds)


def on_host(corpus: Corpus | None) -> dict[str, int]:
    """Return the bytes of a corpus in the host's memory by what takes them."""
    if corpus is None:
        return {"host_vectors": 0, "host_codes": 0}
    vectors = 0 if mapping_of(corpus.vectors) is not None else corpus.vectors.nbytes
    return {"host_vectors": vectors, "host_codes": code_bytes(corpus.num_vectors, corpus.dim)}


def release(device: DeviceOps, held: Graph | Corpus | LabelSets | Incidence) -> None:
    """Free what a graph, corpus, label sets or an incidence have on a device."""
    from .cuda.residents import release

    release(device.runtime, held)


def _candidates(backend: str) -> Iterator[str]:
    if backend != "auto":
        yield backend
        return
    yield automatic()
    yield from _backends
