"""Which of the top k hits are relevant."""

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
    width = _check(hits, judged, k)
    ids = _host(hits.ids)[:, :width]
    valid = np.arange(width) < _host(hits.counts)[:, None]
    known = np.unique(judged.passage)
    if known.size == 0:
        return np.zeros(ids.shape, bool)
    at = np.minimum(np.searchsorted(known, ids), known.size - 1)
    row = np.arange(ids.shape[0], dtype=np.int64)[:, None]
    wanted = judged.query * known.size + np.searchsorted(known, judged.passage)
    found: NDArray[np.bool_] = valid & (known[at] == ids) & np.isin(row * known.size + at, wanted)
    return found


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
