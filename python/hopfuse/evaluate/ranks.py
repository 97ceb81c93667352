"""At which rank a run has a query's gold passages."""

from __future__ import annotations

from ..types import Hits
from .qrels import Qrels


def gold_ranks(hits: Hits, qrels: Qrels, query: int) -> dict[int, int | None]:
    """The rank of each gold passage of one query, from 1; None where the run does not have it.

    Parameters
    ----------
    hits : Hits
        B rows.
    qrels : Qrels
        Judgements of the same B queries.
    query : int
        The query's position.

    Returns
    -------
    dict of int to int or None
        By gold passage: those of each hop in order where the hops are known, else as they are given.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, gold_ranks
    >>> gold_ranks(hf.Hits([[8, 2, 5]], [[0.9, 0.5, 0.1]]), Qrels(["a"], [[5, 8, 1]]), 0)
    {5: 3, 8: 1, 1: None}
    """
    place = {passage: rank for rank, (passage, _) in enumerate(hits.row(query), 1)}
    by_hop = [passage for hop in qrels.hops[query] for passage in hop]
    return {passage: place.get(passage) for passage in (*by_hop, *qrels.gold[query])}
