"""Paths of results."""

from __future__ import annotations

from ..record import RECORDED

RESULTS, RERANKING = RECORDED / "fusion.json", RECORDED / "reranking.json"
