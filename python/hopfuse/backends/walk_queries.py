"""Batches of walks as backends take them, the selection of their hits, and their evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays.rows import entries_of, indptr_of_counts
from .call import Array, HitArrays
from .node_weights import NodeWeights

if TYPE_CHECKING:
    from ..types.candidates import CandidateTable


class DeviceSeeds(NamedTuple):
    """Restarts on a device, not yet checked."""

    node: Array  # (B, S) int64, the caller's ids; -1 is padding
    weight: Array  # (B, S) float64
    may_be_empty: bool  # whether a query without seeds gets no hits, instead of an error


class PprQueries(NamedTuple):
    """A batch of restarts by internal node, with the options of each query.

    If ``seeds`` is given, it holds the restarts, and ``indptr``, ``node`` and ``value`` are empty.
    """

    indptr: NDArray[np.int64]
    node: NDArray[np.int32]
    value: NDArray[np.float64]
    damping: NDArray[np.float64]
    edge_type_weights: NDArray[np.float64] | None = None
    per_type: bool = False
    allow: NDArray[np.uint8] | None = None
    tol: float = 1e-6
    max_iter: int = 0
    threads: int = 1
    seeds: DeviceSeeds | None = None
    node_weights: NodeWeights | None = None

    @property
    def on_device(self) -> bool:
        return self.seeds is not None

    @property
    def may_walk(self) -> NDArray[np.bool_]:
        """Return whether each query has seeds, (B,); on a device all may have some."""
        return np.ones(self.damping.size, np.bool_) if self.on_device else self.indptr[1:] > self.indptr[:-1]

    def take(self, rows: NDArray[np.int64]) -> PprQueries:
        """Return a subset of the batch; ``rows`` ascend."""
        if rows.size == self.damping.size:
            return self
        node, count = entries_of(self.indptr, self.node, rows)
        value, _ = entries_of(self.indptr, self.value, rows)
        return self.options_of(rows)._replace(indptr=indptr_of_counts(count), node=node, value=value)

    def options_of(self, rows: NDArray[np.int64]) -> PprQueries:
        """Return the options of a subset of the batch, with the restarts of all of it."""
        return self._replace(
            damping=self.damping[rows],
            edge_type_weights=None if self.edge_type_weights is None else self.edge_type_weights[rows],
            allow=self.allow if self.allow is None or self.allow.shape[0] == 1 else self.allow[rows],
            node_weights=None if self.node_weights is None else self.node_weights.take(rows),
        )


#: Stands for the restarts of queries that are yet to be read.
NO_RESTARTS = np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0)


class NodeRanking(NamedTuple):
    """The selection of the hits of walks."""

    k: int
    candidates: NDArray[np.int32] | None = None  # internal nodes; None: all
    stop_when_proven: bool = False
    prove_order: bool = True  # otherwise prove only the set
    walk: str = "passes"  # or "auto", "local", which only the CPU takes, with stop_when_proven
    among: CandidateTable | None = None  # the same candidates, if the caller has checked them


class Evidence(NamedTuple):
    """Iterations and error bound of each query's walk, (B,)."""

    iterations: Array  # int64
    residual: Array  # float64
    bound: Array  # float64
    converged: Array  # uint8

    @classmethod
    def empty(cls, batch: int) -> Evidence:
        """Return the evidence of walks without passes, which have converged."""
        return cls(np.zeros(batch, np.int64), np.zeros(batch), np.zeros(batch), np.ones(batch, np.uint8))

    @classmethod
    def uninitialised(cls, batch: int) -> Evidence:
        """Allocate the evidence of a batch."""
        return cls(np.empty(batch, np.int64), np.empty(batch), np.empty(batch), np.empty(batch, np.uint8))


def empty_ppr_hits(batch: int, k: int) -> HitArrays:
    """Allocate the lists of walks."""
    return {
        "ids": np.empty((batch, k), np.int64),
        "scores": np.empty((batch, k), np.float32),
        "counts": np.zeros(batch, np.int64),
        "score_bounds": np.empty((batch, k), np.float32),
        "proven": np.zeros(batch, np.uint8),
    }
