"""What searches and their recordings take on a device beside the corpus, by the dry runtime: the ops, only counted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.backends.calls import DenseCall, RowFilter
from hopfuse.backends.cuda import DeviceOps, Recordings
from hopfuse.backends.cuda.estimate import DryRuntime
from hopfuse.ops.capture import BATCH_SIZES

MIB = 2**20
ROWS, K = 10**6, 100


def described(storage: str, dim: int) -> Any:
    """A corpus of a million rows, of which nothing but its sizes is there."""
    bits = np.uint16 if storage == "bfloat16" else storage
    vectors = np.broadcast_to(np.zeros(1, bits), (ROWS, dim))
    return SimpleNamespace(
        vectors=vectors, num_vectors=ROWS, dim=dim, precision=storage, storage=storage, metric="ip", derived={},
        checked=lambda: None,
    )  # fmt: skip


def search(device: DeviceOps, corpus: Any, queries: Any) -> Any:
    call = DenseCall(queries, corpus, K, RowFilter(), threads=1, on_device=True)
    return device.dense_topk(call)["scores"]


def taken(storage: str, dim: int, batch: int) -> tuple[int, int]:
    """Bytes of the corpus, and the most of a search beside it."""
    runtime = DryRuntime()
    device, corpus = DeviceOps(runtime), described(storage, dim)
    queries = runtime.empty((batch, dim), np.float32)
    with device.capture_log():
        search(device, corpus, queries)
    return runtime.memory.used, runtime.memory.most - runtime.memory.used


@pytest.mark.parametrize("dim", [24, 384, 1024, 4096])
@pytest.mark.parametrize("storage", ["float32", "float16", "bfloat16"])
def test_a_search_takes_at_most_256_mib_beside_the_corpus(storage: str, dim: int) -> None:
    assert max(taken(storage, dim, batch)[1] for batch in (*BATCH_SIZES, 512, 5000)) <= 256 * MIB


@pytest.mark.parametrize("dim", [384, 1024])
def test_the_advice_of_an_out_of_memory_error_helps(dim: int) -> None:
    """Fewer queries at a time never take more, and a large corpus of 16 bits takes less with all its workspace."""
    for storage in ("float32", "float16"):
        total = [sum(taken(storage, dim, batch)) for batch in (1, 8, 64, 256)]
        assert total == sorted(total)
    for batch in (1, 32, 256):
        assert sum(taken("float16", dim, batch)) < 0.6 * sum(taken("float32", dim, batch))


def test_recordings_of_all_sizes_fit_a_card_of_8_gib_beside_a_corpus_of_2() -> None:
    runtime = DryRuntime()
    device, corpus = DeviceOps(runtime), described("float16", 1024)
    recorded = Recordings(device, lambda queries: search(device, corpus, queries), [((1024,), np.float32)], BATCH_SIZES)
    recorded.recorded(1)
    one = runtime.memory.used
    for size in BATCH_SIZES:
        recorded.recorded(size)
    assert 1900 * MIB < one < runtime.memory.used < one + 200 * MIB  # they share what they may
    assert runtime.memory.most < 3 * 1024 * MIB


def test_the_estimate_counts_the_products_own_workspace() -> None:
    corpus = hf.Corpus.from_array(np.ones((1000, 8), np.float32))
    assert hf.estimate_device_memory(corpus=corpus, batch=2).workspace >= 32 * MIB
