"""A full device: calls say so, and work again when there is room. Memory that only caches hold is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np

from ..card import BACKEND, free_bytes, require_card
from ..journal import FailedError, Journal
from ..search import DIM, Search, same
from ..sizes import Sizes

#: A device gives memory in pieces of 2 MiB: what is left of a full one is less, and the corpus needs more.
LEAST, ROWS = 2**21, 2**17
NO_ROOM = "no room"


def run(journal: Journal, sizes: Sizes, folder: Path) -> str:
    """Fill the memory, search, empty it, search: eagerly and by a new recording."""
    cupy, search = require_card(), Search()
    corpus = hf.Corpus.from_array(np.random.default_rng(2).standard_normal((ROWS, DIM)).astype(np.float32))
    questions = search.questions(2)

    def eager(backend: str = BACKEND) -> Any:
        hits = hf.dense_topk(questions[0], corpus, 10, backend=backend)
        return hits.ids, hits.scores

    def recorded(backend: str = BACKEND) -> Any:
        return search.captured(backend)(*questions)

    free: list[int] = []
    for _ in range(sizes.shortages):
        for name, ask in (("a call", eager), ("a recording", recorded)):
            expected = ask("cpu")
            said = refusal(cupy, ask)
            journal.note(**{name: said})
            if NO_ROOM not in said:
                raise FailedError(f"{name} on a full device: {said}")
            for filled in (False, True):
                cached = fill(cupy.cuda.alloc, cupy) if filled else []
                del cached  # the pool has it now, and the device has none
                if not same(ask(), expected):
                    raise FailedError(f"{name} differs from the CPU after a shortage")
            search.release()
            hf.free_device_memory(corpus, backend=BACKEND)
        free.append(free_bytes(cupy))
        journal.note(free_bytes=free)
    return f"{sizes.shortages} shortages were refused and outlived; {free[0] - free[-1]:,} bytes were lost on the way"


def refusal(cupy: Any, ask: Callable[[], Any]) -> str:
    """Return what a full device says to a call; what it is full of is gone afterwards."""
    free_bytes(cupy)
    held = fill(cupy.cuda.Memory, cupy)
    try:
        ask()
    except hf.errors.BackendError as error:
        return str(error)
    finally:
        held.clear()
    return "it was answered"


def fill(allocate: Callable[[int], Any], cupy: Any) -> list[Any]:
    """Take all memory but less than the least piece."""
    held, size = [], int(cupy.cuda.Device().mem_info[0])
    while size >= LEAST:
        try:
            held.append(allocate(size))
        except (MemoryError, cupy.cuda.runtime.CUDARuntimeError):
            size //= 2
    return held
