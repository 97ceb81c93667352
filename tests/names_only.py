"""A compiler without a compiler, for the emulator: the code of a file is the list of the emulator's kernels of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any


class NamesOnly:
    """A ``Compiler`` of ``hopfuse.backends.cuda.kernel_compiler``; ``simt`` is the emulator's module."""

    def __init__(self, simt: Any) -> None:
        self.units = {unit.source.name: [kernel.name for kernel in unit.kernels] for unit in simt.units}

    def version(self) -> str:
        return "0.0"

    def architectures(self) -> Sequence[int]:
        return (90,)

    def compile(self, unit: Path, target: str, options: Sequence[str]) -> bytes:
        return "".join(f".entry {name} " for name in self.units[unit.name]).encode()
