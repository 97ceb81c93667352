"""``cupy.cuda.nvrtc`` without a compiler: the code of a file is the list of the emulator's kernels of it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)


class NVRTCError(RuntimeError):
    pass


class FakeNvrtc:
    NVRTCError = NVRTCError

    def __init__(self, simt: Any) -> None:
        self._kernels = {unit.source.name: [kernel.name for kernel in unit.kernels] for unit in simt.units}
        self._numbers, self._programs = itertools.count(1), dict[int, str]()

    def getVersion(self) -> tuple[int, int]:  # noqa: N802
        return 13, 2

    def getSupportedArchs(self) -> Sequence[int]:  # noqa: N802
        return ARCHITECTURES

    def createProgram(self, src: str, name: str, headers: Any, include_names: Any) -> int:  # noqa: N802
        number = next(self._numbers)
        self._programs[number] = name
        return number

    def compileProgram(self, prog: int, options: Sequence[str]) -> None:  # noqa: N802
        assert self._programs[prog] in self._kernels
        assert any(option.startswith("--gpu-architecture=") for option in options)

    def getCUBIN(self, prog: int) -> bytes:  # noqa: N802
        return "".join(f".entry {kernel} " for kernel in self._kernels[self._programs[prog]]).encode()

    def destroyProgram(self, prog: int) -> None:  # noqa: N802
        del self._programs[prog]
