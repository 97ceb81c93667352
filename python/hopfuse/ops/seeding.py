"""Add hits, or the entities of hits, to the seeds of walks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import to_numpy
from .._validation import is_real
from ..backends import cpu
from ..backends.calls import EntitySeedCall, SeedCall
from ..backends.placement import device_for
from ..errors import InputError
from ..types import Hits, Incidence, Seeds
from ._captured import refuse_per_query


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
    _check_rows("add_passage_seeds", seeds, hits)
    if not is_real(mass) or not 0 <= mass < np.inf:
        raise InputError("range", "mass", "{field} is {given!r}; it must be a finite number, at least 0", given=mass)
    device = device_for("auto", seeds.nodes, "seeds")
    read = to_numpy if device is None else device.adopt
    call = SeedCall(
        read(seeds.nodes, "nodes of the seeds"),
        read(seeds.weights, "weights of the seeds"),
        read(hits.ids, "ids of the hits"),
        read(hits.scores, "scores of the hits"),
        read(hits.counts, "counts of the hits"),
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
    _check_rows("add_entity_seeds", seeds, hits)
    if not isinstance(mentions, Incidence):
        raise InputError(
            "type",
            "mentions",
            "{field} must be an Incidence, got {kind}; build one with Incidence.from_graph",
            kind=type(mentions).__name__,
        )
    if not is_real(mass) or not 0 <= mass <= 1:
        raise InputError("range", "mass", "{field} is {given!r}; it must be a number in [0, 1]", given=mass)
    often = _column_counts(mentions) if frequency is None else _read_frequency(frequency, len(seeds), mentions)
    device = device_for("auto", seeds.nodes, "seeds")
    read = to_numpy if device is None else device.adopt
    ids, counts = read(hits.ids, "ids of the hits"), read(hits.counts, "counts of the hits")
    call = EntitySeedCall(seeds.nodes, seeds.weights, ids, counts, mentions, often, float(mass))
    if device is None:
        _check_passages(ids, counts, mentions)
        return Seeds(*cpu.add_entity_seeds(call))
    with device.runtime.on_stream_of(seeds.nodes):
        given = (device.adopt(seeds.nodes, "nodes of the seeds"), device.adopt(seeds.weights, "weights of the seeds"))
        nodes, weights = device.add_entity_seeds(call._replace(node=given[0], weight=given[1], on_device=True))
        return Seeds(device.runtime.export(nodes, seeds.nodes), device.runtime.export(weights, seeds.nodes))


def _check_passages(ids: NDArray[np.int64], counts: NDArray[np.int64], mentions: Incidence) -> None:
    outside = (ids >= mentions.num_rows) & (np.arange(ids.shape[1]) < counts[:, None])
    if outside.any():
        row, at = np.argwhere(outside)[0]
        raise InputError(
            "UNSORTED",
            None,
            "row {row} of the hits has passage {ids}; mentions has the rows 0 .. {num_rows}",
            row=row,
            ids=ids[row, at],
            num_rows=mentions.num_rows - 1,
        )


def _check_rows(name: str, seeds: Any, hits: Any) -> None:
    if not isinstance(seeds, Seeds) or not isinstance(hits, Hits):
        raise InputError(
            "type",
            name,
            "{field} takes Seeds and Hits, got {kind} and {kind_2}",
            kind=type(seeds).__name__,
            kind_2=type(hits).__name__,
        )
    if len(seeds) != len(hits):
        raise InputError(
            "length",
            "seeds",
            "{field} have {number} rows and hits {number_2}; both must have one row per query",
            number=len(seeds),
            number_2=len(hits),
        )


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
    if often.dtype.kind not in "iu" or often.shape not in ((columns,), (batch, columns)):
        raise InputError(
            "shape",
            "frequency",
            "{field} is {dtype}{shape}; it must be whole numbers of shape ({columns},) or ({batch}, {columns})",
            dtype=often.dtype,
            shape=often.shape,
            columns=columns,
            batch=batch,
        )
    if often.size and often.min() < 0:
        raise InputError(
            "range",
            "frequency",
            "{field} is {min} for a node; it counts passages and must be at least 0",
            min=often.min(),
        )
    return often
