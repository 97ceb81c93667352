"""What a case is."""

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
    """The loaded inputs of a case, and hopfuse's side of it.

    Attributes
    ----------
    data : str
        Where the inputs come from.
    sizes : dict of str to int
    batches : tuple of int
        Numbers of queries in a call; each is measured by itself. Query b is the same in all of them.
    ops : tuple of str
        Operations whose kernel variants the rows name.
    threads : int
        That hopfuse may use.
    calls : int
        Calls one after the other that are timed together, where one is too short to be; rows have the time of one.
    """

    data: str
    sizes: dict[str, int]
    batches: tuple[int, ...]
    ops: tuple[str, ...]
    threads: int
    calls: int = 1

    @abstractmethod
    def run(self, batch: int, turn: int) -> Any:
        """hopfuse's answer for the first ``batch`` queries (or another ``batch`` in each turn)."""

    @abstractmethod
    def check(self, batch: int, ours: Any) -> dict[str, Any]:
        """The gate: turn 0's answer against the float64 oracle on some queries -> queries, error, tolerance."""

    def compare(self, batch: int, ours: Any, theirs: Any) -> dict[str, Any]:
        """The gate for a peer: its answer against hopfuse's, on the queries it answered."""
        raise NotImplementedError

    def moved(self, batch: int, ours: Any) -> Traffic | None:
        """What the call moved, by formula; None where there is none."""
        return None

    def task(self) -> dict[str, Any]:
        """The inputs as arrays and plain values: what another version of hopfuse makes its own objects of."""
        raise NotImplementedError

    def beside(self) -> AbstractContextManager[None]:
        """Run other programs while turns are timed: none, unless a case says so."""
        return nullcontext()

    def probe(self, batch: int, settings: Settings) -> dict[str, Any] | None:
        """What is measured besides, of hopfuse alone: the seconds of one ``pass`` of a walk, and what it moves."""
        return None

    def with_threads(self, threads: int) -> Workload:
        """The same inputs for another number of threads."""
        other = copy.copy(self)
        other.threads = threads
        return other

    def turns(self, batch: int, settings: Settings) -> int:
        """Repetitions of a batch size."""
        return settings.repeats


@dataclass(frozen=True)
class Case:
    """A case: the peers it is measured beside (none: hopfuse alone), those of them on a GPU, and how to load it.

    ``load`` raises UnavailableError where its data is absent.
    """

    peers: tuple[str, ...]
    load: Callable[[Settings], Workload]
    gpu_peers: tuple[str, ...] = ()
    #: Only measured where it is asked for by its name.
    by_name: bool = False

    def beside(self, backend: str) -> tuple[str, ...]:
        """The peers to measure beside hopfuse on a backend."""
        return self.peers if backend == "cpu" else self.peers + self.gpu_peers


def proof(queries: int, error: float, tolerance: float) -> dict[str, Any]:
    """What a gate found, for the row."""
    return {"queries": queries, "error": float(f"{error:.3g}"), "tolerance": float(f"{tolerance:.3g}")}


def ends(batch: int) -> list[int]:
    """The sample of a batch: its first and its last query."""
    return sorted({0, batch - 1})
