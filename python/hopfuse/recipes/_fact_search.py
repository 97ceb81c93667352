"""The facts that are most like a question, of those around its candidates or of all."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..index import Index
from ..ops.dense import dense_topk
from ..ops.dice import dice_scores
from ..types import Corpus, LabelSets
from ._facts import step
from ._policy import Policy


class Found(NamedTuple):
    """A fact, and how like the question it is."""

    fact: int
    head: int
    relation: str
    tail: int
    score: float
    text: str


class FactFinder:
    """Finds facts of an index; by vectors where there are some, else by the Dice coefficient of their labels."""

    def __init__(
        self,
        index: Index,
        policy: Policy,
        names: Sequence[str],
        labels: LabelSets,
        vectors: Any,
        threads: int | None,
    ) -> None:
        self._facts, self._names, self._labels, self._threads = index.facts, names, labels, threads
        self._rules, self._corpus = policy.facts, _corpus(vectors, 0 if index.facts is None else len(index.facts))
        if self._rules.scope == "all" and self._corpus is None:
            raise InputError("the policy's facts.scope is 'all', which needs fact_vectors=; give them, or 'seeds'")
        if self._facts is not None:  # relations stand behind the entities' names
            self._rows = self._facts.rows + np.array([0, index.num_entities, 0], np.int32)

    @property
    def by_vectors(self) -> bool:
        """Whether questions need vectors of their own."""
        return self._corpus is not None

    def find(
        self, queries: Sequence[str], asked: NDArray[Any] | None, candidates: Sequence[Collection[int]]
    ) -> list[list[Found]]:
        """The best facts of each question, best first; equal ones in their order. A fact needs a score above 0."""
        if self._facts is None or len(self._facts) == 0 or len(queries) == 0:
            return [[] for _ in queries]
        if self._rules.scope == "all":
            return self._nearest(asked, None)
        query, fact = self._around(candidates)
        if self._corpus is not None:
            return self._nearest(asked, np.split(fact, np.searchsorted(query, np.arange(1, len(queries)))))
        indptr = np.searchsorted(query, np.arange(len(queries) + 1))
        scores = dice_scores(queries, self._labels, self._rows[fact], indptr=indptr, threads=self._threads)
        return [self._best(fact[a:b], scores[a:b]) for a, b in pairwise(indptr.tolist())]

    def _around(self, candidates: Sequence[Collection[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Facts with a candidate at an end, by query, ascending and each once."""
        assert self._facts is not None
        query = np.repeat(np.arange(len(candidates)), [len(row) for row in candidates])
        entity = np.array([e for row in candidates for e in row], np.int64)
        found = step(self._facts.rows, self._facts.incident_indptr, self._facts.incident, query, entity)
        pairs = np.unique(found.query * len(self._facts) + found.fact)
        return pairs // len(self._facts), pairs % len(self._facts)

    def _nearest(self, asked: NDArray[Any] | None, allow: Any) -> list[list[Found]]:
        if asked is None:
            raise InputError("facts have vectors, and the questions have none: the recipe needs encoder=")
        hits = dense_topk(asked, self._corpus, self._rules.candidates, allow=allow, threads=self._threads)
        return [[self._found(fact, score) for fact, score in hits.row(b) if score > 0] for b in range(len(hits))]

    def _best(self, fact: NDArray[np.int64], scores: NDArray[np.float32]) -> list[Found]:
        order = np.argsort(-scores, kind="stable")[: self._rules.candidates]
        return [self._found(int(fact[at]), float(scores[at])) for at in order if scores[at] > 0]

    def _found(self, fact: int, score: float) -> Found:
        assert self._facts is not None
        head, kind, tail = self._facts.rows[fact].tolist()
        relation = self._facts.relations[kind]
        return Found(fact, head, relation, tail, score, f"{self._names[head]} {relation} {self._names[tail]}")


def _corpus(vectors: Any, facts: int) -> Corpus | None:
    if vectors is None:
        return None
    corpus = vectors if isinstance(vectors, Corpus) else Corpus.from_array(vectors, metric="cosine")
    if len(corpus) != facts:
        raise InputError(f"fact_vectors are of {len(corpus)} facts; the index has {facts}: give one for each")
    return corpus.with_metric("cosine")
