"""hopfuse's own ``ppr`` without node weights."""

from __future__ import annotations

from typing import Any

import hopfuse as hf

from ..cases.ppr_weighted import WeightedPpr
from .base import Peer


class PlainWalk(Peer):
    """The same walk without weights, to show the cost of weights."""

    remark = "hopfuse's own ppr without node weights"
    own = True

    def __init__(self, workload: WeightedPpr, threads: int) -> None:
        self.workload, self.threads = workload, threads

    def run(self, batch: int) -> Any:
        return hf.ppr(
            self.workload.graph,
            self.workload.restart(batch),
            damping=self.workload.damping,
            tol=self.workload.tol,
            threads=self.threads,
        )

    def answer(self, found: Any) -> Any:
        return found.scores
