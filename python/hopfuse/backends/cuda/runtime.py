"""The small protocol between the kernels' orchestration and what runs them: a GPU, or the SIMT emulator in tests.

Device arrays are the runtime's own objects. The orchestration uses no more of them than ``shape``, ``dtype``,
``nbytes``, ``size``, ``reshape``, ``view(dtype)``, a row ``[i]`` and rows ``[begin:end]``, all without a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from numpy.typing import DTypeLike, NDArray

DeviceArray = Any


class Runtime(Protocol):
    """What the orchestration asks of a device. Work runs in the order of the calls; only ``download`` waits.

    An array that is dropped may be reused only by work queued later.
    """

    name: str

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> DeviceArray:
        """Memory with unspecified content."""
        ...

    def upload(self, array: NDArray[Any]) -> DeviceArray:
        """A copy on the device of a C-contiguous array, which has been read when the call returns."""
        ...

    def download(self, array: DeviceArray) -> NDArray[Any]:
        """A copy on the host of a device array."""
        ...

    def launch(self, kernel: str, grid: int, block: int, arguments: Sequence[Any], shared: int = 0) -> None:
        """Run a kernel of ``kernels/cuda``: ``grid`` blocks of ``block`` threads.

        ``shared`` is the bytes of dynamic shared memory; ``arguments`` are device arrays, None for a null pointer,
        and NumPy scalars of exactly the parameters' types.
        """
        ...

    def matmul(self, a: DeviceArray, b: DeviceArray, out: DeviceArray) -> None:
        """out = a bᵀ in float32, row-major: a (m, d), b (n, d), out (m, n), float32 or float16 in, float32 out.

        The order of the sums is the library's own: what it gives is a candidate score, not a final one.
        """
        ...

    def explain(self) -> dict[str, Any]:
        """Device, driver and where the kernels came from."""
        ...


def blocks(items: int, per_block: int) -> int:
    """Blocks that cover ``items``, at least one."""
    return max(1, -(-items // per_block))
