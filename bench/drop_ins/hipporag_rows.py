"""HippoRAG's ``retrieve`` over the hotpotqa folder's graph: its own, and after ``accelerate(rag)``.

The graph, the passages and the vectors of passages and questions are those of the folder. It has no vectors of facts,
so a fact gets that of its passage plus noise. The language model keeps the first four facts. Questions are encoded
beforehand.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from hopfuse.adapters.hipporag import accelerate

from .hipporag_models import hipporag_module, key_of, make_rag, write_openie
from .rows import Row, compared

#: Standard deviation of the noise in each coordinate of a fact's vector.
NOISE = 0.03


def rows(data: Path, batch: int = 100, turns: int = 3) -> Iterator[Row]:
    """Yield a row for a batch of questions, and one for a single one."""
    warnings.filterwarnings("ignore", "invalid value", RuntimeWarning)  # HippoRAG divides 0 by 0
    with tempfile.TemporaryDirectory() as folder:
        rag, questions = hotpotqa_rag(data / "hotpotqa", Path(folder))
        rag.get_query_embeddings(questions)
        own = rag.retrieve
        ours = accelerate(rag).retrieve
        for several in (questions[:batch], questions[batch : batch + 1]):
            yield compared(
                f"HippoRAG 2, {len(several)} question{'s' * (len(several) > 1)}, hotpotqa",
                lambda several=several: own(several),  # type: ignore[misc]
                lambda several=several: ours(several),  # type: ignore[misc]
                _difference,
                most=1e-6,
                turns=turns if len(several) > 1 else 5 * turns,
            )


def _difference(own: list[Any], ours: list[Any]) -> float:
    """Return the largest difference of a score: at the same rank, or of the same passage."""
    gaps = [0.0]
    for one, other in zip(own, ours, strict=True):
        if len(one.docs) != len(other.docs):
            raise SystemExit(f"{one.question}: {len(one.docs)} passages, and {len(other.docs)}")
        gaps += np.abs(one.doc_scores - other.doc_scores).tolist()
        theirs = dict(zip(other.docs, other.doc_scores.tolist(), strict=True))
        least = float(other.doc_scores.min(initial=np.inf))  # upper bound for a passage outside the list
        gaps += [abs(score - theirs.get(doc, least)) for doc, score in zip(one.docs, one.doc_scores, strict=True)]
    return max(gaps)


def hotpotqa_rag(data: Path, folder: Path) -> tuple[Any, list[str]]:
    """Return a HippoRAG over the folder's graph, and the questions that it can encode."""
    hipporag_module()
    from hipporag.utils.misc_utils import text_processing

    passages = [json.loads(line) for line in (data / "passages.jsonl").read_text(encoding="utf-8").splitlines()]
    texts = [f"{passage['title']}\n{passage['text']}" for passage in passages]
    names: dict[str, None] = {}
    for _, kind, name in _table(data / "graph" / "nodes.tsv"):
        if kind == "entity":  # a number distinguishes names that HippoRAG would normalise to the same text
            plain = text_processing(name)
            names[plain if plain and plain not in names else f"{plain} {len(names)}"] = None
    entities = list(names)
    stated: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for head, relation, tail, passage in _table(data / "graph" / "facts.tsv"):
        ends = (entities[int(node) - len(texts)] for node in (head, tail))
        stated[(next(ends), text_processing(relation), next(ends))].append(int(passage))
    questions = [json.loads(line)["question"] for line in (data / "queries.jsonl").read_text("utf-8").splitlines()]
    vectors = np.load(data / "passage_emb.f16.npy").astype(np.float32)
    of_question = dict(zip(questions, np.load(data / "query_emb.f16.npy").astype(np.float64), strict=True))
    rag = make_rag(
        folder, lambda asked: np.stack([of_question[one] for one in asked]), lambda question, facts: facts[:4]
    )
    draw = np.random.default_rng(0)
    facts = vectors[[rows[0] for rows in stated.values()]]
    facts = facts + NOISE * draw.standard_normal(facts.shape, np.float32)
    facts /= np.linalg.norm(facts, axis=1, keepdims=True)
    unused = np.zeros((len(entities), 1), np.float32)  # retrieval loads the entities' vectors but does not use them
    for store, contents, rows_ in (
        (rag.chunk_embedding_store, texts, vectors),
        (rag.entity_embedding_store, entities, unused),
        (rag.fact_embedding_store, [str(fact) for fact in stated], facts),
    ):
        store._upsert([key_of(one, store.namespace) for one in contents], contents, list(rows_))
    triples: dict[str, list[list[str]]] = {text: [] for text in texts}
    for fact, where in stated.items():
        for passage in where:
            triples[texts[passage]].append(list(fact))
    write_openie(rag, triples)
    rag.add_new_nodes()
    vertex = {name: number for number, name in enumerate(rag.graph.vs["name"])}
    numbers = [vertex[key_of(text, "chunk")] for text in texts] + [vertex[key_of(name, "entity")] for name in entities]
    edges = list(_table(data / "graph" / "edges.tsv"))
    pairs = [(numbers[int(a)], numbers[int(b)]) for a, b, _, _ in edges]
    rag.graph.add_edges(pairs, {"weight": [float(edge[3]) for edge in edges]})
    rag.prepare_retrieval_objects()
    return rag, questions


def _table(path: Path) -> Iterator[list[str]]:
    return (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
