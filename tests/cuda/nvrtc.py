"""NVRTC by ctypes, from NVIDIA's wheel: compiles a .cu file for a real architecture, and keeps what it made.

Strict: warnings are errors, and so is anything else in the log. Results lie in build/cubins (``HOPFUSE_CUDA_CACHE``) by
the hash of the source, the headers it may include, the options and the compiler's version.
"""

from __future__ import annotations

import ctypes
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
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "kernels" / "include"
SOURCES = sorted((ROOT / "kernels" / "cuda").glob("*.cu"))
#: Turing to Blackwell; what lies between runs the cubin of its family or the PTX.
ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)
OPTIONS = ("--std=c++17", "--fmad=false")


class NvrtcError(Exception):
    """A file does not compile, or not without a word; the message is the compiler's."""


class Code(NamedTuple):
    """Of one file for one architecture; a later device's driver compiles the PTX for itself."""

    cubin: bytes
    ptx: bytes


@dataclass(frozen=True)
class Nvrtc:
    """One installed NVRTC."""

    package: str
    version: str
    path: Path

    @functools.cached_property
    def library(self) -> ctypes.CDLL:
        library = ctypes.CDLL(str(self.path))
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        return library

    @property
    def options(self) -> list[str]:
        """Release 12 cannot make warnings errors; there they are only the message that the log must not have."""
        return [*OPTIONS, *([] if self.version.startswith("12.") else ["--warning-as-error=all-warnings"])]

    def architectures(self) -> list[int]:
        count = ctypes.c_int()
        self.check(self.library.nvrtcGetNumSupportedArchs(ctypes.byref(count)))
        numbers = (ctypes.c_int * count.value)()
        self.check(self.library.nvrtcGetSupportedArchs(numbers))
        return list(numbers)

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
                command = [sys.executable, __file__, self.package, *pair]
                pool.submit(subprocess.run, command, capture_output=True, check=False)

    def kept(self, source: Path, architecture: int) -> Path:
        total = hashlib.sha256(repr((self.package, self.version, architecture, self.options)).encode())
        for path in sorted(read_includes(source)):
            total.update(f"\0{path.name}\0".encode() + path.read_bytes())
        return cache_folder() / f"{source.stem}-sm_{architecture}-{total.hexdigest()[:24]}.cubin"

    def compile(self, source: Path, architecture: int, *more: str) -> tuple[Code, str]:
        """The code and the log; more options go to the compiler as they are."""
        options = [f"--gpu-architecture=sm_{architecture}", *self.options, f"-I{source.parent}", f"-I{INCLUDE}", *more]
        program = ctypes.c_void_p()
        text, name = source.read_bytes(), source.name.encode()
        self.check(self.library.nvrtcCreateProgram(ctypes.byref(program), text, name, 0, None, None))
        try:
            result = self.library.nvrtcCompileProgram(program, len(options), strings(options))
            log = self.read(program, "ProgramLog").rstrip(b"\0").decode().strip()
            if result != 0:
                raise NvrtcError(f"{source.name} does not compile for sm_{architecture}:\n{log or self.reason(result)}")
            return Code(self.read(program, "CUBIN"), self.read(program, "PTX").rstrip(b"\0")), log
        finally:
            self.library.nvrtcDestroyProgram(ctypes.byref(program))

    def read(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self.check(getattr(self.library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        content = ctypes.create_string_buffer(size.value)
        self.check(getattr(self.library, f"nvrtcGet{what}")(program, content))
        return content.raw

    def reason(self, result: int) -> str:
        return str(self.library.nvrtcGetErrorString(result).decode())

    def check(self, result: int) -> None:
        if result != 0:
            raise NvrtcError(self.reason(result))


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


def strings(words: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * len(words))(*(word.encode() for word in words))


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
    return Nvrtc(package, wheel.version, Path(str(wheel.locate_file(file))))


def main(package: str, source: str, architecture: str) -> None:
    compiler = find(package)
    assert compiler is not None
    compiler.build(Path(source), int(architecture))


if __name__ == "__main__":
    main(*sys.argv[1:])
