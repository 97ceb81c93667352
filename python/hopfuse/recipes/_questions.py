"""What recipes read of a batch of questions: vectors, and the entities that a walk starts from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..ops._checks import is_real
from ..types import Seeds
from ..types.arrays import to_numpy
from ._allowed import View
from ._mentions import Matcher, question_mentions
from ._seeding import EntitySeeder, Seed, TextEncoder

LEAST_SEEDS = 8
"""Rows of seeds are at least so wide: few widths, few recordings."""


def check_queries(queries: Any) -> None:
    """Texts, each by itself."""
    several = isinstance(queries, Sequence | np.ndarray) and not isinstance(queries, str)
    if not several or not all(isinstance(q, str) for q in queries):
        raise InputError("queries must be a sequence of texts; for one question pass [question]")


def checked_threshold(threshold: Any) -> float:
    """A cosine similarity from which a name counts as matched."""
    if not is_real(threshold) or not -1 <= threshold <= 1:
        raise InputError(f"entity_threshold is {threshold!r}; it must be a cosine similarity, in [-1, 1]")
    return float(threshold)


def checked_damping(damping: Any) -> float:
    """One number, for all queries."""
    if not is_real(damping) or not 0 <= damping < 1:
        raise InputError(f"damping is {damping!r}; it must be one number in [0, 1), for all queries")
    return float(damping)


def question_vectors(
    encoder: TextEncoder | None, queries: Sequence[str] | None, vectors: Any, dim: int
) -> NDArray[Any]:
    """The given vectors or the encoder's, (B, dim)."""
    if vectors is None:
        if queries is None or encoder is None:
            raise InputError("search needs vectors=, or queries= and a recipe with an encoder")
        vectors = encoder.encode_queries(list(queries))
    array = np.atleast_2d(to_numpy(vectors, "vectors"))
    if array.shape[1:] != (dim,):
        raise InputError(f"vectors have shape {array.shape}; the recipe needs (B, {dim})")
    if queries is not None and len(queries) != len(array):
        raise InputError(f"{len(queries)} queries with {len(array)} vectors; give one vector per query")
    return array


def question_seeds(
    seeder: EntitySeeder,
    matcher: Matcher | None,
    queries: Sequence[str] | None,
    entities: Any,
    batch: int | None,
    threads: int | None,
    view: View | None = None,
) -> list[list[Seed]]:
    """The seeds of each question, by the given entities or by the matcher's; those that it may not see weigh 0."""
    entities = question_mentions(matcher, queries, entities, batch)
    return seeder.seeds(entities, threads, view)


def padded(seeds: list[list[Seed]], num_passages: int) -> Seeds:
    """Entity seeds that weigh something as nodes of the graph, in rows of a power of two."""
    rows = [{num_passages + s.entity: s.weight for s in row if s.weight > 0} for row in seeds]
    return Seeds.from_rows(rows, seed_width(max(map(len, rows), default=0)))


def seed_width(seeds: int) -> int:
    """The power of two that holds so many seeds."""
    return max(LEAST_SEEDS, 1 << max(0, seeds - 1).bit_length())
