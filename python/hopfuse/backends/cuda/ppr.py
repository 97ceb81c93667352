"""Personalized PageRank on a device: blocks of lanes, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...types import Graph
from ..arguments import Evidence, PprQueries
from .ppr_block import Certificate, PprBlock
from .ppr_graph import device_graph
from .ppr_proof import TopkHits, TopkSearch
from .runtime import Runtime

LANES = (4, 8, 16, 32)


def lane_blocks(batch: int) -> Iterator[tuple[int, int, int]]:
    """(first query, queries, lanes) of each block: as few lanes as hold the queries, 32 at most."""
    first = 0
    while first < batch:
        count = min(batch - first, LANES[-1])
        yield first, count, next(lanes for lanes in LANES if lanes >= count)
        first += count


def ppr(runtime: Runtime, graph: Graph, queries: PprQueries, scores: NDArray[np.float32]) -> Evidence:
    """Write (B, N) scores; return the evidence."""
    batch = queries.damping.size
    evidence = Evidence.empty(batch)
    if not batch:
        return evidence
    uploaded = device_graph(runtime, graph, queries.per_type, queries.allowed is not None)
    for first, count, lanes in lane_blocks(batch):
        block = PprBlock(runtime, uploaded, queries, first, count, lanes)
        rows = slice(first, first + count)
        passes, certificate, _ = _solve(block, None)
        scores[rows] = block.scores()
        evidence.iterations[rows] = passes[:count]
        evidence.residual[rows] = certificate.residual[:count]
        evidence.bound[rows] = certificate.bound[:count]
        evidence.converged[rows] = certificate.bound[:count] <= queries.tol
    return evidence


def ppr_topk(
    runtime: Runtime,
    graph: Graph,
    queries: PprQueries,
    k: int,
    among: NDArray[np.int32] | None,
    stop_when_proven: bool,
) -> tuple[dict[str, Any], Evidence]:
    """ids, scores, counts, score_bounds and proven, with the evidence."""
    batch = queries.damping.size
    evidence, hits = Evidence.empty(batch), TopkHits.empty(batch, k)
    candidates = graph.num_nodes if among is None else among.size
    if batch:
        uploaded = device_graph(runtime, graph, queries.per_type, queries.allowed is not None)
        search = TopkSearch(runtime, uploaded, min(k, candidates), among)
        todo = np.arange(batch)
        if stop_when_proven and search.k > 0:
            todo = _search(search, queries, todo, hits, evidence, proofs=True)
        _search(search, queries, todo, hits, evidence, proofs=False)
    return hits._asdict(), evidence


def _search(
    search: TopkSearch,
    queries: PprQueries,
    todo: NDArray[np.int64],
    hits: TopkHits,
    evidence: Evidence,
    proofs: bool,
) -> NDArray[np.int64]:
    """Solve some queries of the batch; those whose proof the certificate refused are returned."""
    chosen = queries.take(todo)
    refused = []
    for first, count, lanes in lane_blocks(todo.size):
        block = PprBlock(search.runtime, search.graph, chosen, first, count, lanes)
        passes, certificate, by_proof = _solve(block, search if proofs else None)
        found = search.final(block, certificate)
        converged = certificate.bound[:count] <= queries.tol
        stands = converged | ~by_proof[:count] | (found.proven[:count] == 1)
        rows = todo[first : first + count]
        evidence.iterations[rows] += passes[:count]
        refused.append(rows[~stands])
        kept = np.flatnonzero(stands)
        evidence.residual[rows[kept]] = certificate.residual[kept]
        evidence.bound[rows[kept]] = certificate.bound[kept]
        evidence.converged[rows[kept]] = converged[kept]
        hits.put(rows[kept], found, kept)
    return np.concatenate(refused) if refused else todo[:0]


def _solve(block: PprBlock, proof: TopkSearch | None) -> tuple[NDArray[np.int64], Certificate, NDArray[np.bool_]]:
    """Passes, certificate and whether a proof ended the walk, each by lane; x^ is in the block."""
    queries = block.queries
    passes = block.walk(proof)
    by_proof = block.runtime.download(block.unproven) == 0
    block.normalise()
    certificate = block.certify()
    exhausted = (queries.max_iter > 0) & (passes >= queries.max_iter)
    used = np.arange(block.lanes) < block.count
    passes += 1
    block.polish(certificate, used & ~by_proof & ~exhausted & (certificate.bound > queries.tol), passes)
    return passes, certificate, by_proof
