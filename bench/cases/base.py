"""The interface of a benchmark case."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from ..settings import Settings
from ..traffic import Traffic


class Workload(ABC):
    """The inputs of a case, and the calls of hopfuse on them.

    Attributes
    ----------
    data : str
        Origin of the inputs.
    sizes : dict of str to int
    batches : tuple of int
        Numbers of queries per call; each is measured separately. Query b is the same in all of them.
    ops : tuple of str
        Operations whose kernel variants are recorded.
    threads : int
        Threads of hopfuse.
    calls : int
        Consecutive calls that are timed together if a single one is too short; rows have the time of one call.
    """

    data: str
    sizes: dict[str, int]
    batches: tuple[int, ...]
    ops: tuple[str, ...]
    threads: int
    calls: int = 1

    @abstractmethod
    def run(self, batch: int, turn: int) -> Any:
        """Return hopfuse's answer for the first ``batch`` queries, or for other queries in each turn."""

    @abstractmethod
    def check(self, batch: int, ours: Any) -> dict[str, Any]:
        """Compare the answer of turn 0 with the float64 oracle on some queries; return the result of :func:`proof`."""

    def compare(self, batch: int, ours: Any, theirs: Any) -> dict[str, Any]:
        """Compare a peer's answer with hopfuse's on the queries that the peer answered."""
        raise NotImplementedError

    def moved(self, batch: int, ours: Any) -> Traffic | None:
        """Return the bytes that a call moves, by formula, or None if there is no formula."""
        return None

    def task(self) -> dict[str, Any]:
        """Return the inputs as arrays and plain values, from which another version of hopfuse makes its objects."""
        raise NotImplementedError

    def beside(self) -> AbstractContextManager[None]:
        """Return a context in which turns are timed, for cases that run other programs meanwhile."""
        return nullcontext()

    def probe(self, batch: int, settings: Settings) -> dict[str, Any] | None:
        """Return further measurements of hopfuse: the seconds of one pass of a walk, and the bytes it moves."""
        return None

    def with_threads(self, threads: int) -> Workload:
        """Return the same inputs for another number of threads."""
        other = copy.copy(self)
        other.threads = threads
        return other

    def turns(self, batch: int, settings: Settings) -> int:
        """Return the number of repetitions for a batch size."""
        return settings.repeats


@dataclass(frozen=True)
class Case:
    """A case: its peers (none to measure hopfuse alone), how to load it, and its GPU peers.

    ``load`` raises UnavailableError if its data is absent.
    """

    peers: tuple[str, ...]
    load: Callable[[Settings], Workload]
    gpu_peers: tuple[str, ...] = ()
    #: Measured only if named on the command line.
    by_name: bool = False

    def beside(self, backend: str) -> tuple[str, ...]:
        """Return the peers for a backend."""
        return self.peers if backend == "cpu" else self.peers + self.gpu_peers


def proof(queries: int, error: float, tolerance: float) -> dict[str, Any]:
    """Return the result of a comparison, for the row."""
    return {"queries": queries, "error": float(f"{error:.3g}"), "tolerance": float(f"{tolerance:.3g}")}


def ends(batch: int) -> list[int]:
    """Return the queries of a batch that are checked: the first and the last."""
    return sorted({0, batch - 1})
