"""The weights of passages in a question's walk."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...ops.similarity import similarity_weights
from ...types import Corpus
from .._parts.filters import View
from .config import GuidedWalkConfig


def passage_weights(
    vectors: Any, corpus: Corpus, config: GuidedWalkConfig, view: View | None, threads: int | None
) -> NDArray[np.float32]:
    """Return the weights of all passages for each question, (B, P), by similarities with those that it may see.

    Passages that a walk may not see weigh 0, but for a question that may see none: it has no walk.
    """
    allow = None if view is None or view.nodes is None else view.allow
    weights: NDArray[np.float32] = similarity_weights(
        vectors, corpus, tau=config.tau, floor=config.floor, allow=allow, threads=threads
    )
    return weights if allow is None else np.where(weights.any(axis=1, keepdims=True), weights, np.float32(1))
