"""The same recipe in mosec: HTTP in Rust, batches of up to 32 requests to one Python process."""

from __future__ import annotations

import os
from typing import Any

import hopfuse as hf
import numpy as np
from mosec import Server, Worker

from .inputs import INDEX_VARIABLE, K

#: Maximum requests in a batch, the same as in hopfuse serve.
LIMIT = 32


class Search(Worker):
    """The worker."""

    def __init__(self) -> None:
        super().__init__()
        self._recipe = hf.recipes.PhaseGraph(hf.Index.open(os.environ[INDEX_VARIABLE]))

    def forward(self, data: list[Any]) -> list[Any]:
        """Search the questions of all requests together."""
        queries = [query for body in data for query in body["queries"]]
        vectors = np.array([query["vector"] for query in queries], np.float32)
        found = self._recipe.search(vectors=vectors, entities=[query["entities"] for query in queries], k=K)
        rankings = [
            [{"id": hit.id, "score": float(hit.score), "title": hit.title, "text": hit.text} for hit in hits]
            for hits in found
        ]
        answers, at = [], 0
        for body in data:
            answers.append(rankings[at : at + len(body["queries"])])
            at += len(body["queries"])
        return answers


if __name__ == "__main__":
    server = Server()  # reads --address and --port
    server.append_worker(Search, max_batch_size=LIMIT, max_wait_time=1, route="/v1/search")
    server.run()
