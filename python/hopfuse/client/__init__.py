"""Clients of ``hopfuse serve`` (extra ``client``, and ``arrow`` for batches of vectors).

The package imports the public API, httpx and pyarrow.
"""

from __future__ import annotations

from .clients import AsyncClient, Client
from .results import Deletions, Found, FoundIds, Passage, PassagesPage

__all__ = ["AsyncClient", "Client", "Deletions", "Found", "FoundIds", "Passage", "PassagesPage"]
