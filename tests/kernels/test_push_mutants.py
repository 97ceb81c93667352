"""The test of the local walks' tests: bugs planted in the kernel differ from the contract spelled out in Python."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import hopfuse as hf
import numpy as np
import pytest
from cases import random_graph, random_restart
from kernels.canonical_push import Walk
from numpy.typing import NDArray

pytestmark = pytest.mark.full

KERNELS = Path(__file__).parents[2] / "kernels"
K = 6


class Mutant(NamedTuple):
    """``old`` stands once in the file, and becomes ``new``."""

    name: str
    file: str
    old: str
    new: str


WALK, PROOF, CONTRACT = "cpu/ppr_push_walk.h", "cpu/ppr_push_proof.h", "include/hopfuse/ppr_push.h"
MUTANTS = [
    Mutant("nothing", WALK, "int64_t rounds = 0", "int64_t rounds = 0"),
    Mutant("a bound without its rounding", CONTRACT, "return PPR_UNIT * (", "return 0.0 * ("),
    Mutant(
        "a hub left out of the largest degree",
        PROOF,
        "return std::max(outside, width(largest, walk_.damping));",
        "return std::max(outside, width(0.1 * largest, walk_.damping));",
    ),
    Mutant(
        "a threshold compared with <",
        WALK,
        "memory.residual[node] > threshold * least_degree(node) ?",
        "threshold * least_degree(node) < 1.001 * memory.residual[node] ?",
    ),
    Mutant(
        "r read inside a round",
        WALK,
        "const double factor = factors[i];",
        "const double factor = factors[i] + damping * residual[front[i]] / degrees[front[i]];",
    ),
    Mutant(
        "a degree from above",
        WALK,
        "const double most = threshold * (weights == Weights::typed ? degree(to) : degrees[to]);",
        "const double most = threshold * 2.0 * degrees[to];",
    ),
    Mutant("residual that a push leaves behind", WALK, "memory.residual[node] = TAKEN;", ""),
    Mutant("a node weight left out", WALK, "factor * (w * double(memory.guide[to]))", "factor * w"),
    Mutant("a pushed node's weight counted twice", WALK, "was_zero && x > 0.0 ? memory", "x > 0.0 ? memory"),
    Mutant("a degree from above, with node weights", WALK, "std::fabs(memory.known[node]) : degree", "1e3 : degree"),
    Mutant("D of the neighbour", WALK, "double(memory.guide[node]) * -memory", "-memory"),
    Mutant(
        "a look that takes the upper bound for the lower",
        PROOF,
        "least += flow / walk_.degree(source)",
        "least += flow / walk_.least_degree(source)",
    ),
    Mutant(
        "a look without its step", PROOF, "(m_.estimate[one.node] + (1.0 - d) * own)", "(m_.estimate[one.node] + own)"
    ),
]


class Case(NamedTuple):
    """``guide``: (B, N) node weights, at most 1."""

    graph: hf.Graph
    restart: list[dict[int, float]]
    among: NDArray[np.int64]
    order: bool
    guide: NDArray[np.float32]


def graphs() -> list[Case]:
    """Return weighted graphs with a hub; half of them with node weights."""
    made = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng, 300, 900, weights="random", hub=7)
        among = np.flatnonzero(rng.random(300) < 0.6)
        restart = random_restart(rng, 300, 12)
        guide = rng.uniform(0.2, 1, (12, 300)) if seed < 4 else np.ones((12, 300))
        guide[:, graph.degree[:, 0].argmax()] = 1  # so that no scale is taken out
        made.append(Case(graph, restart, among, seed % 2 == 0, guide.astype(np.float32)))
    return made


def words(*parts: object) -> bytes:
    """Return numbers as words of 8 bytes."""
    found = b""
    for part in parts:
        array = np.atleast_1d(np.asarray(part))
        found += array.astype(np.float64 if array.dtype.kind == "f" else np.int64).tobytes()
    return found


def program(mutant: Mutant, folder: Path) -> Path:
    """Compile the kernel with a bug."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    for part in ("cpu", "include"):
        shutil.copytree(KERNELS / part, folder / part)
    source = folder / mutant.file
    text = source.read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1, f"{mutant.name}: plant it anew"
    source.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    files = [folder / "cpu" / f"{name}.cpp" for name in ("ppr_push", "threads", "workspace")]
    flags = ["-std=c++20", "-O1", "-ffp-contract=off", "-pthread", "-DHOPFUSE_PORTABLE"]
    flags += ["-DHOPFUSE_ISA_NS=baseline", "-DHOPFUSE_ISA_BASELINE", f"-I{folder / 'include'}", f"-I{folder / 'cpu'}"]
    made = folder / "push_lists"
    driver = Path(__file__).parent / "push_lists.cpp"
    subprocess.run([compiler, *flags, str(driver), *map(str, files), "-o", str(made)], check=True)
    return made


def answers(run: Path, folder: Path, number: int, case: Case) -> list[bytes]:
    """Return the program's answer to each query of a case."""
    graph, restart, among, order, guide = case
    assert graph.keeps_order
    assert graph.weight is not None
    rows = [sorted(row.items()) for row in restart]
    candidates = hf.Candidates(graph, among)
    table = candidates.table
    assert table.bits is not None
    given, answer = folder / f"in{number}", folder / f"out{number}"
    given.write_bytes(
        words(graph.num_nodes, graph.num_stored, len(rows), sum(map(len, rows)), K, order, graph.indptr, graph.indices)
        + words(graph.weight, graph.degree[:, 0], np.cumsum([0, *map(len, rows)]), [v for row in rows for v, _ in row])
        + words([w for row in rows for _, w in row], table.bits.view(np.int64), table.with_edges)
        + words(table.largest_total, guide.ravel())
    )
    subprocess.run([str(run), str(given), str(answer)], check=True)
    whole, size = answer.read_bytes(), 8 * (2 * K + 5)
    return [whole[at : at + size] for at in range(0, len(whole), size)]


def expected(case: Case) -> list[bytes]:
    """Return the same by the contract."""
    graph, restart, among, order, guide = case
    made = []
    for seeds, own in zip(restart, guide.astype(float).tolist(), strict=True):
        walk = Walk(graph, seeds, K, among.tolist(), order=order, weights=own)
        found = walk.run()
        pairs = [part for pair in zip(found.ids, map(float, found.scores), strict=True) for part in pair]
        pairs += [-1, -np.inf] * (K - len(found.ids))
        made.append(words(*pairs, found.proven, found.rounds, found.rows, found.entries, found.bound))
    return made


@pytest.mark.parametrize("mutant", MUTANTS, ids=[one.name for one in MUTANTS])
def test_planted_bugs_are_found(mutant: Mutant, tmp_path: Path) -> None:
    run = program(mutant, tmp_path)
    same = [answers(run, tmp_path, number, case) == expected(case) for number, case in enumerate(graphs())]
    assert all(same) if mutant.name == "nothing" else not all(same)
