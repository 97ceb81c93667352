"""Personalized PageRank: all scores, the best nodes by passes or, on the host, by local walks, and node weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _native
from ..._arrays.convert import to_float64
from ...errors import InputError
from ...types import Graph, LocalWalks
from .. import cpu_push
from ..call import Array, HitArrays
from ..cpu import record
from ..faults import no_node_weight
from ..node_weights import NodeWeights, columns_in
from ..walk_queries import Evidence, NodeRanking, PprQueries, empty_ppr_hits
from ..walks import prepared_graph

if TYPE_CHECKING:
    from ..cuda import DeviceOps


#: The smallest node weight above 0, after scaling.
LEAST_NODE_WEIGHT = _native.PPR_LEAST_WEIGHT


class PprCall(NamedTuple):
    """Write the scores of walks, (B, N); the answer is their evidence."""

    graph: Graph
    queries: PprQueries
    scores: Array  # (B, N) float32

    def run_on_host(self) -> Evidence:
        queries, batch = self.queries, self.queries.damping.size
        evidence, course = Evidence.uninitialised(batch), (1, 0)
        if batch:
            given = _arguments(queries)
            course = _native.ppr(prepared_graph(self.graph), **given, scores=self.scores, **evidence._asdict())
        record("ppr_f32", course[0], queries=batch, lanes=course[1])
        return evidence

    def run_on_device(self, device: DeviceOps) -> Evidence:
        queries, there = self.queries, _resident(device, self.graph, self.queries)
        found = _native.device_ppr(device.queue(), there, queries, scores=self.scores, on_device=queries.on_device)
        device.record("ppr_f32", queries=queries.damping.size)
        return Evidence(**found)


class PprTopkCall(NamedTuple):
    """Find the best nodes of walks.

    The answer has ids, scores, counts, score_bounds and proven, and walks if queries walked locally; and the evidence.
    """

    graph: Graph
    queries: PprQueries
    ranking: NodeRanking

    def run_on_host(self) -> tuple[HitArrays, Evidence]:
        if self.ranking.walk != "passes":
            plan = cpu_push.plan(self.graph, self.queries, self.ranking)
            if plan is not None:
                return _after_pushes(self.graph, self.queries, self.ranking, plan)
        return _by_passes(self.graph, self.queries, self.ranking)

    def run_on_device(self, device: DeviceOps) -> tuple[HitArrays, Evidence]:
        queries, ranking = self.queries, self.ranking
        hits = _native.device_ppr_topk(
            device.queue(),
            _resident(device, self.graph, queries),
            queries,
            k=ranking.k,
            candidates=ranking.candidates,
            stop_when_proven=ranking.stop_when_proven,
            prove_order=ranking.prove_order,
            on_device=queries.on_device,
        )
        evidence = Evidence(*(hits.pop(name) for name in Evidence._fields))
        proven = {} if queries.on_device else {"proven": int(np.count_nonzero(hits["proven"]))}
        device.record("ppr_f32", queries=queries.damping.size, **proven)
        return hits, evidence


def _resident(device: DeviceOps, graph: Graph, queries: PprQueries) -> _native.DeviceGraph:
    counts_edges = queries.allow is not None or queries.node_weights is not None
    return device.graph(graph, per_type=queries.per_type, counts_edges=counts_edges)


# ---- On the host -----------------------------------------------------------------------------------------------------


def _arguments(q: PprQueries) -> dict[str, Any]:
    weights = q.node_weights
    return {
        "restart_indptr": q.indptr,
        "restart_node": q.node,
        "restart_value": q.value,
        "damping": q.damping,
        "eta": q.edge_type_weights,
        "per_type": q.per_type,
        "allow": q.allow,
        "node_weight": None if weights is None else weights.weight,
        "weighted_node": None if weights is None else weights.node,
        "other_weight": None if weights is None else weights.other,
        "tol": q.tol,
        "max_iter": q.max_iter,
        "threads": q.threads,
    }


def _after_pushes(
    graph: Graph, queries: PprQueries, ranking: NodeRanking, plan: cpu_push.Plan
) -> tuple[HitArrays, Evidence]:
    """Walk locally; with ``auto``, queries that this does not prove walk by passes."""
    if not plan.budget.any():
        hits, evidence = _by_passes(graph, queries, ranking)
        return {**hits, "walks": LocalWalks.none(plan.budget.size)}, evidence
    hits, evidence, walks = cpu_push.push(graph, queries, ranking, plan, gives_up=ranking.walk == "auto")
    local = walks.local if ranking.walk == "auto" else plan.budget > 0
    left = np.flatnonzero(~local)
    record("ppr_push_f64", queries.threads, queries=local.size, entries=walks.entries, local=local.size - left.size)
    walks = walks._replace(local=local)
    if left.size == 0:
        return {**hits, "walks": walks}, evidence
    others, others_evidence = _by_passes(graph, queries.take(left), ranking)
    if left.size == local.size:
        return {**others, "walks": walks}, others_evidence
    for name, array in others.items():
        hits[name][left] = array
    for to, array in zip(evidence, others_evidence, strict=True):
        to[left] = array
    return {**hits, "walks": walks}, evidence


def _by_passes(graph: Graph, queries: PprQueries, ranking: NodeRanking) -> tuple[HitArrays, Evidence]:
    batch = queries.damping.size
    evidence, hits = Evidence.uninitialised(batch), empty_ppr_hits(batch, ranking.k)
    course = (1, 0)
    if batch:
        course = _native.ppr_topk(
            prepared_graph(graph),
            **_arguments(queries),
            candidates=ranking.candidates,
            stop_when_proven=ranking.stop_when_proven,
            prove_order=ranking.prove_order,
            **hits,
            **evidence._asdict(),
        )
    proven = int(np.count_nonzero(hits["proven"]))
    record("ppr_f32", course[0], queries=batch, lanes=course[1], proven=proven)
    return hits, evidence


# ---- Node weights, scaled to the range that walks read: NODE WEIGHTS in kernels/include/hopfuse/ppr.h ----------------


class NodeWeightCall(NamedTuple):
    """Scale a caller's weights, on the host or on a device, to the range that walks read."""

    graph: Graph
    weight: Any  # (B, M) float32, or on the host any real numbers
    node: NDArray[np.int32]  # (M,) distinct internal nodes
    per_type: bool
    allow: NDArray[np.uint8] | None  # (B, N) or (1, N) by internal node, on the host
    lightest: NDArray[np.float64] | None  # (B,) lightest edge that a query can walk; None: no product underflows

    def run_on_host(self) -> NodeWeights:
        """Return the weights, scaled.

        Raises
        ------
        InputError
            A weight that is not finite or below 0, a row without a weight above 0, a product of weights that float32
            cannot hold; the message names the row and the column.
        """
        graph, given, node = self.graph, self.weight, self.node
        is_single = given.dtype == np.float32
        given = np.ascontiguousarray(given if is_single else to_float64(given))
        made = NodeWeights(np.empty(given.shape, np.float32), node, np.empty(given.shape[0], np.float32))
        wrong = _native.read_node_weights(
            given if is_single else None,
            None if is_single else given,
            node,
            columns_in(graph, node).is_weighted,
            _has_entries(graph),
            self.allow,
            made.weight,
            made.other,
        )
        if wrong is None:
            _check_products(self.lightest, made)
            return made
        fault, row, at = wrong
        if fault == _native.NODE_WEIGHT_ALL_ZERO:
            raise no_node_weight(row)
        raise InputError(
            "range",
            f"node_weights[{row}, {at}]",
            "{field} is {given}; weights must be finite and at least 0",
            given=float(given[row, at]),
        )

    def run_on_device(self, device: DeviceOps) -> NodeWeights:
        made = _native.device_order_weights(
            device.queue(),
            device.graph(self.graph, per_type=self.per_type, counts_edges=True),
            weight=self.weight,
            node=self.node,
            allow=self.allow,
            lightest=self.lightest,
        )
        return NodeWeights(made["weight"], self.node, made["other"], on_device=True)


def _check_products(lightest: NDArray[np.float64] | None, weights: NodeWeights) -> None:
    """Raise if a node weight times the lightest edge underflows in float32; a degree may consist of one product."""
    tiny = float(np.finfo(np.float32).tiny)
    if lightest is None:
        return
    for query in np.flatnonzero(lightest * LEAST_NODE_WEIGHT < tiny):
        product = lightest[query] * weights.least(int(query))
        if product < tiny:
            raise InputError(
                "range",
                f"node_weights[{query}]",
                "{field} makes the lightest edge weigh {product:.3g}, which float32 cannot hold; make the least weight "
                "0 or larger, or scale the edges",
                product=product,
            )


def _has_entries(graph: Graph) -> NDArray[np.uint8]:
    """Return whether each internal node has entries, into or out of it."""
    if "has_entries" not in graph.derived:
        has = np.diff(graph.indptr) > 0
        if graph.directed:
            has[graph.indices] = True
        graph.derived["has_entries"] = has.view(np.uint8)
    found: NDArray[np.uint8] = graph.derived["has_entries"]
    return found
