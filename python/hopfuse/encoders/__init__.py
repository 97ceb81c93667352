"""Encoders, which turn texts into vectors, and rerankers, which score texts against queries.

May import ``types``; libraries of models are imported when an adapter is constructed.
"""

from .array import ArrayEncoder
from .endpoint import EndpointEncoder
from .fastembed import FastEmbedEncoder
from .named import open_encoder, recorded_encoder
from .protocol import Encoder, as_encoder
from .sentence_transformers import CrossEncoderReranker, Reranker, SentenceTransformerEncoder, rerank
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
    "open_encoder",
    "recorded_encoder",
    "rerank",
]
