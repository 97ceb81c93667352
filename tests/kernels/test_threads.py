"""The pool of threads: as few as asked for, the same bits, and a forked child that is not held up by its parent."""

from __future__ import annotations

import hashlib
import itertools
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise, assert_hits_equal
from hopfuse import _native
from hopfuse._threads import cpu_quota, thread_count
from hopfuse.errors import InputError
from refusals import refused

CALLS = 400
FORKS_BESIDE_THREADS = pytest.mark.filterwarnings("ignore:This process")  # Python 3.12 warns of them
needs_fork = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")


class Calls:
    """A call of every op with threads, large enough that several take part."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.corpus = hf.Corpus.from_array(rng.standard_normal((20_000, 64)).astype(np.float32))
        self.queries = rng.standard_normal((18, 64)).astype(np.float32)  # some for the tile registers of AMX, some not
        ends = rng.integers(0, 20_000, (2, 150_000))
        self.graph = hf.Graph.from_edges(*ends, num_nodes=20_000)
        self.seeds = [{int(v): 1.0} for v in rng.integers(0, 20_000, 8)]
        ids = np.stack([rng.permutation(500)[:200] for _ in range(CALLS)])
        self.lists = [hf.Hits(ids, rng.random(ids.shape)), hf.Hits(ids[::-1].copy(), rng.random(ids.shape))]

    def answers(self, threads: int | None) -> list[Any]:
        walked = hf.ppr(self.graph, self.seeds, threads=threads)
        return [
            hf.dense_topk(self.queries, self.corpus, 20, threads=threads),
            hf.ppr_topk(self.graph, self.seeds, 20, threads=threads),
            hf.fuse(self.lists, k=20, threads=threads),
            walked.scores,
            walked.bound,
        ]


@pytest.fixture(scope="module")
def calls() -> Calls:
    return Calls()


def assert_same(found: list[Any], expected: list[Any]) -> None:
    for one, other in zip(found, expected, strict=True):
        (assert_hits_equal if isinstance(one, hf.Hits) else assert_bitwise)(one, other)


def test_any_number_of_threads_gives_the_same_bits(calls: Calls) -> None:
    expected = calls.answers(1)
    for threads in (2, 3, 7, 64):
        assert_same(calls.answers(threads), expected)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads have no set of processors here")
def test_threads_that_slept_may_run_where_they_might_before(calls: Calls) -> None:
    """A sleeping thread is woken away from the caller's processor; it has that processor back when it is awake."""
    before = os.sched_getaffinity(0)
    for _ in range(20):
        calls.answers(2)
        time.sleep(0.002)  # the pool's threads fall asleep
    end = time.monotonic() + 600  # a guard against a hang: a busy machine may wake them late
    while any(allowed != before for allowed in affinities()) and time.monotonic() < end:
        time.sleep(0.01)
    assert all(allowed == before for allowed in affinities())
    assert _native.pool_size() >= 1


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads have no set of processors here")
def test_the_callers_processors_are_its_own(calls: Calls) -> None:
    """While others burn, so that threads are preempted, nobody sees the caller's processors change during its calls.

    Another thread changes them meanwhile, and finds each change as it left it.
    """
    caller, whole = threading.get_native_id(), os.sched_getaffinity(0)
    expected, stop, changed = calls.answers(1), threading.Event(), list[bool]()
    data = bytes(1 << 18)

    def burn() -> None:
        while not stop.is_set():
            hashlib.sha256(data)  # without the GIL

    def change() -> None:
        for allowed in itertools.cycle([{min(whole)}, whole]):
            os.sched_setaffinity(caller, allowed)
            changed.extend(os.sched_getaffinity(caller) != allowed for _ in range(200))
            if stop.is_set() and allowed == whole:
                return

    several = [threading.Thread(target=burn) for _ in range(2 * len(whole))] + [threading.Thread(target=change)]
    for one in several:
        one.start()
    try:
        for _ in range(5):
            assert_same(calls.answers(2), expected)
    finally:
        stop.set()
        for one in several:
            one.join()
    assert len(changed) > 200
    assert not any(changed)
    assert os.sched_getaffinity(0) == whole


def affinities() -> list[set[int]]:
    """The processors of each thread of the process."""
    return [os.sched_getaffinity(int(thread)) for thread in os.listdir("/proc/self/task")]


def test_calls_at_a_time_share_one_pool(calls: Calls) -> None:
    expected, found = calls.answers(1), dict[int, list[Any]]()
    code = "import hopfuse; from hopfuse import _native; print(_native.pool_size())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "0\n"
    before = _native.pool_size()
    several = [threading.Thread(target=lambda i=i: found.update({i: calls.answers(2)})) for i in range(8)]
    for one in several:
        one.start()
    for one in several:
        one.join()
    assert _native.pool_size() <= max(before, 1)
    for answers in found.values():
        assert_same(answers, expected)
    assert len(found) == 8


def child(calls: Calls, threads: int | None, pipe: Any) -> None:
    found = calls.answers(threads)
    pipe.send([(hits.ids, hits.scores, hits.counts) for hits in found[:3]] + found[3:])


def in_child(calls: Calls, threads: int | None) -> list[Any]:
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe(duplex=False)
    process = context.Process(target=child, args=(calls, threads, theirs))
    process.start()
    try:
        assert mine.poll(600), "the child does not answer"  # no call takes so long, however busy the machine
        found = mine.recv()
    finally:
        process.kill()
        process.join()
    return [hf.Hits.unchecked(*arrays) for arrays in found[:3]] + found[3:]


@needs_fork
@FORKS_BESIDE_THREADS
def test_a_forked_child_has_a_pool_of_its_own(calls: Calls) -> None:
    expected = calls.answers(2)
    for threads in (2, None, 1):
        assert_same(in_child(calls, threads), expected)


@needs_fork
@FORKS_BESIDE_THREADS
def test_a_fork_in_the_middle_of_other_threads_calls_holds_nobody_up(calls: Calls) -> None:
    expected, stop = calls.answers(2), threading.Event()

    def go_on() -> None:
        while not stop.is_set():
            calls.answers(2)

    several = [threading.Thread(target=go_on) for _ in range(3)]
    for one in several:
        one.start()
    try:
        for _ in range(5):
            assert_same(in_child(calls, 2), expected)
    finally:
        stop.set()
        for one in several:
            one.join()


STACK = 8 << 20  # bytes of a thread
HELPERS = """
import json, resource, sys
import hopfuse as hf
import numpy as np
from hopfuse import _native
corpus = hf.Corpus.from_array(np.random.default_rng(0).standard_normal((20000, 64)).astype("f4"))
expected = hf.dense_topk(corpus.vectors[:4], corpus, 5, threads=1)
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + int(sys.argv[1]),) * 2)
found = hf.dense_topk(corpus.vectors[:4], corpus, 5, threads=1000)
print(json.dumps([bool((found.ids == expected.ids).all()), _native.pool_size()]))
"""


def helpers(room: int) -> int:
    """The threads that a call makes where so many bytes of address space are left."""
    done = subprocess.run(
        [sys.executable, "-c", HELPERS, str(room)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (STACK, STACK)),
    )
    assert done.returncode == 0, done.stderr
    same, threads = json.loads(done.stdout)
    assert same
    return int(threads)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are Linux's")
def test_threads_that_cannot_be_made_mean_fewer() -> None:
    assert helpers(3 * STACK // 2) <= 1 < helpers(1000 * STACK)


# ---- How many ------------------------------------------------------------------------------------------------------


def test_the_environment_is_read_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "5,2")
    monkeypatch.delenv("HOPFUSE_NUM_THREADS", raising=False)
    assert thread_count(None) == 5
    for useless in ("", "many", "0"):
        monkeypatch.setenv("OMP_NUM_THREADS", useless)
        assert 1 <= thread_count(None) <= (os.cpu_count() or 1)
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    monkeypatch.setenv("HOPFUSE_NUM_THREADS", "3")
    assert thread_count(None) == 3
    assert thread_count(2) == 2


def written(folder: Path, groups: str, files: dict[str, str]) -> tuple[Path, Path]:
    """Return the list of a process's control groups, and where these are mounted."""
    (folder / "cgroup").write_text(groups + "\n")
    for name, text in files.items():
        path = folder / "fs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return folder / "cgroup", folder / "fs"


@pytest.mark.parametrize(
    ("groups", "files", "quota"),
    [
        ("0::/a/b", {"a/b/cpu.max": "50000 100000"}, 0.5),
        ("0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "150000 100000"}, 1.5),
        ("0::/a/b", {"a/b/cpu.max": "max 100000"}, None),
        ("0::/elsewhere", {"cpu.max": "200000 100000"}, 2.0),
        (
            "3:cpu,cpuacct:/a\n2:memory:/a",
            {"cpu,cpuacct/a/cpu.cfs_quota_us": "250000", "cpu,cpuacct/a/cpu.cfs_period_us": "100000"},
            2.5,
        ),
        (
            "3:cpu,cpuacct:/a",
            {"cpuacct,cpu/a/cpu.cfs_quota_us": "250000", "cpuacct,cpu/a/cpu.cfs_period_us": "100000"},
            2.5,
        ),
        (
            "3:cpuacct,cpu:/a",
            {"cpu,cpuacct/a/cpu.cfs_quota_us": "50000", "cpu,cpuacct/a/cpu.cfs_period_us": "100000"},
            0.5,
        ),
        ("3:cpu,cpuacct:/", {"cpu/cpu.cfs_quota_us": "50000", "cpu/cpu.cfs_period_us": "100000"}, 0.5),
        ("3:cpu:/a", {"cpu/a/cpu.cfs_quota_us": "50000", "cpu/a/cpu.cfs_period_us": "100000"}, 0.5),
        ("3:cpu:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ("0::/a", {"a/cpu.max": "nonsense"}, None),
    ],
)
def test_quotas_of_control_groups(tmp_path: Path, groups: str, files: dict[str, str], quota: float | None) -> None:
    processes, mount = written(tmp_path, groups, files)
    assert cpu_quota.__wrapped__(processes, mount) == quota
    assert cpu_quota.__wrapped__(tmp_path / "absent", mount) is None


HALF = {
    "version 2": ("0::/a", {"a/cpu.max": "50000 100000"}),
    "version 1": ("3:cpu:/a", {"cpu/a/cpu.cfs_quota_us": "50000", "cpu/a/cpu.cfs_period_us": "100000"}),
}


@pytest.mark.parametrize(("groups", "files"), HALF.values(), ids=HALF)
def test_half_a_processor_is_one_thread(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, groups: str, files: dict[str, str]
) -> None:
    for name in ("HOPFUSE_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    paths = written(tmp_path, groups, files)
    monkeypatch.setattr("hopfuse._threads.cpu_quota", lambda: cpu_quota.__wrapped__(*paths))
    assert thread_count(None) == 1
    hf.ppr(hf.Graph.from_edges([0], [1]), [{0: 1.0}])
    assert hf.backend_info()["backends"]["cpu"]["threads"] == 1


def test_a_part_of_a_processor_counts_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOPFUSE_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for quota, most in ((0.01, 1), (1.0, 1), (1.5, 2)):
        monkeypatch.setattr("hopfuse._threads.cpu_quota", lambda quota=quota: quota)
        assert thread_count(None) == min(most, len(os.sched_getaffinity(0)))


@pytest.mark.parametrize("threads", [0, -1, 1025, 2.0, "2", True, np.int64(0)])
def test_an_invalid_number_of_threads_is_refused(calls: Calls, threads: Any) -> None:
    hits = hf.Hits([[1]], [[1.0]])
    for call in (
        lambda: hf.dense_topk([[1.0]], [[1.0]], 1, threads=threads),
        lambda: hf.ppr(calls.graph, [{0: 1.0}], threads=threads),
        lambda: hf.ppr_topk(calls.graph, [{0: 1.0}], 1, threads=threads),
        lambda: hf.fuse([hits], threads=threads),
        lambda: hf.calibrate(hits, threads=threads),
    ):
        with refused(InputError, "range", "threads"):
            call()


@pytest.mark.parametrize("text", ["abc", "0", "1025", "-1", "1.5", "2 "])
def test_an_invalid_threads_variable_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("HOPFUSE_NUM_THREADS", text)
    with refused(InputError, "range", "HOPFUSE_NUM_THREADS"):
        hf.dense_topk([[1.0]], [[1.0]], 1)
    assert hf.dense_topk([[1.0]], [[1.0]], 1, threads=1).ids.tolist() == [[0]]
