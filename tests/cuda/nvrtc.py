"""The package's NVRTC for tests: compiles a .cu file for a real architecture, and keeps what it made.

Strict: warnings are errors, and so is anything else in the log. Results lie in build/cubins (``HOPFUSE_CUDA_CACHE``) by
the hash of the source, the headers it may include, the options and the compiler's version.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "kernels" / "include"
SOURCES = sorted((ROOT / "kernels" / "cuda").glob("*.cu"))
sys.path.insert(0, str(ROOT / "kernels" / "cuda"))

import build_images  # noqa: E402

#: Turing to Blackwell; what lies between runs the cubin of its family or the PTX.
ARCHITECTURES = build_images.CUBINS
NvrtcError: Any = build_images.package_module("nvrtc").NvrtcError
OPTIONS: Sequence[str] = build_images.package_module("kernel_sources").OPTIONS


class Code(NamedTuple):
    """Of one file for one architecture; a later device's driver compiles the PTX for itself."""

    cubin: bytes
    ptx: bytes


@dataclass(frozen=True)
class Nvrtc:
    """One installed NVRTC."""

    path: Path

    @functools.cached_property
    def library(self) -> Any:
        return build_images.package_module("nvrtc").Nvrtc(self.path)

    @property
    def version(self) -> str:
        return str(self.library.version)

    @property
    def options(self) -> list[str]:
        """Release 12 cannot make warnings errors; there they are only the message that the log must not have."""
        return [*OPTIONS, *([] if self.version.startswith("12.") else ["--warning-as-error=all-warnings"])]

    def architectures(self) -> list[int]:
        return list(self.library.architectures)

    def build(self, source: Path, architecture: int) -> Code:
        """Compiled now, or before from the same text."""
        kept = self.kept(source, architecture)
        if not kept.is_file():
            code, log = self.compile(source, architecture)
            if log:
                raise NvrtcError(f"{source.name} for sm_{architecture} compiles with a message:\n{log}")
            put_in_place(kept.with_suffix(".ptx"), code.ptx)
            put_in_place(kept, code.cubin)
        return Code(kept.read_bytes(), kept.with_suffix(".ptx").read_bytes())

    def build_all(self, sources: Sequence[Path], architectures: Sequence[int], workers: int = 2) -> None:
        """Compile what is not kept, some at a time in processes of their own: NVRTC itself has a lock.

        A failure shows when the file is asked for.
        """
        wanted = [(source, architecture) for architecture in architectures for source in sources]
        missing = [[str(source), str(number)] for source, number in wanted if not self.kept(source, number).is_file()]
        with ThreadPoolExecutor(workers) as pool:
            for pair in missing:
                command = [sys.executable, __file__, str(self.path), *pair]
                pool.submit(subprocess.run, command, capture_output=True, check=False)

    def kept(self, source: Path, architecture: int) -> Path:
        total = hashlib.sha256(repr((self.version, architecture, self.options)).encode())
        for path in sorted(read_includes(source)):
            total.update(f"\0{path.name}\0".encode() + path.read_bytes())
        return cache_folder() / f"{source.stem}-sm_{architecture}-{total.hexdigest()[:24]}.cubin"

    def compile(self, source: Path, architecture: int, *more: str) -> tuple[Code, str]:
        """The code and the log; more options go to the compiler as they are."""
        options = [*self.options, f"-I{source.parent}", f"-I{INCLUDE}", *more]
        made = self.library.compile(source, f"sm_{architecture}", options)
        return Code(made.cubin, made.ptx), made.log


def read_includes(source: Path) -> set[Path]:
    """The file and, transitively, the project's headers that it includes."""
    seen: set[Path] = set()
    pending = [source]
    while pending:
        path = pending.pop()
        seen.add(path)
        for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE):
            found = [folder / name for folder in (path.parent, source.parent, INCLUDE) if (folder / name).is_file()]
            pending += [found[0]] if found and found[0] not in seen else []
    return seen


def cache_folder() -> Path:
    chosen = os.environ.get("HOPFUSE_CUDA_CACHE")
    return Path(chosen) if chosen else ROOT / "build" / "cubins"


def put_in_place(path: Path, content: bytes) -> None:
    """Whole or not at all, also where another process writes the same."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as made:
        made.write(content)
    os.replace(made.name, path)


def find(package: str) -> Nvrtc | None:
    """The NVRTC of a wheel, if it is installed."""
    try:
        wheel = importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        return None
    # Beside it lie its builtins and, in some wheels, a build for old C libraries.
    (file,) = (file for file in wheel.files or () if file.name.startswith("libnvrtc.so."))
    return Nvrtc(Path(str(wheel.locate_file(file))))


if __name__ == "__main__":
    Nvrtc(Path(sys.argv[1])).build(Path(sys.argv[2]), int(sys.argv[3]))
