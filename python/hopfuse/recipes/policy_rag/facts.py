"""Facts by their likeness to a question, of those around its candidates or of all."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...ops.dense import dense_topk
from ...ops.dice import dice_scores
from ...types import Corpus, Facts, LabelSets
from .._parts.facts import facts_of
from .config import FactRules


class FoundFact(NamedTuple):
    """A fact and its likeness to the question."""

    fact: int
    head: int
    relation: str
    tail: int
    score: float
    text: str


class FactFinder:
    """Finds facts by vectors where there are some, else by the Dice coefficient of their labels."""

    def __init__(
        self,
        rules: FactRules,
        facts: Facts | None,
        names: Sequence[str],
        labels: LabelSets,
        vectors: Any,
        threads: int | None,
    ) -> None:
        self._rules, self._facts, self._names, self._labels, self._threads = rules, facts, names, labels, threads
        self._corpus = _corpus(vectors, 0 if facts is None else len(facts))
        if self._rules.scope == "all" and self._corpus is None:
            raise InputError("the policy's facts.scope is 'all', which needs fact_vectors=; give them, or 'seeds'")

    @property
    def by_vectors(self) -> bool:
        """Return whether questions need vectors in the facts' space."""
        return self._corpus is not None

    def find(
        self,
        queries: Sequence[str],
        vectors: NDArray[Any] | None,
        candidates: Sequence[Collection[int]],
        backend: str,
    ) -> list[list[FoundFact]]:
        """Return the best facts of each question, best first; equal ones in their order.

        A fact needs a score above 0.
        """
        if self._facts is None or len(self._facts) == 0 or len(queries) == 0:
            return [[] for _ in queries]
        if self._rules.scope == "all":
            return self._nearest(vectors, None, backend)
        query, fact = self._around(candidates)
        if self._corpus is not None:
            allow = np.split(fact, np.searchsorted(query, np.arange(1, len(queries))))
            return self._nearest(vectors, allow, backend)
        indptr = np.searchsorted(query, np.arange(len(queries) + 1))
        labels = self._facts.rows[fact] + np.array([0, self._facts.num_entities, 0], np.int32)  # relations come last
        run: dict[str, Any] = {"backend": backend, "threads": self._threads}
        scores = dice_scores(queries, self._labels, labels, indptr=indptr, **run)
        return [self._best(fact[a:b], scores[a:b]) for a, b in pairwise(indptr.tolist())]

    def _around(self, candidates: Sequence[Collection[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return facts with a candidate at an end, by query, ascending and each once."""
        assert self._facts is not None
        query = np.repeat(np.arange(len(candidates)), [len(row) for row in candidates])
        entity = np.array([e for row in candidates for e in row], np.int64)
        found = facts_of(self._facts, query, entity)
        pairs = np.unique(found.query * len(self._facts) + found.fact)
        return pairs // len(self._facts), pairs % len(self._facts)

    def _nearest(self, vectors: NDArray[Any] | None, allow: Any, backend: str) -> list[list[FoundFact]]:
        if vectors is None:
            raise InputError("facts have vectors, and the questions have none: the recipe needs encoder=")
        run: dict[str, Any] = {"backend": backend, "threads": self._threads}
        hits = dense_topk(vectors, self._corpus, self._rules.candidates, allow=allow, **run)
        return [[self._found(fact, score) for fact, score in hits.row(b) if score > 0] for b in range(len(hits))]

    def _best(self, fact: NDArray[np.int64], scores: NDArray[np.float32]) -> list[FoundFact]:
        order = np.argsort(-scores, kind="stable")[: self._rules.candidates]
        return [self._found(int(fact[at]), float(scores[at])) for at in order if scores[at] > 0]

    def _found(self, fact: int, score: float) -> FoundFact:
        assert self._facts is not None
        head, kind, tail = self._facts.rows[fact].tolist()
        relation = self._facts.relations[kind]
        return FoundFact(fact, head, relation, tail, score, f"{self._names[head]} {relation} {self._names[tail]}")


def _corpus(vectors: Any, facts: int) -> Corpus | None:
    if vectors is None:
        return None
    corpus = vectors if isinstance(vectors, Corpus) else Corpus.from_array(vectors, metric="cosine")
    if len(corpus) != facts:
        raise InputError(f"fact_vectors are of {len(corpus)} facts; the index has {facts}: give one for each")
    return corpus.with_metric("cosine")
