"""Frozen data types that operations take and return; they may import ``errors``, the checks and ``_arrays``.

Each is loaded on first use, since a search needs few of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .candidates import Candidates
    from .corpus import Corpus
    from .edge_statements import EdgeStatements
    from .facts import Facts
    from .graph import Graph
    from .hits import Hits
    from .incidence import Incidence
    from .label_sets import LabelSets
    from .seeds import Seeds
    from .term_matrix import TermMatrix
    from .walks import LocalWalks, PprHits, PprResult

__all__ = [
    "Candidates",
    "Corpus",
    "EdgeStatements",
    "Facts",
    "Graph",
    "Hits",
    "Incidence",
    "LabelSets",
    "LocalWalks",
    "PprHits",
    "PprResult",
    "Seeds",
    "TermMatrix",
]

_HOMES = {
    **{name: name.lower() for name in ("Candidates", "Corpus", "Facts", "Graph", "Hits", "Incidence", "Seeds")},
    "EdgeStatements": "edge_statements",
    "LabelSets": "label_sets",
    **dict.fromkeys(("LocalWalks", "PprHits", "PprResult"), "walks"),
    "TermMatrix": "term_matrix",
}


def __getattr__(name: str) -> Any:
    """Import a type on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
