"""Restarts from seeds and from hits."""

from __future__ import annotations

import numpy as np

from .._arrays.convert import to_numpy
from .._validation import is_real
from ..backends import cpu
from ..backends.calls import SeedCall
from ..backends.placement import device_for
from ..errors import InputError
from ..types import Hits, Seeds


def add_passage_seeds(seeds: Seeds, hits: Hits, mass: float) -> Seeds:
    """Seeds that also start the walk at a list's hits, as HippoRAG 2 adds passages to its phrases.

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
    if not isinstance(seeds, Seeds) or not isinstance(hits, Hits):
        raise InputError(
            f"add_passage_seeds takes Seeds and Hits, not {type(seeds).__name__} and {type(hits).__name__}"
        )
    if len(seeds) != len(hits):
        raise InputError(f"seeds have {len(seeds)} rows and hits {len(hits)}; they must be of the same queries")
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
