"""Language models behind OpenAI-compatible endpoints, with JSON answers, retries and a cache.

May import the public API; ``openai`` and ``jsonschema`` are imported when they are used.
"""

from .endpoint import ChatEndpoint

__all__ = ["ChatEndpoint"]
