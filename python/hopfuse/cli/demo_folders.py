"""Folders of questions that a demo runs on: passages with a graph, passages with extracted facts, or triples."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .. import Index
from ..encoders import Encoder
from ..errors import InputError
from ..evaluate import PassageNames, Qrels, read_qrels
from ..extract import build_memory, read_openie, similar_pairs
from .demo_asked import Asked, groups_by_hops
from .demo_files import question_entities, question_vectors
from .demo_metaqa import metaqa_index, metaqa_questions, metaqa_triples
from .inputs import text_of
from .nodes import read_nodes
from .queries import read_queries

#: Files by which a folder of each kind is known.
KINDS = {
    "graph": (
        *("passages.jsonl", "queries.jsonl", "graph/nodes.tsv", "graph/edges.tsv", "graph/facts.tsv"),
        *("passage_emb.f16.npy", "query_emb.f16.npy", "query_entities.jsonl"),
    ),
    "openie": ("passages.jsonl", "queries.jsonl", "openie.jsonl"),
    "metaqa": ("kb.tsv", "entity2text.txt", "qa_1hop_dev.txt", "qa_2hop_dev.txt", "qa_3hop_dev.txt"),
}
SAID = {
    "graph": "passages with a graph and vectors",
    "openie": "passages with facts that a model extracted",
    "metaqa": "MetaQA's triples and questions",
}
#: Least similarity of entities that are joined as synonyms, where facts are extracted.
SYNONYMS = 0.8


@dataclass(frozen=True)
class Folder:
    """A folder and its kind, one of ``KINDS``."""

    path: Path
    kind: str


def checked_folder(path: Path) -> Folder:
    """The kind of a folder that has what is needed."""
    kind = next((kind for kind, files in KINDS.items() if all((path / file).is_file() for file in files)), None)
    if kind is None:
        needed = "; ".join(f"{SAID[kind]} ({', '.join(files)})" for kind, files in KINDS.items())
        raise InputError(
            f"--data: {path} is no folder that the demo can read, for it has not the files of any kind that it can: "
            f"{needed}; give one of these, or leave --data out for the atlas"
        )
    return Folder(path, kind)


def folder_index(folder: Folder, encoder: Encoder) -> Index:
    """The index of a folder; names are embedded for mentions that match none, which MetaQA's topics never are."""
    if folder.kind == "metaqa":
        return metaqa_index(metaqa_triples(folder.path), encoder)
    if folder.kind == "openie":
        memory = build_memory(read_openie(folder.path / "openie.jsonl", folder.path / "passages.jsonl"))
        names = np.asarray(encoder.encode_passages(list(memory.entities)))
        pairs, similarities = similar_pairs(names, SYNONYMS)
        vectors = encoder.encode_passages(list(memory.texts))
        return memory.index(memory.graph(pairs, similarities.tolist()), vectors=vectors, entity_vectors=names)
    nodes = folder.path / "graph" / "nodes.tsv"
    named = read_nodes(nodes)
    index = Index.build(
        passages=folder.path / "passages.jsonl",
        vectors=folder.path / "passage_emb.f16.npy",
        entities=named.entities,
        entity_vectors=encoder.encode_passages(named.entities),
        graph=folder.path / "graph" / "edges.tsv",
        facts=folder.path / "graph" / "facts.tsv",
        fact_ends="node",
        storage="float16",
    )
    if named.passages != index.num_passages:
        raise InputError(f"{nodes} has {named.passages} passages, passages.jsonl {index.num_passages}; they must agree")
    return index


def folder_questions(folder: Folder, index: Index) -> Asked:
    """Its questions, judged by the index's passages; with their vectors and names where the folder has them."""
    if folder.kind == "metaqa":
        return metaqa_questions(folder.path, index.entity_names)
    queries = folder.path / "queries.jsonl"
    qrels = _judged(queries, index)
    texts = [text_of(query, "to ask") for query in read_queries(queries)]
    titles = index.titles
    needs = [" and ".join(titles[p] for p in gold) for gold in qrels.gold]
    if folder.kind == "openie":
        return Asked(texts, qrels, groups_by_hops(qrels), needs)
    assert index.corpus is not None
    vectors = question_vectors(folder.path / "query_emb.f16.npy", len(texts), index.corpus.dim)
    mentions = question_entities(folder.path / "query_entities.jsonl", qrels.ids)
    return Asked(texts, qrels, groups_by_hops(qrels), needs, vectors, mentions)


def _judged(queries: Path, index: Index) -> Qrels:
    """Its judgements, all of passages that the index has."""
    names = PassageNames(index.passage_ids)
    qrels = read_qrels(queries, names)
    if not len(qrels):
        raise InputError(f"{queries} has no questions; give it a line with id, question and gold for each")
    if len(names) > index.num_passages:
        raise InputError(
            f"{queries} has {len(names) - index.num_passages} gold passages that passages.jsonl lacks: "
            f"{names.name(index.num_passages)!r}; gold are ids of passages"
        )
    return qrels
