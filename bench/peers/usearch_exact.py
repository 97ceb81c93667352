"""USearch's exact search over float32 vectors."""

from __future__ import annotations

import numpy as np

from ..cases.dense import Dense
from ..gate import Rankings
from .base import Peer


class UsearchExact(Peer):
    """``usearch.index.search(exact=True)``, inner product."""

    packages = ("usearch",)
    modules = ("usearch.index",)

    def __init__(self, workload: Dense, threads: int) -> None:
        self.workload, self.threads = workload, threads

    def run(self, batch: int) -> Rankings:
        from usearch.index import MetricKind, search

        queries = self.workload.queries[:batch]
        found = search(
            self.workload.vectors, queries, self.workload.k, metric=MetricKind.IP, exact=True, threads=self.threads
        )
        ids, distances = np.atleast_2d(found.keys), np.atleast_2d(found.distances)
        return Rankings(ids.astype(np.int64), (1.0 - distances).astype(np.float32))
