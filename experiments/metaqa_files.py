"""MetaQA as files for ``hopfuse build`` and ``hopfuse compare``, with a passage about each entity.

A passage has the entity's name as its title; its text is the name and the first facts about it. It states these facts
and mentions their entities. The gold passages of a question are those about its answers; its entity is given.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from hopfuse.encoders import WordLlamaEncoder

from .metaqa import entity_texts, facts_about, facts_of, questions_of

QUESTIONS = 334  # of each hop count


def write_files(folder: Path, work: Path) -> None:
    """Write a MetaQA folder as passages, entities, edges, facts, entity vectors, and judged questions."""
    names, known = facts_of(folder)
    texts = entity_texts(names, known)
    first = len(names)  # passages come first among the nodes
    passages = ({"id": at, "title": name, "text": texts[at]} for at, name in enumerate(names))
    _jsonl(work / "passages.jsonl", passages)
    _jsonl(work / "entities.jsonl", ({"name": name} for name in names))
    triple = [(head, known.relations[kind], tail) for head, kind, tail in known.rows.tolist()]
    edges = [(first + head, first + tail, relation, 1.0) for head, relation, tail in triple]
    facts = []
    for passage, own in enumerate(facts_about(known)):
        stated = [triple[fact] for fact in own]
        facts += [(first + head, relation, first + tail, passage) for head, relation, tail in stated]
        mentioned = {passage, *(end for head, _, tail in stated for end in (head, tail))}
        edges += [(passage, first + entity, "context", 1.0) for entity in sorted(mentioned)]
    _tsv(work / "edges.tsv", ("src", "dst", "type", "weight"), edges)
    _tsv(work / "facts.tsv", ("head", "relation", "tail", "passage"), facts)
    np.save(work / "entity_vectors.npy", WordLlamaEncoder().encode_passages(texts))
    number = {name: at for at, name in enumerate(names)}
    rows = []
    for at, question in enumerate(questions_of(folder, QUESTIONS)):
        gold = sorted({number[answer] for answer in question.answers})
        hops = [*([[]] * (question.hops - 1)), gold]
        asked = {"id": f"m{at}", "question": question.text, "type": f"{question.hops} hops", "topic": question.topic}
        rows.append({**asked, "gold": gold, "hops": hops, "last_hop": gold})
    _jsonl(work / "queries.jsonl", rows)


def build_arguments(work: Path) -> list[str]:
    """Return the arguments of ``hopfuse build`` for the files of :func:`write_files`."""
    files = {"entities": "entities.jsonl", "edges": "edges.tsv", "facts": "facts.tsv"}
    given = [word for option, name in files.items() for word in (f"--{option}", str(work / name))]
    given += ["--fact-ends", "node", "--entity-vectors", str(work / "entity_vectors.npy")]
    return [str(work / "passages.jsonl"), *given, "--encoder", "wordllama", "--lexical", "--metric", "cosine"]


def _jsonl(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _tsv(path: Path, names: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> None:
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in [names, *rows]), encoding="utf-8")
