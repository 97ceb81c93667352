"""What a policy makes of an index: the typed graph of its walk, and the way from entities back to passages."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..index import Index
from ..types import Graph, Incidence
from ..types.arrays import to_float64, to_numpy
from ._policy import Policy

TYPES = ("relation", "synonym", "context")


@dataclass(frozen=True, eq=False)
class PolicyGraph:
    """Laid out once for a recipe.

    Attributes
    ----------
    graph : Graph
        Nodes as in the index, its edges of the types ``TYPES``.
    weights : tuple of float
        eta of each type.
    norm : {"per_type", "joint"}
        How the types are put together.
    incidence : Incidence
        B: passages by nodes. A passage holds its entities and, where passages are in the walk, itself.
    frequency : ndarray of int64, shape (E,)
        Passages that mention each entity.
    scale : ndarray of float32, shape (P,)
        1 / (length^beta * IPF^gamma).
    hubs : ndarray of float64, shape (P,)
        Share of each passage's entities that are hubs.
    """

    graph: Graph
    weights: tuple[float, ...]
    norm: str
    incidence: Incidence
    frequency: NDArray[np.int64]
    scale: NDArray[np.float32]
    hubs: NDArray[np.float64]
    _mentioning: NDArray[np.int64]
    _bounds: NDArray[np.int64]

    def passages_of(self, entity: int) -> NDArray[np.int64]:
        """The passages that mention an entity."""
        return self._mentioning[self._bounds[entity] : self._bounds[entity + 1]]

    def weights_of(self, given: Any, batch: int, able: NDArray[np.int64]) -> NDArray[Any]:
        """eta of the walks that are made, of those given for all questions or for each."""
        eta, types = to_numpy(given, "edge_weights"), len(TYPES)
        if eta.shape not in ((types,), (batch, types)):
            raise InputError(
                f"edge_weights has shape {eta.shape}; give eta of {', '.join(TYPES)}: ({types},) or ({batch}, {types})"
            )
        rows = np.atleast_2d(to_float64(eta))
        most = 1.0 + 1e-12 if self.norm == "per_type" else np.inf
        if not (np.isfinite(rows) & (rows >= 0)).all() or (rows.sum(axis=1) > most).any():
            raise InputError(
                "edge_weights must be finite, at least 0, and sum to at most 1 where edge_type_norm is per_type"
            )
        for kind, weight in zip(TYPES, self.weights, strict=True):
            if weight == 0 and rows[:, TYPES.index(kind)].any():
                raise InputError(
                    f"edge_weights are above 0 for {kind} edges, which the policy leaves out of the walk; give 0, "
                    f"or set walk.{kind} above 0 and its switch on"
                )
        return rows[0] if eta.ndim == 1 else rows[able]

    @classmethod
    def of(cls, index: Index, policy: Policy) -> PolicyGraph:
        assert index.graph is not None
        src, dst, weight, types = index.graph.edges()
        passages = index.num_passages
        context = (src < passages) != (dst < passages)
        between = (src < passages) & (dst < passages)
        if between.any():
            at = int(np.flatnonzero(between)[0])
            raise InputError(
                f"the graph joins passages {src[at]} and {dst[at]}; PolicyRAG reads passages through their entities: "
                "build the graph without such edges"
            )
        names = index.graph.edge_type_names
        synonym = np.array([name == "synonym" for name in names], bool)
        kind = np.where(context, TYPES.index("context"), np.where(synonym[types], TYPES.index("synonym"), 0))
        factors = _factors(names, {names[t] for t in np.unique(types[kind == 0])}, policy)
        weight = np.where(kind == 0, weight * factors[types], weight)
        weights = _weights(policy)
        kept = np.asarray(weights)[kind] > 0
        graph = Graph.from_edges(
            src[kept],
            dst[kept],
            weight[kept],
            edge_type=kind[kept],
            edge_type_names=TYPES,
            num_nodes=index.graph.num_nodes,
            directed=index.graph.directed,
        )
        mentions = Incidence.from_graph(index.graph, passages)
        passage, entity = np.repeat(np.arange(passages), np.diff(mentions.indptr)), mentions.indices - passages
        frequency = np.bincount(entity, minlength=index.num_entities).astype(np.int64)
        scale = _scale(policy, passage, frequency[entity], index.passage_lengths)
        hub = frequency > policy.reranking.hub_share * passages
        hubs = _means(passage, hub[entity].astype(np.float64), passages)
        incidence = _with_passages(mentions, passage) if weights[-1] > 0 else mentions
        incidence = incidence.normalised() if policy.projection.row_normalised else incidence
        bounds = np.concatenate([[0], np.cumsum(frequency)])
        mentioning = passage[np.argsort(entity, kind="stable")]
        return cls(graph, weights, policy.walk.edge_type_norm, incidence, frequency, scale, hubs, mentioning, bounds)


def _factors(names: Sequence[str], relations: Collection[str], policy: Policy) -> NDArray[np.float32]:
    """What the relations of each of the index's edge types count."""
    unknown = sorted(set(policy.families) - set(relations))
    if unknown:
        listed = ", ".join(name for name in names if name in relations)
        raise InputError(
            f"families has {unknown[0]!r}; the relations between the index's entities are: {listed or 'none'}"
        )
    return np.array([policy.families.get(name, 1.0) for name in names], np.float32)


def _weights(policy: Policy) -> tuple[float, ...]:
    walk, on = policy.walk, policy.switches
    parts = (on.relation_edges, walk.relation), (on.synonym_edges, walk.synonym), (on.passage_nodes, walk.context)
    weights = tuple(weight if switch else 0.0 for switch, weight in parts)
    if not any(weights):
        raise InputError("the policy's switches leave no edges for the walk; leave one of them on")
    return weights


def _scale(
    policy: Policy, passage: NDArray[np.int64], frequency: NDArray[np.int64], lengths: NDArray[np.int32]
) -> NDArray[np.float32]:
    """1 / (length^beta * IPF^gamma), both relative to their means over the passages; 1 without normalisation.

    IPF: the mean of 1 + document frequency over a passage's entities, whose inverse multiplies the score. So what is
    divided by grows with how common the entities are.
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
    """The mean of each passage's values, 0 where it has none."""
    count = np.bincount(passage, minlength=passages)
    return np.asarray(np.bincount(passage, values, passages) / np.maximum(count, 1), np.float64)


def _with_passages(mentions: Incidence, passage: NDArray[np.int64]) -> Incidence:
    """A passage holds its entities, and itself."""
    own = np.arange(mentions.num_rows)
    rows, columns = np.concatenate([own, passage]), np.concatenate([own, mentions.indices])
    return Incidence.from_pairs(rows, columns, num_rows=mentions.num_rows, num_columns=mentions.num_columns)
