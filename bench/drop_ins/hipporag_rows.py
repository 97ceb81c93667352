"""HippoRAG's ``retrieve`` over graphs of question folders: its own, and after ``accelerate(rag)``.

The graph, the passages and the vectors of passages and questions are those of the folders. They have no vectors of
facts, so a fact gets that of its passage plus noise. The language model keeps the first four facts. Questions are
encoded beforehand.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hopfuse.adapters.hipporag import accelerate

from .hipporag_models import hipporag_module, key_of, make_rag, write_openie
from .rows import Row, compared

#: Standard deviation of the noise in each coordinate of a fact's vector.
NOISE = 0.03


#: The graphs: question folders that are joined, and how many passages are taken of each.
GRAPHS = {
    "1,000 passages of hotpotqa": (("hotpotqa",), 1000),
    "hotpotqa": (("hotpotqa",), None),
    "hotpotqa, musique-train and 2wiki-dev300": (("hotpotqa", "musique-train", "2wiki-dev300"), None),
}


def rows(data: Path, batch: int = 100, turns: int = 3) -> Iterator[Row]:
    """Yield a row for a batch of questions, and one for a single one, over graphs of three sizes."""
    warnings.filterwarnings("ignore", "invalid value", RuntimeWarning)  # HippoRAG divides 0 by 0
    hipporag_module()
    for name, (sets, most) in GRAPHS.items():
        with tempfile.TemporaryDirectory() as folder:
            material = joined([data / one for one in sets], most)
            rag = rag_over(material, Path(folder))
            questions = list(material.questions)
            rag.get_query_embeddings(questions)
            own = rag.retrieve
            ours = accelerate(rag).retrieve
            sizes = {"nodes": rag.graph.vcount(), "edges": rag.graph.ecount(), "passages": len(material.passages)}
            for several in (questions[:batch], questions[batch : batch + 1]):
                yield compared(
                    f"HippoRAG 2, {len(several)} question{'s' * (len(several) > 1)}, {name}",
                    partial(own, several),
                    partial(ours, several),
                    _difference,
                    most=1e-6,
                    turns=turns if len(several) > 1 else 5 * turns,
                    sizes={**sizes, "facts": len(material.facts), "questions": len(several)},
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


class Material(NamedTuple):
    """The rows of a HippoRAG: each text, name and fact once, with its number."""

    passages: dict[str, int]
    vectors: list[np.ndarray[Any, Any]]
    entities: dict[str, int]
    facts: dict[tuple[str, str, str], list[str]]  # the texts that state it
    edges: list[tuple[str, str, float]]  # keys of HippoRAG
    questions: dict[str, np.ndarray[Any, Any]]


def joined(folders: Sequence[Path], most: int | None) -> Material:
    """Return the graphs of question folders as one, in which equal texts are one passage, and equal names one entity.

    With ``most``, only the first passages of each folder, and of the entities those that they lead to.
    """
    found = Material({}, [], {}, defaultdict(list), [], {})
    for data in folders:
        _add(found, data, most)
    return found


def _add(found: Material, data: Path, most: int | None) -> None:
    from hipporag.utils.misc_utils import text_processing

    rows = [json.loads(line) for line in (data / "passages.jsonl").read_text(encoding="utf-8").splitlines()]
    texts = [f"{row['title']}\n{row['text']}" for row in rows]
    vectors = np.load(data / "passage_emb.f16.npy").astype(np.float32)
    names: list[str] = []
    known: set[str] = set()
    for _, kind, name in _table(data / "graph" / "nodes.tsv"):
        if kind == "entity":  # a number distinguishes names that HippoRAG would normalise to the same text
            plain = text_processing(name)
            names.append(plain if plain and plain not in known else f"{plain} {len(known)}")
            known.add(names[-1])
    kept = len(texts) if most is None else most
    edges = [(int(a), int(b), float(weight)) for a, b, _, weight in _table(data / "graph" / "edges.tsv")]
    near = {b for a, b, _ in edges if a < kept} | {a for a, b, _ in edges if b < kept} if most else set()
    taken = [*range(kept), *(n for n in range(len(texts), len(texts) + len(names)) if most is None or n in near)]
    keys: dict[int, str] = {}
    for node in taken:
        if node < len(texts):
            if texts[node] not in found.passages:
                found.passages[texts[node]] = len(found.passages)
                found.vectors.append(vectors[node])
            keys[node] = key_of(texts[node], "chunk")
        else:
            name = names[node - len(texts)]
            found.entities.setdefault(name, len(found.entities))
            keys[node] = key_of(name, "entity")
    found.edges.extend((keys[a], keys[b], weight) for a, b, weight in edges if a in keys and b in keys)
    for head, relation, tail, passage in _table(data / "graph" / "facts.tsv"):
        if all(int(node) in keys for node in (head, tail, passage)):
            ends = (names[int(node) - len(texts)] for node in (head, tail))
            found.facts[(next(ends), text_processing(relation), next(ends))].append(texts[int(passage)])
    asked = [json.loads(line)["question"] for line in (data / "queries.jsonl").read_text("utf-8").splitlines()]
    found.questions.update(zip(asked, np.load(data / "query_emb.f16.npy").astype(np.float64), strict=True))


def rag_over(found: Material, folder: Path) -> Any:
    """Return a HippoRAG over a graph, which can encode its questions."""
    rag = make_rag(
        folder, lambda asked: np.stack([found.questions[one] for one in asked]), lambda question, facts: facts[:4]
    )
    draw = np.random.default_rng(0)
    vectors = np.stack(found.vectors)
    facts = vectors[[found.passages[stated[0]] for stated in found.facts.values()]]
    facts = facts + NOISE * draw.standard_normal(facts.shape, np.float32)
    facts /= np.linalg.norm(facts, axis=1, keepdims=True)
    unused = np.zeros(
        (len(found.entities), 1), np.float32
    )  # retrieval loads the entities' vectors but does not use them
    for store, contents, rows_ in (
        (rag.chunk_embedding_store, list(found.passages), vectors),
        (rag.entity_embedding_store, list(found.entities), unused),
        (rag.fact_embedding_store, [str(fact) for fact in found.facts], facts),
    ):
        store._upsert([key_of(one, store.namespace) for one in contents], contents, list(rows_))
    triples: dict[str, list[list[str]]] = {text: [] for text in found.passages}
    for fact, where in found.facts.items():
        for text in where:
            triples[text].append(list(fact))
    write_openie(rag, triples)
    rag.add_new_nodes()
    vertex = {name: number for number, name in enumerate(rag.graph.vs["name"])}
    rag.graph.add_edges([(vertex[a], vertex[b]) for a, b, _ in found.edges], {"weight": [w for _, _, w in found.edges]})
    rag.prepare_retrieval_objects()
    return rag


def _table(path: Path) -> Iterator[list[str]]:
    return (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
