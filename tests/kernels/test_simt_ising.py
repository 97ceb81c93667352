"""ising_f32 of kernels/cuda on the SIMT emulator: the CPU's bits in every order of threads, and by few blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import random_graph, random_lists
from compare import assert_hits_equal
from devices import on_device, on_host
from hopfuse.backends.cuda import ising
from hopfuse.errors import InputError
from hopfuse_simt.runtime import CUDA, SimtRuntime
from variants import SANITIZERS, missing, registered, simt_runtime

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.skipif(missing("simt") is not None, reason=str(missing("simt"))),
]
NODES = 90


@pytest.fixture(scope="module")
def emulated() -> Iterator[SimtRuntime]:
    with registered("ising", "plain", sources=[CUDA / "ising_f32.cu"]) as runtime:
        yield runtime


def case(seed: int, batch: int, width: int, **options: Any) -> tuple[hf.Hits, hf.Graph]:
    rng = np.random.default_rng(seed)
    (hits,) = random_lists(rng, batch, 1, width=width, ids=NODES)
    return hits, random_graph(rng, NODES, 300, hub=4, **options)


def check(hits: hf.Hits, graph: hf.Graph, **options: Any) -> None:
    found = hf.ising_rerank(hits, graph, backend="ising", **options)
    assert_hits_equal(found, hf.ising_rerank(hits, graph, backend="cpu", **options))


@pytest.mark.parametrize("width", [1, 3, 33, 80])
@pytest.mark.parametrize("options", [{"weights": "none"}, {"weights": "spread", "types": 3}])
def test_the_cpus_bits(runtime: SimtRuntime, width: int, options: dict[str, Any]) -> None:
    for k in (None, 2, 100):
        check(*case(width, 4, width, **options), k=k, steps=4)
    assert {name for name, _, _ in runtime.launches} == {"ising_f32"}


def test_blocks_go_on_with_other_queries(runtime: SimtRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ising, "WORKSPACE_BYTES", 0)
    check(*case(5, 5, 40), steps=3)
    assert [grid for _, grid, _ in runtime.launches] == [1]


def test_nothing_to_rerank_launches_nothing(runtime: SimtRuntime) -> None:
    graph = case(6, 1, 3)[1]
    for shape in ((0, 4), (3, 0)):
        check(hf.Hits(np.zeros(shape, int), np.zeros(shape)), graph, k=2)
    assert not runtime.launches


@pytest.mark.parametrize("build", SANITIZERS)
def test_the_sanitizers_find_nothing(build: str) -> None:
    hits, graph = case(7, 2, 45, weights="random", types=2)
    with (
        pytest.MonkeyPatch.context() as patch,
        registered(build, build, order="shuffle", seed=3, sources=[CUDA / "ising_f32.cu"]),
    ):
        patch.setattr(ising, "WORKSPACE_BYTES", 0)
        found = hf.ising_rerank(hits, graph, steps=3, k=50, backend=build)
    assert_hits_equal(found, hf.ising_rerank(hits, graph, steps=3, k=50, backend="cpu"))


# ---- Arrays on the device, and recordings ---------------------------------------------------------------------------


def test_device_arrays_give_device_arrays() -> None:
    hits, graph = case(8, 4, 30)
    made = hf.ising_rerank(on_device(hits), graph, k=7)
    assert_hits_equal(on_host(made), hf.ising_rerank(hits, graph, k=7, backend="cpu"))


def test_a_document_outside_the_graph_is_named_by_its_row() -> None:
    hits, graph = case(9, 4, 30)
    ids = hits.ids.copy()
    ids[2, 0] = NODES
    outside = hf.Hits.unchecked(ids, hits.scores, np.maximum(hits.counts, 1))
    with pytest.raises(InputError, match="row 2 has a document that is not a node of the graph"):
        hf.ising_rerank(on_device(outside), graph)
    with pytest.raises(InputError, match=f"row 2 has document {NODES}, which is outside the graph"):
        hf.ising_rerank(outside, graph, backend="cpu")


def test_a_captured_core_has_the_plain_calls_answers() -> None:
    simt_runtime()
    rng = np.random.default_rng(10)
    graph = random_graph(rng, NODES, 300, hub=4)
    corpus = hf.Corpus.from_array(rng.standard_normal((NODES - 10, 12)).astype(np.float32))

    def core(vectors: Any) -> hf.Hits:
        return hf.ising_rerank(hf.dense_topk(vectors, corpus, 20), graph, k=5)

    captured = hf.capture(core, [((12,), "float32")], backend="simt")
    for batch in (1, 3, 3):
        vectors = rng.standard_normal((batch, 12)).astype(np.float32)
        assert_hits_equal(captured(vectors), core(vectors))
