"""The engine of a call: the backend that runs it, and how its arrays are read and given back, on host or device."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from .._arrays.bfloat16 import bfloat16_bits, bfloat16_to_float32
from .._arrays.convert import is_on_device, same_library, to_numpy
from .._threads import thread_count
from .._validation import check_real, check_shape, check_threads, check_type, wrong_array
from ..errors import InputError
from ..types import Graph, Hits, Seeds
from . import _backends, automatic, cpu, resolve
from .call import HitArrays, ScoredList
from .walk_queries import DeviceSeeds, PprQueries
from .walks import read_restart

if TYPE_CHECKING:  # imported only when a device is used, to keep ``import hopfuse`` fast
    from .cuda import DeviceOps

__all__ = ["ONLY_SEEDS", "DeviceEngine", "Engine", "device_of", "engine_for"]


@dataclass(eq=False)
class Engine:
    """The engine of a call whose arrays are on the host; a ``with`` block of it is the call.

    Parameters
    ----------
    ops : Backend
        What runs the call.
    like : array or None
        One of the call's arrays: results are arrays of its library; None for NumPy's.
    """

    ops: Any
    like: Any
    #: Whether the arrays of calls are on the device of the backend.
    on_device: ClassVar[bool] = False

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def read(self, array: Any, field: str, dtype: DTypeLike) -> Any:
        """Return an array as kernels read it; its library and type were checked when its object was made."""
        return np.ascontiguousarray(to_numpy(array, field), dtype)

    def numbers(self, array: Any, field: str) -> Any:
        """Return real numbers; on a device they must be float32."""
        is_plain = type(array) is np.ndarray and array.dtype.kind != "V"  # that of bfloat16 by ml_dtypes
        bits = None if is_plain else bfloat16_bits(array, field)
        given = to_numpy(array, field) if bits is None else bfloat16_to_float32(bits)
        check_real(given, field)
        return given

    def rows(self, array: Any, field: str, columns: int | str, reason: str) -> Any:
        """Return real numbers as float32 (B, columns); on the host (columns,) is one row. Values are not checked."""
        if type(array) is np.ndarray and array.dtype == np.float32 and array.shape[1:] == (columns,):
            return np.ascontiguousarray(array)
        given = self.numbers(array, field)
        if given.ndim != 2 or given.shape[1] != columns:
            allowed = (("B", columns), (columns,)) if isinstance(columns, int) else (("B", columns),)
            check_shape(given.shape, field, *allowed, reason=reason)
            given = np.atleast_2d(given)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.ascontiguousarray(given, np.float32)

    def hits(self, hits: Hits, field: str) -> ScoredList:
        """Return the ids, scores and counts of hits as kernels read them."""
        ids, scores, counts = hits.ids, hits.scores, hits.counts
        return (
            np.ascontiguousarray(to_numpy(ids, f"{field}.ids")),
            np.ascontiguousarray(to_numpy(scores, f"{field}.scores")),
            np.ascontiguousarray(to_numpy(counts, f"{field}.counts")),
        )

    def walks(
        self, graph: Graph, restart: Any, options: Callable[[int], PprQueries], *, may_be_empty: bool = False
    ) -> PprQueries:
        """Return queries with restarts.

        Parameters
        ----------
        options : callable
            Returns the queries of a batch of this size, without restarts.
        may_be_empty : bool
            Whether a query may have no seeds; it gets no result.
        """
        (indptr, node, value), queries = read_restart(graph, restart, may_be_empty, options)
        return PprQueries(indptr, node, value, *queries[3:])

    def beside(self, array: Any) -> Engine:
        """Return the engine that reads an argument where it is: the host's is the CPU's, for any backend."""
        return Engine(cpu, array)

    def output(self, given: Any, field: str, shape: tuple[int, int]) -> Any:
        """Return the caller's array for float32 results, or a new one."""
        if given is None:
            return np.empty(shape, np.float32)
        check_type(given, field, np.ndarray, "a float32 ndarray")
        if given.dtype != np.float32 or given.shape != shape:
            raise wrong_array(given, field, f"float32 of the shape {shape}")
        if not (given.flags.c_contiguous and given.flags.writeable):
            raise InputError("shape", field, "{field} must be C-contiguous and writeable")
        return given

    def check(self, check: Callable[..., None], *values: Any) -> None:
        """Check values of arrays; on a device its kernels do."""
        check(*values)

    def needs_host(self, field: str, other: str, fix: str = "") -> None:
        """Raise on a device, for an option that needs another argument on the host."""

    def threads(self, given: int | None) -> int:
        """Return the number of threads of a call."""
        return thread_count(given)

    def give(self, array: Any) -> Any:
        """Return a result in the library of the call's arrays, without a copy."""
        return array if self.like is None else same_library(self.like)(array)

    def give_all(self, arrays: dict[str, Any]) -> dict[str, Any]:
        """Return results by name in the library of the call's arrays."""
        return arrays if self.like is None else {name: self.give(array) for name, array in arrays.items()}

    def give_hits(self, found: HitArrays) -> Hits:
        """Return hits in the library of the call's arrays."""
        return Hits.unchecked(**self.give_all(found))


class DeviceEngine(Engine):
    """The engine of a call whose arrays are on a device: nothing is copied or converted, and work is only queued.

    Parameters
    ----------
    ops : DeviceOps
    like : array
        One of the call's arrays. The call is queued on the stream that its library uses.
    """

    on_device: ClassVar[bool] = True

    def __enter__(self) -> DeviceEngine:
        self._stream: contextlib.AbstractContextManager[Any] = self.ops.runtime.on_stream_of(self.like)
        self._stream.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._stream.__exit__(*raised)

    def read(self, array: Any, field: str, dtype: DTypeLike) -> Any:
        found = self.ops.adopt(array, field)
        if found.dtype != dtype:
            raise InputError(
                "dtype",
                field,
                "{field} on a device has the dtype {given}; it must be {allowed}: convert it there",
                given=found.dtype,
                allowed=np.dtype(dtype),
            )
        return found

    def numbers(self, array: Any, field: str) -> Any:
        return self.read(array, field, np.float32)

    def rows(self, array: Any, field: str, columns: int | str, reason: str) -> Any:
        found = self.read(array, field, np.float32)
        if found.ndim != 2 or found.shape[1] != columns:
            check_shape(found.shape, field, ("B", columns), reason=reason)
        return found

    def hits(self, hits: Hits, field: str) -> ScoredList:
        return (
            self.read(hits.ids, f"{field}.ids", np.int64),
            self.read(hits.scores, f"{field}.scores", np.float32),
            self.read(hits.counts, f"{field}.counts", np.int64),
        )

    def walks(
        self, graph: Graph, restart: Any, options: Callable[[int], PprQueries], *, may_be_empty: bool = False
    ) -> PprQueries:
        nodes = self.read(restart.nodes, "restart.nodes", np.int64)
        weights = self.read(restart.weights, "restart.weights", np.float64)
        queries, indptr = options(len(restart)), np.zeros(len(restart) + 1, np.int64)
        return queries._replace(indptr=indptr, seeds=DeviceSeeds(nodes, weights, may_be_empty))

    def beside(self, array: Any) -> Engine:
        return self if is_on_device(array) else super().beside(array)

    def output(self, given: Any, field: str, shape: tuple[int, int]) -> Any:
        if given is None:
            return self.ops.runtime.empty(shape, np.float32)
        found = self.read(given, field, np.float32)
        check_shape(found.shape, field, shape)
        return found

    def check(self, check: Callable[..., None], *values: Any) -> None:
        pass

    def needs_host(self, field: str, other: str, fix: str = "") -> None:
        raise InputError(
            "unsupported",
            field,
            "{field} needs {other:@} on the host, not on a device ({kind}); move it there{fix}",
            other=other,
            kind=type(self.like).__name__,
            fix=fix and f", or {fix}",
        )

    def threads(self, given: int | None) -> int:
        return check_threads(given) or 1

    def give(self, array: Any) -> Any:
        return self.ops.runtime.export(array, self.like)


#: What restarts must be on a device, as ``engine_for`` takes it.
ONLY_SEEDS = Seeds, "hf.Seeds(nodes, weights) on a device; move a dense matrix to the host"


def engine_for(backend: str, given: Any, field: str, on_device: tuple[type, str] | None = None) -> Engine:
    """Return the engine of a call, one of whose arguments is ``given``: an array, Hits or Seeds.

    ``on_device`` is the type that it must have on a device, and how an error names that type.
    """
    like = given.ids if isinstance(given, Hits) else given.nodes if isinstance(given, Seeds) else given
    if type(like) is np.ndarray or type(like) is list:
        return Engine(resolve(backend), None)
    if not is_on_device(like):
        return Engine(resolve(backend), like)
    if on_device is not None:
        check_type(given, field, *on_device)
    return DeviceEngine(_holding(backend, like, field), like)


def device_of(backend: str) -> DeviceOps | None:
    """Return the ops of a backend's device, or None if it has no device."""
    found: DeviceOps | None = resolve(backend).device
    return found


def _holding(backend: str, array: Any, field: str) -> DeviceOps:
    """Return the ops of the device that holds a caller's array."""
    devices = [device for device in map(device_of, _candidates(backend)) if device is not None]
    for device in (*(device for device in devices if device.runtime.holds(array)), *devices):
        if device.runtime.is_device_array(array):
            return device.holding(array)
    reads = "reads arrays on the host" if device_of(backend) is None else "cannot read it"
    raise InputError(
        "conflict",
        field,
        "{field} is on a device ({kind}), and backend={backend!r} {reads}; move it to the host, or use "
        "backend='cuda' (hopfuse.backend_info() says why it is not available)",
        kind=type(array).__name__,
        backend=backend,
        reads=reads,
    )


def _candidates(backend: str) -> Iterator[str]:
    if backend != "auto":
        yield backend
        return
    yield automatic()
    yield from _backends
