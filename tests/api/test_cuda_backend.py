"""The backend ``cuda`` where it cannot be used, and what ``auto`` makes of one that computes something else."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse import backends
from hopfuse.backends import cpu, selftest
from hopfuse.backends.cuda.found_device import SelfTestMark
from hopfuse.backends.cuda.kernel_cache import KernelCache
from hopfuse.backends.first_use import FirstUse
from hopfuse.errors import BackendError, DeviceMemoryError, InputError
from refusals import refused
from variants import SIMT, missing

NO_DEVICE = BackendError("unavailable", None, "no device")
ILLEGAL = BackendError("failed", None, "an illegal address")

WITHOUT_DRIVER = {"HOPFUSE_LIBCUDA": "/nowhere/libcuda.so.1"}
CALL = "h = hf.Hits([[1, 2]], [[2.0, 1.0]]); found = hf.calibrate(h, 'max'{}).scores.tolist()\n"


def python(code: str, **environment: str) -> Any:
    kept = {name: value for name, value in os.environ.items() if name != "HOPFUSE_BACKEND"}
    command = [sys.executable, "-W", "error", "-c", f"import json, sys\nimport hopfuse as hf\n{code}"]
    given = {**kept, **WITHOUT_DRIVER, **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=given, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def error_of(code: str, **environment: str) -> dict[str, Any]:
    """Return the BackendError that the code raises in a process of its own."""
    about = "{'code': error.code, 'field': error.field, 'values': error.values, 'said': str(error)}"
    code = f"try:\n    {code}\nexcept hf.errors.BackendError as error:\n    print(json.dumps({about}))"
    found: dict[str, Any] = python(code, **environment)
    return found


class Altered:
    """The CPU backend with one bit of the answers to one kind of call changed."""

    unusable = device = None

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.calls = 0

    def explain(self) -> dict[str, Any]:
        return {"device": "a wrong one"}

    def run(self, call: Any) -> Any:
        self.calls += 1
        answer = call.run_on_host()
        if type(call).__name__ != self.kind:
            return answer
        first = call.scores if self.kind == "PprCall" else answer[0] if self.kind == "PprTopkCall" else answer
        scores = first["scores"] if isinstance(first, dict) else first
        scores.reshape(-1).view(np.uint32)[0] ^= 1
        return answer


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Put a backend in the place of the GPU's."""
    monkeypatch.delenv("HOPFUSE_BACKEND", raising=False)
    monkeypatch.setattr(backends, "_backends", {"cpu": cpu})  # without the emulator, if another test has it

    def put(made: Any, impossible: BackendError | None = None) -> FirstUse[Any]:
        def make() -> Any:
            if isinstance(made, Exception):
                raise made
            return made

        first = FirstUse("cuda", lambda: impossible, make, selftest.difference)
        monkeypatch.setattr(backends, "_cuda", first)
        return first

    return put


def test_an_error_that_is_kept_keeps_nothing_of_its_call():
    """It would hold the frames of the first call, with its graph, until the program ends."""

    class Held:
        pass

    first = FirstUse("cuda", lambda: NO_DEVICE, Held, lambda _: None)

    def call() -> weakref.ref[Held]:
        held = Held()
        with refused(BackendError, "unavailable"):
            first.untested()
        return weakref.ref(held)

    left = call()
    gc.collect()
    assert left() is None


# ---- A machine without a driver, or with one that cannot be used ---------------------------------------------------


def test_auto_is_the_cpu_and_loads_no_device_code() -> None:
    code = CALL.format("") + (
        "loaded = [m for m in sys.modules if m.split('.')[0] in ('cupy', 'torch') or 'backends.cuda' in m]\n"
        "print(json.dumps([found, hf.backend_info()['auto'], loaded]))"
    )
    assert python(code) == [[[1.0, 0.5]], "cpu", []]


def test_cuda_by_name_says_what_is_missing() -> None:
    by_argument = error_of(CALL.format(", backend='cuda'").strip())
    assert (by_argument["code"], by_argument["field"]) == ("unavailable", "backend")
    assert "/nowhere/libcuda.so.1" in by_argument["values"]["said"]
    assert error_of(CALL.format("").strip(), HOPFUSE_BACKEND="cuda") == by_argument
    assert python("print(json.dumps(hf.backend_info()['backends']['cuda']))") == {"error": by_argument["said"]}
    assert error_of("hf.selftest()") == by_argument


DRIVERS = [
    ("driver.driver_version = 11080", "version", {"given": "11.8", "allowed": "12.0"}),
    ("driver.visible = 0", "unavailable", {}),
    ("driver.devices[0].capability = 70", "unavailable", {"id": 0, "given": 7.0, "allowed": 7.5}),
    ("driver.fail_next('cuInit', 803, count=0)", "unavailable", {}),
]


@pytest.mark.emulator
@pytest.mark.skipif(missing(SIMT) is not None, reason=str(missing(SIMT)))
@pytest.mark.parametrize(("setting", "code", "values"), DRIVERS, ids=[setting for setting, *_ in DRIVERS])
def test_a_driver_that_cannot_be_used_says_why(setting: str, code: str, values: dict[str, Any]) -> None:
    from hopfuse_simt.driver import SimtDriver

    driver = SimtDriver()
    folder = os.path.dirname(os.path.dirname(os.path.abspath(sys.modules["hopfuse_simt"].__file__ or "")))
    prepare = f"sys.path.insert(0, {folder!r})\nfrom hopfuse_simt.driver import SimtDriver\n"
    prepare += f"driver = SimtDriver()\n{setting}\n"
    asked = (
        "try:\n    hf.calibrate(hf.Hits([[1]], [[1.0]]), backend='cuda')\n"
        "except hf.errors.BackendError as error:\n    print(json.dumps([error.code, error.field, error.values]))\n"
    )
    found = python(prepare + asked, HOPFUSE_LIBCUDA=str(driver.path))
    assert found[:2] == [code, "backend"]
    assert values.items() <= found[2].items()
    assert python(prepare + "print(json.dumps(hf.backend_info()['auto']))", HOPFUSE_LIBCUDA=str(driver.path)) == "cpu"


def test_an_unknown_backend_is_told_of_cuda() -> None:
    with refused(InputError, "choice", "backend", given="rocm") as caught:
        hf.calibrate(hf.Hits([[1]], [[1.0]]), backend="rocm")
    assert {"auto", "cpu", "cuda"} <= set(caught.value.allowed.split(", "))


# ---- A device that is there ------------------------------------------------------------------------------------


def test_auto_takes_a_device_with_the_cpus_bits(use: Any) -> None:
    device = Altered("none")
    use(device)
    assert hf.backend_info()["auto"] == "cuda"
    assert hf.backend_info()["backends"]["cuda"] == {"device": "a wrong one", "error": None}
    tested = device.calls
    assert tested > 0
    hf.calibrate(hf.Hits([[1]], [[1.0]]))
    assert device.calls == tested + 1


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        ("ppr", "PprCall"),
        ("ppr_topk", "PprTopkCall"),
        ("dense_topk", "DenseCall"),
        ("calibrate", "CalibrateCall"),
        ("fuse", "FuseCall"),
        ("ising", "IsingCall"),
        ("project", "ProjectCall"),
        ("project_topk", "ProjectTopkCall"),
        ("similarity_weights", "SimilarityCall"),
    ],
)
def test_one_wrong_bit_makes_auto_take_the_cpu_with_a_warning(use: Any, op: str, kind: str) -> None:
    use(Altered(kind))
    hits = hf.Hits([[1, 2]], [[2.0, 1.0]])
    with pytest.warns(RuntimeWarning, match=rf"differ from the CPU's in .*{op}.*backend='auto' uses the CPU"):
        found = hf.calibrate(hits, "max")
    assert found.scores.tolist() == [[1.0, 0.5]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once in a process
        hf.calibrate(hits, "max")
        report = hf.backend_info()
    assert report["auto"] == "cpu"
    assert "differ from the CPU's" in report["backends"]["cuda"]["error"]
    assert report["backends"]["cuda"]["device"] == "a wrong one"
    with refused(BackendError, "failed", "backend", given="cuda") as caught:
        hf.calibrate(hits, "max", backend="cuda")
    assert op in caught.value.values["difference"]


def test_the_whole_self_test_counts_the_wrong_values(use: Any) -> None:
    use(Altered("FuseCall"))
    found = hf.selftest()
    assert not found.passed
    wrong = [check for check in found.checks if not check.equal]
    fused = [check.name for check in found.checks if check.name.startswith(("fuse", "search"))]
    assert [check.name for check in wrong] == fused
    assert {check.differing for check in wrong} == {1}


def test_an_unusable_device_raises_no_warning(use: Any, recwarn: pytest.WarningsRecorder) -> None:
    use(NO_DEVICE)
    assert hf.backend_info()["auto"] == "cpu"
    hf.calibrate(hf.Hits([[1]], [[1.0]]))
    assert not recwarn.list
    with refused(BackendError, "unavailable"):
        hf.calibrate(hf.Hits([[1]], [[1.0]]), backend="cuda")


@pytest.mark.parametrize("error", [ILLEGAL, TypeError("an illegal address")])
def test_a_kernel_that_fails_in_the_self_test_is_one_warning(use: Any, error: Exception) -> None:
    class Failing(Altered):
        def run(self, call: Any) -> Any:
            self.calls += 1
            raise error

    failing = Failing("none")
    use(failing)
    with pytest.warns(RuntimeWarning, match="its self-test failed: .*an illegal address") as caught:
        hf.calibrate(hf.Hits([[1]], [[1.0]]))
    assert len(caught) == 1
    hf.calibrate(hf.Hits([[1]], [[1.0]]))
    assert failing.calls == 1


def test_a_self_test_without_room_is_repeated_once_there_is_some(
    use: Any, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    class Full(Altered):
        full = True

        def run(self, call: Any) -> Any:
            if self.full:
                raise DeviceMemoryError("memory", None, "the device cannot allocate 24 bytes")
            return super().run(call)

    made = Full("none")
    first = use(made)
    hits = hf.Hits([[1]], [[1.0]])
    with refused(DeviceMemoryError, "memory"):
        hf.calibrate(hits, backend="cuda")
    for _ in range(2):  # the second does not ask the device
        hf.calibrate(hits)
    (warned,) = recwarn.list
    assert "cannot allocate 24 bytes. backend='auto' uses the CPU" in str(warned.message)
    monkeypatch.setattr(first, "_short_until", 0.0)
    made.full = False
    assert hf.calibrate(hits, backend="cuda").scores.shape == (1, 1)
    assert hf.backend_info()["auto"] == "cuda"


def test_a_broken_driver_is_a_reason_and_no_error(use: Any) -> None:
    use(OSError("libcuda.so.1: file too short"))
    hf.calibrate(hf.Hits([[1]], [[1.0]]))
    assert hf.backend_info()["backends"]["cuda"]["error"].endswith("OSError: libcuda.so.1: file too short")


def test_explain_tells_of_a_device_that_failed_since(use: Any) -> None:
    class Gone(Altered):
        def explain(self) -> dict[str, Any]:
            raise ILLEGAL

    use(Gone("none"))
    assert hf.backend_info()["backends"]["cuda"] == {"error": "an illegal address"}


def test_many_threads_make_and_test_it_once() -> None:
    """The first waits, as it makes it, until all have come."""
    made: list[object] = []
    tests: list[object] = []
    came, all_came = threading.Semaphore(0), 8

    def make() -> object:
        for _ in range(all_came):
            came.acquire()
        made.append(object())
        return made[-1]

    first = FirstUse("cuda", lambda: None, make, tests.append)
    found: list[object] = []

    def ask() -> None:
        came.release()
        found.append(first.tested())

    threads = [threading.Thread(target=ask) for _ in range(all_came)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), tests, set(found)) == (1, made, set(made))


# ---- A whole machine with GPUs, which are the emulator's -------------------------------------------------------------

on_machine = [pytest.mark.emulator, pytest.mark.skipif(missing(SIMT) is not None, reason=str(missing(SIMT)))]
SEARCH = """
import ctypes, warnings
import numpy as np
warnings.simplefilter("always")
vectors = np.eye(8, dtype=np.float32)
corpus = hf.Corpus.from_array(vectors)

def search(backend="auto"):
    return hf.dense_topk(vectors, corpus, 2, backend=backend).ids[:, 0].tolist()

def become_current(ordinal):
    cuda, context = ctypes.CDLL(os.environ["HOPFUSE_LIBCUDA"]), ctypes.c_void_p()
    for error in (
        cuda.cuInit(0),
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal),
        cuda.cuCtxPushCurrent_v2(context),
    ):
        assert not error

def contexts():
    cuda, number = ctypes.CDLL(os.environ["HOPFUSE_LIBCUDA"]), ctypes.c_int64()
    found = []
    for ordinal in range(8):
        cuda.simt_driver_get(ordinal, b"contexts", ctypes.byref(number))
        found.append(number.value)
    return found
"""


@pytest.fixture
def machine(tmp_path: Any) -> Callable[..., tuple[Any, str]]:
    """Run a program on a machine with eight GPUs; return what it prints, and its standard error."""
    from stand_in.machine import environment

    given = environment(tmp_path)

    def run(code: str, planted: str = "") -> tuple[Any, str]:
        (tmp_path / "sitecustomize.py").write_text(planted)
        path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
        command = [sys.executable, "-c", f"import json, os\nimport hopfuse as hf\n{SEARCH}\n{code}"]
        kept = {name: value for name, value in given.items() if name != "HOPFUSE_BACKEND"}
        done = subprocess.run(command, capture_output=True, text=True, env=kept | {"PYTHONPATH": path}, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), done.stderr

    return run


class TestOnAMachine:
    pytestmark = on_machine

    def test_the_first_use_compiles_and_tests_and_the_second_does_not(self, machine: Any) -> None:
        code = (
            "import hopfuse.backends.selftest_process as process\n"
            "ran, right = [], process._verdict\n"
            "process._verdict = lambda ordinal: ran.append(ordinal) or right(ordinal)\n"
            "print(json.dumps([search(), hf.backend_info()['auto'], ran]))"
        )
        assert machine(code)[0] == [list(range(8)), "cuda", [0]]
        assert machine(code)[0] == [list(range(8)), "cuda", []]

    @pytest.mark.parametrize(
        ("planted", "said"),
        [("hits['scores'][0, 0] += 1", "differ from the CPU's"), ("os.abort()", "was ended by the signal SIGABRT")],
        ids=["wrong", "crash"],
    )
    def test_a_device_that_fails_its_test_means_the_cpu(self, machine: Any, planted: str, said: str) -> None:
        wrong = (
            "import os\n"
            "from hopfuse.backends.calls.dense import DenseCall\n"
            "right = DenseCall.run_on_device\n"
            "def wrong(call, device):\n"
            "    hits = right(call, device)\n"
            "    if not call.on_device:\n"
            f"        {planted}\n"
            "    return hits\n"
            "DenseCall.run_on_device = wrong\n"
        )
        found, warned = machine("print(json.dumps([search(), hf.backend_info()['auto']]))", wrong)
        assert found == [list(range(8)), "cpu"]
        assert said in warned
        assert "backend='auto' uses the CPU" in warned

    @pytest.mark.full
    def test_host_arrays_go_to_the_device_that_is_current_on_the_thread(self, machine: Any) -> None:
        code = (
            "import threading\n"
            "answers, used = [search()], [contexts()]\n"
            "def on_another():\n"
            "    become_current(3)\n"
            "    answers.append(search('cuda'))\n"
            "    used.append(hf.backend_info()['backends']['cuda']['ordinal'])\n"
            "thread = threading.Thread(target=on_another)\n"
            "thread.start(), thread.join()\n"
            "answers.append(search())\n"
            "hf.free_device_memory(corpus)\n"
            "left = [key for key in corpus.derived if key.startswith('cuda')]\n"
            "print(json.dumps([answers, used, contexts(), left]))"
        )
        answers, (before, ordinal), after, left = machine(code)[0]
        assert answers == [list(range(8))] * 3
        assert (before, ordinal) == ([1, 0, 0, 0, 0, 0, 0, 0], 0)  # a thread's own description is the process's
        assert after == [1, 0, 0, 1, 0, 0, 0, 0]
        assert left == []

    @pytest.mark.full
    def test_the_first_callers_device_is_the_only_one_in_use(self, machine: Any) -> None:
        found = machine("become_current(5)\nprint(json.dumps([search(), contexts()]))")[0]
        assert found == [list(range(8)), [0, 0, 0, 0, 0, 1, 0, 0]]

    @pytest.mark.full
    def test_arrays_on_a_device_are_searched_there(self, machine: Any) -> None:
        code = (
            "from hopfuse import _native\n"
            "from hopfuse.backends import cuda_at\n"
            "first = search()\n"
            "there = cuda_at(2).runtime.device.upload(vectors)\n"
            "found = hf.dense_topk(there, corpus, 2)\n"
            "here = hf.dense_topk(cuda_at(0).runtime.device.upload(vectors), corpus, 2)\n"
            "try:\n"
            "    hf.fuse([found, here])\n"
            "except hf.errors.InputError as error:\n"
            "    code = error.code\n"
            "print(json.dumps([first, found.ids[0].to_numpy().tolist()[:1], found.ids.device, here.ids.device, code]))"
        )
        assert machine(code)[0] == [list(range(8)), [0], 2, 0, "conflict"]


# ---- A process that is forked ----------------------------------------------------------------------------------


def in_child(work: Callable[[], Any]) -> Any:
    """Return what ``work`` returns in a forked process."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=lambda: sender.send(work()))
    child.start()
    sender.close()  # so that a child that ends without a word is an EOFError here
    answer = receiver.recv()
    child.join()
    return answer


def answers(backend: str) -> tuple[list[str], str]:
    """Warnings, and the scores or the error of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = []
        for _ in range(2):
            try:
                found.append(str(hf.calibrate(hf.Hits([[1, 2]], [[2.0, 1.0]]), "max", backend=backend).scores.tolist()))
            except BackendError as error:
                found.append(str(error))
    assert found[0] == found[1]
    return [str(one.message) for one in caught], found[0]


forks = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")


@forks
@pytest.mark.filterwarnings("ignore:This process")  # Python 3.12 warns of forks beside threads
def test_a_forked_child_gets_the_cpu_or_an_error_and_never_the_device(use: Any) -> None:
    device = Altered("none")
    first = use(device)
    assert answers("auto") == ([], "[[1.0, 0.5]]")

    device.calls = 0

    def ask() -> Any:
        by_itself, by_name = answers("auto"), answers("cuda")
        told = hf.backend_info()
        return by_itself, by_name, told["auto"], told["backends"]["cuda"], device.calls

    held, over = threading.Event(), threading.Event()

    def hold() -> None:  # another thread of the parent has it when the child is made, which must not wait for it
        with first._lock:
            held.set()
            over.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    try:
        (warned, scores), (_, error), auto, told, calls = in_child(ask)
    finally:
        over.set()
        holder.join()
    assert (scores, auto, calls) == ("[[1.0, 0.5]]", "cpu", 0)
    assert told == {"error": error}
    assert "forked from one that used it" in error
    assert "'spawn'" in error
    assert warned == [f"{error}. backend='auto' uses the CPU"]  # once in a process
    assert answers("cuda") == ([], "[[1.0, 0.5]]")


@forks
@pytest.mark.filterwarnings("ignore:This process")
def test_a_child_of_a_process_without_a_device_is_told_what_the_parent_is(use: Any) -> None:
    use(NO_DEVICE)
    here = answers("auto"), answers("cuda")
    assert in_child(lambda: (answers("auto"), answers("cuda"))) == here == (([], "[[1.0, 0.5]]"), ([], "no device"))


@forks
@pytest.mark.filterwarnings("ignore:This process")
def test_a_child_may_be_the_first_to_ask(use: Any) -> None:
    device = Altered("none")
    use(device)
    assert in_child(lambda: (answers("cuda"), device.calls > 0)) == (([], "[[1.0, 0.5]]"), True)


def test_a_passed_self_test_is_remembered_for_the_build_the_device_and_its_driver(tmp_path: Any) -> None:
    where = ("0.1", "a build", "sources", "a UUID", "13000")
    mark = SelfTestMark(KernelCache(tmp_path), *where)
    assert not mark.is_set()
    mark.set()
    assert SelfTestMark(KernelCache(tmp_path), *where).is_set()
    for at in range(len(where)):
        other = [*where[:at], "other", *where[at + 1 :]]
        assert not SelfTestMark(KernelCache(tmp_path), *other).is_set()
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(b"torn")
    assert not mark.is_set()
