"""Graphs without questions: MuSiQue's, that of examples/atlas, and generated ones of any size."""

from __future__ import annotations

import hopfuse as hf
import numpy as np
from hopfuse.errors import MissingExtraError
from numpy.typing import NDArray

from examples.atlas import build_atlas

from ..errors import UnavailableError
from ..machine import require_memory
from .data import WalkGraph, data_folder, knowledge_graph, read_graph

#: Stored entries per node and nodes per passage of generated graphs, as in the hotpotqa graph.
STORED_PER_NODE, NODES_PER_PASSAGE = 8, 8
#: An entity of rank r is drawn with frequency r^(1 / SKEW - 1), so degrees follow a power law with exponent 2.5.
SKEW = 3.0
#: Edges drawn at a time.
CHUNK = 2_000_000
#: Peak bytes per stored entry of building a graph, walking on it and checking the answer.
BYTES_PER_STORED = 100


def musique(quick: bool) -> WalkGraph:
    """Return the musique-train graph with its edge types merged."""
    if quick:
        return knowledge_graph(True)
    folder = data_folder("musique-train")
    graph, names = read_graph(folder)
    return WalkGraph("musique-train", graph, graph.num_nodes - len(names))


def atlas(quick: bool) -> WalkGraph:
    """Return the typed graph that ``examples/atlas`` builds from installed packages."""
    if quick:
        return knowledge_graph(True)
    try:
        made = build_atlas()
    except MissingExtraError as absent:
        raise UnavailableError(str(absent)) from absent
    return WalkGraph("atlas", made.graph(), len(made.ids))


def generated(stored: int, quick: bool) -> WalkGraph:
    """Return a graph with the degrees of an entity graph and about ``stored`` entries (repeated edges are merged)."""
    stored = min(stored, 4_000) if quick else stored
    require_memory(BYTES_PER_STORED * stored)
    nodes = stored // STORED_PER_NODE
    passages = nodes // NODES_PER_PASSAGE
    src, dst, weight = _edges(stored // 2, passages, nodes - passages)
    graph = hf.Graph.from_edges(src, dst, weight, num_nodes=nodes)
    return WalkGraph("generated", graph, passages)


def _edges(
    count: int, passages: int, entities: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
    """Return edges: half of them from a passage to an entity, half between entities, some far more popular than others.

    They are drawn in chunks, each with its own seed, into 32-bit arrays, to keep memory small.
    """
    src, dst, weight = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.float32)
    order = np.random.default_rng(17).permutation(entities).astype(np.int32)  # spreads popular entities over all ids
    for chunk, first in enumerate(range(0, count, CHUNK)):
        rng = np.random.default_rng((19, chunk))
        part = slice(first, min(first + CHUNK, count))
        size = part.stop - part.start
        popular = np.minimum(entities * rng.random(size) ** SKEW, entities - 1).astype(np.int32)
        mentions = np.arange(part.start, part.stop) < count // 2
        named, partner = order[popular], rng.integers(0, entities, size)
        partner[partner == named] = (partner[partner == named] + 1) % entities  # igraph counts a loop twice
        src[part] = np.where(mentions, rng.integers(0, passages, size), passages + partner)
        dst[part] = passages + named
        weight[part] = np.where(mentions, 1.0, rng.uniform(0.8, 3.0, size))
    return src, dst, weight
