"""Datasets of the example: the atlas, or a folder of questions with their passages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import md5
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse.encoders import Encoder
from hopfuse.errors import InputError
from hopfuse.evaluate import Qrels
from hopfuse.extract import build_memory, read_openie, similar_pairs
from hopfuse.io.files import read_npy
from hopfuse.io.json_lines import json_objects, text_lines
from hopfuse.lexical import BM25
from numpy.typing import NDArray

from .build import Atlas

MAX_FACTS = 20  # in a text about an entity of MetaQA, of which a genre has thousands
MAX_PER_HOPS = 1000  # questions of MetaQA for each number of hops
EVIDENCE = {"evidence\nin 5": "recall@5", "answer\nin 5": "last_hop@5", "answer\nin 10": "last_hop@10"}
ANSWERS = {"answers\nin 10": "recall@10", "answer\nfirst": "hit@1", "answer\nin 10": "hit@10"}
FOLDERS = {
    "graph": (
        *("passages.jsonl", "queries.jsonl", "graph/nodes.tsv", "graph/edges.tsv", "graph/facts.tsv"),
        *("passage_emb.f16.npy", "query_emb.f16.npy", "query_entities.jsonl"),
    ),
    "openie": ("passages.jsonl", "queries.jsonl", "openie.jsonl"),
    "metaqa": ("kb.tsv", "entity2text.txt", "qa_1hop_dev.txt", "qa_2hop_dev.txt", "qa_3hop_dev.txt"),
}


@dataclass(frozen=True, eq=False)
class Dataset:
    """An index, and questions with the rows of the passages that each needs.

    ``vectors`` and ``entities`` of questions are None if they are made from the texts; ``by_alias`` is True for
    questions that use an alternate name; ``metrics`` are the columns of the table.
    """

    index: hf.Index
    qrels: Qrels
    vectors: Sequence[NDArray[Any]] | None = None
    entities: Sequence[list[str]] | None = None
    by_alias: Sequence[bool] | None = None
    metrics: Mapping[str, str] = field(default_factory=lambda: EVIDENCE)

    def take(self, count: int) -> Dataset:
        """Return at most so many questions, evenly spaced among all."""
        total = len(self.qrels)
        rows = np.arange(min(count, total)) * total // min(count, total)
        vectors, entities, by_alias = (
            None if values is None else [values[row] for row in rows]
            for values in (self.vectors, self.entities, self.by_alias)
        )
        return replace(self, qrels=self.qrels.take(rows), vectors=vectors, entities=entities, by_alias=by_alias)


def atlas_data(atlas: Atlas, encoder: Encoder) -> Dataset:
    """Return the atlas's index and questions; each needs one passage for each hop."""
    index = hf.Index.build(
        passages=[
            {"id": id, "title": title, "text": text}
            for id, title, text in zip(atlas.ids, atlas.titles, atlas.texts, strict=True)
        ],
        graph=atlas.graph(),
        entities=list(atlas.entities),
        aliases={entity: names for entity, names in enumerate(atlas.aliases) if names},
        facts=atlas.facts(),
    )
    texts = index.texts_to_index()
    index = index.with_vectors(encoder.encode_passages(texts), encoder=encoder).with_lexical(BM25.build(texts).matrix)
    questions = atlas.questions
    qrels = Qrels(
        [q.id for q in questions],
        gold=[q.hops for q in questions],
        hops=[[[row] for row in q.hops] for q in questions],
        last_hop=[q.hops[-1:] for q in questions],
        questions=[q.text for q in questions],
        answers=[[q.answer] for q in questions],
    )
    return Dataset(index, qrels, by_alias=[q.by_alias for q in questions])


def folder_data(folder: Path, encoder: Encoder) -> Dataset:
    """Return the index and the questions of a folder; errors name file and line."""
    kind = next((k for k, files in FOLDERS.items() if all((folder / file).is_file() for file in files)), None)
    if kind is None:
        needed = "; or ".join(", ".join(files) for files in FOLDERS.values())
        raise InputError(
            "missing",
            "data",
            "{field} {given} has not the files of a known kind of folder: {allowed}",
            given=folder,
            allowed=needed,
        )
    data = {"graph": _graph_data, "openie": _openie_data, "metaqa": _metaqa_data}[kind](folder, encoder)
    return replace(data, index=data.index.with_lexical(BM25.build(data.index.texts_to_index()).matrix))


def _graph_data(folder: Path, encoder: Encoder) -> Dataset:
    """Read passages with a graph, facts and vectors."""
    nodes = [fields for _, fields in _table(folder / "graph" / "nodes.tsv", ("node", "kind", "name"))]
    names = [name for _, kind, name in nodes if kind == "entity"]
    index = hf.Index.build(
        passages=folder / "passages.jsonl",
        vectors=folder / "passage_emb.f16.npy",
        entities=names,
        entity_vectors=encoder.encode_passages(names),
        graph=folder / "graph" / "edges.tsv",
        facts=folder / "graph" / "facts.tsv",
        fact_ends="node",
        storage="float16",
    )
    if len(nodes) - len(names) != index.num_passages:
        raise InputError(
            "length",
            "nodes.tsv",
            "{field} has {given} passages, passages.jsonl {allowed}; they must agree",
            given=len(nodes) - len(names),
            allowed=index.num_passages,
        ).at(folder)
    qrels = _qrels(folder, index)
    path = folder / "query_emb.f16.npy"
    vectors = read_npy(path, path.name, mapped=False)
    if vectors.shape != (len(qrels), index.dim):
        raise InputError(
            "shape",
            path.name,
            "{field} has shape {given}; it must be {allowed}, a row for each question",
            given=vectors.shape,
            allowed=(len(qrels), index.dim),
        ).at(folder)
    path = folder / "query_entities.jsonl"
    rows = list(json_objects(path, ("id", "entities")))
    if [row["id"] for _, row in rows] != list(qrels.ids):
        raise InputError(
            "order", path.name, "{field} must have a line for each question of queries.jsonl, in its order"
        ).at(folder)
    for line, row in rows:
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in row["entities"]):
            raise InputError(
                "type", "entities", "{field} is {given!r}; it must be a list of [name, kind]", given=row["entities"]
            ).at(f"{path}, line {line}")
    return Dataset(index, qrels, vectors, [[name for name, _ in row["entities"]] for _, row in rows])


def _openie_data(folder: Path, encoder: Encoder) -> Dataset:
    """Read passages with facts that a model extracted; similar names are joined as synonyms."""
    memory = build_memory(read_openie(folder / "openie.jsonl", folder / "passages.jsonl"))
    names = encoder.encode_passages(list(memory.entities))
    pairs, similarities = similar_pairs(names, 0.8)
    graph = memory.graph(pairs, similarities.tolist())
    index = memory.index(graph, entity_vectors=names)
    index = index.with_vectors(encoder.encode_passages(index.texts_to_index()), encoder=encoder)
    return Dataset(index, _qrels(folder, index))


def _metaqa_data(folder: Path, encoder: Encoder) -> Dataset:
    """Read MetaQA's facts about films: passage i states the first facts about entity i."""
    rows = [row for _, row in _table(folder / "kb.tsv", ("head", "relation", "tail"))]
    if not rows:
        raise InputError(
            "empty", "kb.tsv", "{field} has no facts; give it a line of head, relation and tail for each"
        ).at(folder)
    listed = [name for _, (_, name) in _table(folder / "entity2text.txt", ("number", "entity"))]
    names = list(dict.fromkeys([*listed, *(row[end] for row in rows for end in (0, 2))]))
    number = {name: entity for entity, name in enumerate(names)}
    about: list[list[int]] = [[] for _ in names]
    for fact, (head, _, tail) in enumerate(rows):
        for entity in {number[head], number[tail]}:
            if len(about[entity]) < MAX_FACTS:
                about[entity].append(fact)
    texts = [". ".join(" ".join(rows[fact]) for fact in facts) for facts in about]
    ends = np.array([(number[head], number[tail]) for head, _, tail in rows])
    mentions = [np.unique([entity, *ends[facts].flat]) for entity, facts in enumerate(about)]
    src = np.concatenate([np.repeat(np.arange(len(names)), [len(m) for m in mentions]), len(names) + ends[:, 0]])
    dst = len(names) + np.concatenate([*mentions, ends[:, 1]])
    stated = sorted((fact, passage) for passage, facts in enumerate(about) for fact in facts)
    facts = [(number[rows[f][0]], rows[f][1], number[rows[f][2]], passage) for f, passage in stated]
    vectors = encoder.encode_passages([f"{name}. {text}" for name, text in zip(names, texts, strict=True)])
    index = hf.Index.build(
        passages=[{"title": name, "text": text} for name, text in zip(names, texts, strict=True)],
        vectors=vectors,
        entities=names,
        entity_vectors=vectors,
        graph=hf.Graph.from_edges(src, dst, num_nodes=2 * len(names)),
        facts=hf.Facts.from_numbers(facts, len(names), len(names)),
    )
    return _metaqa_questions(folder, index, number)


def _metaqa_questions(folder: Path, index: hf.Index, number: dict[str, int]) -> Dataset:
    """Read the questions with the smallest MD5 for each number of hops; their topics are in brackets."""
    records: list[dict[str, Any]] = []
    topics: list[list[str]] = []
    for hops in (1, 2, 3):
        rows = list(_table(folder / f"qa_{hops}hop_dev.txt", ("question", "answers")))
        rows.sort(key=lambda row: md5(row[1][0].encode(), usedforsecurity=False).digest())
        for where, (text, answers) in rows[:MAX_PER_HOPS]:
            unknown = [answer for answer in answers.split("|") if answer not in number]
            if unknown:
                raise InputError(
                    "unknown", "answers", "{field} has {given!r}, which is not an entity of kb.tsv", given=unknown[0]
                ).at(where)
            gold = sorted({number[answer] for answer in answers.split("|")})
            record = {"id": str(len(records)), "gold": gold, "hops": [[]] * (hops - 1) + [gold]}
            records.append(record | {"question": re.sub(r"[\[\]]", "", text), "answer": answers.split("|")})
            topics.append(re.findall(r"\[(.+)\]", text))
    if not records:
        raise InputError("empty", "qa_*hop_dev.txt", "there are no questions: {field} are empty").at(folder)
    return Dataset(index, Qrels.from_records(records), entities=topics, metrics=ANSWERS)


def _qrels(folder: Path, index: hf.Index) -> Qrels:
    path = folder / "queries.jsonl"
    rows = [row for _, row in json_objects(path, ("id", "question", "gold"))]
    if not rows:
        raise InputError(
            "empty", path.name, "{field} has no questions; give it a line with id, question and gold for each"
        ).at(folder)
    qrels = Qrels.from_records(rows)
    absent = [row for gold in qrels.gold for row in gold if row >= index.num_passages]
    if absent:
        raise InputError(
            "unknown",
            "gold",
            "{field} has the passage {given}; passages.jsonl has {allowed} lines",
            given=absent[0],
            allowed=index.num_passages,
        ).at(path)
    return qrels


def _table(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    for line, text in text_lines(path):
        fields = text.split("\t")
        if len(fields) != len(columns):
            raise InputError(
                "length", None, "there are {given} columns; there must be {allowed}", given=len(fields), allowed=columns
            ).at(f"{path}, line {line}")
        yield f"{path}, line {line}", fields
