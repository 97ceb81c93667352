"""Code of the shipped kernels for a device: prebuilt if some suits it, else compiled by NVRTC and cached on disk."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from ..._threads import thread_count
from ...errors import BackendError
from ..driver import OLDEST_DRIVER
from .kernel_cache import KernelCache
from .kernel_compiler import Compiler, best_target, no_compiler, targets
from .kernel_images import ImagesError
from .kernel_sources import KernelSources


class Code(NamedTuple):
    """Code of one .cu file that a driver can load, and its origin."""

    image: bytes
    origin: str


class KernelCode:
    """The code of each unit for one device. Not thread-safe; the caller holds a lock.

    Parameters
    ----------
    sources : KernelSources
    compiler : Compiler
        Used for units without prebuilt code that suits the device.
    capability : int
        Of the device; 90 is 9.0.
    cache : KernelCache
        Keeps what is compiled.
    driver : int
        The version of CUDA that the driver supports; 12040 is 12.4.
    """

    def __init__(
        self,
        sources: KernelSources,
        compiler: Compiler,
        capability: int,
        cache: KernelCache,
        driver: int = OLDEST_DRIVER,
    ) -> None:
        self.sources, self.compiler, self.capability, self.cache = sources, compiler, capability, cache
        self.driver = driver
        self._compiled: dict[Path, Code] = {}
        self._prebuilt: dict[Path, Code | None] = {}
        self._damaged: dict[Path, str] = {}

    def image(self, unit: str) -> Code:
        """Return the code of a unit, such as "topk": prebuilt if there is some for this device, else compiled.

        All units without prebuilt code are compiled at once, if they are not cached.
        """
        path = self.unit(unit)
        found = self.prebuilt(path)
        if found is not None:
            return found
        self.compile_missing([other for other in self.sources.units if self.prebuilt(other) is None])
        return self.compiled(path)

    def unit(self, name: str) -> Path:
        """Return the .cu file of a unit, such as "topk"."""
        found = next((path for path in self.sources.units if path.stem == name), None)
        if found is None:
            raise BackendError(
                "unavailable", None, "there is no {unit}.cu in {cuda}", unit=name, cuda=self.sources.cuda
            )
        return found

    def prebuilt(self, unit: Path) -> Code | None:
        """Return the prebuilt code that suits the device best, or None. A driver may still refuse it."""
        if unit not in self._prebuilt:
            try:
                self._prebuilt[unit] = self._read_prebuilt(unit)
            except ImagesError as error:
                self._prebuilt[unit] = None
                self._damaged[unit] = f"{self.sources.image_file(unit)} is damaged: {error}"
        return self._prebuilt[unit]

    def _read_prebuilt(self, unit: Path) -> Code | None:
        images = self.sources.prebuilt(unit)
        if images is None:
            return None
        target = best_target(self.capability, images.targets, images.compiler, self.driver)
        if target is None:
            return None
        image = images.image(target)
        return Code(image, f"prebuilt for {target} by NVRTC {images.compiler}")

    def compiled(self, unit: Path) -> Code:
        """Return the code from the cache, or compile it now."""
        try:
            found = self._compiled.get(unit) or self._cached(unit)
            return self._store(unit, self._compile(unit)) if found is None else found
        except BackendError as error:
            if unit not in self._damaged:
                raise
            raise error.at(self._damaged[unit]) from error

    def compile_missing(self, units: Sequence[Path] | None = None) -> None:
        """Compile units that are not cached, in parallel, and announce it on standard error; all units by default.

        The self-test before the first use needs all of them. Errors are left to :meth:`compiled`, which reports them.
        """
        wanted = self.sources.units if units is None else units
        try:
            missing = [unit for unit in wanted if unit not in self._compiled and self._cached(unit) is None]
        except BackendError:  # there is no compiler
            return
        if not missing:
            return
        if sys.stderr is not None:  # None in a program without a console
            what = f"compiling {len(missing)} CUDA kernel files for {self.target()} on first use"
            print(f"hopfuse: {what}; the results are cached in {self.cache.folder}", file=sys.stderr, flush=True)
        missing.sort(key=lambda unit: unit.stat().st_size, reverse=True)  # longest first, to balance the threads
        with ThreadPoolExecutor(min(len(missing), thread_count(None))) as threads:
            for unit, image in zip(missing, threads.map(self._try_to_compile, missing), strict=True):
                if image is not None:
                    self._store(unit, image)

    def _key(self, unit: Path) -> str:
        target = self.target()
        identity = (self.sources.unit_hash(unit), self.compiler.version(), target)
        return f"{unit.stem}-{target}-{hashlib.sha256(repr(identity).encode()).hexdigest()[:32]}"

    def _cached(self, unit: Path) -> Code | None:
        key = self._key(unit)
        image = self.cache.get(key)
        return None if image is None else self._code(unit, image, f"cache {self.cache.path(key)}")

    def _compile(self, unit: Path) -> bytes:
        return self.compiler.compile(unit, self.target(), self.sources.compiler_options(unit))

    def _try_to_compile(self, unit: Path) -> bytes | None:
        try:
            return self._compile(unit)
        except BackendError:
            return None

    def _store(self, unit: Path, image: bytes) -> Code:
        note = "" if self.cache.put(self._key(unit), image) else f", not cached: {self.cache.problem}"
        made = self._code(unit, image, f"compiled by NVRTC {self.compiler.version()}{note}")
        self._compiled[unit] = made
        return made

    def _code(self, unit: Path, image: bytes, origin: str) -> Code:
        damage = f", since {self._damaged[unit]}" if unit in self._damaged else ""
        return Code(image, origin + damage)

    def target(self) -> str:
        """Return what to compile for: the nearest cubin that the device and its driver take, else PTX."""
        compiler = self.compiler
        found = best_target(self.capability, targets(compiler.architectures()), compiler.version(), self.driver)
        if found is None:
            raise no_compiler(self.capability, self.driver, [f"NVRTC {compiler.version()} makes no code for them"])
        return found
