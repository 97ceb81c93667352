"""Tiny inputs, which show the overhead of a call; an agent's memory is not much larger."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hopfuse as hf
import numpy as np

from .. import gate
from ..settings import Settings
from .base import Workload, proof
from .data import WalkGraph, synthetic_graph
from .ppr import Ppr

#: Calls timed together.
CALLS = 100
TOLERANCE = 1e-6


def two_hundred(quick: bool) -> WalkGraph:
    """Return a graph of 200 nodes."""
    return synthetic_graph(passages=80, entities=120, mentioned=3)


def twelve(quick: bool) -> WalkGraph:
    """Return a graph of 12 nodes."""
    return synthetic_graph(passages=4, entities=8, mentioned=2)


class SmallPpr(Ppr):
    """One query on a small graph, on one thread; a turn is a hundred calls."""

    calls = CALLS

    def __init__(self, settings: Settings, load: Any) -> None:
        super().__init__(replace(settings, threads=1), load, batches=(1,))
        self.batches = (1,)


class TinyDense(Workload):
    """One query, four rows of eight dimensions, on one thread."""

    ops = ("dense_topk_f32",)
    data, batches, calls, threads = "synthetic", (1,), CALLS, 1

    def __init__(self, settings: Settings) -> None:
        rng = np.random.default_rng(5)
        self.queries = rng.standard_normal((1, 8), dtype=np.float32)
        self.corpus = hf.Corpus.from_array(rng.standard_normal((4, 8), dtype=np.float32))
        self.sizes = {"vectors": 4, "dim": 8, "k": 3}

    def run(self, batch: int, turn: int) -> Any:
        return hf.dense_topk(self.queries, self.corpus, 3, threads=self.threads)

    def check(self, batch: int, ours: Any) -> dict[str, Any]:
        return _agree(ours, hf.reference.dense_topk(self.queries, self.corpus, 3))

    def compare(self, batch: int, ours: Any, theirs: gate.Rankings) -> dict[str, Any]:
        return _agree(ours, theirs)


class TinyFusion(Workload):
    """Two lists of three documents, on one thread."""

    ops = ("fuse_f32",)
    data, batches, calls, threads = "synthetic", (1,), CALLS, 1

    def __init__(self, settings: Settings) -> None:
        scores = np.array([[0.9, 0.5, 0.1]], np.float32)
        self.lists = [hf.Hits(np.array([ids]), scores) for ids in ([0, 1, 2], [2, 3, 0])]
        self.sizes = {"lists": 2, "documents_in_a_list": 3, "k": 3}

    def run(self, batch: int, turn: int) -> Any:
        return hf.fuse(self.lists, k=3, threads=self.threads)

    def check(self, batch: int, ours: Any) -> dict[str, Any]:
        return _agree(ours, hf.reference.fuse(self.lists, k=3))


def _agree(ours: Any, expected: Any) -> dict[str, Any]:
    found = gate.Rankings(ours.ids, ours.scores)
    wanted = gate.Rankings(expected.ids, expected.scores)
    return proof(1, gate.rankings("hopfuse against the oracle", found, wanted, TOLERANCE, TOLERANCE), TOLERANCE)
