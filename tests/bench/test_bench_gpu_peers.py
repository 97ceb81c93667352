"""Adapters of peers on a GPU, with stand-ins for their libraries on the host: their answers pass the gate.

The stand-ins have the signatures of the real functions, and CuPy's arrays do not turn into NumPy's unasked. What the
real ones compute, and how fast, a GPU must say.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench import worker
from bench.cases import CASES
from bench.peers import PEERS
from bench.peers.torch_topk import TorchTopk
from bench.settings import Settings

QUICK = Settings(quick=True, repeats=1, threads=1)


def module(name: str, **contents: Any) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(contents)
    return made


class OnDevice(np.lib.mixins.NDArrayOperatorsMixin):
    """An array as CuPy's are: NumPy's functions and operators take it, and none of them makes a NumPy array of it."""

    def __init__(self, host: Any) -> None:
        self.host = host

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return on_device(getattr(ufunc, method)(*on_host(inputs), **on_host(options)))

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        return on_device(function(*on_host(inputs), **on_host(options)))

    def __getitem__(self, at: Any) -> Any:
        return on_device(self.host[on_host(at)])

    def __setitem__(self, at: Any, value: Any) -> None:
        self.host[on_host(at)] = on_host(value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the host's array interface among them
            raise AttributeError(name)
        found = getattr(self.host, name)
        return calls(found) if callable(found) else on_device(found)

    def __bool__(self) -> bool:
        return bool(self.host)


def on_device(value: Any) -> Any:
    return OnDevice(value) if isinstance(value, np.ndarray | np.generic) else value


def on_host(value: Any) -> Any:
    if isinstance(value, OnDevice):
        return value.host
    if isinstance(value, tuple):
        return tuple(map(on_host, value))
    if isinstance(value, dict):
        return {name: on_host(part) for name, part in value.items()}
    return value


def calls(function: Any) -> Any:
    """Return the host's function for arrays on the device."""
    return lambda *inputs, **options: on_device(function(*on_host(inputs), **on_host(options)))


def fake_cupy(count: Any = lambda: 1) -> ModuleType:
    names = ("asarray", "empty", "zeros", "arange")
    runtime = SimpleNamespace(getDeviceCount=count)
    return module(
        "cupy",
        asnumpy=on_host, cuda=SimpleNamespace(runtime=runtime), **{name: calls(getattr(np, name)) for name in names},
    )  # fmt: skip


class CsrOnDevice:
    def __init__(self, matrix: Any) -> None:
        assert matrix.indices.dtype == np.int32
        self.matrix = matrix

    def __matmul__(self, dense: OnDevice) -> OnDevice:
        assert dense.host.flags.f_contiguous
        return OnDevice(np.asfortranarray(self.matrix @ dense.host))


def fake_pylibcugraph() -> ModuleType:
    """Power iteration from the uniform vector until the L1 change of a pass is below epsilon, in float32."""

    class SGGraph:
        def __init__(
            self, resource_handle, graph_properties, src_or_offset_array, dst_or_index_array, weight_array=None,
            store_transposed=False, renumber=False, do_expensive_check=False, *, vertices_array,
        ):  # fmt: skip
            assert store_transposed
            n = vertices_array.host.size
            self.transition = np.zeros((n, n), np.float32)
            self.transition[dst_or_index_array.host, src_or_offset_array.host] = weight_array.host
            self.transition /= np.maximum(self.transition.sum(axis=0), np.float32(1e-30))

    def personalized_pagerank(
        resource_handle, graph, precomputed_vertex_out_weight_vertices, precomputed_vertex_out_weight_sums,
        initial_guess_vertices, initial_guess_values, personalization_vertices, personalization_values, alpha, epsilon,
        max_iterations, do_expensive_check, fail_on_nonconvergence=True,
    ):  # fmt: skip
        n = len(graph.transition)
        order = np.random.default_rng(0).permutation(n)
        restart = np.zeros(n, np.float32)
        restart[personalization_vertices.host] = personalization_values.host / personalization_values.host.sum()
        x = np.full(n, 1 / n, np.float32)
        isolated = graph.transition.sum(axis=0) == 0
        for _ in range(max_iterations):
            back = 1 - alpha + alpha * x[isolated].sum()
            x, before = (alpha * graph.transition @ x + back * restart).astype(np.float32), x
            if np.abs(x - before).sum() < epsilon:
                return OnDevice(order.astype(np.int32)), OnDevice(x[order])
        raise AssertionError("did not converge")

    def properties(is_symmetric=False, is_multigraph=False):
        assert is_symmetric
        assert not is_multigraph

    return module(
        "pylibcugraph",
        ResourceHandle=object, GraphProperties=properties, SGGraph=SGGraph, personalized_pagerank=personalized_pagerank,
    )  # fmt: skip


def fake_brute_force() -> ModuleType:
    def build(dataset, metric="sqeuclidean", metric_arg=2.0, resources=None):
        assert metric == "inner_product"
        return dataset

    def search(index, queries, k, neighbors=None, distances=None, resources=None, prefilter=None):
        scores = queries.host @ index.host.T
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return OnDevice(np.take_along_axis(scores, best, axis=1)), OnDevice(best)

    return module("cuvs.neighbors.brute_force", build=build, search=search)


def fake_faiss() -> ModuleType:
    faiss = pytest.importorskip("faiss")
    return module(
        "faiss",
        omp_set_num_threads=faiss.omp_set_num_threads, get_num_gpus=lambda: 1, StandardGpuResources=object,
        GpuIndexFlatConfig=object, GpuIndexFlatIP=lambda resources, dim, config: faiss.IndexFlatIP(dim),
    )  # fmt: skip


def stand_in(patch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
    for one in modules:
        patch.setitem(sys.modules, one.__name__, one)


def stand_in_for(peer: str, patch: pytest.MonkeyPatch) -> None:
    if peer == "faiss-gpu":
        stand_in(patch, fake_faiss())
    elif peer == "cuvs":
        brute_force = fake_brute_force()
        stand_in(patch, fake_cupy(), module("cuvs"), module("cuvs.neighbors", brute_force=brute_force), brute_force)
    elif peer == "cugraph":
        stand_in(patch, fake_cupy(), fake_pylibcugraph())
    elif peer == "cupy-spmm":
        pytest.importorskip("scipy")
        sparse = module("cupyx.scipy.sparse", csr_matrix=CsrOnDevice)
        stand_in(patch, fake_cupy(), module("cupyx"), module("cupyx.scipy", sparse=sparse), sparse)
    else:
        pytest.importorskip("torch")
        patch.setattr(TorchTopk, "device", "cpu")
        patch.setattr(TorchTopk, "devices", lambda: 1)


def pairs() -> list[Any]:
    """Every case and peer; the quick tier has each peer's first case."""
    seen: set[str] = set()
    found = []
    for case, about in CASES.items():
        for peer in about.gpu_peers:
            found.append(pytest.param(case, peer, marks=[pytest.mark.full] if peer in seen else []))
            seen.add(peer)
    return found


@pytest.mark.parametrize(("case", "peer"), pairs())
def test_its_answers_pass_the_gate(case: str, peer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in_for(peer, monkeypatch)
    rows = list(worker.rows(case, peer, QUICK))
    assert [row["status"] for row in rows] == ["ok"] * len(rows), rows
    assert all("on the GPU" in row["peer_note"] for row in rows)
    assert set(PEERS[peer].packages) <= set(rows[0]["versions"])


def test_the_walk_makes_as_many_passes_as_scipys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both run one loop over one matrix."""
    from bench.peers import cupy_spmm, scipy_ppr

    assert cupy_spmm.power_iteration is scipy_ppr.power_iteration
    stand_in_for("cupy-spmm", monkeypatch)
    workload = CASES["ppr-hotpotqa"].load(QUICK)
    ours, theirs = (PEERS[name](workload, 1).run(4) for name in ("scipy", "cupy-spmm"))
    np.testing.assert_array_equal(ours, theirs)


def test_a_library_without_a_driver_is_a_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    def count() -> int:
        raise RuntimeError("=====\ncudaErrorInsufficientDriver: the driver is too old\n=====")

    stand_in_for("cupy-spmm", monkeypatch)
    stand_in(monkeypatch, fake_cupy(count))
    (row,) = worker.rows("ppr-hotpotqa", "cupy-spmm", QUICK)
    assert row["status"] == "skip"
    assert row["reason"].endswith("cannot be used here: cudaErrorInsufficientDriver: the driver is too old")


def test_a_library_that_sees_no_device_is_a_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in_for("cugraph", monkeypatch)
    stand_in(monkeypatch, fake_cupy(lambda: 0))
    (row,) = worker.rows("ppr-hotpotqa", "cugraph", QUICK)
    assert (row["status"], row["reason"]) == ("skip", "pylibcugraph sees no CUDA device")


def test_an_adapter_is_a_small_file(root: Path) -> None:
    for file in (root / "bench" / "peers").glob("*.py"):
        assert len(file.read_text().splitlines()) <= 80, file.name
