"""A captured core: recorded once, replayed with the answers of the plain call, and nothing that a recording forbids."""

from __future__ import annotations

import dataclasses
import gc
from collections import Counter
from collections.abc import Iterator
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import entities_graph, random_graph
from compare import assert_bitwise
from devices import on_device, on_host
from hopfuse import _native
from hopfuse.errors import InputError
from refusals import refused
from variants import missing, registered

from bench import gpu_cards, gpu_kernels

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.skipif(missing("simt") is not None, reason=str(missing("simt"))),
]
NODES, ROWS, DIM, WIDTH = 190, 150, 12, 4
SHAPES = [((DIM,), "float32"), ((WIDTH,), "int64"), ((WIDTH,), "float64")]


@pytest.fixture(scope="module")
def emulated() -> Iterator[Any]:
    with registered("recorder") as runtime:
        yield runtime


@pytest.fixture
def runtime(emulated: Any) -> Iterator[Any]:
    emulated.cooperative = True
    emulated.driver.finish()
    emulated.driver.clear()
    yield emulated
    emulated.driver.finish()
    assert not emulated.findings


class System:
    """Dense search, a walk and their fusion, as a recipe has them."""

    def __init__(self, **options: Any) -> None:
        rng = np.random.default_rng(1)
        self.graph = random_graph(rng, NODES, 700, hub=3)
        self.corpus = hf.Corpus.from_array(rng.standard_normal((ROWS, DIM)).astype(np.float32))
        self.options = {"candidates": np.arange(ROWS), "stop": "tol", "empty": "skip", **options}

    def core(self, vectors: Any, nodes: Any, weights: Any) -> dict[str, hf.Hits]:
        dense = hf.dense_topk(vectors, self.corpus, 20)
        graph = hf.ppr_topk(self.graph, hf.Seeds(nodes, weights), 10, **self.options)
        return {"dense": dense, "graph": graph, "hits": hf.fuse([dense, graph], k=5)}

    def captured(self, backend: str = "recorder") -> hf.Captured:
        return hf.capture(self.core, SHAPES, backend=backend)


def questions(batch: int, seed: int = 0) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng([batch, seed])
    nodes = np.stack([rng.permutation(NODES)[:WIDTH] for _ in range(batch)])
    nodes[rng.random(nodes.shape) < 0.4] = -1
    return [rng.standard_normal((batch, DIM)).astype(np.float32), nodes, rng.random(nodes.shape) + 0.01]


def assert_same(made: dict[str, hf.Hits], expected: dict[str, hf.Hits]) -> None:
    for pool, hits in expected.items():
        for name, array in vars(hits).items():
            assert_bitwise(getattr(made[pool], name), array, f"{name} of {pool}")


def kinds(runtime: Any) -> Counter[str]:
    return Counter(event.kind for event in runtime.events)


def replayed(runtime: Any, captured: Any, *given: Any) -> tuple[list[str], int]:
    """Replay a recording once; return its kernels, and the number of its other nodes but the copies up and down."""
    captured(*given)
    runtime.driver.finish()
    runtime.driver.clear()
    captured(*given)
    runtime.driver.finish()
    (nodes,) = (event.what for event in runtime.events if event.kind == "replay")
    kernels = [kernel for kernel, _, _ in runtime.launches]
    return kernels, nodes - len(kernels) - 2


@pytest.mark.parametrize("batch", [1, 2, 3, 8, 33, pytest.param(300, marks=pytest.mark.full)])
def test_any_batch_has_the_plain_calls_answers(runtime: Any, batch: int) -> None:
    system, given = System(), questions(batch)
    assert_same(system.captured()(*given), system.core(*given))


@pytest.mark.parametrize(
    ("batches", "options"),
    [
        ((3, 4), {}),
        # A recording has at most 256 queries.
        *(pytest.param((257,), options, marks=pytest.mark.full) for options in ({"damping": 0.0}, {})),
    ],
)
def test_arrays_on_the_device_give_arrays_there(
    runtime: Any, batches: tuple[int, ...], options: dict[str, Any]
) -> None:
    system, captured = System(**options), System(**options).captured()
    for batch in batches:
        given = questions(batch)
        made = captured(*(on_device(array) for array in given))
        assert_same(on_host(made), system.core(*given))


def test_a_replay_is_one_request(runtime: Any) -> None:
    """The copies up and down are in it."""
    captured = System().captured()
    captured(*questions(4))
    runtime.events.clear()
    for seed in range(3):
        captured(*questions(4, seed))
    assert kinds(runtime) == {"replay": 3, "wait": 3}


def test_a_replay_takes_few_launches(runtime: Any) -> None:
    """At most 2 for a pass or the certificate, and no more than 14 beside, the matrix product among them."""
    runtime.cooperative = False
    queued = Counter(replayed(runtime, System().captured(), *questions(32))[0])
    walk = {
        name: count
        for name, count in queued.items()
        if name.startswith(("ppr_early", "ppr_pass", "ppr_seg", "ppr_residual"))
    }
    passes = max(walk.values()) + 3  # the first two and the certificate have their own kernels
    others = {name: count for name, count in queued.items() if name not in walk}
    assert sum(walk.values()) <= 2 * passes
    assert sum(others.values()) <= 14, others


@pytest.mark.parametrize("cooperative", [False, True])
def test_the_page_of_times_counts_what_a_search_records(runtime: Any, cooperative: bool) -> None:
    """Launches, the matrix product among them, the copies and clears beside them, and grid barriers."""
    runtime.cooperative = cooperative
    kernels, others = replayed(runtime, System().captured(), *questions(32))
    card = dataclasses.replace(gpu_cards.CARDS[-1], l2=gpu_cards.CARDS[-1].l2 if cooperative else 0)
    size = gpu_kernels.Size("system", NODES, 1_400, ROWS, DIM, passes=13, limit=17, segments=3)
    expected = gpu_kernels.nodes(gpu_kernels.Search(size, 32, card))
    of_block = sum(kernel.startswith("ppr_") for kernel in kernels)
    assert (len(kernels), of_block) == expected[:2]
    assert others == 1  # a memset of what a walk adds to
    assert sum(counted.grid_barriers for counted in runtime.counters) == expected.barriers


def test_results_are_written_where_they_are_read(runtime: Any) -> None:
    """But for one that no op made: it has a copy of its own."""
    system = System()

    def once(vectors: Any, nodes: Any, weights: Any) -> dict[str, Any]:
        return {"dense": hf.dense_topk(vectors, system.corpus, 20)}

    def core(vectors: Any, nodes: Any, weights: Any) -> dict[str, Any]:
        dense = hf.dense_topk(vectors, system.corpus, 20)
        return {"dense": dense, "again": dense.ids, "given": nodes}

    plain, captured = (hf.capture(work, SHAPES, backend="recorder") for work in (once, core))
    for seed in range(2):
        given = questions(4, seed)
        made, expected = captured(*given), hf.dense_topk(given[0], system.corpus, 20, backend="cpu")
        assert_same(made, {"dense": expected})
        assert_bitwise(made["again"], expected.ids, "again")
        assert_bitwise(made["given"], given[1], "given")
    (kernels, others), (same, fewer) = (replayed(runtime, one, *questions(4)) for one in (captured, plain))
    assert (kernels, others, fewer) == (same, 1, 0)


def test_a_recording_is_made_once_for_a_batch_size(runtime: Any) -> None:
    captured = System().captured()
    captured.warmup([1, 4])
    assert kinds(runtime)["replay"] == 0
    runtime.events.clear()
    for batch in (1, 3, 4):
        captured(*questions(batch))
    assert kinds(runtime) == {"replay": 3, "wait": 3}


def test_its_memory_is_given_out_twice_and_freed_with_it(runtime: Any) -> None:
    def memory(batch: int) -> int:
        captured = System().captured()
        captured(*questions(batch))
        (recordings,) = captured._recordings.values()
        return int(recordings._memory.nbytes)

    gc.collect()
    before = runtime.device.used_bytes()
    assert memory(64) < 1.6 * memory(32)  # two blocks of lanes, one after the other
    gc.collect()
    assert runtime.device.used_bytes() == before


def test_results_outlive_the_next_replay(runtime: Any) -> None:
    system, captured = System(), System().captured()
    first, second = questions(4, 1), questions(4, 2)
    kept = [captured(*(on_device(array) for array in given)) for given in (first, second)]
    host = [captured(*given) for given in (first, second)]
    for given, there, here in zip((first, second), kept, host, strict=True):
        assert_same(on_host(there), system.core(*given))
        assert_same(here, system.core(*given))


# ---- Lists that are proven -------------------------------------------------------------------------------------------


class Passages:
    """Lists of passages among entities, deep enough that float32 alone does not prove them."""

    SHAPES = SHAPES[1:]

    def __init__(self, k: int, **options: Any) -> None:
        self.graph = entities_graph(np.random.default_rng(9))
        self.k, self.options = k, {"candidates": np.arange(300), **options}

    def core(self, nodes: Any, weights: Any) -> dict[str, hf.Hits]:
        return {"graph": hf.ppr_topk(self.graph, hf.Seeds(nodes, weights), self.k, **self.options)}

    def captured(self) -> hf.Captured:
        return hf.capture(self.core, self.SHAPES, backend="recorder")

    @staticmethod
    def questions(batch: int) -> list[np.ndarray[Any, Any]]:
        rng = np.random.default_rng(9)
        nodes = np.stack([300 + rng.choice(200, WIDTH, False) for _ in range(batch)])
        return [nodes, rng.random(nodes.shape) + 0.01]


@pytest.mark.parametrize("batch", [5, pytest.param(33, marks=pytest.mark.full)])
@pytest.mark.parametrize("device", [False, pytest.param(True, marks=pytest.mark.full)])
@pytest.mark.parametrize(
    ("k", "options"),
    [
        (60, {"damping": 0.5}),
        pytest.param(60, {"damping": 0.85}, marks=pytest.mark.full),
        (60, {"damping": 0.85, "prove": "set"}),
        pytest.param(100, {"damping": 0.3}, marks=pytest.mark.full),
        pytest.param(60, {"damping": 0.5, "max_iter": 14}, marks=pytest.mark.full),
        (20, {"damping": 0.5, "allow": np.arange(500) != 7}),
        (10, {"damping": 0.0}),
    ],
)
def test_lists_are_proven_as_in_the_plain_call(
    runtime: Any, k: int, options: dict[str, Any], device: bool, batch: int
) -> None:
    """By a schedule of every look that there may be; nothing is read, and no query is asked again."""
    system, given = Passages(k, **options), Passages.questions(batch)
    captured, before = system.captured(), _asked_again()
    expected = system.core(*given)
    made = captured(*(on_device(array) for array in given)) if device else captured(*given)
    assert_same(on_host(made) if device else made, expected)
    assert _asked_again() == before
    assert expected["graph"].proven.any() or options["damping"] == 0.0
    runtime.events.clear()
    captured(*(on_device(array) for array in given) if device else given)
    assert kinds(runtime)["replay"] == 1


def test_looks_without_lanes_do_nothing(runtime: Any) -> None:
    """A recording has those of the slowest query: they take a warp's time, or that of blocks which end at once."""
    runtime.cooperative = False
    system, given = Passages(60, damping=0.5), Passages.questions(1)
    kernels, _ = replayed(runtime, system.captured(), *given)
    counts = Counter(kernel.removesuffix("_l4") for kernel in kernels)
    looks = counts["ppr_settle_plan"]
    assert counts["ppr_refine_measure"] == counts["ppr_settle_around"] == looks == 5  # after 1, 3, 5, 7 and 10 passes
    ran = Counter(
        kernel.removesuffix("_l4")
        for (kernel, _, _), counted in zip(runtime.launches, runtime.counters, strict=True)
        if counted.barriers
    )
    assert ran["ppr_refine_measure"] == ran["ppr_residual"] == 1  # the first of them proves the list


@pytest.mark.parametrize("device", [pytest.param(False, marks=pytest.mark.full), True])
def test_a_query_whose_proof_is_rejected_is_asked_again(runtime: Any, device: bool) -> None:
    """Its walk ended with a proof that the certificate rejects, and max_iter forbids passes that would refine it."""
    system, given = Passages(100, damping=0.3, max_iter=15, tol=1e-9), Passages.questions(32)
    captured, before = system.captured(), _asked_again()
    made = captured(*(on_device(array) for array in given)) if device else captured(*given)
    asked = _asked_again() - before
    expected = system.core(*given)
    assert_same(on_host(made) if device else made, expected)
    walked_twice = (expected["graph"].iterations > 2 * 15).sum()
    assert asked >= walked_twice > 0


# ---- What a recording cannot prove -----------------------------------------------------------------------------------


@pytest.mark.parametrize("device", [False, True])
def test_queries_that_need_widening_are_asked_again(runtime: Any, device: bool) -> None:
    system = System()
    system.corpus = hf.Corpus.from_array(np.repeat(questions(1)[0], ROWS, axis=0) + np.arange(ROWS)[:, None] % 2)
    given = questions(5)
    given[0][2] = 0.0  # ties everywhere
    captured = system.captured()
    made = captured(*(on_device(array) if device else array for array in given))
    assert_same(on_host(made) if device else made, system.core(*given))
    counts = hf.backend_info()["backends"]["recorder"]["last_calls"]["capture"]
    assert counts["queries_rerun"] > 0


def test_a_walk_that_is_polished_is_asked_again(runtime: Any) -> None:
    system, given = System(damping=0.95, tol=1e-7), questions(3)
    assert_same(system.captured()(*given), system.core(*given))


def test_isolated_seeds_and_none_at_all(runtime: Any) -> None:
    system, given = System(), questions(4)
    lonely = np.flatnonzero(np.diff(system.graph.indptr) == 0)
    given[1][0], given[1][1, 0] = -1, system.graph.node_of[lonely[0]] if lonely.size else 0
    assert_same(system.captured()(*given), system.core(*given))


@pytest.mark.parametrize("options", [{"damping": 0.0}, {"damping": 0.85, "max_iter": 4}, {"tol": 1e-3}])
def test_other_walks(runtime: Any, options: dict[str, Any]) -> None:
    system, given = System(**options), questions(5)
    assert_same(system.captured()(*given), system.core(*given))


@pytest.mark.parametrize("norm", ["joint", "per_type"])
@pytest.mark.parametrize("directed", [False, True])
def test_typed_masked_walks(runtime: Any, norm: str, directed: bool) -> None:
    system = System(edge_type_norm=norm, edge_type_weights=np.array([0.2, 0.5, 0.1]), allow=np.arange(NODES) != 17)
    system.graph = random_graph(np.random.default_rng(2), NODES, 700, types=3, directed=directed)
    given = questions(6)
    given[1][given[1] == 17] = -1
    assert_same(system.captured()(*given), system.core(*given))


@pytest.mark.parametrize("device", [False, True])
def test_a_recording_whose_blocks_no_longer_run_at_once_is_made_anew(runtime: Any, device: bool) -> None:
    """As where another process takes its share of the device (MPS)."""
    system, given = System(), questions(4)
    captured = system.captured()
    for seed in range(2):
        given = questions(4, seed)
        if seed == 1:
            runtime.driver.fail_next("cuGraphLaunch", 720, count=1)
        made = captured(*(on_device(array) if device else array for array in given))
        assert_same(on_host(made) if device else made, system.core(*given))
    assert runtime.driver.calls("cuGraphInstantiateWithFlags") > 1
    assert kinds(runtime)["replay"] == 2


# ---- What is wrong ---------------------------------------------------------------------------------------------------


def test_an_invalid_query_is_named_by_its_row(runtime: Any) -> None:
    captured = System().captured()
    for part, row, value, code, field in (
        (0, 2, np.nan, "finite", "queries[2]"),
        (1, 3, NODES, "unknown", "restart[3]"),
        (2, 1, -1.0, "range", "restart[1]"),
    ):
        given = questions(5)
        given[1][row] = np.arange(WIDTH)
        given[part][row, 0] = value
        with refused(InputError, code, field):
            captured(*given)
        with refused(InputError, code, field):
            captured(*(on_device(array) for array in given))


@pytest.mark.full
def test_an_invalid_query_behind_those_of_one_recording_is_named_by_its_row(runtime: Any) -> None:
    late = questions(258)
    late[0][257] = np.inf
    with refused(InputError, "finite", "queries[257]"):
        System().captured()(*late)


def test_arrays_of_other_shapes_are_refused(runtime: Any) -> None:
    captured, given = System().captured(), questions(3)
    with refused(InputError, "length", "arrays", given=2):
        captured(*given[:2])
    with refused(InputError, "shape", "arrays[0]", given="float32 of the shape (3, 11)"):
        captured(given[0][:, 1:], *given[1:])
    with refused(InputError, "shape", "arrays[1]"):
        captured(given[0][:2], *given[1:])
    with refused(InputError, "shape", "arrays[1]"):
        captured(given[0], given[1] + 0.5, given[2])
    with refused(InputError, "shape", "arrays[0]"):
        hf.capture(lambda x: x, [((), "float32")], backend="recorder")(np.float32(3))
    with refused(InputError, "dtype", "arrays[0]", allowed=np.int32):
        hf.capture(lambda x: x, [((1,), "int32")], backend="recorder")(np.array([[2**32 + 3]]))
    with refused(InputError, "type", "batch_sizes", given="int"):
        captured.warmup(5)  # type: ignore[arg-type]
    for shapes in ([], [((3,), "nothing")], [((-1,), "float32")], 7, [((4.7,), "float32")], [((4,), "O")]):
        with refused(InputError, "type", "shapes"):
            hf.capture(System().core, shapes)  # type: ignore[arg-type]
    with refused(InputError, "range", "batch_sizes[0]", given=0):
        captured.warmup([0])
    with refused(InputError, "type", "core", given="int"):
        hf.capture(3, SHAPES)  # type: ignore[arg-type]


PER_QUERY: list[dict[str, Any]] = [{"damping": np.full(3, 0.5)}, {"allow": np.ones((3, NODES), np.bool_)}]


@pytest.mark.parametrize("backend", ["cpu", "recorder"])
@pytest.mark.parametrize("options", PER_QUERY, ids=["damping", "allow"])
def test_options_of_each_query_are_refused_on_every_backend(runtime: Any, backend: str, options: Any) -> None:
    with refused(InputError, "unsupported", *options):
        System(**options).captured(backend)(*questions(3))


def test_a_limit_of_passes_beyond_the_theorys_costs_nothing(runtime: Any) -> None:
    system, given = System(max_iter=2**40), questions(3)
    assert_same(system.captured()(*given), system.core(*given))


@pytest.mark.parametrize("backend", ["cpu", "recorder"])
def test_results_without_a_batch_are_refused_on_every_backend(runtime: Any, backend: str) -> None:
    constant = np.arange(7) if backend == "cpu" else on_device(np.arange(7))
    with refused(InputError, "shape", "core", shape=(7,)):
        hf.capture(lambda *arrays: constant, SHAPES, backend=backend)(*questions(4))


def test_a_captured_core_within_another(runtime: Any) -> None:
    system = System()
    inner = system.captured()
    outer = hf.capture(lambda *arrays: {"inner": inner(*arrays)["hits"]}, SHAPES, backend="recorder")
    given = questions(3)
    assert_same(outer(*given), {"inner": system.core(*given)["hits"]})


def test_padding_is_not_asked_again(runtime: Any) -> None:
    alike = hf.Corpus.from_array(np.ones((ROWS, DIM), np.float32))
    captured = hf.capture(lambda x: hf.dense_topk(x, alike, 3), [((DIM,), "float32")], backend="recorder")
    before = _asked_again()
    captured(np.ones((5, DIM), np.float32))
    assert _asked_again() - before == 5


def _asked_again() -> int:
    calls = hf.backend_info()["backends"]["recorder"]["last_calls"]
    return int(calls.get("capture", {}).get("queries_rerun", 0))


def test_a_core_that_returns_no_array_is_refused(runtime: Any) -> None:
    with refused(InputError, "type", "core", given="int"):
        hf.capture(lambda *arrays: 3, SHAPES, backend="recorder")(*questions(2))
    assert not runtime.is_capturing
    assert_same(System().captured()(*questions(2)), System().core(*questions(2)))


# ---- The recorder's own rules ----------------------------------------------------------------------------------------


def record(runtime: Any, work: Any) -> None:
    """Run and record ``work`` of a device and the number of the run, 0 or 1."""
    recording = _native.DeviceRecording(runtime.device, _native.RecordingMemory(runtime.device), [((1, 1), "f4")])
    for turn in range(2):
        given = recording.begin(turn == 1, True)
        try:
            work(runtime.device, turn)
            recording.end(given)
        except BaseException:
            recording.abandon()
            raise


@pytest.mark.parametrize(
    "work",
    [
        lambda device, turn: device.empty(3, np.int32).to_numpy(),
        lambda device, turn: device.empty(1000 * (turn + 1), np.int8),
        lambda device, turn: device.upload(np.full(3, turn)),
        lambda device, turn: [device.upload(np.zeros(3)) for _ in range(turn + 1)],
        lambda device, turn: [device.empty(8, np.int8) for _ in range(turn)],
        lambda device, turn: [device.empty(8, np.int8) for _ in range(1 - turn)],
        lambda device, turn: _native.DeviceRecording(device, _native.RecordingMemory(device), [((1, 1), "f4")]).begin(
            False, True
        ),
    ],
    ids=["reads", "other memory", "other values", "more uploads", "more memory", "less memory", "nested"],
)
def test_the_recorder_refuses_what_cannot_be_replayed(runtime: Any, work: Any) -> None:
    with pytest.raises(RuntimeError):
        record(runtime, work)
    assert not runtime.is_capturing
    record(runtime, lambda device, turn: device.empty(3, np.int8))


def test_on_the_cpu_it_is_the_plain_call() -> None:
    system, given = System(), questions(5)
    captured = system.captured("cpu")
    captured.warmup()
    assert_same(captured(*given), system.core(*given))
    assert len(captured(*(array[:0] for array in given))["hits"]) == 0
