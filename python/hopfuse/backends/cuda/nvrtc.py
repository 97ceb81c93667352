"""NVRTC, NVIDIA's compiler of CUDA C++, by ctypes. It needs neither a driver nor a toolkit.

The build of a wheel runs this file, too (``kernels/cuda/build_images.py``), before NumPy and the native module are
there; so it imports only the standard library.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

_LIBRARY = re.compile(r"libnvrtc\.so\.\d+")
#: Releases whose library the loader is asked for by name.
_RELEASES = (13, 12)
_WHEEL_FOLDERS, _TOOLKIT_FOLDERS = ("cu[0-9]*/lib", "cuda_nvrtc/lib"), ("lib64", "lib", "targets/*/lib")


class NvrtcError(Exception):
    """NVRTC cannot be loaded, or it does not compile a file; the message has its log."""


class Compiled(NamedTuple):
    """What NVRTC makes of a file for ``sm_N`` (both images) or ``compute_N`` (no cubin), and its messages."""

    cubin: bytes
    ptx: bytes
    log: str


class Nvrtc:
    """One NVRTC library.

    Parameters
    ----------
    path : str or Path
        Of the library, or a name that the loader finds.

    Raises
    ------
    NvrtcError
        If it cannot be loaded.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        try:
            self._library = ctypes.CDLL(self.path)
            self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        except (OSError, AttributeError) as error:
            raise NvrtcError(str(error)) from error

    @cached_property
    def version(self) -> str:
        """The release with its build, such as "12.9.86", as the library writes it into PTX."""
        target = f"compute_{self.architectures[-1]}"
        found = re.search(rb"release [\d.]+, V([\d.]+)", self.compile_text(b"", "empty.cu", target, ()).ptx)
        if found is None:
            raise NvrtcError(f"{self.path} does not state its release in PTX")
        return found[1].decode()

    @cached_property
    def architectures(self) -> tuple[int, ...]:
        """The compute capabilities that it compiles for; 90 is 9.0."""
        count = ctypes.c_int()
        self._call("nvrtcGetNumSupportedArchs", ctypes.byref(count))
        numbers = (ctypes.c_int * count.value)()
        self._call("nvrtcGetSupportedArchs", numbers)
        return tuple(numbers)

    def compile(self, unit: Path, target: str, options: Sequence[str]) -> Compiled:
        """Compile a .cu file for ``sm_N`` or ``compute_N``."""
        return self.compile_text(unit.read_bytes(), unit.name, target, options)

    def compile_text(self, text: bytes, name: str, target: str, options: Sequence[str]) -> Compiled:
        """Compile source text; ``name`` stands in messages."""
        words = [f"--gpu-architecture={target}".encode(), *(option.encode() for option in options)]
        program = ctypes.c_void_p()
        self._call("nvrtcCreateProgram", ctypes.byref(program), text, name.encode(), 0, None, None)
        try:
            status = self._library.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words))
            log = self._read(program, "ProgramLog").rstrip(b"\0").decode(errors="replace").strip()
            if status:
                raise NvrtcError(f"{name} does not compile for {target}: {self._reason(status)}\n{log}".rstrip())
            cubin = self._read(program, "CUBIN") if target.startswith("sm_") else b""
            return Compiled(cubin, self._read(program, "PTX").rstrip(b"\0"), log)
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _read(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        content = ctypes.create_string_buffer(size.value)
        self._call(f"nvrtcGet{what}", program, content)
        return content.raw

    def _call(self, name: str, *arguments: object) -> None:
        try:
            function = getattr(self._library, name)
        except AttributeError as error:
            raise NvrtcError(f"{self.path} has no {name}: it is older than CUDA 12") from error
        status = function(*arguments)
        if status:
            raise NvrtcError(f"{name} failed: {self._reason(status)}")

    def _reason(self, status: int) -> str:
        return str(self._library.nvrtcGetErrorString(status).decode())


def library_paths(environment: Mapping[str, str] = os.environ, folders: Sequence[str] | None = None) -> Iterator[str]:
    """Yield the libraries that may be there, in the order in which they are tried.

    Parameters
    ----------
    environment : mapping
        ``HOPFUSE_NVRTC`` names the only one to try; ``CUDA_HOME`` and ``CUDA_PATH`` are toolkits.
    folders : sequence of str, optional
        Where Python packages are installed, such as NVIDIA's wheels; ``sys.path`` if omitted.
    """
    named = environment.get("HOPFUSE_NVRTC")
    if named:
        yield named
        return
    packages = filter(None, sys.path if folders is None else folders)  # "" is the current folder
    yield from _newest_first([Path(folder) / "nvidia" for folder in packages], _WHEEL_FOLDERS)
    for toolkit in filter(None, (environment.get("CUDA_HOME"), environment.get("CUDA_PATH"), "/usr/local/cuda")):
        yield from _newest_first([Path(toolkit)], _TOOLKIT_FOLDERS)
    yield from (f"libnvrtc.so.{release}" for release in _RELEASES)


def _newest_first(folders: Sequence[Path], places: Sequence[str]) -> list[str]:
    files = [file for folder in folders for place in places for file in folder.glob(f"{place}/libnvrtc.so.*")]
    libraries = [file for file in files if _LIBRARY.fullmatch(file.name)]
    return [str(file) for file in sorted(libraries, key=lambda file: int(file.suffix[1:]), reverse=True)]
