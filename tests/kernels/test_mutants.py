"""The tests of the kernels' tests: every bug that is planted in a kernel (mutants.py) is found where the list says."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import random_graph, random_lists
from hopfuse import backends
from hopfuse.backends.cuda import DeviceOps, dense, ppr_topk
from hopfuse.backends.cuda.arguments import QUERIES
from hopfuse.backends.cuda.dense import Bound, check_queries
from hopfuse.backends.cuda.selection import Sizes
from hopfuse_simt.errors import SimtError
from hopfuse_simt.runtime import SimtRuntime
from kernels.mutants import CUDA, MUTANTS, Mutant
from numpy.typing import NDArray
from variants import missing, same_bits_as_the_cpu

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.full,
    pytest.mark.skipif(missing("simt") is not None, reason=str(missing("simt"))),
]

DENSE = ["topk.cu", "dense_topk.cu"]
PPR = sorted(path.name for path in CUDA.glob("ppr_*.cu"))
#: Tiles of an odd number of rows, each shared by two blocks; products of 16-bit rows for few queries too.
ODD = Sizes(tile_scores=1, tile_rows=31, split_rows=12, split_blocks=4, scored_at_once=0)


class Moved(SimtRuntime):
    """Matrix products that lower the best rows by all that their bound allows."""

    def matmul(self, a: NDArray[np.float32], b: NDArray[np.float32], out: NDArray[np.float32]) -> None:
        wide, rows = a.astype(np.float64), b.astype(np.float64)
        exact = wide @ rows.T
        norms = np.linalg.norm(wide, axis=1)[:, None] * np.linalg.norm(rows, axis=1)
        best = exact >= np.sort(exact, axis=1)[:, -5:-4]
        out[...] = exact - np.where(best, (a.shape[1] - 1) * 2.0**-24, 0.0) * norms


def search(x: Any, q: Any, k: int, sizes: Sizes, storage: Any = "float32", metric: Any = "ip") -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense, "Sizes", lambda: sizes)
        hf.dense_topk(q, hf.Corpus.from_array(x, metric=metric, storage=storage), k)


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
        search(x, q * np.float32(scale), 1, Sizes(scored_at_once=0), "float16")


def units(runtime: SimtRuntime) -> None:
    """Products of whole numbers, which are exact, of every row and query of a block."""
    rng = np.random.default_rng(3)
    for dim in (33, 64):
        x, q = (rng.integers(-9, 10, shape).astype(np.float32) for shape in ((130, dim), (33, dim)))
        norms = np.zeros(33, np.float32)
        check_queries(runtime, q, False, norms, np.zeros(33, np.int32))
        given = QUERIES(data=q, norm=norms, batch=33, dim=dim, cosine=False)
        out = np.full((33, 130), np.nan, np.float32)
        floor = Bound.of(dim, "f16").norm_floor
        rows = x.astype(np.float16).view(np.uint16)
        runtime.launch("dense_product_f16", 4, 128, [rows, np.int64(130), given, floor, out])
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
    whole = Sizes(tile_scores=1, tile_rows=300)
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


def tries(runtime: SimtRuntime) -> None:
    """Lists whose hits already show that they are not proven, each by one block."""
    rng = np.random.default_rng(7)
    graph = random_graph(rng, 100, 200, hub=3)
    hf.ppr_topk(graph, [{3: 1.0}, {9: 1.0, 64: 0.1}], 40, tol=1e-3, damping=0.5)


def walks(runtime: SimtRuntime) -> None:
    """Passes after the first two, by two blocks of one launch, with rows of several segments that both blocks sum."""
    graph = random_graph(np.random.default_rng(7), 150, 300, hub=3)
    hf.ppr(graph, [{3: 1.0, 64: 0.01}, {9: 1.0}], damping=0.5, max_iter=5)
    assert any(kernel.startswith("ppr_walk") for kernel, _, _ in runtime.launches)


def masks(runtime: SimtRuntime) -> None:
    """Subgraphs of each query's own, whose nodes several blocks count."""
    rng = np.random.default_rng(8)
    graph = random_graph(rng, 100, 300, hub=3)
    allowed = rng.random((2, 100)) < 0.8
    allowed[:, [3, 9]] = True
    for weight in (1.0, 1e6):  # of seeds, which no answer depends on
        hf.ppr_topk(graph, [{3: weight}, {9: weight}], 5, stop="tol", allow=allowed, damping=0.5, tol=1e-3)


def fusion(runtime: SimtRuntime) -> None:
    """Lists that fill the room for entries to its last place."""
    hf.fuse(random_lists(np.random.default_rng(9), 2, 2, width=16, ids=40), k=8)


#: The case by its name, and the files that it runs. Each call is made on the CPU too.
CASES: dict[str, tuple[Callable[[SimtRuntime], None], list[str]]] = {
    "dense": (bound, DENSE),
    "halves": (halves, DENSE),
    "fours": (fours, DENSE),
    "wide": (wide, DENSE),
    "parts": (parts, DENSE),
    "units": (units, DENSE),
    "moved": (moved, DENSE),
    "proofs": (proofs, PPR),
    "tries": (tries, PPR),
    "walks": (walks, PPR),
    "masks": (masks, PPR),
    "fusion": (fusion, ["fuse_f32.cu"]),
}


def finding(folder: Path, case: str, build: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a case on the kernels in a folder; return what was found, or nothing."""
    monkeypatch.setattr(ppr_topk, "SPLIT_CANDIDATES", 40)
    monkeypatch.setenv("HOPFUSE_BACKEND", "mutant")
    run, names = CASES[case]
    kind = Moved if case == "moved" else SimtRuntime
    capability = 75 if case == "wide" else 90
    runtime = kind(build, "shuffle", 1, [folder / name for name in names], capability)
    backends.register("mutant", DeviceOps(runtime))
    try:
        with same_bits_as_the_cpu():
            run(runtime)
    except SimtError as error:
        return error.kind
    except AssertionError:
        return "wrong"
    finally:
        backends._backends.pop("mutant")
        runtime.module.close()
    return ""


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_planted_bug_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutant: Mutant) -> None:
    for path in CUDA.iterdir():
        shutil.copy(path, tmp_path)
    (tmp_path / mutant.file).write_text(mutant.text(), encoding="utf-8")
    assert finding(tmp_path, mutant.case, mutant.build, monkeypatch) == mutant.found


@pytest.mark.parametrize(("case", "build"), sorted({(mutant.case, mutant.build) for mutant in MUTANTS}))
def test_nothing_is_found_without_one(monkeypatch: pytest.MonkeyPatch, case: str, build: str) -> None:
    assert finding(CUDA, case, build, monkeypatch) == ""
