"""Similarity weights on the SIMT emulator: the CPU's bits in every order of threads, device arrays, and recordings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import filters_of
from compare import assert_bitwise
from devices import on_device
from hopfuse.backends.calls import SimilarityCall
from hopfuse.backends.cuda import similarity
from hopfuse.errors import InputError
from hopfuse.ops._filter import read_filter
from hopfuse_simt.runtime import CUDA, SimtArray, SimtRuntime
from numpy.typing import NDArray
from variants import SANITIZERS, SIMT, missing, registered, simt_runtime

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.skipif(missing("simt") is not None, reason=str(missing("simt"))),
]
SOURCES = [CUDA / "similarity_f32.cu", CUDA / "dense_topk.cu"]
ROWS, DIM = 130, 20


@pytest.fixture(scope="module")
def emulated() -> Iterator[SimtRuntime]:
    with registered("similarity", "plain", sources=SOURCES) as runtime:
        yield runtime


def case(seed: int, batch: int, storage: Any = "float32", rows: int = ROWS) -> tuple[NDArray[np.float32], hf.Corpus]:
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((rows, DIM)).astype(np.float32)
    return rng.standard_normal((batch, DIM)).astype(np.float32), hf.Corpus.from_array(vectors, storage=storage)


def filters(batch: int) -> dict[str, Any]:
    made = filters_of(np.random.default_rng(batch).random((batch, ROWS)) < 0.4)
    made["lists"][0] = made["lists"][0][:0]
    return made


@pytest.mark.parametrize("storage", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("batch", [1, pytest.param(4, marks=pytest.mark.full), 7])
def test_the_cpus_bits(runtime: SimtRuntime, storage: Any, batch: int) -> None:
    queries, corpus = case(batch, batch, storage)
    for name, allow in filters(batch).items():
        expected = hf.similarity_weights(queries, corpus, tau=0.7, allow=allow, backend="cpu")
        found = hf.similarity_weights(queries, corpus, tau=0.7, allow=allow, backend="similarity")
        assert_bitwise(found, expected, name)
    assert {"similarity_sums_f32", "similarity_weights_f32"} <= {name for name, _, _ in runtime.launches}


@pytest.mark.parametrize("part", [pytest.param(1, marks=pytest.mark.full), 7, 50, ROWS, 1000])
def test_parts_change_nothing(runtime: SimtRuntime, part: int) -> None:
    queries, corpus = case(part, 3)
    call = SimilarityCall(runtime.upload(queries), corpus, 1.0, 1e-4, read_filter(None, 3, ROWS, "allow"), threads=1)
    weights, status = similarity.similarity_weights(runtime, call, part)
    assert_bitwise(runtime.download(weights), hf.similarity_weights(queries, corpus, tau=1.0, backend="cpu"))
    assert (runtime.download(status) == 1).all()


@pytest.mark.parametrize("build", SANITIZERS)
def test_the_sanitizers_find_nothing(build: str) -> None:
    rows = 60  # ThreadSanitizer's build takes 8 blocks
    queries, corpus = case(9, 5, rows=rows)
    queries[3] = 0
    masks = np.random.default_rng(9).random((5, rows)) < 0.5
    with registered(build, build, order="shuffle", seed=3, sources=SOURCES) as runtime:
        allow = read_filter(masks, 5, rows, "allow")
        call = SimilarityCall(runtime.upload(queries), corpus, 1.0, 1e-4, allow, threads=1)
        weights, status = similarity.similarity_weights(runtime, call)
        assert runtime.download(status).tolist() == [1, 1, 1, -2, 1]
        kept = [0, 1, 2, 4]
        expected = hf.similarity_weights(queries[kept], corpus, tau=1.0, allow=masks[kept], backend="cpu")
        assert_bitwise(runtime.download(weights)[kept], expected)


# ---- Arrays on the device -------------------------------------------------------------------------------------------


def test_device_arrays_give_device_arrays() -> None:
    queries, corpus = case(10, 6)
    made = hf.similarity_weights(on_device(queries), corpus)
    assert isinstance(made, SimtArray)
    assert_bitwise(made.get(), hf.similarity_weights(queries, corpus, backend="cpu"))


def test_an_invalid_query_is_named_by_its_row() -> None:
    queries, corpus = case(11, 4)
    queries[2, 1] = np.nan
    with pytest.raises(InputError, match="query 2 has a NaN"):
        hf.similarity_weights(on_device(queries), corpus)
    queries[2] = 0
    with pytest.raises(InputError, match="query 2 is the zero vector"):
        hf.similarity_weights(on_device(queries), corpus)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.ones((2, DIM)), "queries are float64"),
        (np.ones((2, 3), np.float32), r"\(B, 20\)"),
        (np.ones(DIM, np.float32), r"float32\(20,\)"),
    ],
)
def test_other_device_arrays_are_refused(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        hf.similarity_weights(on_device(given), case(12, 1)[1])


def test_dense_search_and_weights_share_the_corpus_on_a_device() -> None:
    simt_runtime()
    queries, corpus = case(13, 2)
    hf.dense_topk(queries, corpus, 3, backend=SIMT)
    kept = [value for value in corpus.derived.values() if hasattr(value, "runtime")]
    hf.similarity_weights(queries, corpus, backend=SIMT)
    assert [value for value in corpus.derived.values() if hasattr(value, "runtime")] == kept


def test_a_captured_core_has_the_plain_calls_answers() -> None:
    simt_runtime()
    _, corpus = case(14, 1)
    allow = np.arange(0, ROWS, 3)

    def core(vectors: Any) -> dict[str, Any]:
        return {
            "all": hf.similarity_weights(vectors, corpus),
            "some": hf.similarity_weights(vectors, corpus, tau=0.5, allow=allow),
        }

    captured = hf.capture(core, [((DIM,), "float32")], backend=SIMT)
    for batch in (1, 3, 3, 8):
        queries, _ = case(batch, batch)
        expected, made = core(queries), captured(queries)
        for name in expected:
            assert_bitwise(made[name], expected[name], name)
    queries[1] = 0
    with pytest.raises(InputError, match="query 1 is the zero vector"):
        captured(queries)
