"""NVRTC through CuPy's bindings; it needs no driver."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ...errors import BackendError


class CupyNvrtc:
    """The :class:`.kernel_code.Compiler` used with CuPy."""

    def __init__(self) -> None:
        self._nvrtc: Any = import_module("cupy").cuda.nvrtc
        self._version = ""

    def version(self) -> str:
        if not self._version:
            try:
                self._version = ".".join(map(str, self._nvrtc.getVersion()))
            except (ImportError, RuntimeError, OSError) as error:
                raise BackendError(
                    "unavailable",
                    None,
                    "NVRTC, which compiles the kernels, cannot be loaded ({first_line}); install it with: pip "
                    "install 'hopfuse[cuda13]', or 'hopfuse[cuda12]' for a driver of CUDA 12",
                    first_line=_first_line(error),
                ) from error
        return self._version

    def architectures(self) -> list[int]:
        self.version()
        return [int(number) for number in self._nvrtc.getSupportedArchs()]

    def compile(self, unit: Path, target: str, options: Sequence[str]) -> bytes:
        self.version()
        nvrtc = self._nvrtc
        program = nvrtc.createProgram(unit.read_text(encoding="utf-8"), unit.name, (), ())
        try:
            nvrtc.compileProgram(program, (f"--gpu-architecture={target}", *options))
            image = nvrtc.getCUBIN(program) if target.startswith("sm_") else nvrtc.getPTX(program)
        except nvrtc.NVRTCError as error:
            log = nvrtc.getProgramLog(program)
            raise BackendError(
                "unavailable",
                None,
                "NVRTC failed to compile {name} for {target}: {error}\n{log}",
                name=unit.name,
                target=target,
                error=error,
                log=log,
            ) from error
        finally:
            nvrtc.destroyProgram(program)
        return bytes(image)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
