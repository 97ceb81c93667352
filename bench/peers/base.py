"""The interface of a peer: another library that answers the queries of a case."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import Any, ClassVar

from ..cases.base import Workload

#: Threads that a peer runs on: those that it is given, one only, all for a product and one for the rest, or as many as
#: it chooses.
ALL, ONE, MIXED, CHOSEN = "all", "one", "mixed", "chosen"
#: Where the batched walks stop, which power_iteration computes.
SAME_TEST = "float32, an L1 residual of (1 − d) · 10⁻⁶"


class Peer(ABC):
    """An adapter of a library. ``run`` is timed, ``__init__`` is not.

    Attributes
    ----------
    packages : tuple of str
        Distributions whose versions are recorded.
    modules : tuple of str
        Modules that must be importable, else the peer is skipped.
    remark : str
        A note for readers of the timing.
    runs_on : str
        ``ALL``, ``ONE``, ``MIXED`` or ``CHOSEN``.
    stops : str
        For walks: the arithmetic, and where the peer stops.
    own : bool
        Whether this is hopfuse itself, in another form, and no other library.
    """

    packages: ClassVar[tuple[str, ...]] = ()
    modules: ClassVar[tuple[str, ...]] = ()
    remark: ClassVar[str] = ""
    runs_on: ClassVar[str] = ALL
    stops: ClassVar[str] = ""
    own: ClassVar[bool] = False

    @classmethod
    def require(cls) -> None:
        """Raise ImportError if a module is absent."""
        for module in cls.modules:
            import_module(module)

    @abstractmethod
    def __init__(self, workload: Workload, threads: int) -> None: ...

    @abstractmethod
    def run(self, batch: int) -> Any:
        """Return the peer's answer for the first ``timed_queries(batch)`` queries."""

    def answer(self, found: Any) -> Any:
        """Convert the result of ``run`` to what the case compares; not timed."""
        return found

    def timed_queries(self, batch: int) -> int:
        """Return the number of queries that are timed; times are scaled up to the whole batch."""
        return batch

    def note(self, batch: int) -> str:
        """Return ``remark``, and how the time was scaled."""
        timed = self.timed_queries(batch)
        scaled = "" if timed == batch else f"timed on {timed} of {batch} queries and scaled"
        return "; ".join(part for part in (self.remark, scaled) if part)
