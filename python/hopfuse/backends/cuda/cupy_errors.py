"""Translate CuPy's errors to BackendError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import BackendError, DeviceMemoryError

#: How to free memory.
ADVICE = (
    "Use smaller batches; free graphs and corpora that are not in use (hopfuse.free_device_memory); use "
    "storage='float16' or 'bfloat16' for a corpus of 128 MiB or more; free memory that other libraries hold there "
    "(torch.cuda.empty_cache()); or use backend='cpu'"
)


@contextmanager
def translated(cupy: Any, what: str) -> Iterator[None]:
    """Translate errors raised inside; ``what`` names the operation for the message."""
    try:
        yield
    except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError) as error:
        raise failed(what, error) from error


def is_no_memory(error: Exception) -> bool:
    """Return whether an error means out of memory: CuPy's own, cudaMalloc's, or the driver's where it loads kernels."""
    return isinstance(error, MemoryError) or any(name in str(error) for name in ("MemoryAllocation", "OUT_OF_MEMORY"))


def failed(what: str, error: Exception) -> BackendError:
    """Return the error of a failed call; a kernel's error is reported by a later call."""
    if is_no_memory(error):
        return DeviceMemoryError(
            "memory",
            None,
            "the device has no memory left at {what}: {error}. {advice}",
            what=what,
            error=error,
            advice=ADVICE,
        )
    return BackendError(
        "unavailable",
        None,
        "the device failed at {what}, or in work queued before it: {error}. This process can no "
        "longer use the device: restart it, and use backend='cpu' if the error recurs",
        what=what,
        error=error,
    )


def no_room(asked: int, free: int, total: int) -> DeviceMemoryError:
    """Return the error of a failed allocation."""
    return DeviceMemoryError(
        "memory",
        None,
        "the device cannot allocate {asked:,} bytes; {free:,} of {total:,} bytes are free, but may "
        "be fragmented. {advice}",
        asked=asked,
        free=free,
        total=total,
        advice=ADVICE,
    )
