"""What a user of a live index relies on: one writer, snapshots, waiting, threads and processes, errors, full disks."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import processes
import pytest
from hopfuse.encoders import ArrayEncoder
from hopfuse.errors import FormatError, InputError
from hopfuse.index import EncoderInfo
from hopfuse.lexical import BM25
from index.index_files import assert_same_terms, generation_file
from index.log_files import encode, strings, write_log
from refusals import refused

GRAPH = [{"src": 0, "dst": 2, "type": "context"}, {"src": 1, "dst": 3, "type": "context"}]


def small(**more: Any) -> hf.Index:
    arguments: dict[str, Any] = {
        "passages": [{"id": "a", "text": "Ada wrote."}, {"id": "b", "text": "Babbage built."}],
        "entities": ["Ada", "Babbage"],
        "graph": GRAPH,
        "facts": [{"head": "Ada", "relation": "knew", "tail": "Babbage", "passage": 0}],
    }
    return hf.Index.build(**(arguments | more))


def saved(folder: Path, **more: Any) -> Path:
    small(**more).save(folder)
    return folder


def add(live: hf.LiveIndex[hf.Index], *ids: str) -> int:
    with live.change() as change:
        change.add_passages([{"id": id, "text": f"text of {id}"} for id in ids])
    assert change.seq is not None
    return change.seq


def test_a_passage_takes_its_edges_and_facts_with_it_and_entities_stay(tmp_path: Path) -> None:
    with hf.Index.open(saved(tmp_path), writable=True) as live:
        with live.change() as change:
            change.add_edges(
                [{"src": ("entity", "Ada"), "dst": ("entity", "Babbage"), "type": "knew", "stated_by": "a"}]
            )
            change.add_facts([("Ada", "knew", "Babbage", "b")])
        assert live.refresh().graph.num_stored == 6  # type: ignore[union-attr]
        with live.change() as change:
            change.delete_passages(["a"])
        index = live.refresh()
        assert (list(index.passage_ids), list(index.entity_names)) == (["b"], ["Ada", "Babbage"])
        assert index.graph is not None
        assert index.graph.edge_type_names == ("context", "knew")
        assert [part.tolist() for part in index.graph.edges()[:2]] == [[0], [2]]
        assert index.facts is not None
        assert index.facts.passages.tolist() == [0]
        with live.change() as change:
            change.delete_passages(["b"])
        assert live.refresh().facts.rows.size == 0  # type: ignore[union-attr]


def test_there_is_one_writer_and_its_lock_ends_with_its_process(tmp_path: Path) -> None:
    script = """
import sys, hopfuse as hf
live = hf.Index.open(sys.argv[1], writable=True)
print("open", flush=True)
input()
"""
    saved(tmp_path)
    child = processes.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p)),
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"open\n"
    with refused(InputError, "busy", "directory"):
        hf.Index.open(tmp_path, writable=True)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    with hf.Index.open(tmp_path, writable=True) as live:
        with refused(InputError, "busy", "directory"):
            hf.Index.open(tmp_path, writable=True)
        with refused(InputError, "busy", "directory"):
            small().save(tmp_path)
        assert add(live, "c") == 1
    with refused(InputError, "denied"):
        live.change()
    with refused(InputError, "denied"):
        hf.Index.open(tmp_path, live=True).compact()


def test_readers_keep_their_snapshot_until_they_refresh(tmp_path: Path) -> None:
    reader = hf.Index.open(saved(tmp_path), live=True)
    with hf.Index.open(tmp_path, writable=True) as live:
        first = reader.index
        for count in range(1, 4):
            add(live, f"new {count}")
            assert (reader.seq, first.num_passages) == (count - 1, 2)
            assert reader.refresh().seq == reader.seq == hf.Index.open(tmp_path).seq == count
            assert reader.refresh() is reader.index
        before = reader.index
        assert live.compact() == 2
        assert list(reader.refresh().passage_ids) == list(before.passage_ids)
        assert (reader.seq, reader.index.generation) == (3, 2)
        add(live, "after")
    assert list(reader.refresh().passage_ids) == ["a", "b", "new 1", "new 2", "new 3", "after"]
    assert reader.seq == 4
    assert sorted(path.name.split("-")[0] for path in tmp_path.iterdir()) == ["CURRENT", "LOCK", "generation", "log"]
    small().save(tmp_path)  # a save over an index is one more change of it
    assert (reader.refresh().num_passages, reader.seq) == (2, 5)


def test_a_snapshot_pickles_by_its_seq(tmp_path: Path) -> None:
    with hf.Index.open(saved(tmp_path), writable=True) as live:
        add(live, "c")
        data = pickle.dumps(live.refresh())
        add(live, "d")
        again = pickle.loads(data)
        assert (again.seq, list(again.passage_ids)) == (1, ["a", "b", "c"])
        live.compact()
        with refused(FormatError, "changed", generation=1, seq=1):
            pickle.loads(data)


def test_waiting_for_a_seq(tmp_path: Path) -> None:
    reader = hf.Index.open(saved(tmp_path), live=True)
    with pytest.raises(TimeoutError, match=r"seq 1 cannot be read after 0\.01 s; the last one is 0"):
        reader.wait_for(1, 0.01)
    with hf.Index.open(tmp_path, writable=True) as live:
        thread = threading.Thread(target=lambda: [add(live, f"{i}") for i in range(5)])
        thread.start()
        assert reader.wait_for(5, 600).seq == 5
        thread.join()


def test_threads_commit_together_and_each_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs, original = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (syncs.append(descriptor), original(descriptor))[1])
    seqs: list[tuple[int, str]] = []
    with hf.Index.open(saved(tmp_path), writable=True) as live:
        add(live, "first")
        del syncs[:]

        def work(thread: int) -> None:
            for i in range(10):
                seqs.append((add(live, f"{thread} {i}", f"{thread} {i} more"), f"{thread} {i}"))

        threads = [threading.Thread(target=work, args=(t,)) for t in range(8)]
        for thread in threads:
            thread.start()
        compacted = live.compact_in_background()
        for thread in threads:
            thread.join()
        assert compacted.result() == 2
    assert sorted(seq for seq, _ in seqs) == list(range(2, 82))
    ids = list(hf.Index.open(tmp_path, verify="full").passage_ids)
    assert ids == ["a", "b", "first"] + [id for _, one in sorted(seqs) for id in (one, f"{one} more")]
    for i in range(10):
        assert all(seqs.index((seq, id)) >= 0 for seq, id in seqs if id.endswith(f" {i}"))


def test_a_thread_that_is_interrupted_while_it_waits_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its batch is written with the next group, by another thread."""

    def interrupted_lock() -> Any:
        return Interrupted() if threading.current_thread().name == "interrupted" else make_lock()

    class Interrupted:
        """A lock for which a thread cannot wait."""

        def __init__(self) -> None:
            self._lock = make_lock()
            self.release, self.locked = self._lock.release, self._lock.locked

        def acquire(self, *_: Any) -> bool:
            if not self._lock.acquire(blocking=False):
                raise KeyboardInterrupt
            return True

        def __enter__(self) -> bool:
            return self.acquire()

        def __exit__(self, *_: object) -> None:
            self.release()

    is_syncing, may_sync, left = threading.Event(), threading.Event(), []

    def sync(descriptor: int) -> None:
        is_syncing.set()
        assert may_sync.wait(600)
        original(descriptor)

    def interrupted() -> None:
        with pytest.raises(KeyboardInterrupt):
            add(live, "b2")
        left.append("b2")

    original, make_lock = os.fsync, threading.Lock
    monkeypatch.setattr(threading, "Lock", interrupted_lock)
    with hf.Index.open(saved(tmp_path), writable=True) as live:
        add(live, "first")
        monkeypatch.setattr(os, "fsync", sync)
        threads = [threading.Thread(target=add, args=(live, "a2"))]
        threads[0].start()
        assert is_syncing.wait(600)
        threads += [threading.Thread(target=interrupted, name="interrupted")]
        threads[1].start()
        threads[1].join()
        threads += [threading.Thread(target=add, args=(live, f"c{at}")) for at in range(2)]
        for thread in threads[2:]:
            thread.start()
        may_sync.set()
        for thread in threads:
            thread.join()
        assert left == ["b2"]
        assert add(live, "last") == 6
    ids = list(hf.Index.open(tmp_path, verify="full").passage_ids)
    assert (ids[:5], sorted(ids[5:])) == (["a", "b", "first", "a2", "b2"], ["c0", "c1", "last"])


def test_a_log_is_decoded_at_once_and_a_refresh_decodes_what_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many batches a log has, NumPy views their bytes as often, and a refresh those of the new ones alone."""
    viewed, original = list[int](), np.frombuffer

    def counted(buffer: Any, *rest: Any, **options: Any) -> Any:
        viewed.append(memoryview(buffer).nbytes)
        return original(buffer, *rest, **options)

    def views(read: Any) -> tuple[int, list[int]]:
        viewed.clear()
        return read().num_passages, [*viewed]

    log = tmp_path / "log-000000000001.hopfuse"
    with hf.Index.open(saved(tmp_path), writable=True) as live:
        add(live, "b0")
        add(live, "c0")
        few, size = hf.Index.open(tmp_path, live=True), log.stat().st_size
        monkeypatch.setattr(np, "frombuffer", counted)
        rows, of_few = views(lambda: few.index)
        assert rows == 4
        viewed.clear()
        for at in range(1, 20):
            add(live, f"c{at}")
        assert max(viewed) < 72  # less than a row of a table: a writer reads back no batch of its own
        viewed.clear()
        reader = hf.Index.open(tmp_path, live=True)
        assert reader.seq == 21
        assert sum(viewed) < log.stat().st_size // 4  # opening checks frames, and decodes none
        rows, at_once = views(lambda: reader.index)
        assert (rows, len(at_once)) == (23, len(of_few))
        assert sum(at_once) > 10 * sum(of_few) > 0
        add(live, "last")
        rows, of_refresh = views(reader.refresh)
        assert (rows, len(of_refresh) > len(of_few)) == (24, False)
        assert 0 < sum(of_refresh) < 2 * size


@pytest.mark.parametrize(("readers", "commits"), [(2, 60), pytest.param(8, 2000, marks=pytest.mark.full)])
def test_searches_and_readers_go_on_beside_a_writer_and_compactions(tmp_path: Path, readers: int, commits: int) -> None:
    """Each reader counts on: what it sees has the rows of its seq, and never fewer than before."""
    saved(tmp_path, vectors=np.eye(2), graph=None, facts=None)
    script = """
import sys, hopfuse as hf
live, last = hf.Index.open(sys.argv[1], live=True), 0
recipe = live.follow(hf.recipes.HybridRRF)
while last < int(sys.argv[2]):
    index = live.refresh()
    assert index.seq >= last
    assert list(index.passage_ids)[2:] == [f"p{i}" for i in range(index.seq)], index.seq
    if index.seq:
        found = recipe.search(vectors=[[0.0, 1.0]], k=1)
        assert (found[0][0].id, found.seq) == (f"p{index.seq - 1}", index.seq)
    last = index.seq
"""
    command = [sys.executable, "-c", script, str(tmp_path), str(commits)]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
    searching = [processes.Popen(command, env=environment) for _ in range(readers)]
    with hf.Index.open(tmp_path, writable=True) as live:
        compactions = []
        for i in range(commits):
            with live.change() as change:
                change.add_passages([{"id": f"p{i}", "text": f"text of {i}"}], vectors=[[1.0, 2.0 + i]])
            if i % 20 == 19:
                compactions.append(live.compact_in_background())
        assert sorted(one.result() for one in compactions) == list(range(2, 2 + commits // 20))
    assert [process.wait(600) for process in searching] == [0] * readers


@pytest.mark.parametrize("call", ["pwrite", "fsync"])
def test_a_disk_that_fails_changes_nothing_and_the_next_commit_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    with hf.Index.open(saved(tmp_path), writable=True) as live:
        for written in ("c", "d"):
            original = getattr(os, call)

            def full(descriptor: int, *rest: Any, _original: Any = original) -> Any:
                if call == "pwrite":
                    _original(descriptor, bytes(rest[0])[:50], rest[1])
                raise OSError(28, "No space left on device")

            with monkeypatch.context() as patch:
                patch.setattr(os, call, full)
                with pytest.raises(OSError, match="No space left"):
                    add(live, "lost")
            add(live, written)
            add(live, written * 2)
    assert list(hf.Index.open(tmp_path, verify="full").passage_ids) == ["a", "b", "c", "cc", "d", "dd"]


def test_a_compaction_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hf.Index.open(saved(tmp_path), writable=True) as live:
        add(live, "c")
        for name in ("replace", "fsync"):
            with monkeypatch.context() as patch:
                patch.setattr(os, name, lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
                with pytest.raises(OSError, match="No space left"):
                    live.compact()
            assert hf.Index.open(tmp_path, verify="full").seq == 1
            assert len(list(tmp_path.glob("generation-*"))) == 1
        assert live.compact() == 2
        assert add(live, "d") == 2
    assert hf.Index.open(tmp_path, verify="full").num_passages == 4


def test_a_log_that_is_torn_is_cut_by_the_next_writer(tmp_path: Path) -> None:
    with hf.Index.open(saved(tmp_path), writable=True) as live:
        add(live, "c")
    log = tmp_path / "log-000000000001.hopfuse"
    whole = log.read_bytes()
    log.write_bytes(whole + whole[64:100])
    assert hf.Index.open(tmp_path).seq == 1
    with hf.Index.open(tmp_path, writable=True) as live:
        assert log.read_bytes() == whole
        assert add(live, "d") == 2
    assert hf.Index.open(tmp_path, verify="full").num_passages == 4
    log.write_bytes(whole[:40])  # killed while it was made
    assert hf.Index.open(tmp_path).seq == 0
    with hf.Index.open(tmp_path, writable=True) as live:
        assert add(live, "c") == 1


def test_an_encoder_is_given_by_its_name(tmp_path: Path) -> None:
    pytest.importorskip("wordllama")
    rows = [{"id": "a", "text": "The sea."}, {"id": "b", "text": "A lake."}]
    hf.Index.build(rows[:1], encoder="wordllama:64").save(tmp_path)
    with hf.Index.open(tmp_path, writable=True, encoder="wordllama:64") as live:
        with live.change() as change:
            change.add_passages(rows[1:])
        assert (live.refresh().vectors == hf.Index.build(rows, encoder="wordllama:64").vectors).all()  # type: ignore[union-attr]
    with hf.Index.open(tmp_path, writable=True, encoder="none") as live, refused(InputError, "missing", "vectors"):
        live.change().add_passages(rows[1:])
    with refused(InputError, "conflict", "encoder"):
        hf.Index.open(tmp_path, writable=True, encoder="wordllama:128")
    with refused(InputError, "choice", "encoder", given="wordlama"):
        hf.Index.open(tmp_path, writable=True, encoder="wordlama")


def test_texts_added_without_vectors_are_encoded(tmp_path: Path) -> None:
    saved(tmp_path, vectors=[[1.0, 0.0], [0.0, 1.0]], encoder=EncoderInfo("doubling", 2, False))
    with refused(InputError, "conflict", "encoder"):
        hf.Index.open(tmp_path, writable=True, encoder=ArrayEncoder(3, name="mine"))
    with hf.Index.open(tmp_path, writable=True, encoder=Doubling()) as live:
        add(live, "c")
        assert live.refresh().vectors[2].tolist() == [9.0, 18.0]  # type: ignore[index]
        with refused(InputError, "shape", "vectors", given="float32(1, 3)", allowed="of the shape (1, 2)"):
            live.change().add_passages([{"id": "d", "text": ""}], vectors=np.ones((1, 3)))
    with (
        hf.Index.open(tmp_path, writable=True) as live,
        refused(InputError, "missing", "vectors"),
    ):
        live.change().add_passages([{"id": "d", "text": ""}])


class Doubling:
    """Encodes a text as its length, and twice that."""

    name, dim, normalize = "doubling", 2, False

    def encode_passages(self, texts: list[str]) -> np.ndarray:
        return np.array([[len(text), 2 * len(text)] for text in texts], np.float32)

    encode_queries = encode_passages


PASSAGE, ENTITY = ("passage", "a"), ("entity", "Ada")


@pytest.mark.parametrize(
    ("call", "arguments", "expected"),
    [
        ("add_passages", [[{"id": "a", "text": ""}]], ("duplicate", "id", {"given": "a"})),
        ("add_passages", [[{"id": 7, "text": ""}]], ("type", "id", {"allowed": "str"})),
        ("add_passages", [[{"text": "no id"}]], ("missing", "id")),
        (
            "add_passages",
            [
                [{"id": "c", "text": ""}],
            ],
            None,
        ),
        ("add_passages", [[{"id": "c", "text": ""}] * 2], ("duplicate", "id", {"given": "c"})),
        ("replace_passages", [[{"id": "c", "text": ""}]], ("unknown", None, {"given": "c"})),
        ("delete_passages", [["c"]], ("unknown", None, {"given": "c"})),
        ("delete_passages", ["a"], ("type", "ids", {"allowed": "a list"})),
        ("add_entities", [["Ada"]], ("duplicate", "names", {"given": "Ada"})),
        ("add_entities", [["Eve", "Eve"]], ("duplicate", "names", {"given": "Eve"})),
        ("add_entities", [[7]], ("type", "names[0]")),
        ("delete_entities", [["Eve"]], ("unknown",)),
        ("add_aliases", [{"Eve": ["E."]}], ("unknown",)),
        ("add_aliases", [["Ada"]], ("type", "aliases")),
        ("add_edges", [[{"src": PASSAGE}]], ("type", "edges[0]")),
        ("add_edges", [[{"src": PASSAGE, "dst": "Ada"}]], ("type", "edges[0].dst")),
        ("add_edges", [[{"src": PASSAGE, "dst": ENTITY, "weight": 0.0}]], ("range", "edges[0].weight")),
        ("add_edges", [[{"src": PASSAGE, "dst": ENTITY, "weight": float("nan")}]], ("range", "edges[0].weight")),
        (
            "add_edges",
            [[{"src": PASSAGE, "dst": ENTITY, "type": 3}]],
            ("type", "edges[0].type", {"allowed": "a string"}),
        ),
        (
            "add_edges",
            [[{"src": PASSAGE, "dst": ENTITY, "stated_by": "b"}]],
            ("conflict", "edges[0].stated_by", {"given": "b", "passage": "a"}),
        ),
        ("add_edges", [[{"src": PASSAGE, "dst": ("entity", "Eve")}]], ("unknown",)),
        ("delete_edges", [[{"src": PASSAGE, "dst": ENTITY, "weight": 1.0}]], ("type", "edges[0]")),
        ("add_facts", [[("Ada", "knew", "Babbage")]], ("type", "facts[0]")),
        ("add_facts", [[("Ada", "knew", "Eve", "a")]], ("unknown",)),
        ("delete_facts", [["Ada"]], ("type", "facts[0]", {"allowed": "(head, relation, tail)"})),
    ],
)
def test_a_change_that_cannot_be_is_refused_and_nothing_changes(
    tmp_path: Path, call: str, arguments: list[Any], expected: tuple[Any, ...] | None
) -> None:
    with hf.Index.open(saved(tmp_path), writable=True) as live:
        change = live.change()
        if expected is None:
            getattr(change, call)(*arguments)
            assert change.commit() == 1
            with refused(InputError, "duplicate", seq=1):
                change.commit()
            return
        with refused(InputError, *expected):
            getattr(change, call)(*arguments)
            change.commit()
        assert not (tmp_path / "log-000000000001.hopfuse").exists()
        assert add(live, "later") == 1


def test_parts_that_the_index_has_not_are_refused(tmp_path: Path) -> None:
    hf.Index.build(passages=[{"id": "a", "text": ""}], entities=["Ada"]).save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        for call, arguments, code, field in (
            ("add_edges", [[{"src": PASSAGE, "dst": ENTITY}]], "missing", "edges"),
            ("add_facts", [[("Ada", "is", "Ada", "a")]], "missing", "facts"),
            ("add_entities", [["Eve"]], "unsupported", "words"),
        ):
            options = {"words": True} if call == "add_entities" else {}
            with refused(InputError, code, field):
                getattr(live.change(), call)(*arguments, **options)
        with refused(InputError, "unused", "vectors", section="passage.vectors"):
            live.change().add_passages([{"id": "b", "text": ""}], vectors=[[1.0]])
        with live.change() as change:
            pass
        assert change.seq == 0  # a change of nothing is no batch


def test_a_change_that_is_committed_takes_nothing_more(tmp_path: Path) -> None:
    hf.Index.build(passages=[{"id": "a", "text": "one"}]).save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        change = live.change()
        change.add_passages([{"id": "b", "text": "two"}])
        assert change.commit() == 1
        for late in (lambda: change.add_passages([{"id": "c", "text": "three"}]), change.preview, change.commit):
            with refused(InputError, "duplicate", seq=1):
                late()


def test_a_change_deletes_what_was_there_before_it(tmp_path: Path) -> None:
    hf.Index.build(passages=[{"id": "a", "text": "one"}]).save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        change = live.change()
        change.add_passages([{"id": "b", "text": "two"}])
        change.delete_passages(["b"])
        with refused(InputError, "unknown", given="b"):
            change.commit()


def test_a_change_names_nothing_that_it_deletes(tmp_path: Path) -> None:
    with hf.Index.open(saved(tmp_path), writable=True) as live:
        change = live.change()
        change.delete_entities(["Ada"])
        change.add_edges([{"src": ("passage", "b"), "dst": ENTITY}])
        with refused(InputError, "conflict", given="Ada", what="entity"):
            change.commit()


def test_a_generation_that_is_damaged_is_found_by_a_merge(tmp_path: Path) -> None:
    with hf.Index.open(saved(tmp_path), writable=True) as live:
        add(live, "c")
    file = generation_file(tmp_path)
    data = bytearray(file.read_bytes())
    data[data.rindex(b"Babbage built.")] ^= 1
    file.write_bytes(data)
    with refused(FormatError, "damaged"):
        _ = hf.Index.open(tmp_path).texts


def test_an_empty_index_takes_ids_of_either_kind(tmp_path: Path) -> None:
    for kind, id in (("strings", "a"), ("integers", 7)):
        folder = tmp_path / kind
        hf.Index.build(passages=[]).save(folder)
        with hf.Index.open(folder, writable=True) as live:
            with live.change() as change:
                change.add_passages([{"id": id, "text": "one"}])
            assert list(live.refresh().passage_ids) == [id]
            assert live.index.row_of(id) == 0


@pytest.mark.parametrize("method", ["lucene", "robertson", "atire"])
def test_bm25_after_changes_equals_a_rebuild_and_shares_the_counts_of_the_generation(
    tmp_path: Path, method: str
) -> None:
    rng = np.random.default_rng(1)

    def texts(count: int) -> list[str]:
        return [" ".join(f"w{word}" for word in row) for row in (300 * rng.random((count, 60)) ** 3).astype(int)]

    def rebuilt(rows: dict[str, str]) -> BM25:
        return BM25.build(list(rows.values()), method=method, stopwords=None, stemmer=None)

    rows = {f"p{at}": text for at, text in enumerate(texts(600))}
    index = hf.Index.build(passages=[{"id": id, "text": text} for id, text in rows.items()])
    index.with_lexical(rebuilt(rows).matrix).save(tmp_path)
    size = index.with_lexical(rebuilt(rows).matrix).info()["lexical"]["entries"] * 4
    more = {f"q{at}": f"{text} new{at}" for at, text in enumerate(texts(5))}
    with hf.Index.open(tmp_path, writable=True) as live:
        for gone in ([], ["p0", "p17", "p599"]):
            with live.change() as change:
                change.delete_passages(gone)
                change.add_passages([{"id": id, "text": text} for id, text in more.items()])
            rows = {id: text for id, text in (rows | more).items() if id not in gone}
            more = {}
            tracemalloc.start()
            ours, theirs = live.refresh().lexical, rebuilt(rows).matrix
            held = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/parts/terms.py")])
            tracemalloc.stop()
            assert 0 < sum(trace.size for trace in held.traces) < size
            assert ours is not None
            assert repr(ours) == repr(theirs)
            assert ours.terms == theirs.terms
            assert_same_terms(ours, theirs)
            chosen = np.flatnonzero(rng.random(len(rows)) < 0.3)
            for some in (chosen, chosen[:0], np.arange(len(rows))):
                assert_same_terms(ours.part(some), theirs.part(some))
            for term in range(len(theirs.terms)):
                for a, b in zip(ours.column(term), theirs.column(term), strict=True):
                    assert (a.dtype, a.tobytes()) == (b.dtype, b.tobytes())
            for asked in ([], [0], [3, 1, 3], list(range(0, len(theirs.terms), 40))):
                ours_sums, sums = (matrix.sums(asked) for matrix in (ours, theirs))
                assert sorted(zip(*ours_sums, strict=True)) == sorted(zip(*sums, strict=True))
            tracemalloc.start()
            ours.sums([int(np.argmin(np.diff(theirs.indptr)))])
            assert tracemalloc.get_traced_memory()[1] < size // 8, "it makes no column that is not asked for"
            tracemalloc.stop()


def test_a_snapshot_with_deletions_shares_the_vectors_and_texts_of_the_generation(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    ids, vectors = [f"p{at}" for at in range(2000)], rng.standard_normal((2000, 96)).astype(np.float32)
    rows = [{"id": id, "title": f"title of {id}", "text": f"text of {id} " * 40} for id in ids]
    index = hf.Index.build(passages=rows, vectors=vectors)
    index.save(tmp_path)
    size = index.sections["passage.vectors"].nbytes + index.sections["passage.text.bytes"].nbytes
    with hf.Index.open(tmp_path, writable=True) as live:
        with live.change() as change:
            change.delete_passages(ids[::7])
            change.add_passages([{"id": "new", "text": "The sea."}], vectors=np.ones((1, 96)))
        live.index.load()
        assert live.index.corpus is not None
        tracemalloc.start()
        snapshot = live.refresh()
        assert [snapshot.texts[at] for at in (0, 5, 6, -1)] == [rows[at]["text"] for at in (1, 6, 8)] + ["The sea."]
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert held < size // 8
        right = [row for at, row in enumerate(rows) if at % 7] + [{"id": "new", "title": "", "text": "The sea."}]
        kept = np.concatenate([vectors[np.arange(2000) % 7 > 0], np.ones((1, 96), np.float32)])
        expected = hf.Index.build(passages=right, vectors=kept)
        for name, array in expected.arrays().items():
            assert snapshot.sections[name].whole().tobytes() == array.tobytes(), name
            assert b"".join(snapshot.sections[name].blocks()) == array.tobytes(), name


def test_a_batch_that_counts_a_term_twice_is_refused(tmp_path: Path) -> None:
    saved_with_terms(tmp_path, "Ada wrote.")
    texts = {"passage.id": "c", "passage.title": "", "passage.text": "ada ada", "lexical.term": "ada"}
    arrays = {name: array for of, text in texts.items() for name, array in strings(of, [text]).items()}
    arrays |= {"passage.length": np.array([2], np.int32), "lexical.indptr": np.array([0, 2])}
    arrays |= {"lexical.passage": np.zeros(2, np.int64), "lexical.count": np.ones(2, np.int32)}
    write_log(tmp_path, [encode(arrays)])
    with refused(FormatError, "duplicate"):
        hf.Index.open(tmp_path).load()


def saved_with_terms(folder: Path, *texts: str) -> None:
    index = hf.Index.build(passages=[{"id": f"p{at}", "text": text} for at, text in enumerate(texts)])
    index.with_lexical(BM25.build(texts, stemmer=None).matrix).save(folder)
