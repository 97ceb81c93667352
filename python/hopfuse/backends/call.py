"""The interface of a call, which knows how it runs on the host and on a device, and of what runs it.

The calls of an operation stand in a file of :mod:`.calls`: their validated arguments, what they run on the host and on
a device, and cases of the self-test. Calls are named tuples, which are immutable and cheaper to create than
dataclasses. Their arrays are on the host or, if ``on_device``, on the device of the backend.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import BackendError

#: An array on the host or on a device.
Array = Any
#: ids (B, width) int64, scores (B, width) float32 and counts (B,) int64.
ScoredList = tuple[Array, Array, Array]
#: The arrays of :class:`hopfuse.Hits`, by name.
HitArrays = dict[str, Array]

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Call(Protocol[R_co]):
    """The validated arguments of an operation; its results are where its arrays are, with the same bits everywhere."""

    def run_on_host(self) -> R_co: ...

    def run_on_device(self, device: Any) -> R_co:
        """Run on a device, a :class:`.cuda.DeviceOps`, to which arrays of the host are copied."""
        ...


class Backend(Protocol):
    """Interface of a backend, which the module :mod:`.cpu` and :class:`.cuda.DeviceOps` implement."""

    unusable: BackendError | None

    @property
    def device(self) -> Any:
        """The backend itself if it also takes arrays on a device, else None."""
        ...

    def explain(self) -> dict[str, Any]: ...
    def run(self, call: Call[R], /) -> R: ...


Answer = list[NDArray[Any]]


class Case(NamedTuple):
    """A small, seeded case of the self-test; ``is_quick`` if the first use of a device runs it."""

    name: str
    run: Callable[[Backend], Answer]
    is_quick: bool = False


def hits_of(found: HitArrays) -> Answer:
    """Return the arrays of hits as an answer of a case."""
    return [found["ids"], found["scores"], found["counts"]]


def empty_hits(batch: int, k: int) -> HitArrays:
    """Allocate hits on the host, under the names of the bindings' arguments."""
    return {
        "out_ids": np.empty((batch, k), np.int64),
        "out_scores": np.empty((batch, k), np.float32),
        "out_counts": np.zeros(batch, np.int64),
    }


def named(hits: HitArrays) -> HitArrays:
    """Return hits that a binding has filled under their own names."""
    return {"ids": hits["out_ids"], "scores": hits["out_scores"], "counts": hits["out_counts"]}
