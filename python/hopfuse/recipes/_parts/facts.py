"""Facts of entities and between pairs of entities, for a batch of queries; facts, nodes and passages as plain data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._arrays.rows import entries_of
from ...index import Index
from ...types import Facts

MAX_FACTS = 3  # shown between two entities
MAX_PASSAGES = 5  # shown for a fact


class QueryFacts(NamedTuple):
    """Facts by ascending query, and the entity at the other end of each."""

    query: NDArray[np.int64]
    fact: NDArray[np.int64]
    entity: NDArray[np.int64]

    def indptr(self, batch: int) -> NDArray[np.int64]:
        """Return the CSR offsets of the queries: query b has the facts indptr[b] .. indptr[b + 1] - 1."""
        return np.searchsorted(self.query, np.arange(batch + 1)).astype(np.int64)

    def at(self, places: NDArray[Any]) -> QueryFacts:
        """Return the facts that a mask or an array of positions selects."""
        return QueryFacts(*(part[places] for part in self))


def facts_of(facts: Facts, query: NDArray[np.int64], entity: NDArray[np.int64]) -> QueryFacts:
    """Return the facts with these entities at an end, for each entity's query."""
    fact, count = entries_of(facts.incident_indptr, facts.incident, entity)
    fact = fact.astype(np.int64)
    ends = facts.rows[fact][:, [0, 2]].astype(np.int64)
    return QueryFacts(np.repeat(query, count), fact, ends.sum(axis=1) - np.repeat(entity, count))


def fact_labels(facts: Facts, fact: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return each fact's head, relation and tail as numbers of labels, (F, 3): entities first, then relations."""
    return facts.rows[fact] + np.array([0, facts.num_entities, 0], np.int32)


def num_statements(facts: Facts, passages: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the number of passages that state each fact, (F,), counting those of a mask (P,)."""
    if len(facts) == 0:
        return np.zeros(0, np.int64)
    return np.add.reduceat(passages[facts.passages], facts.indptr[:-1], dtype=np.int64)


def facts_between(
    facts: Facts, pairs: NDArray[np.int64], statements: NDArray[np.int64], limit: int = MAX_FACTS
) -> list[list[int]]:
    """Return the facts between each pair of entities, in either direction, those with the most statements first.

    ``statements`` (F,) counts the passages that state each fact; facts with 0 are left out. Ties go to the lower
    number.
    """
    held = np.diff(facts.incident_indptr)[pairs]
    fewer, other = np.where((held[:, 0] <= held[:, 1])[:, None], pairs, pairs[:, ::-1]).T
    found = facts_of(facts, np.arange(len(pairs)), fewer)
    found = found.at((found.entity == other[found.query]) & (statements[found.fact] > 0))
    at, fact = found.query, found.fact
    order = np.lexsort((fact, -statements[fact], at))
    return [row[:limit].tolist() for row in split_rows(at[order], fact[order], len(pairs))]


def split_rows(at: NDArray[np.int64], values: NDArray[Any], rows: int) -> list[NDArray[Any]]:
    """Return the values of each row; ``at`` holds their rows, ascending."""
    return np.split(values, np.searchsorted(at, np.arange(1, rows))) if rows else []


# ---- Plain data ------------------------------------------------------------------------------------------------------


def named_fact(index: Index, fact: int, before: int) -> dict[str, Any]:
    """Return a fact as plain data; ``before`` is the end that a path visits first."""
    facts, names = index.facts, index.entity_names
    assert facts is not None
    head, relation, tail = facts.rows[fact].tolist()
    stated = facts.passages[facts.indptr[fact] : facts.indptr[fact + 1]]
    return {
        "fact": fact,
        "head": names[head],
        "relation": facts.relations[relation],
        "tail": names[tail],
        "forward": head == before,
        "passages": [named_passage(index, passage) for passage in stated[:MAX_PASSAGES].tolist()],
        "num_passages": stated.size,
    }


def named_node(index: Index, node: int) -> dict[str, Any]:
    """Return a node as plain data: its kind, its number within the kind, and its name."""
    first = index.num_passages
    if node < first:
        return {"kind": "passage", "number": node, "name": index.titles[node] or str(index.passage_ids[node])}
    return {"kind": "entity", "number": node - first, "name": index.entity_names[node - first]}


def named_passage(index: Index, passage: int) -> dict[str, Any]:
    """Return a passage as plain data."""
    return {"passage": passage, "id": index.passage_ids[passage], "title": index.titles[passage]}
