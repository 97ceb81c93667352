"""Device memory is full: calls raise an error, and work again once there is room."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np

from ..card import BACKEND, Card, require_card
from ..journal import FailedError, Journal
from ..search import DIM, Search, same
from ..sizes import Sizes

#: The granularity of device memory, 2 MiB, which is left at most on a full device; the corpus needs more.
LEAST, ROWS = 2**21, 2**17


def run(journal: Journal, sizes: Sizes, folder: Path) -> str:
    """Fill the memory, search, release it, search again: eagerly, and with a new recording."""
    card, search = require_card(), Search()
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
            error = refusal(card, ask)
            journal.note(**{name: error})
            if not same(ask(), expected):
                raise FailedError(f"{name} differs from the CPU after a shortage")
            search.release()
            hf.free_device_memory(corpus, backend=BACKEND)
        free.append(card.free_bytes())
        journal.note(free_bytes=free)
    return f"calls recovered from {sizes.shortages} shortages; {free[0] - free[-1]:,} bytes leaked"


def refusal(card: Card, ask: Callable[[], Any]) -> str:
    """Return the error of a call on a full device, and release the memory again; other errors are raised."""
    held = card.fill(LEAST)
    try:
        ask()
    except hf.errors.DeviceMemoryError as error:
        return str(error)
    finally:
        card.release(held)
    raise FailedError("a call on a full device raised no error")
