"""Arrays of other libraries on a device: fakes of the interfaces of numba and JAX, and torch and CuPy by name.

The producers of this file queue work by the driver's own entry points, on streams of their own. The emulated driver
reports a race for two accesses that no stream, event or wait orders.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise
from emulated_device import SimtRuntime, driver
from hopfuse import _native
from hopfuse.errors import InputError
from refusals import refused
from variants import missing, registered

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.skipif(missing("simt") is not None, reason=str(missing("simt"))),
]
ORDINAL, DIM = 6, 12


@pytest.fixture(scope="module")
def emulated() -> Iterator[SimtRuntime]:
    with registered("others", ordinal=ORDINAL) as runtime:
        yield runtime


@pytest.fixture
def runtime(emulated: SimtRuntime) -> Iterator[SimtRuntime]:
    emulated.driver.finish()
    emulated.driver.clear()
    yield emulated
    gc.collect()
    emulated.driver.finish()
    assert not emulated.findings


class Memory:
    """An array that another library has allocated, and fills by work that is pending on a stream of its own."""

    def __init__(self, values: np.ndarray[Any, Any], ordinal: int = ORDINAL) -> None:
        self.shape, self.dtype, self.nbytes = values.shape, values.dtype, values.nbytes
        self.ordinal, self._stream = ordinal, ctypes.c_void_p()
        memory, pinned = ctypes.c_uint64(), ctypes.c_void_p()
        size, call = ctypes.c_size_t(values.nbytes), driver().call
        with self._current():
            call("cuStreamCreate", ctypes.byref(self._stream), 1)
            call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(max(1, values.nbytes)))
            call("cuMemHostAlloc", ctypes.byref(pinned), ctypes.c_size_t(max(1, values.nbytes)), 0)
            ctypes.memmove(pinned.value or 0, values.ctypes.data, values.nbytes)
            if values.nbytes:
                call("cuMemcpyHtoDAsync_v2", memory, pinned, size, self._stream)
        self.address = int(memory.value or 0)

    @property
    def stream(self) -> int:
        return int(self._stream.value or 0)

    def overwrite(self) -> None:
        """Queue work that changes every byte, after what its stream has now."""
        with self._current():
            size = ctypes.c_size_t(self.nbytes)
            driver().call("cuMemsetD8Async", ctypes.c_uint64(self.address), 255, size, self._stream)

    def wait(self) -> None:
        """Wait for what is pending."""
        with self._current():
            driver().call("cuStreamSynchronize", self._stream)

    @contextmanager
    def _current(self) -> Iterator[None]:
        context = ctypes.c_void_p()
        driver().call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.ordinal)
        driver().call("cuCtxPushCurrent_v2", context)
        try:
            yield
        finally:
            driver().call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


class _Array:
    """What arrays of all libraries have."""

    memory: Memory

    @property
    def shape(self) -> tuple[int, ...]:
        return self.memory.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.memory.dtype


class NumbaArray(_Array):
    """A fake of the interface of numba.cuda's arrays: version 3 of ``__cuda_array_interface__``, with a stream."""

    def __init__(self, values: Any, ordinal: int = ORDINAL, **changed: Any) -> None:
        self.memory, self.changed = Memory(np.ascontiguousarray(values), ordinal), changed

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        memory = self.memory
        return {
            "version": 3,
            "shape": memory.shape,
            "typestr": memory.dtype.str,
            "data": (memory.address, False),
            "strides": None,
            "stream": memory.stream,
        } | self.changed


class JaxArray(_Array):
    """A fake of the interface of JAX's arrays: DLPack alone, ordered by the producer after the consumer's stream."""

    def __init__(self, values: Any, *, versioned: bool = True) -> None:
        self.memory, self.versioned = Memory(np.ascontiguousarray(values)), versioned
        self.asked: list[Any] = []
        self.dropped: list[bool] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.memory.ordinal

    def __dlpack__(self, *, stream: int | None = None, **more: Any) -> Any:
        if more and not self.versioned:
            raise TypeError("an unexpected keyword argument")
        self.asked.append(stream)
        memory = self.memory
        runtime = emulated_runtime[0]
        held = _Held(self.dropped, memory)
        array = _native.device_array_over(
            runtime.device, memory.address, memory.shape, memory.dtype, held, memory.stream, None, False
        )
        return array.__dlpack__(stream=stream, **more)

    def __array_namespace__(self) -> type[JaxNumpy]:
        return JaxNumpy


class JaxNumpy:
    """A fake of ``jax.numpy``, whose arrays import by DLPack."""

    @staticmethod
    def from_dlpack(array: Any) -> tuple[str, Any]:
        return "jax", array


class _Held:
    """What a library keeps while a consumer has its memory."""

    def __init__(self, dropped: list[bool], memory: Memory) -> None:
        self.dropped, self.memory = dropped, memory

    def __del__(self) -> None:
        self.dropped.append(True)


emulated_runtime: list[SimtRuntime] = []


@pytest.fixture(autouse=True)
def runtime_of_producers(runtime: SimtRuntime) -> None:
    emulated_runtime[:] = [runtime]


@pytest.fixture
def corpus() -> hf.Corpus:
    return hf.Corpus.from_array(np.random.default_rng(3).standard_normal((150, DIM)).astype(np.float32))


def vectors(batch: int = 5) -> np.ndarray[Any, Any]:
    return np.random.default_rng(batch).standard_normal((batch, DIM)).astype(np.float32)


def lists(count: int) -> list[hf.Hits]:
    rng = np.random.default_rng(count)
    scores = -np.sort(-rng.random((count, 4, 6)).astype(np.float32), axis=2)
    return [hf.Hits(np.stack([rng.permutation(20)[:6] for _ in range(4)]), one) for one in scores]


def given_to(library: Callable[..., Any], hits: hf.Hits) -> hf.Hits:
    return hf.Hits.unchecked(library(hits.ids), library(hits.scores), library(hits.counts))


# ---- In ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", [NumbaArray, JaxArray, lambda x: JaxArray(x, versioned=False)])
def test_queries_are_read_where_they_are(runtime: SimtRuntime, corpus: hf.Corpus, library: Any) -> None:
    hf.dense_topk(vectors(), corpus, 4, backend="others")  # the corpus is there
    given = library(vectors())
    runtime.driver.finish()
    runtime.driver.clear()
    found = hf.dense_topk(given, corpus, 4, backend="others")
    assert not [event for event in runtime.events if event.kind == "upload"]
    ids = found.ids[1] if isinstance(found.ids, tuple) else found.ids
    assert_bitwise(ids.to_numpy(), hf.dense_topk(vectors(), corpus, 4, backend="cpu").ids, "ids")


@pytest.mark.parametrize("library", [NumbaArray, JaxArray])
def test_the_streams_of_all_arguments_are_waited_for(runtime: SimtRuntime, library: Any) -> None:
    """Every array is filled on a stream of its own, and written again there as soon as the call is queued."""
    expected = hf.fuse(lists(3), k=5, backend="cpu")
    given = [given_to(library, hits) for hits in lists(3)]
    found = hf.fuse(given, k=5, backend="others")
    for hits in given:
        for array in vars(hits).values():
            if library is NumbaArray:
                array.memory.overwrite()
    ids = found.ids[1] if library is JaxArray else found.ids
    assert_bitwise(ids.to_numpy(), expected.ids, "ids")
    runtime.driver.finish()
    assert not runtime.findings


def test_what_is_imported_by_dlpack_is_kept_until_it_was_read(runtime: SimtRuntime, corpus: hf.Corpus) -> None:
    hf.dense_topk(vectors(), corpus, 4, backend="others")
    given = JaxArray(vectors())
    weights = hf.similarity_weights(given, corpus, backend="others")
    del weights
    gc.collect()
    before = list(given.dropped)
    runtime.driver.finish()
    hf.dense_topk(vectors(), corpus, 4, backend="others")  # a later call lets go of what is over
    assert (before, given.dropped) == ([], [True])


def test_a_producer_is_told_of_the_stream_that_will_read(runtime: SimtRuntime, corpus: hf.Corpus) -> None:
    given = JaxArray(vectors())
    hf.dense_topk(given, corpus, 4, backend="others")
    assert given.asked == [1]  # the legacy default stream, since the library names no other


def test_scores_are_written_into_the_callers_array(runtime: SimtRuntime) -> None:
    graph = hf.Graph.from_edges([0, 1, 2], [1, 2, 3])
    seeds = hf.Seeds.unchecked(NumbaArray(np.array([[0, 1]])), NumbaArray(np.array([[1.0, 2.0]])))
    out = NumbaArray(np.zeros((1, 4), np.float32))
    hf.ppr(graph, seeds, out=out, backend="others")
    runtime.driver.finish()
    expected = hf.ppr(graph, [{0: 1.0, 1: 2.0}], backend="cpu").scores
    assert_bitwise(runtime.driver.peek(out.memory.address, (1, 4), np.float32), expected, "scores")


def with_strides(values: Any) -> NumbaArray:
    return NumbaArray(values, strides=(4, 20), shape=(5, DIM))


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (lambda: NumbaArray(vectors(), mask=np.ones(3)), "unsupported"),
        (lambda: with_strides(vectors()), "shape"),
        (lambda: NumbaArray(vectors(), ordinal=ORDINAL + 1), "conflict"),
    ],
    ids=["a mask", "strides", "another device"],
)
def test_arrays_that_cannot_be_read_are_refused(
    runtime: SimtRuntime, corpus: hf.Corpus, given: Callable[[], Any], code: str
) -> None:
    with refused(InputError, code):
        hf.dense_topk(given(), corpus, 4, backend="others")


def test_arrays_of_unknown_devices_are_refused(runtime: SimtRuntime, corpus: hf.Corpus) -> None:
    class OnRocm(JaxArray):
        def __dlpack_device__(self) -> tuple[int, int]:
            return 10, 0

    class Recorded(JaxArray):
        def __dlpack__(self, **asked: Any) -> Any:
            raise BufferError("it records gradients")

    for kind in (OnRocm, Recorded):
        with refused(InputError, "type"):
            hf.dense_topk(kind(vectors()), corpus, 4, backend="others")


def test_an_array_without_elements_has_no_address(runtime: SimtRuntime, corpus: hf.Corpus) -> None:
    given = NumbaArray(np.zeros((0, DIM), np.float32), data=(0, False))
    assert hf.dense_topk(given, corpus, 4, backend="others").ids.shape == (0, 4)


# ---- Out -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def array(runtime: SimtRuntime) -> _native.DeviceArray:
    return runtime.device.upload(np.arange(24, dtype=np.float32).reshape(2, 3, 4))


def capsule_name(capsule: Any) -> str:
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return str(name(capsule).decode())


@pytest.mark.parametrize(
    ("version", "name"), [(None, "dltensor"), ((0, 8), "dltensor"), ((1, 0), "dltensor_versioned")]
)
def test_a_result_is_exported_by_dlpack(runtime: SimtRuntime, array: Any, version: Any, name: str) -> None:
    queue = runtime.device.queue()
    capsule = array.__dlpack__(max_version=version, stream=queue.stream)
    assert capsule_name(capsule) == name
    assert array.__dlpack_device__() == (2, ORDINAL)
    made, strides = _native.device_array_of_capsule(runtime.device, capsule, queue)
    assert capsule_name(capsule) == f"used_{name}"
    assert (made.shape, made.dtype, strides, made.address) == ((2, 3, 4), np.float32, (12, 4, 1), array.address)
    used = runtime.device.used_bytes()
    del array
    assert runtime.device.used_bytes() == used  # the consumer has it
    assert_bitwise(made.to_numpy(), np.arange(24, dtype=np.float32).reshape(2, 3, 4), "values")


def test_a_capsule_that_nobody_takes_lets_go_of_its_array(runtime: SimtRuntime) -> None:
    before = runtime.device.used_bytes()
    capsule = runtime.device.empty(100, np.int8).__dlpack__()
    assert runtime.device.used_bytes() > before
    del capsule
    assert runtime.device.used_bytes() == before


def test_an_export_is_ordered_for_the_consumers_stream(runtime: SimtRuntime, corpus: hf.Corpus) -> None:
    """The consumer overwrites the result on its own stream: a race, unless it waits for what is pending."""
    consumer = Memory(np.zeros(4, np.float32))
    found = hf.dense_topk(NumbaArray(vectors()), corpus, 4, backend="others").scores
    found.__dlpack__(stream=consumer.stream)
    consumer.address, consumer.nbytes = found.address, found.nbytes
    consumer.overwrite()
    consumer.wait()
    for stream in (None, -1, 1, 2):
        found.__dlpack__(stream=stream)
    for stream in (0, -2):
        with pytest.raises(ValueError, match="stream"):
            found.__dlpack__(stream=stream)


def test_an_export_elsewhere_or_as_a_copy_is_refused(array: Any) -> None:
    for asked in ({"dl_device": (1, 0)}, {"dl_device": (2, ORDINAL + 1)}, {"copy": True}):
        with pytest.raises(BufferError):
            array.__dlpack__(**asked)
    array.__dlpack__(dl_device=(2, ORDINAL), copy=False)
    with pytest.raises((BufferError, RuntimeError)):
        np.from_dlpack(array)


def test_its_interface_names_the_stream_of_pending_work(runtime: SimtRuntime, array: Any, corpus: hf.Corpus) -> None:
    found = hf.dense_topk(NumbaArray(vectors()), corpus, 4, backend="others").scores
    interface = found.__cuda_array_interface__
    assert interface["stream"] == found.stream
    assert {**interface, "stream": None} == {
        "version": 3, "shape": (5, 4), "typestr": "<f4", "data": (found.address, False), "strides": None,
        "stream": None,
    }  # fmt: skip
    again = runtime.adopt(NumbaArray(vectors(), **interface))
    assert again.address == found.address


def test_results_come_in_the_library_of_the_queries(runtime: SimtRuntime, corpus: hf.Corpus) -> None:
    of_jax, of_numba = (hf.dense_topk(kind(vectors()), corpus, 4, backend="others") for kind in (JaxArray, NumbaArray))
    assert of_jax.ids[0] == of_jax.scores[0] == of_jax.counts[0] == "jax"
    assert isinstance(of_numba.ids, _native.DeviceArray)


def test_nothing_is_copied_to_the_host_unasked(array: Any) -> None:
    for convert in (np.asarray, np.array, lambda x: x + 1, list):
        with pytest.raises(TypeError):
            convert(np.ma.asarray(array) if convert is list else array)
    assert_bitwise(array.to_numpy(), np.arange(24, dtype=np.float32).reshape(2, 3, 4), "values")


def test_views_share_the_memory(array: Any) -> None:
    host = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for view, expected in (
        (array[1], host[1]),
        (array[-1], host[-1]),
        (array[1:], host[1:]),
        (array[0:5], host[0:5]),
        (array[2:], host[2:]),
        (array.reshape(4, 6), host.reshape(4, 6)),
        (array.reshape((-1, 2)), host.reshape(-1, 2)),
        (array.view(np.uint8), host.view(np.uint8)),
        (array.view(np.float64), host.view(np.float64)),
        (array[1][2].reshape(2, 2).view(np.int32), host[1][2].reshape(2, 2).view(np.int32)),
    ):
        assert (view.shape, view.dtype, view.size, view.nbytes, view.ndim) == (
            expected.shape, expected.dtype, expected.size, expected.nbytes, expected.ndim,
        )  # fmt: skip
        assert_bitwise(view.to_numpy(), expected, "a view")
    assert len(array) == 2
    assert repr(array) == f"DeviceArray(shape=(2, 3, 4), dtype=float32, device={ORDINAL})"
    for wrong in (
        lambda: array[2],
        lambda: array[0:2:2],
        lambda: array.reshape(5, 5),
        lambda: array.reshape(-1, -3),
        lambda: array[0][0][:3].view(np.float64),
        lambda: array.view("U3"),
    ):
        with pytest.raises((IndexError, ValueError, TypeError)):
            wrong()


# ---- The real libraries, as far as they go without a device ----------------------------------------------------------


def test_torch_has_what_is_asked_of_it() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(3)
    assert tensor.is_cuda is False
    assert tensor.__dlpack_device__()[0] == 1
    assert callable(torch.from_dlpack)
    assert callable(torch.cuda.current_stream)
    expected = hf.dense_topk(vectors(), vectors(9), 2).ids
    assert_bitwise(hf.dense_topk(torch.from_numpy(vectors()), vectors(9), 2).ids.numpy(), expected, "ids")


def test_cupy_has_what_is_asked_of_it() -> None:
    cupy = pytest.importorskip("cupy")
    assert callable(cupy.from_dlpack)
    assert {"__dlpack__", "__dlpack_device__", "__cuda_array_interface__"} <= set(dir(cupy.ndarray))
