"""Ask language models behind OpenAI-compatible endpoints."""

from .endpoint import ChatEndpoint

__all__ = ["ChatEndpoint"]
