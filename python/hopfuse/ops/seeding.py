"""Add hits, or the entities of hits, to the seeds of walks; choose hits that cover the seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import same_library, to_numpy
from .._validation import (
    check_dtype,
    check_length,
    check_number,
    check_shape,
    check_type,
    check_weights,
    check_whole,
)
from ..backends import cpu
from ..backends.calls import CoverCall, EntitySeedCall, PassageSeedCall
from ..backends.placement import device_for
from ..types import Hits, Incidence, Seeds
from ._captured import refuse_per_query
from ._lists import check_hits, check_inside, device_list, host_list


def add_passage_seeds(seeds: Seeds, hits: Hits, mass: float) -> Seeds:
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
    device = device_for("auto", seeds.nodes, "seeds")
    read: Any = to_numpy if device is None else device.adopt
    call = PassageSeedCall(
        read(seeds.nodes, "seeds.nodes"),
        read(seeds.weights, "seeds.weights"),
        read(hits.ids, "hits.ids"),
        read(hits.scores, "hits.scores"),
        read(hits.counts, "hits.counts"),
        float(mass),
        on_device=device is not None,
    )
    if device is None:
        return Seeds(*cpu.add_passage_seeds(call))
    with device.runtime.on_stream_of(seeds.nodes):
        nodes, weights = device.add_passage_seeds(call)
        return Seeds(device.runtime.export(nodes, seeds.nodes), device.runtime.export(weights, seeds.nodes))


def add_entity_seeds(seeds: Seeds, hits: Hits, mentions: Incidence, mass: float, *, frequency: Any = None) -> Seeds:
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
    often = _column_counts(mentions) if frequency is None else _read_frequency(frequency, len(seeds), mentions)
    device = device_for("auto", seeds.nodes, "seeds")
    read: Any = to_numpy if device is None else device.adopt
    ids, counts = read(hits.ids, "hits.ids"), read(hits.counts, "hits.counts")
    call = EntitySeedCall(seeds.nodes, seeds.weights, ids, counts, mentions, often, float(mass))
    if device is None:
        check_inside(ids, counts, mentions.num_rows, "the rows of mentions")
        return Seeds.unchecked(*cpu.add_entity_seeds(call))
    with device.runtime.on_stream_of(seeds.nodes):
        given = (device.adopt(seeds.nodes, "seeds.nodes"), device.adopt(seeds.weights, "seeds.weights"))
        nodes, weights = device.add_entity_seeds(call._replace(node=given[0], weight=given[1], on_device=True))
        return Seeds(device.runtime.export(nodes, seeds.nodes), device.runtime.export(weights, seeds.nodes))


def cover_seeds(hits: Hits, seeds: Seeds, mentions: Incidence, *, k: int = 3, least: float = 0.3) -> Hits:
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
    device = device_for("auto", hits.ids, "hits")
    if device is None:
        ids, scores, counts = host_list(hits)
        check_inside(ids, counts, mentions.num_rows, "the rows of mentions")
        given = to_numpy(seeds.nodes, "seeds.nodes"), to_numpy(seeds.weights, "seeds.weights")
        wrap = same_library(hits.ids)
        best = cpu.cover_seeds(CoverCall(*given, ids, scores, counts, mentions, most, least))
        return Hits.unchecked(**{name: wrap(array) for name, array in best.items()})
    with device.runtime.on_stream_of(hits.ids):
        there = device.adopt(seeds.nodes, "seeds.nodes"), device.adopt(seeds.weights, "seeds.weights")
        call = CoverCall(*there, *device_list(device, hits, "hits"), mentions, most, least, on_device=True)
        best = device.cover_seeds(call)
        return Hits.unchecked(**{name: device.runtime.export(array, hits.ids) for name, array in best.items()})


def _check_mentions(mentions: Any) -> None:
    check_type(mentions, "mentions", Incidence, "an Incidence, as Incidence.from_graph builds it")


def _check_rows(seeds: Any, hits: Any) -> None:
    check_type(seeds, "seeds", Seeds, "Seeds: hf.Seeds(nodes, weights)")
    check_length(len(check_hits(hits)), "hits", len(seeds), "query")


def _column_counts(mentions: Incidence) -> NDArray[np.int64]:
    """Return the number of rows that hold each column, (N,); computed once."""
    if "column_counts" not in mentions.derived:
        mentions.derived["column_counts"] = np.bincount(mentions.indices, minlength=mentions.num_columns)
    counts: NDArray[np.int64] = mentions.derived["column_counts"]
    return counts


def _read_frequency(given: Any, batch: int, mentions: Incidence) -> NDArray[np.int64]:
    often, columns = to_numpy(given, "frequency"), mentions.num_columns
    if often.ndim == 2:
        refuse_per_query("frequency")
    check_dtype(often, "frequency", "iu", "whole numbers")
    check_shape(often.shape, "frequency", (columns,), (batch, columns))
    check_weights(often, "frequency")
    return often
