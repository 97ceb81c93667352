"""Restarts from seeds and from hits."""

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
    """Add a list's hits to the seeds of a walk, as HippoRAG 2 adds passages to its phrases.

    A row of seeds is scaled to sum 1, and its hits with score > 0 share ``mass``: mass * score / (sum of scores). A hit
    that is a seed already adds to it.

    Parameters
    ----------
    seeds : Seeds (B, S)
    hits : Hits (B, k)
        Ids are nodes of the graph. Calibrate the scores first: ``hf.calibrate(hits, "min_max")``.
    mass : float
        What the hits get for each unit that the seeds have.

    Returns
    -------
    Seeds
        (B, S + k), where the seeds are: on the host or a GPU. A row's first S nodes are the seeds.

    Raises
    ------
    InputError
        Batches that differ, a mass that is negative or not finite, arrays in different places.

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
        raise InputError(f"mass is {mass!r}; it must be a finite number, at least 0")
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
    """Add the entities of a list's hits to the seeds of a walk: pseudo-relevance feedback, as a restart.

    The entity e of the hit p at rank r, from 1, has w_pe / (r * frequency_e), summed over the hits: an entity of the
    best hits counts, and one of few passages. They share ``mass`` of the restart, and the seeds the rest; a row that
    lacks one of the two has all of its restart at the other. An entity that is a seed already adds to it.

    Parameters
    ----------
    seeds : Seeds (B, S)
    hits : Hits (B, k)
        Rows of ``mentions``; all of them count, by their ranks alone: give ``hits.head(3)``, say.
    mentions : Incidence
        w: the nodes that each passage holds (:meth:`Incidence.from_graph`).
    mass : float
        In [0, 1].
    frequency : array_like of int, shape (N,) or (B, N), optional
        Passages that each node is in; one with 0 gets nothing. By default the rows of ``mentions`` that hold it.

    Returns
    -------
    Seeds
        (B, S + W) where the seeds are, on the host or a GPU. W is as wide as the hits of a query hold entities at most;
        on a GPU as k rows of ``mentions`` may hold, and in a recording at most 1,024: a query with more is asked again
        without it. A row's first S nodes are the seeds; sums are float64, by rank and then by node.

    Raises
    ------
    InputError
        Batches that differ, a mass outside [0, 1], hits that are no rows of ``mentions``, frequencies that are negative
        or of another shape, arrays in different places.

    References
    ----------
    Pseudo-relevance feedback: Rocchio, 1971; a random walk instead of a new query.

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
        raise InputError(f"mentions is a {type(mentions).__name__}; give an Incidence, such as Incidence.from_graph's")
    if not is_real(mass) or not 0 <= mass <= 1:
        raise InputError(f"mass is {mass!r}; it must be a number in [0, 1]")
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
            f"row {row} of the hits has passage {ids[row, at]}; mentions has the rows 0 .. {mentions.num_rows - 1}"
        )


def _check_rows(name: str, seeds: Any, hits: Any) -> None:
    if not isinstance(seeds, Seeds) or not isinstance(hits, Hits):
        raise InputError(f"{name} takes Seeds and Hits, not {type(seeds).__name__} and {type(hits).__name__}")
    if len(seeds) != len(hits):
        raise InputError(f"seeds have {len(seeds)} rows and hits {len(hits)}; they must be of the same queries")


def _column_counts(mentions: Incidence) -> NDArray[np.int64]:
    """Return how many rows hold each column, (N,)."""
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
            f"frequency is {often.dtype}{often.shape}; it must be whole numbers of shape ({columns},) or "
            f"({batch}, {columns})"
        )
    if often.size and often.min() < 0:
        raise InputError(f"frequency goes down to {often.min()}; it counts passages, and is at least 0")
    return often
