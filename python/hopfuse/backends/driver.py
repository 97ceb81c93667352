"""Whether this machine has a driver for a GPU; asked without the device backend, which takes long to import."""

from __future__ import annotations

from .. import _native
from ..errors import BackendError

__all__ = ["OLDEST_DRIVER", "OLDEST_RELEASE", "check_driver", "no_device", "no_driver", "release", "unusable_driver"]

#: The lowest version of CUDA that a driver may support, as ``cuDriverGetVersion`` returns it, and its first driver.
OLDEST_DRIVER, OLDEST_RELEASE = 12000, "525.60.13"


def no_driver() -> BackendError | None:
    """Return an error if there is no driver that can be used; else it is open from now on."""
    problem = _native.driver_problem()
    return None if problem is None else unusable_driver(*problem)


def unusable_driver(said: str, version: int) -> BackendError:
    """Return the error of a driver that is missing, too old or without devices; its version is 12040, or 0."""
    if not version:
        return BackendError(
            "unavailable",
            "backend",
            "backend='cuda' needs the NVIDIA driver, which was not found ({said}); install it, or use backend='cpu'",
            said=said,
        )
    try:
        check_driver(version)
    except BackendError as error:
        return error
    return no_device(said)


def no_device(said: str) -> BackendError:
    """Return the error of a machine without a usable device."""
    return BackendError(
        "unavailable",
        "backend",
        "no usable CUDA device ({said}); check CUDA_VISIBLE_DEVICES, or use backend='cpu'",
        said=said,
    )


def check_driver(version: int) -> None:
    """Refuse a driver that is too old; ``version`` is 12040 for CUDA 12.4."""
    if version < OLDEST_DRIVER:
        raise BackendError(
            "version",
            "backend",
            "the NVIDIA driver supports CUDA {given}; backend='cuda' needs CUDA {allowed}, which is in drivers from "
            "{release} on: update the driver, or use backend='cpu'",
            given=release(version),
            allowed=release(OLDEST_DRIVER),
            release=OLDEST_RELEASE,
        )


def release(version: int) -> str:
    """Return a version of CUDA as text: 12.4 for 12040."""
    return f"{version // 1000}.{version % 1000 // 10}"
