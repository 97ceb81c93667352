"""The dense list as a substitute for a walk that reached no passage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...ops.fusion import fuse
from ...types import Hits
from ...types.hits import PAD_ID, PAD_SCORE
from .hits import replaced, take, widened

Lists = dict[str, Hits]


def fall_back(
    lists: Lists,
    fusing: Callable[[tuple[str, ...]], Mapping[str, Any]],
    *,
    dense_fallback: bool,
    k: int,
    threads: int | None,
) -> tuple[Lists, NDArray[np.bool_]]:
    """Replace empty graph lists by the dense list and fuse again; return the lists and a mask of these questions, (B,).

    The few questions are fused on the host, whose results equal the device's bit for bit.

    Parameters
    ----------
    lists : dict of str to Hits
        The legs' lists, and their fusion ``"hits"``. The graph list keeps its width, its positive scores and the
        evidence of its walks.
    fusing : callable (legs) -> mapping
        The arguments of :func:`hopfuse.fuse` for the lists of these legs.
    dense_fallback : bool
        If False, nothing is replaced.
    k, threads
        Arguments of :func:`hopfuse.fuse`.
    """
    if not dense_fallback or "graph" not in lists or "dense" not in lists:
        return lists, np.zeros(len(lists["hits"]), bool)
    near = _above_0(lists["dense"])
    empty = (lists["graph"].counts == 0) & (near.counts > 0)
    rows = np.flatnonzero(empty)
    if rows.size == 0:
        return lists, empty
    some = {leg: take(hits, rows) for leg, hits in lists.items() if leg != "hits"}
    some["graph"] = widened(take(near, rows), some["graph"].shape[1])
    hits = fuse(list(some.values()), k=k, backend="cpu", threads=threads, **fusing(tuple(some)))
    graph, found = replaced(lists["graph"], rows, some["graph"]), replaced(lists["hits"], rows, hits)
    return {**lists, "graph": graph, "hits": found}, empty


def _above_0(hits: Hits) -> Hits:
    """Return the hits with positive scores."""
    kept = hits.scores > 0  # False at padding
    ids, scores = np.where(kept, hits.ids, PAD_ID), np.where(kept, hits.scores, PAD_SCORE)
    return Hits.unchecked(ids, scores, kept.sum(axis=1, dtype=np.int64))
