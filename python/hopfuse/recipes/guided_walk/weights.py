"""Weights of passages in the guided walk."""

from __future__ import annotations

from typing import Any

from ...ops.seeding import boost_weights
from ...ops.similarity import similarity_weights
from ...types import Corpus, Hits
from .config import GuidedWalkConfig


def passage_weights(
    vectors: Any,
    boosted: Hits | None,
    corpus: Corpus,
    config: GuidedWalkConfig,
    *,
    threads: int | None,
) -> Any:
    """Return each passage's weight, (B, P), as the core computes it in two calls of its own."""
    tau = config.decay(has_words=boosted is not None)
    weights = similarity_weights(vectors, corpus, tau=tau, floor=config.floor, threads=threads)
    return weights if boosted is None else boost_weights(weights, boosted, config.boost, backend="cpu")


def boosts_of(boosted: Hits, b: int, boost: float) -> dict[int, float]:
    """Return what one question's weights are multiplied by, by passage; 1 for a passage that is not there."""
    raised = [(passage, score) for passage, score in boosted.row(b) if score > 0]
    most = max((score for _, score in raised), default=1.0)
    return {passage: 1.0 + boost * score / most for passage, score in raised}
