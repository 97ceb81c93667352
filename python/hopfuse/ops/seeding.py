"""Add hits, or the entities of hits, to the seeds of walks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import to_numpy
from .._validation import check_dtype, check_length, check_number, check_shape, check_type, check_weights
from ..backends import cpu
from ..backends.calls import EntitySeedCall, SeedCall
from ..backends.placement import device_for
from ..types import Hits, Incidence, Seeds
from ._captured import refuse_per_query
from ._lists import check_hits, check_inside


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
    read = to_numpy if device is None else device.adopt
    call = SeedCall(
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
    check_type(mentions, "mentions", Incidence, "an Incidence, as Incidence.from_graph builds it")
    mass = check_number(mass, "mass", low=0, high=1)
    often = _column_counts(mentions) if frequency is None else _read_frequency(frequency, len(seeds), mentions)
    device = device_for("auto", seeds.nodes, "seeds")
    read = to_numpy if device is None else device.adopt
    ids, counts = read(hits.ids, "hits.ids"), read(hits.counts, "hits.counts")
    call = EntitySeedCall(seeds.nodes, seeds.weights, ids, counts, mentions, often, float(mass))
    if device is None:
        check_inside(ids, counts, mentions.num_rows, "the rows of mentions")
        return Seeds(*cpu.add_entity_seeds(call))
    with device.runtime.on_stream_of(seeds.nodes):
        given = (device.adopt(seeds.nodes, "seeds.nodes"), device.adopt(seeds.weights, "seeds.weights"))
        nodes, weights = device.add_entity_seeds(call._replace(node=given[0], weight=given[1], on_device=True))
        return Seeds(device.runtime.export(nodes, seeds.nodes), device.runtime.export(weights, seeds.nodes))


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
