"""Set the calling thread's floating-point mode, as a library built with -ffast-math does, and read it back."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterator
from contextlib import contextmanager

#: Where fenv_t of glibc has the control word, by machine, and the bits of each mode.
CONTROL = {"x86_64": 28, "aarch64": 0}
MODES: dict[str, dict[str, int]] = {
    "x86_64": {
        "flush": 0x8040,  # results (FTZ) and inputs (DAZ)
        "upward": 0x4000,
        "toward zero": 0x6000,
        "unmasked": -0x0900 & 0xFFFF,  # subnormal operands and underflow raise SIGFPE
    },
    "aarch64": {"flush": 1 << 24, "upward": 1 << 22, "toward zero": 3 << 22},
}
MACHINE = platform.machine() if platform.libc_ver()[0] == "glibc" else ""
NAMES = list(MODES.get(MACHINE, ()))


def _environment() -> ctypes.Array[ctypes.c_char]:
    held = ctypes.create_string_buffer(64)
    assert ctypes.CDLL("libm.so.6").fegetenv(held) == 0
    return held


def control() -> int:
    """Return the control bits of this thread's mode, without the flags of past exceptions."""
    at = CONTROL[MACHINE]
    word = int.from_bytes(_environment().raw[at : at + 4], "little")
    return word & ~0x3F if MACHINE == "x86_64" else word


@contextmanager
def mode(name: str) -> Iterator[None]:
    """Run this thread in a mode of NAMES."""
    library, at = ctypes.CDLL("libm.so.6"), CONTROL[MACHINE]
    before, bits = _environment(), MODES[MACHINE][name]
    word = int.from_bytes(before.raw[at : at + 4], "little")
    changed = ctypes.create_string_buffer(before.raw, 64)
    changed[at : at + 4] = (word & bits if name == "unmasked" else word | bits).to_bytes(4, "little")
    library.fesetenv(changed)
    try:
        yield
    finally:
        library.fesetenv(before)
