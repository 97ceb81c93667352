"""ranx's fusion."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np

from ..cases.fusion import Fusion
from ..gate import Rankings
from .base import CHOSEN, Peer

#: ranx's names of methods and normalisations (None for methods that read ranks), and required parameters.
METHODS: dict[str, tuple[str, str | None, dict[str, Any]]] = {
    "rrf": ("rrf", None, {}),
    "linear": ("sum", "min-max", {}),
    "max": ("max", None, {}),
    "comb_sum": ("sum", "min-max", {}),
    "comb_mnz": ("mnz", "min-max", {}),
    "comb_anz": ("anz", "min-max", {}),
    "comb_min": ("min", "min-max", {}),
    "comb_max": ("max", "min-max", {}),
    "comb_med": ("med", "min-max", {}),
    "wmnz": ("wmnz", "min-max", {}),
    "isr": ("isr", None, {}),
    "log_isr": ("log_isr", None, {}),
    "borda": ("bordafuse", None, {}),
    "rbc": ("rbc", None, {"phi": 0.9}),
}


class RanxFusion(Peer):
    """``ranx.fuse`` over ``Run`` objects, dictionaries of strings; conversions from and to them are not timed."""

    packages = ("ranx", "numba")
    modules = ("ranx",)
    remark = (
        "lists as Run objects beforehand, a Run of all documents, unsorted, as the answer; compiled before it is timed"
    )
    runs_on = CHOSEN

    def __init__(self, workload: Fusion, threads: int) -> None:
        self.workload = workload
        self.method, self.norm, self.parameters = METHODS[workload.how["method"]]
        if self.method == "wmnz":
            self.parameters = {"weights": workload.weights}
        self.lists = workload.first(self.timed_queries(max(workload.batches)))
        self.runs = [_run(hits) for hits in self.lists]

    def timed_queries(self, batch: int) -> int:
        return min(batch, 250)

    def run(self, batch: int) -> Any:
        import ranx

        return ranx.fuse(self.runs, norm=self.norm, method=self.method, params=self.parameters or None)

    def answer(self, found: Any) -> Rankings:
        fused = found.to_dict()
        ids = np.empty((len(fused), self.workload.k), np.int64)
        scores = np.empty(ids.shape)
        for row in range(len(fused)):
            best = sorted((-score, int(document)) for document, score in fused[f"{row:06d}"].items())[: ids.shape[1]]
            ids[row], scores[row] = [document for _, document in best], [-score for score, _ in best]
        return Rankings(ids, scores)


def _run(hits: hf.Hits) -> Any:
    import ranx

    rows = zip(hits.ids.tolist(), hits.scores.tolist(), strict=True)
    return ranx.Run(
        {f"{row:06d}": dict(zip(map(str, ids), scores, strict=True)) for row, (ids, scores) in enumerate(rows)}
    )
