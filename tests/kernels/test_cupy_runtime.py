"""The CuPy runtime on a CuPy that lives on the host: every op and the self-test through it, captures, other arrays."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from fake_cupy import Device, FakeCupy, OutOfMemoryError, Stream, current_stream
from hopfuse import _native, backends
from hopfuse.backends import selftest
from hopfuse.backends.cuda import DeviceOps
from hopfuse.backends.cuda.arguments import CALIBRATION
from hopfuse.backends.cuda.cupy_runtime import CupyRuntime
from hopfuse.backends.cuda.cupy_staging import STAGED_BYTES
from hopfuse.backends.cuda.kernel_sources import find_sources
from hopfuse.errors import BackendError, DeviceMemoryError, InputError
from host_runtime import DEVICE, make_runtime
from refusals import refused
from variants import SIMT, missing, simt_runtime

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.skipif(missing(SIMT) is not None, reason=str(missing(SIMT))),
]


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> FakeCupy:
    fake = FakeCupy(simt_runtime().module)
    monkeypatch.setitem(sys.modules, "cupy", fake)  # type: ignore[arg-type]
    return fake


@pytest.fixture
def runtime(cupy: FakeCupy, tmp_path: Path) -> Any:
    return make_runtime(CupyRuntime, simt_runtime().module, tmp_path)


@contextmanager
def on(stream: Stream) -> Iterator[Stream]:
    """The stream is current on the runtime's device, whichever device is."""
    with Device(DEVICE):
        stream.__enter__()
    try:
        yield stream
    finally:
        stream.__exit__()


def new_stream() -> Stream:
    with Device(DEVICE):
        return Stream()


def stream_now() -> Stream:
    """What is current on the runtime's device."""
    with Device(DEVICE):
        return current_stream()


# ---- Whole ops -------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_the_self_test_passes_and_launches_every_kernel(runtime: Any, cupy: FakeCupy) -> None:
    checks = selftest.run(DeviceOps(runtime), rounds=1)
    assert [check for check in checks if not check.equal] == []
    assert set(cupy.launches) == set(simt_runtime().module.kernels)
    assert len(cupy.loaded) == len(find_sources().units)


def test_explain_says_what_runs_and_where_kernels_came_from(runtime: Any, tmp_path: Path) -> None:
    assert runtime.explain()["kernels"] == {}
    device = DeviceOps(runtime)
    assert selftest.difference(device) is None
    assert json.loads(json.dumps(device.explain())) == device.explain()  # as a report has it
    report = runtime.explain()
    assert report["device"] == "A host in disguise"
    assert (report["compute_capability"], report["driver"], report["runtime"]) == ("9.0", "CUDA 13.1", "CUDA 13.2")
    assert report["kernels"]["topk.cu"] == "compiled by NVRTC 0.0"
    assert report["kernel_cache"] == str(tmp_path)


def test_launches_are_timed_by_events_outside_recordings(runtime: Any, cupy: FakeCupy) -> None:
    with on(new_stream()), runtime.timed() as times:
        recording, _ = runtime.capture(lambda: launch_calibrate(runtime))  # one run before it is recorded
        recording.replay()
        calibrate(runtime)
    calibrate(runtime)
    assert cupy.launches == 4 * ["calibrate_f32"]
    assert [launch.kernel for launch in times] == 2 * ["calibrate_f32"]
    assert all(launch.seconds > 0 for launch in times)


def test_an_event_has_no_time_before_it_passes_nor_in_a_recording(runtime: Any, cupy: FakeCupy) -> None:
    with Device(DEVICE), Stream(non_blocking=True) as stream:
        begin, end = stream.record(), stream.record()
        with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="NotReady"):
            cupy.cuda.get_elapsed_time(begin, end)
        end.synchronize()
        assert cupy.cuda.get_elapsed_time(begin, end) >= 0
        stream.begin_capture()
        recorded = stream.record()
        stream.end_capture()
        with pytest.raises(cupy.cuda.runtime.CUDARuntimeError):
            cupy.cuda.get_elapsed_time(begin, recorded)


def test_a_file_is_loaded_when_a_kernel_of_it_is_first_launched(runtime: Any, cupy: FakeCupy) -> None:
    assert calibrate(runtime) == [1.0, 0.5]
    assert [*runtime.explain()["kernels"]] == ["fuse_f32.cu"]
    assert calibrate(runtime) == [1.0, 0.5]
    assert len(cupy.loaded) == 1
    with refused(BackendError, "unavailable", kernel="nothing"):
        runtime.launch("nothing", 1, 1, [])


def test_one_line_says_that_kernels_are_compiled_and_none_that_they_are_not(
    runtime: Any, cupy: FakeCupy, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert calibrate(runtime) == [1.0, 0.5]
    count, folder = len(find_sources().units), runtime.code.cache.folder
    said = f"hopfuse: compiling {count} CUDA kernel files for sm_90 on first use; the results are cached in {folder}\n"
    assert capsys.readouterr() == ("", said)
    selftest.difference(DeviceOps(runtime))
    again = make_runtime(CupyRuntime, simt_runtime().module, tmp_path)
    assert calibrate(again) == [1.0, 0.5]
    assert capsys.readouterr() == ("", "")
    assert again.explain()["kernels"]["fuse_f32.cu"].startswith("cache ")


@pytest.mark.parametrize("refused", [True, False])
def test_prebuilt_code_that_the_driver_refuses_is_compiled(
    runtime: Any, cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    (unit,) = (unit for unit in find_sources().units if unit.name == "fuse_f32.cu")
    prebuilt = runtime.code.compiled(unit)._replace(image=b"prebuilt", origin="prebuilt by the package")
    monkeypatch.setattr(runtime.code, "prebuilt", lambda unit: prebuilt)
    cupy.refuse_prebuilt = refused
    assert calibrate(runtime) == [1.0, 0.5]
    origin = runtime.explain()["kernels"]["fuse_f32.cu"]
    assert ("the driver refused prebuilt by the package" in origin) == refused
    assert (cupy.loaded == [b"prebuilt"]) == (not refused)


@pytest.mark.parametrize("is_prebuilt", [True, False])
def test_kernels_that_find_no_room_are_loaded_once_there_is_some(
    runtime: Any, cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch, is_prebuilt: bool
) -> None:
    if is_prebuilt:
        (unit,) = (unit for unit in find_sources().units if unit.name == "fuse_f32.cu")
        prebuilt = runtime.code.compiled(unit)._replace(image=b"prebuilt", origin="prebuilt by the package")
        monkeypatch.setattr(runtime.code, "prebuilt", lambda unit: prebuilt)
    cupy.is_full = True
    with refused(DeviceMemoryError, "memory"):
        calibrate(runtime)
    cupy.is_full = False
    assert calibrate(runtime) == [1.0, 0.5]


def test_arguments_are_numpys_own_types(runtime: Any) -> None:
    for wrong in (8, 8.0, True, np.zeros(3)):
        with pytest.raises(TypeError, match="must be a device array, NumPy scalar, Arguments or None"):
            runtime.launch("calibrate_f32", 1, 128, [wrong])


def test_much_shared_memory_is_asked_for_once(runtime: Any, cupy: FakeCupy) -> None:
    for shared in (1024, 48 * 1024, 64 * 1024, 50 * 1024, 64 * 1024, 96 * 1024):
        runtime._modules.function("calibrate_f32", shared)
    assert cupy.prepared == [(8, 64 * 1024), (8, 96 * 1024)]


def launch_calibrate(runtime: Any) -> Any:
    """One launch of one kernel: a list of two scores by their maximum."""
    scores, counts = runtime.upload(np.array([[4.0, 2.0]], np.float32)), runtime.upload(np.array([2]))
    out, kind = runtime.empty((1, 2), np.float32), _native.calibrations()["max"]
    numbers = {"single": math.nan, "equal": math.nan, "temperature": 1.0}
    rule = CALIBRATION(method=kind, ties=0, **numbers, lower=None, upper=None)
    runtime.launch("calibrate_f32", 1, 128, [np.int64(1), np.int64(2), scores, counts, rule, out])
    return out


def calibrate(runtime: Any) -> list[float]:
    """The same, read back."""
    return list(runtime.download(launch_calibrate(runtime))[0].tolist())


# ---- Memory ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [0, 5, (3, 4), (0, 7), (2, 3, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int64])
def test_uploaded_arrays_are_downloaded_unchanged(runtime: Any, shape: Any, dtype: Any) -> None:
    array = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    device = runtime.upload(array)
    assert (device.shape, device.dtype) == (array.shape, array.dtype)
    np.testing.assert_array_equal(runtime.download(device), array, strict=True)
    assert not runtime.download(runtime.zeros(shape, dtype)).any()
    twin = runtime.empty(shape, dtype)
    runtime.copy(twin, device)
    np.testing.assert_array_equal(runtime.download(twin), array)


def test_pinned_memory_is_copied_without_waiting_and_only_large_arrays_are_uploaded_with(
    runtime: Any, cupy: FakeCupy
) -> None:
    host = runtime.pinned(64)
    host[:] = np.arange(64)
    device = runtime.empty(64, np.uint8)
    before = cupy.runtime.waits
    runtime.copy(device, host)
    again = runtime.upload(host)
    assert cupy.runtime.waits == before
    large = runtime.upload(np.full(STAGED_BYTES + 1, 7, np.uint8))
    assert cupy.runtime.waits == before + 1
    assert runtime.download(again).tolist() == runtime.download(device).tolist() == list(range(64))
    assert (runtime.download(large) == 7).all()
    assert runtime.pinned(0).size == 0


def test_arrays_of_one_block_come_down_in_one_copy(runtime: Any, cupy: FakeCupy) -> None:
    given = [np.arange(3), np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((0, 4)), np.array([9], np.uint8)]
    before = cupy.runtime.waits
    there = runtime.upload_all(given)
    for found, array in zip(runtime.download_all(there), given, strict=True):
        np.testing.assert_array_equal(found, array, strict=True)
    assert cupy.runtime.waits == before + 1
    apart = [there[0], runtime.upload(np.array([5.0]))]
    assert [array.tolist() for array in runtime.download_all(apart)] == [[0, 1, 2], [5.0]]
    assert cupy.runtime.waits == before + 3
    twins = runtime.empty_all([((3,), np.int64), ((0,), np.int64), ((2, 3), np.float32)])
    for twin, array in zip([twins[0], twins[2]], there, strict=False):
        runtime.copy(twin, array)
    assert [array.tolist() for array in runtime.download_all(twins)] == [[0, 1, 2], [], [[0, 1, 2], [3, 4, 5]]]
    assert runtime.download_all([]) == runtime.upload_all([]) == []


def test_a_call_waits_for_the_device_only_to_read_from_it(
    runtime: Any, cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most: the limits of the passes, a look at the lanes after every four, the certificate and the results."""
    rng, device = np.random.default_rng(1), DeviceOps(runtime)
    src, dst = rng.integers(0, 60, (2, 200))
    vectors = rng.standard_normal((91, 8)).astype(np.float32)
    graph, corpus = hf.Graph.from_edges(src, dst), hf.Corpus.from_array(vectors[1:])
    hits = hf.Hits([[4, 2, 9]], [[3.0, 2.0, 1.0]])
    monkeypatch.setitem(backends._backends, "counted", device)
    calls = {
        "ppr": (lambda: hf.ppr(graph, [{3: 1.0}], backend="counted"), 7),
        "ppr_topk": (lambda: hf.ppr_topk(graph, [{3: 1.0}], 5, backend="counted"), 8),
        "dense_topk": (lambda: hf.dense_topk(vectors[:1], corpus, 5, backend="counted"), 1),
        "fuse": (lambda: hf.fuse([hits, hits], backend="counted"), 1),
    }
    for name, (call, most) in calls.items():
        call()  # uploads the graph or corpus
        before = cupy.runtime.waits
        call()
        assert cupy.runtime.waits - before <= most, name


def test_copies_of_other_sizes_are_refused(runtime: Any) -> None:
    with pytest.raises(ValueError, match="8 bytes into 4"):
        runtime.copy(runtime.empty(1, np.float32), np.zeros(1))


def test_an_out_of_memory_error_names_the_request_and_the_fix(runtime: Any, cupy: FakeCupy) -> None:
    cupy.pool.limit = 1000
    held = runtime.empty(600, np.uint8)
    with refused(BackendError, "memory", free=400) as caught:
        runtime.upload(np.zeros(1000))
    assert isinstance(caught.value.__cause__, OutOfMemoryError)
    assert runtime.free_bytes() == 400
    del held
    assert runtime.free_bytes() == 1000
    runtime.trim()
    with Device(DEVICE):
        assert cupy.pool.total_bytes() == 0


# ---- Captures --------------------------------------------------------------------------------------------------


def record_fill(runtime: Any, host: Any) -> tuple[Any, Any]:
    """Copies ``host`` into memory, a constant beside it, and something that the run drops before."""

    def work() -> Any:
        assert runtime.fixed
        dropped = runtime.upload(np.full(4, 9, np.uint8)), runtime.zeros(4, np.uint8)
        del dropped
        constant = runtime.upload(np.array([7, 7, 7, 7], np.uint8))
        scratch = runtime.zeros(4, np.uint8)
        runtime.copy(scratch, host)
        out = runtime.empty(8, np.uint8)
        runtime.copy(out[:4], scratch)
        runtime.copy(out[4:], constant)
        return out

    return runtime.capture(work)


def test_a_replay_reads_the_host_again_and_keeps_its_constants(runtime: Any, cupy: FakeCupy) -> None:
    host = runtime.pinned(4)
    recording, out = record_fill(runtime, host)
    assert not runtime.fixed
    for values in ([1, 2, 3, 4], [5, 6, 7, 8]):
        host[:] = values
        for _ in range(20):  # other work does not touch the recording's memory
            runtime.zeros(4, np.uint8), runtime.zeros(8, np.uint8)
        recording.replay()
        assert runtime.download(out).tolist() == [*values, 7, 7, 7, 7]


def test_the_recording_is_queued_on_the_callers_stream(runtime: Any) -> None:
    with on(new_stream()):
        recording, _ = record_fill(runtime, runtime.pinned(4))
    with on(new_stream()) as other:
        recording.replay()
    assert recording._graph.launched_on == [other]


@pytest.mark.parametrize("what", ["download", "pageable", "copy out"])
def test_nothing_is_read_back_inside_a_capture(runtime: Any, what: str) -> None:
    def work() -> None:
        array = runtime.zeros(4, np.uint8)
        if what == "download":
            runtime.download(array)
        elif what == "copy out":
            runtime.copy(np.empty(4, np.uint8), array)
        else:
            runtime.copy(array, np.zeros(4, np.uint8))

    with pytest.raises(RuntimeError, match="inside a capture"):
        runtime.capture(work)
    assert not runtime.fixed
    assert runtime.download(runtime.zeros(2, np.uint8)).tolist() == [0, 0]
    assert stream_now() is Stream.null


@pytest.mark.parametrize("what", ["more", "less", "other", "upload", "values"])
def test_the_recording_must_ask_for_what_the_run_before_it_did(runtime: Any, what: str) -> None:
    runs: list[int] = []

    def work() -> Any:
        runs.append(1)
        second = len(runs) == 2
        kept = [runtime.zeros(4, np.uint8)]
        if (what == "more" and second) or (what == "less" and not second):
            kept.append(runtime.zeros(4, np.uint8))
        if what == "other":
            kept.append(runtime.zeros(4 + second, np.uint8))
        if (what == "upload" and second) or what == "values":
            kept.append(runtime.upload(np.array([second])))
        return kept

    with pytest.raises(RuntimeError, match="than in the run before it"):
        runtime.capture(work)
    assert len(runs) == 2
    assert not runtime.fixed
    assert stream_now() is Stream.null


def test_a_capture_inside_a_capture_is_refused(runtime: Any) -> None:
    with pytest.raises(RuntimeError, match="captures cannot be nested"):
        runtime.capture(lambda: runtime.capture(lambda: None))
    assert not runtime.fixed


def test_results_outlive_the_recording(runtime: Any) -> None:
    recording, out = record_fill(runtime, runtime.pinned(4))
    recording.replay()
    del recording
    for _ in range(20):
        runtime.zeros(8, np.uint8)
    assert runtime.download(out)[4:].tolist() == [7, 7, 7, 7]


def test_resident_arrays_are_not_part_of_a_recording(runtime: Any, cupy: FakeCupy) -> None:
    kept: list[Any] = []

    def work() -> Any:
        if not kept:
            with runtime.resident():
                kept.append(runtime.upload(np.arange(4, dtype=np.uint8)))
        out = runtime.empty(4, np.uint8)
        runtime.copy(out, kept[0])
        return out

    recording, out = runtime.capture(work)
    with Device(DEVICE):
        assert cupy.pool.used_bytes() == 4
    recording.replay()
    assert runtime.download(out).tolist() == [0, 1, 2, 3]

    def late() -> None:
        with runtime.resident():
            pass

    with pytest.raises(RuntimeError, match="inside a capture"):
        runtime.capture(late)


def test_a_product_in_a_recording_has_a_workspace_of_its_own(runtime: Any) -> None:
    rng = np.random.default_rng(1)
    a, b = (runtime.upload(rng.standard_normal((rows, 5)).astype(np.float32)) for rows in (3, 4))
    out = runtime.empty((3, 4), np.float32)
    runtime.matmul(a, b, out)
    expected = runtime.download(a) @ runtime.download(b).T
    np.testing.assert_array_equal(runtime.download(out), expected)
    recording, made = runtime.capture(lambda: _product(runtime, a, b))
    recording.replay()
    np.testing.assert_array_equal(runtime.download(made), expected)
    first, *others = runtime.blas.workspaces
    assert first is None
    assert len(others) == 2
    assert others[0] == others[1] is not None


def _product(runtime: Any, a: Any, b: Any) -> Any:
    out = runtime.empty((3, 4), np.float32)
    runtime.matmul(a, b, out)
    return out


# ---- Other libraries' arrays -----------------------------------------------------------------------------------


class Interface:
    """An array of another library, by ``__cuda_array_interface__``."""

    def __init__(self, host: np.ndarray[Any, Any], **more: Any) -> None:
        given = host.__array_interface__
        fields = {"shape": host.shape, "typestr": given["typestr"], "data": given["data"], "version": 3}
        self.host, self.__cuda_array_interface__ = host, fields | {"strides": host.strides} | more


class OnlyDLPack:
    def __init__(self, kind: int, number: int = 0) -> None:
        self.place = kind, number

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.place


def test_arrays_on_a_device_are_known(runtime: Any) -> None:
    assert runtime.is_device_array(Interface(np.zeros(2)))
    assert runtime.is_device_array(OnlyDLPack(2))
    assert runtime.is_device_array(OnlyDLPack(13))
    for host in (np.zeros(2), [1, 2], None, OnlyDLPack(1), OnlyDLPack(3), 3.0, "text"):
        assert not runtime.is_device_array(host)


def test_an_array_is_adopted_without_a_copy(runtime: Any) -> None:
    host = np.arange(6, dtype=np.float32).reshape(2, 3)
    adopted = runtime.adopt(Interface(host))
    host[1, 2] = 99
    np.testing.assert_array_equal(runtime.download(adopted), host)
    own = runtime.upload(host)
    assert runtime.adopt(own) is own
    assert runtime.adopt(Interface(np.zeros((0, 3)), data=(0, False))).shape == (0, 3)


def test_an_array_that_cannot_be_adopted_is_an_error_with_the_fix(runtime: Any, cupy: FakeCupy) -> None:
    host = np.arange(6, dtype=np.float32).reshape(2, 3)
    with refused(InputError, "shape"):
        runtime.adopt(Interface(host.T))
    with refused(InputError, "unsupported"):
        runtime.adopt(Interface(host, mask=object()))
    cupy.runtime.devices[host.ctypes.data] = 3
    with refused(InputError, "conflict", given=3, allowed=1):
        runtime.adopt(Interface(host))
    with refused(InputError, "conflict", given=0):
        runtime.adopt(OnlyDLPack(2, 0))
    with refused(InputError, "type", where="on the DLPack device (10, 0)"):
        runtime.adopt(OnlyDLPack(10))
    with refused(InputError, "type", given="list"):
        runtime.adopt([1, 2])


def test_results_go_out_in_the_library_of_the_input(runtime: Any) -> None:
    made = runtime.zeros(3, np.float32)
    assert runtime.export(made, made) is made
    assert runtime.export(made, Interface(np.zeros(2))) is made
    assert runtime.export(made, np.zeros(2)) is made
    other = Interface(np.zeros(2))
    other.__array_namespace__ = lambda: SimpleNamespace(from_dlpack=lambda array: ("theirs", array))  # type: ignore[attr-defined]
    assert runtime.export(made, other) == ("theirs", made)


def test_torch_is_spoken_to_only_where_it_is_loaded(runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Tensor(Interface):
        device, is_cuda = "cuda:0", True

    torch = SimpleNamespace(
        Tensor=Tensor,
        from_dlpack=lambda array: ("tensor", array),
        cuda=SimpleNamespace(current_stream=lambda device: SimpleNamespace(cuda_stream=4711, device=device)),
    )
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    made, tensor = runtime.zeros(3, np.float32), Tensor(np.zeros(2), stream=None)
    assert runtime.export(made, tensor) is made
    assert "torch" not in sys.modules
    monkeypatch.setitem(sys.modules, "torch", torch)  # type: ignore[arg-type]
    assert runtime.export(made, tensor) == ("tensor", made)
    with runtime.on_stream_of(tensor):
        assert stream_now().ptr == 4711


@pytest.mark.parametrize(("stream", "expected"), [(None, 0), (1, 0), (2, 2), (77, 77)])
def test_work_is_queued_on_the_arrays_stream(runtime: Any, stream: int | None, expected: int) -> None:
    with runtime.on_stream_of(Interface(np.zeros(2), stream=stream)):
        assert stream_now().ptr == expected
    assert stream_now() is Stream.null
    with on(new_stream()) as mine:
        for nothing in (None, runtime.zeros(1, np.uint8), np.zeros(2), OnlyDLPack(2)):
            with runtime.on_stream_of(nothing):
                assert stream_now() is mine
