"""CPU kernels: arrays in, arrays out. Used by hopfuse.backends only."""

from collections.abc import Sequence
from typing import Annotated

import numpy
from numpy.typing import NDArray


def built_isas() -> list[str]:
    """Variants in this build, best first."""

def runnable_isas() -> list[str]:
    """Variants that this machine can run, best first."""

def refused_isas() -> list[str]:
    """
    Variants whose instructions this machine says it has, but which give wrong sums on it.
    """

def isa() -> str:
    """The variant that calls use."""

def isa_of(op: str) -> str:
    """The instruction set that the chosen variant runs an operation on."""

def use_isa(isa: str) -> bool:
    """Choose the variant; False where it cannot run here."""

def environment(name: str) -> str | None:
    """
    A variable of the environment, or None; in a fraction of the time that os.environ takes.
    """

def idle_workspace_bytes() -> int:
    """Bytes held for reuse by later calls."""

def pool_size() -> int:
    """Threads that the pool has started in this process."""

def release_workspaces() -> None:
    """Give the idle workspaces back to the system."""

class Token:
    """The native part of hopfuse.CancelToken."""

    def __init__(self) -> None: ...

    def cancel(self) -> None: ...

    def is_cancelled(self) -> bool: ...

class Scope:
    """A token in use, inside another scope or None."""

    def __init__(self, token: object, outer: object | None) -> None: ...

def use_scopes(current: object, raise_cancelled: object) -> None:
    """
    Take the function that returns the scope of a context, and the one that raises if a call is cancelled.
    """

def check_cancelled() -> None:
    """Raise for a signal, or if a token of the current context is cancelled."""

RESTART_OUTSIDE: int = 1

RESTART_BAD_WEIGHT: int = 2

RESTART_EMPTY_ROW: int = 3

RESTART_SUM_BEYOND: int = 4

def read_restarts(indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], node: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], internal_of: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], may_be_empty: bool, out_indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], out_node: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu')], out_weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')]) -> tuple | None:
    """
    Bring restarts into the order of walks; the fault and where it is, or None.
    """

def read_dicts(rows: list, internal_of: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], may_be_empty: bool, out_indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], out_node: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu')], out_weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')]) -> int | None:
    """
    Read restarts from dicts of plain numbers; how many entries count, or None for any other input.
    """

NODE_WEIGHT_ALL_ZERO: int = 2

def read_node_weights(single: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, wide: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, node: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], is_weighted: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], has_entries: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], allow: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)] | None, weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], other_weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')]) -> tuple | None:
    """
    Bring node weights into the range of walks; the fault, its row and column, or None.
    """

def first_unscorable(vectors: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], needs_length: bool, threads: int) -> tuple | None:
    """
    The first vector without a float32 score, and whether it is too small for one; or None.
    """

class PreparedGraph:
    """
    A graph's arrays, with the tables and layouts that walks read. Each is made once, at its first use. Thread-safe.
    """

    def __init__(self, *, directed: bool, num_types: int, indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, edge_type: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)] | None, degree: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], node_of: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], internal_of: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], cached_nodes: int = 262144, strip: int = 65536, block_units: int = 65536) -> None: ...

    def arrays(self, layout: str, *, per_type: bool = False, with_out: bool = False, threads: int = 1) -> dict:
        """
        The fields of PprGraph in a layout: given, by_length or by_window. Read-only views.
        """

    def slices(self, *, per_type: bool = False, threads: int = 1) -> dict:
        """The fields of PprSlices. Read-only views."""

    def tiles(self, *, per_type: bool = False, threads: int = 1) -> dict | None:
        """
        The fields of PprTiles, or None if some rows have too many entries. Read-only views.
        """

    @property
    def counts(self) -> tuple[int, int]:
        """
        The most entries into or out of a node, and the number of nodes with any.
        """

    def degrees(self, per_type: bool) -> dict:
        """The tables of PprGraph derived from degrees. Read-only views."""

    def outgoing(self) -> dict:
        """The rows of outgoing edges, as in PprGraph. Read-only views."""

    @property
    def nbytes(self) -> int:
        """
        Bytes of the tables and layouts made so far, beside the graph's own arrays.
        """

def ppr_lanes(nodes: int, stored: int, queries: int, threads: int) -> list[int]:
    """
    The lanes of the blocks that a batch is divided into, on a graph of this size.
    """

PPR_SEGMENT: int = 64

PPR_TILE: int = 64

PPR_LEAST_WEIGHT: float = 3.944304526105059e-31

PPR_ANCHOR: float = 4.0

PPR_MOST_RHO: float = 1e+38

PPR_NEAR: float = 1.0000009536743164

PPR_POLISH_STEPS: int = 32

PPR_POLISH_GAIN: float = 0.98

def ppr_pass_limit(symmetric: bool, damping: float, tol: float, volume: float, norm: float) -> int: ...

def ppr_measured_from(limit: int) -> int: ...

def ppr_next_look(damping: float, done: int, shortfall: float, order: bool) -> int: ...

def ppr_may_look_around(shortfall: float) -> bool: ...

def ppr_may_correct(longest_row: int) -> bool: ...

def ppr_is_faint(factor: float, damping: float) -> bool: ...

def ppr_rest_of_rho(restart: float, per_degree: float, slack: float, longest_row: int, largest_scale: float, largest_inverse: float, damping: float) -> float: ...

def ppr_local_bound(largest: float, rest: float, longest_row: int, largest_scale: float, largest_inverse: float, damping: float) -> float: ...

def ppr_corrected_rest(largest: float, per_degree: float, rest: float, longest_row: int, largest_scale: float, largest_inverse: float) -> float: ...

def ppr_corrected_residual(measured: float, residual: float, moved: float, volume: float, longest_row: int, largest_scale: float, largest_inverse: float) -> float: ...

def ppr_bound(residual: float, slack: float, missed: float, damping: float) -> float: ...

def ppr_node_bound(holds: bool, largest: float, slack: float, damping: float) -> float: ...

def ppr_rounding(lacking: float, missed: float) -> float: ...

def ppr(graph: PreparedGraph, *, restart_indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], restart_node: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], restart_value: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], damping: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], eta: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, per_type: bool, allow: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)] | None, node_weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, weighted_node: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)] | None, other_weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, tol: float, max_iter: int, threads: int, scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], iterations: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], residual: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], bound: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], converged: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')]) -> tuple[int, int]: ...

def ppr_topk(graph: PreparedGraph, *, restart_indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], restart_node: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], restart_value: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], damping: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], eta: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, per_type: bool, allow: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)] | None, node_weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, weighted_node: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)] | None, other_weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, tol: float, max_iter: int, threads: int, candidates: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)] | None, stop_when_proven: bool, prove_order: bool, ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], score_bounds: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], proven: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')], iterations: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], residual: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], bound: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], converged: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')]) -> tuple[int, int]: ...

def ppr_push(graph: PreparedGraph, *, restart_indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], restart_node: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], restart_value: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], damping: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], eta: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, tol: float, threads: int, candidate_bits: Annotated[NDArray[numpy.uint64], dict(order='C', device='cpu', writable=False)] | None, num_candidates: int, largest_degree: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], budget: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], gives_up: bool, prove_order: bool, ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], score_bounds: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], proven: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')], iterations: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], residual: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], bound: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], converged: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')], rounds: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], rows: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], entries: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')]) -> None: ...

DENSE_TILE: int = 16

DENSE_GROUP: int = 4

DENSE_STEP: int = 12

def dense_types() -> dict[str, int]:
    """The number of each precision of originals."""

def dense_encode(vectors: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], *, type: int, cosine: bool, threads: int, codes: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')], scale: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], error: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], norm_code: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], norm: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')]) -> None: ...

def dense_topk(vectors: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], *, type: int, cosine: bool, codes: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')] | None, scale: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')] | None, error: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')] | None, norm_code: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')] | None, norm: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')] | None, queries: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], k: int, allow_mask: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)] | None, allow_indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)] | None, allow_ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)] | None, allow_shared: bool, threads: int, ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], rescored: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')]) -> bool: ...

def fusion_methods() -> dict[str, int]:
    """The number of each fusion method."""

def calibrations() -> dict[str, int]:
    """The number of each calibration."""

def ties() -> dict[str, int]:
    """The number of each tie rule."""

def calibrate(scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], *, method: int, ties: int, option: dict, threads: int, out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')]) -> None: ...

def fuse(ids: Sequence[Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)]], scores: Sequence[Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)]], counts: Sequence[Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)]], *, pools: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], method: int, calibration: int, ties: int, calibration_option: dict, option: dict, weights: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], weights_shared: bool, consensus: float, prior: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], threads: int, out_ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], out_scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], out_counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')]) -> None: ...

ISING_CANDIDATES: int = 1024

def ising(indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, internal_of: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], *, coupling: float, temperature: float, relaxation: float, steps: int, blend: float, threads: int, out_ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], out_scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], out_counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')]) -> None: ...

def dice(*, label_indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], label_units: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], units: int, query_indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], query_units: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], candidates: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], threads: int, scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')]) -> None: ...

def project(*, indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, scale: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], threads: int, status: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu')], out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')]) -> None: ...

def project_topk(*, indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, scale: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], threads: int, status: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu')], out_ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], out_scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], out_counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')]) -> None: ...

SIMILARITY_LEAST_TAU: float = 0.0001

SIMILARITY_LARGEST_TAU: float = 10000.0

SIMILARITY_LEAST_FLOOR: float = 1e-30

def similarity(vectors: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], *, type: int, queries: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], allow_mask: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)] | None, allow_shared: bool, tau: float, floor: float, threads: int, out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')]) -> None: ...

def add_passage_seeds(*, node: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], mass: float, out_node: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], out_weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')]) -> None:
    """Add hits to seeds, at a mass in proportion to their scores."""

def most_entries(ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)]) -> int:
    """The most entries that the hits of a query have in compressed rows."""

def add_entity_seeds(*, node: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, frequency: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], mass: float, out_node: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], out_weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')]) -> None:
    """Add the nodes of hits to seeds."""

def cover_seeds(*, node: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, least: float, out_ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], out_scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], out_counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')]) -> None:
    """Choose the hits that cover the seeds."""

def boost_weights(*, weights: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], strength: float) -> None:
    """Boost the weights of hits, in place."""

def sum_terms(*, indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], passages: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], num_passages: int, terms: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], out_passages: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu')], out_sums: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')]) -> int:
    """Sum the columns of terms; the number of passages with a sum above 0."""
