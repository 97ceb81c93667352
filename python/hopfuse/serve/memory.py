"""Let threads share what they freed.

glibc gives each thread a place of its own to allocate in, where what was freed stays: a server with a dozen threads,
whose requests differ, then takes twice what it uses.
"""

from __future__ import annotations

import ctypes
import os

#: Parameters of glibc's mallopt, by the variables with which an operator sets them: the number of places; the bytes
#: from which on a block is mapped alone; and the free bytes that stay at the end of a place. The last two are the
#: largest to which glibc raises them by itself: with one place, smaller ones would give memory back and ask for it
#: again in every call of NumPy.
PARAMETERS = {
    "MALLOC_ARENA_MAX": (-8, 1),
    "MALLOC_MMAP_THRESHOLD_": (-3, 1 << 25),
    "MALLOC_TRIM_THRESHOLD_": (-1, 1 << 26),
}
#: A variable that sets all of them.
TUNABLES = "GLIBC_TUNABLES"


def share_freed() -> None:
    """Let the threads of this process allocate in one place from now on; only glibc has several."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is None or TUNABLES in os.environ:
        return
    for variable, (parameter, value) in PARAMETERS.items():
        if variable not in os.environ:
            mallopt(parameter, value)
