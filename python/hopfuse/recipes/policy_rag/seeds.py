"""Seeds of a policy's walk: the candidates of a question, and the few that its kept facts support."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._parts.mentions import Mention
from .._parts.seeding import Seed
from .config import SeedRules
from .gate import GateDecision


class Candidate(NamedTuple):
    """An entity that may be a seed, before it is compared with the question.

    ``match`` says how it was found: by a mention (``exact``, ``alias``, ``nearest``, ``given``), by the question's
    vector (``question``) or as an end of a kept fact (``fact``). ``similarity`` is None unless a mention found it.
    """

    surface: str
    match: str
    similarity: float | None
    alias_ok: bool
    specificity: float


Candidates = dict[int, Candidate]


class WeighedCandidate(NamedTuple):
    """A candidate and the factors of its weight, as traces report them."""

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
        """s(e), not normalised: align * spec * aliasOK."""
        return self.align * self.specificity if self.alias_ok else 0.0


def mentioned_candidates(
    seeds: Sequence[Seed], ambiguous: frozenset[str], specificity: NDArray[np.float64]
) -> Candidates:
    """Return the entities that a question mentions."""
    return {
        seed.entity: Candidate(
            seed.surface,
            seed.match,
            seed.similarity * seed.confidence,
            seed.match != "alias" or seed.surface not in ambiguous,
            float(specificity[seed.entity]),
        )
        for seed in seeds
    }


def with_candidates(
    candidates: Candidates, entities: Iterable[int], match: str, specificity: NDArray[np.float64]
) -> Candidates:
    """Return the candidates and the entities that are not among them, found by other means than a mention."""
    more = {e: Candidate("", match, None, True, float(specificity[e])) for e in entities if e not in candidates}
    return candidates | more


def ambiguous_surfaces(mentions: Sequence[Any], num_aliased: Callable[[str], int], limit: int) -> frozenset[str]:
    """Return the surfaces that are aliases of more than ``limit`` entities."""
    named = {m: num_aliased(m) for m in mentions if isinstance(m, str)}
    matched = {(m.surface, m.entity) for m in mentions if isinstance(m, Mention) and m.kind == "alias"}
    counts = Counter(surface for surface, _ in matched) | Counter(named)
    return frozenset(surface for surface, count in counts.items() if count > limit)


def weighed(
    candidates: Candidates, lexical: Mapping[int, float], cosines: Mapping[int, float], rules: SeedRules
) -> list[WeighedCandidate]:
    """Return a question's candidates with the factors of their weights.

    Parameters
    ----------
    candidates : dict of int to Candidate
    lexical : mapping of int to float
        Similarity of the name and the question, for the candidates that no mention found.
    cosines : mapping of int to float
        Cosine of the entity's and the question's vector; 0 where absent.
    rules : SeedRules
    """
    rows = []
    for entity, (surface, match, similarity, alias_ok, specificity) in candidates.items():
        name, cosine = lexical[entity] if similarity is None else similarity, cosines.get(entity, 0.0)
        align = rules.lexical * max(name, 0.0) + rules.embedding * max(cosine, 0.0)
        rows.append(WeighedCandidate(entity, surface, match, name, cosine, alias_ok, specificity, align))
    return rows


def phrase_seeds(candidates: Sequence[WeighedCandidate], kept: Sequence[GateDecision], most: int) -> dict[int, float]:
    """Return the seeds and their shares: ends of the best kept facts (by mean score) first, then the heaviest."""
    scores: dict[int, list[float]] = {}
    for verdict in kept:
        for end in {verdict.head, verdict.tail}:
            scores.setdefault(end, []).append(verdict.score)
    means = {end: sum(found) / len(found) for end, found in scores.items()}
    able = [candidate for candidate in candidates if candidate.weight > 0]
    able.sort(key=lambda c: (-means.get(c.entity, -1.0), -c.weight, c.entity))
    total = sum(candidate.weight for candidate in able[:most])
    return {candidate.entity: candidate.weight / total for candidate in able[:most]}
