"""Walks of which single passes are timed too, by batch size and by size of the graph."""

from __future__ import annotations

import time
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from .. import traffic
from ..settings import Settings
from .graphs import generated
from .ppr import Ppr

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
#: Passes of two truncated walks: both run beyond the passes that skip most of the graph; neither measures residuals.
PASSES = (4, 8)
#: Seconds after which walks of large graphs are not repeated, and the minimum number of repetitions.
ENOUGH, FEWEST = 5.0, 3


class PprPasses(Ppr):
    """Walks as in ``Ppr``, and the time of a pass, from the difference of two truncated walks."""

    def probe(self, batch: int, settings: Settings) -> dict[str, Any]:
        turns = settings.repeats if settings.quick else max(settings.repeats, 9)
        seconds: list[float] = []
        start = time.perf_counter()
        while len(seconds) < turns and (len(seconds) < FEWEST or time.perf_counter() - start < ENOUGH):
            seconds.append(self._pass_seconds(batch))
        return {"seconds": float(f"{np.median(seconds):.4g}"), "moved": asdict(traffic.of_pass(self.graph, batch))}

    def _pass_seconds(self, batch: int) -> float:
        ends = []
        for passes in PASSES:
            start = time.perf_counter()
            self.walk(batch, max_iter=passes)
            ends.append(time.perf_counter() - start)
        return (ends[1] - ends[0]) / (PASSES[1] - PASSES[0])


class PprBatches(PprPasses):
    """The hotpotqa graph, by number of queries per call."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, batches=BATCHES)


class PprStored(PprPasses):
    """A generated graph of about ``stored`` stored entries."""

    def __init__(self, settings: Settings, stored: int, batches: tuple[int, ...] = (1, 64)) -> None:
        super().__init__(settings, partial(generated, stored), batches=batches)
