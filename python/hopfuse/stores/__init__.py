"""Sources that read other databases and file formats in bulk, as Arrow record batches.

The package imports the public API; each store's library is imported when it is used. A store is a :class:`Source`,
which :meth:`hopfuse.Index.build` takes; docs/stores.md lists them.
"""

from ..io.source import Snapshot, Source
from .arrow import ArrowSource, ParquetSource
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
