"""The device backend: runs calls on a device, for arrays on the host or there, and keeps what is resident."""

from __future__ import annotations

from typing import Any, TypeVar

from ... import _native
from ..._arrays.vectors import dense_types, vector_bits
from ...errors import BackendError, InputError
from ...types import Corpus, Graph, Incidence
from ..call import Call
from ..walks import prepared_graph
from .runtime import Runtime

R = TypeVar("R")


class DeviceOps:
    """Runner of calls on a device, with the CPU's bits. ``threads`` of calls is ignored.

    Arrays of a call are uploaded and its results downloaded. If a call is ``on_device``, results are device arrays, and
    their work is only queued. A query that a kernel refuses raises InputError; in a recording, where nothing can be
    read back, its status (kernels/include/hopfuse/query_status.h) is one of the recording's results.
    """

    unusable: BackendError | None = None

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.last: dict[str, dict[str, Any]] = {}
        self._device = runtime.device

    @property
    def device(self) -> DeviceOps:
        """The backend itself, because it takes arrays on its device."""
        return self

    def holding(self, array: Any) -> DeviceOps:
        """Return the ops of the device that an array of a device is on."""
        return self

    def run(self, call: Call[R], /) -> R:
        return call.run_on_device(self)

    def queue(self) -> _native.DeviceQueue:
        """Return the queue of this thread's work."""
        return self._device.queue()

    def explain(self) -> dict[str, Any]:
        """Return the device's entry in :func:`hopfuse.backend_info`."""
        calls = {op: dict(call) for op, call in list(self.last.items())}
        return {**self.runtime.explain(), "last_calls": calls, "error": None}

    def adopt(self, array: Any, name: str) -> _native.DeviceArray:
        """Return a caller's array without a copy; raise if it is not on this device."""
        if not self.runtime.is_device_array(array):
            raise InputError(
                "conflict",
                name,
                "{field} is on the host, but other arrays are on a device; move all of them to one place",
            )
        return self.runtime.adopt(array)

    def record(self, op: str, **more: Any) -> None:
        """Keep a description of the last call for ``backend_info()``."""
        self.last[op] = {"kernel": f"{op}_{self.runtime.name}", **more}

    # ---- What is resident --------------------------------------------------------------------------------------------

    def rows(self, graph: Graph) -> _native.DeviceRows:
        return self.runtime.resident(graph, lambda queue: _native.device_rows(queue, prepared_graph(graph)), ":rows")

    def graph(self, graph: Graph, *, per_type: bool, counts_edges: bool) -> _native.DeviceGraph:
        """Return a graph with the degrees of a normalisation, and rows of outgoing edges if queries sum degrees."""
        with_out = counts_edges and graph.directed

        def make(queue: _native.DeviceQueue) -> _native.DeviceGraph:
            return _native.device_graph(queue, self.rows(graph), prepared_graph(graph), per_type, with_out)

        return self.runtime.resident(graph, make, f":{per_type}:{with_out}")

    def corpus(self, corpus: Corpus) -> _native.DeviceCorpus:
        if corpus.num_vectors > _native.DEVICE_MOST_ROWS:
            raise InputError(
                "limit",
                "corpus",
                "{field} has {given:,} rows; a device searches up to {allowed:,}",
                given=corpus.num_vectors,
                allowed=_native.DEVICE_MOST_ROWS,
            )

        def make(queue: _native.DeviceQueue) -> _native.DeviceCorpus:
            bits = vector_bits(corpus.vectors, corpus.precision)
            kind, is_cosine = dense_types()[corpus.precision], corpus.metric == "cosine"
            return _native.device_corpus(queue, bits, type=kind, cosine=is_cosine)

        return self.runtime.resident(corpus, make)

    def incidence(self, incidence: Incidence) -> _native.DeviceIncidence:
        rows = {"indptr": incidence.indptr, "indices": incidence.indices, "weights": incidence.weights}
        return self.runtime.resident(incidence, lambda queue: _native.device_incidence(queue, **rows))
