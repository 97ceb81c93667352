"""Indexes: passages, entities, vectors, a graph, facts and words in one memory-mapped, checksummed file, with a log.

``FORMAT.md`` beside this module specifies the file format. May import ``encoders``, ``io``, ``lexical`` and ``types``.
"""

from .change import Change
from .filters import Where, where
from .index import Index, IndexPart
from .left_out import LeftOut, LeftOutRow
from .live import Follower, LiveIndex
from .log.lineage import RowMaps
from .parts.encoder import EncoderInfo
from .parts.metadata import Metadata, MetadataColumn
from .parts.passages import LabelColumn
from .parts.words import WordInfo
from .supports import Deletions

__all__ = [
    "Change",
    "Deletions",
    "EncoderInfo",
    "Follower",
    "Index",
    "IndexPart",
    "LabelColumn",
    "LeftOut",
    "LeftOutRow",
    "LiveIndex",
    "Metadata",
    "MetadataColumn",
    "RowMaps",
    "Where",
    "WordInfo",
    "where",
]
