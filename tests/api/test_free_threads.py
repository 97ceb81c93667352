"""Threads that use the same objects at once get a single thread's bits, on every Python; free-threaded, in parallel."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise, assert_hits_equal
from hopfuse import _native
from hopfuse.errors import CancelledError
from hopfuse.extract._evidence import BoundedCache
from hopfuse.types.derived import ByObject, Continued
from numpy.typing import NDArray
from tiers import FULL

THREADS = 4
ROUNDS = 40 if FULL else 6
NODES, DIM, K = 300, 16, 7

is_free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


@pytest.fixture(autouse=True)
def switching_often() -> Iterator[None]:
    """Let threads take turns after microseconds where one lock holds them all."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def race(*calls: Callable[[], Any]) -> list[Any]:
    """Make calls at once, each on a thread of its own; return their results, or raise what one raised."""
    begin = threading.Barrier(len(calls), timeout=600)

    def run(call: Callable[[], Any]) -> Any:
        begin.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


class Inputs:
    """Inputs of operations, made anew from the same numbers: nothing was computed from them yet."""

    def __init__(self) -> None:
        rng = np.random.default_rng(7)
        self.vectors = rng.standard_normal((NODES, DIM), dtype=np.float32)
        self.questions = rng.standard_normal((5, DIM), dtype=np.float32)
        src, dst = rng.integers(0, NODES, (2, 6 * NODES))
        kind = rng.integers(0, 2, src.size)
        self.graph = hf.Graph.from_edges(src, dst, rng.uniform(0.5, 2, src.size), num_nodes=NODES, edge_type=kind)
        self.corpus = hf.Corpus.from_array(self.vectors)
        self.coded = hf.Corpus.from_array(self.vectors, storage="int8")
        self.restart = [{int(node): 1.0 for node in rng.integers(0, NODES, 3)} for _ in range(5)]
        self.entities = hf.Incidence.from_graph(self.graph, NODES // 2)
        self.method = hf.fusion.RRF(rank_constant=11)
        self.only = rng.random(NODES) < 0.5

    def calls(self) -> dict[str, Callable[[], Any]]:
        """Operations that read the same inputs, some on several threads of the native pool."""
        return {
            "cosine": lambda: hf.dense_topk(self.questions, self.corpus.with_metric("cosine"), K, threads=2),
            "dense": lambda: hf.dense_topk(self.questions, self.corpus, K),
            "coded": lambda: hf.dense_topk(self.questions, self.coded, K, threads=3),
            "filtered": lambda: hf.dense_topk(self.questions, self.corpus, K, allow=self.only),
            "above": lambda: hf.dense_above(self.questions, self.corpus, 4.0),
            "walk": lambda: hf.ppr(self.graph, self.restart, threads=2).scores,
            "top": lambda: hf.ppr_topk(self.graph, self.restart, K, threads=3),
            "weighted": lambda: hf.ppr_topk(self.graph, self.restart, K, edge_type_weights=[1.0, 0.25]),
            "among": lambda: hf.ppr_topk(self.graph, self.restart, K, candidates=range(NODES // 2)),
            "fused": lambda: hf.fuse([self._dense(), self._walk()], method=self.method, k=K),
            "sums": lambda: self.entities.column_counts(),
        }

    def _dense(self) -> hf.Hits:
        return hf.dense_topk(self.questions, self.corpus, K)

    def _walk(self) -> hf.Hits:
        return hf.ppr_topk(self.graph, self.restart, K)


def assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, hf.Hits):
        assert_hits_equal(found, expected)
    else:
        assert_bitwise(found, expected)


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    """Each operation's result on inputs of its own, on one thread."""
    return {name: Inputs().calls()[name]() for name in Inputs().calls()}


def test_operations_over_inputs_that_are_used_for_the_first_time(expected: dict[str, Any]) -> None:
    """Let several threads make the first call: what it derives from a graph or a corpus is the same for each."""
    for _ in range(ROUNDS):
        calls = Inputs().calls()
        names = [*calls, *reversed(calls)]
        for name, found in zip(names, race(*(calls[name] for name in names)), strict=True):
            assert_same(found, expected[name])


def test_workspaces_are_released_while_calls_use_them(expected: dict[str, Any]) -> None:
    inputs = Inputs()

    def many(name: str) -> list[Any]:
        return [inputs.calls()[name]() for _ in range(ROUNDS)]

    def release() -> list[int]:
        return [(_native.release_workspaces(), _native.idle_workspace_bytes())[1] for _ in range(20 * ROUNDS)]

    names = ["dense", "walk", "top", "coded", "cosine"]
    *found, held = race(*(lambda name=name: many(name) for name in names), release)
    for name, results in zip(names, found, strict=True):
        for one in results:
            assert_same(one, expected[name])
    assert min(held) >= 0


def test_what_is_kept_with_an_object_is_one_object_for_all_threads() -> None:
    for _ in range(ROUNDS):
        inputs = Inputs()
        found = race(*[lambda inputs=inputs: inputs.corpus.with_metric("cosine")] * THREADS)
        assert {id(one) for one in found} == {id(inputs.corpus.with_metric("cosine"))}
        kept = race(*[lambda inputs=inputs: hf.Incidence.kept_of(inputs.graph, 9)] * THREADS)
        assert {id(one) for one in kept} == {id(hf.Incidence.kept_of(inputs.graph, 9))}
        codes = race(*[lambda inputs=inputs: inputs.corpus.codes(threads=1)] * THREADS)
        assert {id(one) for one in codes} == {id(inputs.corpus.codes(threads=1))}


class Key:
    """An object that values are kept for."""


def noted(made: list[int], of: Key) -> list[int]:
    """Return the value of a key, after noting that it was made."""
    made.append(id(of))
    return [id(of)]


def test_a_value_of_an_object_is_made_once() -> None:
    for _ in range(ROUNDS):
        made = list[int]()
        kept, keys = ByObject(partial(noted, made)), [Key() for _ in range(50)]
        found = race(*[lambda kept=kept, keys=keys: [kept.get(key) for key in keys]] * THREADS)
        assert sorted(made) == sorted(map(id, keys))
        assert all(row == [[id(key)] for key in keys] for row in found)
        assert len(kept) == len(keys)


def test_states_are_continued_while_others_end() -> None:
    """Each thread has a growing text of its own in one cache; earlier states end while others are asked for."""

    class State:
        def __init__(self, name: int, length: int) -> None:
            self.name, self.length = name, length

    lengths = Continued[State, int](
        lambda of: of.length, lambda of, earlier, known: known + of.length - earlier.length, lambda of: of.name
    )

    def grow(name: int) -> list[int]:
        found, state = [], State(name, 0)
        for length in range(100 * ROUNDS):
            state = State(name, length)
            found.append(lengths.get(state))
        return found

    assert race(*(lambda at=at: grow(at) for at in range(THREADS))) == [list(range(100 * ROUNDS))] * THREADS


def test_a_bounded_cache_stays_within_its_bound() -> None:
    each, most = 1 << 13, 1 << 19

    def fill(kept: BoundedCache[tuple[int, int], int], thread: int) -> None:
        for number in range(200):
            kept.keep((thread, number), number, each)
            assert kept.get((thread, number)) in (None, number)

    for _ in range(ROUNDS):
        kept = BoundedCache[tuple[int, int], int]()
        race(*(lambda at=at, kept=kept: fill(kept, at) for at in range(THREADS)))
        held = sum(kept.get((at, number)) is not None for at in range(THREADS) for number in range(200))
        assert 0 < held * each <= most


def test_options_of_a_method_are_read_by_several_threads(expected: dict[str, Any]) -> None:
    inputs = Inputs()
    lists = [inputs.calls()[name]() for name in ("dense", "top")]
    for _ in range(ROUNDS):
        method = hf.fusion.RRF(rank_constant=11)
        for found in race(*[lambda method=method: hf.fuse(lists, method=method, k=K)] * THREADS):
            assert_hits_equal(found, expected["fused"])


def test_a_captured_core_is_called_by_several_threads(expected: dict[str, Any]) -> None:
    inputs = Inputs()
    core = hf.capture(lambda vectors: hf.dense_topk(vectors, inputs.corpus, K), [((DIM,), "float32")])
    for _ in range(ROUNDS):
        for found in race(*[lambda: core(inputs.questions)] * THREADS):
            assert_hits_equal(found, expected["dense"])


def test_a_token_stops_the_calls_of_its_own_thread_alone(expected: dict[str, Any]) -> None:
    inputs = Inputs()

    def calls(is_cancelled: bool) -> Any:
        token = hf.CancelToken()
        if is_cancelled:
            token.cancel()
        with hf.cancellation(token):
            return inputs.calls()["top"]()

    def refused() -> str:
        with pytest.raises(CancelledError):
            calls(True)
        return "refused"

    for _ in range(ROUNDS):
        first, *others = race(lambda: calls(False), refused, refused, lambda: calls(False))
        for found in (first, others[-1]):
            assert_hits_equal(found, expected["top"])
        assert others[:-1] == ["refused", "refused"]


# ---- Indexes ---------------------------------------------------------------------------------------------------------

WORDS = ["river", "sea", "engine", "bridge", "harbour", "letter", "king", "field"]


def rows(count: int) -> list[dict[str, Any]]:
    """Passages with two words each, and metadata."""
    return [
        {
            "id": f"p{at}",
            "text": f"The {WORDS[at % 8]} near the {WORDS[at // 8 % 8]}.",
            "metadata": {"year": 1900 + at % 7, "kind": WORDS[at % 3], "tags": [WORDS[at % 5], WORDS[at % 2]]},
        }
        for at in range(count)
    ]


def vectors_of(count: int) -> NDArray[np.float32]:
    return np.random.default_rng(3).standard_normal((count, DIM), dtype=np.float32)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "index"
    edges = [{"src": at, "dst": 64 + at % 8} for at in range(64)]
    hf.Index.build(passages=rows(64), vectors=vectors_of(64), entities=WORDS, graph=edges).save(folder)
    return folder


def read(index: hf.Index) -> list[Callable[[], Any]]:
    """Reads of parts of an index that are checked, decoded or made when they are first read."""
    tail = np.arange(64) >= 40
    return [
        lambda: [index.texts[at] for at in range(64)],
        lambda: list(index.passage_ids),
        lambda: list(index.entity_names),
        lambda: (hf.where(year__ge=1903) & hf.where(kind="sea")).mask(index.metadata).tolist(),
        lambda: hf.where(tags__any=["engine"]).mask(index.metadata).tolist(),
        lambda: index.metadata["tags"].row_of.tolist(),
        lambda: None if index.graph is None else index.graph.indices.tolist(),
        lambda: None if index.corpus is None else np.asarray(index.corpus.vectors).tolist(),
        lambda: (list(index.part(tail).index.texts), index.part(tail).passages.tolist()),
        lambda: index.info()["graph"],
    ]


def test_an_index_is_read_for_the_first_time_by_several_threads(saved: Path) -> None:
    expected = [one() for one in read(hf.Index.open(saved))]
    for _ in range(ROUNDS):
        index = hf.Index.open(saved)
        calls = read(index)
        assert race(*calls, *reversed(calls)) == [*expected, *reversed(expected)]


def test_a_retriever_is_used_for_the_first_time_by_several_threads(saved: Path) -> None:
    asked, vectors, k = [f"Which {word}?" for word in WORDS], vectors_of(72)[64:], 5
    named = [[word] for word in WORDS]

    def searches(retriever: hf.Retriever) -> list[Callable[[], hf.Hits]]:
        allowed = [None, hf.where(kind="sea"), hf.where(year__ge=1903), hf.where(tags__any=["sea"])]
        return [
            lambda allow=allow: retriever.search(asked, vectors=vectors, entities=named, k=k, allow=allow).hits
            for allow in allowed
        ]

    expected = [one() for one in searches(hf.Retriever.open(saved, recipe="hybrid-rrf"))]
    for _ in range(ROUNDS):
        calls = searches(hf.Retriever.open(saved, recipe="hybrid-rrf"))
        for found, right in zip(race(*calls, *calls), [*expected, *expected], strict=True):
            assert_hits_equal(found, right)


def test_readers_of_a_changing_index_see_the_states_that_were_committed(tmp_path: Path) -> None:
    """Each state is read while the next ones are written, by ids and metadata that all states share."""
    hf.Index.build(passages=rows(8), vectors=vectors_of(8)).save(tmp_path / "index")
    count, done = 8 + 3 * ROUNDS, threading.Event()

    def seen(index: hf.Index) -> tuple[int, list[str], list[bool]]:
        return index.num_passages, list(index.passage_ids), hf.where(year__ge=1903).mask(index.metadata).tolist()

    with hf.Index.open(tmp_path / "index", writable=True) as live:

        def write() -> list[Any]:
            try:
                for at in range(8, count):
                    with live.change() as change:
                        change.add_passages(rows(count)[at : at + 1], vectors=vectors_of(count)[at : at + 1])
                    live.refresh()
            finally:
                done.set()
            return []

        def follow() -> list[Any]:
            found = []
            while not done.is_set():
                found.append(seen(live.refresh()))
            return [*found, seen(live.refresh())]

        _, *readers = race(write, follow, follow, follow)
    every = rows(count)
    for found in readers:
        assert found[-1][0] == count
        for size, ids, recent in found:
            assert ids == [row["id"] for row in every[:size]]
            assert recent == [row["metadata"]["year"] >= 1903 for row in every[:size]]


# ---- Processes of their own ------------------------------------------------------------------------------------------


def run(code: str, *options: str) -> str:
    """Return what a program prints; a warning ends it."""
    command = [sys.executable, "-W", "error", *options, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr  # of a thread
    return done.stdout.strip()


def test_names_are_loaded_by_several_threads_at_once() -> None:
    """Modules are imported at the first use of a name, here by all threads in different orders."""
    code = """
import threading
import hopfuse as hf
names, found, begin = sorted(set(hf.__all__)), [], threading.Barrier(4)
def load(names):
    begin.wait()
    found.append({name: id(getattr(hf, name)) for name in names})
orders = names, names[::-1], names[len(names) // 2 :] + names[: len(names) // 2], names[1::2] + names[::2]
threads = [threading.Thread(target=load, args=(order,)) for order in orders]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(found), len({tuple(sorted(one.items())) for one in found}))
"""
    assert run(code) == "4 1"


@pytest.mark.parametrize(
    ("package", "first", "second"),
    [
        ("index", "hf.Index", "hf.Retriever"),
        ("index", "hf.Index", "hf.adapters.hipporag_folder"),
        pytest.param(
            *("retriever", "hf.Retriever", "hf.serve.SearchQuery"),
            marks=pytest.mark.skipif(not find_spec("msgspec"), reason="hopfuse.serve needs its extra"),
        ),
    ],
)
def test_names_that_need_a_package_and_its_module_are_loaded_at_once(package: str, first: str, second: str) -> None:
    """The first thread is held where it has begun to import the package, until the second one wants a module of it."""
    code = f"""
import sys, threading, time
from importlib import _bootstrap
import hopfuse as hf, hopfuse.adapters, hopfuse.serve, numpy
begun, found = threading.Event(), []
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "hopfuse.{package}":
            before, end = {{*_bootstrap._module_locks}}, time.monotonic() + 0.5
            begun.set()
            while not any(one.startswith(name + ".") for one in {{*_bootstrap._module_locks}} - before):
                if time.monotonic() > end:
                    break
                time.sleep(0.01)
            time.sleep(0.05)
sys.meta_path.insert(0, Finder())
def load_second():
    begun.wait()
    found.append({second})
threads = [threading.Thread(target=lambda: found.append({first})), threading.Thread(target=load_second)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(found))
"""
    assert run(code) == "2"


@pytest.mark.skipif(not is_free_threaded, reason="this Python has a global lock")
def test_the_lock_stays_off() -> None:
    """The import does not switch it on, and a search does not."""
    code = """
import sys
import hopfuse as hf, numpy as np
before = sys._is_gil_enabled()
corpus = hf.Corpus.from_array(np.eye(4, dtype=np.float32))
graph = hf.Graph.from_edges([0, 1], [1, 2])
fused = hf.fuse([hf.dense_topk(np.eye(4, dtype=np.float32), corpus, 2), hf.ppr_topk(graph, [{0: 1.0}] * 4, 2)], k=2)
index = hf.Index.build(passages=[{"text": "one"}], vectors=np.ones((1, 4), np.float32))
found = hf.Retriever(index).search("one", vectors=np.ones((1, 4), np.float32), k=1)
print(before, sys._is_gil_enabled(), fused.ids.shape, len(found[0]))
"""
    assert run(code) == "False False (4, 2) 1"


@pytest.mark.skipif(sys.version_info < (3, 14), reason="threads inherit no context before Python 3.14")
def test_threads_of_a_pool_do_not_keep_the_context_of_the_call_that_started_them() -> None:
    """Free-threaded Python lets threads inherit it: a call that was cancelled would then stop all that follow."""
    code = """
import sys, threading
import hopfuse as hf, numpy as np
from hopfuse.serve.threads import DaemonThreads
corpus = hf.Corpus.from_array(np.eye(4, dtype=np.float32))
search = lambda: hf.dense_topk(np.eye(4, dtype=np.float32), corpus, 1).ids.ravel().tolist()
token, pool = hf.CancelToken(), DaemonThreads(1, "example")
inherited = []
with hf.cancellation(token):
    pool.submit(search).result()
    token.cancel()
    def other():
        try:
            search()
        except hf.errors.CancelledError:
            inherited.append(True)
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
print(pool.submit(search).result(), inherited)
pool.shutdown()
"""
    assert run(code, "-X", "thread_inherit_context=1") == "[0, 1, 2, 3] [True]"


def test_races_would_be_seen() -> None:
    """The calls of a race run at the same time: each waits for all others, and an error of one is raised."""
    together = threading.Barrier(THREADS, timeout=600)
    assert sorted(race(*[together.wait] * THREADS)) == list(range(THREADS))

    def fail() -> None:
        raise ValueError("of one thread")

    with pytest.raises(ValueError, match="of one thread"):
        race(fail, fail)
