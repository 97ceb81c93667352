"""Personalized PageRank on a device, one block of lanes after another."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...types import Graph
from ..calls import Array, NodeRanking, PprQueries
from .ppr_block import PprBlock
from .ppr_certificate import Certificate, Certifier
from .ppr_graph import DeviceGraph, device_graph
from .ppr_passes import walk
from .ppr_settle import Settling, room
from .ppr_topk import Answers, TopkSearch
from .runtime import Runtime, take_rows

LANES = (4, 8, 16, 32)
#: The bytes of a sector, the least that a gather reads from memory, and bytes that take about as long as the rest of a
#: pass: two launches, and the chain of a row of 10,000 entries.
SECTOR, PASS_BYTES = 32, 1 << 23


@lru_cache(maxsize=64)
def most_lanes(num_nodes: int, num_stored: int, l2_bytes: int, l2_speedup: float) -> int:
    """Return the lanes of blocks that take the least time per query, by bytes; results do not depend on it.

    More lanes read the graph for more queries at once. With fewer lanes, the state from which a pass gathers may fit in
    half of the L2 cache, whose bandwidth is ``l2_speedup`` times that of the memory.
    """

    def moved(lanes: int) -> float:
        state, gathered = 4 * lanes * num_nodes, float(max(SECTOR, 4 * lanes) * num_stored)
        if state <= l2_bytes // 2:
            gathered /= l2_speedup
        return (8 * num_stored + 20 * num_nodes + 2 * state + gathered + PASS_BYTES) / lanes

    return min(reversed(LANES), key=moved)


def lane_blocks(batch: int, most: int = LANES[-1]) -> Iterator[tuple[int, int, int]]:
    """Yield (first query, number of queries, lanes) of each block, with the fewest lanes that hold the queries."""
    first = 0
    while first < batch:
        count = min(batch - first, most)
        yield first, count, next(lanes for lanes in LANES if lanes >= count)
        first += count


def _most_lanes(runtime: Runtime, graph: Graph | DeviceGraph) -> int:
    return most_lanes(graph.num_nodes, graph.num_stored, runtime.l2_bytes, runtime.l2_speedup)


def _counts_edges(queries: PprQueries) -> bool:
    """Return whether degrees depend on the query and are summed over the edges out of each node."""
    return queries.allow is not None or queries.node_weights is not None


def ppr(runtime: Runtime, graph: Graph, queries: PprQueries, scores: Array) -> Answers:
    """Write (B, N) scores; return the evidence, without hits."""
    batch = queries.damping.size
    answers = Answers(runtime, batch, 0)
    if not batch:
        return answers
    uploaded = device_graph(runtime, graph, queries.per_type, _counts_edges(queries))
    search = TopkSearch(runtime, uploaded, 0, None)
    for first, count, lanes in lane_blocks(batch, _most_lanes(runtime, graph)):
        solved = _solve(PprBlock(runtime, uploaded, queries, first, count, lanes), None)
        solved.finish(search, np.arange(first, first + count), answers)
        rows = scores[first : first + count]
        out = runtime.empty((count, graph.num_nodes), np.float32) if not queries.on_device else rows
        solved.certifier.scores(out)
        del solved  # frees memory for the next block
        if not queries.on_device:
            runtime.copy(rows, out)
    return answers


def ppr_topk(runtime: Runtime, graph: Graph, queries: PprQueries, ranking: NodeRanking) -> Answers:
    """Return the k best nodes of each query, with the evidence."""
    k, candidates, stop_when_proven, prove_order = ranking[:4]
    batch = queries.damping.size
    answers = Answers(runtime, batch, k)
    if not batch:
        return answers
    uploaded = device_graph(runtime, graph, queries.per_type, _counts_edges(queries))
    most = graph.num_nodes if candidates is None else candidates.size
    search = TopkSearch(runtime, uploaded, min(k, most), candidates, prove_order)
    todo = np.arange(batch)
    proves = stop_when_proven and search.k > 0
    if proves:
        todo = _search(search, queries, todo, answers, proofs=True, refines=True)
    _search(search, queries, todo, answers, proofs=False, refines=proves, goes_on=proves)
    return answers


def _search(
    search: TopkSearch,
    queries: PprQueries,
    todo: NDArray[np.int64],
    answers: Answers,
    *,
    proofs: bool,
    refines: bool,
    goes_on: bool = False,
) -> NDArray[np.int64]:
    """Solve a subset of the batch; return the queries whose proof the certificate rejects.

    With ``goes_on`` these queries were solved before, and their passes are added up.
    """
    chosen = queries if todo.size == queries.damping.size else _take(search.runtime, queries, todo)
    refused = np.zeros(todo.size, np.bool_)
    for first, count, lanes in lane_blocks(todo.size, _most_lanes(search.runtime, search.graph)):
        block = PprBlock(search.runtime, search.graph, chosen, first, count, lanes)
        solved = _solve(block, search if proofs else None, refines)
        rows = todo[first : first + count]
        solved.finish(search, rows, answers, goes_on)
        if refines:
            refused[first : first + count] = solved.settle(search, rows, answers)
        del block, solved  # frees memory for the next block
    return np.asarray(todo[refused])


def _take(runtime: Runtime, queries: PprQueries, rows: NDArray[np.int64]) -> PprQueries:
    """Return a subset of the batch; arrays on the device stay there."""
    seeds = queries.seeds
    if seeds is None:
        return queries.take(rows)
    chosen = {name: take_rows(runtime, getattr(seeds, name), rows.tolist()) for name in ("node", "weight")}
    taken, weights = queries._replace(seeds=seeds._replace(**chosen)), queries.node_weights
    if weights is None or not weights.on_device:
        return taken.options_of(rows)
    own = {name: take_rows(runtime, getattr(weights, name), rows.tolist()) for name in ("weight", "other")}
    return taken._replace(node_weights=None).options_of(rows)._replace(node_weights=weights._replace(**own))


class _Solved(NamedTuple):
    """A block whose x^ is final, and what was downloaded about it; nothing in a capture."""

    block: PprBlock
    certifier: Certifier
    read: _Read | None

    def finish(self, search: TopkSearch, rows: NDArray[np.int64], answers: Answers, goes_on: bool = False) -> None:
        read = self.read
        if read is None or not read.polished.any():  # the device has the certificate
            search.finish(self.block, self.certifier, rows, answers, goes_on=goes_on)
        else:
            search.finish(self.block, self.certifier, rows, answers, read.certificate, read.polished, goes_on=goes_on)

    def settle(self, search: TopkSearch, rows: NDArray[np.int64], answers: Answers) -> NDArray[np.bool_]:
        """Try to prove lists that the certificate leaves unproven; return which proofs it rejects for good."""
        block, read = self.block, self.read
        if read is None:  # a dry run, which only counts the memory
            room(block)
            return np.zeros(rows.size, np.bool_)
        passes = read.passes + read.polished + 1
        settling = Settling(search, self.certifier, read.certificate, rows, answers, passes)
        settling.settle()
        is_met = block.runtime.download(answers.converged)[rows] != 0
        return np.asarray(read.by_proof[: rows.size] & ~settling.proven[: rows.size] & ~is_met)


class _Read(NamedTuple):
    """Values of each lane, (L,), on the host."""

    by_proof: NDArray[np.bool_]
    certificate: Certificate
    passes: NDArray[np.int64]
    polished: NDArray[np.int64]


def _solve(block: PprBlock, proof: TopkSearch | None, refines: bool = False) -> _Solved:
    walk(block, proof)
    certifier = Certifier(block)
    certifier.normalise()
    runtime, queries = block.runtime, block.queries
    if refines and block.symmetric:
        certifier.correction = runtime.empty((block.graph.num_nodes, block.lanes), np.float32)
    certifier.measure()
    if runtime.fixed:
        return _Solved(block, certifier, None)
    limit, passes, unproven, *bounds = runtime.download_all(
        [block.limit, block.passes, block.unproven, block.residual, block.bound, block.per_degree]
    )
    by_proof, certificate = unproven == 0, Certificate(*bounds)
    exhausted = (queries.max_iter > 0) & (passes >= queries.max_iter)
    lanes_open = (limit > 0) & ~by_proof & ~exhausted & (certificate.bound > queries.tol)
    return _Solved(block, certifier, _Read(by_proof, certificate, passes, certifier.polish(certificate, lanes_open)))
