"""Kernels by name: one module per .cu file, loaded when a kernel of it is first launched."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from ...errors import BackendError
from .cupy_errors import failed, is_no_memory, translated
from .kernel_code import Code, KernelCode

#: The dynamic shared memory, in bytes, that a kernel may use without opting in to more.
UNPREPARED_SHARED = 48 * 1024


class CupyModules:
    """The kernels of one device. Which file has a kernel is known only after loading it; likely files come first."""

    def __init__(self, cupy: Any, code: KernelCode) -> None:
        self._cupy, self._code = cupy, code
        self._functions: dict[str, Any] = {}
        self._modules: dict[Path, tuple[Any, Code]] = {}
        self._shared: dict[str, int] = {}
        self._lock = threading.Lock()

    def function(self, kernel: str, shared: int) -> Any:
        """Return a ``cupy.cuda.Function`` that may use this much dynamic shared memory."""
        function = self._functions.get(kernel)
        if function is None:
            with self._lock:
                function = self._functions.get(kernel) or self._find(kernel)
                self._functions[kernel] = function
        if shared > UNPREPARED_SHARED and shared > self._shared.get(kernel, 0):
            self._allow_shared(kernel, function, shared)
        return function

    def origins(self) -> dict[str, str]:
        """Return the origin of the code of each loaded file."""
        return {unit.name: code.origin for unit, (_, code) in sorted(self._modules.items())}

    def _find(self, kernel: str) -> Any:
        for unit in self._code.sources.likely_units(kernel):
            if unit not in self._modules:
                self._modules[unit] = self._load(unit)
            module, code = self._modules[unit]
            if kernel in code.kernels:
                return module.get_function(kernel)
        raise BackendError(
            "unavailable",
            None,
            "there is no CUDA kernel {kernel!r} in {cuda}",
            kernel=kernel,
            cuda=self._code.sources.cuda,
        )

    def _load(self, unit: Path) -> tuple[Any, Code]:
        """Load the prebuilt fatbin, or compile if the driver refuses it (of a newer toolkit, or for other devices)."""
        prebuilt = self._code.prebuilt(unit)
        if prebuilt is not None:
            module = self._cupy.cuda.Module()
            try:
                module.load(prebuilt.image)
            except self._cupy.cuda.driver.CUDADriverError as error:
                if is_no_memory(error):
                    raise failed(f"loading {unit.name} ({prebuilt.origin})", error) from error
                compiled = self._compiled(unit)
                refused = f"{compiled.origin} (the driver refused {prebuilt.origin}: {error})"
                return self._loaded(unit, compiled), compiled._replace(origin=refused)
            return module, prebuilt
        compiled = self._compiled(unit)
        return self._loaded(unit, compiled), compiled

    def _compiled(self, unit: Path) -> Code:
        self._code.compile_missing()
        return self._code.compiled(unit)

    def _loaded(self, unit: Path, code: Code) -> Any:
        module = self._cupy.cuda.Module()
        with translated(self._cupy, f"loading {unit.name} ({code.origin})"):
            module.load(code.image)
        return module

    def _allow_shared(self, kernel: str, function: Any, shared: int) -> None:
        driver = self._cupy.cuda.driver
        with self._lock, translated(self._cupy, f"preparing {kernel} for {shared} bytes of shared memory"):
            if shared > self._shared.get(kernel, 0):
                driver.funcSetAttribute(function.ptr, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared)
                self._shared[kernel] = shared
