"""The NVRTC of this machine that compiles the kernels for a device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol

from ...errors import BackendError
from .compatibility import best_target, release
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
