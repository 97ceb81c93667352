"""The tests of the kernels' tests: every bug that is planted in a kernel (mutants.py) is found where the list says."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import processes
import pytest
from cases import entities_graph, paths_to_a_hub, random_graph, random_lists, random_restart, twins_and_likes
from emulated_device import OTHER, SimtRuntime
from hopfuse.errors import BackendError
from hopfuse_simt import SimtModule
from hopfuse_simt.errors import SimtError
from kernels.moved_products import copy_kernels, move_products
from kernels.mutants import MUTANTS, Mutant
from kernels.products import as_stored, multiply, units_error
from numpy.typing import NDArray
from variants import missing, registered, same_bits_as_the_cpu, use_sizes

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.full,
    pytest.mark.skipif(missing("simt") is not None, reason=str(missing("simt"))),
]

ROOT = Path(__file__).parents[2]
#: Tiles of an odd number of rows, each shared by two blocks; products for few queries too.
ODD = {"tile_scores": 1, "tile_rows": 31, "split_rows": 12, "split_blocks": 4, "scored_at_once": 0}


def search(x: Any, q: Any, k: int, sizes: dict[str, int], storage: Any = "float32", metric: Any = "ip") -> None:
    use_sizes(**sizes)
    hf.dense_topk(q, hf.Corpus.from_array(x, metric=metric, storage=storage), k, backend="simt")


def drawn(dim: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return 75 rows and two queries."""
    rng = np.random.default_rng(1)
    x, q = (rng.standard_normal(shape).astype(np.float32) for shape in ((75, dim), (2, dim)))
    return x, q


def bound(runtime: SimtRuntime) -> None:
    """Inner products of two queries by the bound, over odd tiles that blocks share."""
    search(*drawn(3), 1, ODD)


def halves(runtime: SimtRuntime) -> None:
    """A product of 16-bit rows, of two steps and no whole tile."""
    search(*drawn(33), 1, ODD, "float16")


def fours(runtime: SimtRuntime) -> None:
    """A product of 16-bit rows that are aligned to 8 bytes, not to 16."""
    search(*drawn(36), 1, ODD, "float16")


def wide(runtime: SimtRuntime) -> None:
    """A product of bfloat16 rows by float32 arithmetic."""
    search(*drawn(33), 1, ODD, "bfloat16")


def parts(runtime: SimtRuntime) -> None:
    """The best row's score needs the low part of a query; of small and of large queries."""
    q = np.array([[1 + 0.98 * 2.0**-11, 1, 1]], np.float32)
    x = np.zeros((62, 3), np.float32)
    x[:61, 1], x[:61, 2] = 1.0, 2.0**-15
    x[0, 2] = 0.875 * 2.0**-11
    x[61, 0] = 1.0
    for scale in (1.0, 1e-9, 1e9):
        search(x, q * np.float32(scale), 1, {"scored_at_once": 0}, "float16")


def floats(runtime: SimtRuntime) -> None:
    """Products of float32 rows and queries, by four numbers at a time and one by one."""
    for dim in (36, 33):
        search(*drawn(dim), 1, ODD)


def pairs(runtime: SimtRuntime) -> None:
    """Products of float32 rows that are aligned to 8 bytes, not to 16."""
    search(*drawn(34), 1, ODD)


def thirty(runtime: SimtRuntime) -> None:
    """Products of tiles of float32 rows whose number is no multiple of four."""
    search(*drawn(8), 1, ODD | {"tile_rows": 30})


def coded(runtime: SimtRuntime) -> None:
    """A search by codes of rows and queries that end within a step, in two parts of a sample."""
    sizes = {"coded_bytes": 0, "scanned_rows": 64}
    rng = np.random.default_rng(1)
    x, q = (rng.standard_normal(shape).astype(np.float32) for shape in ((120, 70), (3, 70)))
    search(x, q, 2, sizes, "float16")
    assert any(kernel.startswith("dense_scan") for kernel, _, _ in runtime.launches)


def near_codes(runtime: SimtRuntime) -> None:
    """Searches by codes of rows that are nearer to each other than codes tell."""
    rng = np.random.default_rng(2)
    for power in range(1, 5):
        q = rng.standard_normal((3, 40)).astype(np.float32)
        x = (q[:1] + rng.standard_normal((900, 40)) * 10.0**-power).astype(np.float32)
        search(x, q, 3, {"coded_bytes": 0, "scanned_rows": 256})


def exact_codes(runtime: SimtRuntime) -> None:
    """Searches by codes that lose nothing, of rows whose scores differ by their rounding."""
    rng = np.random.default_rng(3)
    for _ in range(4):
        q = np.concatenate([[32639], rng.integers(-30000, 30000, 30), rng.integers(-2, 3, 30)]).astype(np.float32)
        x = np.concatenate([[127], rng.integers(0, 128, 60)]) * np.where(np.arange(61) < 31, np.sign(q), 1)
        rows = np.repeat(x[None], 200, axis=0)
        rows[:, 31:] = rng.integers(-2, 3, (200, 30))
        search(rows.astype(np.float32), q[None], 3, {"coded_bytes": 0, "scanned_rows": 256})


def full_lists(runtime: SimtRuntime) -> None:
    """A search by codes in which more rows seem to tie than a list has room for; the best one is in the last part."""
    x = np.ones((400, 8), np.float32)
    x[170] = 1.001
    search(x, np.ones((1, 8), np.float32), 3, {"coded_bytes": 0, "scanned_rows": 64})


def units(folder: Path, build: str) -> None:
    """Products of whole numbers, which are exact, of every row and query of a block of matrix units."""
    whole_numbers(folder, build, "float16", (33, 64), 33)


def tiles(folder: Path, build: str) -> None:
    """The same of float32 rows by float32 arithmetic, in blocks of 32 and of 64 queries."""
    for batch in (32, 64):
        whole_numbers(folder, build, "float32", (12, 33), batch, capability=75)


def edges(folder: Path, build: str) -> None:
    """Products of a few float32 rows and queries, in arrays that end with them."""
    whole_numbers(folder, build, "float32", (36, 33), 2, rows=9, capability=75)


def split_edges(folder: Path, build: str) -> None:
    """The same by matrix units."""
    whole_numbers(folder, build, "float32", (36, 33), 2, rows=9)


def split_rows(folder: Path, build: str) -> None:
    """Products of float32 rows by matrix units, none of which is exact."""
    x, q = drawn(64)
    with SimtModule(folder / "dense_topk.cu", build) as module:
        out, _ = multiply(module, x, q, order="shuffle", seed=1)
    exact, sizes = (
        (a.astype(np.float64) for a in (q, x)),
        np.linalg.norm(q, axis=1)[:, None] * np.linalg.norm(x, axis=1),
    )
    queries, rows = exact
    assert (np.abs(out - queries @ rows.T) <= units_error(64, "float32") * sizes).all()


def half_edges(folder: Path, build: str) -> None:
    """The same of float16 rows."""
    whole_numbers(folder, build, "float16", (33,), 2, rows=9)


def wide_edges(folder: Path, build: str) -> None:
    """The same of bfloat16 rows, which compute capability 7.5 multiplies in float32."""
    whole_numbers(folder, build, "bfloat16", (33,), 2, rows=9, capability=75)


def whole_numbers(
    folder: Path, build: str, storage: str, dims: tuple[int, ...], batch: int, rows: int = 130, capability: int = 90
) -> None:
    rng = np.random.default_rng(3)
    with SimtModule(folder / "dense_topk.cu", build, capability=capability) as module:
        for dim in dims:
            x, q = (rng.integers(-9, 10, shape).astype(np.float32) for shape in ((rows, dim), (batch, dim)))
            out, _ = multiply(module, as_stored(x, storage)[0], q, storage, order="shuffle", seed=1)
            np.testing.assert_array_equal(out, q @ x.T)


def moved(runtime: SimtRuntime) -> None:
    """Products at the end of their bound, below the least float32, and with more ties than a list holds."""
    rng = np.random.default_rng(2)
    near = rng.standard_normal((1, 64)) + rng.standard_normal((300, 64)) * 1e-6
    tied = rng.standard_normal((300, 64)) * (np.arange(64) > 0)
    tied[::3, 0] = 100.0
    tiny = np.zeros((300, 64))  # in units of the least product: three, then many of two, then four that round up to one
    tiny[:5, :3], tiny[5:, :2], tiny[-5:, :4] = 1.0, 1.0, 0.51
    tiny *= 2.0**-75
    whole = {"tile_scores": 1, "tile_rows": 300, "scored_at_once": 0}
    for x, metric in ((near, "ip"), (near, "cosine"), (tied, "ip"), (tiny, "ip")):
        q = np.stack([np.full(64, 2.0**-74, np.float32) if x is tiny else x[0], np.eye(64, dtype=np.float32)[0]])
        search(x.astype(np.float32), q.astype(np.float32), 5, whole, metric=metric)


def proofs(runtime: SimtRuntime) -> None:
    """Two queries that are proven after one pass, by the same launch; candidates that blocks share."""
    graph = random_graph(np.random.default_rng(7), 100, 200, hub=3)
    made = hf.ppr_topk(graph, [{3: 1.0, 64: 0.01}, {3: 1.0, 65: 0.01}], 1, damping=0.5)
    assert made.proven.all()
    assert not made.converged.any()  # no walk went on to tol
    assert made.iterations[0] == made.iterations[1]


def ranks(runtime: SimtRuntime) -> None:
    """Lists in several lanes, whose proofs need every group of candidates, and of which some are not full."""
    graph, restart = twins_and_likes(np.random.default_rng(5))
    for k in (2, 30):
        hf.ppr_topk(graph, restart[:5], k)
    among = np.arange(210)
    hf.ppr_topk(graph, restart[:5], 205, candidates=among, damping=0.5)
    graph, restart = paths_to_a_hub(np.random.default_rng(1))
    use_sizes(split_blocks=1)
    for k in (4, 6):
        hf.ppr_topk(graph, restart, k, damping=0.5)


def settling(runtime: SimtRuntime) -> None:
    """One list that is proven at once, and others after one pass, after three, and after one with local bounds."""
    rng = np.random.default_rng(9)
    graph = entities_graph(rng)
    drawn = [{300 + int(v): 1.0 for v in rng.choice(200, 4, False)} for _ in range(5)]
    restart = [drawn[0], drawn[1], drawn[2], drawn[4]]
    made = hf.ppr_topk(graph, restart, 60, candidates=np.arange(300), damping=0.5, max_iter=60)
    assert (made.iterations - made.iterations.min()).tolist() == [0, 1, 3, 2]
    kinds = {kernel.removesuffix("_l4") for kernel, _, _ in runtime.launches}
    assert {"ppr_settle_plan", "ppr_refine_end", "ppr_refine_around"} <= kinds


def refusal(runtime: SimtRuntime) -> None:
    """Walks that end with a proof which the certificate rejects, and that may not be refined."""
    rng = np.random.default_rng(9)
    graph = entities_graph(rng)
    nodes = [300 + rng.choice(200, 4, False) for _ in range(32)]
    restart = [dict(zip(row.tolist(), rng.random(4) + 0.01, strict=True)) for row in nodes]
    made = hf.ppr_topk(graph, restart, 100, candidates=np.arange(300), damping=0.3, max_iter=15, tol=1e-9)
    assert (made.iterations > 2 * 15).any()  # they walk again


def polish(runtime: SimtRuntime) -> None:
    """Scores that float32 cannot bring to tol at once."""
    rng = np.random.default_rng(4)
    hf.ppr(random_graph(rng, 190, 600, hub=3), random_restart(rng, 190, 6), damping=0.95, tol=1e-7)
    assert any(kernel.startswith("ppr_keep") for kernel, _, _ in runtime.launches)


def walks(runtime: SimtRuntime) -> None:
    """Passes after the first two, by two blocks of one launch; one sums the segments of a row of the other."""
    graph = random_graph(np.random.default_rng(7), 150, 300, hub=140)
    hf.ppr(graph, [{3: 1.0, 64: 0.01}, *[{9: 1.0}] * 4], damping=0.5, max_iter=5)
    assert any(kernel == "ppr_walk_l8" for kernel, _, _ in runtime.launches)


def slices(runtime: SimtRuntime) -> None:
    """Passes over slices, by several blocks: of a row of two slices, and of rows of 1 to 64 entries."""
    rng = np.random.default_rng(7)
    spokes, lengths = np.arange(1, 300), np.arange(1, 65)
    src = np.concatenate([spokes, *(rng.permutation(300)[:length] for length in lengths)])
    dst = np.concatenate([0 * spokes, np.repeat(lengths, lengths)])
    graph = hf.Graph.from_edges(src, dst, rng.random(src.size) + 0.01, num_nodes=300, directed=True)
    hf.ppr(graph, [{3: 1.0, 64: 0.01}, {9: 1.0}, {250: 1.0}], damping=[0.0, 0.5, 0.5], max_iter=3)
    assert ("ppr_walk_sliced_l4", 2) in {(kernel, grid) for kernel, grid, _ in runtime.launches}


def quads_of_a_row(runtime: SimtRuntime) -> None:
    """Two early passes that reach rows from few of the seeds, of queries whose lanes several threads have."""
    graph = random_graph(np.random.default_rng(1), 300, 500)
    hf.ppr(graph, [{3 + query: 1.0} for query in range(8)], damping=0.85, max_iter=3)
    assert [kernel for kernel, _, _ in runtime.launches if "ppr_early" in kernel] == ["ppr_early_l8"] * 2


def sliced_proofs(runtime: SimtRuntime) -> None:
    """Passes over slices, each a launch of its own, after the first two, which write few rows."""
    graph = random_graph(np.random.default_rng(7), 300, 300)
    hf.ppr_topk(graph, [{3: 1.0}, {9: 1.0}], 3, damping=0.5, max_iter=4)
    assert {"ppr_early_l4", "ppr_pass_sliced_l4"} <= {kernel for kernel, _, _ in runtime.launches}


def lanes(runtime: SimtRuntime) -> None:
    """Walks of several threads' lanes that end at different passes, with a row of several segments."""
    graph = random_graph(np.random.default_rng(7), 150, 500, hub=3)
    hf.ppr(graph, [{3 + node: 1.0, 64: 0.01} for node in range(9)], damping=np.linspace(0.1, 0.7, 9), tol=1e-3)


def uncoded(runtime: SimtRuntime) -> None:
    """The same of a graph whose weights have no codes."""
    use_sizes(most_codes=0)
    lanes(runtime)


def certificates(runtime: SimtRuntime) -> None:
    """Scores and certificates by two blocks."""
    graph = random_graph(np.random.default_rng(7), 300, 500, hub=3)
    hf.ppr(graph, [{3: 1.0, 64: 0.01}, {9: 1.0}], damping=0.5, max_iter=3)


def masks(runtime: SimtRuntime) -> None:
    """Subgraphs of each query's own, whose nodes several blocks count."""
    rng = np.random.default_rng(8)
    graph = random_graph(rng, 100, 300, hub=3)
    allowed = rng.random((2, 100)) < 0.8
    allowed[:, [3, 9]] = True
    for weight in (1.0, 1e6):  # of seeds, which no answer depends on
        hf.ppr_topk(graph, [{3: weight}, {9: weight}], 5, stop="tol", allow=allowed, damping=0.5, tol=1e-3)


def fusion(runtime: SimtRuntime) -> None:
    """Lists whose entries are put in order by counting; many documents have equal scores."""
    rng = np.random.default_rng(9)
    ids = np.stack([rng.permutation(40)[:16] for _ in range(2)])
    full = hf.Hits(ids, -np.sort(-rng.integers(0, 4, (2, 16)), axis=1))
    hf.fuse([*random_lists(rng, 2, 1, width=16, ids=40), full], method="linear", k=8)


def sorted_fusion(runtime: SimtRuntime) -> None:
    """Lists that fill the room for entries to its last place, which is in global memory."""
    use_sizes(shared_entries=0)
    hf.fuse(random_lists(np.random.default_rng(9), 2, 2, width=16, ids=40), k=8)


def listed(runtime: SimtRuntime) -> None:
    """Rows of lists, whose numbers are copied to shared memory by 16 bytes, in one stage and in two."""
    use_sizes(**ODD)
    for dim in (40, 520):
        x, q = drawn(dim)
        corpus = hf.Corpus.from_array(x, storage="float16")
        hf.dense_topk(q, corpus, 2, allow=[[3, 9, 74], [0, 73]], backend="simt")


Case = Callable[[SimtRuntime], None]
#: The case by its name. Each call is made on the CPU too.
CASES: dict[str, Case] = {
    "certificates": certificates,
    "codes": coded,
    "dense": bound,
    "floats": floats,
    "exact codes": exact_codes,
    "fours": fours,
    "full lists": full_lists,
    "fusion": fusion,
    "halves": halves,
    "listed": listed,
    "lanes": lanes,
    "lanes without codes": uncoded,
    "masks": masks,
    "moved": moved,
    "near codes": near_codes,
    "pairs": pairs,
    "parts": parts,
    "polish": polish,
    "proofs": proofs,
    "quads of a row": quads_of_a_row,
    "ranks": ranks,
    "refusal": refusal,
    "settling": settling,
    "sliced proofs": sliced_proofs,
    "slices": slices,
    "sorted fusion": sorted_fusion,
    "thirty": thirty,
    "walks": walks,
    "wide": wide,
}
#: Those of products by float32 arithmetic, which compute capability 7.5 uses for float32 and bfloat16 rows.
BY_FLOATS = {"floats", "pairs", "thirty", "wide"}
#: Those that launch a product by itself.
PRODUCTS: dict[str, Callable[[Path, str], None]] = {
    "edges": edges,
    "half edges": half_edges,
    "split edges": split_edges,
    "split rows": split_rows,
    "tiles": tiles,
    "units": units,
    "wide edges": wide_edges,
}


#: Prints what is found by a case, the second argument, on the kernels in a folder, the first, in a build, the third.
PROGRAM = """
import sys
from pathlib import Path

from kernels.test_mutants import finding

print(finding(Path(sys.argv[1]), *sys.argv[2:]))
"""


def finding_apart(folder: Path, case: str, build: str) -> str:
    """Return the finding of a process of its own, whose memory a planted bug may break."""
    command = [sys.executable, "-c", PROGRAM, folder, case, build]
    paths = os.pathsep.join(map(str, (ROOT / "tests", ROOT)))
    done = processes.run(command, capture_output=True, text=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": paths})
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.splitlines()[-1] if done.stdout else ""


def finding(folder: Path, case: str, build: str) -> str:
    """Run a case on the kernels in a folder; return what was found, or nothing."""
    try:
        if case in PRODUCTS:
            PRODUCTS[case](folder, build)
        else:
            return found_in_calls(folder, case, build)
    except SimtError as error:
        return error.kind
    except AssertionError:
        return "wrong"
    return ""


def found_in_calls(folder: Path, case: str, build: str) -> str:
    how: dict[str, Any] = {"capability": 75} if case in BY_FLOATS else {}
    with (
        pytest.MonkeyPatch.context() as patch,
        registered("simt", build, OTHER, folder=folder, order="shuffle", seed=1, **how) as runtime,
        same_bits_as_the_cpu(),
    ):
        patch.setenv("HOPFUSE_BACKEND", "simt")
        runtime.driver.clear()
        try:
            CASES[case](runtime)
            runtime.driver.finish()
        except BackendError:
            assert runtime.findings
        return kind_of(runtime)


def kind_of(runtime: SimtRuntime) -> str:
    """Return what was found first in the work that has run, or nothing; of a kernel, what the emulator calls it."""
    kind = next((finding.kind for finding in runtime.findings), "")
    return runtime.driver.report.partition(":")[0] if kind == "kernel" else kind


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_planted_bug_is_found(tmp_path: Path, mutant: Mutant) -> None:
    folder = of_case(mutant.case, tmp_path)
    (folder / mutant.file).write_text(mutant.text(folder), encoding="utf-8")
    assert finding_apart(folder, mutant.case, mutant.build) == mutant.found


@pytest.mark.parametrize(("case", "build"), sorted({(mutant.case, mutant.build) for mutant in MUTANTS}))
def test_nothing_is_found_without_one(tmp_path: Path, case: str, build: str) -> None:
    assert finding_apart(of_case(case, tmp_path), case, build) == ""


def of_case(case: str, folder: Path) -> Path:
    """Copy the kernels that a case runs: ``moved`` has products that lower the best rows by all that is allowed."""
    return move_products(folder, "is_best ? -1.0 : 0.0") if case == "moved" else copy_kernels(folder)
