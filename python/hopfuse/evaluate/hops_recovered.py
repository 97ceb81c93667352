"""How many of a question's hops a run finds."""

from __future__ import annotations

import numpy as np

from ..types import Hits
from .metrics import Values
from .qrels import Qrels
from .relevance import relevance


def hops_recovered(hits: Hits, qrels: Qrels, k: int) -> Values:
    """Share of a question's hops that have a gold passage among its first k hits.

    One passage recovers a hop, however many the hop lists; a passage that two hops list recovers both. Hops without
    passages are not counted.

    Parameters
    ----------
    hits : Hits
        B rows, at least k wide (a row may hold fewer valid hits).
    qrels : Qrels
        Judgements of the same B queries, with ``hops``.
    k : int, at least 1

    Returns
    -------
    ndarray of float64, shape (B,)
        In [0, 1]; NaN for a query whose hops are not known.

    Raises
    ------
    InputError
        Another number of queries, k below 1 or above the width of the hits.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, hops_recovered
    >>> q = Qrels(["a"], gold=[[5, 8, 2]], hops=[[[5, 2], [8]]])
    >>> hops_recovered(hf.Hits([[2, 7, 8]], [[0.9, 0.5, 0.1]]), q, 2)
    array([0.5])
    """
    relevance(hits, qrels.gold_pairs, k)  # refuses what no metric takes
    values = np.full(len(qrels), np.nan)
    for row, hops in enumerate(qrels.hops):
        judged = [hop for hop in hops if hop]
        if judged:
            found = {passage for passage, _ in hits.row(row)[:k]}
            values[row] = sum(not found.isdisjoint(hop) for hop in judged) / len(judged)
    return values
