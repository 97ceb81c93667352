"""Turn texts into vectors, or into scores: two protocols, and adapters that load nothing until they are made."""

from .array import ArrayEncoder
from .endpoint import EndpointEncoder
from .fastembed import FastEmbedEncoder
from .protocol import Encoder, as_encoder
from .reranker import Reranker, rerank
from .sentence_transformers import CrossEncoderReranker, SentenceTransformerEncoder
from .word_llama import WordLlamaEncoder

__all__ = [
    "ArrayEncoder",
    "CrossEncoderReranker",
    "Encoder",
    "EndpointEncoder",
    "FastEmbedEncoder",
    "Reranker",
    "SentenceTransformerEncoder",
    "WordLlamaEncoder",
    "as_encoder",
    "rerank",
]
