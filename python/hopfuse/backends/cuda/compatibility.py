"""Which drivers are supported, and which code runs on a device and its driver, by NVIDIA's rules.

- A cubin for compute capability X.y runs on devices X.z with z >= y. Integrated GPUs of the Jetson family run only
  their own cubins ("Binary Compatibility", CUDA C++ Programming Guide).
- PTX for a compute capability runs on all later devices, but its driver must be as new as the compiler that wrote it:
  each release writes its own version of PTX. A cubin runs with every driver of its compiler's major release, or of a
  later one ("Minor Version Compatibility", CUDA Compatibility).
- Drivers of CUDA 12.0 are the oldest with the entry points that are called here, such as ``cuGetProcAddress_v2``.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..driver import OLDEST_DRIVER as OLDEST_DRIVER
from ..driver import check_driver as check_driver
from ..driver import release as release

_INTEGRATED = (87, 88, 101, 110)


def best_target(capability: int, targets: Iterable[str], compiler: str, driver: int) -> str | None:
    """Return the code that suits a device best, or None.

    Parameters
    ----------
    capability : int
        Of the device; 90 is 9.0.
    targets : iterable of str
        ``sm_N`` is a cubin, ``compute_N`` PTX.
    compiler : str
        The release of the compiler that makes them, such as "12.9.86".
    driver : int
        The version of CUDA that the driver supports; 12040 is 12.4.

    Returns
    -------
    str or None
        The nearest cubin that the device and the driver take, else the nearest PTX that they take, else None.
    """
    runs = [
        parts for parts in map(_parts, targets) if _runs(*parts[:2], capability) and _loads(parts[0], compiler, driver)
    ]
    return max(runs)[2] if runs else None


def _parts(target: str) -> tuple[bool, int, str]:
    """Return whether a target is a cubin, its compute capability, and its name."""
    kind, _, number = target.partition("_")
    return kind == "sm", int(number), target


def _runs(is_cubin: bool, built: int, capability: int) -> bool:
    """Return whether a device runs code for a compute capability."""
    if not is_cubin or built == capability:
        return built <= capability
    is_same_family = built // 10 == capability // 10 and built < capability
    return is_same_family and built not in _INTEGRATED and capability not in _INTEGRATED


def _loads(is_cubin: bool, compiler: str, driver: int) -> bool:
    """Return whether a driver takes code of a compiler."""
    major, minor = (int(part) for part in compiler.split(".")[:2])
    return 1000 * major + (0 if is_cubin else 10 * minor) <= driver
