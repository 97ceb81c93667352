"""Measure the bandwidth of this machine's caches and memory, and its rate of 8-bit products: the limits of any kernel.

The loops of limits.cpp run on all threads at once. They read rows of 128 bytes (a node for 32 queries) in order and at
random, as a pass of a walk does, and numbers of 4 bytes at random, as the walk of a single query does. Then they
multiply 8-bit numbers, if the processor has an instruction for it. No call of hopfuse is timed.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from . import machine
from .compiled import library
from .errors import UnavailableError
from .settings import Settings
from .stats import summary

CASE = "limits"
READ: Final = "read"
GATHER: Final = "gather"
GATHER_ONE: Final = "gather one"
MULTIPLY: Final = "multiply"
#: The level of loops that read no memory.
REGISTERS: Final = "registers"
#: Adds the rows of an array in an order, a number of times.
Loop = Callable[[Any, Any, int], float]
#: float32 numbers of a gathered row: 128 bytes.
ROW = 32
#: Bytes that a thread reads per measurement.
AMOUNT, QUICK_AMOUNT = 1 << 29, 1 << 22
#: Products per step of multiply_bytes, and steps of a thread per measurement.
STEP, STEPS, QUICK_STEPS = 16 * 64, 1 << 24, 1 << 14
#: Allow sums in any order; -ffast-math would flush denormal numbers to zero in the whole process.
FLAGS = ("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-funroll-loops")
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


class Level(NamedTuple):
    """A level of memory: its capacity (per core if private), and the size of the array to measure it with, in bytes."""

    name: str
    holds: int
    array: int


def measure(settings: Settings) -> Iterator[dict[str, Any]]:
    """Yield a row for each level and access, in GB/s of all threads together, and one for 8-bit products, in 10^9/s.

    Raises
    ------
    UnavailableError
        The system does not report the sizes of its caches, or there is no compiler.
    """
    found = levels(cache_sizes(), settings)
    with _compiled() as loops:
        for level in found:
            for access, loop in loops.by_access.items():
                yield _row(level, access, lambda level=level, loop=loop: _rates(loop, level, settings), settings)
        if loops.multiply(1):
            yield _row(Level(REGISTERS, 0, 0), MULTIPLY, lambda: _products(loops.multiply, settings), settings)


def _row(level: Level, access: str, rates_of: Callable[[], list[float]], settings: Settings) -> dict[str, Any]:
    average, load = machine.load_average(), machine.OtherLoad()
    rates = rates_of()
    return {
        "case": CASE,
        "peer": None,
        "status": "ok",
        "level": level.name,
        "access": access,
        "sizes": {"holds": level.holds, "array": level.array},
        "rate": summary(rates),
        "threads": settings.threads,
        "quick": settings.quick,
        **machine.surroundings(average, load.stop()),
    }


def levels(caches: dict[int, int], settings: Settings) -> list[Level]:
    """Return levels with arrays of half a private cache, a quarter of a shared one, and one larger than all caches.

    A shared cache may also be shared with other virtual machines.
    """
    if not {2, 3} <= set(caches):
        raise UnavailableError(f"the system does not report the sizes of its level 2 and 3 caches ({CACHES})")
    last = caches[max(caches)]
    beyond = last if settings.quick else 8 * last
    found = [
        Level(f"L{level}", size, size // (2 if level == 2 else 4))
        for level, size in sorted(caches.items())
        if level > 1
    ]
    return [*found, Level("memory", 0, beyond)]


def cache_sizes(folder: Path = CACHES) -> dict[int, int]:
    """Return the bytes of the first core's data caches, by level."""
    sizes = {}
    for cache in sorted(folder.glob("index*")):
        if (cache / "type").read_text().strip() != "Instruction":
            sizes[int((cache / "level").read_text())] = 1024 * int((cache / "size").read_text().strip().rstrip("K"))
    return sizes


def _rates(loop: Loop, level: Level, settings: Settings) -> list[float]:
    """Return the GB/s of each measurement; threads have their own array in a private cache, and share one elsewhere."""
    rng = np.random.default_rng(23)
    shape, threads = (level.array // (4 * ROW), ROW), settings.threads
    private = level.name == "L2"
    arrays = [np.ones(shape, np.float32) for _ in range(threads if private else 1)]
    order = [rng.permutation(shape[0]).astype(np.int32) for _ in range(threads)]
    turns = max(1, (QUICK_AMOUNT if settings.quick else AMOUNT) // level.array)
    work = [(arrays[at if private else 0], order[at], turns) for at in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        rates = []
        for _ in range(settings.repeats + 1):
            start = time.perf_counter()
            list(pool.map(lambda task: loop(*task), work))
            rates.append(1e-9 * threads * turns * shape[0] * 4 * ROW / (time.perf_counter() - start))
    return rates[1:]


def _products(multiply: Callable[[int], int], settings: Settings) -> list[float]:
    """Return the 10^9 products per second of each measurement."""
    steps, threads = QUICK_STEPS if settings.quick else STEPS, settings.threads
    with ThreadPoolExecutor(threads) as pool:
        rates = []
        for _ in range(settings.repeats + 1):
            start = time.perf_counter()
            list(pool.map(multiply, [steps] * threads))
            rates.append(1e-9 * threads * steps * STEP / (time.perf_counter() - start))
    return rates[1:]


class _Loops(NamedTuple):
    by_access: dict[str, Loop]
    multiply: Callable[[int], int]


@contextmanager
def _compiled() -> Iterator[_Loops]:
    """Yield the compiled loops of limits.cpp."""
    with library("limits.cpp", *FLAGS) as loaded:
        functions = {READ: loaded.read_rows, GATHER: loaded.gather_rows, GATHER_ONE: loaded.gather_floats}
        multiply = loaded.multiply_bytes
        multiply.restype, multiply.argtypes = ctypes.c_int64, (ctypes.c_int64,)
        yield _Loops({access: _loop(function) for access, function in functions.items()}, multiply)


def _loop(function: Any) -> Loop:
    function.restype = ctypes.c_float
    function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    return lambda table, order, turns: function(table.ctypes.data, order.ctypes.data, len(table), turns)
