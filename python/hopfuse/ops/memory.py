"""Memory of a device: how much graphs and corpora will take, and giving it back."""

from __future__ import annotations

from dataclasses import dataclass

from .._validation import check_whole
from ..backends import placement
from ..errors import InputError
from ..types import Corpus, Graph, Incidence, LabelSets

MOST = 2**24
"""Queries, hits and seeds beyond which an estimate would itself take memory."""


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes on a device, and what the host has of a corpus.

    Attributes
    ----------
    graph, corpus : int
        Stay on the device from the first call until :func:`free_device_memory`, or as long as the object lives; of a
        corpus, the originals in their own precision, whatever its storage.
    workspace : int
        The most that a call takes beside, and gives back to the pool at its end.
    host_vectors : int
        The originals of the corpus in the host's memory: 0 where they are in a mapped file, whose pages the system
        keeps while it has room.
    host_codes : int
        The 8-bit codes of the corpus with their bounds, in the host's memory whatever its storage: from
        ``Corpus.from_array`` on, or, of an index's, from the first search on the CPU on.
    """

    graph: int
    corpus: int
    workspace: int
    host_vectors: int
    host_codes: int

    @property
    def total(self) -> int:
        """All of it on the device at once."""
        return self.graph + self.corpus + self.workspace


def estimate_device_memory(
    graph: Graph | None = None, corpus: Corpus | None = None, *, batch: int = 32, k: int = 100, seeds: int = 8
) -> MemoryEstimate:
    """Estimate what a graph, a corpus and searches of them take on a GPU, and a corpus on the host. Needs no GPU.

    The calls are gone through without a device, and their allocations counted; what cuBLAS takes for itself and what
    the pool cannot use again is not in it.

    Parameters
    ----------
    graph, corpus : Graph, Corpus, optional
    batch, k, seeds : int
        Queries of a call, hits and seeds of each.

    Returns
    -------
    MemoryEstimate

    Raises
    ------
    InputError
        Neither a graph nor a corpus, or numbers below 1.

    Examples
    --------
    >>> import numpy as np, hopfuse as hf
    >>> corpus = hf.Corpus.from_array(np.zeros((10_000, 384), np.float32))
    >>> estimate = hf.estimate_device_memory(corpus=corpus)
    >>> estimate.corpus, estimate.host_vectors, estimate.host_codes
    (15400448, 15360000, 4069696)
    """
    asked = {"batch": batch, "k": k, "seeds": seeds}
    if graph is None and corpus is None:
        raise InputError("estimate_device_memory needs a graph, a corpus or both")
    for name, held, kind in (("graph", graph, Graph), ("corpus", corpus, Corpus)):
        if held is not None and not isinstance(held, kind):
            raise InputError(f"{name} is a {type(held).__name__}; it must be a {kind.__name__}")
    numbers = {name: check_whole(number, name, MOST) for name, number in asked.items()}
    return MemoryEstimate(**placement.estimate(graph, corpus, **numbers), **placement.on_host(corpus))


def free_device_memory(held: Graph | Corpus | LabelSets | Incidence, *, backend: str = "auto") -> None:
    """Free what a graph, corpus, label sets or an incidence have on a device now; the next call there uploads it again.

    A captured core that reads it keeps it until the core itself is dropped. On the CPU nothing happens.

    Parameters
    ----------
    held : Graph, Corpus, LabelSets or Incidence
    backend : {"auto", "cpu", "cuda"}

    Examples
    --------
    >>> import hopfuse as hf
    >>> hf.free_device_memory(hf.Graph.from_edges([0], [1]))
    """
    if not isinstance(held, Graph | Corpus | LabelSets | Incidence):
        raise InputError(
            f"free_device_memory takes a Graph, a Corpus, LabelSets or an Incidence, not a {type(held).__name__}"
        )
    device = placement.device_of(backend)
    if device is not None:
        placement.release(device, held)
