"""The errors of a device, which native code raises by their kind and values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ... import _native
from ...errors import BackendError, DeviceMemoryError
from ..driver import unusable_driver
from ..faults import FAULTS

#: How to free memory.
ADVICE = (
    "Use smaller batches; free graphs and corpora that are not in use (hopfuse.free_device_memory); use "
    "storage='float16' or 'bfloat16' for a corpus of 128 MiB or more; free memory that other libraries hold there "
    "(torch.cuda.empty_cache()); or use backend='cpu'"
)


def no_memory(asked: int, free: int, total: int) -> DeviceMemoryError:
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


def no_room(what: str, nbytes: int, free: int) -> DeviceMemoryError:
    """Return the error of something resident for which the device lacks the memory."""
    return DeviceMemoryError(
        "memory",
        None,
        "{what} needs {nbytes:,.1f} MiB on the device, which has {free:,.1f} MiB free: free others "
        "(hopfuse.free_device_memory), store vectors as float16 or bfloat16, or use backend='cpu'",
        what=what,
        nbytes=nbytes / 2**20,
        free=free / 2**20,
    )


def driver_memory(what: str, error: str) -> DeviceMemoryError:
    """Return the error of a call of the driver that has no memory left, such as to load kernels."""
    return DeviceMemoryError(
        "memory",
        None,
        "the device has no memory left at {what}: {error}. {advice}",
        what=what,
        error=error,
        advice=ADVICE,
    )


def failed(what: str, error: str, final: bool) -> BackendError:
    """Return the error of a failed call of the driver; if it is final, all later calls of this process also fail."""
    if not final:
        return BackendError(
            "failed",
            None,
            "the device refuses {what}: {error}. Repeat the call, and use backend='cpu' if the error recurs",
            what=what,
            error=error,
        )
    return BackendError(
        "failed",
        None,
        "the device failed at {what}, or in work queued before it: {error}. This process can no "
        "longer use the device: restart it, and use backend='cpu' if the error recurs",
        what=what,
        error=error,
    )


def forked(said: str, version: int) -> BackendError:
    """Return the error of a process that was forked from one that used the device."""
    return BackendError("unavailable", None, "the device cannot be used here: {said}", said=said)


def bad_setting(variable: str, given: str, allowed: str) -> BackendError:
    """Return the error of an environment variable without a valid value."""
    return BackendError(
        "choice",
        None,
        "{variable} is {given!r}; it must be {allowed}",
        variable=variable,
        given=given,
        allowed=allowed,
    )


_ERRORS: dict[str, Callable[..., Exception]] = {
    "no_memory": no_memory,
    "no_room": no_room,
    "driver_memory": driver_memory,
    "failed": failed,
    "no_driver": unusable_driver,
    "forked": forked,
    "setting": bad_setting,
}


def _raise_error(kind: str, **values: Any) -> NoReturn:
    raise _ERRORS[kind](**values)


def _raise_fault(status: int, row: int) -> NoReturn:
    raise FAULTS[status](row)


_native.use_device_errors(_raise_error)
_native.use_faults(_raise_fault)
