"""Memory of a device: counted before, given back after, and a clear error where there is not enough."""

from __future__ import annotations

import gc
import multiprocessing
import threading
from collections.abc import Iterator
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import random_graph
from compare import assert_bitwise
from hopfuse.errors import BackendError, InputError
from refusals import refused
from variants import missing, registered

pytestmark = pytest.mark.usefixtures("garbage_of_these_tests")

emulated = [
    pytest.mark.emulator,
    pytest.mark.skipif(missing("simt") is not None, reason=str(missing("simt"))),
]
MEMORY = 1 << 30


@pytest.fixture(scope="module")
def one() -> Iterator[Any]:
    with registered("small", ordinal=4) as runtime:
        yield runtime


@pytest.fixture
def runtime(one: Any) -> Iterator[Any]:
    one.simt.memory = MEMORY
    yield one
    one.simt.memory = MEMORY
    one.driver.finish()
    assert not one.findings


@pytest.fixture
def graph() -> hf.Graph:
    return random_graph(np.random.default_rng(1), 900, 4000, hub=3)


@pytest.fixture
def corpus() -> hf.Corpus:
    return hf.Corpus.from_array(np.random.default_rng(2).standard_normal((300, 20)).astype(np.float32))


def used(runtime: Any) -> int:
    gc.collect()
    return int(runtime.device.used_bytes())


class TestOnADevice:
    pytestmark = emulated

    def test_lasting_memory_is_counted_before_a_call(self, runtime: Any, graph: hf.Graph, corpus: hf.Corpus) -> None:
        expected, before = hf.estimate_device_memory(graph, corpus, batch=4), used(runtime)
        hf.dense_topk(corpus.vectors[:4], corpus, 10, backend="small")
        assert used(runtime) - before == expected.corpus
        hf.ppr_topk(graph, hf.Seeds(np.arange(32).reshape(4, 8)), 10, backend="small")
        kept = used(runtime) - before - expected.corpus - expected.graph
        assert 0 <= kept < 0.02 * expected.graph  # counters of its passes

    def test_a_calls_memory_is_counted_before_it(self, runtime: Any, graph: hf.Graph) -> None:
        expected = hf.estimate_device_memory(graph, batch=64, k=10)
        walk = hf.capture(
            lambda nodes, weights: hf.ppr_topk(graph, hf.Seeds(nodes, weights), 10, stop="tol"),
            [((8,), "int64"), ((8,), "float64")],
            backend="small",
        )
        walk.warmup([64])
        (recordings,) = walk._recordings.values()
        assert 0.8 * recordings._memory.nbytes <= expected.workspace

    @pytest.mark.full
    def test_a_call_that_refines_takes_what_is_counted_before(self, runtime: Any, graph: hf.Graph) -> None:
        expected = hf.estimate_device_memory(graph, batch=64, k=300)
        seeds = hf.Seeds(np.arange(64 * 8).reshape(64, 8))
        hf.ppr_topk(graph, seeds, 300, backend="small")  # the graph stays
        stays = used(runtime)
        runtime.driver.clear()
        runtime.device.reset_peak()
        found = hf.ppr_topk(graph, seeds, 300, backend="small")
        most = runtime.device.peak_bytes() - stays
        assert any(kernel.startswith("ppr_refine_end") for kernel, _, _ in runtime.launches)
        assert found.proven.any()
        assert 0.9 * most <= expected.workspace <= 1.3 * most

    @pytest.mark.parametrize("what", ["graph", "corpus"])
    def test_too_large_to_stay(self, runtime: Any, graph: hf.Graph, corpus: hf.Corpus, what: str) -> None:
        estimate = hf.estimate_device_memory(graph, corpus)
        gc.collect()
        runtime.release()
        runtime.simt.memory = runtime.simt.used + getattr(estimate, what) // 2

        def call(backend: str) -> hf.Hits:
            if what == "graph":
                return hf.ppr_topk(graph, [{0: 1.0}], 5, backend=backend)
            return hf.dense_topk(corpus.vectors[:1], corpus, 5, backend=backend)

        with refused(BackendError, "memory"):
            call("small")
        runtime.simt.memory = MEMORY
        assert_bitwise(call("small").scores, call("cpu").scores, "scores")

    def test_too_large_to_search(self, runtime: Any, graph: hf.Graph) -> None:
        rows = [{int(v): 1.0} for v in range(8)]
        expected = hf.ppr_topk(graph, rows, 5, backend="small")
        gc.collect()
        runtime.release()
        runtime.simt.memory = runtime.simt.used + 900 * 8 * 4 - 1  # less than one buffer of the walk
        with refused(BackendError, "memory") as caught:
            hf.ppr_topk(graph, rows, 5, backend="small")
        assert caught.value.values["free"] < 900 * 8 * 4 <= caught.value.values["asked"]
        runtime.simt.memory = MEMORY
        assert_bitwise(hf.ppr_topk(graph, rows, 5, backend="small").scores, expected.scores, "scores")

    def test_released_memory_is_free_and_comes_back(self, runtime: Any, corpus: hf.Corpus) -> None:
        before = used(runtime)
        first = hf.dense_topk(corpus.vectors[:2], corpus, 5, backend="small")
        assert used(runtime) > before
        hf.free_device_memory(corpus, backend="small")
        assert used(runtime) == before
        assert_bitwise(hf.dense_topk(corpus.vectors[:2], corpus, 5, backend="small").scores, first.scores, "scores")

    def test_a_recording_keeps_what_it_reads(self, runtime: Any, corpus: hf.Corpus) -> None:
        search = hf.capture(lambda x: hf.dense_topk(x, corpus, 5), [((20,), "float32")], backend="small")
        first = search(corpus.vectors[:2])
        hf.free_device_memory(corpus, backend="small")
        gc.collect()
        assert_bitwise(search(corpus.vectors[:2]).scores, first.scores, "scores")

    def test_threads_that_come_first_together_share_one_copy(
        self, runtime: Any, graph: hf.Graph, corpus: hf.Corpus
    ) -> None:
        expected, before = hf.estimate_device_memory(graph, corpus, batch=1, k=5), used(runtime)
        together, found = threading.Barrier(8), list[Any]()

        def call() -> None:
            together.wait()
            hits = hf.dense_topk(corpus.vectors[:1], corpus, 5, backend="small")
            found.append((hits.ids.tolist(), hf.ppr_topk(graph, [{0: 1.0}], 5, backend="small").ids.tolist()))

        threads = [threading.Thread(target=call) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [found[0]] * 8
        held = used(runtime) - before - expected.graph - expected.corpus
        assert 0 <= held < 0.1 * expected.graph  # counters of passes, for calls at the same time

    def test_it_ends_with_its_graph(self, runtime: Any) -> None:
        graph, before = random_graph(np.random.default_rng(3), 50, 100), used(runtime)
        hf.ppr(graph, [{0: 1.0}], backend="small")
        assert used(runtime) > before
        del graph
        assert used(runtime) == before


def test_the_estimate_grows_with_what_is_asked(graph: hf.Graph, corpus: hf.Corpus) -> None:
    small, large = (hf.estimate_device_memory(graph, corpus, batch=batch, k=10) for batch in (1, 32))
    assert (small.graph, small.corpus) == (large.graph, large.corpus)
    assert 0 < small.workspace < large.workspace
    assert large.total == large.graph + large.corpus + large.workspace
    assert hf.estimate_device_memory(graph, k=10).corpus == 0
    assert not [key for key in (*graph.derived, *corpus.derived) if key.startswith("dry")]


@pytest.mark.parametrize(
    ("arguments", "options", "refusal"),
    [
        ((), {}, ("missing", "graph")),
        ((3,), {}, ("type", "graph")),
        ((None, 3), {}, ("type", "corpus")),
        ((), {"graph": hf.Graph.from_edges([0], [1]), "batch": 0}, ("range", "batch")),
        ((), {"graph": hf.Graph.from_edges([0], [1]), "k": 1.5}, ("range", "k")),
    ],
)
def test_bad_input_is_refused(arguments: Any, options: Any, refusal: tuple[str, str | None]) -> None:
    with refused(InputError, *refusal):
        hf.estimate_device_memory(*arguments, **options)


def test_release_takes_graphs_and_corpora_alone() -> None:
    with refused(InputError, "type", "held", given="int"):
        hf.free_device_memory(3)  # type: ignore[arg-type]


@pytest.mark.emulator
@pytest.mark.skipif(missing("simt") is not None, reason=str(missing("simt")))
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process")  # Python 3.12 warns of forks beside threads
def test_a_forked_child_is_told_and_drops_arrays_in_peace(one: Any, corpus: hf.Corpus) -> None:
    kept = [one.device.upload(corpus.vectors)]
    hf.dense_topk(corpus.vectors[:1], corpus, 5, backend="small")
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def child() -> None:
        told = []
        for use in (kept[0].to_numpy, lambda: hf.dense_topk(corpus.vectors[:1], corpus, 5, backend="small")):
            try:
                use()
            except BackendError as error:
                told.append(error.code)
        kept.clear()
        corpus.derived.clear()
        gc.collect()
        sender.send(told)

    process = context.Process(target=child)
    process.start()
    sender.close()
    assert receiver.recv() == ["unavailable", "unavailable"]
    process.join()
    assert process.exitcode == 0
    assert_bitwise(kept[0].to_numpy(), corpus.vectors, "vectors")
