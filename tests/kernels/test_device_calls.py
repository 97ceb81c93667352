"""Calls on a device through the native module: what goes up and comes down, streams, devices, threads, refusals.

tests/device has the same for the queues below.
"""

from __future__ import annotations

import ctypes
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import random_graph, random_incidence, random_lists
from compare import assert_bitwise
from devices import on_device, on_host
from driver_api import Api
from emulated_device import CUDA as CUDA_FOLDER
from emulated_device import builder
from hopfuse import _native, backends
from hopfuse.backends import selftest
from hopfuse.errors import DeviceMemoryError, InputError
from refusals import refused
from variants import SIMT, registered

BATCH, NODES = 3, 60


class World:
    """Arguments of calls, drawn anew: resident arrays are not yet on a device."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.lists = random_lists(rng, BATCH, 2, ids=NODES)
        self.graph = random_graph(rng, NODES, 300, hub=4)
        self.mentions = random_incidence(rng, NODES, NODES, 400)
        self.labels = hf.LabelSets.from_labels([f"label {number % 7}" for number in range(9)])
        self.seeds = hf.Seeds(np.stack([rng.permutation(NODES)[:4] for _ in range(BATCH)]), rng.random((BATCH, 4)))
        self.weights = rng.random((BATCH, NODES), np.float32)
        self.frequency = rng.integers(1, 5, (BATCH, NODES))


#: A call of each operation that has no kernels of its own tests here, on lists and arrays that are given.
CALLS: dict[str, Callable[[World, Any], Any]] = {
    "calibrate": lambda world, of: hf.calibrate(of(world.lists[0]), "theoretical_min_max", lower=-1e6),
    "fuse": lambda world, of: hf.fuse([of(one) for one in world.lists], weights=[0.5, 0.25], prior=world.weights[0]),
    "fuse one list": lambda world, of: hf.fuse([of(world.lists[0])], method="tsallis", q=2.0),
    "ising": lambda world, of: hf.ising_rerank(of(world.lists[0]), world.graph, steps=3),
    "passage seeds": lambda world, of: hf.add_passage_seeds(of(world.seeds), of(world.lists[0]), 0.5),
    "entity seeds": lambda world, of: hf.add_entity_seeds(
        of(world.seeds), of(world.lists[0]), world.mentions, 0.5, frequency=world.frequency
    ),
    "cover": lambda world, of: hf.cover_seeds(of(world.lists[0]), of(world.seeds), world.mentions, k=2),
    "boost": lambda world, of: hf.boost_weights(of(world.weights), of(world.lists[0]), 2.0),
}
#: Those that a device also makes for arrays of the host.
FOR_HOST = ("calibrate", "fuse", "fuse one list", "ising")
#: Those that upload something beside the arrays that they are given.
WITH_CONSTANTS = {"calibrate", "fuse", "fuse one list", "entity seeds"}
#: Those that have the status of a query.
WITH_STATUS = {"ising", "entity seeds", "cover", "boost"}


def dice(world: World) -> Any:
    return hf.dice_scores(["a label 3", "5"], world.labels, np.arange(8).reshape(4, 2), indptr=[0, 3, 4])


def same(value: Any) -> Any:
    return value


def once(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that makes its result for an object at the first call."""
    made: dict[int, Any] = {}

    def call(value: Any) -> Any:
        if id(value) not in made:
            made[id(value)] = make(value)
        return made[id(value)]

    return call


def assert_same(found: Any, expected: Any) -> None:
    """Equal bits, but for empty places at the end of the seeds that a device adds."""
    if isinstance(expected, np.ndarray):
        assert_bitwise(found, expected)
        return
    for name, array in vars(expected).items():
        made = getattr(found, name)
        width = array.shape[1] if array.ndim == 2 else None
        assert_bitwise(np.ascontiguousarray(made[:, :width] if width is not None else made), array, name)


def asked(runtime: Any, call: Callable[[], Any]) -> Counter[str]:
    """Return the kinds of what a call asks of the driver, after one that makes what is resident and loads kernels."""
    call()
    runtime.driver.finish()
    runtime.driver.clear()
    call()
    return Counter(event.kind for event in runtime.events)


# ---- What goes up and comes down -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*FOR_HOST, "dice"])
def test_a_call_on_the_host_goes_up_in_one_copy_and_comes_down_in_one(runtime: Any, name: str) -> None:
    world = World()
    done = asked(runtime, lambda: dice(world) if name == "dice" else CALLS[name](world, same))
    assert (done["upload"], done["download"], done["wait"]) == (1, 1, 1)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_on_the_device_uploads_its_constants_and_reads_its_status(runtime: Any, name: str) -> None:
    world, there = World(), once(on_device)
    done = asked(runtime, lambda: CALLS[name](world, there))
    assert done["upload"] == (name in WITH_CONSTANTS)
    assert (done["download"], done["wait"]) == ((1, 1) if name in WITH_STATUS else (0, 0))


@pytest.mark.parametrize("name", CALLS)
def test_a_call_takes_as_few_launches_and_blocks_of_memory_as_it_needs(runtime: Any, name: str) -> None:
    """A launch, and one that copies lists to be joined; memory for constants, results, and at most two workspaces."""
    world, there = World(), once(on_device)
    done = asked(runtime, lambda: CALLS[name](world, there))
    assert done["launch"] == (2 if name == "fuse" else 1)
    assert done["allocate"] <= 4


def test_a_kernels_file_is_loaded_at_its_first_launch_and_never_again(runtime: Any) -> None:
    with registered("fresh", ordinal=5) as fresh:
        for _ in range(3):
            hf.calibrate(World().lists[0], "max", backend="fresh")
            assert [name for name, _ in fresh.device.origins()] == ["fuse_f32"]
        assert fresh.simt.modules == 1
        hf.dice_scores(["x"], World().labels, [0], indptr=[0, 1], backend="fresh")
        assert sorted(name for name, _ in fresh.device.origins()) == ["dice_f32", "fuse_f32"]


@pytest.mark.full
def test_the_whole_self_test_launches_every_kernel(runtime: Any) -> None:
    checks = selftest.run(backends.untested(SIMT), rounds=1)
    assert [check for check in checks if not check.equal] == []
    units = builder.build_all(sorted(CUDA_FOLDER.glob("*.cu")), "plain", program=False)
    kernels = {kernel.name for unit in units for kernel in unit.kernels}
    assert {kernel for kernel, _, _ in runtime.launches} == kernels


def test_results_of_the_host_stay_as_they_are(runtime: Any) -> None:
    """They are in pinned memory, which later calls have again only when they are gone."""
    world = World()
    first = hf.boost_weights(
        world.weights,
        world.lists[0],
        2.0,
    )
    kept = first.copy()
    for _ in range(50):
        hf.boost_weights(world.weights[::-1].copy(), world.lists[1], 3.0)
    assert_bitwise(first, kept)
    part = hf.boost_weights(world.weights, world.lists[0], 2.0)[1:, 5:7]
    for _ in range(50):
        hf.boost_weights(world.weights[::-1].copy(), world.lists[1], 3.0)
    assert_bitwise(np.ascontiguousarray(part), np.ascontiguousarray(kept[1:, 5:7]))


# ---- Streams and devices ---------------------------------------------------------------------------------------------


@contextmanager
def other_streams(runtime: Any, count: int) -> Iterator[tuple[Api, list[int]]]:
    """Streams of a caller on the device, and the driver's calls there; neither is current afterwards."""
    before = ctypes.c_void_p()
    runtime.driver.call("cuCtxGetCurrent", ctypes.byref(before))
    api = Api(runtime.driver, runtime.device.ordinal)
    streams = [api.stream() for _ in range(count)]
    try:
        yield api, [int(stream.value or 0) for stream in streams]
    finally:
        runtime.driver.finish()
        for stream in streams:
            api.call("cuStreamDestroy_v2", stream)
        runtime.driver.library.cuCtxPopCurrent_v2(None)
        runtime.driver.library.cuDevicePrimaryCtxRelease_v2(runtime.device.ordinal)


def test_a_result_is_on_the_stream_of_the_calls_first_array(runtime: Any) -> None:
    world = World()
    with other_streams(runtime, 1) as (_, (stream,)):
        with runtime.device.on_stream(stream, None):
            weights = on_device(world.weights)
        made = hf.boost_weights(weights, on_device(world.lists[0]), 2.0)
        assert weights.stream == made.stream == stream
        assert_bitwise(made.to_numpy(), hf.boost_weights(world.weights, world.lists[0], 2.0))
        del weights, made


def test_a_call_comes_after_the_work_on_every_one_of_its_arrays(runtime: Any) -> None:
    """Each is on a stream of its own, and freed there right after the call."""
    world = World()
    expected = CALLS["cover"](world, same)
    with other_streams(runtime, 6) as (_, streams):
        free = iter(streams)

        def there(array: Any) -> Any:
            with runtime.device.on_stream(next(free), None):
                return on_device(array)

        hits, seeds = world.lists[0], world.seeds
        given = hf.Hits.unchecked(there(hits.ids), there(hits.scores), there(hits.counts))
        wanted = hf.Seeds(there(seeds.nodes), there(seeds.weights))
        made = hf.cover_seeds(given, wanted, world.mentions, k=2)
        del given, wanted
        assert_same(on_host(made), expected)
        del made
        runtime.driver.finish()
        assert not runtime.findings


class Interface:
    """An array of another library, by ``__cuda_array_interface__``."""

    def __init__(self, address: int, array: np.ndarray[Any, Any], stream: int | None) -> None:
        self.__cuda_array_interface__ = {
            "shape": array.shape, "typestr": array.dtype.str, "data": (address, False), "version": 3, "stream": stream,
        }  # fmt: skip


@pytest.mark.parametrize("is_default", [False, True])
def test_another_librarys_array_is_read_after_the_work_on_its_stream(runtime: Any, is_default: bool) -> None:
    world = World()
    with other_streams(runtime, 1) as (api, (stream,)):
        pinned, address = api.pinned(world.weights.shape), api.alloc(world.weights.nbytes)
        pinned[:] = world.weights
        api.up(address, pinned, ctypes.c_void_p(1 if is_default else stream))  # queued, not yet done
        theirs: Any = Interface(address, pinned, 1 if is_default else stream)
        made = hf.boost_weights(theirs, on_device(world.lists[0]), 2.0)
        assert_bitwise(made.to_numpy(), hf.boost_weights(world.weights, world.lists[0], 2.0))
        runtime.driver.finish()
        assert not runtime.findings
        del made, theirs
        api.free(address)
        api.free_pinned(pinned)


def test_the_callers_current_device_stays_and_is_not_used(runtime: Any) -> None:
    world, current = World(), ctypes.c_void_p()
    api = Api(runtime.driver, 6)
    try:
        for name, call in CALLS.items():
            call(world, same)
            runtime.driver.call("cuCtxGetCurrent", ctypes.byref(current))
            assert current.value == api.context.value, name
        assert {event.device for event in runtime.events} == {runtime.device.ordinal}
    finally:
        runtime.driver.library.cuCtxPopCurrent_v2(None)
        runtime.driver.library.cuDevicePrimaryCtxRelease_v2(6)


def test_each_device_has_its_own_residents_and_refuses_the_others_arrays(runtime: Any) -> None:
    world = World()
    with registered("second", ordinal=4) as second:
        ours, theirs = (hf.ising_rerank(world.lists[0], world.graph, backend=name) for name in (SIMT, "second"))
        assert_same(theirs, ours)
        assert {event.device for event in runtime.events} == {runtime.device.ordinal, 4}
        array = second.device.upload(world.weights)
        with refused(InputError, "conflict", None, given=runtime.device.ordinal, allowed=4):
            hf.boost_weights(array, on_device(world.lists[0]), 2.0)
        with pytest.raises(TypeError):
            boost(runtime, weights=array)


# ---- Threads ---------------------------------------------------------------------------------------------------------


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run ``work`` of each number in a thread of its own, all at once; raise what one of them raised."""
    barrier, raised = threading.Barrier(count), list[BaseException]()

    def run(number: int) -> None:
        try:
            barrier.wait()
            work(number)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def test_threads_call_one_device_at_once(runtime: Any) -> None:
    world = World()
    expected = {name: call(world, same) for name, call in CALLS.items()}

    def work(number: int) -> None:
        for name in [*CALLS][number::-1] + [*CALLS][number + 1 :]:
            assert_same(CALLS[name](world, same), expected[name])

    in_threads(4, work)


def test_the_first_use_by_many_threads_makes_one_copy(runtime: Any) -> None:
    once, many = World(1), World(1)
    count = lambda: int(runtime.driver.calls("cuMemAlloc_v2"))  # noqa: E731
    before = count()
    dice(once), CALLS["ising"](once, same), CALLS["cover"](once, same)
    needed, before = count() - before, count()
    found: list[Any] = []

    def work(number: int) -> None:
        dice(many), CALLS["ising"](many, same), CALLS["cover"](many, same)
        found.append([value for held in (many.labels, many.graph, many.mentions) for value in held.derived.values()])

    in_threads(6, work)
    assert count() - before == needed > 0
    assert all(len(one) == len(found[0]) and all(map(_is, one, found[0])) for one in found)


def _is(one: Any, other: Any) -> bool:
    return one is other


# ---- Refusals --------------------------------------------------------------------------------------------------------


def boost(runtime: Any, **more: Any) -> Any:
    """Call the native operation with valid operands, but for ``more``."""
    hits = World().lists[0]
    given = {"weights": World().weights, "ids": hits.ids, "scores": hits.scores, "counts": hits.counts}
    return _native.device_boost_weights(
        runtime.device.queue(), **{**given, "strength": 1.0, "on_device": False, **more}
    )["weights"]


@pytest.mark.parametrize(
    "more",
    [
        {"weights": World().weights.astype(np.float64)},
        {"weights": World().weights[0]},
        {"weights": World().weights.T},
        {"weights": World().weights.byteswap().view(World().weights.dtype.newbyteorder())},
        {"ids": World().lists[0].ids.astype(np.int32)},
        {"scores": None},
        {"counts": [1, 2, 3]},
    ],
    ids=["dtype", "rank", "order", "byte order", "integers", "none", "a list"],
)
def test_operands_of_another_kind_are_refused(runtime: Any, more: dict[str, Any]) -> None:
    with pytest.raises((TypeError, BufferError, ValueError)):
        boost(runtime, **more)
    boost(runtime)


@pytest.mark.parametrize("where", ["cpu", SIMT])
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"option": {"bias": np.zeros(3, np.float32)}}, ValueError),
        ({"option": {"by_holders": np.zeros(2, np.float32)}}, ValueError),
        ({"calibration_option": {"lower": np.zeros(1, np.float32)}}, ValueError),
        ({"option": {"bais": np.zeros(2, np.float32)}}, TypeError),
    ],
    ids=["bias", "by_holders", "lower", "name"],
)
def test_options_of_another_size_or_name_are_refused(runtime: Any, where: str, options: Any, error: Any) -> None:
    """Kernels would read beyond them."""
    lists, numbers = World().lists, (_native.fusion_methods(), _native.calibrations(), _native.ties())
    given = {
        "pools": np.array([9, 9]), "method": numbers[0]["max"], "calibration": numbers[1]["none"],
        "ties": numbers[2]["mean"], "calibration_option": {}, "option": {"bias": np.zeros(2, np.float32)},
        "weights": np.ones(2, np.float32), "consensus": 0.0, "prior": np.zeros(0, np.float32), **options,
    }  # fmt: skip
    parts = [(one.ids, one.scores, one.counts) for one in lists]
    if where == SIMT:
        with pytest.raises(error):
            _native.device_fuse(runtime.device.queue(), parts, **given, k=3, on_device=False)
        return
    out = {"out_ids": np.empty((BATCH, 3), np.int64), "out_scores": np.empty((BATCH, 3), np.float32)}
    columns = [list(column) for column in zip(*parts, strict=True)]
    with pytest.raises(error):
        _native.fuse(*columns, **given, weights_shared=True, threads=1, **out, out_counts=np.empty(BATCH, np.int64))


def test_lists_in_two_places_are_refused(runtime: Any) -> None:
    one, other = World().lists
    with refused(InputError, "conflict", "lists[1].ids"):
        hf.fuse([on_device(one), other])


def test_a_refused_query_leaves_the_device_as_it_was(runtime: Any) -> None:
    world = World()
    bad = hf.Hits.unchecked(world.lists[0].ids + NODES, world.lists[0].scores, np.maximum(world.lists[0].counts, 1))
    for _ in range(3):
        with refused(InputError, "unknown", "hits[0]"):
            hf.cover_seeds(on_device(bad), on_device(world.seeds), world.mentions)
    assert_same(on_host(CALLS["cover"](world, on_device)), CALLS["cover"](world, same))


def test_a_call_without_room_says_what_it_asked_for_and_can_be_made_later(runtime: Any) -> None:
    lists = random_lists(np.random.default_rng(5), 64, 2, width=200, ids=400)
    with registered("small", ordinal=7) as small:
        hf.fuse(World().lists, backend="small")
        small.simt.memory = small.simt.used + (1 << 16)
        with refused(DeviceMemoryError, "memory") as caught:
            hf.fuse(lists, backend="small")
        assert caught.value.values["asked"] > caught.value.values["free"]
        small.simt.memory = 1 << 30
        assert_same(hf.fuse(lists, backend="small"), hf.fuse(lists, backend="cpu"))
