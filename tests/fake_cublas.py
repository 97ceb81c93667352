"""cuBLAS on the devices of :mod:`fake_cuda`: the calls of a product, with its handle's device, stream and mode."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from fake_cuda import Touch, view_of
from fake_cupy import cuda

SUCCESS, NOT_INITIALIZED, INVALID_VALUE = 0, 1, 7
PEDANTIC = 2


class FakeCublas:
    """``fail`` has statuses that the next calls return, such as [("Create", 3)]."""

    def __init__(self) -> None:
        self.handles: dict[int, dict[str, Any]] = {}
        self.fail: list[tuple[str, int]] = []
        self.workspaces: list[int | None] = []
        self.on_set_stream: Callable[[], None] = lambda: None

    def _failed(self, call: str) -> int:
        if self.fail and self.fail[0][0] == call:
            return self.fail.pop(0)[1]
        return SUCCESS

    def cublasCreate_v2(self, made: Any) -> int:  # noqa: N802
        status = self._failed("Create")
        if not status:
            number = len(self.handles) + 1
            made._obj.value = number
            self.handles[number] = {"device": cuda.device, "mode": 0, "stream": 0, "workspace": None}
        return status

    def cublasSetMathMode(self, handle: Any, mode: int) -> int:  # noqa: N802
        self.handles[handle.value]["mode"] = mode
        return self._failed("SetMathMode")

    def cublasSetStream_v2(self, handle: Any, stream: Any) -> int:  # noqa: N802
        self.handles[handle.value].update(stream=stream.value or 0, workspace=None)
        self.on_set_stream()
        return self._failed("SetStream")

    def cublasSetWorkspace_v2(self, handle: Any, workspace: Any, size: Any) -> int:  # noqa: N802
        self.handles[handle.value]["workspace"] = workspace.value, size.value
        return self._failed("SetWorkspace")

    def cublasSgemm_v2(self, handle: Any, *given: Any) -> int:  # noqa: N802
        """Compute out (n, m) in column-major order = bᵀ a, for the caller's row-major out = a bᵀ."""
        transposed, plain, n, m, d, one, b, b_rows, a, a_rows, zero, out, out_rows = given
        state = self.handles[handle.value]
        assert (transposed, plain, one._obj.value, zero._obj.value) == (1, 0, 1.0, 0.0)
        assert (b_rows, a_rows, out_rows) == (max(1, d), max(1, d), n)
        status = self._failed("Sgemm")
        if status:
            return status
        if state["device"] != cuda.device or state["mode"] != PEDANTIC:
            return INVALID_VALUE
        places = [(a.value, (m, d)), (b.value, (n, d)), (out.value, (m, n))]
        touches = [Touch(at, 4 * rows * columns, at == out.value) for at, (rows, columns) in places]
        if state["workspace"] is not None:
            touches.append(Touch(*state["workspace"], True))
        self.workspaces.append(None if state["workspace"] is None else state["workspace"][0])

        def multiply() -> None:
            left, right, made = (view_of(at, shape, np.float32) for at, shape in places)
            with np.errstate(all="ignore"):  # a device has no warnings
                made[:] = left @ right.T
            if state["workspace"] is not None:
                ctypes.memset(touches[-1].begin, 0xEE, touches[-1].nbytes)

        cuda.submit(state["stream"], multiply, touches)
        return SUCCESS
