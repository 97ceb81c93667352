"""Folders of questions that a demo runs on: passages with a graph, passages with extracted facts, or triples."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path

import numpy as np

from .. import Index, Triples
from ..encoders import Encoder
from ..errors import InputError
from ..evaluate import PassageNames, Qrels, read_qrels
from ..extract import build_memory, read_openie, similar_pairs
from .demo_asked import Asked, groups_by_hops
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
#: Least similarity of entities that are joined as synonyms, where facts are extracted.
SYNONYMS = 0.8
QUESTIONS = 1000  # of metaqa, of each number of hops


@dataclass(frozen=True)
class Folder:
    """A folder and its kind, one of ``KINDS``."""

    path: Path
    kind: str


def checked_folder(path: Path, recipe: str) -> Folder:
    """The kind of a folder, where it has what is needed and the recipe can answer its questions."""
    kind = next((kind for kind, files in KINDS.items() if all((path / file).is_file() for file in files)), None)
    if kind is None:
        needed = "; or ".join(", ".join(files) for files in KINDS.values())
        raise InputError(f"--data: {path} is no folder that the demo can read; it needs {needed}")
    ranks = "entities" if recipe == "triple-hybrid" else "passages"
    wanted = "entities" if kind == "metaqa" else "passages"
    if ranks != wanted:
        right = "triple-hybrid" if wanted == "entities" else "phase-graph, policy-rag or hybrid-rrf"
        raise InputError(f"--data: {path} has questions that {wanted} answer, and {recipe} ranks {ranks}; use {right}")
    return Folder(path, kind)


def folder_index(folder: Folder, encoder: Encoder) -> Index:
    """The index of a folder with passages; names are embedded for mentions that match none."""
    if folder.kind == "openie":
        memory = build_memory(read_openie(folder.path / "openie.jsonl", folder.path / "passages.jsonl"))
        names = np.asarray(encoder.encode_passages(list(memory.entities)))
        pairs, similarities = similar_pairs(names, SYNONYMS)
        vectors = encoder.encode_passages(list(memory.texts))
        return memory.index(memory.graph(pairs, similarities.tolist()), vectors=vectors, entity_vectors=names)
    entities = read_nodes(folder.path / "graph" / "nodes.tsv").entities
    return Index.build(
        passages=folder.path / "passages.jsonl",
        vectors=folder.path / "passage_emb.f16.npy",
        entities=entities,
        entity_vectors=encoder.encode_passages(entities),
        graph=[
            {"src": int(a), "dst": int(b), "type": kind, "weight": float(weight)}
            for a, b, kind, weight in _tsv(folder.path / "graph" / "edges.tsv")
        ],
        facts=[
            {"head": int(head), "relation": relation, "tail": int(tail), "passage": int(passage)}
            for head, relation, tail, passage in _tsv(folder.path / "graph" / "facts.tsv")
        ],
        fact_ends="node",
        storage="float16",
    )


def folder_questions(folder: Folder, index: Index) -> Asked:
    """Its questions, judged by the index's passages; with their vectors and names where the folder has them."""
    names = PassageNames()
    for passage in index.passage_ids:
        names.number(passage)
    qrels = read_qrels(folder.path / "queries.jsonl", names)
    texts = [str(query.text) for query in read_queries(folder.path / "queries.jsonl")]
    titles = index.titles
    needs = [" and ".join(titles[p] for p in gold) for gold in qrels.gold]
    if folder.kind == "openie":
        return Asked(texts, qrels, groups_by_hops(qrels), needs)
    vectors = np.load(folder.path / "query_emb.f16.npy", allow_pickle=False)
    lines = (folder.path / "query_entities.jsonl").read_text(encoding="utf-8").splitlines()
    mentions = [[name for name, _ in json.loads(line)["entities"]] for line in lines]
    return Asked(texts, qrels, groups_by_hops(qrels), needs, vectors, mentions)


def metaqa_triples(path: Path) -> Triples:
    """All facts; entities in the order of entity2text.txt, some of which no fact has."""
    facts = [(head, relation, tail) for head, relation, tail in _tsv(path / "kb.tsv")]
    names = [row[1] for row in _tsv(path / "entity2text.txt")]
    return Triples(facts, list(dict.fromkeys([*names, *(fact[end] for fact in facts for end in (0, 2))])))


def metaqa_questions(path: Path, triples: Triples) -> Asked:
    """Questions of each number of hops, those whose texts have the smallest MD5; brackets of topics are taken out."""
    number = {name: at for at, name in enumerate(triples.entities)}
    texts, gold, hops, needs = list[str](), list[list[int]](), list[list[tuple[int, ...]]](), list[str]()
    for steps in (1, 2, 3):
        rows = [(text, answers.split("|")) for text, answers in _tsv(path / f"qa_{steps}hop_dev.txt")]
        rows.sort(key=lambda row: md5(row[0].encode(), usedforsecurity=False).digest())
        for text, answers in rows[:QUESTIONS]:
            texts.append(re.sub(r"[\[\]]", "", text))
            gold.append(sorted({number[answer] for answer in answers}))
            hops.append([*([()] * (steps - 1)), tuple(gold[-1])])
            needs.append(", ".join(answers))
    qrels = Qrels([str(at) for at in range(len(gold))], gold, hops)
    return Asked(texts, qrels, groups_by_hops(qrels), needs)


def _tsv(path: Path) -> Iterator[list[str]]:
    """The rows of a file whose columns are separated by tabs, nothing quoted."""
    with path.open(encoding="utf-8", newline="") as lines:
        yield from csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
