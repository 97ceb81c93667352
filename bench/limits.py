"""Measure the bandwidth of this machine's caches and memory, and its rate of 8-bit products: the limits of any kernel.

The loops of limits.cpp run on all threads at once. They read rows of 128 bytes (a node for 32 queries) in order and at
random, as a pass of a walk does, and numbers of 4 bytes at random, as the walk of a single query does. Then they
multiply 8-bit numbers, if the processor has an instruction for it. No call of hopfuse is timed.

A limit that is too low would excuse a slow kernel, so wherever there is a choice, the faster one counts: the fastest of
several loops; arrays that are small for their level; random rows of which few are popular, as in a graph with hubs.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
#: Adds rows of an array, in an order or all, a number of times.
Loop = Callable[[Any, Any, int], float]
#: float32 numbers of a gathered row: 128 bytes.
ROW = 32
#: Bytes that a thread reads per measurement.
AMOUNT, QUICK_AMOUNT = 1 << 29, 1 << 22
#: Steps of multiply_bytes of a thread per measurement.
STEPS, QUICK_STEPS = 1 << 24, 1 << 14
#: Parts of a large shared cache, in bytes: as a whole it is slower, and a virtual machine may have less of it.
PARTS = (1 << 25, 1 << 27)
#: Allow sums in any order; -ffast-math would flush denormal numbers to zero in the whole process.
FLAGS = ("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-funroll-loops", "-Wno-psabi")
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
            for access, some in loops.by_access.items():

                def fastest(level: Level = level, access: str = access, some: Sequence[Loop] = some) -> list[float]:
                    return max((_rates(loop, level, access, settings) for loop in some), key=np.median)

                yield _row(level, access, fastest, settings)
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
    """Return levels with arrays of an eighth of a private cache, a quarter of a shared one, and one larger than all.

    A shared cache may also be shared with other virtual machines. ``PARTS`` of a large one are levels of their own.
    """
    if not {2, 3} <= set(caches):
        raise UnavailableError(f"the system does not report the sizes of its level 2 and 3 caches ({CACHES})")
    last = caches[max(caches)]
    beyond = last if settings.quick else max(2 * last, min(8 * last, 8 * PARTS[-1]))
    found = []
    for level, size in sorted(caches.items()):
        if level == 2:
            found.append(Level("L2", size, size // 8))
        elif level > 2:
            parts = [part for part in PARTS if part < size]
            found += [Level(f"L{level}, {part >> 20} MiB of it", part, part // 4) for part in parts]
            found.append(Level(f"L{level}", size, size // 4))
    return [*found, Level("memory", 0, beyond)]


def cache_sizes(folder: Path = CACHES) -> dict[int, int]:
    """Return the bytes of the first core's data caches, by level."""
    sizes = {}
    for cache in sorted(folder.glob("index*")):
        if (cache / "type").read_text().strip() != "Instruction":
            sizes[int((cache / "level").read_text())] = 1024 * int((cache / "size").read_text().strip().rstrip("K"))
    return sizes


def _rates(loop: Loop, level: Level, access: str, settings: Settings) -> list[float]:
    """Return the GB/s of each measurement.

    In a private cache, threads have their own arrays. Elsewhere they share one, of which each reads a part in order, or
    rows from everywhere at random.
    """
    rows, threads = level.array // (4 * ROW), settings.threads
    if level.name == "L2":
        arrays = [np.ones((rows, ROW), np.float32) for _ in range(threads)]
    else:
        shared = np.ones((rows, ROW), np.float32)
        arrays = np.array_split(shared, threads) if access == READ else [shared] * threads
    rng = np.random.default_rng(23)
    orders = [_popular(rng, len(array), rows // threads) for array in arrays]
    read = 4 * ROW * sum(map(len, orders if access == GATHER else arrays))
    turns = max(1, (QUICK_AMOUNT if settings.quick else AMOUNT) * threads // read)
    work = [(array, order, turns) for array, order in zip(arrays, orders, strict=True)]
    amount = turns * read
    with ThreadPoolExecutor(threads) as pool:
        rates = []
        for _ in range(settings.repeats + 1):
            start = time.perf_counter()
            list(pool.map(lambda task: loop(*task), work))
            rates.append(1e-9 * amount / (time.perf_counter() - start))
    return rates[1:]


def _popular(rng: np.random.Generator, rows: int, count: int) -> NDArray[np.int32]:
    """Draw ``count`` of ``rows`` rows with a frequency inverse to their rank (Zipf's law), in any place."""
    share = np.cumsum(1.0 / np.arange(1.0, rows + 1.0))
    ranks = np.minimum(np.searchsorted(share, rng.random(count) * share[-1]), rows - 1)
    return np.asarray(rng.permutation(rows)[ranks], np.int32)


def _products(multiply: Callable[[int], int], settings: Settings) -> list[float]:
    """Return the 10^9 products per second of each measurement."""
    steps, threads = QUICK_STEPS if settings.quick else STEPS, settings.threads
    with ThreadPoolExecutor(threads) as pool:
        rates = []
        for _ in range(settings.repeats + 1):
            start = time.perf_counter()
            products = sum(pool.map(multiply, [steps] * threads))
            rates.append(1e-9 * products / (time.perf_counter() - start))
    return rates[1:]


class _Loops(NamedTuple):
    by_access: dict[str, tuple[Loop, ...]]
    multiply: Callable[[int], int]


@contextmanager
def _compiled() -> Iterator[_Loops]:
    """Yield the compiled loops of limits.cpp."""
    with library("limits.cpp", *FLAGS) as loaded:
        functions = {
            READ: (loaded.read_rows, loaded.read_rows_ahead),
            GATHER: (loaded.gather_rows, loaded.gather_rows_ahead),
            GATHER_ONE: (loaded.gather_floats,),
        }
        multiply = loaded.multiply_bytes
        multiply.restype, multiply.argtypes = ctypes.c_int64, (ctypes.c_int64,)
        by_access = {access: tuple(_loop(one, access) for one in some) for access, some in functions.items()}
        yield _Loops(by_access, multiply)


def _loop(function: Any, access: str) -> Loop:
    function.restype = ctypes.c_float
    function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    if access == GATHER:
        return lambda table, order, turns: function(table.ctypes.data, order.ctypes.data, len(order), turns)
    return lambda table, order, turns: function(table.ctypes.data, order.ctypes.data, len(table), turns)
