"""What a peer is: another library that answers a case's queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import Any, ClassVar

from ..cases.base import Workload


class Peer(ABC):
    """An adapter. Whatever it builds once, in ``__init__``, is not timed; ``run`` is.

    Attributes
    ----------
    packages : tuple of str
        Distributions whose versions stand in the rows.
    modules : tuple of str
        What must be importable; the peer is reported as skipped where it is not.
    remark : str
        What a reader of the timing must know.
    """

    packages: ClassVar[tuple[str, ...]] = ()
    modules: ClassVar[tuple[str, ...]] = ()
    remark: ClassVar[str] = ""

    @classmethod
    def require(cls) -> None:
        """Raise ImportError where a module is absent."""
        for module in cls.modules:
            import_module(module)

    @abstractmethod
    def __init__(self, workload: Workload, threads: int) -> None: ...

    @abstractmethod
    def run(self, batch: int) -> Any:
        """The peer's answer for the first ``timed_queries(batch)`` queries."""

    def answer(self, found: Any) -> Any:
        """What the case compares, of what ``run`` gave; not timed."""
        return found

    def timed_queries(self, batch: int) -> int:
        """How many of a batch are timed (the first ones); times are scaled up to the whole batch."""
        return batch

    def note(self, batch: int) -> str:
        """``remark``, and how the time was scaled."""
        timed = self.timed_queries(batch)
        scaled = "" if timed == batch else f"timed on {timed} of {batch} queries and scaled"
        return "; ".join(part for part in (self.remark, scaled) if part)
