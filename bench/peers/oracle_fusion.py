"""hopfuse's own float64 oracle of fusion: plain Python and NumPy, one query at a time."""

from __future__ import annotations

import hopfuse as hf

from ..cases.fusion import Fusion
from ..gate import Rankings
from .base import ONE, Peer

#: Queries to time for methods that compare all pairs of documents.
PAIRWISE = {"gumbel": 2, "condorcet": 20}


class OracleFusion(Peer):
    """The oracle, which is written for clarity, not for speed."""

    packages = ("numpy",)
    remark = "the definition, written to be read; one thread"
    runs_on = ONE
    own = True

    def __init__(self, workload: Fusion, threads: int) -> None:
        self.workload = workload
        self.lists = workload.first(self.timed_queries(max(workload.batches)))

    def timed_queries(self, batch: int) -> int:
        return min(batch, PAIRWISE.get(self.workload.how["method"], 50))

    def run(self, batch: int) -> Rankings:
        fused = hf.reference.fuse(self.lists, **self.workload.how, k=self.workload.k)
        return Rankings(fused.ids, fused.scores)
