"""Seeds of a policy's walk: candidates of a question, and the few of them that its facts speak for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...ops.dense import dense_topk
from ...ops.dice import dice_scores
from ...types import Corpus, LabelSets
from .._parts.mentions import Mention
from .._parts.seeding import EntitySeeder
from .config import SeedRules
from .gate import Verdict


class Candidate(NamedTuple):
    """An entity that may be a seed, and the factors of its weight.

    ``match``: how it came in: by a mention (``exact``, ``alias``, ``nearest``, ``given``), by the question's vector
    (``question``) or as an end of a kept fact (``fact``).
    """

    entity: int
    surface: str
    match: str
    lexical: float
    cosine: float
    alias_ok: bool
    specificity: float
    align: float

    @property
    def weight(self) -> float:
        """s(e) before all sum to 1: align * spec * aliasOK."""
        return self.align * self.specificity if self.alias_ok else 0.0


Candidates = dict[int, Candidate]
Entries = dict[int, tuple[str, str, float | None]]
"""Entity: surface, match and similarity (None: that of its name and the question)."""


class CandidateFinder:
    """Finds candidates of questions, by their mentions and by their vectors."""

    def __init__(
        self,
        rules: SeedRules,
        seeder: EntitySeeder,
        labels: LabelSets,
        corpus: Corpus | None,
        threads: int | None,
    ) -> None:
        self._rules, self._seeder, self._labels, self._corpus = rules, seeder, labels, corpus
        self._threads = threads

    def find(
        self,
        queries: Sequence[str],
        vectors: NDArray[Any] | None,
        mentions: Sequence[Sequence[Any]],
        specificity: NDArray[np.float64],
        backend: str,
    ) -> list[Candidates]:
        """Return the candidates of each question.

        Parameters
        ----------
        queries : sequence of str, B questions
        vectors : ndarray (B, d), optional
            Of the questions in the entities' space.
        mentions : sequence of B sequences
        specificity : ndarray of float64, shape (E,)
        backend : str
        """
        rules, rows = self._rules, list[Entries]()
        if rules.source == "question":
            rows = [{} for _ in queries]
        else:
            for found in self._seeder.seeds(mentions, self._threads):
                rows.append({s.entity: (s.surface, s.match, s.similarity * s.confidence) for s in found})
        if rules.source != "entities" and vectors is not None and self._corpus is not None and len(self._corpus):
            nearest = dense_topk(vectors, self._corpus, rules.nearest, backend=backend, threads=self._threads)
            for b, row in enumerate(rows):
                for entity, _ in nearest.row(b):
                    row.setdefault(entity, ("", "question", None))
        ambiguous = [self._ambiguous(row) for row in mentions]
        return self._weighted(queries, vectors, rows, ambiguous, specificity, backend)

    def add_ends(
        self,
        queries: Sequence[str],
        vectors: NDArray[Any] | None,
        found: list[Candidates],
        kept: Sequence[Sequence[Verdict]],
        specificity: NDArray[np.float64],
        backend: str,
    ) -> list[Candidates]:
        """Return the candidates, and the ends of the kept facts that are none yet."""
        ends: list[Entries] = [
            {
                end: ("", "fact", None)
                for verdict in row
                for end in (verdict.head, verdict.tail)
                if end not in candidates
            }
            for row, candidates in zip(kept, found, strict=True)
        ]
        more = self._weighted(queries, vectors, ends, [frozenset[str]()] * len(ends), specificity, backend)
        return [candidates | others for candidates, others in zip(found, more, strict=True)]

    def _weighted(
        self,
        queries: Sequence[str],
        vectors: NDArray[Any] | None,
        rows: list[Entries],
        ambiguous: Sequence[frozenset[str]],
        specificity: NDArray[np.float64],
        backend: str,
    ) -> list[Candidates]:
        cosines = self._cosines(vectors, rows, backend)
        likeness = self._likeness(queries, rows, backend)
        rules, weighted = self._rules, list[Candidates]()
        for b, row in enumerate(rows):
            candidates: Candidates = {}
            for entity, (surface, match, similarity) in row.items():
                lexical = likeness[b][entity] if similarity is None else similarity
                cosine = cosines[b].get(entity, 0.0)
                align = rules.lexical * max(lexical, 0.0) + rules.embedding * max(cosine, 0.0)
                alias_ok = match != "alias" or surface not in ambiguous[b]
                spec = float(specificity[entity])
                candidates[entity] = Candidate(entity, surface, match, lexical, cosine, alias_ok, spec, align)
            weighted.append(candidates)
        return weighted

    def _cosines(
        self, vectors: NDArray[Any] | None, rows: Sequence[Mapping[int, Any]], backend: str
    ) -> list[dict[int, float]]:
        most = max(map(len, rows), default=0)
        if vectors is None or self._corpus is None or most == 0 or self._rules.embedding == 0:
            return [{} for _ in rows]
        run: dict[str, Any] = {"backend": backend, "threads": self._threads}
        hits = dense_topk(vectors, self._corpus, most, allow=[sorted(row) for row in rows], **run)
        return [dict(hits.row(b)) for b in range(len(rows))]

    def _ambiguous(self, mentions: Sequence[Any]) -> frozenset[str]:
        """Return surfaces that are aliases of more entities than the policy allows."""
        named = {m: self._seeder.num_aliased(m) for m in mentions if isinstance(m, str)}
        aliases = [m for m in mentions if isinstance(m, Mention) and m.kind == "alias"]
        matched = {(m.surface, m.entity) for m in aliases}
        counts = Counter(surface for surface, _ in matched) | Counter(named)
        return frozenset(surface for surface, count in counts.items() if count > self._rules.ambiguous)

    def _likeness(self, queries: Sequence[str], rows: Sequence[Entries], backend: str) -> list[dict[int, float]]:
        """Return the Dice coefficient of the question and the name of each entity that no mention brought in."""
        unnamed = [[entity for entity, (_, _, similarity) in row.items() if similarity is None] for row in rows]
        entities = [entity for row in unnamed for entity in row]
        indptr = np.cumsum([0, *map(len, unnamed)])
        if not entities:
            return [{} for _ in rows]
        run: dict[str, Any] = {"backend": backend, "threads": self._threads}
        scores = dice_scores(queries, self._labels, entities, indptr=indptr, **run).tolist()
        return [dict(zip(row, scores[indptr[b] : indptr[b + 1]], strict=True)) for b, row in enumerate(unnamed)]


def phrase_seeds(candidates: Candidates, kept: Sequence[Verdict], most: int) -> dict[int, float]:
    """Return seeds and weights: entities of the best kept facts first (the mean of their scores), then by weight."""
    scores: dict[int, list[float]] = {}
    for verdict in kept:
        for end in {verdict.head, verdict.tail}:
            scores.setdefault(end, []).append(verdict.score)
    means = {end: sum(found) / len(found) for end, found in scores.items()}
    able = [candidate for candidate in candidates.values() if candidate.weight > 0]
    able.sort(key=lambda c: (-means.get(c.entity, -1.0), -c.weight, c.entity))
    return {candidate.entity: candidate.weight for candidate in able[:most]}
