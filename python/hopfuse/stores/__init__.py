"""Indexes from other databases: their passages, entities, edges and facts in bulk, as Arrow record batches.

A store is a :class:`Source`: :meth:`hopfuse.Index.build` takes one. docs/stores.md lists them.
"""

from ..io.source import Snapshot, Source
from .arrow import ArrowSource
from .parquet import ParquetSource
from .places import is_place, open_source
from .tables import VectorsChangedWarning

__all__ = [
    "ArrowSource",
    "ParquetSource",
    "Snapshot",
    "Source",
    "VectorsChangedWarning",
    "is_place",
    "open_source",
]
