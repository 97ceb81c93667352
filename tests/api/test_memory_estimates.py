"""The estimate of device memory beside the peak that the emulated driver counts, for each kind of search."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import random_graph
from emulated_device import OTHER
from hopfuse import _native, backends
from hopfuse.backends.cuda import DeviceOps
from hopfuse.backends.cuda.runtime import Runtime
from hopfuse.errors import InputError
from refusals import refused
from tiers import FULL
from variants import missing, registered

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.skipif(missing("simt") is not None, reason=str(missing("simt"))),
]
ORDINAL = 4
NODES, ROWS = (60_000, 200_000) if FULL else (4_000, 20_000)
TOLERANCE = 0.05
SEEDS, MIB = 4, 1 << 20


@pytest.fixture(scope="module")
def runtime() -> Iterator[Any]:
    """A device whose L2 cache makes blocks of 16 lanes the fastest."""
    l2 = {"l2_bytes": 2 * 16 * 4 * NODES, "clock": 1000, "memory_clock": 10}
    with registered("small", ordinal=ORDINAL, memory=1 << 32, multiprocessors=16, **l2) as made:
        yield made
        made.driver.finish()
        assert not made.findings


def counted_of(runtime: Any, call: Callable[[], Any]) -> tuple[int, int]:
    """How many bytes more than before are in use at the most, and after the call, by the driver's log."""
    gc.collect()
    runtime.driver.finish()
    runtime.driver.clear()
    result = call()
    del result
    gc.collect()
    used = most = 0
    for event in runtime.events:
        if event.device == ORDINAL and event.kind in ("allocate", "free"):
            used += event.what if event.kind == "allocate" else -event.what
            most = max(most, used)
    return most, used


def assert_close(estimated: int, counted: int) -> None:
    assert abs(estimated - counted) <= TOLERANCE * counted, f"estimated {estimated:,}, counted {counted:,}"


@pytest.fixture(scope="module")
def graph(runtime: Any) -> hf.Graph:
    made = random_graph(np.random.default_rng(1), NODES, 2 * NODES, hub=3)
    hf.ppr(made, [{0: 1.0}], backend="small", damping=0.1, tol=0.1)  # it stays
    return made


@pytest.mark.parametrize("batch", [1, *(pytest.param(batch, marks=pytest.mark.full) for batch in (4, 16, 64))])
@pytest.mark.parametrize("kind", ["ppr", "tol", "proven"])
def test_walks(runtime: Any, graph: hf.Graph, kind: str, batch: int) -> None:
    rng = np.random.default_rng(3)
    seeds = hf.Seeds(rng.integers(0, NODES, (batch, SEEDS)), rng.random((batch, SEEDS)))
    walk: dict[str, Any] = {"backend": "small", "damping": 0.05, "tol": 0.1}
    k = 300 if kind == "proven" else 100  # some lists of 300 are unproven, and refined, the first too
    calls: dict[str, Callable[[], Any]] = {
        "ppr": lambda: hf.ppr(graph, seeds, **walk),
        "tol": lambda: hf.ppr_topk(graph, seeds, k, stop="tol", **walk),
        "proven": lambda: hf.ppr_topk(graph, seeds, k, **walk),
    }
    counted, _ = counted_of(runtime, calls[kind])
    lanes = min(16, max(4, batch))
    kernels = {kernel for kernel, _, _ in runtime.launches}
    assert any(kernel.startswith("ppr_refine_end") for kernel in kernels) == (kind == "proven")
    assert {kernel.rpartition("_l")[2] for kernel in kernels if "_l" in kernel and kernel[-1].isdigit()} == {str(lanes)}
    stop = "tol" if kind == "tol" else "proven"
    estimate = hf.estimate_device_memory(graph, batch=batch, k=k, seeds=SEEDS, stop=stop, device=ORDINAL)
    assert_close(estimate.ppr if kind == "ppr" else estimate.ppr_topk, counted)


@pytest.mark.parametrize("batch", [1, *(pytest.param(batch, marks=pytest.mark.full) for batch in (32, 64))])
@pytest.mark.parametrize("storage", ["float32", pytest.param("float16", marks=pytest.mark.full)])
def test_dense_lists_without_codes(runtime: Any, storage: str, batch: int) -> None:
    vectors = np.random.default_rng(3).standard_normal((ROWS, 8)).astype(np.float32)
    corpus = hf.Corpus.from_array(vectors, storage=storage)  # type: ignore[arg-type]
    estimate = hf.estimate_device_memory(corpus=corpus, batch=batch, k=20, device=ORDINAL)
    assert counted_of(runtime, lambda: hf.dense_topk(vectors[:0], corpus, 20, backend="small"))[1] == estimate.corpus
    counted, _ = counted_of(runtime, lambda: hf.dense_topk(vectors[:batch], corpus, 20, backend="small"))
    assert not {kernel for kernel, _, _ in runtime.launches if kernel.startswith("dense_scan")}
    assert_close(estimate.dense_topk, counted)


@pytest.mark.full
@pytest.mark.parametrize("batch", [1, 64])
def test_dense_lists_with_codes(runtime: Any, batch: int) -> None:
    vectors = np.random.default_rng(4).standard_normal((1 << 18, 64)).astype(np.float32)
    corpus = hf.Corpus.from_array(vectors)
    estimate = hf.estimate_device_memory(corpus=corpus, batch=batch, k=20, device=ORDINAL)
    assert counted_of(runtime, lambda: hf.dense_topk(vectors[:0], corpus, 20, backend="small"))[1] == estimate.corpus
    counted, _ = counted_of(runtime, lambda: hf.dense_topk(vectors[:batch], corpus, 20, backend="small"))
    assert {kernel for kernel, _, _ in runtime.launches if kernel.startswith("dense_scan")}
    assert_close(estimate.dense_topk, counted)


@pytest.mark.parametrize("fits", [True, False])
def test_codes_where_there_is_room_for_twice_their_size(fits: bool) -> None:
    """On a device that holds nothing else."""
    vectors = np.zeros((1 << 18, 64), np.float32)
    corpus = hf.Corpus.from_array(vectors)
    alone, codes = vectors.nbytes + 4 * len(vectors), (64 + 3 * 4) * len(vectors)
    with registered("empty", ordinal=OTHER) as runtime:
        before, runtime.driver.noop = runtime.simt.used, True
        try:
            runtime.simt.memory = before + alone + 2 * codes + (MIB if fits else -MIB)
            estimate = hf.estimate_device_memory(corpus=corpus, device=OTHER)
            hf.dense_topk(vectors[:0], corpus, 5, backend="empty")
            runtime.release()
            counted = runtime.simt.used - before
        finally:
            runtime.driver.noop = False
    assert estimate.corpus == counted == alone + (codes if fits else 0)


def test_a_recorded_recipe(runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A core that is recorded on the counting device takes as much as on the device that it counts for."""
    rng = np.random.default_rng(5)
    words = [f"word{i}" for i in range(400)]
    passages = [{"text": " ".join(rng.choice(words, 4))} for _ in range(2_000)]
    vectors = rng.standard_normal((2_000, 256)).astype(np.float32)
    index = hf.Index.build(passages=passages, vectors=vectors, reader="words")
    dry = DeviceOps(Runtime(_native.Device.counting(ORDINAL), "dry"))
    monkeypatch.setitem(backends._backends, "dry", dry)

    def record(backend: str) -> Any:
        monkeypatch.setenv("HOPFUSE_BACKEND", backend)
        recipe = hf.recipes.PhaseGraph(index)
        recipe.warmup(batch_sizes=[16])
        return recipe

    made = record("dry")
    counted, _ = counted_of(runtime, lambda: record("small"))
    assert_close(dry.runtime.device.peak_bytes(), counted)
    assert made.warmup is not None


def test_a_device_that_there_is_not_is_refused(graph: hf.Graph) -> None:
    for device in (-1, 99):
        with refused(InputError, "range", "device", given=device):
            hf.estimate_device_memory(graph, device=device)
