"""hopfuse's own ``ppr``: all scores, into an existing array."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np

from ..cases.ppr_topk import PprTopk
from .base import Peer


class PprOut(Peer):
    """The walk alone, to show the cost of proving the best nodes."""

    remark = "hopfuse's own ppr with out=, all scores; ranked untimed"
    own = True

    def __init__(self, workload: PprTopk, threads: int) -> None:
        self.workload, self.threads = workload, threads
        self.out = np.empty((max(workload.batches), workload.graph.num_nodes), np.float32)

    def run(self, batch: int) -> Any:
        return hf.ppr(
            self.workload.graph,
            self.workload.restart(batch),
            damping=self.workload.damping,
            tol=self.workload.tol,
            threads=self.threads,
            out=self.out[:batch],
        )

    def answer(self, found: Any) -> Any:
        return self.workload.finish(found.scores)
