"""Local walks of ppr_topk on the CPU: kernels/include/hopfuse/ppr_push.h."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..types import Graph, LocalWalks
from ..types.candidates import CandidateTable, candidate_table
from .call import HitArrays
from .node_weights import WeightEffect
from .walk_queries import Evidence, NodeRanking, PprQueries, empty_ppr_hits
from .walks import prepared_graph

#: The share of a graph's entries that a walk may read; a pass reads all of them, and a list takes about 13 passes.
SHARE = 0.3
#: Graphs with fewer entries walk by passes, whose cost is then mostly that of the call.
FEWEST_ENTRIES = 1 << 15
#: With ``auto``, lists of a looser tol are found by passes, whose order of hits that are not proven may be anything.
MOST_TOL = 1e-4
#: The sample that decides whether walks of a graph are local: single seeds, at equal distances among nodes with edges.
SAMPLE, SAMPLE_K, SAMPLE_DAMPING = 48, 10, 0.5
#: The entries that a list by passes may cost, as a share of the graph's: what a query takes in a batch of 64.
PASSES_SHARE = 0.3
#: What a walk with node weights costs relative to one without: rows are also read for degrees, which are otherwise
#: known in part, and half as many lists are proven.
GUIDED_SHARE = 7.0


class Budget(NamedTuple):
    """How many entries the local walks of a graph may read; it depends only on the graph."""

    entries: int
    """The most entries of a query; 0: walks are by passes."""
    typical: float
    """The mean of the sample."""
    proven: float
    """The share of the sample that was proven."""

    def of(self, k: int, damping: NDArray[np.float64], weights: WeightEffect) -> NDArray[np.int64]:
        """Return each query's budget, (B,): 0 where a list of k is expected to need more, or nodes are excluded."""
        expected = self.typical * (k / SAMPLE_K) ** 2 * (0.5 / (1.0 - damping)) ** 2
        expected = np.where(weights.guides, GUIDED_SHARE * expected, expected)
        return np.where((damping > 0) & (expected <= self.entries) & ~weights.excludes, self.entries, 0)


def budget_of(graph: Graph) -> Budget:
    """Return a graph's budget, which a sample decides the first time."""
    if "push_budget" not in graph.derived:
        graph.derived["push_budget"] = _sampled(graph)
    made: Budget = graph.derived["push_budget"]
    return made


class Plan(NamedTuple):
    """How a batch may walk locally."""

    budget: NDArray[np.int64]
    """(B,) the entries that each query may read; 0: it walks by passes."""
    among: CandidateTable | None
    """None if no query has a budget."""


def plan(graph: Graph, queries: PprQueries, ranking: NodeRanking) -> Plan | None:
    """Return how a batch may walk locally, or None where no query of these options does."""
    batch = queries.damping.size
    if batch == 0 or ranking.k == 0:
        return None
    if ranking.walk == "local":
        entries = max(int(SHARE * graph.num_stored), FEWEST_ENTRIES)
        return Plan(np.full(batch, entries), ranking.among or _among(graph, ranking.candidates))
    plain = queries.allow is None and not queries.per_type
    exact = ranking.stop_when_proven and queries.max_iter == 0 and queries.tol <= MOST_TOL
    if not (plain and exact and budget_of(graph).entries):
        return None
    weights = queries.node_weights
    effect = WeightEffect.none(batch) if weights is None else weights.effect(graph)
    if ranking.among is None and _have_edges(graph, ranking.candidates, ranking.k):
        budget = budget_of(graph).of(ranking.k, queries.damping, effect)
        if not budget.any():
            return Plan(budget, None)
    among = ranking.among or _among(graph, ranking.candidates)
    return Plan(budget_of(graph).of(min(ranking.k, among.with_edges), queries.damping, effect), among)


def _sampled(graph: Graph) -> Budget:
    none, entries = Budget(0, 0.0, 0.0), int(SHARE * graph.num_stored)
    if graph.directed or graph.num_stored < FEWEST_ENTRIES:
        return none
    live = np.flatnonzero(np.diff(graph.indptr))
    if live.size < SAMPLE:
        return none
    seeds = live[(2 * np.arange(SAMPLE) + 1) * live.size // (2 * SAMPLE)].astype(np.int32)
    queries = PprQueries(np.arange(SAMPLE + 1), seeds, np.ones(SAMPLE), np.full(SAMPLE, SAMPLE_DAMPING))
    ranking = NodeRanking(SAMPLE_K, None, stop_when_proven=True)
    made = Plan(np.full(SAMPLE, entries), _among(graph, None))
    hits, _, walks = push(graph, queries, ranking, made, gives_up=True)
    typical, proven = float(walks.entries.mean()), float(hits["proven"].mean())
    pays = typical <= proven * PASSES_SHARE * graph.num_stored
    return Budget(entries if pays else 0, typical, proven)


def push(
    graph: Graph, queries: PprQueries, ranking: NodeRanking, made: Plan, *, gives_up: bool
) -> tuple[HitArrays, Evidence, LocalWalks]:
    """Return the lists of local walks; those of a budget of 0 are empty and unproven."""
    batch = queries.damping.size
    evidence, hits = Evidence.uninitialised(batch), empty_ppr_hits(batch, ranking.k)
    counts: dict[str, Any] = {name: np.zeros(batch, np.int64) for name in ("rounds", "rows", "entries")}
    among = made.among or _among(graph, ranking.candidates)
    typed, weights = queries.edge_type_weights is not None, queries.node_weights
    _native.ppr_push(
        prepared_graph(graph),
        restart_indptr=queries.indptr,
        restart_node=queries.node,
        restart_value=queries.value,
        damping=queries.damping,
        eta=queries.edge_type_weights,
        node_weight=None if weights is None else weights.weight,
        weighted_node=None if weights is None else weights.node,
        other_weight=None if weights is None else weights.other,
        tol=queries.tol,
        threads=queries.threads,
        candidate_bits=among.bits,
        num_candidates=among.with_edges,
        largest_degree=among.largest_degree if typed else np.array([among.largest_total]),
        budget=made.budget,
        gives_up=gives_up,
        prove_order=ranking.prove_order,
        **hits,
        **evidence._asdict(),
        **counts,
    )
    return hits, evidence, LocalWalks(hits["proven"].astype(np.bool_), **counts)


def _have_edges(graph: Graph, nodes: NDArray[np.int32] | None, k: int) -> bool:
    """Return whether at least k of the first few nodes have edges, so that the number of others does not matter."""
    first = np.arange(min(graph.num_nodes, 2 * k + 64)) if nodes is None else nodes[: 2 * k + 64]
    return int(np.count_nonzero(graph.indptr[first + 1] > graph.indptr[first])) >= k


def _among(graph: Graph, nodes: NDArray[np.int32] | None) -> CandidateTable:
    """Return candidates; the graph keeps those of all nodes, and those of the last array that is read-only."""
    name = "every_candidate" if nodes is None else "candidates"
    kept: CandidateTable | None = graph.derived.get(name)
    if kept is not None and kept.nodes is nodes:
        return kept
    made = candidate_table(graph, nodes)
    if nodes is None or not nodes.flags.writeable:
        graph.derived[name] = made
    return made
