"""Add vectors, a graph and the questions' names to a question folder, read by this project's encoder and reader."""

from __future__ import annotations

from pathlib import Path

import hopfuse as hf
from hopfuse.encoders import Encoder, WordLlamaEncoder
from hopfuse.extract import EntityLinker

from ..folders import questions_of, read_lines
from .build import write_lines, write_tsv

#: The cosine from which names are joined.
SYNONYMS = 0.8


def add_graph(folder: Path, encoder: Encoder | None = None) -> list[str]:
    """Write ``graph/`` and ``query_entities.jsonl``, read by spaCy; return the names of the files written.

    ``encoder`` encodes the names that are joined, by default WordLlama.
    """
    encoder = encoder or WordLlamaEncoder()
    passages = list(read_lines(folder / "passages.jsonl"))
    index = hf.Index.build(passages, reader="spacy", lexical=False, encoder=encoder, synonyms=SYNONYMS)
    assert index.graph is not None
    assert index.facts is not None
    first = index.num_passages
    (folder / "graph").mkdir(exist_ok=True)
    titles = [row.get("title") or "" for row in passages]
    named = [("passage", title) for title in titles] + [("entity", name) for name in index.entity_names]
    write_tsv(folder / "graph" / "nodes.tsv", ((str(at), kind, _line(name)) for at, (kind, name) in enumerate(named)))
    kinds = index.graph.edge_type_names
    write_tsv(
        folder / "graph" / "edges.tsv",
        ((str(a), str(b), kinds[kind], f"{weight:g}") for a, b, weight, kind in zip(*_edges(index.graph), strict=True)),
    )
    facts, relations = index.facts, index.facts.relations
    write_tsv(
        folder / "graph" / "facts.tsv",
        (
            (str(first + head), _line(relations[relation]), str(first + tail), str(passage))
            for at, (head, relation, tail) in enumerate(facts.rows.tolist())
            for passage in facts.passages[facts.indptr[at] : facts.indptr[at + 1]].tolist()
        ),
    )
    matches = EntityLinker(index).match(questions_of(folder))
    write_lines(
        folder / "query_entities.jsonl",
        (
            {"id": row["id"], "entities": [[match.surface, "LINK"] for match in found]}
            for row, found in zip(read_lines(folder / "queries.jsonl"), matches, strict=True)
        ),
    )
    return ["graph/nodes.tsv", "graph/edges.tsv", "graph/facts.tsv", "query_entities.jsonl"]


def _edges(graph: hf.Graph) -> tuple[list[int], list[int], list[float], list[int]]:
    a, b, weight, kind = graph.edges()
    return a.tolist(), b.tolist(), weight.tolist(), kind.tolist()


def _line(text: str) -> str:
    """Return a text without tabs and ends of lines."""
    return " ".join(text.split())
