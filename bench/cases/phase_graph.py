"""A whole PhaseGraph search, from vectors and entity names to the fused top 10."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import hopfuse as hf
import numpy as np

from .. import gate
from ..settings import Settings
from .base import Workload, ends, proof
from .data import KnowledgeGraph, knowledge_graph, synthetic_graph
from .ranked import rankings, top_k

K = 10
DENSE_TOLERANCE = 2e-6
#: Passages that are symmetric in the graph tie exactly; their float32 scores differ by at most the walk's tol.
GRAPH_TIE = 1e-6
FUSED_TOLERANCE = 1e-6
#: Largest number of passages of a name to which all commits give the same seed weight.
RARE = 30


class PhaseGraphWhole(Workload):
    """An index in memory, and its questions in order, with another batch in each turn."""

    ops = ("dense_topk_f32", "ppr_f32", "fuse_f32")

    def __init__(self, settings: Settings, batches: tuple[int, ...] = (1, 32)) -> None:
        self.knowledge = knowledge = self.load(settings.quick)
        self.batches = (1, 8) if settings.quick else batches
        self.data, self.threads = knowledge.source, settings.threads
        self.vectors = np.ascontiguousarray(knowledge.query_vectors, np.float32)
        self.index = _index(knowledge)
        self.mentions = _rare(self.index, knowledge.mentions)
        self.recipe = self.make(settings.threads)
        self.sizes = {
            "passages": knowledge.num_passages,
            "entities": len(knowledge.names),
            "stored_entries": knowledge.graph.num_stored,
            "dim": int(self.vectors.shape[1]),
            "k": K,
        }

    def load(self, quick: bool) -> KnowledgeGraph:
        """Return the graph, the vectors and the questions of the case."""
        return knowledge_graph(quick)

    def make(self, threads: int) -> Any:
        """Return the recipe over the index."""
        return _recipe(self.index, threads)

    def with_threads(self, threads: int) -> PhaseGraphWhole:
        other = copy.copy(self)
        other.threads, other.recipe = threads, self.make(threads)
        return other

    def turns(self, batch: int, settings: Settings) -> int:
        """Return enough repetitions for a 95th percentile."""
        return settings.repeats if settings.quick else max(settings.repeats, 100)

    def questions(self, batch: int, turn: int) -> dict[str, Any]:
        """Return the questions of a turn, as arguments of a recipe's search."""
        rows = [(turn * batch + b) % len(self.mentions) for b in range(batch)]
        return {"vectors": self.vectors[rows], "entities": [self.mentions[q] for q in rows], "k": K}

    def run(self, batch: int, turn: int) -> Any:
        return self.recipe.search(**self.questions(batch, turn))

    def check(self, batch: int, ours: Any) -> dict[str, Any]:
        """Check each stage: each pool, then the fusion of those pools."""
        rows = ends(batch)
        self._check_graph(rows, ours.lists["graph"])
        exact = hf.reference.dense_topk(self.vectors[rows], self.index.corpus, self.recipe.config.dense_k)
        gate.rankings("dense pool", _rows(ours.lists["dense"], rows), rankings(exact), DENSE_TOLERANCE, DENSE_TOLERANCE)
        pools = [_pool(ours.lists["dense"], rows), _pool(ours.lists["graph"], rows)]
        alpha = self.recipe.config.alpha
        fused = hf.reference.fuse(pools, weights=(alpha, 1.0 - alpha), k=K)
        error = gate.rankings("fused", _rows(ours.hits, rows), rankings(fused), FUSED_TOLERANCE, FUSED_TOLERANCE)
        return proof(len(rows), error, FUSED_TOLERANCE)

    def compare(self, batch: int, ours: Any, theirs: gate.Rankings) -> dict[str, Any]:
        found = gate.Rankings(ours.hits.ids, ours.hits.scores)
        error = gate.rankings("the peer against hopfuse", found, theirs, FUSED_TOLERANCE, FUSED_TOLERANCE)
        return proof(batch, error, FUSED_TOLERANCE)

    def task(self) -> dict[str, Any]:
        src, dst, weight, _ = self.knowledge.graph.edges()
        return {
            "op": "phase_graph",
            "edges": (src, dst, weight),
            "num_nodes": self.knowledge.graph.num_nodes,
            "vectors": self.knowledge.vectors,
            "names": self.knowledge.names,
            "query_vectors": self.vectors,
            "mentions": self.mentions,
            "k": K,
        }

    def _check_graph(self, rows: list[int], pool: hf.Hits) -> None:
        traced = self.recipe.search(
            vectors=self.vectors[rows], entities=[self.mentions[q] for q in rows], k=K, trace=True
        )
        for at, row in enumerate(rows):
            seeds = traced.traces[at]["seeds"]
            restart = {self.index.num_passages + seed["entity"]: seed["weight"] for seed in seeds}
            exact = np.zeros((1, self.index.graph.num_nodes))
            if restart:
                exact = hf.reference.ppr(self.index.graph, [restart], damping=self.recipe.config.damping)
            expected = top_k(exact[:, : self.index.num_passages], self.recipe.config.graph_k, above=0.0)
            gate.rankings("graph pool", _rows(pool, [row]), expected, GRAPH_TIE, 1e-4)


def _index(knowledge: KnowledgeGraph) -> hf.Index:
    return hf.Index.build(
        passages=[{"text": ""} for _ in range(knowledge.num_passages)],
        vectors=knowledge.vectors,
        graph=knowledge.graph,
        entities=knowledge.names,
    )


def _rare(index: hf.Index, mentions: list[list[str]]) -> list[list[str]]:
    """Leave out names that earlier commits weigh differently: those of many passages or of several entities."""
    passages: dict[str, int] = {}
    for name, count in zip(index.entity_names, index.passage_frequency.tolist(), strict=True):
        passages[name] = RARE + 1 if name in passages else count
    return [[name for name in row if passages.get(name, 0) <= RARE] for row in mentions]


def _recipe(index: hf.Index, threads: int) -> hf.recipes.PhaseGraph:
    """Return the recipe with the default settings of the earlier commits that it is compared with."""
    return hf.recipes.PhaseGraph(index, hf.recipes.PhaseGraph.paper(), threads=threads)


def _rows(hits: hf.Hits, rows: list[int]) -> gate.Rankings:
    return gate.Rankings(hits.ids[rows], hits.scores[rows])


def _pool(hits: hf.Hits, rows: list[int]) -> hf.Hits:
    return hf.Hits(hits.ids[rows], hits.scores[rows], hits.counts[rows])


class OneThread(PhaseGraphWhole):
    """The same on one thread, whose wall time is its CPU time."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(replace(settings, threads=1), batches=(32,))


class SmallMemory(PhaseGraphWhole):
    """A graph of 200 nodes, as in an agent's memory, with one question per call, on one thread."""

    calls = 20

    def __init__(self, settings: Settings) -> None:
        super().__init__(replace(settings, threads=1), batches=(1,))

    def load(self, quick: bool) -> KnowledgeGraph:
        return synthetic_graph(passages=80, entities=120, mentioned=3)
