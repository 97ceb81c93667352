"""CuPy's errors as the library's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import BackendError


@contextmanager
def translated(cupy: Any, what: str) -> Iterator[None]:
    """Translate errors inside; ``what`` is what was being done, for the message."""
    try:
        yield
    except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError) as error:
        raise failed(what, error) from error


def failed(what: str, error: Exception) -> BackendError:
    """Return the error of a call or a kernel that failed; a kernel's error shows at whatever waits for it next."""
    return BackendError(
        f"the device failed at {what}, or at work queued before it: {error}. After such an error a process cannot use "
        "the device any more: start it again, and use backend='cpu' if the error comes back"
    )


def no_room(asked: int, free: int, total: int) -> BackendError:
    """Return the error of an allocation that the device refused."""
    return BackendError(
        f"the device has no room for {asked:,} bytes; {free:,} of its {total:,} are free, in one piece or several. Ask "
        "for fewer queries at a time; release graphs and corpora that are not searched (hopfuse.free_device_memory); "
        "keep a corpus of 128 MiB and more with storage='float16' or 'bfloat16'; give back what other libraries hold "
        "there (torch.cuda.empty_cache()); or use backend='cpu'"
    )
