"""Find pairs of entities with similar vectors, without a quadratic similarity matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_length, check_needs, check_number, checked_texts
from ..errors import InputError
from ..ops.dense import dense_topk
from ..types import Corpus

Pairs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]
CHUNK = 4096  # entities in one search
ANY = "*"  # stands for types without a bound
NEIGHBOURS = 32  # in the first search; more for entities that have more


def similar_pairs(
    vectors: Any,
    min_similarity: float | Mapping[str, float] = 0.8,
    *,
    types: Sequence[str] | None = None,
    threads: int | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return all pairs of vectors whose cosine is at least a bound.

    Parameters
    ----------
    vectors : Corpus, or array_like of float (E, d)
        Compared by cosine.
    min_similarity : float in [-1, 1], or mapping of str to float
        One bound, or one for each type; ``"*"`` stands for other types. A pair of different types must reach the larger
        of their bounds.
    types : sequence of str, E entries, optional
        Types such as :attr:`Memory.labels`, required if the bounds are a mapping. To join only some types, give the
        vectors of these.
    threads : int, optional

    Returns
    -------
    pairs : ndarray of int64, shape (M, 2)
        a < b in each row, rows ascending.
    similarities : ndarray of float32, shape (M,)

    Raises
    ------
    InputError
        A bound outside [-1, 1], types that are not strings or not one per vector, or a type without a bound.

    Examples
    --------
    >>> from hopfuse.extract import similar_pairs
    >>> similar_pairs([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1]], 0.9)[0]
    array([[0, 2]])
    >>> types, bounds = ["ORG", "", "ORG"], {"ORG": 0.9, "*": 0.1}
    >>> similar_pairs([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1]], bounds, types=types)[0]
    array([[0, 2]])
    """
    corpus = vectors if isinstance(vectors, Corpus) else Corpus.from_array(vectors, metric="cosine")
    corpus = corpus.with_metric("cosine")
    bounds = _bounds(min_similarity, types, len(corpus))
    found: list[Pairs] = []
    for start in range(0, len(corpus), CHUNK):
        rows = np.arange(start, min(start + CHUNK, len(corpus)))
        found += _neighbours(corpus, rows, bounds, threads)
    if not found:
        return np.zeros((0, 2), np.int64), np.zeros(0, np.float32)
    a, b, similarity = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.lexsort((b, a))
    return np.stack([a, b], axis=1)[order], similarity[order]


def _neighbours(
    corpus: Corpus, rows: NDArray[np.int64], bounds: NDArray[np.float64], threads: int | None
) -> list[Pairs]:
    """Return the pairs (a, b) with a in ``rows`` and a < b, doubling lists that end above their bound."""
    k, found = min(NEIGHBOURS, len(corpus)), list[Pairs]()
    while rows.size:
        longer = list[NDArray[np.int64]]()
        step = max(1, CHUNK * NEIGHBOURS // k)  # keep the size of a search constant as k grows
        for part in (rows[start : start + step] for start in range(0, rows.size, step)):
            hits = dense_topk(corpus.vectors[part], corpus, k, threads=threads)
            more = (hits.scores[:, -1] >= bounds[part]) & (k < len(corpus))
            ids, scores = hits.ids[~more], hits.scores[~more]
            own = np.broadcast_to(part[~more, None], ids.shape)
            kept = (ids > own) & (scores >= np.maximum(bounds[own], bounds[ids]))
            found.append((own[kept], ids[kept], scores[kept]))
            longer.append(part[more])
        rows, k = np.concatenate(longer), min(2 * k, len(corpus))
    return found


def _bounds(given: Any, types: Sequence[str] | None, count: int) -> NDArray[np.float64]:
    names = [] if types is None else checked_texts(types, "types")
    if types is not None:
        check_length(len(names), "types", count, "vector")
    if not isinstance(given, Mapping):
        check_number(given, "min_similarity", low=-1, high=1)
        return np.full(count, float(given))
    check_needs("min_similarity", given, "types", types, "since it has a bound for each type")
    for name, bound in given.items():
        check_number(bound, f"min_similarity[{name!r}]", low=-1, high=1)
    absent = () if ANY in given else sorted(set(names) - set(given))
    if absent:
        raise InputError(
            "missing",
            f"min_similarity[{absent[0]!r}]",
            "{field} is missing; give it, or {any!r} for all types without a bound of their own",
            any=ANY,
        )
    return np.array([float(given[name if name in given else ANY]) for name in names])
