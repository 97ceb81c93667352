"""What searches and their recordings take on a device beside the corpus, on one that only counts memory."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hopfuse import _native
from hopfuse.backends.calls.dense import DenseCall, RowFilter
from hopfuse.backends.cuda import DeviceOps, Recordings
from hopfuse.backends.cuda.runtime import Runtime
from hopfuse.ops.capture import BATCH_SIZES

MIB = 2**20
ROWS, K = 10**6, 100


@pytest.fixture(scope="module")
def holes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that is larger than every corpus here, and takes no room on the disk."""
    path: Path = tmp_path_factory.mktemp("holes") / "zeros"
    with open(path, "wb") as file:
        file.truncate(ROWS * 4096 * 4)
    return path


@pytest.fixture
def device() -> DeviceOps:
    return DeviceOps(Runtime(_native.Device.counting(), "dry"))


def described(holes: Path, storage: str, dim: int) -> Any:
    """A corpus of a million rows, of which nothing but its sizes is there."""
    bits = np.uint16 if storage == "bfloat16" else storage
    vectors = np.asarray(np.memmap(holes, bits, "r", shape=(ROWS, dim)))
    return SimpleNamespace(
        vectors=vectors, num_vectors=ROWS, dim=dim, precision=storage, storage=storage, metric="ip", derived={},
        checked=lambda: None,
    )  # fmt: skip


def search(device: DeviceOps, corpus: Any, queries: Any) -> Any:
    call = DenseCall(queries, corpus, K, RowFilter(), threads=1, on_device=True)
    return device.run(call)["scores"]


def taken(device: DeviceOps, holes: Path, storage: str, dim: int, batch: int) -> tuple[int, int]:
    """Bytes of the corpus, and the most of a search beside it."""
    corpus, counted = described(holes, storage, dim), device.runtime.device
    queries = counted.empty((batch, dim), np.float32)
    before = counted.used_bytes()
    counted.reset_peak()
    search(device, corpus, queries)
    return counted.used_bytes() - before, counted.peak_bytes() - counted.used_bytes()


@pytest.mark.parametrize("dim", [24, 384, 1024, 4096])
@pytest.mark.parametrize("storage", ["float32", "float16", "bfloat16"])
def test_a_search_takes_at_most_256_mib_beside_the_corpus(
    device: DeviceOps, holes: Path, storage: str, dim: int
) -> None:
    assert max(taken(device, holes, storage, dim, batch)[1] for batch in (*BATCH_SIZES, 512, 5000)) <= 256 * MIB


@pytest.mark.parametrize("dim", [384, 1024])
def test_the_advice_of_an_out_of_memory_error_helps(device: DeviceOps, holes: Path, dim: int) -> None:
    """Fewer queries at a time never take more, and a large corpus of 16 bits takes less with all its workspace.

    Codes add a byte to each number of both: 3 of 5 bytes are left, and what a row takes besides.
    """
    for storage in ("float32", "float16"):
        total = [sum(taken(device, holes, storage, dim, batch)) for batch in (1, 8, 64, 256)]
        assert total == sorted(total)
    for batch in (1, 32, 256):
        wide, narrow = (sum(taken(device, holes, storage, dim, batch)) for storage in ("float32", "float16"))
        assert narrow < 0.61 * wide


def test_recordings_of_all_sizes_fit_a_card_of_8_gib_beside_a_corpus_of_2(device: DeviceOps, holes: Path) -> None:
    corpus, counted = described(holes, "float16", 1024), device.runtime.device
    recorded = Recordings(device, lambda queries: search(device, corpus, queries), [((1024,), np.float32)], BATCH_SIZES)
    recorded.recorded(1)
    one = counted.used_bytes()
    for size in BATCH_SIZES:
        recorded.recorded(size)
    assert 1900 * MIB < one < counted.used_bytes() < one + 200 * MIB  # they share what they may
    assert counted.peak_bytes() < 3 * 1024 * MIB
