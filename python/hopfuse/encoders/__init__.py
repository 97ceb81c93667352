"""Text in, vectors out: one protocol, and adapters that load nothing until they are made."""

from .array import ArrayEncoder
from .protocol import Encoder
from .sentence_transformer import SentenceTransformerEncoder
from .word_llama import WordLlamaEncoder

__all__ = ["ArrayEncoder", "Encoder", "SentenceTransformerEncoder", "WordLlamaEncoder"]
