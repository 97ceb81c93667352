"""Indexes on disk: passages, entities, vectors and a graph in one memory-mapped, checked file.

The file format is specified byte by byte in ``FORMAT.md`` beside this module.
"""

from .change import Change
from .encoder import EncoderInfo
from .filters import Where, where
from .index import Index, IndexPart
from .live import Follower, LiveIndex
from .metadata import Metadata, MetadataColumn
from .words import WordInfo

__all__ = [
    "Change",
    "EncoderInfo",
    "Follower",
    "Index",
    "IndexPart",
    "LiveIndex",
    "Metadata",
    "MetadataColumn",
    "Where",
    "WordInfo",
    "where",
]
