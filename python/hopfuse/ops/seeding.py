"""Add hits, or the entities of hits, to the seeds of walks; choose hits that cover the seeds; boost weights of hits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import to_numpy
from .._validation import (
    check_dtype,
    check_length,
    check_number,
    check_shape,
    check_type,
    check_weights,
    check_whole,
)
from ..backends.calls.seeding import BoostCall, CoverCall, EntitySeedCall, PassageSeedCall
from ..backends.engine import Engine, engine_for
from ..types import Hits, Incidence, Seeds
from ._arguments import check_hits, check_inside, refuse_per_query

LARGEST_STRENGTH = 1e4


def add_passage_seeds(seeds: Seeds, hits: Hits, mass: float, *, backend: str = "auto") -> Seeds:
    """Add hits to the seeds of a walk, as HippoRAG 2 adds passages to phrase nodes.

    Each row of seeds is scaled to sum 1. A hit with score > 0 gets weight mass * score / (sum of these scores), added
    to its seed weight if it is a seed already.

    Parameters
    ----------
    seeds : Seeds (B, S)
    hits : Hits (B, k)
        Ids are nodes of the graph. Calibrate the scores first: ``hf.calibrate(hits, "min_max")``.
    mass : float
        The total weight of the hits; that of the seeds is 1.
    backend : {"auto", "cpu", "cuda"}

    Returns
    -------
    Seeds
        Shape (B, S + k), on the host or GPU like the seeds. The first S nodes of a row are the seeds.

    Raises
    ------
    InputError
        Different numbers of queries, a mass that is negative or not finite, arrays on different devices.

    References
    ----------
    HippoRAG 2: From RAG to Memory, ICML 2025, section 3.4 (passage nodes as seeds).

    Examples
    --------
    >>> import hopfuse as hf
    >>> hits = hf.Hits([[4, 7]], [[0.75, 0.25]])
    >>> hf.add_passage_seeds(hf.Seeds([[1, 2]]), hits, 0.5).weights
    array([[0.5  , 0.5  , 0.375, 0.125]])
    """
    _check_rows(seeds, hits)
    mass = check_number(mass, "mass", low=0)
    with engine_for(backend, seeds, "seeds") as engine:
        call = PassageSeedCall(*_read_seeds(engine, seeds), *engine.hits(hits, "hits"), mass, engine.on_device)
        nodes, weights = engine.ops.run(call)
        return Seeds(engine.give(nodes), engine.give(weights))


def add_entity_seeds(
    seeds: Seeds, hits: Hits, mentions: Incidence, mass: float, *, frequency: Any = None, backend: str = "auto"
) -> Seeds:
    """Add the entities of hits to the seeds of a walk: pseudo-relevance feedback through the restart.

    An entity e gets the sum over the hits p of w_pe / (r * frequency_e), where r is the rank of p, from 1. Entities of
    the best hits and of few passages thus count most. The entities share ``mass`` of the restart, and the seeds share
    the rest; if a row has no entities or no seeds, the other gets all of it. An entity that is a seed already adds to
    that seed's weight.

    Parameters
    ----------
    seeds : Seeds (B, S)
    hits : Hits (B, k)
        Rows of ``mentions``. All of them count, by rank; pass ``hits.head(3)``, for example, to use the first three.
    mentions : Incidence
        The weights w of the nodes that each passage mentions (:meth:`Incidence.from_graph`).
    mass : float
        In [0, 1].
    frequency : array_like of int, shape (N,) or (B, N), optional
        The number of passages that mention each node; a node with 0 gets nothing. Default: counted in ``mentions``.
    backend : {"auto", "cpu", "cuda"}

    Returns
    -------
    Seeds
        Shape (B, S + W), on the host or GPU like the seeds. W is the most entities that the hits of a query have; on a
        GPU it is the most that k rows of ``mentions`` can have, in a recording at most 1,024 (queries with more are run
        again without it). The first S nodes of a row are the seeds. Sums are float64, by rank and then by node.

    Raises
    ------
    InputError
        Different numbers of queries, a mass outside [0, 1], hits that are not rows of ``mentions``, frequencies that
        are negative or of another shape, arrays on different devices.

    References
    ----------
    Pseudo-relevance feedback: Rocchio, 1971, here with a random walk in place of a new query.

    Examples
    --------
    >>> import hopfuse as hf
    >>> mentions = hf.Incidence.from_pairs([0, 0, 1], [2, 3, 3], num_rows=2, num_columns=4)
    >>> restart = hf.add_entity_seeds(hf.Seeds([[2], [-1]]), hf.Hits([[0, 1], [1, 0]], [[2, 1], [2, 1]]), mentions, 0.5)
    >>> restart.nodes
    array([[ 2, -1,  3, -1],
           [-1,  3,  2, -1]])
    >>> restart.weights.round(3)
    array([[0.786, 0.   , 0.214, 0.   ],
           [0.   , 0.6  , 0.4  , 0.   ]])
    """
    _check_rows(seeds, hits)
    _check_mentions(mentions)
    mass = check_number(mass, "mass", low=0, high=1)
    often = mentions.column_counts() if frequency is None else _read_frequency(frequency, len(seeds), mentions)
    with engine_for(backend, seeds, "seeds") as engine:
        ids, _, counts = engine.hits(hits, "hits")
        engine.check(check_inside, ids, counts, mentions.num_rows, "the rows of mentions")
        given = _read_seeds(engine, seeds)
        call = EntitySeedCall(*given, ids, counts, mentions, often, mass, engine.on_device)
        nodes, weights = engine.ops.run(call)
        return Seeds.unchecked(engine.give(nodes), engine.give(weights))


def cover_seeds(
    hits: Hits, seeds: Seeds, mentions: Incidence, *, k: int = 3, least: float = 0.3, backend: str = "auto"
) -> Hits:
    """Choose the hits of a list that cover the seeds: the first hit, and the first that mentions each heavy seed.

    After the first hit of the list, the seeds are taken by weight, heaviest first, then by lower node. Each adds the
    first hit that mentions it, if there is one and it is not chosen yet, until k hits are chosen.

    Parameters
    ----------
    hits : Hits (B, W)
        Rows of ``mentions``. "First" is the order of the list, whatever its scores are.
    seeds : Seeds (B, S)
        Columns of ``mentions``; hits mention no other node. A weight of 0 is no seed.
    mentions : Incidence
        The nodes that each passage mentions (:meth:`Incidence.from_graph`). An entry with a weight of 0 is no mention;
        otherwise weights do not matter.
    k : int
        The most hits per query, at least 1.
    least : float
        In [0, 1]. Seeds lighter than ``least`` times the heaviest seed of their query add no hit.
    backend : {"auto", "cpu", "cuda"}

    Returns
    -------
    Hits
        Shape (B, min(k, W)), on the host or GPU like the hits: the chosen hits in the order of the list, with their
        scores. A query without hits has none, and one without seeds its first hit. A query's answer is the same in
        every batch and on every device.

    Raises
    ------
    InputError
        Different numbers of queries, hits that are not rows of ``mentions``, options out of range, arrays on different
        devices; on a GPU also seeds with weights that are negative, NaN or infinite.

    Notes
    -----
    The first hit covers a seed that it mentions, so that seed adds none. With k above S the answer has a mention of
    every heavy seed that any hit mentions.

    Examples
    --------
    Passages 0 and 1 mention node 3, and passage 2, lower in the list, is the only one to mention node 4.

    >>> import hopfuse as hf
    >>> mentions = hf.Incidence.from_pairs([0, 1, 2], [3, 3, 4], num_rows=3, num_columns=5)
    >>> hits = hf.Hits([[0, 1, 2]], [[0.9, 0.8, 0.7]])
    >>> hf.cover_seeds(hits, hf.Seeds([[3, 4]], [[1.0, 0.5]]), mentions, k=2).ids
    array([[0, 2]])
    """
    _check_rows(seeds, hits)
    _check_mentions(mentions)
    most = min(check_whole(k, "k"), int(hits.ids.shape[1]))
    least = check_number(least, "least", low=0, high=1)
    with engine_for(backend, hits, "hits") as engine:
        ids, scores, counts = engine.hits(hits, "hits")
        engine.check(check_inside, ids, counts, mentions.num_rows, "the rows of mentions")
        given = _read_seeds(engine, seeds)
        call = CoverCall(*given, ids, scores, counts, mentions, most, least, engine.on_device)
        return engine.give_hits(engine.ops.run(call))


def boost_weights(weights: Any, hits: Hits, strength: float, *, backend: str = "auto") -> Any:
    """Boost the weights of the passages in a list of hits, such as the hits of a lexical search.

    A hit's weight is multiplied by 1 + strength * score / (the largest score of its query). Hits with a score of 0 or
    below change nothing.

    Parameters
    ----------
    weights : array_like of float (B, N)
        As :func:`similarity_weights` returns them; converted to float32. On a GPU (CuPy, torch, DLPack) they must be
        float32.
    hits : Hits (B, k)
        Ids are columns of ``weights``. They must be on the same device as the weights.
    strength : float
        0 to 1e4. The best hit's weight is multiplied by 1 + ``strength``.
    backend : {"auto", "cpu", "cuda"}

    Returns
    -------
    array of float32, shape (B, N)
        A new array of the library that ``weights`` came from. Each operation is rounded to float32, so a query's
        weights are the same bits in every batch and on every device.

    Raises
    ------
    InputError
        Shapes that do not agree, ids that are not columns, a strength out of range, arrays on different devices.

    Notes
    -----
    The values of ``weights`` are not checked here; the walk that uses them refuses invalid ones.

    Examples
    --------
    >>> import numpy as np, hopfuse as hf
    >>> hits = hf.Hits([[2, 0]], [[8.0, 4.0]])
    >>> hf.boost_weights(np.array([[0.5, 1.0, 0.25]], np.float32), hits, 2.0)
    array([[1.  , 1.  , 0.75]], dtype=float32)
    """
    check_hits(hits)
    strength = check_number(strength, "strength", low=0, high=LARGEST_STRENGTH)
    with engine_for(backend, weights, "weights") as engine:
        given = engine.rows(weights, "weights", "N", "a row for each row of hits")
        check_shape(given.shape, "weights", (len(hits), "N"), reason="a row for each row of hits")
        ids, scores, counts = engine.hits(hits, "hits")
        engine.check(check_inside, ids, counts, given.shape[1], "the columns of weights")
        call = BoostCall(given, ids, scores, counts, strength, engine.on_device)
        return engine.give(engine.ops.run(call))


def _read_seeds(engine: Engine, seeds: Seeds) -> tuple[Any, Any]:
    return engine.read(seeds.nodes, "seeds.nodes", np.int64), engine.read(seeds.weights, "seeds.weights", np.float64)


def _check_mentions(mentions: Any) -> None:
    check_type(mentions, "mentions", Incidence, "an Incidence, as Incidence.from_graph builds it")


def _check_rows(seeds: Any, hits: Any) -> None:
    check_type(seeds, "seeds", Seeds, "Seeds: hf.Seeds(nodes, weights)")
    check_length(len(check_hits(hits)), "hits", len(seeds), "query")


def _read_frequency(given: Any, batch: int, mentions: Incidence) -> NDArray[np.int64]:
    often, columns = to_numpy(given, "frequency"), mentions.num_columns
    if often.ndim == 2:
        refuse_per_query("frequency")
    check_dtype(often, "frequency", "iu", "whole numbers")
    check_shape(often.shape, "frequency", (columns,), (batch, columns))
    check_weights(often, "frequency")
    return often
