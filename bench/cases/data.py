"""Inputs with questions: the hotpotqa data set, and a deterministic synthetic one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
from numpy.typing import NDArray

from ..data_sets import VARIABLE, data_root
from ..errors import UnavailableError

#: Size of the quick mode's graph: passages, entities, entities mentioned by each passage.
QUICK_GRAPH = (120, 480, 6)


@dataclass(frozen=True)
class WalkGraph:
    """A graph of passages 0 .. P-1 and entities P .. N-1 with undirected, weighted edges, and its origin."""

    source: str
    graph: hf.Graph
    num_passages: int


@dataclass(frozen=True)
class KnowledgeGraph(WalkGraph):
    """A graph with the ``names`` of entities, ``vectors`` (P, d) of passages, and questions.

    ``query_vectors`` (Q, d) and ``mentions`` (Q lists of names) belong to the questions.
    """

    names: list[str]
    vectors: NDArray[Any]
    query_vectors: NDArray[Any]
    mentions: list[list[str]]


def knowledge_graph(quick: bool) -> KnowledgeGraph:
    """Return the hotpotqa graph with its edge types merged, or a tiny one in quick mode."""
    return synthetic_graph(*QUICK_GRAPH) if quick else _hotpotqa()


def data_folder(name: str) -> Path:
    """Return the folder of a data set; raise UnavailableError if it is absent."""
    folder = data_root() / name
    if not (folder / "graph" / "edges.tsv").is_file():
        raise UnavailableError(f"the {name} data is absent; set {VARIABLE} to the folder that holds {name}/")
    return folder


def read_graph(folder: Path) -> tuple[hf.Graph, list[str]]:
    """Return a folder's graph with its edge types merged, and the names of its entities."""
    nodes = [line.split("\t") for line in (folder / "graph" / "nodes.tsv").read_text("utf-8").splitlines()]
    edges = [line.split("\t") for line in (folder / "graph" / "edges.tsv").read_text("utf-8").splitlines()]
    graph = hf.Graph.from_edges(
        np.array([int(edge[0]) for edge in edges]),
        np.array([int(edge[1]) for edge in edges]),
        np.array([float(edge[3]) for edge in edges]),
        num_nodes=len(nodes),
    )
    return graph, [node[2] for node in nodes if node[1] == "entity"]


def _hotpotqa() -> KnowledgeGraph:
    folder = data_folder("hotpotqa")
    graph, names = read_graph(folder)
    questions = [json.loads(line) for line in (folder / "query_entities.jsonl").read_text("utf-8").splitlines()]
    return KnowledgeGraph(
        "hotpotqa",
        graph,
        graph.num_nodes - len(names),
        names,
        np.load(folder / "passage_emb.f16.npy"),
        np.load(folder / "query_emb.f16.npy"),
        [[surface for surface, _ in question["entities"]] for question in questions],
    )


def synthetic_graph(passages: int, entities: int, mentioned: int) -> KnowledgeGraph:
    """Return a graph of passages that mention entities, some far more popular, and a chain of all entities."""
    rng = np.random.default_rng(7)
    src = np.repeat(np.arange(passages), mentioned)
    dst = passages + np.minimum(rng.zipf(1.6, src.size), entities) - 1
    chain = passages + np.arange(entities - 1)
    graph = hf.Graph.from_edges(
        np.concatenate([src, chain]),
        np.concatenate([dst, chain + 1]),
        np.concatenate([np.ones(src.size), rng.uniform(0.8, 3.0, chain.size)]),
        num_nodes=passages + entities,
    )
    names = [f"entity {e}" for e in range(entities)]
    vectors = unit_vectors(passages + 40, 32, seed=8)
    mentions = [[names[e] for e in rng.choice(entities, 3, replace=False)] for _ in range(40)]
    return KnowledgeGraph("synthetic", graph, passages, names, vectors[:passages], vectors[passages:], mentions)


def seeds(graph: hf.Graph, queries: int, per_query: int, first: int) -> list[dict[int, float]]:
    """Return restarts: distinct nodes from ``first`` on that have an edge, with weights in [0.1, 1)."""
    rng = np.random.default_rng(11)
    src, dst, _, _ = graph.edges()
    has_edge = np.zeros(graph.num_nodes, bool)
    has_edge[src] = has_edge[dst] = True
    linked = first + np.flatnonzero(has_edge[first:])
    rows = []
    for _ in range(queries):
        nodes = rng.choice(linked, per_query, replace=False).tolist()
        rows.append(dict(zip(nodes, rng.uniform(0.1, 1.0, per_query).tolist(), strict=True)))
    return rows


def unit_vectors(count: int, dim: int, seed: int) -> NDArray[np.float32]:
    """Return random unit vectors, float32."""
    vectors = np.random.default_rng(seed).standard_normal((count, dim), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors
