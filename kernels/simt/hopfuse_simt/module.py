"""Compiled kernels and how to launch them."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from hopfuse_simt import build as builder
from hopfuse_simt.arguments import convert
from hopfuse_simt.errors import SimtBuildError
from hopfuse_simt.launcher import Call, Counters, Launcher, Library, Program

ORDERS = {"forward": 0, "reverse": 1, "shuffle": 2}
MATRIX_UNITS = {"v100": 0, "a100": 1, "h100": 2, "lower": 3, "uneven": 4, "narrow": 5}
SHARED_LIMIT = 48 * 1024
"""Bytes of shared memory that a block has on every device without opting in to more."""


class SimtModule:
    """The kernels of some .cu files, compiled for the host and run thread by thread.

    Parameters
    ----------
    paths : path or sequence of paths
        The .cu files. A kernel's name stands in one of them only.
    build : {"plain", "count", "asan", "tsan"}
        ``plain`` is fast; ``count`` also counts the bytes that kernels load and store; ``asan`` has
        AddressSanitizer and UndefinedBehaviorSanitizer, ``tsan`` ThreadSanitizer.
    isolated : bool
        Run ``plain`` and ``count`` in a program of their own, as the sanitizer builds always do, so that a
        kernel which writes out of bounds cannot damage this process.
    include : sequence of paths
        Folders to look for included files in, before kernels/include.
    shared_limit : int
        Bytes of shared memory that a block may have, static and dynamic together.
    capability : int
        The compute capability to compile for, 75 for 7.5.

    Raises
    ------
    SimtBuildError
        A file is outside the language subset, or does not compile.

    Examples
    --------
    >>> module = SimtModule("tests/simt/cuda/saxpy.cu")  # doctest: +SKIP
    >>> module.launch("saxpy_f32", 4, 64, 0, [x, y, 2.0, 250])  # doctest: +SKIP
    """

    def __init__(
        self,
        paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        build: str = "plain",
        *,
        isolated: bool = False,
        include: Sequence[str | os.PathLike[str]] = (),
        shared_limit: int = SHARED_LIMIT,
        capability: int = 90,
    ) -> None:
        sources = [Path(paths)] if isinstance(paths, str | os.PathLike) else [Path(path) for path in paths]
        program = isolated or build in ("asan", "tsan")
        self.build = build
        self.shared_limit = shared_limit
        folders = [Path(folder) for folder in include]
        self.units = builder.build_all(sources, build, program=program, include=folders, capability=capability)
        self._unit_of: dict[str, builder.Unit] = {}
        self._source_of: dict[str, builder.KernelSource] = {}
        for unit in self.units:
            for kernel in unit.kernels:
                if kernel.name in self._unit_of:
                    other = self._unit_of[kernel.name].source
                    raise SimtBuildError(f"kernel {kernel.name} is in {other} and in {unit.source}")
                self._unit_of[kernel.name] = unit
                self._source_of[kernel.name] = kernel
        self._launchers: dict[Path, Launcher] = {}
        self._lock = threading.RLock()

    @property
    def kernels(self) -> tuple[str, ...]:
        """The kernels' names."""
        return tuple(self._unit_of)

    def static_shared(self, name: str) -> int:
        """Bytes of static shared memory that the kernel declares."""
        self._find(name)
        return self._source_of[name].static_shared

    def signature(self, name: str) -> str:
        """Parameter types, as registry.h writes them: ``c*f4`` is ``const float*``."""
        return self._launcher(name).signatures[name]

    def max_threads(self, name: str) -> int:
        """The bound of ``__launch_bounds__``, or 1024."""
        return self._launcher(name).max_threads[name]

    def launch(
        self,
        name: str,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        shared_bytes: int,
        args: Sequence[Any],
        order: str = "forward",
        seed: int = 0,
        mma: str = "h100",
        *,
        cooperative: bool = False,
    ) -> Counters:
        """Run a kernel to its end.

        Parameters
        ----------
        name : str
        grid, block : int or up to three ints
            Blocks in the grid, threads in a block.
        shared_bytes : int
            Dynamic shared memory of a block.
        args : sequence
            C-contiguous NumPy arrays (None is a null pointer) for pointers, numbers for scalars, bytes or
            structured scalars for structs, a :class:`Struct` for one with pointers. Types must be the kernel's
            own; a float16 array goes for ``unsigned short*``. Arrays that the kernel writes are changed in place.
        order : {"forward", "reverse", "shuffle"}
            In which order blocks run, and in which order a block's threads go on. ``shuffle`` takes ``seed``,
            and lets other threads in before atomics now and then.
        mma : {"v100", "a100", "h100", "lower", "uneven", "narrow"}
            How matrix units round: as measured on a GPU, or worse (mma.cpp).
        cooperative : bool
            Run all blocks at once, so that ``grid_barrier`` of hopfuse/device.h may be called.

        Returns
        -------
        Counters

        Raises
        ------
        SimtError
            What the emulator or the sanitizer found. Arrays then hold what had been written so far (nothing
            of it when a sanitizer ended the program).
        """
        if order not in ORDERS:
            raise ValueError(f"order is {order!r}; allowed: {', '.join(ORDERS)}")
        if mma not in MATRIX_UNITS:
            raise ValueError(f"mma is {mma!r}; allowed: {', '.join(MATRIX_UNITS)}")
        for what, value in (("shared_bytes", shared_bytes), ("seed", seed)):
            if not 0 <= value < 2**64:
                raise ValueError(f"{what} is {value}; allowed: 0 to 2^64 - 1")
        with self._lock:
            launcher = self._launcher(name)
            call = Call(
                name, _three("grid", grid), _three("block", block), shared_bytes, self._source_of[name].static_shared,
                self.shared_limit, ORDERS[order], seed, MATRIX_UNITS[mma], cooperative,
            )  # fmt: skip
            return launcher.launch(call, convert(name, launcher.signatures[name], args))

    def close(self) -> None:
        """End the programs of this module; a later launch starts them again."""
        with self._lock:
            for launcher in self._launchers.values():
                launcher.close()
            self._launchers.clear()

    def __enter__(self) -> SimtModule:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _find(self, name: str) -> builder.Unit:
        if name not in self._unit_of:
            raise KeyError(f"no kernel {name!r}; there are {', '.join(self.kernels)}")
        return self._unit_of[name]

    def _launcher(self, name: str) -> Launcher:
        unit = self._find(name)
        with self._lock:
            if unit.artifact not in self._launchers:
                self._launchers[unit.artifact] = (Program if unit.is_program else Library)(unit.artifact)
            return self._launchers[unit.artifact]


def _three(what: str, sides: int | Sequence[int]) -> tuple[int, int, int]:
    given = (sides,) if isinstance(sides, int) else tuple(int(side) for side in sides)
    if not 1 <= len(given) <= 3 or any(not 0 <= side < 2**32 for side in given):
        raise ValueError(f"{what} is {sides!r}; allowed: one to three sizes")
    x, y, z = (*given, 1, 1)[:3]
    return x, y, z
