"""The emulator as a runtime of hopfuse's device backend: ``backend="simt"`` in the tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hopfuse_simt.module import SimtModule

CUDA = Path(__file__).parents[2] / "cuda"


class SimtRuntime:
    """Device memory is host memory; fresh memory is poisoned, so that a read of what nobody wrote is seen.

    ``sources`` are the .cu files, all of kernels/cuda by default; ``order`` and ``seed`` are those of
    :meth:`SimtModule.launch`; ``launches`` lists (kernel, grid, block) since it was last emptied, and ``counters`` what
    each of them counted.
    """

    name = "simt"

    def __init__(
        self, build: str = "plain", order: str = "forward", seed: int = 0, sources: Sequence[Path] | None = None
    ) -> None:
        self.module = SimtModule(sources or sorted(CUDA.glob("*.cu")), build=build)
        self.order, self.seed = order, seed
        self.launches: list[tuple[str, int, int]] = []
        self.counters: list[Any] = []

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return np.full(size, 0xFF, np.uint8).view(dtype).reshape(shape)

    def upload(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.array(array, order="C")

    def download(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return array.copy()

    def launch(self, kernel: str, grid: int, block: int, arguments: Sequence[Any], shared: int = 0) -> None:
        counters = self.module.launch(kernel, grid, block, shared, list(arguments), order=self.order, seed=self.seed)
        self.launches.append((kernel, grid, block))
        self.counters.append(counters)

    def matmul(self, a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], out: np.ndarray[Any, Any]) -> None:
        np.matmul(a.astype(np.float32), b.astype(np.float32).T, out=out)

    def explain(self) -> dict[str, Any]:
        return {"device": "SIMT emulator on the host", "kernels": list(self.module.kernels)}
