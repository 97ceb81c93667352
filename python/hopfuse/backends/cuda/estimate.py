"""Estimate device memory by running the ops on a runtime that only counts allocations."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...types import Corpus, Graph
from ..calls import DenseCall, DeviceSeeds, NodeRanking, PprQueries, RowFilter
from .cublas import WORKSPACE_BYTES
from .device_ops import DeviceOps
from .recording_memory import RecordingMemory, Tape
from .residents import release
from .runtime import LaunchTime

T = TypeVar("T")
#: Allocation granularity of device memory, in bytes.
GRAIN = 512


class DryMemory:
    """Bytes in use, and their peak."""

    def __init__(self) -> None:
        self.used = self.most = 0

    def take(self, nbytes: int) -> int:
        taken = -(-max(1, nbytes) // GRAIN) * GRAIN
        self.used += taken
        self.most = max(self.most, self.used)
        return taken


class _Lease:
    def __init__(self, memory: DryMemory, nbytes: int) -> None:
        self._memory, self._taken = memory, memory.take(nbytes)

    def __del__(self) -> None:
        self._memory.used -= self._taken


class DryArray:
    """Shape and dtype of a device array, keeping its memory in use."""

    def __init__(self, shape: tuple[int, ...], dtype: DTypeLike, lease: Any) -> None:
        self.shape, self.dtype, self._lease = shape, np.dtype(dtype), lease

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def reshape(self, shape: tuple[int, ...]) -> DryArray:
        return DryArray(shape, self.dtype, self._lease)

    def view(self, dtype: DTypeLike) -> DryArray:
        last = self.shape[-1] * self.dtype.itemsize // np.dtype(dtype).itemsize
        return DryArray((*self.shape[:-1], last), dtype, self._lease)

    def __getitem__(self, key: int | slice) -> DryArray:
        rest = self.shape[1:]
        if isinstance(key, slice):
            return DryArray((len(range(*key.indices(self.shape[0]))), *rest), self.dtype, self._lease)
        return DryArray(rest, self.dtype, self._lease)


class DryRecording(NamedTuple):
    """A recording, keeping its memory in use."""

    memory: RecordingMemory

    def replay(self) -> None:
        raise RuntimeError("a dry run cannot replay")


class DryRuntime:
    """A runtime without a device. As in a capture, passes and candidates are fixed and nothing can be read back."""

    name = "dry"
    fixed, cooperative = True, False
    l2_bytes, l2_speedup = 0, 1.0  # blocks of the most lanes, which need the most memory

    def __init__(self) -> None:
        self.memory = DryMemory()
        self._tape: Tape | None = None

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> DryArray:
        sides = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        nbytes = math.prod(sides) * np.dtype(dtype).itemsize
        lease = _Lease(self.memory, nbytes) if self._tape is None else self._tape.take(max(1, nbytes))
        return DryArray(sides, dtype, lease)

    def empty_all(self, arrays: Sequence[tuple[tuple[int, ...], DTypeLike]]) -> list[DryArray]:
        return [self.empty(*array) for array in arrays]

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> DryArray:
        return self.empty(shape, dtype)

    def upload(self, array: NDArray[Any]) -> DryArray:
        return self.empty(array.shape, array.dtype)

    def upload_all(self, arrays: Sequence[NDArray[Any]]) -> list[DryArray]:
        return [self.upload(array) for array in arrays]

    def download(self, array: DryArray) -> NDArray[Any]:
        raise RuntimeError("a dry run cannot read results")

    def download_all(self, arrays: Sequence[DryArray]) -> list[NDArray[Any]]:
        return [self.download(array) for array in arrays]

    def copy(self, target: Any, source: Any) -> None:
        """Do nothing."""

    def pinned(self, nbytes: int) -> NDArray[np.uint8]:
        return np.empty(nbytes, np.uint8)

    def launch(
        self,
        kernel: str,
        grid: int,
        block: int,
        arguments: Sequence[Any],
        shared: int = 0,
        *,
        cooperative: bool = False,
    ) -> None:
        """Do nothing."""

    def resident_blocks(self, kernel: str, block: int, shared: int) -> int:
        return 0

    def timed(self) -> contextlib.AbstractContextManager[list[LaunchTime]]:
        return contextlib.nullcontext([])

    def matmul(self, a: Any, b: Any, out: Any) -> None:
        """Count a recording's cuBLAS workspace; outside a recording, cuBLAS allocates a similar one itself."""
        self.empty(WORKSPACE_BYTES, np.uint8)

    def recording_memory(self) -> RecordingMemory:
        return RecordingMemory(partial(_Lease, self.memory), id)

    def side_by_side(self, arrays: Sequence[DryArray], begins: Sequence[int], nbytes: int) -> DryArray:
        assert self._tape is not None
        return DryArray((nbytes,), np.uint8, self._tape.side_by_side([], [], nbytes))

    def capture(self, work: Callable[[], T], memory: RecordingMemory | None = None) -> tuple[DryRecording, T]:
        """Run ``work`` once; a real capture runs it twice but allocates only in the first run."""
        if self._tape is not None:
            raise RuntimeError("captures cannot be nested")
        self._tape = Tape(self.recording_memory() if memory is None else memory)
        try:
            return DryRecording(self._tape.memory), work()
        finally:
            self._tape = None

    @contextlib.contextmanager
    def resident(self) -> Iterator[None]:
        tape, self._tape = self._tape, None
        try:
            yield
        finally:
            self._tape = tape

    def is_device_array(self, array: Any) -> bool:
        return isinstance(array, DryArray)

    def adopt(self, array: Any) -> Any:
        return array

    def export(self, array: Any, like: Any) -> Any:
        return array

    def on_stream_of(self, array: Any) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def free_bytes(self) -> int:
        return 1 << 62

    def trim(self) -> None:
        """Do nothing."""

    def explain(self) -> dict[str, Any]:
        return {"device": "none (dry run)"}


def estimate(graph: Graph | None, corpus: Corpus | None, *, batch: int, k: int, seeds: int) -> dict[str, int]:
    """Return the resident bytes of ``graph`` and ``corpus``, and the largest ``workspace`` of a call."""
    runtime = DryRuntime()
    device = DeviceOps(runtime)
    sizes = {"graph": 0, "corpus": 0, "workspace": 0}
    calls: list[tuple[str, Graph | Corpus, Callable[[], Any]]] = []
    if graph is not None:
        calls.append(("graph", graph, lambda: _walk(device, graph, batch, k, seeds)))
    if corpus is not None:
        calls.append(("corpus", corpus, lambda: _search(device, corpus, batch, k)))
    for name, held, call in calls:
        before = runtime.memory.used
        try:
            with device.capture_log():
                call()
            sizes[name] = runtime.memory.used - before
            sizes["workspace"] = max(sizes["workspace"], runtime.memory.most - runtime.memory.used)
        finally:
            release(runtime, held)
        runtime.memory.most = runtime.memory.used
    return sizes


def _walk(device: DeviceOps, graph: Graph, batch: int, k: int, seeds: int) -> None:
    empty = device.runtime.empty
    rows = DeviceSeeds(empty((batch, seeds), np.int64), empty((batch, seeds), np.float64), True)
    none = np.zeros(batch + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
    queries = PprQueries(*none, np.full(batch, 0.5), seeds=rows)
    device.ppr_topk(graph, queries, NodeRanking(k, None, stop_when_proven=True))  # refinement takes the most memory


def _search(device: DeviceOps, corpus: Corpus, batch: int, k: int) -> None:
    queries = device.runtime.empty((batch, corpus.dim), np.float32)
    device.dense_topk(DenseCall(queries, corpus, k, RowFilter(), threads=1, on_device=True))
