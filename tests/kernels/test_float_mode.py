"""A process that flushes subnormal numbers, rounds otherwise or traps gets the same bits, and keeps its mode.

The kernels run in the default mode. Python and NumPy, which prepare their arguments, run in the caller's: flushing
changes nothing there, since what they compute is not subnormal, while another rounding changes default weights, for
example.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import float_modes
import hopfuse as hf
import numpy as np
import pytest

pytestmark = pytest.mark.skipif(not float_modes.NAMES, reason="reads glibc's fenv_t of x86-64 and AArch64")


def arrays_of(result: Any) -> list[np.ndarray[Any, Any]]:
    """Return the arrays that an answer consists of."""
    names = ("ids", "scores", "counts", "score_bounds", "proven", "iterations", "residual", "bound", "converged")
    if isinstance(result, np.ndarray):
        return [result]
    if isinstance(result, tuple):
        return [array for part in result for array in arrays_of(part)]
    return [np.asarray(getattr(result, name)) for name in names if hasattr(result, name)]


def calls() -> dict[str, Callable[[], Any]]:
    """Return a call of every op, on inputs where subnormal numbers, rounding and underflow matter."""
    rng = np.random.default_rng(0)
    n = 700
    # Long chains and weights of all sizes: the mass of far nodes, and of light edges, is subnormal in float32.
    ends = np.array([np.r_[np.arange(n - 1), rng.integers(0, n, 200)], np.r_[np.arange(1, n), rng.integers(0, n, 200)]])
    weights = (10.0 ** rng.uniform(0, 37, ends.shape[1])).astype(np.float32)
    graph = hf.Graph.from_edges(*ends, weight=weights, num_nodes=n)
    chain = hf.Graph.from_edges(np.arange(n - 1), np.arange(1, n), num_nodes=n, directed=True)
    seeds = [{int(v): 1.0} for v in rng.integers(0, n, 9)]
    small = (rng.standard_normal((400, 48)) * 2.0**-62).astype(np.float32)
    corpus = hf.Corpus.from_array(small)
    coded = hf.Corpus.from_array(rng.standard_normal((5000, 64)).astype(np.float32), storage="int8", metric="cosine")
    wide = rng.standard_normal((20, 64)).astype(np.float32)
    queries = (rng.standard_normal((20, 48)) * 2.0**-62).astype(np.float32)
    ids = np.stack([rng.permutation(100)[:40] for _ in range(6)])
    tiny = (rng.random((6, 40)) * 1e-38).astype(np.float32)
    lists = [hf.Hits(ids, -np.sort(-tiny)), hf.Hits(ids[::-1].copy(), -np.sort(-rng.random((6, 40)), axis=1))]
    incidence = hf.Incidence.from_pairs(*np.nonzero(rng.random((60, 40)) < 0.2), num_rows=60, num_columns=40)
    fields = rng.random((5, 40)).astype(np.float32) * np.float32(1e-38)
    return {
        "ppr": lambda: (hf.ppr(graph, seeds), hf.ppr(chain, seeds, damping=0.5, tol=1e-12)),
        "ppr_topk": lambda: (hf.ppr_topk(chain, [{0: 1.0}], 150, damping=0.5), hf.ppr_topk(graph, seeds, 20)),
        "ppr_threads": lambda: hf.ppr_topk(graph, seeds * 8, 20, threads=3),
        "dense_topk": lambda: (hf.dense_topk(queries, corpus, 10), hf.dense_topk(wide, coded, 10)),
        "calibrate": lambda: tuple(hf.calibrate(lists[0], method) for method in ("z_score", "min_max", "l2")),
        "fuse": lambda: tuple(
            hf.fuse(lists, method=method, k=20, weights=[0.75, 0.5]) for method in ("linear", "rrf", "boltzmann")
        ),
        "ising": lambda: hf.ising_rerank(lists[0], graph),
        "similarity": lambda: hf.similarity_weights(wide, coded),
        "project": lambda: (hf.project(fields, incidence), hf.project_topk(fields, incidence, 7)),
        "encode": lambda: hf.dense_topk(queries, hf.Corpus.from_array(small, storage="int8"), 10),
    }


class Rows:
    """Edges with weights of all sizes, and short vectors."""

    def __init__(self) -> None:
        rng = np.random.default_rng(2)
        self.ends, self.types = rng.integers(0, 700, (2, 3000)), rng.integers(0, 3, 3000)
        self.weight = (10.0 ** rng.uniform(-37, 37, 3000)).astype(np.float32)
        self.vectors = (rng.standard_normal((400, 48)) * 2.0**-62).astype(np.float32)

    def built(self) -> list[np.ndarray[Any, Any]]:
        """Return the answers of graphs and corpora that are built now."""
        found = []
        for directed, types in ((False, None), (True, None), (False, self.types), (True, self.types)):
            graph = hf.Graph.from_edges(*self.ends, self.weight, num_nodes=700, directed=directed, edge_type=types)
            found += arrays_of(hf.ppr(graph, [{1: 1.0}, {5: 1.0, 9: 2.0}]))
            found += arrays_of(hf.ppr_topk(graph, [{1: 1.0}], 50))
        for storage in ("float32", "int8", "float16", "bfloat16"):
            corpus = hf.Corpus.from_array(self.vectors, storage=storage)  # type: ignore[arg-type]
            found += arrays_of(hf.dense_topk(self.vectors[:20], corpus, 5))
        return found


@pytest.fixture(scope="module")
def rows() -> Rows:
    return Rows()


@pytest.fixture(scope="module")
def ops() -> dict[str, Callable[[], Any]]:
    return calls()


@pytest.mark.parametrize("name", [name for name in float_modes.NAMES if name != "unmasked"])
def test_every_op_gives_the_same_bits_and_keeps_the_mode(ops: dict[str, Callable[[], Any]], name: str) -> None:
    wrong = []
    for op, call in ops.items():
        expected, before = arrays_of(call()), float_modes.control()
        with float_modes.mode(name):
            mine = float_modes.control()
            found = arrays_of(call())
            assert float_modes.control() == mine != before, op
        same = all(a.tobytes() == b.tobytes() for a, b in zip(found, expected, strict=True))
        wrong += [] if same and len(found) == len(expected) > 0 else [op]
    assert wrong == []


def test_graphs_and_corpora_built_while_numbers_are_flushed_are_the_same(rows: Rows) -> None:
    expected = rows.built()
    with float_modes.mode("flush"):
        found = rows.built()
    assert [one.tobytes() for one in found] == [one.tobytes() for one in expected]


@pytest.mark.skipif("unmasked" not in float_modes.NAMES, reason="AArch64's traps are optional")
def test_subnormal_numbers_raise_no_signal() -> None:
    """With unmasked exceptions, the first subnormal number in the caller's mode would end the process by SIGFPE."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import float_modes\n"
        "from kernels.test_float_mode import calls\n"
        "for call in calls().values():\n"
        "    call()\n"
        "    with float_modes.mode('unmasked'):\n"
        "        call()\n"
    )
    tests = str(Path(__file__).parents[1])
    assert subprocess.run([sys.executable, "-c", code, tests], check=False).returncode == 0
