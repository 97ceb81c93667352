"""How much memory an index's arrays take, and a search beside them."""

from __future__ import annotations

import resource
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

from .. import Index

MEASURED = (
    "Arrays: all of the index but its texts and names, as stored. Peak: what Python and NumPy allocate at most during "
    "the search of a batch (tracemalloc). Process: its largest resident set, with the kernels' workspaces."
)


def array_bytes(index: Index) -> int:
    """Of the sections that hold numbers: vectors, graph, facts and words, without the strings."""
    sections = index.info()["sections"].items()
    return sum(int(s["bytes"]) for name, s in sections if not name.endswith((".offsets", ".bytes")))


def search_peak(search: Callable[[], Any]) -> int:
    """Bytes that Python and NumPy have at most during a call, beyond what they had before.

    Examples
    --------
    >>> import numpy as np
    >>> 8_000_000 <= search_peak(lambda: np.zeros(1_000_000)) < 8_100_000
    True
    """
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        search()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def process_peak() -> int:
    """The process's largest resident set in bytes; Linux counts in KiB, macOS in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
