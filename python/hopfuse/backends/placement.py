"""Choose the backend for arrays on a device, and reach device code that is imported lazily."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .. import _native
from .._arrays.codes import code_bytes
from .._arrays.convert import is_on_device
from .._arrays.mapped import mapping_of
from .._validation import check_whole
from ..errors import InputError
from ..types import Corpus, Graph, Incidence, LabelSets
from ..types.continued_corpus import ContinuedCorpus
from . import _backends, automatic, opened, resolve
from .driver import no_driver

if TYPE_CHECKING:  # imported only when a device is used, to keep ``import hopfuse`` fast
    from .cuda import DeviceOps, Recordings

__all__ = ["device_for", "device_of", "estimate", "on_host", "recordings", "release"]


def device_for(backend: str, array: Any, name: str) -> DeviceOps | None:
    """Return the ops of the device that holds a caller's array, or None for the host."""
    if not is_on_device(array):
        return None
    devices = [device for device in map(device_of, _candidates(backend)) if device is not None]
    for device in (*(device for device in devices if device.runtime.holds(array)), *devices):
        if device.runtime.is_device_array(array):
            return device.holding(array)
    reads = "reads arrays on the host" if device_of(backend) is None else "cannot read it"
    raise InputError(
        "conflict",
        name,
        "{field} is on a device ({kind}), and backend={backend!r} {reads}; move it to the host, or use "
        "backend='cuda' (hopfuse.backend_info() says why it is not available)",
        kind=type(array).__name__,
        backend=backend,
        reads=reads,
    )


def device_of(backend: str) -> DeviceOps | None:
    """Return the ops of a backend's device, or None if it has no device."""
    found: DeviceOps | None = resolve(backend).device
    return found


def recordings(
    device: DeviceOps, core: Callable[..., Any], shapes: Sequence[tuple[tuple[int, ...], Any]], sizes: Sequence[int]
) -> Recordings:
    """Return the recordings of a core on a device."""
    from .cuda import Recordings

    return Recordings(device, core, shapes, sizes)


def estimate(
    graph: Graph | None, corpus: Corpus | None, *, batch: int, k: int, seeds: int, proves: bool, device: int | None
) -> dict[str, int]:
    """Return the estimated bytes on a device, by use; by default on the one that a call of this thread would use."""
    from .cuda.estimate import estimate

    missing = no_driver()
    if missing is not None:
        if device is not None:
            raise missing
        return estimate(graph, corpus, batch=batch, k=k, seeds=seeds, proves=proves, like=None)
    like = _native.current_device() or 0
    if device is not None:
        like = check_whole(device, "device", _native.count_devices() - 1, least=0)
    return estimate(graph, corpus, batch=batch, k=k, seeds=seeds, proves=proves, like=like)


def on_host(corpus: Corpus | None) -> dict[str, int]:
    """Return the bytes of a corpus in host memory, by use."""
    if corpus is None:
        return {"host_vectors": 0, "host_codes": 0}
    held = corpus.concatenated.corpus.vectors if isinstance(corpus, ContinuedCorpus) else corpus.vectors
    vectors = 0 if mapping_of(held) is not None else held.nbytes
    return {"host_vectors": vectors, "host_codes": code_bytes(corpus.num_vectors, corpus.dim)}


def release(backend: str, held: Graph | Corpus | LabelSets | Incidence | None) -> None:
    """Free what a backend's devices hold of a graph, corpus, label sets or incidence, and what they have cached."""
    if device_of(backend) is None:
        return
    from .cuda.residents import release

    for found in opened(backend):
        if held is None:
            found.device.runtime.trim()
        else:
            release(found.device.runtime, held)


def _candidates(backend: str) -> Iterator[str]:
    if backend != "auto":
        yield backend
        return
    yield automatic()
    yield from _backends
