"""The calls of the ops, built and checked once, and the backends that take them.

Named tuples: frozen, and cheaper to make than dataclasses. Their arrays are on the host or, where a call is
``on_device``, on the device of the backend that gets it.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..types import Corpus, Graph, Incidence, LabelSets
from .node_weights import NodeWeights

#: How names of dense kernels say the precision of the originals.
DENSE_SUFFIXES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}
#: What is wrong with a query whose projection overflows.
SUM_BEYOND = "query {row} has a sum beyond float32; scale its scores down"

#: An array on the host or on a device.
Array = Any
#: ids (B, width) int64, scores (B, width) float32 and counts (B,) int64.
ScoredList = tuple[Array, Array, Array]
#: Arrays of :class:`hopfuse.Hits` by their names.
HitArrays = dict[str, Array]


# ---- Personalized PageRank ---------------------------------------------------------------------------------------


class DeviceSeeds(NamedTuple):
    """Restarts on a device, not yet read: (B, S) node ids of the caller, int64, -1 for none, and float64 weights."""

    node: Array
    weight: Array
    may_be_empty: bool  # a query without seeds gets no hits; otherwise it is an error


class PprQueries(NamedTuple):
    """A batch of restarts by internal node, with the options of each query.

    With ``seeds`` the restarts are there, on the device; ``indptr``, ``node`` and ``value`` are empty.
    """

    indptr: NDArray[np.int64]
    node: NDArray[np.int32]
    value: NDArray[np.float64]
    damping: NDArray[np.float64]
    edge_type_weights: NDArray[np.float64] | None
    per_type: bool
    allow: NDArray[np.uint8] | None
    tol: float
    max_iter: int
    threads: int
    seeds: DeviceSeeds | None = None
    node_weights: NodeWeights | None = None

    @property
    def on_device(self) -> bool:
        return self.seeds is not None

    def take(self, rows: NDArray[np.int64]) -> PprQueries:
        """Return some queries of the batch, in order."""
        if rows.size == self.damping.size:
            return self
        length = np.diff(self.indptr)[rows]
        indptr = np.zeros(rows.size + 1, np.int64)
        np.cumsum(length, out=indptr[1:])
        at = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], length)
        return self.options_of(rows)._replace(indptr=indptr, node=self.node[at], value=self.value[at])

    def options_of(self, rows: NDArray[np.int64]) -> PprQueries:
        """Return the options of some queries, with the restarts of all."""
        return self._replace(
            damping=self.damping[rows],
            edge_type_weights=None if self.edge_type_weights is None else self.edge_type_weights[rows],
            allow=self.allow if self.allow is None or self.allow.shape[0] == 1 else self.allow[rows],
            node_weights=None if self.node_weights is None else self.node_weights.take(rows),
        )


class SeedCall(NamedTuple):
    """Seeds (B, S) to which a list's k hits are added with so much mass: the restarts of :class:`hopfuse.Seeds`."""

    node: Array  # (B, S) int64, -1 for none
    weight: Array  # (B, S) float64
    ids: Array  # (B, k) int64
    scores: Array  # (B, k) float32
    counts: Array  # (B,) int64
    mass: float
    on_device: bool = False


class EntitySeedCall(NamedTuple):
    """Seeds (B, S) beside which the nodes that a list's k hits hold get ``mass`` of the restart."""

    node: Array  # (B, S) int64, -1 for none
    weight: Array  # (B, S) float64
    ids: Array  # (B, k) int64
    counts: Array  # (B,) int64
    mentions: Incidence
    frequency: NDArray[np.int64]  # (N,) or (B, N), on the host
    mass: float
    on_device: bool = False


class NodeRanking(NamedTuple):
    """The nodes that a walk's hits are taken from, as internal nodes (None: all), and how many."""

    k: int
    candidates: NDArray[np.int32] | None = None
    stop_when_proven: bool = False
    prove_order: bool = True  # or else the set alone


class Evidence(NamedTuple):
    """The end of each query's walk, (B,)."""

    iterations: Array  # int64
    residual: Array  # float64
    bound: Array  # float64
    converged: Array  # uint8

    @classmethod
    def empty(cls, batch: int) -> Evidence:
        """Return the evidence of walks that took no pass."""
        evidence = cls.room(batch)
        for array, value in zip(evidence, (0, 0.0, 0.0, 1), strict=True):
            array.fill(value)
        return evidence

    @classmethod
    def room(cls, batch: int) -> Evidence:
        """Return room for the evidence of so many walks."""
        return cls(np.empty(batch, np.int64), np.empty(batch), np.empty(batch), np.empty(batch, np.uint8))


# ---- Dense top-k -------------------------------------------------------------------------------------------------


class RowFilter(NamedTuple):
    """Rows that may be hits: a mask (N,) or (B, N), or ascending ids in CSR rows, a single row where it is shared."""

    mask: Array | None = None  # uint8
    indptr: Array | None = None  # int64
    ids: Array | None = None  # int64
    shared: bool = True

    def masks(self, n: int) -> NDArray[np.bool_]:
        """Return a mask for all queries, (1, N), or one for each, (B, N)."""
        if self.mask is not None:
            return np.atleast_2d(self.mask.view(np.bool_))
        assert self.indptr is not None
        masks = np.zeros((self.indptr.size - 1, n), np.bool_)
        masks[np.repeat(np.arange(len(masks)), np.diff(self.indptr)), self.ids] = True
        return masks

    def max_rows(self, n: int) -> int:
        """Return how many of n rows the least restricted query may have."""
        return n if self.indptr is None else int(np.diff(self.indptr).max(initial=0))

    def total(self, queries: int, n: int) -> int:
        """Return the allowed rows of so many queries together."""
        each = queries if self.shared else 1
        if self.indptr is not None:
            return each * int(self.indptr[-1])
        return each * int(np.count_nonzero(self.mask)) if self.mask is not None else queries * n

    def of(self, queries: NDArray[np.int64]) -> RowFilter:
        """Return the part that concerns some queries."""
        if self.shared:
            return self
        if self.mask is not None:
            return self._replace(mask=np.ascontiguousarray(self.mask[queries]))
        assert self.indptr is not None
        assert self.ids is not None
        lists = [self.ids[self.indptr[b] : self.indptr[b + 1]] for b in queries]
        indptr = np.zeros(queries.size + 1, np.int64)
        np.cumsum([part.size for part in lists], out=indptr[1:])
        return self._replace(indptr=indptr, ids=np.concatenate(lists))


class DenseCall(NamedTuple):
    """The k best rows of a corpus for each query, of those that are allowed; ``allow`` is on the host.

    A corpus that is not checked is an array for this one call: its codes are worth nothing after it, and whoever
    answers looks at its values.
    """

    queries: Array  # (B, d) float32
    corpus: Corpus
    k: int
    allow: RowFilter
    threads: int
    on_device: bool = False
    is_checked: bool = True


class SimilarityCall(NamedTuple):
    """Weights of all vectors by their cosines: kernels/include/hopfuse/similarity.h; ``allow`` is on the host."""

    queries: Array  # (B, d) float32
    corpus: Corpus
    tau: float
    floor: float
    allow: RowFilter
    threads: int
    on_device: bool = False


class BoostCall(NamedTuple):
    """Weights in which those of a list's k hits are raised by up to so much: kernels/cuda/boost_weights_f32.cu."""

    weights: Array  # (B, N) float32
    ids: Array  # (B, k) int64
    scores: Array  # (B, k) float32
    counts: Array  # (B,) int64
    strength: float
    on_device: bool = False


# ---- Calibration and fusion --------------------------------------------------------------------------------------


class CalibrateCall(NamedTuple):
    """One list's calibration; ``option`` as kernels/include/hopfuse/calibrate.h has it, on the host."""

    scores: Array  # (B, k) float32
    counts: Array  # (B,) int64
    method: str
    ties: str
    option: NDArray[np.float32]
    threads: int
    on_device: bool = False


class FuseCall(NamedTuple):
    """The k best documents of the union of L lists; all but the lists is on the host."""

    lists: list[ScoredList]
    method: str
    calibration: str
    ties: str
    calibration_option: NDArray[np.float32]
    pools: NDArray[np.int64]  # (L,) hits taken of each list
    option: NDArray[np.float32]  # kernels/include/hopfuse/fusion/
    weights: NDArray[np.float32]  # (L,) or (B, L)
    consensus: float
    prior: NDArray[np.float32]  # factors by id; empty: all are 1
    k: int
    threads: int
    on_device: bool = False


class IsingModel(NamedTuple):
    """kernels/include/hopfuse/ising.h, checked."""

    coupling: float
    temperature: float
    relaxation: float
    steps: int
    blend: float


class IsingCall(NamedTuple):
    """The k best candidates of each query by their mean field."""

    graph: Graph
    hits: ScoredList
    model: IsingModel
    k: int
    threads: int
    on_device: bool = False


# ---- Labels and projection ---------------------------------------------------------------------------------------


class DiceCall(NamedTuple):
    """Scores of texts with their candidates, always on the host; text b has candidates indptr[b] .. indptr[b + 1]."""

    labels: LabelSets
    query_indptr: NDArray[np.int64]
    query_units: NDArray[np.int32]
    candidates: NDArray[np.int32]  # (Z, P)
    indptr: NDArray[np.int64]  # (B + 1,)
    threads: int


class ProjectCall(NamedTuple):
    """Scores of an incidence's rows, or the k best of them, from those of its columns; ``scale`` is on the host."""

    incidence: Incidence
    scores: Array  # (B, N) float32
    scale: NDArray[np.float32] | None
    k: int
    threads: int
    on_device: bool = False


# ---- Backends -----------------------------------------------------------------------------------------------------


class Backend(Protocol):
    """The ops of a backend: a checked call in, arrays out where the call's are. The module :mod:`.cpu` is one."""

    unusable_reason: str | None

    @property
    def device(self) -> Any:
        """Return the backend itself where it also takes arrays on a device; None where it takes the host's alone."""
        ...

    def explain(self) -> dict[str, Any]: ...
    def ppr(self, graph: Graph, queries: PprQueries, scores: Array) -> Evidence: ...
    def ppr_topk(self, graph: Graph, queries: PprQueries, ranking: NodeRanking) -> tuple[HitArrays, Evidence]: ...
    def add_entity_seeds(self, call: EntitySeedCall) -> tuple[Array, Array]: ...
    def add_passage_seeds(self, call: SeedCall) -> tuple[Array, Array]: ...
    def dense_topk(self, call: DenseCall) -> HitArrays: ...
    def similarity_weights(self, call: SimilarityCall) -> Array: ...
    def boost_weights(self, call: BoostCall) -> Array: ...
    def calibrate(self, call: CalibrateCall) -> Array: ...
    def fuse(self, call: FuseCall) -> HitArrays: ...
    def ising(self, call: IsingCall) -> HitArrays: ...
    def dice(self, call: DiceCall) -> Array: ...
    def project(self, call: ProjectCall) -> Array: ...
    def project_topk(self, call: ProjectCall) -> HitArrays: ...
