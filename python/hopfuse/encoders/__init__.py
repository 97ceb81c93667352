"""Turn texts into vectors, or into scores: two protocols, and adapters that load nothing until they are made."""

from .array import ArrayEncoder
from .protocol import Encoder, as_encoder
from .reranker import Reranker, rerank
from .sentence_transformers import CrossEncoderReranker, SentenceTransformerEncoder
from .word_llama import WordLlamaEncoder

__all__ = [
    "ArrayEncoder",
    "CrossEncoderReranker",
    "Encoder",
    "Reranker",
    "SentenceTransformerEncoder",
    "WordLlamaEncoder",
    "as_encoder",
    "rerank",
]
