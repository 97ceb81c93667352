"""Which of the top k hits are relevant, and how much."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..types import Hits
from .qrels import JudgedPairs


def relevance(hits: Hits, judged: JudgedPairs, k: int | None = None) -> NDArray[np.bool_]:
    """True where one of the first k hits of a query is among its judged passages.

    Parameters
    ----------
    hits : Hits
        B rows.
    judged : JudgedPairs
        :attr:`Qrels.gold_pairs` or :attr:`Qrels.last_hop_pairs` of the same B queries.
    k : int, optional
        1 up to the width of the hits; all of it where absent. Rows may hold fewer valid hits.

    Returns
    -------
    ndarray of bool, shape (B, k)
        False at padding.

    Raises
    ------
    InputError
        Another number of queries, k outside its range, hits that are not on the host.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, relevance
    >>> q = Qrels(["a"], gold=[[5, 8]])
    >>> relevance(hf.Hits([[8, 2, 5]], [[0.9, 0.5, 0.1]]), q.gold_pairs, 2)
    array([[ True, False]])
    """
    return gains(hits, judged, k) > 0


def gains(hits: Hits, judged: JudgedPairs, k: int | None = None) -> NDArray[np.int64]:
    """The grade of each of the first k hits of a query, 0 where it is not among its judged passages.

    Parameters and errors are those of :func:`relevance`.

    Returns
    -------
    ndarray of int64, shape (B, k)
        0 at padding.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, gains
    >>> q = Qrels(["a"], gold=[[5, 8]], grades=[[2, 1]])
    >>> gains(hf.Hits([[8, 2, 5]], [[0.9, 0.5, 0.1]]), q.gold_pairs)
    array([[1, 0, 2]])
    """
    width = _check(hits, judged, k)
    ids = _host(hits.ids)[:, :width]
    valid = np.arange(width) < _host(hits.counts)[:, None]
    known = np.unique(judged.passage)
    if known.size == 0:
        return np.zeros(ids.shape, np.int64)
    at = np.minimum(np.searchsorted(known, ids), known.size - 1)
    pair = np.arange(ids.shape[0], dtype=np.int64)[:, None] * known.size + at
    wanted = judged.query * known.size + np.searchsorted(known, judged.passage)
    order = np.argsort(wanted)
    place = np.minimum(np.searchsorted(wanted, pair, sorter=order), wanted.size - 1)
    found = valid & (known[at] == ids) & (wanted[order][place] == pair)
    return np.where(found, judged.grade[order][place], 0)


def _check(hits: Hits, judged: JudgedPairs, k: int | None) -> int:
    queries, width = hits.shape
    if queries != judged.sizes.size:
        raise InputError(
            f"the hits have {queries} rows and the judgements {judged.sizes.size} queries; give one row each"
        )
    if k is None:
        return width
    if not 1 <= k <= width:
        raise InputError(f"k is {k}, but the hits are {width} wide; k is 1 .. {width} (retrieve more hits, or lower k)")
    return k


def _host(array: Any) -> NDArray[np.int64]:
    try:
        return np.asarray(array if isinstance(array, np.ndarray) else np.from_dlpack(array))
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(
            f"the hits are {type(array).__module__}.{type(array).__name__} arrays that NumPy cannot read in place; "
            "copy them to the host first"
        ) from error
