"""Retrievers, a vector store, a fusing postprocessor and an encoder for LlamaIndex, and its property graphs.

Extra ``llamaindex``.
"""

from ...errors import MissingExtraError

try:
    import llama_index.core  # noqa: F401
except ModuleNotFoundError as _error:
    raise MissingExtraError("llama-index-core", "llamaindex", "hopfuse.adapters.llama_index") from _error

from .property_graph import HopfusePGRetriever, index_from_property_graph
from .retriever import HopfuseFusion, HopfuseRetriever, LlamaIndexEncoder
from .store import HopfuseVectorStore

__all__ = [
    "HopfuseFusion",
    "HopfusePGRetriever",
    "HopfuseRetriever",
    "HopfuseVectorStore",
    "LlamaIndexEncoder",
    "index_from_property_graph",
]
