"""Read the judged queries of a file, for an index."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from ... import Index
from ...evaluate import PassageNames, Qrels, read_qrels
from ...io.queries import Query, query_file
from ..run.queries import unjudged, unknown_gold


class Judged(NamedTuple):
    """Queries with their places and rows in their file, and their judgements by row of the index."""

    queries: list[Query]
    places: list[str]
    rows: list[int]
    qrels: Qrels


def judged_queries(index: Index, queries: Path, judgements: Path) -> Judged:
    """Return the queries of a file that are judged."""
    names = PassageNames(index.passage_ids)
    qrels = read_qrels(judgements, names)
    if len(names) > index.num_passages:
        raise unknown_gold(judgements, len(names) - index.num_passages, names.name(index.num_passages))
    found = list(query_file(queries).rows())
    at = {id: row for row, id in enumerate(qrels.ids)}
    kept = [row for row, (_, query) in enumerate(found) if query.id in at]
    if not kept:
        raise unjudged(judgements, [query for _, query in found])
    asked = [found[row][1] for row in kept]
    return Judged(asked, [found[row][0] for row in kept], kept, qrels.take(np.array([at[one.id] for one in asked])))
