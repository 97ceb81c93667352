"""The typed graph of a policy's walk, and the projection from its nodes to passages."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays.convert import to_float64, to_numpy
from ..._arrays.rows import entries_of
from ..._validation import check_names, check_shape, check_weights
from ...errors import InputError
from ...index import Index
from ...types import Graph, Incidence
from .config import Policy

TYPES = ("relation", "synonym", "context")


@dataclass(frozen=True, eq=False)
class PolicyGraph:
    """The graph of an index and statistics of its passages, as a policy reads them.

    Attributes
    ----------
    graph : Graph
        Nodes as in the index; edges have the types ``TYPES``.
    mentions : Incidence
        The entities of each passage, as nodes.
    incidence : Incidence
        B: passages by nodes. A passage has its own node, or its entities and, if the walk has passages, its own node.
    specificity : ndarray of float64, shape (E,)
        1 / (1 + document frequency), or ones.
    scale : ndarray of float32, shape (P,)
        1 / (length^beta * IPF^gamma); 0 for passages that are not listed.
    hubs : ndarray of float64, shape (P,)
        Share of each passage's entities that are hubs.
    statements : ndarray of int64, shape (F,)
        Number of passages that state each fact.
    passages_by_entity : (ndarray of int64, ndarray of int64)
        Offsets (E + 1,) and passages of each entity, in CSR form.
    passages : ndarray of bool, shape (P,), or None
        Passages that are listed; None for all.
    """

    graph: Graph
    mentions: Incidence
    incidence: Incidence
    specificity: NDArray[np.float64]
    scale: NDArray[np.float32]
    hubs: NDArray[np.float64]
    statements: NDArray[np.int64]
    passages_by_entity: tuple[NDArray[np.int64], NDArray[np.int64]]
    passages: NDArray[np.bool_] | None = None

    @property
    def num_passages(self) -> int:
        """P, the number of passages."""
        return self.mentions.num_rows

    def passages_of(self, entity: int) -> NDArray[np.int64]:
        """Return the passages that mention an entity."""
        indptr, passages = self.passages_by_entity
        return passages[indptr[entity] : indptr[entity + 1]]

    @classmethod
    def from_index(cls, index: Index, policy: Policy) -> PolicyGraph:
        """Return the graph of an index for a policy."""
        mentions = Incidence.from_graph(_graph_of(index), index.num_passages)
        passage, entity = _pairs(mentions, np.arange(mentions.num_rows))
        frequency = np.bincount(entity, minlength=index.num_entities).astype(np.int64)
        facts = index.facts
        return cls(
            graph=_typed(index, policy),
            mentions=mentions,
            incidence=_incidence(policy, mentions, passage),
            specificity=_specificity(policy, frequency),
            scale=_scale(policy, passage, frequency[entity], index.passage_lengths),
            hubs=_hubs(policy, passage, frequency[entity], mentions.num_rows),
            statements=np.zeros(0, np.int64) if facts is None else np.diff(facts.indptr),
            passages_by_entity=(
                np.concatenate([[0], np.cumsum(frequency)]),
                passage[np.argsort(entity, kind="stable")],
            ),
        )

    def listing(self, passages: NDArray[np.bool_]) -> PolicyGraph:
        """Return the same graph with only some passages listed; ``passages`` is a mask (P,)."""
        return replace(self, passages=passages, scale=np.where(passages, self.scale, np.float32(0)))


def read_edge_weights(given: Any, batch: int, policy: Policy) -> NDArray[Any]:
    """Return eta of the edge types, (3,) for all questions or (B, 3)."""
    eta, types = to_numpy(given, "edge_weights"), len(TYPES)
    check_shape(eta.shape, "edge_weights", (types,), (batch, types), reason=f"weights of {', '.join(TYPES)}")
    check_weights(eta, "edge_weights")
    rows = np.atleast_2d(to_float64(eta))
    over = np.flatnonzero(rows.sum(axis=1) > 1.0 + 1e-12)
    if policy.walk.edge_type_norm == "per_type" and over.size:
        raise InputError(
            "range",
            "edge_weights",
            "{field} sum to {given:g} in row {row}; under edge_type_norm 'per_type' they sum to at most {allowed}",
            given=rows[over[0]].sum(),
            row=int(over[0]),
            allowed=1,
        )
    for at, weight in enumerate(policy.edge_type_weights):
        if weight == 0 and rows[:, at].any():
            raise InputError(
                "conflict",
                "edge_weights",
                "{field} is above 0 for {type} edges, which the policy leaves out of the walk; give 0, or set "
                "walk.{type} above 0 and its switch on",
                type=TYPES[at],
            )
    return rows[0] if eta.ndim == 1 else rows


def _graph_of(index: Index) -> Graph:
    assert index.graph is not None
    return index.graph


def joined_passages(index: Index) -> InputError | None:
    """Return the error for a graph with an edge between two passages, or None."""
    graph, key = _graph_of(index), f"edge between the first {index.num_passages} nodes"
    if key not in graph.derived:
        src, dst, _, _ = graph.edges()
        between = np.flatnonzero((src < index.num_passages) & (dst < index.num_passages))
        graph.derived[key] = (int(src[between[0]]), int(dst[between[0]])) if between.size else None
    if graph.derived[key] is None:
        return None
    source, target = graph.derived[key]
    return InputError(
        "unsupported",
        "graph",
        "{field} has an edge between the passages {source} and {target}; PolicyRAG joins passages by their "
        "entities: build the graph without such edges, which a reader makes of the column position",
        source=source,
        target=target,
    )


def _typed(index: Index, policy: Policy) -> Graph:
    """Return the index's graph with the edge types of the walk; types of weight 0 are left out."""
    graph, passages, weights = _graph_of(index), index.num_passages, np.asarray(policy.edge_type_weights)
    if not weights.any():
        raise InputError("conflict", "switches", "{field} leave no edges for the walk; leave one of them on")
    src, dst, weight, types = graph.edges()
    names = graph.edge_type_names
    synonym = np.array([name == "synonym" for name in names], bool)
    context = (src < passages) != (dst < passages)
    kind = np.where(context, TYPES.index("context"), np.where(synonym[types], TYPES.index("synonym"), 0))
    others = set(np.unique(types[kind != 0]).tolist()) - set(np.unique(types[kind == 0]).tolist())
    factors = _factors(names, [name for t, name in enumerate(names) if t not in others], policy)
    weight = np.where(kind == 0, weight * factors[types], weight)
    kept = weights[kind] > 0
    return _from_edges(graph, src[kept], dst[kept], weight[kept], kind[kept])


def _from_edges(
    like: Graph, src: NDArray[np.int64], dst: NDArray[np.int64], weight: NDArray[np.float32], kind: NDArray[Any]
) -> Graph:
    return Graph.from_edges(
        src,
        dst,
        weight,
        edge_type=kind,
        edge_type_names=TYPES,
        num_nodes=like.num_nodes,
        directed=like.directed,
    )


def _factors(names: Sequence[str], relations: Collection[str], policy: Policy) -> NDArray[np.float32]:
    """Return the weight of each edge type of the index among the relations."""
    check_names(sorted(policy.families), "families", [name for name in names if name in relations])
    return np.array([policy.families.get(name, 1.0) for name in names], np.float32)


def _pairs(mentions: Incidence, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs (position in ``rows``, entity) for some passages."""
    nodes, count = entries_of(mentions.indptr, mentions.indices, rows)
    return np.repeat(np.arange(rows.size), count), nodes.astype(np.int64) - mentions.num_rows


def _specificity(policy: Policy, frequency: NDArray[np.int64]) -> NDArray[np.float64]:
    if not policy.switches.specificity:
        return np.ones(frequency.size)
    return np.asarray(1.0 / (1.0 + frequency), np.float64)


def _hubs(
    policy: Policy, passage: NDArray[np.int64], frequency: NDArray[np.int64], passages: int
) -> NDArray[np.float64]:
    """Return the share of hubs among each passage's entities; ``frequency`` is that of each pair's entity."""
    hub = frequency > policy.reranking.hub_share * passages
    return _means(passage, hub.astype(np.float64), passages)


def _scale(
    policy: Policy, passage: NDArray[np.int64], frequency: NDArray[np.int64], lengths: NDArray[np.int32]
) -> NDArray[np.float32]:
    """Return 1 / (length^beta * IPF^gamma), both relative to their means over the passages; 1 without normalisation.

    IPF is the mean of 1 + document frequency over a passage's entities, so common entities lower the score.
    """
    if not policy.switches.normalisation:
        return np.ones(lengths.size, np.float32)
    length = np.maximum(lengths, 1).astype(np.float64)
    common = np.maximum(_means(passage, 1.0 + frequency, lengths.size), 1.0)
    beta, gamma = policy.projection.beta, policy.projection.gamma
    if lengths.size == 0:
        return np.zeros(0, np.float32)
    return np.asarray((length / length.mean()) ** -beta * (common / common.mean()) ** -gamma, np.float32)


def _means(passage: NDArray[np.int64], values: NDArray[Any], passages: int) -> NDArray[np.float64]:
    """Return the mean of each passage's values, 0 if it has none."""
    count = np.bincount(passage, minlength=passages)
    return np.asarray(np.bincount(passage, values, passages) / np.maximum(count, 1), np.float64)


def _incidence(policy: Policy, mentions: Incidence, passage: NDArray[np.int64]) -> Incidence:
    """Return the nodes that each passage's score is read from; ``passage`` is the row of each entry of ``mentions``."""
    own, size = np.arange(mentions.num_rows), {"num_rows": mentions.num_rows, "num_columns": mentions.num_columns}
    if policy.reads_passages:
        return Incidence.from_pairs(own, own, **size)
    if policy.edge_type_weights[-1] > 0:
        rows, columns = np.concatenate([own, passage]), np.concatenate([own, mentions.indices])
        mentions = Incidence.from_pairs(rows, columns, **size)
    return mentions.normalised() if policy.projection.row_normalised else mentions
