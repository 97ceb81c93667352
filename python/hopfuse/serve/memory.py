"""Give freed memory back to the system.

By default glibc keeps memory that was freed, for each thread on its own, and keeps larger blocks the larger those are
that were freed before. A server whose requests differ then takes twice what it uses, and more with every thread.
"""

from __future__ import annotations

import ctypes
import os

#: Parameters of glibc's mallopt, by the variable with which an operator sets them: the number of places where threads
#: allocate, the bytes from which on a block is mapped alone, and given back when it is freed, and the free bytes at the
#: end of a place that are kept.
PARAMETERS = {
    "MALLOC_ARENA_MAX": (-8, 1),
    "MALLOC_MMAP_THRESHOLD_": (-3, 1 << 18),
    "MALLOC_TRIM_THRESHOLD_": (-1, 1 << 18),
}


def give_back_freed() -> None:
    """Let this process give freed memory back from now on; does nothing with another C library than glibc."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    for variable, (parameter, value) in PARAMETERS.items():
        if mallopt is not None and variable not in os.environ:
            mallopt(parameter, value)
