"""The NVRTC of this machine that compiles the kernels for a device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol

from ...errors import BackendError
from ..driver import release
from .nvrtc import Nvrtc, NvrtcError, library_paths

INSTALL = (
    "install it with: pip install 'hopfuse[cuda13]' for a driver of CUDA 13 or later, 'hopfuse[cuda12]' for CUDA 12, "
    "or name its library in HOPFUSE_NVRTC"
)


class Compiler(Protocol):
    """A compiler of .cu files; it needs no device."""

    def version(self) -> str:
        """Return the release of NVRTC, such as "12.9.86"."""
        ...

    def architectures(self) -> Sequence[int]:
        """Return the supported compute capabilities; 90 is 9.0."""
        ...

    def compile(self, unit: Path, target: str, options: Sequence[str]) -> bytes:
        """Return a cubin for ``sm_N`` or PTX for ``compute_N``; raise BackendError with the log on failure."""
        ...


class FoundNvrtc:
    """The first NVRTC that has code for a device and its driver; it is looked for when it is first needed."""

    def __init__(self, capability: int, driver: int) -> None:
        self._capability, self._driver = capability, driver

    @cached_property
    def _nvrtc(self) -> Nvrtc:
        tried, others = list[str](), list[Nvrtc]()
        for path in library_paths():
            try:
                nvrtc = Nvrtc(path)
                target = best_target(self._capability, targets(nvrtc.architectures), nvrtc.version, self._driver)
            except NvrtcError as error:
                tried.append(f"{path} ({error})")
                continue
            if target == f"sm_{self._capability}":
                return nvrtc
            if target is not None:
                others.append(nvrtc)
            tried.append(f"{path} (release {nvrtc.version} makes no code for them)")
        if others:
            return others[0]
        raise no_compiler(self._capability, self._driver, tried)

    def version(self) -> str:
        return self._nvrtc.version

    def architectures(self) -> Sequence[int]:
        return self._nvrtc.architectures

    def compile(self, unit: Path, target: str, options: Sequence[str]) -> bytes:
        try:
            made = self._nvrtc.compile(unit, target, options)
        except NvrtcError as error:
            raise BackendError(
                "failed", None, "NVRTC {version} failed: {error}", version=self._nvrtc.version, error=error
            ) from error
        return made.cubin or made.ptx


def targets(architectures: Iterable[int]) -> list[str]:
    """Return everything that a compiler of these architectures can make."""
    return [f"{kind}_{number}" for number in architectures for kind in ("sm", "compute")]


def no_compiler(capability: int, driver: int, tried: Sequence[str]) -> BackendError:
    """Return the error of a device for which nothing here compiles."""
    return BackendError(
        "unavailable",
        None,
        "the kernels must be compiled for this device (compute capability {capability}) and its driver (CUDA "
        "{driver}), and no NVRTC that can do so was found; {install}. Tried: {tried}",
        capability=capability / 10,
        driver=release(driver),
        install=INSTALL,
        tried="; ".join(tried),
    )


# ---- Which code runs on a device and its driver, by NVIDIA's rules ---------------------------------------------------
#
# - A cubin for compute capability X.y runs on devices X.z with z >= y. Integrated GPUs of the Jetson family run only
#   their own cubins ("Binary Compatibility", CUDA C++ Programming Guide).
# - PTX for a compute capability runs on all later devices, but its driver must be as new as the compiler that wrote it:
#   each release writes its own version of PTX. A cubin runs with every driver of its compiler's major release, or of a
#   later one ("Minor Version Compatibility", CUDA Compatibility).
# - Drivers of CUDA 12.0 are the oldest with the entry points that are called here, such as ``cuGetProcAddress_v2``.

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
