"""The validated arguments of each op, and the interface of backends that take them.

Calls are named tuples, which are immutable and cheaper to create than dataclasses. Their arrays are on the host or, if
``on_device``, on the device of the backend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .._arrays.rows import entries_of, indptr_of_counts
from ..errors import BackendError
from .node_weights import NodeWeightCall, NodeWeights

if TYPE_CHECKING:
    from ..types import Corpus, Graph, Incidence, LabelSets
    from ..types.candidates import CandidateTable

#: Suffixes of the names of dense kernels, by the precision of the vectors.
DENSE_SUFFIXES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}

#: An array on the host or on a device.
Array = Any
#: ids (B, width) int64, scores (B, width) float32 and counts (B,) int64.
ScoredList = tuple[Array, Array, Array]
#: The arrays of :class:`hopfuse.Hits`, by name.
HitArrays = dict[str, Array]


# ---- Personalized PageRank ---------------------------------------------------------------------------------------


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


class PassageSeedCall(NamedTuple):
    """Add hits to seeds, with the total weight ``mass``: see :func:`hopfuse.add_passage_seeds`."""

    node: Array  # (B, S) int64, -1 for none
    weight: Array  # (B, S) float64
    ids: Array  # (B, k) int64
    scores: Array  # (B, k) float32
    counts: Array  # (B,) int64
    mass: float
    on_device: bool = False


class EntitySeedCall(NamedTuple):
    """Add the entities of hits to seeds, with the share ``mass``: see :func:`hopfuse.add_entity_seeds`."""

    node: Array  # (B, S) int64, -1 for none
    weight: Array  # (B, S) float64
    ids: Array  # (B, k) int64
    counts: Array  # (B,) int64
    mentions: Incidence
    frequency: NDArray[np.int64]  # (N,) or (B, N), on the host
    mass: float
    on_device: bool = False


class CoverCall(NamedTuple):
    """Choose hits that cover the seeds: see :func:`hopfuse.cover_seeds`."""

    node: Array  # (B, S) int64, -1 for none
    weight: Array  # (B, S) float64
    ids: Array  # (B, W) int64
    scores: Array  # (B, W) float32
    counts: Array  # (B,) int64
    mentions: Incidence
    k: int  # from 1 to W, or 0 if W is 0
    least: float
    on_device: bool = False


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


# ---- Dense top-k -------------------------------------------------------------------------------------------------


class RowFilter(NamedTuple):
    """A filter of rows: a mask (N,) or (B, N), or ascending ids in CSR rows, of which a shared filter has one."""

    mask: Array | None = None  # uint8
    indptr: Array | None = None  # int64
    ids: Array | None = None  # int64
    shared: bool = True

    def masks(self, n: int) -> NDArray[np.bool_]:
        """Return one mask for all queries, (1, N), or one per query, (B, N)."""
        if self.mask is not None:
            return np.atleast_2d(self.mask.view(np.bool_))
        assert self.indptr is not None
        masks = np.zeros((self.indptr.size - 1, n), np.bool_)
        masks[np.repeat(np.arange(len(masks)), np.diff(self.indptr)), self.ids] = True
        return masks

    def max_rows(self, n: int) -> int:
        """Return the most rows that a query may use."""
        return n if self.indptr is None else int(np.diff(self.indptr).max(initial=0))

    def total(self, queries: int, n: int) -> int:
        """Return the number of allowed rows, summed over the queries."""
        each = queries if self.shared else 1
        if self.indptr is not None:
            return each * int(self.indptr[-1])
        return each * int(np.count_nonzero(self.mask)) if self.mask is not None else queries * n

    def of(self, queries: NDArray[np.int64]) -> RowFilter:
        """Return the filter of a subset of the queries."""
        if self.shared:
            return self
        if self.mask is not None:
            return self._replace(mask=np.ascontiguousarray(self.mask[queries]))
        assert self.indptr is not None
        assert self.ids is not None
        ids, counts = entries_of(self.indptr, self.ids, queries)
        return self._replace(indptr=indptr_of_counts(counts), ids=ids)


class DenseCall(NamedTuple):
    """Find the k best allowed rows of a corpus for each query; ``allow`` is on the host.

    If not ``is_checked``, the corpus wraps an array for this call only: its codes are not worth keeping, and the
    backend checks its values.
    """

    queries: Array  # (B, d) float32
    corpus: Corpus
    k: int
    allow: RowFilter
    threads: int
    on_device: bool = False
    is_checked: bool = True


class SimilarityCall(NamedTuple):
    """Weigh all vectors by their cosines (kernels/include/hopfuse/similarity.h); ``allow`` is on the host."""

    queries: Array  # (B, d) float32
    corpus: Corpus
    tau: float
    floor: float
    allow: RowFilter
    threads: int
    on_device: bool = False


class BoostCall(NamedTuple):
    """Boost the weights of hits: see :func:`hopfuse.boost_weights`."""

    weights: Array  # (B, N) float32
    ids: Array  # (B, k) int64
    scores: Array  # (B, k) float32
    counts: Array  # (B,) int64
    strength: float
    on_device: bool = False


# ---- Calibration and fusion --------------------------------------------------------------------------------------


#: Numbers and float32 arrays on the host, by the names of the fields of a kernel's struct.
KernelOptions = dict[str, float | NDArray[np.float32]]


class CalibrateCall(NamedTuple):
    """Calibrate one list."""

    scores: Array  # (B, k) float32
    counts: Array  # (B,) int64
    method: str
    ties: str
    option: KernelOptions  # fields of CalibrationRule in kernels/include/hopfuse/calibrate.h
    threads: int
    on_device: bool = False


class FuseCall(NamedTuple):
    """Fuse L lists; everything but the lists is on the host."""

    lists: list[ScoredList]
    method: str
    calibration: str
    ties: str
    calibration_option: KernelOptions
    pools: NDArray[np.int64]  # (L,) the most hits to use of each list
    option: KernelOptions  # fields of FusionOptions in kernels/include/hopfuse/fusion/entry.h
    weights: NDArray[np.float32]  # (L,) or (B, L)
    consensus: float
    prior: NDArray[np.float32]  # factors by id; empty: all are 1
    k: int
    threads: int
    on_device: bool = False


class IsingModel(NamedTuple):
    """The checked parameters of kernels/include/hopfuse/ising.h."""

    coupling: float
    temperature: float
    relaxation: float
    steps: int
    blend: float


class IsingCall(NamedTuple):
    """Rerank candidates by their mean field."""

    graph: Graph
    hits: ScoredList
    model: IsingModel
    k: int
    threads: int
    on_device: bool = False


# ---- Labels and projection ---------------------------------------------------------------------------------------


class DiceCall(NamedTuple):
    """Score texts with their candidates, always on the host; text b has candidates indptr[b] .. indptr[b + 1] - 1."""

    labels: LabelSets
    query_indptr: NDArray[np.int64]
    query_units: NDArray[np.int32]
    candidates: NDArray[np.int32]  # (Z, P)
    indptr: NDArray[np.int64]  # (B + 1,)
    threads: int


class ProjectCall(NamedTuple):
    """Project scores of columns onto rows, of which the k best may be selected; ``scale`` is on the host."""

    incidence: Incidence
    scores: Array  # (B, N) float32
    scale: NDArray[np.float32] | None
    k: int
    threads: int
    on_device: bool = False


# ---- Backends -----------------------------------------------------------------------------------------------------


class Backend(Protocol):
    """The ops of a backend; results are where the arrays of the call are. The module :mod:`.cpu` implements it."""

    unusable: BackendError | None

    @property
    def device(self) -> Any:
        """The backend itself if it also takes arrays on a device, else None."""
        ...

    def explain(self) -> dict[str, Any]: ...
    def ppr(self, graph: Graph, queries: PprQueries, scores: Array) -> Evidence: ...
    def ppr_topk(self, graph: Graph, queries: PprQueries, ranking: NodeRanking) -> tuple[HitArrays, Evidence]: ...
    def add_entity_seeds(self, call: EntitySeedCall) -> tuple[Array, Array]: ...
    def add_passage_seeds(self, call: PassageSeedCall) -> tuple[Array, Array]: ...
    def cover_seeds(self, call: CoverCall) -> HitArrays: ...
    def order_weights(self, call: NodeWeightCall) -> NodeWeights: ...
    def dense_topk(self, call: DenseCall) -> HitArrays: ...
    def similarity_weights(self, call: SimilarityCall) -> Array: ...
    def boost_weights(self, call: BoostCall) -> Array: ...
    def calibrate(self, call: CalibrateCall) -> Array: ...
    def fuse(self, call: FuseCall) -> HitArrays: ...
    def ising(self, call: IsingCall) -> HitArrays: ...
    def dice(self, call: DiceCall) -> Array: ...
    def project(self, call: ProjectCall) -> Array: ...
    def project_topk(self, call: ProjectCall) -> HitArrays: ...
