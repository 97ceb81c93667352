"""Small indexes that can be taken apart: passages of several owners over one graph, and the index of one owner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse import reference
from hopfuse.recipes import PhaseGraphConfig
from numpy.typing import NDArray

DIM = 6
TYPES = ("context", "relation", "synonym", "next")


@dataclass(frozen=True)
class World:
    """What an index is built of; edges are (src, dst, type, weight) by node."""

    vectors: NDArray[np.float32]
    names: list[str]
    entity_vectors: NDArray[np.float32]
    edges: list[tuple[int, int, str, float]]
    aliases: dict[int, list[str]] = field(default_factory=dict)

    @property
    def passages(self) -> int:
        return len(self.vectors)

    def index(self) -> hf.Index:
        src, dst, kinds, weights = (list(column) for column in zip(*self.edges, strict=True))
        graph = hf.Graph.from_edges(
            src,
            dst,
            weights,
            num_nodes=self.passages + len(self.names),
            edge_type=[TYPES.index(kind) for kind in kinds],
            edge_type_names=TYPES,
        )
        return hf.Index.build(
            passages=[{"title": f"Title {p}", "text": f"text {p}"} for p in range(self.passages)],
            vectors=self.vectors,
            entities=self.names,
            aliases=self.aliases,
            entity_vectors=self.entity_vectors,
            graph=graph,
            statements=hf.types.EdgeStatements.of_no_passage(graph),
            metric="cosine",
        )

    def seen(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Nodes: some passages, and the entities next to them."""
        nodes = np.concatenate([mask, np.zeros(len(self.names), bool)])
        for a, b, _, _ in self.edges:
            low, high = min(a, b), max(a, b)
            if low < self.passages <= high and mask[low]:
                nodes[high] = True
        return nodes

    def alone(self, mask: NDArray[np.bool_]) -> tuple[World, NDArray[np.int64], NDArray[np.int64]]:
        """The world of some passages alone; which passages and which entities it has."""
        nodes = self.seen(mask)
        number = np.cumsum(nodes) - 1
        kept = np.flatnonzero(nodes[self.passages :])
        edges = [(int(number[a]), int(number[b]), kind, w) for a, b, kind, w in self.edges if nodes[a] and nodes[b]]
        world = World(
            self.vectors[mask],
            [self.names[e] for e in kept],
            self.entity_vectors[kept],
            edges,
            {at: self.aliases[e] for at, e in enumerate(kept.tolist()) if e in self.aliases},
        )
        return world, np.flatnonzero(mask), kept

    def with_others_changed(self, mask: NDArray[np.bool_], seed: int) -> World:
        """The same but for what the passages outside a mask say: their vectors, links and own entities' names."""
        rng, nodes = np.random.default_rng(seed), self.seen(mask)
        vectors = np.where(mask[:, None], self.vectors, rng.standard_normal(self.vectors.shape)).astype(np.float32)
        edges = [edge for edge in self.edges if nodes[edge[0]] and nodes[edge[1]]]
        entities = np.arange(len(self.names)) + self.passages
        for p in np.flatnonzero(~mask).tolist():
            edges += [(p, int(e), "context", 2.0) for e in rng.choice(entities, 4, replace=False)]
        hidden = entities[~nodes[entities]]
        ends = rng.choice(hidden, (8, 2)) if hidden.size else np.zeros((0, 2), int)
        edges += [(int(a), int(b), "relation", 3.0) for a, b in ends if a != b]
        names = [name if nodes[self.passages + e] else f"Entity {e % 3}" for e, name in enumerate(self.names)]
        return replace(self, vectors=vectors, edges=edges, names=names)


class Encoder:
    """An encoder of names: the vector of one entity, by the name's letters."""

    def __init__(self, world: World) -> None:
        self.vectors = world.entity_vectors

    def encode_queries(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        return np.stack([self.vectors[sum(map(ord, text)) % len(self.vectors)] for text in texts])


def random_world(seed: int, passages: int = 24, entities: int = 16) -> World:
    """Typed edges of all kinds, between passages too; entities that several names and aliases share."""
    rng = np.random.default_rng(seed)
    edges = [
        (p, passages + int(e), "context", float(rng.integers(1, 4)))
        for p in range(passages)
        for e in rng.choice(entities, 3, replace=False)
    ]
    for kind, count in (("relation", 12), ("synonym", 8)):
        pairs = passages + rng.choice(entities, (count, 2))
        edges += [(int(a), int(b), kind, 1.0) for a, b in pairs if a != b]
    edges += [(p, p + 1, "next", 1.0) for p in range(passages - 1) if p % 4]
    return World(
        rng.standard_normal((passages, DIM)).astype(np.float32),
        [f"Entity {e % (entities - 2)}" for e in range(entities)],
        rng.standard_normal((entities, DIM)).astype(np.float32),
        edges,
        {1: ["Other", "Entity 5"], 7: ["Other"]},
    )


def random_questions(seed: int, batch: int = 5) -> dict[str, Any]:
    """Vectors and mentions: names, aliases, nothing, what nobody is called."""
    rng = np.random.default_rng(seed)
    said = ["Entity 0", "entity 3", "Other", "Entity 5", "Entity 8", "nobody", "Entity 1", "Entity 12"]
    mentions = [[said[i] for i in rng.choice(len(said), rng.integers(0, 4), replace=False)] for _ in range(batch)]
    return {"vectors": rng.standard_normal((batch, DIM)).astype(np.float32), "entities": mentions}


def lists_of(found: Any) -> dict[str, hf.Hits]:
    """A search's ranking and the lists that it was made from."""
    return {"hits": found.hits, **found.lists}


def walk_by_hand(index: hf.Index, found: Any, among: Any, k: int, nodes: Any = None, **options: Any) -> hf.Hits:
    """The graph pool by the oracle, from the seeds of a search; ``among`` and ``nodes``: masks of a question."""
    ids, scores = np.full((len(found.hits), k), -1), np.full((len(found.hits), k), -np.inf)
    for b, (row, weights) in enumerate(zip(found.seeds.nodes, found.seeds.weights, strict=True)):
        held = row >= 0
        if not held.any():
            continue
        seeds = dict(zip(row[held].tolist(), weights[held].tolist(), strict=True))
        if nodes is not None:
            options["allow"] = nodes[b]
        passages = np.flatnonzero(among[b])
        (best,), (found_scores,) = reference.ppr_topk(
            index.graph, [seeds], k, candidates=passages, **{"damping": PhaseGraphConfig().damping, **options}
        )
        ids[b, : len(best)], scores[b, : len(best)] = best, found_scores
    return hf.Hits(ids, scores)


def weights_by_hand(found: Any, *legs: str) -> NDArray[np.float64]:
    """The weight of each list by the rarest seed of each question of a search, (B, L).

    A seed's weight is 1 over the number of passages that have it, of less than 2,000.
    """
    rows = []
    for heaviest in found.seeds.weights.max(axis=1, initial=0.0).tolist():
        w = 1.0 / (1.0 + 12.0 * heaviest)
        dense = 0.4 + 0.6 * w if "lexical" in legs else 0.6 + 0.4 * w
        weights = {"dense": dense, "graph": 1.0 - w, "lexical": 0.2 + 0.6 * w}
        rows.append([weights[leg] for leg in legs])
    return np.array(rows)


def fuse_by_hand(lists: list[hf.Hits], weights: Any = None, *, k: int, **how: Any) -> hf.Hits:
    """The oracle's fusion of each question by itself, with its own weights (B, L), or those of all (L,)."""
    each = [None] * len(lists[0]) if weights is None else np.broadcast_to(weights, (len(lists[0]), len(lists)))
    rows = [
        reference.fuse([hf.Hits.from_lists([hits.row(b)]) for hits in lists], weights=each[b], k=k, **how).row(0)
        for b in range(len(lists[0]))
    ]
    ids, scores = np.full((len(rows), k), -1), np.full((len(rows), k), -np.inf)
    for b, row in enumerate(rows):
        ids[b, : len(row)], scores[b, : len(row)] = [hit[0] for hit in row], [hit[1] for hit in row]
    return hf.Hits(ids, scores)


def assert_same_ranking(found: Any, expected: Any, tie: float = 0.0) -> None:
    """Ids equal, scores to 1e-5; ids that the oracle has within ``tie`` of each other may stand in either order."""
    np.testing.assert_array_equal(found.counts, expected.counts)
    held = found.ids >= 0
    np.testing.assert_allclose(found.scores[held], np.asarray(expected.scores)[held], atol=1e-5, rtol=1e-5)
    for b, at in np.argwhere(found.ids != expected.ids):
        there = np.flatnonzero(expected.ids[b] == found.ids[b, at])
        assert there.size, f"row {b}: {found.ids[b]} is not {expected.ids[b]}"
        assert abs(expected.scores[b, there[0]] - expected.scores[b, at]) < tie, f"row {b}: {found.ids[b]}"


class Words:
    """A lexical leg that cannot filter, over some of 24 passages."""

    def __init__(self, rows: Any = range(24)) -> None:
        self.rows = list(rows)

    def search(self, questions: Sequence[str], k: int, /) -> hf.Hits:
        found = []
        for q in questions:
            order = np.random.default_rng(sum(map(ord, q))).permutation(24)[:15].tolist()
            found.append([(self.rows.index(row), 15.0 - at) for at, row in enumerate(order) if row in self.rows])
        return hf.Hits.from_lists(found).head(k)

    def part(self, rows: Any) -> Words:
        return Words([self.rows[row] for row in rows])
