"""The one product of matrices, by cuBLAS itself.

CuPy's own binding refuses to be recorded in a CUDA graph, which cuBLAS allows; and a handle of our own leaves the
caller's math mode alone.
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
#: What a device without room gives: cublasCreate, which takes tens of MiB of what no pool holds, says either.
_SHORT_OF_MEMORY = (1, 3)
#: Bytes that NVIDIA recommends for Hopper and later, the most of any device.
WORKSPACE_BYTES = 32 * 2**20


class Cublas:
    """float32 products on one device. Threads take turns to queue theirs: a call sets the handle's stream.

    Parameters
    ----------
    trim : callable
        Gives cached memory back to the device: what cuBLAS takes for itself comes from there.
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

        ``workspace`` is memory of :data:`WORKSPACE_BYTES` that outlives a recording; cuBLAS's own otherwise, which in
        a recording would become memory nodes of the graph.
        """
        m, n, d = shape
        one, zero, rows = ctypes.c_float(1.0), ctypes.c_float(0.0), max(1, d)
        with self._lock:
            library, handle = self._ready(), self._handle
            self._call(library.cublasSetStream_v2, handle, ctypes.c_void_p(stream))  # which resets the workspace
            if workspace is not None:
                size = ctypes.c_size_t(WORKSPACE_BYTES)
                self._call(library.cublasSetWorkspace_v2, handle, ctypes.c_void_p(workspace), size)
            # cuBLAS counts by columns: out is there (n, m), and a row-major (n, d) is a column-major (d, n).
            self._call(
                library.cublasSgemm_v2,
                *(handle, _TRANSPOSED, _PLAIN, n, m, d, ctypes.byref(one), ctypes.c_void_p(b), rows),
                *(ctypes.c_void_p(a), rows, ctypes.byref(zero), ctypes.c_void_p(out), max(1, n)),
            )

    def _ready(self) -> ctypes.CDLL:
        """Return the library, with a handle for the current device that lives as long as the process."""
        if self._library is None:
            library = self._load()
            self._call(library.cublasCreate_v2, ctypes.byref(self._handle))
            # Pedantic: float32 products and sums and nothing else, whatever the environment says of TF32 or of
            # emulation by narrower types. The bound that decides which rows are rescored holds for no less.
            self._call(library.cublasSetMathMode, self._handle, _PEDANTIC)
            self._library = library
        return self._library

    def _call(self, function: Any, *arguments: Any) -> None:
        """Call it; where it finds no memory, once more after caches have given theirs back."""
        status = function(*arguments)
        if status in _SHORT_OF_MEMORY:
            gc.collect()
            self._trim()
            status = function(*arguments)
        if status:
            raise _failed(function.__name__, status)


def load_library() -> ctypes.CDLL:
    """Load cuBLAS of the release that CuPy was built for: the wheel's, or the system's."""
    pathfinder = import_module("cuda.pathfinder")
    try:
        return ctypes.CDLL(str(pathfinder.load_nvidia_dynamic_lib("cublas").abs_path))
    except (OSError, RuntimeError) as error:
        raise BackendError(
            f"cuBLAS, which multiplies matrices for dense_topk, cannot be loaded ({str(error).splitlines()[0]}); "
            "install it with: pip install 'hopfuse[cuda13]', or 'hopfuse[cuda12]' for a driver of CUDA 12"
        ) from error


def _failed(call: str, status: int) -> BackendError:
    name = _STATUSES.get(status, "a status that cuBLAS 13 does not have")
    fix = (
        "the device may be short of memory: release graphs and corpora that are not searched "
        "(hopfuse.free_device_memory), and what other libraries hold there (torch.cuda.empty_cache())"
        if status in _SHORT_OF_MEMORY
        else "start the process again, and use backend='cpu' if the error comes back"
    )
    return BackendError(f"cuBLAS failed at {call} with {name} ({status}); {fix}")
