"""nanoranker as a Reranker: https://pypi.org/project/nanoranker (MIT)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

ABOUT = (
    "a network over the embeddings of both texts (the multilingual Universal Sentence Encoder's, and hashed runs of "
    "characters) for ranking passages by a question; the package does not say what it was trained on. It does not read "
    "both texts together, as a cross-encoder does: whether one would do better is open here"
)


class NanoRanker:
    """Scores with the package's network and embeddings, embedding each text once."""

    def __init__(self) -> None:
        import nanoranker

        self.embed: Any = cache(nanoranker.embed)
        self.network: Any = nanoranker.reranker_model

    def score(self, queries: Sequence[str], candidates: Sequence[Sequence[str]]) -> list[NDArray[np.float32]]:
        """Return a score for each candidate of each query."""
        return [self._row(query, row) for query, row in zip(queries, candidates, strict=True)]

    def _row(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        if not texts:
            return np.zeros(0, np.float32)
        both = [np.concatenate([self.embed(query), self.embed(text)]) for text in texts]
        (scores,) = self.network.run(["output"], {"input": np.asarray(both, np.float32)})
        return np.asarray(scores, np.float32).reshape(-1)
