"""Text in, vectors or scores out: two protocols, and adapters that load nothing until they are made."""

from .array import ArrayEncoder
from .cross_encoder import CrossEncoderReranker
from .protocol import Encoder
from .reranker import Reranker, rerank
from .sentence_transformer import SentenceTransformerEncoder
from .word_llama import WordLlamaEncoder

__all__ = [
    "ArrayEncoder",
    "CrossEncoderReranker",
    "Encoder",
    "Reranker",
    "SentenceTransformerEncoder",
    "WordLlamaEncoder",
    "rerank",
]
