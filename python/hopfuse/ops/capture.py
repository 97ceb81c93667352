"""Capture a function over ops, to replay it as one CUDA graph."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import to_numpy
from .._validation import check_length, check_type, check_whole, wrong_type, wrong_value
from ..backends import automatic
from ..backends.core_results import check_leaves, flatten
from ..backends.engine import device_of, engine_for
from ..errors import InputError
from ._arguments import in_captured_core, track_core

if TYPE_CHECKING:
    from ..backends.cuda import DeviceOps, Recordings

#: Batch sizes of recordings; a batch is padded to the next one, and split if it exceeds the largest.
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class AutoBackend(NamedTuple):
    """The backend that ``backend="auto"`` selects.

    Attributes
    ----------
    backend : str
        The name that ops take as ``backend=``.
    records : bool
        Whether captured cores are recorded there; if not, they are plain calls.
    """

    backend: str
    records: bool


def auto_backend() -> AutoBackend:
    """Return the backend that ``backend="auto"`` selects, so that it is determined once for several ops."""
    backend = automatic()
    return AutoBackend(backend, device_of(backend) is not None)


class Captured:
    """A captured core, made by :func:`capture`; call it like the core.

    Examples
    --------
    >>> import numpy as np, hopfuse as hf
    >>> corpus = hf.Corpus.from_array(np.eye(4, dtype=np.float32))
    >>> best = hf.capture(lambda vectors: hf.dense_topk(vectors, corpus, 1), [((4,), "float32")])
    >>> best.warmup([1, 32])
    >>> best(np.eye(4, dtype=np.float32)[:1]).scores
    array([[1.]], dtype=float32)
    """

    def __init__(self, core: Callable[..., Any], shapes: Sequence[tuple[tuple[int, ...], Any]], backend: str) -> None:
        self._core, self._backend = track_core(core), backend
        self._shapes = _read_shapes(shapes)
        self._recordings: dict[DeviceOps, Recordings] = {}
        self._lock = threading.RLock()

    def __call__(self, *arrays: Any) -> Any:
        """Return the core's result for a batch, in NumPy arrays or device arrays, like the arguments."""
        if in_captured_core():  # this core is part of another
            return self._core(*arrays)
        check_length(len(arrays), "arrays", len(self._shapes), "captured array")
        with engine_for(self._backend, arrays[0], "arrays[0]") as engine:
            if engine.on_device:
                there = [engine.ops.runtime.adopt(array) for array in arrays]
                self._check(there)
                with self._lock:
                    return self._of(engine.ops).on_device(there, arrays[0])
            given = [
                _as_type(array, dtype, at)
                for at, (array, (_, dtype)) in enumerate(zip(arrays, self._shapes, strict=True))
            ]
            self._check(given)
            if engine.ops.device is not None and given[0].shape[0]:
                with self._lock:
                    return self._of(engine.ops.device).on_host(given)
            result = self._core(*given)
            check_leaves(flatten(result)[0], given[0].shape[0])
            return result

    def warmup(self, batch_sizes: Sequence[int] = BATCH_SIZES) -> None:
        """Record the core for these batch sizes now, before the first call. Does nothing on the CPU.

        Parameters
        ----------
        batch_sizes : sequence of int
            Each is rounded up to the batch size of a recording.
        """
        check_type(batch_sizes, "batch_sizes", Iterable, "a sequence of sizes, such as [1, 32]")
        sizes = [check_whole(size, f"batch_sizes[{at}]") for at, size in enumerate(batch_sizes)]
        device = device_of(self._backend)
        if device is None:
            return
        with self._lock:
            for size in sizes:
                self._of(device).recorded(size)

    def _of(self, device: DeviceOps) -> Recordings:
        if device not in self._recordings:
            from ..backends.cuda import Recordings  # only here, because it takes long to import

            self._recordings[device] = Recordings(device, self._core, self._shapes, BATCH_SIZES)
        return self._recordings[device]

    def _check(self, arrays: Sequence[Any]) -> None:
        batch = tuple(arrays[0].shape[:1]) or ("B",)
        for at, (array, (shape, dtype)) in enumerate(zip(arrays, self._shapes, strict=True)):
            if tuple(array.shape) != (*batch, *shape) or array.dtype != dtype:
                raise InputError(
                    "shape",
                    f"arrays[{at}]",
                    "{field} is {given}; it was captured as {allowed}, with the same B for all arrays",
                    given=f"{array.dtype} of the shape {tuple(array.shape)}",
                    allowed=f"{np.dtype(dtype)} of the shape {('B', *shape)}",
                )


def capture(
    core: Callable[..., Any], shapes: Sequence[tuple[tuple[int, ...], Any]], *, backend: str = "auto"
) -> Captured:
    """Capture a function over ops, which a GPU then replays as one upload, one CUDA graph and one download.

    Parameters
    ----------
    core : callable
        A pure function over hopfuse's ops, of arrays whose first axis is the batch. It returns Hits or arrays, or
        tuples or dicts of them, all with the batch as first axis. On a GPU it runs when it is recorded, not in each
        call, and may only pass its arrays to ops; it cannot read their values, which do not exist yet.
    shapes : sequence of (shape, dtype)
        Shape and dtype of each argument for one query, without the batch axis:
        ``[((384,), "float32"), ((8,), "int64")]``.
    backend : {"auto", "cpu", "cuda"}
        On the CPU a captured core is a plain function call.

    Returns
    -------
    Captured
        A callable that takes NumPy arrays, or arrays on the device, of any batch size. Batches are padded to 1, 2, 4,
        ... 256 and split above 256. Queries whose answer a recording cannot prove are run again without it;
        ``backend_info()`` counts them. ``warmup()`` records before the first call.

    Raises
    ------
    InputError
        Arrays of other shapes than captured, or a query that an op refuses; the message names its row.

    Examples
    --------
    >>> import numpy as np, hopfuse as hf
    >>> corpus = hf.Corpus.from_array(np.eye(4, dtype=np.float32))
    >>> best = hf.capture(lambda vectors: hf.dense_topk(vectors, corpus, 1), [((4,), "float32")])
    >>> best(np.eye(4, dtype=np.float32)[2:]).ids
    array([[2],
           [3]])
    """
    if not callable(core):
        raise wrong_type(core, "core", "a function of arrays")
    device_of(backend)  # raises now if the backend is unavailable
    return Captured(core, shapes, backend)


def _as_type(array: Any, dtype: np.dtype[Any], at: int) -> NDArray[Any]:
    """Convert a host array to the captured dtype if both are of the same kind; others are returned unchanged."""
    given = to_numpy(array, f"arrays[{at}]")
    if given.dtype == dtype or not np.can_cast(given.dtype, dtype, "same_kind"):
        return given
    with np.errstate(over="ignore", invalid="ignore"):
        cast = np.asarray(given, dtype)
    if dtype.kind in "iu" and not (cast == given).all():
        raise InputError(
            "dtype",
            f"arrays[{at}]",
            "{field} holds numbers that do not fit {allowed}, the dtype that it was captured with",
            allowed=dtype,
        )
    return cast


def _read_shapes(shapes: Any) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
    try:
        read = [(tuple(index(side) for side in shape), np.dtype(dtype)) for shape, dtype in shapes]
    except (TypeError, ValueError):
        read = []
    if not read or any(side < 0 for shape, _ in read for side in shape) or any(d.kind not in "biuf" for _, d in read):
        allowed = 'a list of a shape and a numeric dtype for each array, such as [((384,), "float32")]'
        raise wrong_value(shapes, "shapes", allowed, "type")
    return read
