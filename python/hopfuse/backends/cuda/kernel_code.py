"""Machine code of the shipped kernels: prebuilt if it fits the device, else compiled by NVRTC and cached on disk."""

from __future__ import annotations

import hashlib
import re
import struct
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, Protocol

from ..._threads import thread_count
from ...errors import BackendError
from .kernel_cache import KernelCache
from .kernel_sources import OPTIONS, KernelSources

_ELF, _STT_FUNC, _STO_CUDA_ENTRY = b"\x7fELF\x02", 2, 0x10


class Compiler(Protocol):
    """A compiler of .cu files; it needs no device."""

    def version(self) -> str: ...

    def architectures(self) -> Sequence[int]:
        """Return the supported compute capabilities; 90 is 9.0."""
        ...

    def compile(self, unit: Path, target: str, options: Sequence[str]) -> bytes:
        """Return a cubin for ``sm_N`` or PTX for ``compute_N``; raise BackendError with the log on failure."""
        ...


class Code(NamedTuple):
    """Code of one .cu file that a driver can load, and its origin."""

    image: bytes
    kernels: frozenset[str]
    origin: str


class KernelCode:
    """The code of each unit for one device. Not thread-safe; the caller holds a lock."""

    def __init__(self, sources: KernelSources, compiler: Compiler, capability: int, cache: KernelCache) -> None:
        self.sources, self.compiler, self.capability, self.cache = sources, compiler, capability, cache
        self._compiled: dict[Path, Code] = {}

    def prebuilt(self, unit: Path) -> Code | None:
        """Return the package's fatbin, or None if none was built from these sources. A driver may still refuse it."""
        if not self.sources.has_fatbins:
            return None
        path = self.sources.fatbin / f"{unit.stem}.fatbin"
        try:
            image = path.read_bytes()
        except OSError:
            return None
        return Code(image, kernel_names(image), f"fatbin {path}")

    def compiled(self, unit: Path) -> Code:
        """Return the code from the cache, or compile it now."""
        found = self._compiled.get(unit) or self._cached(unit)
        return self._store(unit, self._compile(unit)) if found is None else found

    def compile_missing(self) -> None:
        """Compile all units that are not cached, in parallel, and announce it on standard error.

        The self-test before the first use needs all of them. Errors are left to :meth:`compiled`, which reports them.
        """
        missing = [unit for unit in self.sources.units if unit not in self._compiled and self._cached(unit) is None]
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
        identity = (self.sources.unit_hash(unit), OPTIONS, self.compiler.version(), target)
        return f"{unit.stem}-{target}-{hashlib.sha256(repr(identity).encode()).hexdigest()[:32]}"

    def _cached(self, unit: Path) -> Code | None:
        key = self._key(unit)
        image = self.cache.get(key)
        return None if image is None else Code(image, kernel_names(image), f"cache {self.cache.path(key)}")

    def _compile(self, unit: Path) -> bytes:
        folders = [f"-I{unit.parent}", f"-I{self.sources.include}"]
        return self.compiler.compile(unit, self.target(), [*OPTIONS, *folders])

    def _try_to_compile(self, unit: Path) -> bytes | None:
        try:
            return self._compile(unit)
        except BackendError:
            return None

    def _store(self, unit: Path, image: bytes) -> Code:
        note = "" if self.cache.put(self._key(unit), image) else f", not cached: {self.cache.problem}"
        made = Code(image, kernel_names(image), f"compiled by NVRTC {self.compiler.version()}{note}")
        self._compiled[unit] = made
        return made

    def target(self) -> str:
        """Return the device's own target or, if it is newer than the compiler, PTX for its driver to compile."""
        known = sorted(self.compiler.architectures())
        if self.capability in known:
            return f"sm_{self.capability}"
        older = [number for number in known if number < self.capability]
        if not older:
            raise BackendError(
                "unavailable",
                None,
                "NVRTC {version} supports compute capability {known} and later; the device has {capability}. "
                "Install the extra cuda12, whose NVRTC supports older devices",
                version=self.compiler.version(),
                known=known[0] / 10,
                capability=self.capability / 10,
            )
        return f"compute_{older[-1]}"


def kernel_names(image: bytes) -> frozenset[str]:
    """Return the kernels (entry points) in a cubin, PTX, or a fatbin that contains uncompressed PTX."""
    if not image.startswith(_ELF):
        return frozenset(name.decode() for name in re.findall(rb"\.entry\s+(\w+)", image))
    (begin,), (size, count, names) = struct.unpack_from("<Q", image, 40), struct.unpack_from("<HHH", image, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", image, begin + size * i) for i in range(count)]
    table = headers[names][4]
    sections = {_text(image, table + header[0]): header[4:6] for header in headers}
    (symbols, length), (strings, _) = sections[".symtab"], sections[".strtab"]
    return frozenset(
        _text(image, strings + name)
        for name, kind, other, _, _, _ in struct.iter_unpack("<IBBHQQ", image[symbols : symbols + length])
        if kind & 15 == _STT_FUNC and other & _STO_CUDA_ENTRY
    )


def _text(image: bytes, at: int) -> str:
    return image[at : image.index(b"\0", at)].decode()
