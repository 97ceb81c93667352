"""Check the options of walks and convert them to the form that backends take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import to_float64, to_numpy
from .._validation import (
    check_choice,
    check_names,
    check_needs,
    check_number,
    check_real,
    check_shape,
    check_type,
    check_weights,
    check_whole,
    wrong_value,
)
from ..backends.calls.ppr import NodeWeightCall
from ..backends.engine import Engine
from ..backends.node_weights import NodeWeights, read_nodes
from ..backends.walk_queries import NO_RESTARTS, PprQueries
from ..errors import InputError
from ..types import Graph
from ._arguments import read_filter, refuse_per_query

#: The smallest nonzero joint edge-type weight, relative to the largest.
SMALLEST_TYPE_WEIGHT = 1e-30

#: The least number that float32 rounds to 1.
MOST_DAMPING = 1 - 2**-25

EdgeTypeNorm = Literal["joint", "per_type"]


class WalkOptions(NamedTuple):
    """The options that ``ppr`` and ``ppr_topk`` share, before checks."""

    damping: Any
    tol: float
    max_iter: int | None
    edge_type_weights: Any
    edge_type_norm: str
    allow: Any
    node_weights: Any
    weighted_nodes: Any
    threads: int | None

    def of_batch(self, engine: Engine, graph: Graph) -> Callable[[int], PprQueries]:
        """Return a function that checks the options for a batch of a size, and returns queries without seeds."""
        check_type(graph, "graph", Graph, "a Graph, as Graph.from_edges and Graph.from_scipy build it")
        check_choice(self.edge_type_norm, "edge_type_norm", ("joint", "per_type"))
        return partial(_read_options, engine, graph, self)


def _read_options(engine: Engine, graph: Graph, options: WalkOptions, batch: int) -> PprQueries:
    per_type = options.edge_type_norm == "per_type"
    damping = _read_damping(options.damping, batch)
    eta = _read_type_weights(options.edge_type_weights, batch, graph, per_type)
    allow = _read_allow(graph, options.allow, batch)
    tol = check_number(options.tol, "tol", above=0)
    max_iter = 0 if options.max_iter is None else check_whole(options.max_iter, "max_iter", 2**63 - 1)
    threads = engine.threads(options.threads)
    weights = _read_node_weights(engine, graph, options, batch, None if per_type else eta, allow)
    return PprQueries(*NO_RESTARTS, damping, eta, per_type, allow, tol, max_iter, threads, None, weights)


def _read_node_weights(
    engine: Engine,
    graph: Graph,
    options: WalkOptions,
    batch: int,
    eta: NDArray[np.float64] | None,
    allow: NDArray[np.uint8] | None,
) -> NodeWeights | None:
    """Return the node weights in the form that backends take, or None."""
    given, nodes = options.node_weights, options.weighted_nodes
    check_needs("weighted_nodes", nodes, "node_weights", given, "whose columns they number")
    if given is None:
        return None
    columns = "node" if nodes is None else "entry of weighted_nodes"
    at, internal = engine.beside(given), read_nodes(graph, nodes)
    weights = at.numbers(given, "node_weights")
    reason = f"one row per query, one column per {columns}"
    check_shape(weights.shape, "node_weights", (batch, internal.size), reason=reason)
    if engine.on_device and not at.on_device:
        refuse_per_query("node_weights")
    lightest = _lightest_walked(graph, eta, batch)
    per_type = options.edge_type_norm == "per_type"
    made: NodeWeights = at.ops.run(NodeWeightCall(graph, weights, internal, per_type, allow, lightest))
    return made


def _read_damping(damping: Any, batch: int) -> NDArray[np.float64]:
    if type(damping) is float and 0.0 <= damping < MOST_DAMPING:
        made = np.empty(batch)
        made.fill(damping + 0.0)  # -0.0 is 0
        return made
    d = to_numpy(damping, "damping")
    check_real(d, "damping")
    if d.ndim:
        refuse_per_query("damping")
    check_shape(d.shape, "damping", (), (batch,), reason="one number, or one per query")
    d = to_float64(d.reshape(-1)) + 0.0  # -0.0 is 0
    bad = ~((d >= 0) & (d < MOST_DAMPING))
    if np.count_nonzero(bad):
        raise wrong_value(float(d[bad][0]), "damping", "in [0, 1), and below 1 in float32 too")
    return np.full(batch, d)


def _read_type_weights(weights: Any, batch: int, graph: Graph, per_type: bool) -> NDArray[np.float64] | None:
    types = graph.num_edge_types
    if weights is None:
        return np.full((batch, types), 1.0 / types) if per_type else None
    eta = to_numpy(_by_name(weights, graph, per_type), "edge_type_weights")
    check_real(eta, "edge_type_weights")
    if eta.ndim == 2:
        refuse_per_query("edge_type_weights")
    check_shape(eta.shape, "edge_type_weights", (types,), (batch, types))
    eta = to_float64(eta) + 0.0  # -0.0 is 0
    check_weights(eta, "edge_type_weights")
    eta = np.array(np.broadcast_to(eta, (batch, types)), order="C")
    if per_type:
        total = eta.sum(axis=1)
        if (total > 1 + 1e-6).any():
            row = int(np.flatnonzero(total > 1 + 1e-6)[0])
            raise InputError(
                "range",
                f"edge_type_weights[{row}]",
                "{field} sums to {given}; with edge_type_norm='per_type' the weights may sum to {allowed}",
                given=float(total[row]),
                allowed="at most 1",
            )
        return np.asarray(eta / np.maximum(total, 1.0)[:, None])
    eta = _scaled(eta)
    _check_products(graph, eta)
    return None if (eta == 1).all() else eta


def _by_name(weights: Any, graph: Graph, per_type: bool) -> Any:
    """Return weights given by name in the order of the graph's edge types; others as they are."""
    if not isinstance(weights, Mapping):
        return weights
    check_names(weights, "edge_type_weights", graph.edge_type_names)
    return [weights.get(name, 0.0 if per_type else 1.0) for name in graph.edge_type_names]


def _check_products(graph: Graph, eta: NDArray[np.float64]) -> None:
    """Raise if a type weight times the lightest edge of its type underflows in float32."""
    if graph.weight is None:
        return
    product = eta * _lightest(graph)
    lost = (eta > 0) & (product < np.finfo(np.float32).tiny)
    if lost.any():
        b, t = map(int, np.argwhere(lost)[0])
        raise InputError(
            "range",
            f"edge_type_weights[{b}]",
            "{field} makes the lightest edge of type {type} weigh {product:.3g}, which float32 cannot hold; make the "
            "weight 0 or larger, or scale the edges of that type",
            type=t,
            product=product[b, t],
        )


def _lightest_walked(graph: Graph, eta: NDArray[np.float64] | None, batch: int) -> NDArray[np.float64] | None:
    """Return the lightest edge weight that each query can walk, capped at 1, (B,); None if all weights are 1."""
    if graph.weight is None and eta is None:
        return None
    edges = _lightest(graph)[None] if eta is None else np.where(eta > 0, eta, np.inf) * _lightest(graph)
    return np.ascontiguousarray(np.broadcast_to(edges.min(axis=1, initial=1.0), batch))


def _lightest(graph: Graph) -> NDArray[np.float64]:
    """Return the lightest edge weight of each type, (T,)."""
    if graph.weight is None:
        return np.ones(graph.num_edge_types)
    if "lightest" not in graph.derived:
        types = np.zeros(graph.weight.size, np.uint8) if graph.edge_type is None else graph.edge_type
        lightest = np.full(graph.num_edge_types, np.inf)
        np.minimum.at(lightest, types, graph.weight.astype(np.float64))
        graph.derived["lightest"] = np.where(np.isfinite(lightest), lightest, 1.0)  # 1 for types without edges
    found: NDArray[np.float64] = graph.derived["lightest"]
    return found


def _scaled(eta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale each row by a power of two to a largest weight in [1, 2); only ratios matter for joint normalisation."""
    largest = eta.max(axis=1, initial=0.0)
    lost = (eta > 0) & (eta < largest[:, None] * SMALLEST_TYPE_WEIGHT)
    if lost.any():
        b, t = map(int, np.argwhere(lost)[0])
        raise InputError(
            "range",
            f"edge_type_weights[{b}]",
            "{field} is {given} for type {type} and {largest} at most; a weight below {allowed} times the largest is "
            "lost in float32: make it 0 or larger",
            given=float(eta[b, t]),
            type=t,
            largest=float(largest[b]),
            allowed=SMALLEST_TYPE_WEIGHT,
        )
    _, exponent = np.frexp(largest)
    return np.asarray(np.ldexp(eta, np.where(largest > 0, 1 - exponent, 0)[:, None]))


def _read_allow(graph: Graph, allow: Any, batch: int) -> NDArray[np.uint8] | None:
    if allow is None:
        return None
    masks = read_filter(allow, batch, graph.num_nodes, "allow").masks(graph.num_nodes)
    ordered = masks if graph.keeps_order else masks[:, graph.node_of]
    return np.ascontiguousarray(ordered).view(np.uint8)
