"""Ask a server of ``hopfuse serve`` from Python; extra ``client``, and ``arrow`` for batches of vectors."""

from __future__ import annotations

from .clients import AsyncClient, Client
from .results import Found, FoundIds

__all__ = ["AsyncClient", "Client", "Found", "FoundIds"]
