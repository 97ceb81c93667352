"""Facts to choose from, and the ones most similar to a question."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...types import Corpus, Facts
from .._parts.facts import QueryFacts, facts_of

ScoredFacts = list[tuple[int, float]]


class FoundFact(NamedTuple):
    """A fact and its similarity to the question."""

    fact: int
    head: int
    relation: str
    tail: int
    score: float
    text: str


def facts_around(facts: Facts, entities: Sequence[Collection[int]]) -> QueryFacts:
    """Return the facts with one of a question's entities at an end: by question, ascending, each once."""
    query = np.repeat(np.arange(len(entities)), [len(row) for row in entities])
    found = facts_of(facts, query, np.array([e for row in entities for e in row], np.int64))
    _, first = np.unique(found.query * len(facts) + found.fact, return_index=True)
    return found.at(first)


def best_facts(around: QueryFacts, scores: NDArray[np.float32], batch: int, k: int) -> list[ScoredFacts]:
    """Return the k best facts of each question, best first; the lower number is first where scores are equal."""
    rows = []
    for a, b in pairwise(around.indptr(batch).tolist()):
        order = a + np.argsort(-scores[a:b], kind="stable")[:k]
        rows.append(list(zip(around.fact[order].tolist(), scores[order].tolist(), strict=True)))
    return rows


def found_facts(facts: Facts, names: Sequence[str], scored: ScoredFacts) -> list[FoundFact]:
    """Return the facts with scores above 0, with their names."""
    found = []
    for fact, score in scored:
        if score > 0:
            head, kind, tail = facts.rows[fact].tolist()
            relation = facts.relations[kind]
            found.append(FoundFact(fact, head, relation, tail, score, f"{names[head]} {relation} {names[tail]}"))
    return found


def fact_corpus(vectors: Any, num_facts: int) -> Corpus | None:
    """Return the vectors of all facts, compared by cosine."""
    if vectors is None:
        return None
    corpus = vectors if isinstance(vectors, Corpus) else Corpus.from_array(vectors, metric="cosine")
    if len(corpus) != num_facts:
        raise InputError(
            "UNSORTED",
            None,
            "fact_vectors has {number} rows; the index has {num_facts} facts: give one row per fact",
            number=len(corpus),
            num_facts=num_facts,
        )
    return corpus.with_metric("cosine")
