"""Variants of a pass of a walk, timed in turns with the variant that hopfuse uses.

The loops are those of variants.cpp, not the library's kernels. Each differs in one respect from the first with the same
number of lanes. Their sums are compared before they are timed.
"""

from __future__ import annotations

import ctypes
import random
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import hopfuse as hf
import numpy as np
import scipy.sparse.csgraph
from numpy.typing import NDArray

from . import gate, machine
from .cases.data import knowledge_graph
from .compiled import library
from .errors import UnavailableError
from .settings import Settings
from .stats import summary

CASE = "variants"
#: Rows that one lane sums together, and their maximum length.
SLICE, SEGMENT = 8, 64
#: Entries that a loop may prefetch beyond the last.
BEYOND = 64
#: Relative L1 errors: of sums in another order, and of a state with 8-bit significands.
TOLERANCE, HALF_TOLERANCE = 1e-5, 1e-2


class Variant(NamedTuple):
    """A loop of variants.cpp by its number there, and the order of rows that it runs on."""

    which: int
    lanes: int
    order: str
    what: str
    kept: bool


VARIANTS = (
    Variant(0, 32, "given", "state asked for 24 entries ahead", True),
    Variant(1, 32, "given", "nothing asked for ahead", False),
    Variant(2, 32, "given", "48 entries ahead", False),
    Variant(3, 32, "length", "rows by length, two at a time", False),
    Variant(0, 32, "cuthill-mckee", "nodes in reverse Cuthill-McKee order", False),
    Variant(0, 32, "community", "nodes by community (Louvain)", False),
    Variant(4, 32, "given", "two blocks of 16 lanes", False),
    Variant(5, 32, "given", "16-bit state (bfloat16), float32 sums", False),
    Variant(6, 1, "slices", "rows by length in slices of eight, 16-bit column numbers", True),
    Variant(7, 1, "given", "rows as they come, one at a time", False),
    Variant(8, 1, "length", "rows by length, eight at a time, stored one after another", False),
    Variant(9, 1, "slices", "32-bit column numbers", False),
    Variant(10, 1, "slices", "16-bit codes of weights", False),
)


class Rows(NamedTuple):
    """The rows of a graph in some order, and the place of each node's row."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    indices16: NDArray[np.uint16]
    weight: NDArray[np.float32]
    code: NDArray[np.uint16]
    table: NDArray[np.float32]
    place: NDArray[np.int64]


def measure(settings: Settings) -> Iterator[dict[str, Any]]:
    """Yield a row for each variant: the time of a pass, and its ratio to the variant that hopfuse uses.

    Raises
    ------
    UnavailableError
        There is no compiler.
    """
    orders = {name: _rows(settings, name) for name in dict.fromkeys(variant.order for variant in VARIANTS)}
    with library("variants.cpp", "-fopenmp") as loaded:
        run = loaded.run_pass
        run.argtypes = (ctypes.c_int, ctypes.c_int64, *[ctypes.c_void_p] * 8, ctypes.c_int)
        for lanes in dict.fromkeys(variant.lanes for variant in VARIANTS):
            yield from _beside(run, [v for v in VARIANTS if v.lanes == lanes], orders, settings)


def _beside(run: Any, variants: list[Variant], orders: dict[str, Rows], settings: Settings) -> Iterator[dict[str, Any]]:
    nodes, lanes = orders["given"].place.size, variants[0].lanes
    average, load = machine.load_average(), machine.OtherLoad()
    start = np.random.default_rng(29).random((nodes, lanes), dtype=np.float32)
    states = [_State(run, variant, orders[variant.order], start, settings.threads) for variant in variants]
    expected = states[0].result().astype(np.float64)
    weight = np.abs(expected).sum(axis=1, keepdims=True)
    for state in states[1:]:
        allowed = HALF_TOLERANCE if state.is_half else TOLERANCE
        gate.rows_l1(state.variant.what, state.result() / weight, expected / weight, allowed)
    times: list[list[float]] = [[] for _ in variants]
    for _ in range(settings.repeats * (1 if settings.quick else 5)):
        for state, taken in zip(states, times, strict=True):
            state.seconds()
            taken.append(state.seconds())
    for variant, taken in zip(variants, times, strict=True):
        yield {
            "case": CASE,
            "peer": None,
            "status": "ok",
            "variant": variant.what,
            "kept": variant.kept,
            "sizes": {"nodes": nodes, "stored_entries": orders["given"].indices16.size, "lanes": lanes},
            "pass": summary(taken),
            "of_kept": float(np.median(np.array(taken) / np.array(times[0]))),
            "threads": settings.threads,
            "quick": settings.quick,
            **machine.surroundings(average, load.stop()),
        }


class _State:
    """Two states of a variant, and a pass from one to the other."""

    def __init__(self, run: Any, variant: Variant, rows: Rows, start: NDArray[np.float32], threads: int) -> None:
        self.run, self.variant, self.rows, self.threads = run, variant, rows, threads
        laid = np.empty_like(start)
        laid[rows.place] = start
        if "two blocks" in variant.what:
            laid = np.ascontiguousarray(np.stack([laid[:, :16], laid[:, 16:]]))
        self.is_half = "bfloat16" in variant.what
        self.states = [np.ascontiguousarray(laid.view(np.uint32) >> 16, np.uint16) if self.is_half else laid]
        self.states.append(np.zeros_like(self.states[0]))

    def seconds(self) -> float:
        rows, (source, target) = self.rows, self.states
        arrays = (rows.indptr, rows.indices, rows.indices16, rows.weight, rows.code, rows.table, source, target)
        start = time.perf_counter()
        self.run(self.variant.which, rows.place.size, *(array.ctypes.data for array in arrays), self.threads)
        return time.perf_counter() - start

    def result(self) -> NDArray[np.float32]:
        """Return the result of a pass from the start, by node, of shape (lanes, nodes)."""
        self.states[1][:] = 0
        self.seconds()
        found = self.states[1]
        if self.is_half:
            found = (found.astype(np.uint32) << 16).view(np.float32)
        if found.ndim == 3:
            found = np.concatenate(list(found), axis=1)
        return found[self.rows.place].T


def _order(graph: hf.Graph, order: str) -> NDArray[np.int64]:
    """Return the nodes in the order in which their rows are stored."""
    node = np.arange(graph.num_nodes)
    if order in ("length", "slices"):
        return np.argsort(-np.diff(graph.indptr), kind="stable")
    if order == "cuthill-mckee":
        ones = np.ones(graph.num_stored, np.float32)
        matrix = scipy.sparse.csr_matrix((ones, graph.indices, graph.indptr), (node.size, node.size))
        return np.asarray(scipy.sparse.csgraph.reverse_cuthill_mckee(matrix, symmetric_mode=True), np.int64)
    if order == "community":
        try:
            import igraph
        except ImportError as absent:
            raise UnavailableError("nodes by community need python-igraph") from absent
        igraph.set_random_number_generator(random.Random(29))
        source = np.repeat(node, np.diff(graph.indptr))
        edges = np.column_stack([source, graph.indices])[source <= graph.indices]
        found = igraph.Graph(n=node.size, edges=edges).community_multilevel()
        return np.lexsort((node, found.membership))
    return node


def _interleaved(indptr: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the order of entries in which slices of rows of equal length have entry 0 of each row, then entry 1."""
    length = np.diff(indptr)
    stands = np.arange(indptr[-1])
    for row in range(0, length.size - SLICE + 1, SLICE):
        here, size = slice(indptr[row], indptr[row + SLICE]), length[row]
        if size <= SEGMENT and (length[row : row + SLICE] == size).all():
            stands[here] = stands[here].reshape(SLICE, size).T.reshape(-1)
    return stands


def _rows(settings: Settings, order: str) -> Rows:
    graph = knowledge_graph(settings.quick).graph
    length, node = np.diff(graph.indptr), np.arange(graph.num_nodes)
    stored = _order(graph, order)
    place = np.empty_like(stored)
    place[stored] = node
    indptr = np.concatenate([[0], np.cumsum(length[stored])])
    entry = np.arange(indptr[-1]) + np.repeat(graph.indptr[stored] - indptr[:-1], length[stored])
    if order == "slices":
        entry = entry[_interleaved(indptr)]
    indices = place[graph.indices[entry]]
    weight = (np.ones(entry.size, np.float32) if graph.weight is None else graph.weight)[entry]
    table, code = np.unique(weight, return_inverse=True)
    if max(node.size, table.size) > 1 << 16:
        raise UnavailableError(f"{node.size} nodes or {table.size} weights are too many for 16-bit numbers")
    beyond = np.zeros(BEYOND, np.int32)
    return Rows(
        indptr,
        np.concatenate([indices.astype(np.int32), beyond]),
        indices.astype(np.uint16),
        weight,
        code.astype(np.uint16),
        table,
        place,
    )
