"""hopfuse's own PhaseGraph, on the questions of another recipe."""

from __future__ import annotations

from collections import Counter
from typing import Any

import hopfuse as hf

from ..cases.phase_graph import PhaseGraphWhole
from ..gate import Rankings
from .base import Peer


class PhaseGraph(Peer):
    """Another recipe over the same index, on the same batches of questions."""

    remark = "hopfuse's own PhaseGraph with its defaults"
    own = True

    def __init__(self, workload: PhaseGraphWhole, threads: int) -> None:
        self.workload, self.recipe = workload, hf.recipes.PhaseGraph(workload.index, threads=threads)
        self.turns: Counter[int] = Counter()

    def run(self, batch: int) -> Any:
        self.turns[batch] += 1
        return self.recipe.search(**self.workload.questions(batch, self.turns[batch] - 1))

    def answer(self, found: Any) -> Any:
        dense = found.lists["dense"]
        return Rankings(dense.ids, dense.scores)
