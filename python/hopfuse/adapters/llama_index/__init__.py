"""LlamaIndex: retrievers of indexes and of property graphs, a postprocessor that fuses, embedding models as encoders.

Extra ``llamaindex``.
"""

from ...errors import MissingExtraError

try:
    import llama_index.core  # noqa: F401
except ModuleNotFoundError as _error:
    raise MissingExtraError("llama-index-core", "llamaindex", "hopfuse.adapters.llama_index") from _error

from .encoder import LlamaIndexEncoder
from .fusion import HopfuseFusion
from .property_graph import HopfusePGRetriever, index_from_property_graph
from .retriever import HopfuseRetriever

__all__ = ["HopfuseFusion", "HopfusePGRetriever", "HopfuseRetriever", "LlamaIndexEncoder", "index_from_property_graph"]
