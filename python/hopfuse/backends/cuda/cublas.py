"""Matrix products by cuBLAS, called directly.

CuPy's binding refuses to be recorded in a CUDA graph, although cuBLAS permits it. A separate handle also leaves the
caller's math mode unchanged.
"""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

from ...errors import BackendError

_TRANSPOSED, _PLAIN = 1, 0  # cublasOperation_t
_PEDANTIC = 2  # cublasMath_t
#: cublasStatus_t
_STATUSES = {
    1: "CUBLAS_STATUS_NOT_INITIALIZED",
    3: "CUBLAS_STATUS_ALLOC_FAILED",
    7: "CUBLAS_STATUS_INVALID_VALUE",
    8: "CUBLAS_STATUS_ARCH_MISMATCH",
    11: "CUBLAS_STATUS_MAPPING_ERROR",
    13: "CUBLAS_STATUS_EXECUTION_FAILED",
    14: "CUBLAS_STATUS_INTERNAL_ERROR",
    15: "CUBLAS_STATUS_NOT_SUPPORTED",
    16: "CUBLAS_STATUS_LICENSE_ERROR",
}
#: Statuses of a device out of memory; cublasCreate, which allocates tens of MiB outside any pool, may give either.
_SHORT_OF_MEMORY = (1, 3)
#: The workspace that NVIDIA recommends for Hopper and later, the largest of any device.
WORKSPACE_BYTES = 32 * 2**20


class Cublas:
    """float32 products on one device. A lock serialises threads, because each call sets the handle's stream.

    Parameters
    ----------
    trim : callable
        Releases cached memory to the device, from which cuBLAS allocates.
    """

    def __init__(self, trim: Callable[[], None]) -> None:
        self._trim = trim
        self._load = load_library
        self._library: ctypes.CDLL | None = None
        self._handle = ctypes.c_void_p()
        self._lock = threading.Lock()

    def product(
        self, a: int, b: int, out: int, shape: tuple[int, int, int], stream: int, workspace: int | None
    ) -> None:
        """Queue out (m, n) = a (m, d) bᵀ (n, d), row-major device pointers, on ``stream``.

        ``workspace`` points to :data:`WORKSPACE_BYTES` that outlive a recording. If None, cuBLAS uses its own, which in
        a recording would become memory nodes of the graph.
        """
        m, n, d = shape
        one, zero, rows = ctypes.c_float(1.0), ctypes.c_float(0.0), max(1, d)
        with self._lock:
            library, handle = self._ready(), self._handle
            self._call(library.cublasSetStream_v2, handle, ctypes.c_void_p(stream))  # also resets the workspace
            if workspace is not None:
                size = ctypes.c_size_t(WORKSPACE_BYTES)
                self._call(library.cublasSetWorkspace_v2, handle, ctypes.c_void_p(workspace), size)
            # cuBLAS is column-major: it sees out as (n, m), and a row-major (n, d) as (d, n).
            self._call(
                library.cublasSgemm_v2,
                *(handle, _TRANSPOSED, _PLAIN, n, m, d, ctypes.byref(one), ctypes.c_void_p(b), rows),
                *(ctypes.c_void_p(a), rows, ctypes.byref(zero), ctypes.c_void_p(out), max(1, n)),
            )

    def _ready(self) -> ctypes.CDLL:
        """Return the library; its handle for the current device is created once and never destroyed."""
        if self._library is None:
            library = self._load()
            self._call(library.cublasCreate_v2, ctypes.byref(self._handle))
            # Pedantic mode: float32 products and sums only, even if the environment enables TF32 or emulation by
            # narrower types, for which the bound that decides which rows are rescored would not hold.
            self._call(library.cublasSetMathMode, self._handle, _PEDANTIC)
            self._library = library
        return self._library

    def _call(self, function: Any, *arguments: Any) -> None:
        """Call a function; if it runs out of memory, release caches and try once more."""
        status = function(*arguments)
        if status in _SHORT_OF_MEMORY:
            gc.collect()
            self._trim()
            status = function(*arguments)
        if status:
            raise _failed(function.__name__, status)


def load_library() -> ctypes.CDLL:
    """Load the cuBLAS release that CuPy was built for, from its wheel or the system."""
    pathfinder = import_module("cuda.pathfinder")
    try:
        return ctypes.CDLL(str(pathfinder.load_nvidia_dynamic_lib("cublas").abs_path))
    except (OSError, RuntimeError) as error:
        raise BackendError(
            "unavailable",
            None,
            "cuBLAS, which dense_topk needs, cannot be loaded ({splitlines}); install it with: pip "
            "install 'hopfuse[cuda13]', or 'hopfuse[cuda12]' for a driver of CUDA 12",
            splitlines=str(error).splitlines()[0],
        ) from error


def _failed(call: str, status: int) -> BackendError:
    name = _STATUSES.get(status, "an unknown status")
    fix = (
        "the device may be out of memory: free graphs and corpora that are not in use (hopfuse.free_device_memory) and "
        "memory that other libraries hold there (torch.cuda.empty_cache())"
        if status in _SHORT_OF_MEMORY
        else "restart the process, and use backend='cpu' if the error recurs"
    )
    return BackendError(
        "unavailable", None, "{call} failed with {name} ({status}); {fix}", call=call, name=name, status=status, fix=fix
    )
