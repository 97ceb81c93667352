"""Cores of ops that are replayed as one unit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import to_numpy
from ..backends import automatic
from ..backends.core_results import check_leaves, take_apart
from ..backends.placement import device_for, device_of, recordings
from ..errors import InputError
from ._captured import inside, is_inside

if TYPE_CHECKING:
    from ..backends.cuda import DeviceOps, Recordings

#: A recording is for one of these batch sizes; a batch is padded to the next one, and cut by the largest.
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Placement(NamedTuple):
    """Return where calls with ``backend="auto"`` run now.

    Attributes
    ----------
    backend : str
        Its name, which ops take as ``backend=``.
    records : bool
        A captured core is one recording there; elsewhere it is a plain call.
    """

    backend: str
    records: bool


def placement() -> Placement:
    """Return where calls with ``backend="auto"`` run, so that several ops need not each find out."""
    backend = automatic()
    return Placement(backend, device_of(backend) is not None)


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
        self._core, self._backend = inside(core), backend
        self._shapes = _read_shapes(shapes)
        self._recordings: dict[DeviceOps, Recordings] = {}
        self._lock = threading.RLock()

    def __call__(self, *arrays: Any) -> Any:
        """Return the core's result for a batch: NumPy arrays of NumPy arrays, device arrays of device arrays."""
        if is_inside():  # part of another core
            return self._core(*arrays)
        if len(arrays) != len(self._shapes):
            raise InputError(f"{len(arrays)} arrays were given; the core was captured with {len(self._shapes)}")
        device = device_for(self._backend, arrays[0], "array 0")
        if device is not None:
            with self._lock, device.runtime.on_stream_of(arrays[0]):
                given = [device.runtime.adopt(array) for array in arrays]
                self._check(given)
                return self._of(device).on_device(given, arrays[0])
        given = [
            _as_type(array, dtype, at) for at, (array, (_, dtype)) in enumerate(zip(arrays, self._shapes, strict=True))
        ]
        self._check(given)
        device = device_of(self._backend)
        if device is None or not given[0].shape[0]:
            result = self._core(*given)
            check_leaves(take_apart(result)[0], given[0].shape[0])
            return result
        with self._lock:
            return self._of(device).on_host(given)

    def warmup(self, batch_sizes: Sequence[int] = BATCH_SIZES) -> None:
        """Record for batches of these sizes now, so that the first of them need not wait. Nothing to do on the CPU.

        Parameters
        ----------
        batch_sizes : sequence of int
            Each stands for the recording that a batch of that size uses.
        """
        if not isinstance(batch_sizes, Iterable):
            raise InputError(f"batch_sizes is {batch_sizes!r}; it must be a sequence of sizes, [1, 32] say")
        for size in batch_sizes:
            if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
                raise InputError(f"batch size {size!r}; batch sizes are whole numbers, at least 1")
        device = device_of(self._backend)
        if device is None:
            return
        with self._lock:
            for size in batch_sizes:
                self._of(device).recorded(int(size))

    def _of(self, device: DeviceOps) -> Recordings:
        if device not in self._recordings:
            self._recordings[device] = recordings(device, self._core, self._shapes, BATCH_SIZES)
        return self._recordings[device]

    def _check(self, arrays: Sequence[Any]) -> None:
        batch = tuple(arrays[0].shape[:1]) or ("B",)
        for at, (array, (shape, dtype)) in enumerate(zip(arrays, self._shapes, strict=True)):
            if tuple(array.shape) != (*batch, *shape) or array.dtype != dtype:
                raise InputError(
                    f"array {at} is {array.dtype}{tuple(array.shape)}; it was captured as {np.dtype(dtype)} of shape "
                    f"{('B', *shape)}, with one B for all arrays"
                )


def capture(
    core: Callable[..., Any], shapes: Sequence[tuple[tuple[int, ...], Any]], *, backend: str = "auto"
) -> Captured:
    """Make one unit of a function over ops: on a GPU one copy up, one CUDA graph, one copy down.

    Parameters
    ----------
    core : callable
        A pure function of arrays whose first axis is the batch, over hopfuse's ops. It returns Hits or arrays, or
        tuples or dicts of them, all with the batch as first axis. On a GPU it is run when it is recorded, not in each
        call, and it may only hand its arrays to ops: it cannot read them, since they hold nothing yet.
    shapes : sequence of (shape, dtype)
        Of each argument for one query, without the batch: ``[((384,), "float32"), ((8,), "int64")]``.
    backend : {"auto", "cpu", "cuda"}
        On the CPU a call is a plain call of the core.

    Returns
    -------
    Captured
        Callable with NumPy arrays, or arrays on the device, of any batch size: batches are padded to 1, 2, 4, ... 256
        and cut by 256. Queries whose answer a recording cannot prove are asked again without one; ``backend_info()``
        counts them. ``warmup()`` records ahead of the first call.

    Raises
    ------
    InputError
        Arrays of other shapes than were captured, or what an op finds wrong with a query, by its row.

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
        raise InputError(f"core is a {type(core).__name__}; it must be a function of arrays")
    device_of(backend)  # refuse a backend that is not here now
    return Captured(core, shapes, backend)


def _as_type(array: Any, dtype: np.dtype[Any], at: int) -> NDArray[Any]:
    """Return an array as another dtype of its kind: on the host, where queries are small, any width will do."""
    given = to_numpy(array, f"array {at}")
    if given.dtype == dtype or not np.can_cast(given.dtype, dtype, "same_kind"):
        return given
    with np.errstate(over="ignore", invalid="ignore"):
        cast = np.asarray(given, dtype)
    if dtype.kind in "iu" and not (cast == given).all():
        raise InputError(f"array {at} holds numbers that {dtype} does not; it was captured as {dtype}")
    return cast


def _read_shapes(shapes: Any) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
    try:
        read = [(tuple(index(side) for side in shape), np.dtype(dtype)) for shape, dtype in shapes]
    except (TypeError, ValueError) as error:
        raise InputError(
            f'shapes is {shapes!r}; it must be a list like [((384,), "float32")], one per array'
        ) from error
    if not read or any(side < 0 for shape, _ in read for side in shape) or any(d.kind not in "biuf" for _, d in read):
        raise InputError(f"shapes is {shapes!r}; at least one array of numbers is needed, with sides of at least 0")
    return read
