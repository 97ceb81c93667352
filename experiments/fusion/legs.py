"""The lists of a folder's questions, computed once and fused by every study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import hopfuse as hf
import numpy as np
from hopfuse.diagnose import shared_names
from hopfuse.encoders import Encoder
from hopfuse.evaluate import Qrels, split_rows
from hopfuse.lexical import BM25
from numpy.typing import NDArray

from ..folders import load_index, read_lines, read_tsv

DEPTH = 1000  # of every list
DAMPING = 0.5  # of every walk
STRICT = 0.9  # similarity from which a synonym edge is of the type "close synonym"
EDGE_TYPES = ("context", "relation", "synonym", "close synonym", "same name")


@dataclass(frozen=True, eq=False)
class Legs:
    """Questions of a folder, and the list of each leg for them.

    Attributes
    ----------
    qrels : Qrels, B queries
    questions : tuple of str, B entries
    lists : mapping of str to Hits
        ``"dense"``, ``"graph"`` and ``"lexical"``, up to DEPTH passages per question, with raw scores.
    seeds : Seeds
        The seeds of each question's walk.
    linked : Graph
        The folder's graph with EDGE_TYPES; all but "same name" are those of the folder.
    passages : tuple of str
        Title and text of each passage.
    """

    qrels: Qrels
    questions: tuple[str, ...]
    lists: Mapping[str, hf.Hits]
    seeds: hf.Seeds
    linked: hf.Graph
    passages: tuple[str, ...]

    def take(self, rows: NDArray[np.int64]) -> Legs:
        """Return the questions at some positions."""
        return Legs(
            self.qrels.take(rows),
            tuple(self.questions[row] for row in rows),
            {name: hf.Hits(hits.ids[rows], hits.scores[rows], hits.counts[rows]) for name, hits in self.lists.items()},
            hf.Seeds(self.seeds.nodes[rows], self.seeds.weights[rows]),
            self.linked,
            self.passages,
        )

    def halves(self) -> tuple[Legs, Legs]:
        """Return the tune half and the test half."""
        tune, test = (self.take(split_rows(self.qrels, split)) for split in ("tune", "test"))
        return tune, test


def open_legs(folder: Path, encoder: Encoder) -> Legs:
    """Search for every question of a folder with all three legs."""
    index = load_index(folder, encoder)
    recipe = hf.recipes.PhaseGraph(
        index,
        encoder=encoder,
        lexical=BM25(index.lexical),
        dense_k=DEPTH,
        graph_k=DEPTH,
        damping=DAMPING,
        lexical_k=DEPTH,
        dense_fallback=False,
    )
    questions = tuple(row["question"] for row in read_lines(folder / "queries.jsonl"))
    mentions = [[name for name, _ in row["entities"]] for row in read_lines(folder / "query_entities.jsonl")]
    found = recipe.search(questions, vectors=np.load(folder / "query_emb.f16.npy"), entities=mentions, k=1)
    return Legs(
        Qrels.read_jsonl(folder / "queries.jsonl"),
        questions,
        dict(found.lists),
        found.seeds,
        linked_graph(folder),
        tuple(f"{title}\n{text}" for title, text in zip(index.titles, index.texts, strict=True)),
    )


def linked_graph(folder: Path) -> hf.Graph:
    """Return the folder's edges by EDGE_TYPES, plus a chain of edges between entities with the same normalised name."""
    nodes = list(read_tsv(folder / "graph" / "nodes.tsv"))
    passages = sum(kind == "passage" for _, kind, _ in nodes)
    edges = [
        (int(a), int(b), _type(kind, float(weight)), float(weight))
        for a, b, kind, weight in read_tsv(folder / "graph" / "edges.tsv")
    ]
    number = EDGE_TYPES.index("same name")
    for group in shared_names(name for _, kind, name in nodes if kind == "entity").values():
        edges += [(passages + a, passages + b, number, 1.0) for a, b in pairwise(group)]
    src, dst, types, weights = (np.array(column) for column in zip(*edges, strict=True))
    return hf.Graph.from_edges(
        src, dst, weights, edge_type=types, edge_type_names=EDGE_TYPES, num_nodes=len(nodes), directed=False
    )


def _type(kind: str, weight: float) -> int:
    return EDGE_TYPES.index("close synonym" if kind == "synonym" and weight >= STRICT else kind)
