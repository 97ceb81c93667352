"""Frozen data types that operations take and return; they may import ``errors``, the checks and ``_arrays``.

Each is loaded on first use, since a search needs few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy_names

if TYPE_CHECKING:
    from .candidates import Candidates as Candidates
    from .corpus import Corpus as Corpus
    from .edge_statements import EdgeStatements as EdgeStatements
    from .facts import Facts as Facts
    from .graph import Graph as Graph
    from .hits import Hits as Hits
    from .incidence import Incidence as Incidence
    from .label_sets import LabelSets as LabelSets
    from .seeds import Seeds as Seeds
    from .term_matrix import TermMatrix as TermMatrix
    from .walks import LocalWalks as LocalWalks
    from .walks import PprHits as PprHits
    from .walks import PprResult as PprResult

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "candidates": "Candidates",
        "corpus": "Corpus",
        "edge_statements": "EdgeStatements",
        "facts": "Facts",
        "graph": "Graph",
        "hits": "Hits",
        "incidence": "Incidence",
        "label_sets": "LabelSets",
        "seeds": "Seeds",
        "term_matrix": "TermMatrix",
        "walks": "LocalWalks PprHits PprResult",
    },
)
