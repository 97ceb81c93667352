"""node_weights that are on a device themselves: read there as the CPU reads them, in plain calls and in recordings."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import random_graph, random_restart
from compare import assert_bitwise
from devices import on_device, on_host
from hopfuse import backends
from hopfuse.backends.calls.ppr import NodeWeightCall
from hopfuse.backends.cuda import DeviceOps
from hopfuse.errors import InputError
from numpy.typing import NDArray
from refusals import refused
from variants import SIMT, use_sizes

NODES, WIDTH = 130, 3


def draw_weights(rng: np.random.Generator, batch: int, columns: int) -> NDArray[np.float32]:
    """Weights of any size that float32 has, denormal ones and zeros among them; the largest may be any power."""
    z = 10.0 ** rng.uniform(-44, 37, (batch, columns))
    z[::2] = 10.0 ** rng.uniform(-3, 0, (len(z[::2]), columns)) * 2.0 ** rng.integers(-90, 90, (len(z[::2]), 1))
    z[rng.random(z.shape) < 0.1] = 0.0
    z[1::4, 0] = np.float32(2.0**100)
    return z.astype(np.float32)


def seeds_of(rows: list[dict[int, float]]) -> hf.Seeds:
    return hf.Seeds.from_rows(rows, 4)


@pytest.mark.parametrize("directed", [False, True])
def test_a_device_reads_them_as_the_cpu_does(runtime: Any, directed: bool) -> None:
    """Nodes without a column, without entries or excluded; parts of nodes and columns that blocks share."""
    rng = np.random.default_rng(1)
    graph = random_graph(rng, NODES, 300, directed=directed)
    for columns in (NODES, 40, 1):
        node = rng.permutation(NODES)[:columns].astype(np.int32)
        given = draw_weights(rng, 9, columns) + np.float32(columns == 1)
        for allow in (None, rng.random((1, NODES)) < 0.5, rng.random((9, NODES)) < 0.5):
            mask = None if allow is None else allow.view(np.uint8)
            host = NodeWeightCall(graph, given, node, per_type=False, allow=mask, lightest=None)
            expected, call = host.run_on_host(), host._replace(weight=on_device(given))
            for part in (32, 4096):
                use_sizes(part=part)
                made = DeviceOps(runtime).run(call)
                assert_bitwise(on_host(made.weight), expected.weight, "weights")
                assert_bitwise(on_host(made.other), expected.other, "the others' weight")


@pytest.mark.parametrize("types", [1, 3])
@pytest.mark.parametrize("directed", [False, True])
def test_walks_by_them_have_the_cpus_bits(runtime: Any, directed: bool, types: int) -> None:
    rng = np.random.default_rng(2)
    graph = random_graph(rng, NODES, 400, directed=directed, types=types, hub=3)
    allowed = rng.random((6, NODES)) < 0.8
    seeds = seeds_of(random_restart(rng, NODES, 6, allowed))
    nodes = np.setdiff1d(np.arange(NODES), seeds.nodes)
    z = (10.0 ** rng.uniform(-3, 0, (6, nodes.size)) * (rng.random((6, nodes.size)) < 0.9)).astype(np.float32)
    for options in ({}, {"allow": allowed}, {"edge_type_norm": "per_type"}):
        given: dict[str, Any] = {"weighted_nodes": nodes, "damping": 0.7, **options}
        expected = hf.ppr_topk(graph, seeds, 8, node_weights=z, backend="cpu", **given)
        found = on_host(hf.ppr_topk(graph, on_device(seeds), 8, node_weights=on_device(z), **given))
        for name, array in vars(expected).items():
            assert_bitwise(getattr(found, name), array, name)
        scores = hf.ppr(graph, on_device(seeds), node_weights=on_device(z), **given).scores
        assert_bitwise(on_host(scores), hf.ppr(graph, seeds, node_weights=z, backend="cpu", **given).scores)


def core_of(graph: hf.Graph) -> Any:
    def core(nodes: Any, weights: Any, z: Any) -> hf.PprHits:
        options: dict[str, Any] = {"weighted_nodes": np.arange(NODES), "stop": "tol", "empty": "skip"}
        return hf.ppr_topk(graph, hf.Seeds(nodes, weights), 7, node_weights=z, **options)

    return core


SHAPES = [((WIDTH,), "int64"), ((WIDTH,), "float64"), ((NODES,), "float32")]


def questions(rng: np.random.Generator, batch: int, decades: float) -> list[Any]:
    nodes = np.stack([rng.permutation(NODES)[:WIDTH] for _ in range(batch)])
    z = (10.0 ** rng.uniform(-decades, 0, (batch, NODES))).astype(np.float32)
    return [nodes, rng.random((batch, WIDTH)) + 0.1, z]


def test_a_recording_takes_weights_of_every_batch(runtime: Any) -> None:
    """Of a replay, what an earlier one has left does not show: neither weights nor the least of them."""
    graph = random_graph(np.random.default_rng(3), NODES, 400, hub=3)
    core, captured = core_of(graph), hf.capture(core_of(graph), SHAPES, backend=SIMT)
    rng = np.random.default_rng(4)
    for batch, decades in ((4, 12.0), (4, 1.0), (3, 0.0), (1, 4.0), (9, 2.0)):
        given = questions(rng, batch, decades)
        expected = core(*given)
        for name, array in vars(captured(*given)).items():
            assert_bitwise(array, getattr(expected, name), f"{name}, {batch} of {decades} decades")


def test_usual_weights_need_no_more_passes_than_a_recording_has(runtime: Any) -> None:
    graph = random_graph(np.random.default_rng(5), NODES, 400, hub=3)
    captured, rng = hf.capture(core_of(graph), SHAPES, backend=SIMT), np.random.default_rng(6)
    device = backends.resolve(SIMT).device
    before = device.last.get("capture", {}).get("queries_rerun", 0)
    for _ in range(3):
        captured(*questions(rng, 8, 2.0))
    assert device.last["capture"]["queries_rerun"] == before


@pytest.mark.parametrize(
    ("at", "value", "refusal"),
    [
        ((1, 5), np.nan, ("range", "node_weights[1]")),
        ((1, 5), np.inf, ("range", "node_weights[1]")),
        ((0, 5), -1.0, ("range", "node_weights[0]")),
        (2, 0.0, ("zero", "node_weights[2]")),
        ((1, 7), 0.0, ("unknown", "restart[1]")),
    ],
)
def test_weights_that_no_walk_has_are_refused_by_their_row(
    runtime: Any, at: Any, value: float, refusal: tuple[str, str | None]
) -> None:
    rng = np.random.default_rng(7)
    graph = random_graph(rng, NODES, 400, hub=3)
    nodes, weights, z = questions(rng, 3, 2.0)
    nodes[1, 0] = 7
    nodes[1, 1:] = -1
    z[at] = value
    for walk in (core_of(graph), hf.capture(core_of(graph), SHAPES, backend=SIMT)):
        with refused(InputError, *refusal):
            walk(on_device(nodes), on_device(weights), on_device(z))


def test_products_that_float32_cannot_hold_are_refused(runtime: Any) -> None:
    graph = hf.Graph.from_edges([0, 0], [1, 2], [1e-20, 1.0])
    seeds = on_device(hf.Seeds([[0]]))
    hf.ppr(graph, seeds, node_weights=on_device(np.float32([[1.0, 1e-17, 1.0]])))
    with refused(InputError, "range", "node_weights[0]"):
        hf.ppr(graph, seeds, node_weights=on_device(np.float32([[1.0, 1e-20, 1.0]])))


def test_shapes_types_and_places_that_do_not_fit_are_refused(runtime: Any) -> None:
    graph, seeds = random_graph(np.random.default_rng(8), NODES, 400), on_device(hf.Seeds([[0]]))
    for wrong, code in (
        (np.ones((1, 4), np.float32), "shape"),
        (np.ones((2, NODES), np.float32), "shape"),
        (np.ones((1, NODES)), "dtype"),
    ):
        with refused(InputError, code, "node_weights"):
            hf.ppr(graph, seeds, node_weights=on_device(wrong))
    captured = hf.capture(
        lambda *seeds: hf.ppr_topk(graph, hf.Seeds(*seeds), 3, node_weights=np.ones((1, NODES)), stop="tol"),
        [((1,), "int64"), ((1,), "float64")],
        backend=SIMT,
    )
    with refused(InputError, "unsupported", "node_weights"):
        captured(np.zeros((1, 1), np.int64), np.ones((1, 1)))


@pytest.mark.every_order
def test_orders_of_threads(runtime: Any) -> None:
    """Few threads, in blocks that share a query."""
    rng = np.random.default_rng(9)
    graph = random_graph(rng, NODES, 300, directed=True)
    node = rng.permutation(NODES)[:50].astype(np.int32)
    given = draw_weights(rng, 1, 50)
    call = NodeWeightCall(graph, on_device(given), node, per_type=False, allow=None, lightest=np.ones(1))
    use_sizes(part=32)
    made = DeviceOps(runtime).run(call)
    assert_bitwise(on_host(made.weight), call._replace(weight=given, lightest=None).run_on_host().weight, "weights")


def test_seeds_on_the_device_may_not_be_absent(runtime: Any) -> None:
    rng = np.random.default_rng(7)
    graph = random_graph(rng, 100, 400, hub=3)
    seeds = hf.Seeds([[9, -1, 4], [-1, 7, 3]], [[1.0, 0.0, 0.5], [0.0, 2.0, 1.0]])
    z = 10.0 ** rng.uniform(-3, 0, (2, 100))
    found = on_host(hf.ppr_topk(graph, on_device(seeds), 5, node_weights=z))
    for name, array in vars(hf.ppr_topk(graph, seeds, 5, node_weights=z, backend="cpu")).items():
        assert_bitwise(getattr(found, name), array, name)
    z[1, 7] = 0.0
    with refused(InputError, "unknown", "restart[1]"):
        hf.ppr_topk(graph, on_device(seeds), 5, node_weights=z)
