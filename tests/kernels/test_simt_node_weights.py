"""node_weights by the CUDA kernels on the emulator: the CPU's bits, whatever the weights spread over or exclude."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import random_graph, random_restart
from compare import assert_bitwise
from devices import on_device, on_host
from hopfuse.errors import InputError
from numpy.typing import NDArray
from variants import SANITIZERS, missing, registered, simt_runtime

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.skipif(missing("simt") is not None, reason=str(missing("simt"))),
]


@pytest.fixture
def runtime() -> Iterator[Any]:
    """The session's emulator, its order and its log as new."""
    runtime = simt_runtime()
    runtime.order, runtime.seed = "forward", 0
    runtime.launches.clear()
    yield runtime
    runtime.order, runtime.seed = "forward", 0


def assert_alike(actual: Any, expected: Any, where: str) -> None:
    for name, array in vars(expected).items():
        assert_bitwise(getattr(actual, name), array, f"{name} ({where})")


def draw_weights(
    rng: np.random.Generator, restart: list[dict[int, float]], n: int, decades: float, absent: float = 0.0
) -> NDArray[np.float64]:
    z = 10.0 ** rng.uniform(-decades, 0.0, (len(restart), n))
    z[rng.random(z.shape) < absent] = 0.0
    for b, row in enumerate(restart):
        z[b, list(row)] = 1.0
    return z


@pytest.mark.parametrize(("batch", "decades"), [(1, 1.0), (5, 4.0), (12, 30.0), (33, 6.0)])
@pytest.mark.parametrize(("directed", "types"), [(False, 1), (True, 1), (False, 3)])
def test_any_batch_has_the_cpus_bits_in_every_order_of_threads(
    runtime: Any, batch: int, decades: float, directed: bool, types: int
) -> None:
    rng = np.random.default_rng(batch)
    graph = random_graph(rng, 110, 300, directed=directed, types=types, hub=3)
    restart = random_restart(rng, 110, batch)
    options: dict[str, Any] = {"damping": rng.choice([0.0, 0.3, 0.5, 0.75], batch)}
    options["node_weights"] = draw_weights(rng, restart, 110, decades)
    expected = hf.ppr(graph, restart, backend="cpu", **options)
    for order in ("forward", "reverse", "shuffle"):
        runtime.order = order
        assert_alike(hf.ppr(graph, restart, backend="simt", **options), expected, order)
    hits = hf.ppr_topk(graph, restart, 9, backend="cpu", **options)
    assert_alike(hf.ppr_topk(graph, restart, 9, backend="simt", **options), hits, "best")


@pytest.mark.parametrize("norm", ["joint", "per_type"])
@pytest.mark.parametrize("directed", [False, True])
def test_absent_nodes_filters_and_type_weights_of_each_query(runtime: Any, norm: str, directed: bool) -> None:
    """Nodes without a column weigh 1, which is most of what a row of light nodes has."""
    rng = np.random.default_rng(3)
    graph = random_graph(rng, 150, 900, directed=directed, types=3, hub=3)
    allowed = rng.random((6, 150)) < 0.8
    restart = random_restart(rng, 150, 6, allowed)
    eta: dict[str, Any] = {"edge_type_norm": norm, "edge_type_weights": rng.random((6, 3)) / 3 + 0.01, "damping": 0.8}
    nodes = np.setdiff1d(rng.permutation(150)[:90], [v for row in restart for v in row])
    some: dict[str, Any] = {"weighted_nodes": nodes, "node_weights": 10.0 ** rng.uniform(-3, 1, (6, nodes.size))}
    some["node_weights"][::2, ::5] = 0.0
    absent = {"node_weights": draw_weights(rng, restart, 150, 3.0, absent=0.3)}
    for given in (some, some | {"allow": allowed}, absent, absent | {"allow": allowed[:1] | allowed}):
        options = {**eta, **given}
        assert_alike(
            hf.ppr(graph, restart, backend="simt", **options), hf.ppr(graph, restart, backend="cpu", **options), norm
        )
        expected = hf.ppr_topk(graph, restart, 12, backend="cpu", **options)
        assert_alike(hf.ppr_topk(graph, restart, 12, backend="simt", **options), expected, norm)


@pytest.mark.parametrize("prove", ["order", "set"])
@pytest.mark.parametrize("decades", [1.0, 9.0])
def test_lists_that_need_more_passes_have_the_cpus_bits(runtime: Any, prove: str, decades: float) -> None:
    """Refinements and one step around nodes, with Chebyshev's recurrence and without it; ties of equal nodes."""
    rng = np.random.default_rng(9)
    src = np.repeat(np.arange(300), rng.integers(1, 9, 300))
    graph = hf.Graph.from_edges(src, 300 + rng.integers(0, 200, src.size), rng.integers(1, 4, src.size), num_nodes=500)
    restart = [{300 + int(v): 1.0 for v in rng.choice(200, 4, False)} for _ in range(20)]
    z = 10.0 ** -(decades * rng.integers(0, 5, (20, 300)) / 4)
    for k in (10, 60):
        options: dict[str, Any] = {"candidates": np.arange(300), "prove": prove, "node_weights": z}
        options["weighted_nodes"] = np.arange(300)
        expected = hf.ppr_topk(graph, restart, k, backend="cpu", **options)
        assert_alike(hf.ppr_topk(graph, restart, k, backend="simt", **options), expected, f"k={k}")
    kernels = {kernel.rsplit("_l", 1)[0] for kernel, _, _ in runtime.launches}
    assert prove == "set" or {"ppr_refine_measure", "ppr_refine_end", "ppr_local_largest"} <= kernels


def test_bounds_around_light_nodes_have_the_cpus_bits(runtime: Any) -> None:
    """Sets that local bounds prove: what underflows is divided by a node's weight."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng, 140, 560, hub=7)
        restart = random_restart(rng, 140, 12)
        options: dict[str, Any] = {"prove": "set", "tol": 1e-4}
        options["node_weights"] = draw_weights(rng, restart, 140, 0.5 + seed)
        for k in (60, 80, 100):
            expected = hf.ppr_topk(graph, restart, k, backend="cpu", **options)
            assert_alike(hf.ppr_topk(graph, restart, k, backend="simt", **options), expected, f"{seed}, k={k}")
    assert any(kernel.startswith("ppr_local_largest") for kernel, _, _ in runtime.launches)


def test_factors_that_float32_rounds_as_subnormal_numbers_have_no_local_bounds_there_either(runtime: Any) -> None:
    """Light nodes between heavy edges: a / D is below float32's normal range."""
    rng = np.random.default_rng(5)
    src, dst = rng.integers(0, 60, (2, 200))
    graph = hf.Graph.from_edges(src, dst, np.full(200, 1e12), num_nodes=60)
    restart = random_restart(rng, 60, 6)
    z = draw_weights(rng, restart, 60, 30.0)
    expected = hf.ppr_topk(graph, restart, 20, node_weights=z, backend="cpu")
    assert_alike(hf.ppr_topk(graph, restart, 20, node_weights=z, backend="simt"), expected, "faint")


def test_weights_that_are_all_1_give_the_bits_of_none(runtime: Any) -> None:
    rng = np.random.default_rng(6)
    graph, restart = random_graph(rng, 150, 600, hub=3), random_restart(rng, 150, 6)
    ones = np.ones((6, 150), np.float32)
    expected = hf.ppr_topk(graph, restart, 7, backend="simt")
    assert_alike(hf.ppr_topk(graph, restart, 7, node_weights=ones, backend="simt"), expected, "ones")


def test_seeds_on_the_device_have_weights_and_may_not_be_absent(runtime: Any) -> None:
    rng = np.random.default_rng(7)
    graph = random_graph(rng, 100, 400, hub=3)
    seeds = hf.Seeds([[9, -1, 4], [-1, 7, 3]], [[1.0, 0.0, 0.5], [0.0, 2.0, 1.0]])
    z = 10.0 ** rng.uniform(-3, 0, (2, 100))
    expected = hf.ppr_topk(graph, seeds, 5, node_weights=z, backend="cpu")
    assert_alike(on_host(hf.ppr_topk(graph, on_device(seeds), 5, node_weights=z)), expected, "seeds")
    z[1, 7] = 0.0
    with pytest.raises(InputError, match=r"seed row 1 has a node .* that allow or a node weight of 0 excludes"):
        hf.ppr_topk(graph, on_device(seeds), 5, node_weights=z)


@pytest.mark.parametrize("build", SANITIZERS)
def test_the_sanitizers_find_nothing(build: str) -> None:
    """Each kernel once, on the fewest threads: ThreadSanitizer takes a millisecond for each."""
    with registered(build, build, order="shuffle", seed=1):
        rng = np.random.default_rng(7)
        graph = random_graph(rng, 100, 200, types=2, hub=3)
        restart = random_restart(rng, 100, 2)
        options: dict[str, Any] = {"damping": 0.5, "node_weights": draw_weights(rng, restart, 100, 2.0, absent=0.2)}
        assert_alike(
            hf.ppr(graph, restart, max_iter=3, backend=build, **options),
            hf.ppr(graph, restart, max_iter=3, backend="cpu", **options),
            build,
        )
        expected = hf.ppr_topk(graph, restart, 40, tol=1e-3, backend="cpu", **options)
        assert_alike(hf.ppr_topk(graph, restart, 40, tol=1e-3, backend=build, **options), expected, build)
