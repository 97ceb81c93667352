"""Legs of words over a state of an index, continued from those over an earlier one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..index import Index
from ..index.contents import text_to_index
from ..lexical import BM25, FTS5, leg_of, words_of


def leg_over(index: Index, kind: str | None, over: str, earlier: tuple[Index, Any] | None) -> BM25 | FTS5:
    """Return a leg over the passages or the names of the entities of an index.

    Parameters
    ----------
    index : Index
    kind, over
        As of :meth:`Collaborators.leg`.
    earlier : (Index, leg) or None
        An earlier state, and the leg over it.
    """
    stored = over == "passages" and index.lexical is not None and kind in (None, "auto", "bm25")
    made = None if earlier is None or stored else _continued(index, over, *earlier)
    if made is not None:
        return made
    return leg_of(list(index.entity_names), kind) if over == "entities" else words_of(index, kind)


def _continued(index: Index, over: str, earlier: Index, leg: BM25 | FTS5) -> BM25 | FTS5 | None:
    """Return a leg that is continued; None if the states have nothing in common."""
    maps = index.rows_since(earlier)
    if maps is None or (isinstance(leg, BM25) and leg.matrix is earlier.lexical):
        return None
    kept = maps.entities if over == "entities" else maps.passages
    is_new = np.ones(index.num_entities if over == "entities" else index.num_passages, np.bool_)
    is_new[kept[kept >= 0]] = False
    rows = np.flatnonzero(is_new)
    if over == "entities":
        return leg.continued(kept, rows, [index.entity_names[row] for row in rows.tolist()])
    titles, texts = index.titles, index.texts
    return leg.continued(kept, rows, [text_to_index(titles[row], texts[row]) for row in rows.tolist()])
