"""Concurrent calls from Python threads, as in a server."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import hopfuse as hf
import numpy as np

from ..settings import Settings
from .ppr import Ppr

#: Python threads, each of which calls with ``threads=1``.
CALLERS = 8


class PythonThreads(Ppr):
    """The queries of ``Ppr``, each in its own call from one of eight Python threads."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(replace(settings, threads=1), batches=(CALLERS,))
        self.threads, self.pool = CALLERS, ThreadPoolExecutor(CALLERS)

    def run(self, batch: int, turn: int) -> Any:
        answers = list((map if self.threads == 1 else self.pool.map)(self.ask, range(batch)))
        parts = ("scores", "iterations", "residual", "bound", "converged")
        return hf.PprResult(*(np.concatenate([getattr(answer, part) for answer in answers]) for part in parts))

    def ask(self, query: int) -> hf.PprResult:
        """Return the answer to one query, computed on the calling thread."""
        return hf.ppr(self.graph, [self.restarts[query]], damping=self.damping, tol=self.tol, threads=1)
