"""Fusion of two lists per query, and of three by every method."""

from __future__ import annotations

from typing import Any, ClassVar

import hopfuse as hf
import numpy as np

from .. import gate, traffic
from ..settings import Settings
from .base import Workload, proof

K = 10
#: Bytes of an id and a score.
ENTRY_BYTES = 8 + 4


class Fusion(Workload):
    """Boltzmann fusion of two lists that share a third of their ids, with weights (0.7, 0.3).

    Attributes
    ----------
    how : dict
        Arguments of ``hf.fuse``.
    tolerance : float
        Error of a score: a sum of float32 probabilities, about 1e-3 each in a list of 1,000.
    """

    ops = ("fuse_f32",)
    data = "synthetic"
    how: ClassVar[dict[str, Any]] = {"method": "boltzmann", "weights": (0.7, 0.3)}
    tolerance = 1e-8
    queries = 1_000
    num_lists = 2
    k = K
    oracle_queries = 20

    def __init__(self, settings: Settings) -> None:
        queries, length = (20, 50) if settings.quick else (self.queries, 1_000)
        self.batches, self.threads = (queries,), settings.threads
        self.weights = self.how.get("weights")
        rng = np.random.default_rng(3)
        self.lists = [_lists(rng, queries, length) for _ in range(self.num_lists)]
        self.sizes = {"lists": self.num_lists, "documents_in_a_list": length, "k": self.k}

    def run(self, batch: int, turn: int) -> Any:
        return hf.fuse(self.lists, **self.how, k=self.k, threads=self.threads)

    def first(self, queries: int) -> list[hf.Hits]:
        """Return all lists of the first queries."""
        return [hf.Hits(hits.ids[:queries], hits.scores[:queries]) for hits in self.lists]

    def check(self, batch: int, ours: Any) -> dict[str, Any]:
        n = min(batch, self.oracle_queries)
        exact = hf.reference.fuse(self.first(n), **self.how, k=self.k)
        return self._agree("hopfuse against the oracle", ours, gate.Rankings(exact.ids, exact.scores))

    def compare(self, batch: int, ours: Any, theirs: gate.Rankings) -> dict[str, Any]:
        return self._agree("the peer against hopfuse", ours, theirs)

    def task(self) -> dict[str, Any]:
        lists = [(hits.ids, hits.scores) for hits in self.lists]
        return {"op": "fuse", "lists": lists, "options": {**self.how, "k": self.k}}

    def moved(self, batch: int, ours: Any) -> traffic.Traffic:
        """Return the traffic of reading every entry of every list."""
        return traffic.in_order(sum(ENTRY_BYTES * hits.ids.size for hits in self.lists))

    def _agree(self, what: str, ours: Any, expected: gate.Rankings) -> dict[str, Any]:
        n = len(expected.ids)
        found = gate.Rankings(ours.ids[:n], ours.scores[:n])
        return proof(n, gate.rankings(what, found, expected, self.tolerance, self.tolerance), self.tolerance)


class ReciprocalRanks(Fusion):
    """Reciprocal ranks, constant 60."""

    how: ClassVar[dict[str, Any]] = {"method": "rrf", "weights": (1.0, 1.0)}
    queries = 10_000


class ThousandHits(ReciprocalRanks):
    """The best 1,000 documents of the two lists instead of 10."""

    queries = 1_000
    k = 1_000


class MinMaxSum(Fusion):
    """The sum of min-max scaled scores, each at most 1."""

    how: ClassVar[dict[str, Any]] = {"method": "linear", "calibration": "min_max", "weights": (1.0, 1.0)}
    tolerance = 1e-6
    queries = 10_000


class ThreeLists(Fusion):
    """Any method, with its defaults or the options in ``HOW``; the tolerance is relative to the largest score."""

    queries = 10_000
    num_lists = 3

    def __init__(self, settings: Settings, method: str) -> None:
        self.how = {"method": method, **HOW.get(method, {})}
        super().__init__(settings)

    def turns(self, batch: int, settings: Settings) -> int:
        """Return fewer repetitions, because a call may take seconds."""
        return min(settings.repeats, 5)

    def _agree(self, what: str, ours: Any, expected: gate.Rankings) -> dict[str, Any]:
        self.tolerance = RELATIVE.get(self.how["method"], 1e-5) * float(np.abs(expected.scores).max())
        return super()._agree(what, ours, expected)


#: Options of methods that need weights, as in ranx.
HOW: dict[str, dict[str, Any]] = {
    "linear": {"calibration": "min_max", "weights": (1.0, 1.0, 1.0)},
    "wmnz": {"weights": (0.5, 0.3, 0.2)},
}
#: Tolerance relative to the largest score, for methods whose exponentials amplify errors.
RELATIVE = {"plackett_luce": 1e-4, "gumbel": 1e-4, "log_linear": 1e-4}


def _lists(rng: np.random.Generator, queries: int, length: int) -> hf.Hits:
    """Return lists of distinct documents out of 3 x length, with normally distributed scores."""
    ids = np.argsort(rng.random((queries, 3 * length)), axis=1)[:, :length]
    return hf.Hits(ids, rng.standard_normal((queries, length), dtype=np.float32))
